// Steps of iterations that bound the largest eigenvalue of a Laplacian (`spectrum.py`).
#include "python.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "threads.h"

namespace hushgraph {
namespace {

// Replaces v_previous by w - alpha v - beta v_previous; returns the squared norm of each block of the result.
Owned<double> next_lanczos_vector(Vector<const Index> blocks, Vector<const double> w, Vector<const double> v,
                                  Vector<double> v_previous, double alpha, double beta) {
    Owned<double> norms(blocks.size() - 1);
    parallel_for(norms.size(), w.size(), [&](Index b) {
        double norm = 0.0;
        for (Index i = blocks[b]; i < blocks[b + 1]; i++) {
            const double value = w[i] - alpha * v[i] - beta * v_previous[i];
            v_previous[i] = value;
            norm += value * value;
        }
        norms[b] = norm;
    });
    return norms;
}

// Writes for each entry (i, j) the sum over the useful triangles (i, j, k), in ascending k, of 1 or of the smallest share of the
// entries (i, j), (i, k) and (j, k). Shares are symmetric, and so is `out`. Returns whether there is a useful triangle.
//
// A triangle is useful if it improves the bound: none of its three x is larger than the sum of the other two. Triangles with a row
// longer than `longest_row` are left out, for speed.
template <typename I> bool sum_triangles(Vector<const I> indptr, Vector<const I> indices, Vector<const double> x,
                                         Optional<const double, 1> shares, Vector<double> out, Index longest_row) {
    const auto is_short = [&](Index i) { return indptr[i + 1] - indptr[i] <= longest_row; };
    std::atomic<bool> has_triangle{false};
    parallel_ranges(indptr.size() - 1, indices.size(), [&](Index lo, Index hi) {
        bool has_local_triangle = false;
        for (Index i = lo; i < hi; i++) {
            const bool is_row_short = is_short(i);
            for (I e = indptr[i]; e < indptr[i + 1]; e++) {
                const I j = indices[e];
                double sum = 0.0;
                if (is_row_short && is_short(j)) {
                    I p = indptr[i], q = indptr[j];
                    while (p < indptr[i + 1] && q < indptr[j + 1]) {
                        const I k = indices[p], m = indices[q];
                        if (k == m && x[i] <= x[j] + x[k] && x[j] <= x[i] + x[k] && x[k] <= x[i] + x[j] && is_short(k)) {
                            sum += shares ? std::min(std::min(shares[e], shares[p]), shares[q]) : 1.0;
                            has_local_triangle = true;
                        }
                        p += k <= m;
                        q += m <= k;
                    }
                }
                out[e] = sum;
            }
        }
        if (has_local_triangle) has_triangle = true;
    });
    return has_triangle;
}

// Returns the weights without the part that the triangles take, as the values of a layout, and the diagonal plus the part that the
// triangles add to it.
template <typename I> std::tuple<Owned<double>, Owned<double>> take_out(Vector<const I> indptr, Vector<const double> weights,
                                                                        Vector<const double> taken, Vector<const Index> order,
                                                                        Matrix<const Index> runs, Vector<const double> diagonal,
                                                                        double slack) {
    Owned<double> values(taken.size()), raised(order.size());
    constexpr Index runs_per_task = 64;
    const auto fill = [&](Index first_run, Index last_run) {
        for (Index r = first_run; r < last_run; r++) {
            const Index first = runs(r, 0), length = runs(r, 2), place = runs(r, 3);
            for (Index i = first; i < runs(r, 1); i++) {
                double sum = 0.0;
                for (Index p = 0; p < length; p++) {
                    const Index e = indptr[order[i]] + p;
                    const double weight = weights[std::min(e, weights.size() - 1)];
                    sum += taken[e];
                    values[place + (i - first) * length + p] = std::abs(weight - taken[e]) + (taken[e] > 0 ? slack * weight : 0.0);
                }
                raised[i] = diagonal[i] + 0.5 * sum;  // each triangle belongs to two entries of the row
            }
        }
    };
    parallel_ranges(runs.size(), taken.size(), fill, runs_per_task);
    return {std::move(values), std::move(raised)};
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("sum_triangles", &sum_triangles<I>, "indptr"_a, "indices"_a, "x"_a, "shares"_a.none(), "out"_a, "longest_row"_a,
          Unlocked());
    m.def("take_out", &take_out<I>, "indptr"_a, "weights"_a, "taken"_a, "order"_a, "runs"_a, "diagonal"_a, "slack"_a, Unlocked());
}

}  // namespace

void bind_spectrum(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
    m.def("next_lanczos_vector", &next_lanczos_vector, "blocks"_a, "w"_a, "v"_a, "v_previous"_a, "alpha"_a, "beta"_a, Unlocked());
}

}  // namespace hushgraph
