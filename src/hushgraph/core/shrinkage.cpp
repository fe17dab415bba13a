// Shrinkage of coefficients at several thresholds, with a gate or without (`estimators/let/gating.py`), and means of nodes
// (`candidates.py`).
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "levels.h"
#include "python.h"
#include "sums.h"
#include "threads.h"

namespace hushgraph {
namespace {

#define HUSHGRAPH_LOOPS "shrinkage.inc"
#include "both_levels.h"

// Writes the rows gate h_t(w_j) into `shrunken` (thresholds, k, n), and the sums of their divergences over blocks of nodes into
// `parts` (blocks, thresholds, k). Without a gate the rows are h_t(w_j). A gate needs its moves (`gate_moves`).
void shrink_rows(Matrix<const double> w, Matrix<const double> scale, Vector<const double> thresholds, Matrix<const double> weights,
                 Optional<const double, 1> gate, Optional<const double, 2> moves, Cube<double> shrunken, Cube<double> parts,
                 Index block) {
    const Index n = w.shape[1];
    if (gate && !moves) throw std::invalid_argument("a gate needs its moves");
    const Owned<double> ones = Owned<double>::filled(1.0, block);
    parallel_for(parts.size(), w.size() * n, [&](Index b) {
        const Index lo = b * block, count = std::min(block, n - lo);
        Owned<double> terms(count);
        for (Index j = 0; j < w.size(); j++) {
            for (Index k = 0; k < thresholds.size(); k++) {
                const double *block_gate = gate ? &gate[lo] : nullptr, *block_moves = gate ? &moves(j, lo) : nullptr;
                parts(b, k, j) = HUSHGRAPH_LEVEL(shrink)(&w(j, lo), &scale(j, lo), thresholds[k], &weights(j, lo), block_gate,
                                                         block_moves, ones.data, count, &shrunken(k, j, lo), terms.data);
            }
        }
    });
}

// Adds the derivative of sum_t a_tj gate h_t(w_j) along the probes to `out` (probes, k, n), or its sum over j to `out` (probes, 1,
// n). `rows` (probes, k, n) holds the w of the probes. The arguments after `out` belong to the gate; all are given, or none.
void add_moved(Matrix<const double> w, Matrix<const double> scale, Vector<const double> thresholds, Matrix<const double> a,
               Cube<const double> rows, Cube<double> out, Optional<const double, 1> gate, Optional<const double, 1> z,
               Optional<const double, 1> slope, Optional<const double, 2> smooth, Optional<const double, 1> shift,
               Optional<const double, 1> stretch) {
    parallel_ranges(w.shape[1], w.size() * w.shape[1], [&](Index lo, Index hi) {
        const Index count = hi - lo;
        Owned<double> values(count), slopes(count);
        for (Index j = 0; j < w.size(); j++) {
            bool is_needed = false;
            for (Index k = 0; k < a.size(); k++) is_needed |= a(k, j) != 0;
            if (!is_needed) continue;
            std::fill(values.begin(), values.end(), 0.0);
            std::fill(slopes.begin(), slopes.end(), 0.0);
            for (Index k = 0; k < thresholds.size(); k++)
                if (a(k, j) != 0) HUSHGRAPH_LEVEL(add_shrunken)
            (&w(j, lo), &scale(j, lo), thresholds[k], a(k, j), count, values.data, slopes.data);
            if (gate)
                for (Index i = 0; i < count; i++) slopes[i] *= gate[lo + i];
            for (Index p = 0; p < rows.size(); p++) {
                const double* row = &rows(p, j, lo);
                double* target = &out(p, std::min(j, out.shape[1] - 1), lo);
                if (gate) HUSHGRAPH_LEVEL(add_gated)
                (slopes.data, row, values.data, &z[lo], &slope[lo], &smooth(p, lo), shift[p], stretch[p], count, target);
                else HUSHGRAPH_LEVEL(add_slopes)(slopes.data, row, count, target);
            }
        }
    });
}

// Writes the factors of h_t in the divergence of gated rows: out_j = slope (cross_j - mean over probes of (shift + stretch z)
// rho_j).
void gate_moves(Matrix<const double> cross, Cube<const double> rho, Vector<const double> z, Vector<const double> slope,
                Vector<const double> shift, Vector<const double> stretch, Matrix<double> out) {
    const double n_probes = static_cast<double>(rho.size());
    parallel_ranges(z.size(), out.size() * z.size(), [&](Index lo, Index hi) {
        Owned<double> totals(hi - lo);
        for (Index j = 0; j < out.size(); j++) {
            std::fill(totals.begin(), totals.end(), 0.0);
            for (Index p = 0; p < rho.size(); p++)
                HUSHGRAPH_LEVEL(add_weighted)(&z[lo], &rho(p, j, lo), shift[p], stretch[p], hi - lo, totals.data);
            for (Index i = lo; i < hi; i++) out(j, i) = slope[i] * (cross(j, i) - totals[i - lo] / n_probes);
        }
    });
}

// Writes the mean of each node i into out(column[i], i).
void spread_means(Vector<const Index> column, Vector<const double> mean, Matrix<double> out) {
    parallel_ranges(column.size(), column.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) out(column[i], i) = mean[i];
    });
}

}  // namespace

void bind_shrinkage(nb::module_& m) {
    m.def("shrink_rows", &shrink_rows, "w"_a, "scale"_a, "thresholds"_a, "weights"_a, "gate"_a.none(), "moves"_a.none(),
          "shrunken"_a, "parts"_a, "block"_a, Unlocked());
    m.def("add_moved", &add_moved, "w"_a, "scale"_a, "thresholds"_a, "a"_a, "rows"_a, "out"_a, "gate"_a.none() = nb::none(),
          "z"_a.none() = nb::none(), "slope"_a.none() = nb::none(), "smooth"_a.none() = nb::none(), "shift"_a.none() = nb::none(),
          "stretch"_a.none() = nb::none(), Unlocked());
    m.def("gate_moves", &gate_moves, "cross"_a, "rho"_a, "z"_a, "slope"_a, "shift"_a, "stretch"_a, "out"_a, Unlocked());
    m.def("spread_means", &spread_means, "column"_a, "mean"_a, "out"_a, Unlocked());
}

}  // namespace hushgraph
