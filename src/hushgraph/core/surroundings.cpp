// Kernels that say which nodes are around a node, row by row (`surroundings.py`).
#include <algorithm>
#include <cmath>
#include <vector>

#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

using Column = std::int32_t;
using Rows = std::tuple<Owned<Index>, Owned<Column>, Owned<double>>;  // of a sparse matrix: starts, columns, weights

constexpr Index RANGE = 64;  // rows that a thread makes at a time

#define HUSHGRAPH_LOOPS "surroundings.inc"
#include "both_levels.h"

// Some rows of a matrix, appended one after the other.
struct Part {
    Owned<Column> columns;
    Owned<double> weights;
    Index size = 0;

    void reserve(Index more) {
        if (size + more <= columns.size()) return;
        const Index room = std::max(2 * columns.size(), size + more);
        columns.grow(room);
        weights.grow(room);
    }

    void append(Column column, double weight) {
        columns[size] = column;
        weights[size++] = weight;
    }
};

// Candidates for one row; reused by the rows that a thread makes.
struct Row {
    explicit Row(Index most) : columns(most), weights(most), sorted(most) {}

    Owned<Column> columns;
    Owned<double> weights, sorted;
    Index count = 0;

    void add(Column column, double weight) {
        columns[count] = column;
        weights[count++] = weight;
    }

    // Appends the heaviest `most` of them, of equal ones the first, and starts anew.
    void append_to(Part& part, Index most) {
        part.reserve(std::min(count, most));
        if (count <= most) {
            for (Index c = 0; c < count; c++) part.append(columns[c], weights[c]);
        } else {
            std::copy(weights.begin(), weights.begin() + count, sorted.begin());
            std::nth_element(sorted.begin(), sorted.begin() + (count - most), sorted.begin() + count);
            const double least = sorted[count - most];
            Index spare = most;
            for (Index c = 0; c < count; c++) spare -= weights[c] > least;
            for (Index c = 0; c < count; c++) {
                if (weights[c] > least)
                    part.append(columns[c], weights[c]);
                else if (weights[c] == least && spare > 0) {
                    part.append(columns[c], weights[c]);
                    spare--;
                }
            }
        }
        count = 0;
    }
};

// The columns that a row has, in ascending order: a bit for each, and a bit for each word of bits that is not 0.
class Sorter {
  public:
    explicit Sorter(Index n)
        : words_(Owned<std::uint64_t>::zeros(n / 64 + 1)), used_(Owned<std::uint64_t>::zeros(n / 4096 + 1)), values_(n) {}

    // Sorts the entries of a row that has no column twice.
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

// The matrix whose row i `make(i, scratch, part)` appends to the part; `scratch` belongs to one thread.
template <typename Scratch, typename NewScratch, typename Make>
Rows made_rows(Index n, Index work, NewScratch&& new_scratch, Make&& make) {
    const Index n_parts = (n + RANGE - 1) / RANGE;
    Owned<Index> starts(n + 1);
    std::vector<Part> parts(static_cast<std::size_t>(n_parts));
    std::vector<Scratch> scratch;
    for (int worker = 0; worker < std::max(1, threads_for(n_parts, work)); worker++) scratch.push_back(new_scratch());
    parallel_for(n_parts, work, [&](Index k, int worker) {
        Part& part = parts[static_cast<std::size_t>(k)];
        for (Index i = k * RANGE; i < std::min(n, (k + 1) * RANGE); i++) {
            make(i, scratch[static_cast<std::size_t>(worker)], part);
            starts[i + 1] = part.size;  // inside the part, at first
        }
    });
    Owned<Index> places(n_parts + 1);
    places[0] = starts[0] = 0;
    for (Index k = 0; k < n_parts; k++) places[k + 1] = places[k] + parts[static_cast<std::size_t>(k)].size;
    Owned<Column> columns(places[n_parts]);
    Owned<double> weights(places[n_parts]);
    parallel_for(n_parts, places[n_parts], [&](Index k) {
        Part& part = parts[static_cast<std::size_t>(k)];
        std::copy(part.columns.begin(), part.columns.begin() + part.size, &columns[places[k]]);
        std::copy(part.weights.begin(), part.weights.begin() + part.size, &weights[places[k]]);
        part = Part();
        for (Index i = k * RANGE; i < std::min(n, (k + 1) * RANGE); i++) starts[i + 1] += places[k];
    });
    return {std::move(starts), std::move(columns), std::move(weights)};
}

// exp(-hop^2 / 2 width^2) up to `reach` hops, breadth first; when there are too many nodes, those met first. Columns ascend.
Rows hop_rows(Vector<const Column> indptr, Vector<const Column> indices, double width, double reach, Index most) {
    struct Scratch {
        Owned<Column> queue, met;
        Owned<double> near;
        Sorter sorter;
    };
    const Index n = indptr.size() - 1;
    most = std::min(most, n - 1);
    const auto new_scratch = [&] { return Scratch{Owned<Column>(n), Owned<Column>::filled(-1, n), Owned<double>(n), Sorter(n)}; };
    return made_rows<Scratch>(n, n * most, new_scratch, [&](Index root, Scratch& mine, Part& part) {
        const Column mark = static_cast<Column>(root);
        mine.met[root] = mark;
        mine.queue[0] = mark;
        Index head = 0, tail = 1, hop = 0;
        while (head < tail && tail <= most && static_cast<double>(hop + 1) <= reach) {
            hop++;
            const Index ring_end = tail;
            const double weight = std::exp(static_cast<double>(-(hop * hop)) / (2 * (width * width)));
            for (; head < ring_end && tail <= most; head++) {
                const Column node = mine.queue[head];
                for (Column e = indptr[node]; e < indptr[node + 1] && tail <= most; e++) {
                    if (mine.met[indices[e]] == mark) continue;
                    mine.met[indices[e]] = mark;
                    mine.near[tail] = weight;
                    mine.queue[tail++] = indices[e];
                }
            }
        }
        const Index first = part.size;
        part.reserve(tail - 1);
        for (Index c = 1; c < tail; c++) part.append(mine.queue[c], mine.near[c]);
        mine.sorter.sort(part.columns.data + first, part.weights.data + first, tail - 1);
    });
}

// Rows of the product of two square matrices without negative entries, of each row the heaviest `most`. Columns ascend.
Rows product_rows(Vector<const Column> left_ptr, Vector<const Column> left_columns, Vector<const double> left,
                  Vector<const Column> right_ptr, Vector<const Column> right_columns, Vector<const double> right, Index most) {
    struct Scratch {
        Owned<double> total;
        Owned<Column> touched;
        Row row;
    };
    const Index n = left_ptr.size() - 1;
    const auto new_scratch = [&] { return Scratch{Owned<double>::zeros(n), Owned<Column>(n), Row(n)}; };
    return made_rows<Scratch>(n, 8 * left.size(), new_scratch, [&](Index i, Scratch& mine, Part& part) {
        Index count = 0;
        for (Column e = left_ptr[i]; e < left_ptr[i + 1]; e++) {
            const Column j = left_columns[e];
            for (Column f = right_ptr[j]; f < right_ptr[j + 1]; f++) {
                const double entry = left[e] * right[f];
                double& total = mine.total[right_columns[f]];
                if (total == 0.0 && entry > 0) mine.touched[count++] = right_columns[f];
                total += entry;
            }
        }
        std::sort(mine.touched.begin(), mine.touched.begin() + count);
        for (Index c = 0; c < count; c++) {
            const Column column = mine.touched[c];
            mine.row.add(column, mine.total[column]);
            mine.total[column] = 0.0;
        }
        mine.row.append_to(part, most);
    });
}

// exp(-u^2 / 2 along^2 - v^2 / 2 across^2) where it is at least `least`, for u and v along and across the axis of the row's node;
// of each row the heaviest `most`. Columns ascend.
//
// Nodes lie in cells that are as wide as the Gaussian reaches: cell `number`, cells of the next row are `wide` numbers on. `order`
// are the nodes by cell.
Rows gaussian_rows(Matrix<const double> place, Vector<const double> cosine, Vector<const double> sine, double along, double across,
                   double least, Vector<const Index> number, Index wide, Vector<const Index> order, Index most) {
    struct Scratch {
        Owned<double> distance;
        Owned<Column> chosen;
        Row row;
        Sorter sorter;
    };
    const Index n = place.size();
    const double floor = std::log(least), twice_along = 2 * along * along, twice_across = 2 * across * across;
    const double far = -floor * (1 + 1e-9);  // beyond this the power cannot be above the floor, whatever the rounding
    Owned<Index> sorted_number(n);
    Owned<double> x(n), y(n);
    for (Index p = 0; p < n; p++) {
        sorted_number[p] = number[order[p]];
        x[p] = place(order[p], 0);
        y[p] = place(order[p], 1);
    }
    const auto first_from = [&](Index cell) {
        return std::lower_bound(sorted_number.begin(), sorted_number.end(), cell) - sorted_number.begin();
    };
    const auto new_scratch = [&] { return Scratch{Owned<double>(n), Owned<Column>(n), Row(n), Sorter(n)}; };
    return made_rows<Scratch>(n, 32 * n, new_scratch, [&](Index i, Scratch& mine, Part& part) {
        for (Index next = -1; next <= 1; next++) {
            const Index cell = number[i] + next * wide, first = first_from(cell - 1), last = first_from(cell + 2);
            HUSHGRAPH_LEVEL(put_distances)(x.data + first, y.data + first, last - first, place(i, 0), place(i, 1), cosine[i],
                                           sine[i], 1 / twice_along, 1 / twice_across, mine.distance.data);
            Index count = 0;
            for (Index p = first; p < last; p++) {
                mine.chosen[count] = static_cast<Column>(p);
                count += !(mine.distance[p - first] > far);
            }
            for (Index c = 0; c < count; c++) {
                const Index p = mine.chosen[c];
                const double ahead = x[p] - place(i, 0), aside = y[p] - place(i, 1);
                const double u = cosine[i] * ahead + sine[i] * aside, v = cosine[i] * aside - sine[i] * ahead;
                const double power = -(u * u) / twice_along - v * v / twice_across;
                if (power >= floor && order[p] != i) mine.row.add(static_cast<Column>(order[p]), std::exp(power));
            }
        }
        const Index before = part.size;
        mine.row.append_to(part, most);
        mine.sorter.sort(part.columns.data + before, part.weights.data + before, part.size - before);
    });
}

// For each directed edge the one that goes on with the smallest turn, -1 where all turn too much.
Owned<Index> straight_edges(Vector<const Column> indptr, Vector<const Column> indices, Matrix<const double> place,
                            double least_cosine) {
    Owned<Index> onward = Owned<Index>::filled(-1, indices.size());
    const Index n = indptr.size() - 1;
    constexpr Index some = 256;
    parallel_for((n + some - 1) / some, 4 * indices.size(), [&](Index part) {
        for (Index i = part * some; i < std::min(n, (part + 1) * some); i++) {
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
    });
    return onward;
}

// exp(-(hop - 1) / decay) of the nodes met on the walks from each node, at most `hops` long; a node as often as it is met.
Rows walk_rows(Vector<const Column> indptr, Vector<const Column> indices, Vector<const Index> onward, double decay, Index hops) {
    struct Scratch {};
    const Index n = indptr.size() - 1;
    Owned<double> weights(hops);
    for (Index hop = 0; hop < hops; hop++) weights[hop] = std::exp(static_cast<double>(-hop) / decay);
    return made_rows<Scratch>(
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

// Adds to out, which belongs to (i, j), the entry (j, i) of sum_c part_c(j) K covariate_c(i). Columns of K ascend.
void add_transposed(Vector<const Column> indptr, Vector<const Column> indices, Vector<double> out, Vector<const Column> kernel_ptr,
                    Vector<const Column> kernel_columns, Vector<const double> kernel, Matrix<const double> part,
                    Matrix<const double> covariates) {
    const Index n = indptr.size() - 1;
    constexpr Index some = 1024;
    parallel_for((n + some - 1) / some, 4 * indices.size(), [&](Index range) {
        const Index lo = range * some, hi = std::min(n, lo + some);
        Owned<Column> next(n);  // the first entry of each row of K with a column of at least i; i ascends
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
    });
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
