#pragma once

#include "arrays.h"
#include "lanes.h"

namespace hushgraph {

// x'y, two vectors of sums at a time, so that none waits for another. It becomes part of its caller, and so of the caller's level
// (levels.h).
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

}  // namespace hushgraph
