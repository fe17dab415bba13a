// Kernels between each node and the nodes around it, as rows of sparse matrices (`estimators/counts/surroundings.py`).
#include <algorithm>
#include <cmath>
#include <vector>

#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

using Column = std::int32_t;
using Rows = std::tuple<Owned<Index>, Owned<Column>, Owned<double>>;  // a sparse matrix: starts, columns, weights

constexpr Index RANGE = 64;  // rows that a thread computes at a time

#define HUSHGRAPH_LOOPS "surroundings.inc"
#include "both_levels.h"

// Some rows of a matrix, stored one after the other.
struct Part {
    Owned<Column> columns;
    Owned<double> weights;
    Index size = 0;

    void reserve(Index n_entries) {
        if (size + n_entries <= columns.size()) return;
        const Index capacity = std::max(2 * columns.size(), size + n_entries);
        columns.grow(capacity);
        weights.grow(capacity);
    }

    void append(Column column, double weight) {
        columns[size] = column;
        weights[size++] = weight;
    }
};

// Candidates for the entries of one row. A thread uses the same object for all its rows.
struct Candidates {
    explicit Candidates(Index most) : columns(most), weights(most), ranked(most) {}

    Owned<Column> columns;
    Owned<double> weights, ranked;
    Index count = 0;

    void add(Column column, double weight) {
        columns[count] = column;
        weights[count++] = weight;
    }

    // Appends the `most` candidates of largest weight to a part, and removes all candidates. Of equal weights the first are taken.
    void append_to(Part& part, Index most) {
        part.reserve(std::min(count, most));
        if (count <= most) {
            for (Index c = 0; c < count; c++) part.append(columns[c], weights[c]);
        } else {
            std::copy(weights.begin(), weights.begin() + count, ranked.begin());
            std::nth_element(ranked.begin(), ranked.begin() + (count - most), ranked.begin() + count);
            const double least = ranked[count - most];
            Index n_equal = most;  // candidates of weight `least` that are taken
            for (Index c = 0; c < count; c++) n_equal -= weights[c] > least;
            for (Index c = 0; c < count; c++) {
                const bool is_equal = weights[c] == least;
                if (!(weights[c] > least) && !(is_equal && n_equal > 0)) continue;
                n_equal -= is_equal;
                part.append(columns[c], weights[c]);
            }
        }
        count = 0;
    }
};

// Sorts the columns of a row with a bit for each column, and a bit for each word of 64 columns that is not 0.
class ColumnSorter {
  public:
    explicit ColumnSorter(Index n)
        : words_(Owned<std::uint64_t>::zeros(n / 64 + 1)), used_(Owned<std::uint64_t>::zeros(n / 4096 + 1)), values_(n) {}

    // Sorts the entries of a row by column. No column may occur twice.
    void sort(Column* columns, double* weights, Index count) {
        for (Index c = 0; c < count; c++) {
            const Column column = columns[c];
            words_[column / 64] |= std::uint64_t(1) << (column % 64);
            used_[column / 4096] |= std::uint64_t(1) << (column / 64 % 64);
            values_[column] = weights[c];
        }
        Index c = 0;
        for (Index u = 0; u < used_.size(); u++) {
            for (std::uint64_t words = used_[u]; words; words &= words - 1) {
                const Index word = 64 * u + __builtin_ctzll(words);
                for (std::uint64_t bits = words_[word]; bits; bits &= bits - 1) {
                    columns[c] = static_cast<Column>(64 * word + __builtin_ctzll(bits));
                    weights[c] = values_[columns[c]];
                    c++;
                }
                words_[word] = 0;
            }
            used_[u] = 0;
        }
    }

  private:
    Owned<std::uint64_t> words_, used_;
    Owned<double> values_;
};

// Returns a matrix of n rows. `append_row(i, scratch, part)` appends row i to the part; each thread has its own `scratch`.
template <typename Scratch, typename NewScratch, typename AppendRow>
Rows build_rows(Index n, Index work, NewScratch&& new_scratch, AppendRow&& append_row) {
    const Index n_parts = (n + RANGE - 1) / RANGE;
    Owned<Index> starts(n + 1);
    std::vector<Part> parts(static_cast<std::size_t>(n_parts));
    std::vector<Scratch> scratch;
    for (int worker = 0; worker < std::max(1, threads_for(n_parts, work)); worker++) scratch.push_back(new_scratch());
    parallel_for(n_parts, work, [&](Index k, int worker) {
        Part& part = parts[static_cast<std::size_t>(k)];
        for (Index i = k * RANGE; i < std::min(n, (k + 1) * RANGE); i++) {
            append_row(i, scratch[static_cast<std::size_t>(worker)], part);
            starts[i + 1] = part.size;  // relative to the start of the part
        }
    });
    Owned<Index> part_starts(n_parts + 1);
    part_starts[0] = starts[0] = 0;
    for (Index k = 0; k < n_parts; k++) part_starts[k + 1] = part_starts[k] + parts[static_cast<std::size_t>(k)].size;
    Owned<Column> columns(part_starts[n_parts]);
    Owned<double> weights(part_starts[n_parts]);
    parallel_for(n_parts, part_starts[n_parts], [&](Index k) {
        Part& part = parts[static_cast<std::size_t>(k)];
        std::copy(part.columns.begin(), part.columns.begin() + part.size, &columns[part_starts[k]]);
        std::copy(part.weights.begin(), part.weights.begin() + part.size, &weights[part_starts[k]]);
        part = Part();  // frees the memory
        for (Index i = k * RANGE; i < std::min(n, (k + 1) * RANGE); i++) starts[i + 1] += part_starts[k];
    });
    return {std::move(starts), std::move(columns), std::move(weights)};
}

// Returns rows of exp(-hop^2 / 2 width^2) for the nodes within `reach` hops, at most `most` for each row. The search is
// breadth-first; the first nodes are taken if there are too many. Columns ascend.
Rows hop_rows(Vector<const Column> indptr, Vector<const Column> indices, double width, double reach, Index most) {
    struct Scratch {
        Owned<Column> queue, visitor;  // visitor: the last root whose search reached a node
        Owned<double> weights;         // of the nodes in the queue
        ColumnSorter sorter;
    };
    const Index n = indptr.size() - 1;
    most = std::min(most, n - 1);
    const auto new_scratch = [&] {
        return Scratch{Owned<Column>(n), Owned<Column>::filled(-1, n), Owned<double>(n), ColumnSorter(n)};
    };
    return build_rows<Scratch>(n, n * most, new_scratch, [&](Index number, Scratch& scratch, Part& part) {
        const Column root = static_cast<Column>(number);
        scratch.visitor[root] = root;
        scratch.queue[0] = root;
        Index head = 0, tail = 1, hop = 0;
        while (head < tail && tail <= most && static_cast<double>(hop + 1) <= reach) {
            hop++;
            const Index ring_end = tail;
            const double weight = std::exp(static_cast<double>(-(hop * hop)) / (2 * (width * width)));
            for (; head < ring_end && tail <= most; head++) {
                const Column node = scratch.queue[head];
                for (Column e = indptr[node]; e < indptr[node + 1] && tail <= most; e++) {
                    if (scratch.visitor[indices[e]] == root) continue;
                    scratch.visitor[indices[e]] = root;
                    scratch.weights[tail] = weight;
                    scratch.queue[tail++] = indices[e];
                }
            }
        }
        const Index first = part.size;
        part.reserve(tail - 1);
        for (Index c = 1; c < tail; c++) part.append(scratch.queue[c], scratch.weights[c]);
        scratch.sorter.sort(part.columns.data + first, part.weights.data + first, tail - 1);
    });
}

// Returns the product of two square matrices without negative entries. Each row keeps its `most` largest entries. Columns ascend.
Rows product_rows(Vector<const Column> left_ptr, Vector<const Column> left_columns, Vector<const double> left,
                  Vector<const Column> right_ptr, Vector<const Column> right_columns, Vector<const double> right, Index most) {
    struct Scratch {
        Owned<double> total;
        Owned<Column> nonzero;
        Candidates row;
    };
    const Index n = left_ptr.size() - 1;
    const auto new_scratch = [&] { return Scratch{Owned<double>::zeros(n), Owned<Column>(n), Candidates(n)}; };
    return build_rows<Scratch>(n, 8 * left.size(), new_scratch, [&](Index i, Scratch& scratch, Part& part) {
        Index count = 0;
        for (Column e = left_ptr[i]; e < left_ptr[i + 1]; e++) {
            const Column j = left_columns[e];
            for (Column f = right_ptr[j]; f < right_ptr[j + 1]; f++) {
                const double entry = left[e] * right[f];
                double& total = scratch.total[right_columns[f]];
                if (total == 0.0 && entry > 0) scratch.nonzero[count++] = right_columns[f];
                total += entry;
            }
        }
        std::sort(scratch.nonzero.begin(), scratch.nonzero.begin() + count);
        for (Index c = 0; c < count; c++) {
            const Column column = scratch.nonzero[c];
            scratch.row.add(column, scratch.total[column]);
            scratch.total[column] = 0.0;
        }
        scratch.row.append_to(part, most);
    });
}

// Returns rows of exp(-u^2 / 2 along^2 - v^2 / 2 across^2), where u and v are the offsets along and across the axis of the node of
// the row. Entries below `least` are dropped, and each row keeps its `most` largest entries. Columns ascend.
//
// The plane is divided into cells as wide as the reach of the Gaussian. Node i is in cell number[i]; adding `wide` to a cell number
// gives the cell in the next row of cells. `order` holds the nodes sorted by cell.
Rows gaussian_rows(Matrix<const double> place, Vector<const double> cosine, Vector<const double> sine, double along, double across,
                   double least, Vector<const Index> number, Index wide, Vector<const Index> order, Index most) {
    struct Scratch {
        Owned<double> distance;
        Owned<Column> selected;
        Candidates row;
        ColumnSorter sorter;
    };
    const Index n = place.size();
    const double floor = std::log(least), twice_along = 2 * along * along, twice_across = 2 * across * across;
    const double limit = -floor * (1 + 1e-9);  // at a larger distance the power is below the floor in spite of rounding
    Owned<Index> sorted_number(n);
    Owned<double> x(n), y(n);
    for (Index p = 0; p < n; p++) {
        sorted_number[p] = number[order[p]];
        x[p] = place(order[p], 0);
        y[p] = place(order[p], 1);
    }
    const auto start_of_cell = [&](Index cell) {
        return std::lower_bound(sorted_number.begin(), sorted_number.end(), cell) - sorted_number.begin();
    };
    const auto new_scratch = [&] { return Scratch{Owned<double>(n), Owned<Column>(n), Candidates(n), ColumnSorter(n)}; };
    return build_rows<Scratch>(n, 32 * n, new_scratch, [&](Index i, Scratch& scratch, Part& part) {
        for (Index next = -1; next <= 1; next++) {
            const Index cell = number[i] + next * wide, first = start_of_cell(cell - 1), last = start_of_cell(cell + 2);
            HUSHGRAPH_LEVEL(put_distances)(x.data + first, y.data + first, last - first, place(i, 0), place(i, 1), cosine[i],
                                           sine[i], 1 / twice_along, 1 / twice_across, scratch.distance.data);
            Index count = 0;
            for (Index p = first; p < last; p++) {
                scratch.selected[count] = static_cast<Column>(p);
                count += !(scratch.distance[p - first] > limit);
            }
            for (Index c = 0; c < count; c++) {
                const Index p = scratch.selected[c];
                const double dx = x[p] - place(i, 0), dy = y[p] - place(i, 1);
                const double u = cosine[i] * dx + sine[i] * dy, v = cosine[i] * dy - sine[i] * dx;
                const double power = -(u * u) / twice_along - v * v / twice_across;
                if (power >= floor && order[p] != i) scratch.row.add(static_cast<Column>(order[p]), std::exp(power));
            }
        }
        const Index start = part.size;
        scratch.row.append_to(part, most);
        scratch.sorter.sort(part.columns.data + start, part.weights.data + start, part.size - start);
    });
}

// Returns for each directed edge the next edge with the smallest turn, or -1 if all turns are too large.
Owned<Index> straight_edges(Vector<const Column> indptr, Vector<const Column> indices, Matrix<const double> place,
                            double least_cosine) {
    Owned<Index> onward = Owned<Index>::filled(-1, indices.size());
    const Index n = indptr.size() - 1;
    constexpr Index nodes_per_task = 256;
    const auto fill = [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            for (Column e = indptr[i]; e < indptr[i + 1]; e++) {
                const Column j = indices[e];
                const double x = place(j, 0) - place(i, 0), y = place(j, 1) - place(i, 1);
                double best = least_cosine;
                for (Column f = indptr[j]; f < indptr[j + 1]; f++) {
                    const double u = place(indices[f], 0) - place(j, 0), v = place(indices[f], 1) - place(j, 1);
                    const double lengths = std::sqrt((x * x + y * y) * (u * u + v * v));
                    if (indices[f] != i && lengths > 0 && (x * u + y * v) / lengths > best) {
                        best = (x * u + y * v) / lengths;
                        onward[e] = f;
                    }
                }
            }
        }
    };
    parallel_ranges(n, 4 * indices.size(), fill, nodes_per_task);
    return onward;
}

// Returns rows of exp(-(hop - 1) / decay) for the nodes on the straight walks from each node, at most `hops` long. A node that is
// met several times has several entries.
Rows walk_rows(Vector<const Column> indptr, Vector<const Column> indices, Vector<const Index> onward, double decay, Index hops) {
    struct Scratch {};
    const Index n = indptr.size() - 1;
    Owned<double> weights(hops);
    for (Index hop = 0; hop < hops; hop++) weights[hop] = std::exp(static_cast<double>(-hop) / decay);
    return build_rows<Scratch>(
        n, hops * indices.size(), [] { return Scratch(); },
        [&](Index i, Scratch&, Part& part) {
            part.reserve(hops * (indptr[i + 1] - indptr[i]));
            for (Index start = indptr[i]; start < indptr[i + 1]; start++) {
                Index e = start;
                for (Index hop = 0; e >= 0 && hop < hops && indices[e] != i; hop++, e = onward[e])
                    part.append(indices[e], weights[hop]);
            }
        });
}

// Adds sum_c part_c(j) K(j, i) covariate_c(i) to the entry (i, j) of `out`. The columns of the kernel K ascend.
void add_transposed(Vector<const Column> indptr, Vector<const Column> indices, Vector<double> out, Vector<const Column> kernel_ptr,
                    Vector<const Column> kernel_columns, Vector<const double> kernel, Matrix<const double> part,
                    Matrix<const double> covariates) {
    const Index n = indptr.size() - 1;
    constexpr Index nodes_per_task = 1024;
    const auto add = [&](Index lo, Index hi) {
        Owned<Column> next(n);  // the first entry of each row of K with a column >= i; i ascends
        for (Index j = 0; j < n; j++) {
            const Column *first = kernel_columns.data + kernel_ptr[j], *last = kernel_columns.data + kernel_ptr[j + 1];
            next[j] = static_cast<Column>(std::lower_bound(first, last, static_cast<Column>(lo)) - kernel_columns.data);
        }
        for (Index i = lo; i < hi; i++) {
            for (Column p = indptr[i]; p < indptr[i + 1]; p++) {
                const Column j = indices[p], last = kernel_ptr[j + 1];
                Column e = next[j];
                while (e < last && kernel_columns[e] < i) e++;
                next[j] = e;
                if (e == last || kernel_columns[e] != i) continue;
                for (Index c = 0; c < covariates.size(); c++) out[p] += part(c, j) * kernel[e] * covariates(c, i);
            }
        }
    };
    parallel_ranges(n, 4 * indices.size(), add, nodes_per_task);
}

}  // namespace

void bind_surroundings(nb::module_& m) {
    m.def("hop_rows", &hop_rows, "indptr"_a, "indices"_a, "width"_a, "reach"_a, "most"_a, Unlocked());
    m.def("product_rows", &product_rows, "left_ptr"_a, "left_columns"_a, "left"_a, "right_ptr"_a, "right_columns"_a, "right"_a,
          "most"_a, Unlocked());
    m.def("gaussian_rows", &gaussian_rows, "place"_a, "cosine"_a, "sine"_a, "along"_a, "across"_a, "least"_a, "number"_a, "wide"_a,
          "order"_a, "most"_a, Unlocked());
    m.def("straight_edges", &straight_edges, "indptr"_a, "indices"_a, "place"_a, "least_cosine"_a, Unlocked());
    m.def("walk_rows", &walk_rows, "indptr"_a, "indices"_a, "onward"_a, "decay"_a, "hops"_a, Unlocked());
    m.def("add_transposed", &add_transposed, "indptr"_a, "indices"_a, "out"_a, "kernel_ptr"_a, "kernel_columns"_a, "kernel"_a,
          "part"_a, "covariates"_a, Unlocked());
}

}  // namespace hushgraph
