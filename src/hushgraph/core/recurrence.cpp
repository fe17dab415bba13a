#include "python.h"

#include "recurrence.h"

#include <algorithm>

#include "levels.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index SLICE = 256;     // values mixed at a time: a dozen slices fit into the first-level cache
constexpr Index LANE_STEPS = 6;  // degrees of one sweep if the lanes hold several signals
constexpr Index STRETCH = 4096;  // blocks that a thread processes between two checks for signals

// Returns `count` rows of a matrix, starting with row `first`.
template <typename T> Matrix<T> rows_from(Matrix<T> matrix, Index first, Index count) {
    matrix.data += first * matrix.strides[0];
    matrix.shape[0] = count;
    return matrix;
}

// Returns the columns first .. last - 1 of a matrix.
template <typename T> Matrix<const T> columns_of(Matrix<const T> matrix, Index first, Index last) {
    matrix.data += first;
    matrix.shape[1] = last - first;
    return matrix;
}

#define HUSHGRAPH_LOOPS "recurrence.inc"
#include "both_levels.h"

// Adds the moments of all blocks, in ascending order.
template <typename T> void add_moments(Cube<const T> block_moments, Matrix<T> moments) {
    for (Index b = 0; b < block_moments.shape[0]; b++)
        for (Index m = 0; m < moments.shape[0]; m++)
            for (Index k = 0; k < moments.shape[1]; k++) moments(m, k) += block_moments(b, k, m);
}

// ---- transforms -------------------------------------------------------------------------------------------------

// Copies rows into the order of the layout: targets_ji = sources_j,order(i).
template <typename T> void gather(Vector<const Index> order, Matrix<const T> sources, Matrix<T> targets) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index j = 0; j < targets.shape[0]; j++)
            for (Index i = lo; i < hi; i++) targets(j, i) = sources(j, order[i]);
    });
}

// Copies rows back into the order of the nodes: targets_j,order(i) = sources_ji.
template <typename T> void scatter(Vector<const Index> order, Matrix<const T> sources, Matrix<T> targets) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index j = 0; j < sources.shape[0]; j++)
            for (Index i = lo; i < hi; i++) targets(j, order[i]) = sources(j, i);
    });
}

// Calls body(first, last, worker) for stretches of blocks that cover all blocks. The wavefront of a stretch also computes `steps`
// blocks on both sides, so a stretch is long compared with `steps`.
template <typename F> void for_stretches(Index n_blocks, Index threads, Index steps, F&& body) {
    const Index chunks = std::max<Index>(1, std::min(threads, n_blocks / (2 * steps)));
    const Index stretches = chunks * ((n_blocks + chunks * STRETCH - 1) / (chunks * STRETCH));
    parallel_for(stretches, stretches > 1 ? MIN_PARALLEL_WORK : 0,
                 [&](Index k, int worker) { body(n_blocks * k / stretches, n_blocks * (k + 1) / stretches, worker); });
}

// The memory of the transform of one signal: `pairs` (4, n) holds the last two terms before and after a sweep, `windows` a circular
// window for each thread with its `mask`, `ordered` the bands in the order of the layout.
template <typename T> struct Workspace {
    Matrix<T> pairs;
    Cube<T> windows;
    Index mask;
    Matrix<T> ordered;
};

// Makes a sweep on all threads.
template <typename T> void run_sweep(const Sweep<T>& sweep, bool wavefront, Cube<T> windows) {
    const Index n_blocks = sweep.rows.n_blocks(), n = sweep.old_terms.shape[1];
    if (wavefront) {
        for_stretches(n_blocks, windows.shape[0], windows.shape[1] - 2, [&](Index first, Index last, int worker) {
            HUSHGRAPH_LEVEL(climb_sweep<T, 1>)(first, last, sweep, windows[worker]);
        });
        return;
    }
    // one stage after the other, for graphs with large levels (small worlds); the window is as long as the graph
    for (Index number = 0; number <= sweep.steps; number++)
        parallel_for(n_blocks, n, [&](Index b) { HUSHGRAPH_LEVEL(stage<T, 1>)(b, number, sweep, windows[0]); });
    parallel_for(n_blocks, n, [&](Index b) { HUSHGRAPH_LEVEL(finish<T, 1>)(b, sweep, windows[0]); });
}

// Transforms one signal on all threads: the signal to bands, or back.
template <typename T> void transform_one(const Operator<T>& rows, Matrix<const T> theta, Vector<const Index> order,
                                         Vector<T> signal, Matrix<T> bands, Vector<T> moments, bool wavefront,
                                         const Workspace<T>& work, bool backward) {
    const Index n_blocks = rows.n_blocks(), most = work.windows.shape[1] - 2;
    const Index n_terms = backward ? theta.shape[0] : theta.shape[1], n_moments = moments.size();
    Owned<T, 3> block_moments(n_moments ? n_blocks : 0, n_moments, 1);
    Matrix<T> signal_row{signal.data, {1, signal.size()}, {signal.size(), 1}};
    Matrix<T> before = rows_from(work.pairs, 0, 2), after = rows_from(work.pairs, 2, 2);
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index row = 0; row < 2; row++) std::fill(&before(row, lo), &before(row, lo) + (hi - lo), T(0));
    });
    if (backward)
        gather<T>(order, bands, work.ordered);
    else
        gather<T>(order, signal_row, rows_from(before, 1, 1));
    Interrupts interrupts;  // a sweep is too short for its own check to see a signal
    for (Index k = backward ? 0 : 1; k < n_terms; k += most) {
        const Sweep<T> sweep{
            k, std::min(most, n_terms - k), rows, theta, before, after, work.mask, work.ordered, block_moments, backward};
        run_sweep(sweep, wavefront, work.windows);
        std::swap(before, after);
        interrupts.check();
    }
    add_moments<T>(block_moments, Matrix<T>{moments.data, {n_moments ? 1 : 0, n_moments}, {n_moments, 1}});
    if (backward)
        scatter<T>(order, rows_from(before, 1, 1), signal_row);
    else
        scatter<T>(order, work.ordered, bands);
}

// Continues the transform of one signal. `terms` (2, n) holds the last two terms T_k-1 x and T_k x, or 0 and x before the first
// one; afterwards it holds the new last two. `theta` (bands, steps + 1) are the coefficients of T_k and of the terms to come; only
// without `continues` T_k = x itself is added to the bands. `moments` (2 steps + 1) receives <T_k x, T_k x>, <T_k+1 x, T_k x>,
// <T_k+1 x, T_k+1 x> and so on, each row with its share.
void continue_one(const Operator<double>& rows, Matrix<const double> theta, Vector<const Index> order, Matrix<double> terms,
                  Matrix<double> bands, Vector<double> moments, Vector<const double> shares, bool wavefront,
                  const Workspace<double>& work, bool continues) {
    const Index n_blocks = rows.n_blocks(), most = work.windows.shape[1] - 2, n_terms = theta.shape[1], n_moments = moments.size();
    Owned<double, 3> block_moments(n_blocks, n_moments, 1);
    Owned<double> ordered_shares(shares.size());
    Matrix<double> before = rows_from(work.pairs, 0, 2), after = rows_from(work.pairs, 2, 2);
    const Matrix<const double> shares_row{shares.data, {1, shares.size()}, {shares.size(), 1}};
    gather<double>(order, shares_row, Matrix<double>{ordered_shares.data, {1, shares.size()}, {shares.size(), 1}});
    gather<double>(order, terms, before);
    if (continues) gather<double>(order, bands, work.ordered);
    Optional<const double, 1> factors;
    factors.data = ordered_shares.data, factors.shape[0] = shares.size(), factors.strides[0] = 1;
    Interrupts interrupts;
    for (Index k = 1; k < n_terms; k += most) {
        const Sweep<double> sweep{k,
                                  std::min(most, n_terms - k),
                                  rows,
                                  theta,
                                  before,
                                  after,
                                  work.mask,
                                  work.ordered,
                                  block_moments,
                                  false,
                                  continues,
                                  factors};
        run_sweep(sweep, wavefront, work.windows);
        std::swap(before, after);
        interrupts.check();
    }
    add_moments<double>(block_moments, Matrix<double>{moments.data, {1, n_moments}, {n_moments, 1}});
    scatter<double>(order, before, terms);
    scatter<double>(order, work.ordered, bands);
}

// Transforms signals (m, n) to bands (m, n_scales, n) on a small graph, or back. Each thread processes WIDTH signals at a time.
template <typename T> void transform_columns(const Operator<T>& rows, Matrix<const T> theta, Vector<const Index> order,
                                             Matrix<T> signals, Cube<T> bands, Matrix<T> moments, Index window_rows, Index mask,
                                             bool backward) {
    constexpr int W = WIDTH;
    const Index n = order.size(), n_blocks = rows.n_blocks(), count = signals.shape[0], n_scales = bands.shape[1];
    const Index n_terms = backward ? theta.shape[0] : theta.shape[1], n_moments = moments.shape[1], groups = (count + W - 1) / W;
    parallel_for(groups, groups > 1 ? MIN_PARALLEL_WORK : 0, [&](Index group) {
        const Index first = group * W, n_lanes = std::min<Index>(W, count - first);
        Owned<T, 2> pairs = Owned<T, 2>::zeros(4, n * W), window(LANE_STEPS + 2, window_rows * W);
        Owned<T, 2> ordered(n_scales, n * W);
        Owned<T, 3> block_moments(n_moments && moments.shape[0] ? n_blocks : 0, n_moments, W);
        for (Index m = 0; m < W; m++) {
            const Index column = std::min(first + m, count - 1);
            for (Index i = 0; i < n; i++) {
                if (backward)
                    for (Index j = 0; j < n_scales; j++) ordered(j, i * W + m) = bands(column, j, order[i]);
                else
                    pairs(1, i * W + m) = signals(column, order[i]);
            }
        }
        Matrix<T> before = rows_from<T>(pairs, 0, 2), after = rows_from<T>(pairs, 2, 2);
        for (Index k = backward ? 0 : 1; k < n_terms; k += LANE_STEPS) {
            const Sweep<T> sweep{
                k, std::min(LANE_STEPS, n_terms - k), rows, theta, before, after, mask, ordered, block_moments, backward};
            HUSHGRAPH_LEVEL(climb_sweep<T, W>)(0, n_blocks, sweep, window);
            std::swap(before, after);
            check_signals();
        }
        add_moments<T>(block_moments, rows_from(moments, first, n_lanes));
        for (Index m = 0; m < n_lanes; m++) {
            for (Index i = 0; i < n; i++) {
                if (backward)
                    signals(first + m, order[i]) = before(1, i * W + m);
                else
                    for (Index j = 0; j < n_scales; j++) bands(first + m, j, order[i]) = ordered(j, i * W + m);
            }
        }
    });
}

// ---- products ---------------------------------------------------------------------------------------------------

// Returns the number of rows of the largest block.
Index widest_block(const Operator<double>& rows) {
    Index widest = 0;
    for (Index b = 0; b < rows.n_blocks(); b++) widest = std::max(widest, rows.blocks[b + 1] - rows.blocks[b]);
    return widest;
}

// Writes rows x into `out`; returns x'out of each block, computed while the block is in cache.
Owned<double> multiply(const Operator<double>& rows, Vector<const double> x, Vector<double> out) {
    const Owned<double> zeros = Owned<double>::zeros(widest_block(rows));
    Owned<double> products(rows.n_blocks());
    parallel_for(rows.n_blocks(), x.size(),
                 [&](Index b) { products[b] = HUSHGRAPH_LEVEL(multiply_block)(b, rows, x.data, zeros.data, out.data); });
    return products;
}

// Makes `steps` steps of the power iteration of `Powers`, at most as many as a window holds; returns the largest quotient of each
// step. `mask` belongs to the circular window; it is -1 for a graph with large levels, on which each step processes all rows.
Owned<double> iterate_powers(const Operator<double>& rows, Vector<double> x, Vector<const double> least, double factor, Index steps,
                             Index mask, Optional<const bool, 1> counted) {
    const Index n = x.size(), n_blocks = rows.n_blocks(), widest = widest_block(rows);
    const Owned<double> zeros = Owned<double>::zeros(widest);
    Owned<double> after(n), largest = Owned<double>::zeros(steps);
    Owned<double, 2> quotients = Owned<double, 2>::zeros(n_blocks, steps);
    Powers powers{rows, x, after, least, factor, steps, mask, counted, zeros.data, quotients};
    if (mask >= 0) {
        const int threads = n < MIN_PARALLEL_WORK ? 1 : thread_count();
        Owned<double, 3> windows(threads, steps + 1, mask + 1 + widest);
        for_stretches(n_blocks, threads, steps, [&](Index first, Index last, int worker) {
            HUSHGRAPH_LEVEL(climb_powers)(first, last, powers, windows[worker]);
        });
        parallel_ranges(n, n, [&](Index lo, Index hi) { std::copy(&after[lo], &after[lo] + (hi - lo), &x[lo]); });
    } else {
        for (Index k = 0; k < steps; k++) {
            parallel_for(n_blocks, n, [&](Index b) {
                const Index lo = rows.blocks[b];
                quotients(b, k) = HUSHGRAPH_LEVEL(power_block)(b, powers, x.data, &x[lo], &after[lo]);
            });
            std::copy(after.begin(), after.end(), x.begin());
        }
    }
    for (Index b = 0; b < n_blocks; b++)
        for (Index k = 0; k < steps; k++) largest[k] = std::max(largest[k], quotients(b, k));
    return largest;
}

// An operator as an argument from Python: a tuple of the members of `Operator`.
template <typename T> using OperatorTuple =
    std::tuple<Vector<const Index>, Vector<const Index>, Matrix<const Index>, Vector<const T>, Vector<const std::uint32_t>,
               Optional<const T, 1>, Optional<const T, 1>, T>;

template <typename T> Operator<T> operator_of(const OperatorTuple<T>& tuple) {
    return std::apply([](const auto&... members) { return Operator<T>{members...}; }, tuple);
}

template <typename T> void bind_transforms(nb::module_& m) {
    m.def(
        "transform_one",
        [](const OperatorTuple<T>& rows, Matrix<const T> theta, Vector<const Index> order, Vector<T> signal, Matrix<T> bands,
           Vector<T> moments, bool wavefront, Index mask, Matrix<T> pairs, Cube<T> windows, Matrix<T> ordered, bool backward) {
            transform_one<T>(operator_of<T>(rows), theta, order, signal, bands, moments, wavefront, {pairs, windows, mask, ordered},
                             backward);
        },
        "rows"_a, "theta"_a, "order"_a, "signal"_a, "bands"_a, "moments"_a, "wavefront"_a, "mask"_a, "pairs"_a, "windows"_a,
        "ordered"_a, "backward"_a, Unlocked());
    m.def(
        "transform_columns",
        [](const OperatorTuple<T>& rows, Matrix<const T> theta, Vector<const Index> order, Matrix<T> signals, Cube<T> bands,
           Matrix<T> moments, Index window_rows, Index mask, bool backward) {
            transform_columns<T>(operator_of<T>(rows), theta, order, signals, bands, moments, window_rows, mask, backward);
        },
        "rows"_a, "theta"_a, "order"_a, "signals"_a, "bands"_a, "moments"_a, "window_rows"_a, "mask"_a, "backward"_a, Unlocked());
}

}  // namespace

void bind_recurrence(nb::module_& m) {
    bind_transforms<double>(m);
    bind_transforms<float>(m);
    m.def(
        "continue_one",
        [](const OperatorTuple<double>& rows, Matrix<const double> theta, Vector<const Index> order, Matrix<double> terms,
           Matrix<double> bands, Vector<double> moments, Vector<const double> shares, bool wavefront, Index mask,
           Matrix<double> pairs, Cube<double> windows, Matrix<double> ordered, bool continues) {
            continue_one(operator_of<double>(rows), theta, order, terms, bands, moments, shares, wavefront,
                         {pairs, windows, mask, ordered}, continues);
        },
        "rows"_a, "theta"_a, "order"_a, "terms"_a, "bands"_a, "moments"_a, "shares"_a, "wavefront"_a, "mask"_a, "pairs"_a,
        "windows"_a, "ordered"_a, "continues"_a, Unlocked());
    m.def(
        "multiply",
        [](const OperatorTuple<double>& rows, Vector<const double> x, Vector<double> out) {
            return multiply(operator_of<double>(rows), x, out);
        },
        "rows"_a, "x"_a, "out"_a, Unlocked());
    m.def(
        "iterate_powers",
        [](const OperatorTuple<double>& rows, Vector<double> x, Vector<const double> least, double factor, Index steps, Index mask,
           Optional<const bool, 1> counted) {
            return iterate_powers(operator_of<double>(rows), x, least, factor, steps, mask, counted);
        },
        "rows"_a, "x"_a, "least"_a, "factor"_a, "steps"_a, "mask"_a, "counted"_a.none(), Unlocked());
}

}  // namespace hushgraph
