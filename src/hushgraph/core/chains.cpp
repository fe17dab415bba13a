// Chains: the fused lasso along one, and depth-first orders that turn a graph into one (`chains.py`).
#include <algorithm>
#include <cmath>
#include <limits>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index STEPS = 65536;  // of a loop between two looks for signals

// ---- the fused lasso --------------------------------------------------------------------------------------------

// A problem: values y with weights w, or 1 each; edges of weights e, or 1 each. `bound` is what no edge can ever carry, and
// `center` what is taken from y before sums are.
struct Chain {
    Vector<const double> y;
    Optional<const double, 1> w, e;
    double penalty, bound, center;
};

template <bool WEIGHTED> double node_weight(const Chain& chain, Index i) { return WEIGHTED ? chain.w[i] : 1.0; }

// penalty e_i, but no more than can matter; an edge of weight 0 has no effect even at an infinite penalty.
template <bool WEIGHTED> double edge_limit(const Chain& chain, Index i) {
    if (!WEIGHTED) return std::min(chain.penalty, chain.bound);
    return chain.e[i] > 0 ? std::min(chain.penalty * chain.e[i], chain.bound) : 0.0;
}

// Where the derivative bends, and by how much its slope and its height at 0 grow there, by ascending place. Knots come and go at
// both ends; few of all that ever were are there at a time.
struct Knots {
    explicit Knots(Index room) : places(room), slopes(room), heights(room) {}

    // Moves knots first .. last - 1 to the middle, of more room if they fill half of it; returns by how much their numbers grow.
    Index center(Index first, Index last) {
        const Index room = std::max(places.size(), 4 * (last - first)), shift = (room - (last - first)) / 2 - first;
        Knots moved(room);
        std::copy(places.data + first, places.data + last, moved.places.data + first + shift);
        std::copy(slopes.data + first, slopes.data + last, moved.slopes.data + first + shift);
        std::copy(heights.data + first, heights.data + last, moved.heights.data + first + shift);
        std::swap(*this, moved);
        return shift;
    }

    Owned<double> places, slopes, heights;
};

// For each node but the last the values between which it equals its successor; returns the best value of the last.
//
// Left knots add slope and right ones take it away again, so beyond all of them only the present node's own slope is left.
// (Compilers make a faster loop of it where it is a function of its own.)
template <bool NODES, bool EDGES>
__attribute__((noinline)) double follow(const Chain& chain, Vector<double> low, Vector<double> high) {
    const Index n = chain.y.size();
    const double center = chain.center, same = edge_limit<false>(chain, 0);
    const double* y = chain.y.data;
    Knots knots(std::min<Index>(2 * n + 2, 1024));
    double *places = knots.places.data, *slopes = knots.slopes.data, *heights = knots.heights.data;
    Index left = knots.places.size() / 2, right = left - 1;
    double before = 0.0;
    for (Index i = 0; i < n; i++) {
        if (i % STEPS == 0) look_for_signals();
        const double own = node_weight<NODES>(chain, i), at = own * (y[i] - center);
        const double limit = i == n - 1 ? 0.0 : EDGES ? edge_limit<EDGES>(chain, i) : same;
        double slope = own, height = -at - before;
        while (left <= right && slope * places[left] + height <= -limit) {
            slope += slopes[left];
            height += heights[left];
            left++;
        }
        if (left > right) slope = own, height = before - at;
        const double lowest = (-limit - height) / slope;
        low[i] = lowest;
        if (i == n - 1) break;
        double slope_above = own, height_above = before - at;
        while (right >= left && slope_above * places[right] + height_above >= limit) {
            slope_above -= slopes[right];
            height_above -= heights[right];
            right--;
        }
        if (right < left) slope_above = slope, height_above = height;
        const double highest = std::max(lowest, (limit - height_above) / slope_above);
        high[i] = highest;
        if (__builtin_expect(left == 0 || right + 1 == knots.places.size(), 0)) {
            const Index shift = knots.center(left, right + 1);
            left += shift, right += shift;
            places = knots.places.data, slopes = knots.slopes.data, heights = knots.heights.data;
        }
        left--, right++, before = limit;
        places[left] = lowest, slopes[left] = slope, heights[left] = height + limit;
        places[right] = highest, slopes[right] = -slope_above, heights[right] = limit - height_above;
    }
    return low[n - 1];
}

// Each piece's mean plus what the jumps at its ends pull; summed from its first value, so that nothing far away costs digits.
// Returns how many pieces have another value than the one before.
template <bool NODES> Index fill_pieces(const Chain& chain, Vector<const double> pull, Vector<double> x) {
    Index first = 0;
    double total = 0.0, weight = 0.0, before = 0.0;
    Index pieces = 1;
    for (Index i = 0; i < chain.y.size(); i++) {
        const double own = node_weight<NODES>(chain, i);
        total += own * (chain.y[i] - chain.y[first]);
        weight += own;
        if (!std::isnan(pull[i])) {
            const double value = chain.y[first] + (total + pull[i] - before) / weight;
            pieces += first > 0 && value != x[first - 1];
            std::fill(&x[first], &x[i] + 1, value);
            first = i + 1, total = 0.0, weight = 0.0, before = pull[i];
        }
    }
    return pieces;
}

// Writes the minimizer into x; returns the number of pieces of equal value.
template <bool NODES, bool EDGES> Index minimize(const Chain& chain, Vector<double> x) {
    const Index n = chain.y.size();
    Owned<double> pull(n);  // how far the jump after a node pulls it up; NaN where there is none
    double last = follow<NODES, EDGES>(chain, x, pull);
    pull[n - 1] = 0.0;
    for (Index i = n - 2; i >= 0; i--) {
        if (i % STEPS == 0) look_for_signals();
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

// The same for any problem.
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

// The minimizer for each penalty, a row of `out` each.
void solve_chains(Vector<const double> y, Optional<const double, 1> w, Optional<const double, 1> e, Vector<const double> penalties,
                  double bound, double center, Matrix<double> out) {
    parallel_for(penalties.size(), penalties.size() * y.size(),
                 [&](Index p) { solve({y, w, e, penalties[p], bound, center}, out[p]); });
}

// The mean over the orders of the minimizers along each, in node order, into `out`; returns the mean number of pieces.
double average_orders(Vector<const double> y, Matrix<const Index> orders, Optional<const double, 1> w, double penalty, double bound,
                      double center, Vector<double> out) {
    const Index n = y.size();
    Owned<double> ordered(n), weights(w ? n : 0), chain(n);
    Index pieces = 0;
    std::fill(out.begin(), out.end(), 0.0);
    for (Index k = 0; k < orders.size(); k++) {
        look_for_signals();
        const Vector<const Index> order = orders[k];
        for (Index i = 0; i < n; i++) ordered[i] = y[order[i]];
        Optional<const double, 1> along;
        if (w) {
            for (Index i = 0; i < n; i++) weights[i] = w[order[i]];
            static_cast<Vector<const double>&>(along) = weights;
        }
        pieces += solve({ordered, along, {}, penalty, bound, center}, chain);
        for (Index i = 0; i < n; i++) out[order[i]] += chain[i];
    }
    const double count = static_cast<double>(orders.size());
    if (orders.size() > 1)
        for (double& value : out) value /= count;
    return static_cast<double>(pieces) / count;
}

// The same; the only loop on this thread.
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

// scores (penalties, 3): the squared distance of the mean over the orders from y, its mean number of pieces, and the squared
// distance from `truth` if there is one.
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

// Nodes in the order in which a depth-first search from the roots first meets them; neighbors are tried in the order of `indices`.
template <typename I> Owned<Index> depth_first(Vector<const I> indptr, Vector<const I> indices, Vector<const Index> roots) {
    const Index n = indptr.size() - 1;
    Owned<Index> order(n);
    Owned<I> stack(n), ahead(n);
    Owned<bool> met = Owned<bool>::zeros(n);
    std::copy(indptr.begin(), indptr.end() - 1, ahead.begin());
    Interrupts interrupts;
    Index count = 0, steps = 0;
    for (const Index root : roots) {
        if (met[root]) continue;
        met[root] = true;
        order[count++] = root;
        stack[0] = static_cast<I>(root);
        for (Index depth = 1; depth > 0; steps++) {
            if (steps % STEPS == 0) interrupts.look();
            const I node = stack[depth - 1], end = indptr[node + 1];
            I next = ahead[node];
            while (next < end && met[indices[next]]) next++;
            ahead[node] = next;
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

// Puts values[indptr[i]] .. values[indptr[i + 1] - 1] into random order, for each i (Fisher-Yates over SplitMix64).
template <typename I> void shuffle_stretches(Vector<const I> indptr, Vector<I> values, std::uint64_t seed) {
    Interrupts interrupts;
    std::uint64_t state = seed;
    for (Index row = 0; row + 1 < indptr.size(); row++) {
        if (row % STEPS == 0) interrupts.look();
        I* const stretch = values.data + indptr[row];
        for (Index length = indptr[row + 1] - indptr[row]; length > 1; length--) {
            state += 0x9E3779B97F4A7C15;
            std::uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
            const std::uint64_t draw = ((z ^ (z >> 31)) >> 32) * static_cast<std::uint64_t>(length) >> 32;
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
