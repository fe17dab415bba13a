// Sizes in bins by the exponent and the first bits of the mantissa, which ascend with the size (`sure_bins.py` says what for).
#pragma once

#include <algorithm>
#include <cstring>

#include "arrays.h"

namespace hushgraph {

constexpr double TINY = 5e-324;  // the least threshold that is not 0: it takes exact zeros and nothing else
constexpr Index BINS = 2048;     // 64 per factor of 2 below the largest size; the lowest bin takes the rest
constexpr int SHIFT = 46;        // bits of a float64 below those that say its bin
constexpr double ROUNDING = 1e-12;

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

// The number of the lowest bin where `top` is the largest size.
inline Index lowest_bin(double top) { return std::max<Index>(0, (bits_of(top) >> SHIFT) - BINS + 1); }

// The bin of a size of at least 0, counted from the lowest.
inline Index bin_of(double size, Index lowest) { return std::clamp<Index>((bits_of(size) >> SHIFT) - lowest, 0, BINS - 1); }

// The lower edges of `count` bins from number `first` on, and the upper edge of the last; `shift` is SHIFT, or less for finer bins.
inline Owned<double> edges_of(Index first, Index count, int shift) {
    Owned<double> edges(count + 1);
    for (Index k = 0; k <= count; k++) edges[k] = float_of((first + k) << shift);
    return edges;
}

// A size and where it lies. They sort by size, and those of the same size by place.
struct Ranked {
    double size;
    Index place;

    bool operator<(const Ranked& other) const { return size < other.size || (size == other.size && place < other.place); }
};

}  // namespace hushgraph
