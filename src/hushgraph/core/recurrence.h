// The three-term recurrence on blocks of rows, in a wavefront that stays in cache.
//
// Each row sums its neighbours in ascending node order, and each scale sums its terms in ascending degree. So the bits of a result
// do not depend on the blocks, the threads or the number of signals in the lanes.
#pragma once

#include "arrays.h"
#include "lanes.h"

namespace hushgraph {

// The operator x -> shift x - gain (adjacency) x, with rows in the order of a layout (`core/layout.py`).
template <typename T> struct Operator {
    Vector<const Index> blocks;      // first row of each block, and the end of the last block
    Vector<const Index> block_runs;  // first run of each block
    Matrix<const Index> runs;        // of each run: first row, last row + 1, length of the rows, position of the first index
    Vector<const T> run_shift;       // shift of the rows of each run
    Vector<const std::uint32_t> indices;
    Optional<const T, 1> values;     // absent if all edges have the same weight, which is then part of gain and run_shift
    Optional<const T, 1> row_shift;  // if there are values: the shift of each row, instead of run_shift
    T gain;

    Index n_blocks() const { return blocks.size() - 1; }
};

// A sweep of the wavefront: it computes the terms k .. k + steps - 1 from the two terms before them.
//
// A sweep processes each block in stages: stage 0 loads the two old terms into rows 0 and 1 of the window, stage s computes row s
// + 1. Forward terms are T_k x; they are added to the bands when a block is finished. Backward terms are Clenshaw's b_k; they start
// from the mixed bands. The window is circular: row i of the graph is at position i & mask. The rows of a block are adjacent in the
// window; the part behind the end of the window is copied to its start, where other blocks read it. `block_moments` (blocks, terms,
// lanes) receives <T_k x, T_k x> at 2k and <T_k x, T_k-1 x> at 2k - 1; these are moments because T_a T_b = (T_a+b + T_a-b) / 2.
//
// With `continues` the sweep goes on with the terms of an earlier transform: k counts from those, and the bands hold its terms
// already. `shares`, if present, are factors of the rows in the sums over nodes; rows of ghosts have 0.
template <typename T> struct Sweep {
    Index k, steps;
    Operator<T> rows;
    Matrix<const T> theta;
    Matrix<const T> old_terms;
    Matrix<T> new_terms;
    Index mask;
    Matrix<T> bands;
    Cube<T> block_moments;
    bool backward;
    bool continues = false;
    Optional<const T, 1> shares = {};
};

// A power iteration: x becomes max(factor rows x, least), `steps` times. `quotients` (blocks, steps) receives the largest
// (rows x)_i / x_i of each block, over the rows that are counted (all rows if `counted` is absent).
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
