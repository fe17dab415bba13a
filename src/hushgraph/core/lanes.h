// One number or four side by side: the same code serves both and rounds each lane alike, so it gives the same bits.
#pragma once

#include <cstddef>

namespace hushgraph {

constexpr int WIDTH = 4;  // signals side by side

template <typename T, int W> struct LanesOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
    typedef T loose __attribute__((vector_size(W * sizeof(T)), aligned(alignof(T)), may_alias));  // anywhere in an array
};
template <typename T> struct LanesOf<T, 1> {
    using type = T;
    using loose = T;
};
template <typename T, int W> using Lanes = typename LanesOf<T, W>::type;
template <typename T, int W> using LooseLanes = typename LanesOf<T, W>::loose;

// Vectors are handed on by reference: code for other processors passes their values in another way.

// Lanes `row` of an array that holds W signals interleaved.
template <int W, typename T> inline const LooseLanes<T, W>& load(const T* array, std::size_t row) {
    return *reinterpret_cast<const LooseLanes<T, W>*>(array + row * W);
}

template <int W, typename T> inline void store(T* array, std::size_t row, const Lanes<T, W>& value) {
    *reinterpret_cast<LooseLanes<T, W>*>(array + row * W) = value;
}

// (a + b) + (c + d) of four numbers.
inline double total(const Lanes<double, 4>& value) { return (value[0] + value[1]) + (value[2] + value[3]); }

}  // namespace hushgraph
