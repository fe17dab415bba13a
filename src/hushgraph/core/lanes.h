// One number or four side by side: the same code serves both and rounds each lane alike, so it gives the same bits.
// What takes or returns vectors becomes part of its caller always, since code for other processors passes them in another way.
#pragma once

#include <cstring>

namespace hushgraph {

constexpr int WIDTH = 4;  // signals side by side

template <typename T, int W> struct LanesOf;
template <typename T> struct LanesOf<T, 1> {
    using type = T;
};
template <> struct LanesOf<double, 4> {
    typedef double type __attribute__((vector_size(32)));
};
template <> struct LanesOf<float, 4> {
    typedef float type __attribute__((vector_size(16)));
};
template <typename T, int W> using Lanes = typename LanesOf<T, W>::type;

// Lanes `row` of an array that holds W signals interleaved.
template <int W, typename T> [[gnu::always_inline]] inline Lanes<T, W> load(const T* array, std::size_t row) {
    Lanes<T, W> value;
    std::memcpy(&value, array + row * W, sizeof value);
    return value;
}

template <int W, typename T> [[gnu::always_inline]] inline void store(T* array, std::size_t row, Lanes<T, W> value) {
    std::memcpy(array + row * W, &value, sizeof value);
}

// (a + b) + (c + d) of four numbers.
[[gnu::always_inline]] inline double total(Lanes<double, 4> value) { return (value[0] + value[1]) + (value[2] + value[3]); }

}  // namespace hushgraph
