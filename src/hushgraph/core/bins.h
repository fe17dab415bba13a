// Bins of sizes. The bin number is the exponent and the first bits of the mantissa, so bins ascend with the size.
// `wavelets/threshold_search.py` explains the use of the bins.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "arrays.h"

namespace hushgraph {

constexpr double TINY = 5e-324;     // the smallest threshold above 0: it affects exact zeros only
constexpr Index BINS = 2048;        // 64 per factor of 2, from the largest size down; the lowest bin holds all smaller sizes
constexpr int SHIFT = 46;           // number of low bits of a float64 that do not belong to the bin number
constexpr double ROUNDING = 1e-12;  // relative rounding error that bounds on SURE allow for
constexpr double INFINITE = std::numeric_limits<double>::infinity();

inline Index bits_of(double value) {
    Index bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline double float_of(Index bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Returns the number of the lowest bin if `top` is the largest size.
inline Index lowest_bin(double top) { return std::max<Index>(0, (bits_of(top) >> SHIFT) - BINS + 1); }

// Returns the bin of a size >= 0, counted from the lowest bin.
inline Index bin_of(double size, Index lowest) { return std::clamp<Index>((bits_of(size) >> SHIFT) - lowest, 0, BINS - 1); }

// Returns the lower edges of `count` bins, starting with bin number `first`, and the upper edge of the last bin. `shift` is SHIFT
// for bins and smaller for finer bins.
inline Owned<double> edges_of(Index first, Index count, int shift) {
    Owned<double> edges(count + 1);
    for (Index k = 0; k <= count; k++) edges[k] = float_of((first + k) << shift);
    return edges;
}

// A size and its position in an array. Sorted by size; equal sizes are sorted by position.
struct Ranked {
    double size;
    Index position;

    bool operator<(const Ranked& other) const { return size < other.size || (size == other.size && position < other.position); }
};

}  // namespace hushgraph
