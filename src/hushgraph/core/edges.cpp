// Conversion of pairs of node numbers to the rows of a symmetric matrix, in linear time (`graphs/construction.py`).
#include "python.h"

#include <algorithm>

#include "threads.h"

namespace hushgraph {
namespace {

template <typename I> using Rows = std::tuple<Owned<Index>, Owned<I>, Owned<double>>;

// Returns the rows (starts, neighbours, weights) of a graph. Each edge is in the rows of both ends; the neighbours of a row are in
// the order of the pairs. Self-loops and edges of weight 0 are left out. Empty `weights` mean a graph without weights; the result
// then has none either.
template <typename I> Rows<I> rows_of_pairs(Matrix<const Index> pairs, Vector<const double> weights, Index n) {
    const bool weighted = weights.size() > 0;
    const auto is_valid = [&](Index k) { return pairs(k, 0) != pairs(k, 1) && (!weighted || weights[k] > 0); };
    Interrupts interrupts;
    Owned<Index> starts = Owned<Index>::zeros(n + 1);
    for (Index k = 0; k < pairs.size(); k++) {
        interrupts.check_at(k);
        if (is_valid(k)) {
            starts[pairs(k, 0) + 1]++;
            starts[pairs(k, 1) + 1]++;
        }
    }
    Owned<Index> next = start_groups(starts);
    Owned<I> neighbours(starts[n]);
    Owned<double> data(weighted ? starts[n] : 0);
    for (Index k = 0; k < pairs.size(); k++) {
        interrupts.check_at(k);
        if (!is_valid(k)) continue;
        const Index a = pairs(k, 0), b = pairs(k, 1), at_a = next[a]++, at_b = next[b]++;
        neighbours[at_a] = static_cast<I>(b);
        neighbours[at_b] = static_cast<I>(a);
        if (weighted) data[at_a] = data[at_b] = weights[k];
    }
    return {std::move(starts), std::move(neighbours), std::move(data)};
}

// Returns the rows of a symmetric matrix with ascending neighbours; equal neighbours keep their order.
template <typename I> std::tuple<Owned<I>, Owned<double>> sort_symmetric(Vector<const Index> starts, Vector<const I> neighbours,
                                                                         Vector<const double> data) {
    const Index n = starts.size() - 1;
    Owned<Index> next(n);
    std::copy(starts.begin(), starts.end() - 1, next.begin());
    Owned<I> sorted(neighbours.size());
    Owned<double> sorted_data(data.size());
    Interrupts interrupts;
    for (Index i = 0; i < n; i++) {
        interrupts.check_at(i);
        for (Index k = starts[i]; k < starts[i + 1]; k++) {
            const Index at = next[neighbours[k]]++;  // entry (j, i), the mirror image of (i, j)
            sorted[at] = static_cast<I>(i);
            if (data.size()) sorted_data[at] = data[k];
        }
    }
    return {std::move(sorted), std::move(sorted_data)};
}

enum Merging : Index { REFUSE_UNEQUAL = 0, SUM = 1, MAXIMUM = 2 };

// Merges equal entries of each row, in place. Returns (number of remaining entries, 0, 0, 0, 0), or (-1, row, column, two weights)
// if REFUSE_UNEQUAL meets an entry with two different weights.
template <typename I> std::tuple<Index, Index, Index, double, double> merge_entries(Vector<Index> starts, Vector<I> neighbours,
                                                                                    Vector<double> data, Index merging) {
    const bool weighted = data.size() > 0;
    Index size = 0, begin = 0;
    for (Index i = 0; i + 1 < starts.size(); i++) {
        const Index first = size, end = starts[i + 1];
        for (Index k = begin; k < end; k++) {
            if (size > first && neighbours[size - 1] == neighbours[k]) {
                if (!weighted) continue;
                if (merging == SUM)
                    data[size - 1] += data[k];
                else if (merging == MAXIMUM)
                    data[size - 1] = std::max(data[size - 1], data[k]);
                else if (data[k] != data[size - 1])
                    return {-1, i, neighbours[k], data[size - 1], data[k]};
            } else {
                neighbours[size] = neighbours[k];
                if (weighted) data[size] = data[k];
                size++;
            }
        }
        begin = end;
        starts[i + 1] = size;
    }
    return {size, 0, 0, 0.0, 0.0};
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("sort_symmetric", &sort_symmetric<I>, "starts"_a, "neighbours"_a, "data"_a, Unlocked());
    m.def("merge_entries", &merge_entries<I>, "starts"_a, "neighbours"_a, "data"_a, "merging"_a, Unlocked());
}

}  // namespace

void bind_edges(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
    m.def("rows_of_pairs32", &rows_of_pairs<std::int32_t>, "pairs"_a, "weights"_a, "n"_a, Unlocked());
    m.def("rows_of_pairs64", &rows_of_pairs<std::int64_t>, "pairs"_a, "weights"_a, "n"_a, Unlocked());
}

}  // namespace hushgraph
