// The three-term recurrence on blocks of rows, in a wavefront that stays in cache.
//
// Each row adds its neighbours in ascending node number, each scale its terms in ascending degree: the bits never depend on blocks,
// threads or the number of signals side by side.
#pragma once

#include "arrays.h"
#include "lanes.h"

namespace hushgraph {

// (own diagonal + offset) x - gain adjacency x, rows in the order of a layout (`kernels/layout.py`).
template <typename T> struct Operator {
    Vector<const Index> blocks;      // first row of each block, and the end of the last
    Vector<const Index> block_runs;  // first run of each block
    Matrix<const Index> runs;        // first row, last row + 1, length of its rows, place of its first index
    Vector<const T> run_shift;       // what multiplies x itself, for the rows of each run
    Vector<const std::uint32_t> indices;
    Optional<const T, 1> values;     // none: every edge has the same weight, which is part of gain and run_shift
    Optional<const T, 1> row_shift;  // where there are values: what multiplies x itself, for each row
    T gain;

    Index n_blocks() const { return blocks.size() - 1; }
};

// What one sweep of the wavefront reads and writes: terms k .. k + steps - 1 from the two before them.
//
// On each block a sweep goes through stages: stage 0 loads the two terms into rows 0 and 1 of the window, stage s computes row s
// + 1. Forward terms are T_k x, added into the bands when a block is finished; backward terms are Clenshaw's b_k, which start from
// the mixed bands. A block's rows lie together in the window, from row & mask on; what sticks out at its end is copied to its
// beginning, where neighbours look for it. Moments: marks (blocks, terms, lanes) take <T_k x, T_k x> at 2k and <T_k x, T_k-1 x> at
// 2k - 1, since T_a T_b = (T_a+b + T_a-b) / 2.
template <typename T> struct Sweep {
    Index k, steps;
    Operator<T> rows;
    Matrix<const T> theta;
    Matrix<const T> old_terms;
    Matrix<T> new_terms;
    Index mask;
    Matrix<T> bands;
    Cube<T> marks;
    bool backward;
};

// A power iteration: x becomes max(factor rows x, least), `steps` times; `quotients` (blocks, steps) take the largest (rows x)_i /
// x_i of each block, over the rows that are counted (none given: all).
struct Powers {
    Operator<double> rows;
    Vector<const double> x;
    Vector<double> out;
    Vector<const double> least;
    double factor;
    Index steps, mask;
    Optional<const bool, 1> counted;
    const double* zeros;
    Matrix<double> quotients;
};

}  // namespace hushgraph
