// Sums whose bits do not depend on the number of threads: fixed blocks of nodes, each summed in a fixed order. `sums.py` combines
// the blocks pairwise.
#include "python.h"

#include "sums.h"

#include <algorithm>

#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index SLICE = 512;  // nodes whose rows stay in cache

struct FourDots {
    double xy, xw, zy, zw;
};

// Returns x'y, x'w, z'y and z'w.
FourDots four_dots(const double* x, const double* z, const double* y, const double* w, Index size) {
    const Index wide = size / WIDTH;
    FourDots sums = {0.0, 0.0, 0.0, 0.0};
    if (wide > 0) {
        Lanes<double, 4> e = load<4>(x, 0), f = load<4>(z, 0), g = load<4>(y, 0), h = load<4>(w, 0);
        Lanes<double, 4> a = e * g, b = e * h, c = f * g, d = f * h;
        for (Index i = 1; i < wide; i++) {
            e = load<4>(x, i), f = load<4>(z, i), g = load<4>(y, i), h = load<4>(w, i);
            a = a + e * g, b = b + e * h, c = c + f * g, d = d + f * h;
        }
        sums = {total(a), total(b), total(c), total(d)};
    }
    for (Index i = wide * WIDTH; i < size; i++) {
        sums.xy += x[i] * y[i], sums.xw += x[i] * w[i];
        sums.zy += z[i] * y[i], sums.zw += z[i] * w[i];
    }
    return sums;
}

// Adds the inner products of the rows of a and b over the nodes lo .. hi - 1. `same`: a and b are equal, and only products up to
// the diagonal are needed. The rows are processed in pairs, a slice at a time, which stays in cache.
void add_products(Matrix<const double> a, Matrix<const double> b, bool same, Index lo, Index hi, Matrix<double> out) {
    for (Index start = lo; start < hi; start += SLICE) {
        const Index size = std::min(SLICE, hi - start);
        for (Index i = 0; i < a.size(); i += 2) {
            const Index columns = same ? std::min(i + 2, b.size()) : b.size();
            for (Index j = 0; j < columns; j += 2) {
                const Index k = std::min(i + 1, a.size() - 1), m = std::min(j + 1, b.size() - 1);
                const FourDots dots = four_dots(&a(i, start), &a(k, start), &b(j, start), &b(m, start), size);
                out(i, j) += dots.xy;
                if (m > j) out(i, m) += dots.xw;
                if (k > i) out(k, j) += dots.zy;
                if (k > i && m > j) out(k, m) += dots.zw;
            }
        }
    }
}

// Adds the inner products over each block of nodes to `parts` (blocks, rows of a, rows of b).
void block_products(Matrix<const double> a, Matrix<const double> b, bool same, Cube<double> parts, Index block) {
    const Index n = a.shape[1];
    parallel_for(parts.size(), a.size() * n,
                 [&](Index k) { add_products(a, b, same, k * block, std::min((k + 1) * block, n), parts[k]); });
}

// Writes the inner products of row k of a and row k of b over each block of nodes into `parts` (blocks, rows).
void block_dots(Matrix<const double> a, Matrix<const double> b, Matrix<double> parts, Index block) {
    const Index n = a.shape[1];
    parallel_for(parts.size(), a.size() * n, [&](Index k) {
        const Index lo = k * block, hi = std::min((k + 1) * block, n);
        for (Index row = 0; row < a.size(); row++) parts(k, row) = dot(&a(row, lo), &b(row, lo), hi - lo);
    });
}

// Adds sum_k shares_k rows_k to `out`, in ascending k.
void add_rows(Vector<const double> shares, Matrix<const double> rows, Vector<double> out) {
    const auto add = [&](Index lo, Index hi) {
        const Index size = hi - lo;
        double* __restrict target = &out[lo];
        for (Index k = 0; k < rows.size(); k++) {
            const double share = shares[k];
            const double* row = &rows(k, lo);
            if (share != 0)
                for (Index i = 0; i < size; i++) target[i] += share * row[i];
        }
    };
    parallel_ranges(out.size(), rows.size() * out.size(), add, SLICE);
}

// Returns the sum of the values as a number of high units and a number of low units. `per_unit` is the number of high units in 1.
std::tuple<Index, Index> count_units(Vector<const double> values, double per_unit) {
    Index high = 0, low = 0;
    for (const double value : values) add_units(value * per_unit, high, low);
    return {high, low};
}

}  // namespace

void bind_sums(nb::module_& m) {
    m.def("block_products", &block_products, "a"_a, "b"_a, "same"_a, "parts"_a, "block"_a, Unlocked());
    m.def("block_dots", &block_dots, "a"_a, "b"_a, "parts"_a, "block"_a, Unlocked());
    m.def("add_rows", &add_rows, "shares"_a, "rows"_a, "out"_a, Unlocked());
    m.def("count_units", &count_units, "values"_a, "per_unit"_a, Unlocked());
}

}  // namespace hushgraph
