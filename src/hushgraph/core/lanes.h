// Lanes: W numbers that one operation processes together, or a single number for W = 1. The same code is compiled for both. Each
// lane is rounded separately, so the result has the same bits for every W.
#pragma once

#include <cstddef>

namespace hushgraph {

constexpr int WIDTH = 4;  // lanes of a vector register

template <typename T, int W> struct LanesOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
    typedef T loose __attribute__((vector_size(W * sizeof(T)), aligned(alignof(T)), may_alias));  // at any address in an array
};
template <typename T> struct LanesOf<T, 1> {
    using type = T;
    using loose = T;
};
template <typename T, int W> using Lanes = typename LanesOf<T, W>::type;
template <typename T, int W> using LooseLanes = typename LanesOf<T, W>::loose;

// Functions take lanes by reference: code with and without AVX2 would pass lanes by value in different registers.

// Returns row `row` of an array that interleaves W signals.
template <int W, typename T> inline const LooseLanes<T, W>& load(const T* array, std::size_t row) {
    return *reinterpret_cast<const LooseLanes<T, W>*>(array + row * W);
}

template <int W, typename T> inline void store(T* array, std::size_t row, const Lanes<T, W>& value) {
    *reinterpret_cast<LooseLanes<T, W>*>(array + row * W) = value;
}

// Returns (a + b) + (c + d) for the four lanes a, b, c, d.
inline double total(const Lanes<double, 4>& value) { return (value[0] + value[1]) + (value[2] + value[3]); }

}  // namespace hushgraph
