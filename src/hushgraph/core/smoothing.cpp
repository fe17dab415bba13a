// Noise levels of wavelet coefficients: a regression on the degrees around each node (`wavelets/weight_smoothing.py`), and sums
// over random probes of filters (`filters.py`).
#include <algorithm>
#include <cmath>
#include <limits>

#include "lanes.h"
#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

// The array `around` of `weight_smoothing.degree_features` has one row for each quantity. The columns of the regression are
// N_DERIVED columns computed from all rows, and then the rows of `around` from ISOLATED on.
constexpr Index NOISE = 4, ISOLATED = 5;  // rows: the noise, and the noise of nodes without neighbors
constexpr Index N_DERIVED = 11;
constexpr Index SLICE = 512;  // nodes whose columns stay in cache

// A sum of whole high units and low units.
struct Units {
    double high, low;
};

#define HUSHGRAPH_LOOPS "smoothing.inc"
#include "both_levels.h"

// Computes target_i = inverse_i sum_k weight_k source_k over the neighbors k of i.
template <typename I> void average_neighbors(Vector<const I> indptr, Vector<const I> indices, Vector<const double> weights,
                                             Vector<const double> inverse, Vector<const double> source, Vector<double> target) {
    parallel_ranges(target.size(), target.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            double sum = 0.0;
            for (I k = indptr[i]; k < indptr[i + 1]; k++) sum += weights[k] * source[indices[k]];
            target[i] = sum * inverse[i];
        }
    });
}

// Raises parts (blocks, rows) to the largest absolute values in each block. The rows are the columns of the regression, the
// weights, 1, and the noise.
void largest_features(Matrix<const double> around, Matrix<const double> weights, Matrix<double> parts, Index block) {
    const Index n = weights.shape[1], n_columns = N_DERIVED + around.size() - ISOLATED, constant = n_columns + weights.size();
    parallel_for(parts.size(), n * parts.shape[1], [&](Index b) {
        Owned<double, 2> derived(N_DERIVED, SLICE);
        const Vector<double> tops = parts[b];
        const auto raise = [&](Index row, const double* values, Index size) {
            tops[row] = std::max(tops[row], HUSHGRAPH_LEVEL(largest_size)(values, size));
        };
        for (Index lo = b * block; lo < std::min((b + 1) * block, n); lo += SLICE) {
            const Index size = std::min({SLICE, (b + 1) * block - lo, n - lo});
            HUSHGRAPH_LEVEL(put_features)(around, lo, size, derived);
            for (Index k = 0; k < N_DERIVED; k++) raise(k, &derived(k, 0), size);
            for (Index k = ISOLATED; k < around.size(); k++) raise(N_DERIVED + k - ISOLATED, &around(k, lo), size);
            for (Index k = 0; k < weights.size(); k++) raise(n_columns + k, &weights(k, lo), size);
            tops[constant] = std::max(tops[constant], 1.0);
            raise(constant + 1, &around(NOISE, lo), size);
        }
    });
}

// Returns a whole number of units as an integer; infinity and NaN become the smallest integer.
Index whole_number(double units) { return std::isfinite(units) ? static_cast<Index>(units) : std::numeric_limits<Index>::min(); }

// Writes inner products into parts (2, blocks, rows, rows), as whole numbers of high and of low units: columns with columns up to
// the diagonal, columns with weights, and 1 with weights and noise. All absolute values are below the powers, so the sums are
// exact.
void count_products(Matrix<const double> around, Matrix<const double> weights, Vector<const double> powers, Array<Index, 4> parts,
                    Index block) {
    const Index n = weights.shape[1], n_rows = powers.size(), n_scales = weights.size();
    const Index n_columns = N_DERIVED + around.size() - ISOLATED, constant = n_columns + n_scales;
    parallel_for(parts.shape[1], n * n_rows, [&](Index b) {
        Owned<double, 2> rows(n_rows, SLICE);
        Owned<Units, 2> sums = Owned<Units, 2>::filled({0.0, 0.0}, n_rows, n_rows);
        const auto put = [&](Index row, const double* values, Index size) {
            HUSHGRAPH_LEVEL(multiply)(values, 1 / powers[row], size, &rows(row, 0));
        };
        for (Index lo = b * block; lo < std::min((b + 1) * block, n); lo += SLICE) {
            const Index size = std::min({SLICE, (b + 1) * block - lo, n - lo});
            HUSHGRAPH_LEVEL(put_features)(around, lo, size, rows);
            for (Index k = 0; k < N_DERIVED; k++)
                for (Index i = 0; i < size; i++) rows(k, i) *= 1 / powers[k];
            for (Index k = ISOLATED; k < around.size(); k++) put(N_DERIVED + k - ISOLATED, &around(k, lo), size);
            for (Index k = 0; k < n_scales; k++) put(n_columns + k, &weights(k, lo), size);
            std::fill(&rows(constant, 0), &rows(constant, 0) + size, 1 / powers[constant]);
            put(constant + 1, &around(NOISE, lo), size);
            HUSHGRAPH_LEVEL(add_dots)(rows, n_columns, n_scales, size, sums);
        }
        for (Index k = 0; k < n_rows; k++) {
            for (Index m = 0; m < n_rows; m++) {
                const bool is_weight = m >= n_columns && m < constant;
                const bool is_needed = k < n_columns ? m <= k || is_weight : k == constant && m >= n_columns;
                if (!is_needed) continue;
                parts[0][b](k, m) = whole_number(sums(k, m).high * 1073741824.0);          // 2^30
                parts[1][b](k, m) = whole_number(sums(k, m).low * 1152921504606846976.0);  // 2^60
            }
        }
    });
}

// Writes the fitted value of each node into out (scales, n). The value is limited to a factor 4 around `usual` times the noise of
// the node.
void fit_weights(Matrix<const double> around, Matrix<const double> coefficients, Vector<const double> usual, Matrix<double> out) {
    const Index n = out.shape[1], n_columns = coefficients.size();
    const auto fit = [&](Index lo, Index hi) {
        const Index size = hi - lo;
        Owned<double, 2> derived(N_DERIVED, SLICE);
        Owned<const double*> columns(n_columns);
        Owned<double> factors(n_columns);
        HUSHGRAPH_LEVEL(put_features)(around, lo, size, derived);
        for (Index c = 0; c < n_columns; c++) columns[c] = c < N_DERIVED ? &derived(c, 0) : &around(ISOLATED + c - N_DERIVED, lo);
        for (Index k = 0; k < out.size(); k++) {
            for (Index c = 0; c < n_columns; c++) factors[c] = coefficients(c, k);
            HUSHGRAPH_LEVEL(put_fitted)(columns.data, factors.data, n_columns, usual[k], &around(NOISE, lo), size, &out(k, lo));
        }
    };
    parallel_ranges(n, n * n_columns, fit, SLICE);
}

// Adds `share` times squares and products of each probe eps to sums (2 n_rows, n): squares (rho_j eps)^2 and (eps - P eps)^2, then
// products (P eps) (rho_j eps) and eps (eps - P eps).
//
// rows (probes, n_rows, n) holds rho_j eps, and from row n_scales on P eps. The products use the P of row `pilot`. `fresh`: the
// sums start at 0.
void add_probes(Matrix<const double> eps, Cube<const double> rows, Index n_scales, Index pilot, double share, bool fresh,
                Matrix<double> sums) {
    const Index n = eps.shape[1], n_rows = rows.shape[1];
    const auto add = [&](Index lo, Index hi) {
        const Index size = hi - lo;
        for (Index j = 0; j < n_rows; j++) {
            double *squares = &sums(j, lo), *products = &sums(n_rows + j, lo);
            if (j < n_scales)
                HUSHGRAPH_LEVEL(add_probe_row<false>)(eps, rows, j, pilot, share, fresh, lo, size, squares, products);
            else
                HUSHGRAPH_LEVEL(add_probe_row<true>)(eps, rows, j, pilot, share, fresh, lo, size, squares, products);
        }
    };
    parallel_ranges(n, n * n_rows * eps.size(), add, SLICE);
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("average_neighbors", &average_neighbors<I>, "indptr"_a, "indices"_a, "weights"_a, "inverse"_a, "source"_a, "target"_a,
          Unlocked());
}

}  // namespace

void bind_smoothing(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
    m.def("largest_features", &largest_features, "around"_a, "weights"_a, "parts"_a, "block"_a, Unlocked());
    m.def("count_products", &count_products, "around"_a, "weights"_a, "powers"_a, "parts"_a, "block"_a, Unlocked());
    m.def("fit_weights", &fit_weights, "around"_a, "coefficients"_a, "usual"_a, "out"_a, Unlocked());
    m.def("add_probes", &add_probes, "eps"_a, "rows"_a, "n_scales"_a, "pilot"_a, "share"_a, "fresh"_a, "sums"_a, Unlocked());
}

}  // namespace hushgraph
