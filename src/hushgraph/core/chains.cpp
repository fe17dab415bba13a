// Chains: the fused lasso on a chain, and depth-first orders that turn a graph into a chain
// (`estimators/baselines/chain_fused_lasso.py`).
#include <algorithm>
#include <cmath>
#include <limits>

#include "python.h"
#include "splitmix.h"
#include "threads.h"

namespace hushgraph {
namespace {

// ---- the fused lasso --------------------------------------------------------------------------------------------

// A fused lasso problem: values y, node weights w and edge weights e; absent weights are 1. No edge can carry more than `bound`.
// `center` is subtracted from y before the summation, for accuracy.
struct Chain {
    Vector<const double> y;
    Optional<const double, 1> w, e;
    double penalty, bound, center;
};

template <bool WEIGHTED> double node_weight(const Chain& chain, Index i) { return WEIGHTED ? chain.w[i] : 1.0; }

// Returns penalty e_i, at most `bound`. An edge of weight 0 has no effect even if the penalty is infinite.
template <bool WEIGHTED> double edge_limit(const Chain& chain, Index i) {
    if (!WEIGHTED) return std::min(chain.penalty, chain.bound);
    return chain.e[i] > 0 ? std::min(chain.penalty * chain.e[i], chain.bound) : 0.0;
}

// The knots of the derivative, a piecewise linear function: positions in ascending order, and the increases of the slope and of the
// height at 0. Knots are added and removed at both ends; only few of all knots exist at the same time.
struct Knots {
    explicit Knots(Index room) : positions(room), slopes(room), heights(room) {}

    // Moves the knots first .. last - 1 to the middle of the arrays, which grow if the knots fill more than a quarter. Returns the
    // shift of the knot numbers.
    Index center(Index first, Index last) {
        const Index room = std::max(positions.size(), 4 * (last - first)), shift = (room - (last - first)) / 2 - first;
        Knots moved(room);
        std::copy(positions.data + first, positions.data + last, moved.positions.data + first + shift);
        std::copy(slopes.data + first, slopes.data + last, moved.slopes.data + first + shift);
        std::copy(heights.data + first, heights.data + last, moved.heights.data + first + shift);
        std::swap(*this, moved);
        return shift;
    }

    Owned<double> positions, slopes, heights;
};

// Writes for each node except the last the interval of values for which the next node has the same value; returns the best value of
// the last node.
//
// Knots on the left add slope and knots on the right subtract it, so outside of all knots the slope is the weight of the present
// node. The function is not inlined because compilers then produce a faster loop.
template <bool NODES, bool EDGES>
__attribute__((noinline)) double follow(const Chain& chain, Vector<double> low, Vector<double> high) {
    const Index n = chain.y.size();
    const double center = chain.center, same = edge_limit<false>(chain, 0);
    const double* y = chain.y.data;
    Knots knots(std::min<Index>(2 * n + 2, 1024));
    double *positions = knots.positions.data, *slopes = knots.slopes.data, *heights = knots.heights.data;
    Index left = knots.positions.size() / 2, right = left - 1;
    double previous_limit = 0.0;
    for (Index i = 0; i < n; i++) {
        if (i % STEPS_PER_CHECK == 0) check_signals();
        const double weight = node_weight<NODES>(chain, i), weighted_y = weight * (y[i] - center);
        const double limit = i == n - 1 ? 0.0 : EDGES ? edge_limit<EDGES>(chain, i) : same;
        double slope = weight, height = -weighted_y - previous_limit;
        while (left <= right && slope * positions[left] + height <= -limit) {
            slope += slopes[left];
            height += heights[left];
            left++;
        }
        if (left > right) slope = weight, height = previous_limit - weighted_y;
        const double lowest = (-limit - height) / slope;
        low[i] = lowest;
        if (i == n - 1) break;
        double slope_above = weight, height_above = previous_limit - weighted_y;
        while (right >= left && slope_above * positions[right] + height_above >= limit) {
            slope_above -= slopes[right];
            height_above -= heights[right];
            right--;
        }
        if (right < left) slope_above = slope, height_above = height;
        const double highest = std::max(lowest, (limit - height_above) / slope_above);
        high[i] = highest;
        if (__builtin_expect(left == 0 || right + 1 == knots.positions.size(), 0)) {
            const Index shift = knots.center(left, right + 1);
            left += shift, right += shift;
            positions = knots.positions.data, slopes = knots.slopes.data, heights = knots.heights.data;
        }
        left--, right++, previous_limit = limit;
        positions[left] = lowest, slopes[left] = slope, heights[left] = height + limit;
        positions[right] = highest, slopes[right] = -slope_above, heights[right] = limit - height_above;
    }
    return low[n - 1];
}

// Writes the value of each piece into x: the mean of y, shifted by the pulls of the jumps at both ends. Sums are relative to the
// first value of the piece, so that a large offset costs no digits. Returns the number of pieces; adjacent pieces of equal value
// count once.
template <bool NODES> Index fill_pieces(const Chain& chain, Vector<const double> pull, Vector<double> x) {
    Index first = 0;
    double total = 0.0, total_weight = 0.0, previous_pull = 0.0;
    Index pieces = 1;
    for (Index i = 0; i < chain.y.size(); i++) {
        const double weight = node_weight<NODES>(chain, i);
        total += weight * (chain.y[i] - chain.y[first]);
        total_weight += weight;
        if (!std::isnan(pull[i])) {
            const double value = chain.y[first] + (total + pull[i] - previous_pull) / total_weight;
            pieces += first > 0 && value != x[first - 1];
            std::fill(&x[first], &x[i] + 1, value);
            first = i + 1, total = 0.0, total_weight = 0.0, previous_pull = pull[i];
        }
    }
    return pieces;
}

// Writes the minimizer into x; returns the number of pieces of equal value.
template <bool NODES, bool EDGES> Index minimize(const Chain& chain, Vector<double> x) {
    const Index n = chain.y.size();
    Owned<double> pull(n);  // the upward pull of the jump after each node; NaN if there is no jump
    double last = follow<NODES, EDGES>(chain, x, pull);
    pull[n - 1] = 0.0;
    for (Index i = n - 2; i >= 0; i--) {
        if (i % STEPS_PER_CHECK == 0) check_signals();
        const double low = x[i], high = pull[i];
        if (last > high) {
            last = high;
            pull[i] = edge_limit<EDGES>(chain, i);
        } else if (last < low) {
            last = low;
            pull[i] = -edge_limit<EDGES>(chain, i);
        } else {
            pull[i] = std::numeric_limits<double>::quiet_NaN();
        }
    }
    return fill_pieces<NODES>(chain, pull, x);
}

// Writes the minimizer of any problem into x, also of trivial ones; returns the number of pieces of equal value.
Index solve(const Chain& chain, Vector<double> x) {
    const Index n = chain.y.size();
    if (n == 0) return 0;
    if (n > 1 && chain.penalty != 0.0 && chain.bound != 0.0) {
        if (chain.w) return chain.e ? minimize<true, true>(chain, x) : minimize<true, false>(chain, x);
        return chain.e ? minimize<false, true>(chain, x) : minimize<false, false>(chain, x);
    }
    std::copy(chain.y.begin(), chain.y.end(), x.begin());
    Index pieces = 1;
    for (Index i = 1; i < n; i++) pieces += x[i] != x[i - 1];
    return pieces;
}

// Writes the minimizer for each penalty into a row of `out`.
void solve_chains(Vector<const double> y, Optional<const double, 1> w, Optional<const double, 1> e, Vector<const double> penalties,
                  double bound, double center, Matrix<double> out) {
    parallel_for(penalties.size(), penalties.size() * y.size(),
                 [&](Index p) { solve({y, w, e, penalties[p], bound, center}, out[p]); });
}

// Writes the mean of the minimizers along all orders into `out`, in node order; returns the mean number of pieces.
double average_orders(Vector<const double> y, Matrix<const Index> orders, Optional<const double, 1> w, double penalty, double bound,
                      double center, Vector<double> out) {
    const Index n = y.size();
    Owned<double> ordered_y(n), weights(w ? n : 0), minimizer(n);
    Index pieces = 0;
    std::fill(out.begin(), out.end(), 0.0);
    for (Index k = 0; k < orders.size(); k++) {
        check_signals();
        const Vector<const Index> order = orders[k];
        for (Index i = 0; i < n; i++) ordered_y[i] = y[order[i]];
        Optional<const double, 1> ordered_w;
        if (w) {
            for (Index i = 0; i < n; i++) weights[i] = w[order[i]];
            static_cast<Vector<const double>&>(ordered_w) = weights;
        }
        pieces += solve({ordered_y, ordered_w, {}, penalty, bound, center}, minimizer);
        for (Index i = 0; i < n; i++) out[order[i]] += minimizer[i];
    }
    const double count = static_cast<double>(orders.size());
    if (orders.size() > 1)
        for (double& value : out) value /= count;
    return static_cast<double>(pieces) / count;
}

// Calls `average_orders` as a loop of one step, so that it can check for signals.
double mean_of_chains(Vector<const double> y, Matrix<const Index> orders, Optional<const double, 1> w, double penalty, double bound,
                      double center, Vector<double> out) {
    double pieces = 0.0;
    parallel_for(1, 0, [&](Index) { pieces = average_orders(y, orders, w, penalty, bound, center, out); });
    return pieces;
}

double squared_distance(Vector<const double> x, Vector<const double> y) {
    double sum = 0.0;
    for (Index i = 0; i < x.size(); i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

// Writes the scores (penalties, 3) of the mean over all orders: the squared distance from y, the mean number of pieces, and the
// squared distance from `truth` if it is given.
void score_chains(Vector<const double> y, Matrix<const Index> orders, Optional<const double, 1> w, Optional<const double, 1> truth,
                  Vector<const double> penalties, double bound, double center, Matrix<double> scores) {
    parallel_for(penalties.size(), penalties.size() * y.size(), [&](Index p) {
        Owned<double> x(y.size());
        scores(p, 1) = average_orders(y, orders, w, penalties[p], bound, center, x);
        scores(p, 0) = squared_distance(x, y);
        if (truth) scores(p, 2) = squared_distance(x, truth);
    });
}

// ---- depth-first search -----------------------------------------------------------------------------------------

// Returns the nodes in the order of a depth-first search from the roots. The search tries neighbors in the order of `indices`.
template <typename I> Owned<Index> depth_first(Vector<const I> indptr, Vector<const I> indices, Vector<const Index> roots) {
    const Index n = indptr.size() - 1;
    Owned<Index> order(n);
    Owned<I> stack(n), next_entry(n);
    Owned<bool> met = Owned<bool>::zeros(n);
    std::copy(indptr.begin(), indptr.end() - 1, next_entry.begin());
    Interrupts interrupts;
    Index count = 0;
    for (const Index root : roots) {
        if (met[root]) continue;
        met[root] = true;
        order[count++] = root;
        stack[0] = static_cast<I>(root);
        for (Index depth = 1; depth > 0;) {
            interrupts.advance(1);
            const I node = stack[depth - 1], end = indptr[node + 1];
            I next = next_entry[node];
            while (next < end && met[indices[next]]) next++;
            next_entry[node] = next;
            if (next == end) {
                depth--;
                continue;
            }
            const I child = indices[next];
            met[child] = true;
            order[count++] = child;
            stack[depth++] = child;
        }
    }
    return order;
}

// Shuffles values[indptr[i]] .. values[indptr[i + 1] - 1] for each i (Fisher-Yates with SplitMix64).
template <typename I> void shuffle_stretches(Vector<const I> indptr, Vector<I> values, std::uint64_t seed) {
    Interrupts interrupts;
    std::uint64_t state = seed;
    for (Index row = 0; row + 1 < indptr.size(); row++) {
        interrupts.check_at(row);
        I* const stretch = values.data + indptr[row];
        for (Index length = indptr[row + 1] - indptr[row]; length > 1; length--) {
            state += SPLITMIX_STEP;
            const std::uint64_t draw = (splitmix_output(state) >> 32) * static_cast<std::uint64_t>(length) >> 32;
            std::swap(stretch[length - 1], stretch[draw]);
        }
    }
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("depth_first", &depth_first<I>, "indptr"_a, "indices"_a, "roots"_a, Unlocked());
    m.def("shuffle_stretches", &shuffle_stretches<I>, "indptr"_a, "values"_a, "seed"_a, Unlocked());
}

}  // namespace

void bind_chains(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
    m.def("solve_chains", &solve_chains, "y"_a, "w"_a.none(), "e"_a.none(), "penalties"_a, "bound"_a, "center"_a, "out"_a,
          Unlocked());
    m.def("mean_of_chains", &mean_of_chains, "y"_a, "orders"_a, "w"_a.none(), "penalty"_a, "bound"_a, "center"_a, "out"_a,
          Unlocked());
    m.def("score_chains", &score_chains, "y"_a, "orders"_a, "w"_a.none(), "truth"_a.none(), "penalties"_a, "bound"_a, "center"_a,
          "scores"_a, Unlocked());
}

}  // namespace hushgraph
