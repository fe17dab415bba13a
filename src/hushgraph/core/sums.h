#pragma once

#include "arrays.h"
#include "lanes.h"

namespace hushgraph {

// Returns x'y. Two groups of four partial sums are independent of each other, so that no addition waits for the one before. The
// function is inlined, so it has the level of the calling function (levels.h).
[[gnu::always_inline]] inline double dot(const double* x, const double* y, Index size) {
    const Index wide = size / (2 * WIDTH);
    double value = 0.0;
    if (wide > 0) {
        Lanes<double, 4> a = load<4>(x, 0) * load<4>(y, 0), b = load<4>(x, 1) * load<4>(y, 1);
        for (Index i = 1; i < wide; i++) {
            a = a + load<4>(x, 2 * i) * load<4>(y, 2 * i);
            b = b + load<4>(x, 2 * i + 1) * load<4>(y, 2 * i + 1);
        }
        value = total(a + b);
    }
    for (Index i = 2 * wide * WIDTH; i < size; i++) value += x[i] * y[i];
    return value;
}

constexpr double LOW_UNIT = 0x1p-32;  // in high units

// Adds a value, in high units, to a sum of whole high and low units. The error is less than one low unit.
inline void add_units(double value, Index& high, Index& low) {
    const Index whole = static_cast<Index>(value);
    high += whole;
    low += static_cast<Index>((value - static_cast<double>(whole)) * (1 / LOW_UNIT));
}

}  // namespace hushgraph
