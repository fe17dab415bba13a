#include "python.h"

#include "recurrence.h"

#include <algorithm>

#include "levels.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index SLICE = 256;     // values mixed at once: a dozen slices of them fit the first-level cache
constexpr Index LANE_STEPS = 6;  // degrees climbed in one sweep with several signals side by side
constexpr Index STRETCH = 4096;  // blocks that a thread climbs before it looks for signals

template <typename T> Matrix<T> rows_from(Matrix<T> matrix, Index first, Index count) {
    matrix.data += first * matrix.strides[0];
    matrix.shape[0] = count;
    return matrix;
}

template <typename T> Matrix<const T> columns_of(Matrix<const T> matrix, Index first, Index last) {
    matrix.data += first;
    matrix.shape[1] = last - first;
    return matrix;
}

#define HUSHGRAPH_LOOPS "recurrence.inc"
#include "both_levels.h"

// Over the blocks, one after the other.
template <typename T> void add_marks(Cube<const T> marks, Matrix<T> moments) {
    for (Index b = 0; b < marks.shape[0]; b++)
        for (Index m = 0; m < moments.shape[0]; m++)
            for (Index k = 0; k < moments.shape[1]; k++) moments(m, k) += marks(b, k, m);
}

// ---- transforms -------------------------------------------------------------------------------------------------

// The order of the layout: targets_ji = sources_j,order(i).
template <typename T> void gather(Vector<const Index> order, Matrix<const T> sources, Matrix<T> targets) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index j = 0; j < targets.shape[0]; j++)
            for (Index i = lo; i < hi; i++) targets(j, i) = sources(j, order[i]);
    });
}

// Back to the order of the nodes.
template <typename T> void scatter(Vector<const Index> order, Matrix<const T> sources, Matrix<T> targets) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index j = 0; j < sources.shape[0]; j++)
            for (Index i = lo; i < hi; i++) targets(j, order[i]) = sources(j, i);
    });
}

// body(first, last, worker) for stretches of blocks, one after the other on each thread; a stretch is long against the `steps`
// blocks on both sides that its wavefront computes again.
template <typename F> void for_stretches(Index n_blocks, Index threads, Index steps, F&& body) {
    const Index chunks = std::max<Index>(1, std::min(threads, n_blocks / (2 * steps)));
    const Index stretches = chunks * ((n_blocks + chunks * STRETCH - 1) / (chunks * STRETCH));
    parallel_for(stretches, stretches > 1 ? ALONE_BELOW : 0,
                 [&](Index k, int worker) { body(n_blocks * k / stretches, n_blocks * (k + 1) / stretches, worker); });
}

// One signal on all cores. `pairs` (4, n) are the two last terms before and after a sweep; `windows` one round window per thread.
template <typename T> void transform_one(const Operator<T>& rows, Matrix<const T> theta, Vector<const Index> order,
                                         Vector<T> signal, Matrix<T> bands, Vector<T> moments, bool wavefront, Index mask,
                                         Matrix<T> pairs, Cube<T> windows, Matrix<T> ordered, bool backward) {
    const Index n_blocks = rows.n_blocks(), most = windows.shape[1] - 2;
    const Index n_terms = backward ? theta.shape[0] : theta.shape[1], n_moments = moments.size();
    Owned<T, 3> marks(n_moments ? n_blocks : 0, n_moments, 1);
    Matrix<T> signal_row{signal.data, {1, signal.size()}, {signal.size(), 1}};
    Matrix<T> before = rows_from(pairs, 0, 2), after = rows_from(pairs, 2, 2);
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index row = 0; row < 2; row++) std::fill(&before(row, lo), &before(row, lo) + (hi - lo), T(0));
    });
    if (backward)
        gather<T>(order, bands, ordered);
    else
        gather<T>(order, signal_row, rows_from(before, 1, 1));
    for (Index k = backward ? 0 : 1; k < n_terms; k += most) {
        const Sweep<T> sweep{k, std::min(most, n_terms - k), rows, theta, before, after, mask, ordered, marks, backward};
        if (wavefront) {
            for_stretches(n_blocks, windows.shape[0], most, [&](Index first, Index last, int worker) {
                HUSHGRAPH_LEVEL(climb_sweep<T, 1>)(first, last, sweep, windows[worker]);
            });
        } else {  // stage after stage, for graphs without thin levels (small worlds); the window is as long as the graph
            for (Index number = 0; number <= sweep.steps; number++)
                parallel_for(n_blocks, order.size(), [&](Index b) { HUSHGRAPH_LEVEL(stage<T, 1>)(b, number, sweep, windows[0]); });
            parallel_for(n_blocks, order.size(), [&](Index b) { HUSHGRAPH_LEVEL(finish<T, 1>)(b, sweep, windows[0]); });
        }
        std::swap(before, after);
    }
    add_marks<T>(marks, Matrix<T>{moments.data, {n_moments ? 1 : 0, n_moments}, {n_moments, 1}});
    if (backward)
        scatter<T>(order, rows_from(before, 1, 1), signal_row);
    else
        scatter<T>(order, ordered, bands);
}

// Signals (m, n) to bands (m, n_scales, n) or back on a small graph: each thread takes WIDTH signals at a time.
template <typename T> void transform_columns(const Operator<T>& rows, Matrix<const T> theta, Vector<const Index> order,
                                             Matrix<T> signals, Cube<T> bands, Matrix<T> moments, Index window_rows, Index mask,
                                             bool backward) {
    constexpr int W = WIDTH;
    const Index n = order.size(), n_blocks = rows.n_blocks(), count = signals.shape[0], n_scales = bands.shape[1];
    const Index n_terms = backward ? theta.shape[0] : theta.shape[1], n_moments = moments.shape[1], groups = (count + W - 1) / W;
    parallel_for(groups, groups > 1 ? ALONE_BELOW : 0, [&](Index group) {
        const Index first = group * W, here = std::min<Index>(W, count - first);
        Owned<T, 2> pairs = Owned<T, 2>::zeros(4, n * W), window(LANE_STEPS + 2, window_rows * W), mine(n_scales, n * W);
        Owned<T, 3> marks(n_moments && moments.shape[0] ? n_blocks : 0, n_moments, W);
        for (Index m = 0; m < W; m++) {
            const Index column = std::min(first + m, count - 1);
            for (Index i = 0; i < n; i++) {
                if (backward)
                    for (Index j = 0; j < n_scales; j++) mine(j, i * W + m) = bands(column, j, order[i]);
                else
                    pairs(1, i * W + m) = signals(column, order[i]);
            }
        }
        Matrix<T> before = rows_from<T>(pairs, 0, 2), after = rows_from<T>(pairs, 2, 2);
        for (Index k = backward ? 0 : 1; k < n_terms; k += LANE_STEPS) {
            const Sweep<T> sweep{k, std::min(LANE_STEPS, n_terms - k), rows, theta, before, after, mask, mine, marks, backward};
            HUSHGRAPH_LEVEL(climb_sweep<T, W>)(0, n_blocks, sweep, window);
            std::swap(before, after);
        }
        add_marks<T>(marks, rows_from(moments, first, here));
        for (Index m = 0; m < here; m++) {
            for (Index i = 0; i < n; i++) {
                if (backward)
                    signals(first + m, order[i]) = before(1, i * W + m);
                else
                    for (Index j = 0; j < n_scales; j++) bands(first + m, j, order[i]) = mine(j, i * W + m);
            }
        }
    });
}

// ---- products ---------------------------------------------------------------------------------------------------

Index widest_block(const Operator<double>& rows) {
    Index widest = 0;
    for (Index b = 0; b < rows.n_blocks(); b++) widest = std::max(widest, rows.blocks[b + 1] - rows.blocks[b]);
    return widest;
}

// out = rows x, and of each block x'out, taken while it is in cache.
Owned<double> multiply(const Operator<double>& rows, Vector<const double> x, Vector<double> out) {
    const Owned<double> zeros = Owned<double>::zeros(widest_block(rows));
    Owned<double> products(rows.n_blocks());
    parallel_for(rows.n_blocks(), x.size(),
                 [&](Index b) { products[b] = HUSHGRAPH_LEVEL(multiply_block)(b, rows, x.data, zeros.data, out.data); });
    return products;
}

// `steps` steps of the power iteration of `Powers`, at most as many as a window holds; returns the largest quotient of each. `mask`
// is that of the round window, or -1 for a graph without thin levels, whose steps go through all rows one after the other.
Owned<double> iterate_powers(const Operator<double>& rows, Vector<double> x, Vector<const double> least, double factor, Index steps,
                             Index mask, Optional<const bool, 1> counted) {
    const Index n = x.size(), n_blocks = rows.n_blocks(), widest = widest_block(rows);
    const Owned<double> zeros = Owned<double>::zeros(widest);
    Owned<double> after(n), found = Owned<double>::zeros(steps);
    Owned<double, 2> quotients = Owned<double, 2>::zeros(n_blocks, steps);
    Powers powers{rows, x, after, least, factor, steps, mask, counted, zeros.data, quotients};
    if (mask >= 0) {
        const int threads = n < ALONE_BELOW ? 1 : thread_count();
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
        for (Index k = 0; k < steps; k++) found[k] = std::max(found[k], quotients(b, k));
    return found;
}

// An operator as Python passes it: the members of `Operator` one after the other.
template <typename T> using GivenOperator =
    std::tuple<Vector<const Index>, Vector<const Index>, Matrix<const Index>, Vector<const T>, Vector<const std::uint32_t>,
               Optional<const T, 1>, Optional<const T, 1>, T>;

template <typename T> Operator<T> operator_of(const GivenOperator<T>& given) {
    return std::apply([](const auto&... members) { return Operator<T>{members...}; }, given);
}

template <typename T> void bind_transforms(nb::module_& m) {
    m.def(
        "transform_one",
        [](const GivenOperator<T>& rows, Matrix<const T> theta, Vector<const Index> order, Vector<T> signal, Matrix<T> bands,
           Vector<T> moments, bool wavefront, Index mask, Matrix<T> pairs, Cube<T> windows, Matrix<T> ordered, bool backward) {
            transform_one<T>(operator_of<T>(rows), theta, order, signal, bands, moments, wavefront, mask, pairs, windows, ordered,
                             backward);
        },
        "rows"_a, "theta"_a, "order"_a, "signal"_a, "bands"_a, "moments"_a, "wavefront"_a, "mask"_a, "pairs"_a, "windows"_a,
        "ordered"_a, "backward"_a, Unlocked());
    m.def(
        "transform_columns",
        [](const GivenOperator<T>& rows, Matrix<const T> theta, Vector<const Index> order, Matrix<T> signals, Cube<T> bands,
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
        "multiply",
        [](const GivenOperator<double>& rows, Vector<const double> x, Vector<double> out) {
            return multiply(operator_of<double>(rows), x, out);
        },
        "rows"_a, "x"_a, "out"_a, Unlocked());
    m.def(
        "iterate_powers",
        [](const GivenOperator<double>& rows, Vector<double> x, Vector<const double> least, double factor, Index steps, Index mask,
           Optional<const bool, 1> counted) {
            return iterate_powers(operator_of<double>(rows), x, least, factor, steps, mask, counted);
        },
        "rows"_a, "x"_a, "least"_a, "factor"_a, "steps"_a, "mask"_a, "counted"_a.none(), Unlocked());
}

}  // namespace hushgraph
