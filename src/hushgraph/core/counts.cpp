// Likelihoods of nodes and prior distributions, on a grid of values (`estimators/counts/empirical_bayes.py`).
#include <algorithm>
#include <cmath>

#include "lanes.h"
#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index RANGE = 256;  // nodes that a thread processes at a time
constexpr Index GROUP = 8;    // nodes whose sums are computed together, so that no addition waits for the one before

// Node i has the likelihood values[starts[i]] .. values[starts[i + 1] - 1] at the grid points first[i], first[i] + 1, ..., and the
// prior (1 - share[i]) table[low[i]] + share[i] table[low[i] + 1].
struct Nodes {
    Vector<const double> values;
    Vector<const Index> starts, first;
    Matrix<const double> table;
    Vector<const Index> low;
    Vector<const double> share;

    Index count() const { return low.size(); }
    Index size(Index i) const { return starts[i + 1] - starts[i]; }
    const double* likelihood(Index i) const { return values.data + starts[i]; }
    const double* lower(Index i) const { return &table(low[i], first[i]); }
    const double* upper(Index i) const { return &table(low[i] + 1, first[i]); }
};

#define HUSHGRAPH_LOOPS "counts.inc"
#include "both_levels.h"

// Returns exp(-(y - f)^2 / 2 sigma^2), divided by its largest value for f >= 0, at the grid points f of each node.
Owned<double> likelihood_values(Vector<const double> y, Vector<const double> sigma, Vector<const double> grid,
                                Vector<const Index> first, Vector<const Index> starts) {
    Owned<double> values(starts[starts.size() - 1]);
    const auto fill = [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            const double below = y[i] - std::max(y[i], 0.0), best = below * below, scale = 2 * (sigma[i] * sigma[i]);
            for (Index p = starts[i]; p < starts[i + 1]; p++) {
                const double difference = y[i] - grid[first[i] + p - starts[i]];
                values[p] = std::exp((best - difference * difference) / scale);
            }
        }
    };
    parallel_ranges(y.size(), values.size(), fill, RANGE);
    return values;
}

// Returns the sum over the grid of likelihood times prior, for each node.
Owned<double> sum_evidence(Vector<const double> values, Vector<const Index> starts, Vector<const Index> first,
                           Matrix<const double> table, Vector<const Index> low, Vector<const double> share) {
    const Nodes nodes{values, starts, first, table, low, share};
    Owned<double> out(nodes.count());
    const auto fill = [&](Index lo, Index hi) {
        Owned<double, 2> masses(GROUP, table.shape[1]);
        HUSHGRAPH_LEVEL(put_evidence)(nodes, lo, hi, masses, out);
    };
    parallel_ranges(nodes.count(), values.size(), fill, RANGE);
    return out;
}

// Returns the sums over the grid of likelihood times prior times 1, f and f^2, (3, n).
Owned<double, 2> sum_moments(Vector<const double> values, Vector<const Index> starts, Vector<const Index> first,
                             Vector<const double> grid, Matrix<const double> table, Vector<const Index> low,
                             Vector<const double> share) {
    const Nodes nodes{values, starts, first, table, low, share};
    Owned<double, 2> out(3, nodes.count());
    const auto fill = [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            const double *likelihood = nodes.likelihood(i), *lower = nodes.lower(i), *upper = nodes.upper(i), *f = &grid[first[i]];
            const double w = share[i];
            double one = 0.0, mean = 0.0, square = 0.0;
            for (Index p = 0; p < nodes.size(i); p++) {
                const double mass = likelihood[p] * ((1 - w) * lower[p] + w * upper[p]);
                one += mass;
                mean += mass * f[p];
                square += mass * (f[p] * f[p]);
            }
            out(0, i) = one;
            out(1, i) = mean;
            out(2, i) = square;
        }
    };
    parallel_ranges(nodes.count(), values.size(), fill, RANGE);
    return out;
}

// Returns the expected number of nodes at each point of each distribution, divided by the mass of the point. Nodes that are
// `plain`, and nodes whose evidence is at most `least`, are left out.
Owned<double, 2> count_expected(Vector<const double> values, Vector<const Index> starts, Vector<const Index> first,
                                Matrix<const double> table, Vector<const Index> low, Vector<const double> share,
                                Vector<const bool> plain, double least) {
    Owned<double, 2> counts = Owned<double, 2>::zeros(table.shape[0], table.shape[1]);
    HUSHGRAPH_LEVEL(add_expected)({values, starts, first, table, low, share}, plain, least, counts);
    return counts;
}

}  // namespace

void bind_counts(nb::module_& m) {
    m.def("likelihood_values", &likelihood_values, "y"_a, "sigma"_a, "grid"_a, "first"_a, "starts"_a, Unlocked());
    m.def("sum_evidence", &sum_evidence, "values"_a, "starts"_a, "first"_a, "table"_a, "low"_a, "share"_a, Unlocked());
    m.def("sum_moments", &sum_moments, "values"_a, "starts"_a, "first"_a, "grid"_a, "table"_a, "low"_a, "share"_a, Unlocked());
    m.def("count_expected", &count_expected, "values"_a, "starts"_a, "first"_a, "table"_a, "low"_a, "share"_a, "plain"_a, "least"_a,
          Unlocked());
}

}  // namespace hushgraph
