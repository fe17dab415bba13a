// Sums over the nodes around each node, with weights that fall with the distance (`estimators/counts/surroundings.py`).
//
// A kernel K gives each node i a row of weights K(i, j) of the nodes j around it. A row is computed when it is needed and never
// stored, except for the few rows of one call. Nodes are numbered so that nodes near each other have near numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lanes.h"
#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

using Column = std::int32_t;
using Rows = std::tuple<Owned<Index>, Owned<Column>, Owned<double>>;  // a sparse matrix: starts, columns, weights

constexpr Index RANGE = 64;  // rows that a thread computes at a time

// exp(-u^2 / twice_along - v^2 / twice_across), where u and v are the offsets from (x, y) along and across an axis.
struct Gaussian {
    double x, y, cosine, sine, twice_along, twice_across;
};

#define HUSHGRAPH_LOOPS "surroundings.inc"
#include "both_levels.h"

// A view of a sparse matrix.
struct Sparse {
    Vector<const Column> starts, columns;
    Vector<const double> weights;
};

// The entries of one row of a kernel. A thread uses the same object for all its rows.
struct Row {
    explicit Row(Index most) : columns(most), weights(most) {}

    Owned<Column> columns;
    Owned<double> weights;
    Index count = 0;

    void add(Column column, double weight) {
        columns[count] = column;
        weights[count++] = weight;
    }

    // Removes entries whose weight is below `least`.
    void drop_below(double least) {
        Index kept = 0;
        for (Index e = 0; e < count; e++) {
            columns[kept] = columns[e];
            weights[kept] = weights[e];
            kept += weights[e] >= least;
        }
        count = kept;
    }
};

// Finds the largest weights of a row.
class Largest {
  public:
    // Returns the `most`-th largest of `count` weights between `lowest` and `highest`.
    double find(const double* weights, Index count, Index most, double lowest, double highest) {
        const double per_bin = highest > lowest ? BINS / (highest - lowest) : 0.0;
        const auto bin_of = [&](double weight) {
            return std::min<Index>(static_cast<Index>((weight - lowest) * per_bin), BINS - 1);
        };
        std::fill(sizes_, sizes_ + BINS, 0);
        for (Index e = 0; e < count; e++) sizes_[bin_of(weights[e])]++;
        Index bin = BINS - 1;
        for (; sizes_[bin] < most; bin--) most -= sizes_[bin];
        same_bin_.clear();
        for (Index e = 0; e < count; e++)
            if (bin_of(weights[e]) == bin) same_bin_.push_back(weights[e]);
        std::nth_element(same_bin_.begin(), same_bin_.end() - most, same_bin_.end());
        return *(same_bin_.end() - most);
    }

  private:
    static constexpr Index BINS = 256;
    Index sizes_[BINS];
    std::vector<double> same_bin_;
};

// Reduces a row to its `most` largest weights; `least` is the smallest of these. Of equal weights the entries that are smaller by
// `is_before` stay. Weights are equal if they differ by no more than rounding does, so that rounding does not choose among nodes of
// the same distance.
template <typename IsBefore> void keep_largest(Row& row, Index most, double least, IsBefore&& is_before,
                                               std::vector<Column>& equal) {
    const double room = 1e-12 * std::abs(least);
    Index n_equal = most;
    equal.clear();
    for (Index e = 0; e < row.count; e++) {
        n_equal -= row.weights[e] > least + room;
        if (std::abs(row.weights[e] - least) <= room) equal.push_back(row.columns[e]);
    }
    if (static_cast<Index>(equal.size()) > n_equal) {
        std::sort(equal.begin(), equal.end(), is_before);
        equal.erase(equal.begin(), equal.begin() + n_equal);
        std::sort(equal.begin(), equal.end());
        for (Index e = 0; e < row.count; e++)
            if (std::abs(row.weights[e] - least) <= room && std::binary_search(equal.begin(), equal.end(), row.columns[e]))
                row.weights[e] = -std::numeric_limits<double>::infinity();
    }
    row.drop_below(least - room);
}

// Writes a row of the product of two matrices without negative entries, with only its `most` largest entries.
class Products {
  public:
    explicit Products(Index n) : total_(Owned<double>::zeros(n)) {}

    // `ids` give the order of the entries. Of equal weights the first stay. With `is_hollow` the entry (i, i) is removed in the
    // end.
    void put(Index i, const Sparse& left, const Sparse& right, Index most, Vector<const Index> ids, bool is_hollow, Row& row) {
        row.count = 0;
        for (Column e = left.starts[i]; e < left.starts[i + 1]; e++) {
            const Column j = left.columns[e];
            for (Column f = right.starts[j]; f < right.starts[j + 1]; f++) {
                const double entry = left.weights[e] * right.weights[f];
                double& total = total_[right.columns[f]];
                if (total == 0.0 && entry > 0) row.columns[row.count++] = right.columns[f];
                total += entry;
            }
        }
        const auto is_before = [&](Column a, Column b) { return ids[a] < ids[b]; };
        std::sort(row.columns.begin(), row.columns.begin() + row.count, is_before);
        for (Index c = 0; c < row.count; c++) {
            row.weights[c] = total_[row.columns[c]];
            total_[row.columns[c]] = 0.0;
        }
        if (row.count > most) {
            weights_.assign(row.weights.begin(), row.weights.begin() + row.count);
            std::nth_element(weights_.begin(), weights_.end() - most, weights_.end());
            keep_largest(row, most, *(weights_.end() - most), is_before, equal_);
        }
        if (!is_hollow) return;
        for (Index c = 0; c < row.count; c++)
            if (row.columns[c] == i) row.weights[c] = -1;
        row.drop_below(0.0);
    }

  private:
    Owned<double> total_;
    std::vector<double> weights_;
    std::vector<Column> equal_;
};

// ---- kernels in the plane -----------------------------------------------------------------------------------------------------

// Kernels of nodes with places. Numbers of kernels: first the Gaussians, then the walks, the edges, and two steps along edges.
//
// The plane is divided into columns of cells; nodes are numbered cell by cell. Column x has the cells number column_starts[x] to
// column_starts[x + 1] - 1, `heights` are their places in the column, and cell c has the nodes cell_starts[c] to cell_starts[c + 1]
// - 1. Cells without nodes are not stored.
struct Plane {
    Vector<const double> x, y, cosine, sine;  // places, from 0 on, and axes
    Vector<const Index> ids;                  // the order of nodes of equal weight
    double cell_size;
    Vector<const Index> column_starts, heights, cell_starts;
    Matrix<const double> gaussians;  // (Gaussians, 3): width along and across, largest number of nodes
    double least;                    // weights of Gaussians below are 0
    Sparse edges, near;              // near: with the heaviest edges only
    Vector<const Index> onward;      // for each edge of `near` the edge straight on, or -1
    Vector<const double> decays;     // of the walks, in hops
    Index hops, most_steps;          // longest walk, and largest number of nodes two steps away

    struct Scratch {
        explicit Scratch(const Plane& plane) : row(plane.n() + plane.longest_walks()), products(plane.n()) {}
        Row row;
        Products products;
        Largest largest;
        std::vector<Column> equal;
    };

    Index n() const { return x.size(); }
    void begin(Index, Scratch&) const {}

    // Writes row i of a kernel into scratch.row.
    void put(Index i, Index kernel, Scratch& scratch) const {
        const Index n_gaussians = gaussians.size(), walk = kernel - n_gaussians, sparse = walk - decays.size();
        if (walk < 0) return put_gaussian(i, kernel, scratch);
        if (sparse < 0) return put_walks(i, decays[walk], scratch.row);
        if (sparse == 1) return scratch.products.put(i, near, near, most_steps, ids, true, scratch.row);
        scratch.row.count = 0;
        for (Column e = edges.starts[i]; e < edges.starts[i + 1]; e++) scratch.row.add(edges.columns[e], edges.weights[e]);
    }

  private:
    // The Gaussian of node i, with only its largest weights if there are too many. Then a smaller ellipse is searched first.
    void put_gaussian(Index i, Index kernel, Scratch& scratch) const {
        const double along = gaussians(kernel, 0), across = gaussians(kernel, 1), floor = std::log(least);
        const Index most = static_cast<Index>(gaussians(kernel, 2));
        const Gaussian gaussian{x[i], y[i], cosine[i], sine[i], 2 * along * along, 2 * across * across};
        double share = 1.0;  // of the ellipse
        while (share > 1e-3 && count_in_box(gaussian, share * floor) > 8 * most) share /= 4;
        Row& row = scratch.row;
        for (;; share *= 4) {
            put_powers_within(gaussian, share * floor, i, row);
            if (row.count > most || share >= 1) break;
        }
        if (row.count > most) {
            const double size = std::sqrt(-2 * floor) * std::max(along, across);
            const auto is_before = [&](Column a, Column b) {
                const double ax = std::floor(x[a] / size), bx = std::floor(x[b] / size);
                if (ax != bx) return ax < bx;
                const double ay = std::floor(y[a] / size), by = std::floor(y[b] / size);
                return ay != by ? ay < by : ids[a] < ids[b];
            };
            const double power = scratch.largest.find(row.weights.data, row.count, most, share * floor, 0.0);
            keep_largest(row, most, power, is_before, scratch.equal);
        }
        HUSHGRAPH_LEVEL(exponentiate)(row.weights.data, row.count);
    }

    // Writes the nodes where the power of the Gaussian is at least `floor`, and the powers, without node i.
    void put_powers_within(const Gaussian& gaussian, double floor, Index i, Row& row) const {
        const double limit = -floor * (1 + 1e-9);  // at a larger distance the power is below the floor in spite of rounding
        row.count = 0;
        for_box(gaussian, floor, [&](Index first, Index last) {
            row.count = HUSHGRAPH_LEVEL(select_within)(x.data, y.data, first, last, gaussian, limit, row.columns.data, row.count);
        });
        HUSHGRAPH_LEVEL(put_powers)(x.data, y.data, row.columns.data, row.count, gaussian, row.weights.data);
        Index kept = 0;
        for (Index e = 0; e < row.count; e++) {
            row.columns[kept] = row.columns[e];
            row.weights[kept] = row.weights[e];
            kept += row.weights[e] >= floor && row.columns[e] != i;
        }
        row.count = kept;
    }

    Index count_in_box(const Gaussian& gaussian, double floor) const {
        Index count = 0;
        for_box(gaussian, floor, [&](Index first, Index last) { count += last - first; });
        return count;
    }

    // Calls body(first, last) for the ranges of nodes in the cells around the ellipse where the power is at least `floor`.
    template <typename F> void for_box(const Gaussian& gaussian, double floor, F&& body) const {
        const double reach = std::sqrt(-floor) * (1 + 1e-9);  // the factor leaves room for rounding
        const double c = gaussian.cosine * gaussian.cosine, s = gaussian.sine * gaussian.sine;
        const double width = reach * std::sqrt(c * gaussian.twice_along + s * gaussian.twice_across);
        const double height = reach * std::sqrt(s * gaussian.twice_along + c * gaussian.twice_across);
        const Index low = cell_below(gaussian.y - height), high = cell_below(gaussian.y + height);
        const Index last_column = std::min(cell_below(gaussian.x + width), column_starts.size() - 2);
        for (Index column = std::max<Index>(cell_below(gaussian.x - width), 0); column <= last_column; column++) {
            const Index* begin = heights.data + column_starts[column];
            const Index* end = heights.data + column_starts[column + 1];
            const Index* first = std::lower_bound(begin, end, low);
            const Index* last = std::upper_bound(first, end, high);
            if (first < last) body(cell_starts[first - heights.data], cell_starts[last - heights.data]);
        }
    }

    void put_walks(Index i, double decay, Row& row) const {
        row.count = 0;
        for (Index start = near.starts[i]; start < near.starts[i + 1]; start++) {
            Index e = start;
            for (Index hop = 0; e >= 0 && hop < hops && near.columns[e] != i; hop++, e = onward[e])
                row.add(near.columns[e], std::exp(static_cast<double>(-hop) / decay));
        }
    }

    Index cell_below(double place) const { return static_cast<Index>(std::floor(place / cell_size)); }

    Index longest_walks() const {
        Index degree = 0;
        for (Index i = 0; i < n(); i++) degree = std::max<Index>(degree, near.starts[i + 1] - near.starts[i]);
        return degree * hops;
    }
};

// ---- kernels of the graph alone -----------------------------------------------------------------------------------------------

// Kernels of nodes without places. Numbers of kernels: first those of the hops, then two and four steps of a random walk, and the
// edges.
struct Hops {
    Sparse edges, step, two_steps;   // the last two with the largest entries of each row only
    Matrix<const double> gaussians;  // (kernels, 3): width and reach in hops, largest number of nodes
    Vector<const Index> ids;         // the order of nodes of equal weight
    Index most_two, most_four;       // largest number of nodes two and four steps away

    struct Scratch {
        explicit Scratch(const Hops& hops)
            : queue(hops.n()), visitor(Owned<Column>::filled(-1, hops.n())), row(hops.n()), products(hops.n()) {}
        Owned<Column> queue, visitor;  // visitor: the last node whose search reached a node
        std::vector<Index> rings;      // rings[h]: the number of nodes within h hops, with the node itself
        Row row;
        Products products;
    };

    Index n() const { return edges.starts.size() - 1; }

    // Searches the nodes around node i, breadth first: as many as the widest kernel needs.
    void begin(Index i, Scratch& scratch) const {
        const Column root = static_cast<Column>(i);
        Index most = 0, head = 0, tail = 1;
        double reach = 0.0;
        for (Index k = 0; k < gaussians.size(); k++) {
            most = std::max(most, std::min(static_cast<Index>(gaussians(k, 2)), n() - 1));
            reach = std::max(reach, gaussians(k, 1));
        }
        scratch.visitor[i] = root;
        scratch.queue[0] = root;
        scratch.rings.assign(1, 1);
        while (head < tail && tail <= most && static_cast<double>(scratch.rings.size()) <= reach) {
            const Index ring_end = tail;
            for (; head < ring_end && tail <= most; head++) {
                const Column node = scratch.queue[head];
                for (Column e = edges.starts[node]; e < edges.starts[node + 1] && tail <= most; e++) {
                    if (scratch.visitor[edges.columns[e]] == root) continue;
                    scratch.visitor[edges.columns[e]] = root;
                    scratch.queue[tail++] = edges.columns[e];
                }
            }
            scratch.rings.push_back(tail);
        }
    }

    // Writes row i of a kernel into scratch.row, after `begin(i, scratch)`. Of too many nodes within reach the first are taken.
    void put(Index i, Index kernel, Scratch& scratch) const {
        const Index sparse = kernel - gaussians.size();
        Row& row = scratch.row;
        if (sparse == 0) return scratch.products.put(i, step, step, most_two, ids, true, row);
        if (sparse == 1) return scratch.products.put(i, two_steps, two_steps, most_four, ids, true, row);
        row.count = 0;
        if (sparse == 2) {
            for (Column e = edges.starts[i]; e < edges.starts[i + 1]; e++) row.add(edges.columns[e], edges.weights[e]);
            return;
        }
        const double width = gaussians(kernel, 0), reach = gaussians(kernel, 1);
        const Index most = static_cast<Index>(gaussians(kernel, 2));
        const Index last = std::min(static_cast<Index>(scratch.rings.size()) - 1, static_cast<Index>(reach));
        for (Index hop = 1; hop <= last; hop++) {
            const double weight = std::exp(static_cast<double>(-(hop * hop)) / (2 * (width * width)));
            const Index first = scratch.rings[static_cast<std::size_t>(hop - 1)],
                        end = scratch.rings[static_cast<std::size_t>(hop)];
            for (Index c = first; c < std::min(end, most + 1); c++) row.add(scratch.queue[c], weight);
        }
    }
};

// ---- sums over surroundings ---------------------------------------------------------------------------------------------------

// Returns sum_j K(i, j) values(j) for nodes first .. last - 1 and the chosen kernels K, (nodes, kernels, values of a node). The
// number of values of a node is a multiple of 4.
template <typename Kernels>
Owned<double, 3> sum_around(const Kernels& kernels, Index first, Index last, Vector<const Index> chosen,
                            Matrix<const double> values) {
    Owned<double, 3> out(last - first, chosen.size(), values.shape[1]);
    std::vector<typename Kernels::Scratch> scratch;
    const Index n_parts = (last - first + RANGE - 1) / RANGE, work = 1024 * (last - first);
    for (int worker = 0; worker < std::max(1, threads_for(n_parts, work)); worker++) scratch.emplace_back(kernels);
    parallel_for(n_parts, work, [&](Index part, int worker) {
        auto& own = scratch[static_cast<std::size_t>(worker)];
        for (Index i = first + part * RANGE; i < std::min(last, first + (part + 1) * RANGE); i++) {
            kernels.begin(i, own);
            for (Index k = 0; k < chosen.size(); k++) {
                kernels.put(i, chosen[k], own);
                HUSHGRAPH_LEVEL(put_row_sums)
                (own.row.columns.data, own.row.weights.data, own.row.count, values, &out(i - first, k, 0));
            }
        }
    });
    return out;
}

// The rows first .. last - 1 of some kernels. Row r of kernel k has the entries starts[r * n_kernels + k] to the next start.
struct StoredRows {
    Owned<Index> starts;
    Owned<Column> columns;
    Owned<double> weights;
};

template <typename Kernels> StoredRows store_rows(const Kernels& kernels, Index first, Index last, Vector<const Index> chosen) {
    struct Part {
        std::vector<Column> columns;
        std::vector<double> weights;
    };
    const Index n_parts = (last - first + RANGE - 1) / RANGE, n_kernels = chosen.size(), work = 1024 * (last - first);
    std::vector<Part> parts(static_cast<std::size_t>(n_parts));
    std::vector<typename Kernels::Scratch> scratch;
    for (int worker = 0; worker < std::max(1, threads_for(n_parts, work)); worker++) scratch.emplace_back(kernels);
    Owned<Index> starts = Owned<Index>::zeros((last - first) * n_kernels + 1);
    parallel_for(n_parts, work, [&](Index k, int worker) {
        Part& part = parts[static_cast<std::size_t>(k)];
        auto& own = scratch[static_cast<std::size_t>(worker)];
        for (Index r = k * RANGE; r < std::min(last - first, (k + 1) * RANGE); r++) {
            kernels.begin(first + r, own);
            for (Index c = 0; c < n_kernels; c++) {
                kernels.put(first + r, chosen[c], own);
                const Row& row = own.row;
                part.columns.insert(part.columns.end(), row.columns.begin(), row.columns.begin() + row.count);
                part.weights.insert(part.weights.end(), row.weights.begin(), row.weights.begin() + row.count);
                starts[r * n_kernels + c + 1] = row.count;
            }
        }
    });
    for (Index r = 0; r + 1 < starts.size(); r++) starts[r + 1] += starts[r];
    StoredRows rows{std::move(starts), Owned<Column>(), Owned<double>()};
    const Index size = rows.starts[rows.starts.size() - 1];
    rows.columns = Owned<Column>(size);
    rows.weights = Owned<double>(size);
    parallel_for(n_parts, size, [&](Index k) {
        Part& part = parts[static_cast<std::size_t>(k)];
        std::copy(part.columns.begin(), part.columns.end(), rows.columns.data + rows.starts[k * RANGE * n_kernels]);
        std::copy(part.weights.begin(), part.weights.end(), rows.weights.data + rows.starts[k * RANGE * n_kernels]);
        part = Part();  // frees the memory
    });
    return rows;
}

// Returns for each node the entries of the rows with that column, sorted: starts and numbers of the entries.
std::pair<Owned<Index>, Owned<std::uint32_t>> entries_by_column(const StoredRows& rows, Index n) {
    Owned<Index> starts = Owned<Index>::zeros(n + 1);
    Owned<std::uint32_t> entries(rows.columns.size());
    for (const Column column : rows.columns) starts[column + 1]++;
    for (Index j = 0; j < n; j++) starts[j + 1] += starts[j];
    for (Index e = 0; e < rows.columns.size(); e++) entries[starts[rows.columns[e]]++] = static_cast<std::uint32_t>(e);
    for (Index j = n; j > 0; j--) starts[j] = starts[j - 1];
    starts[0] = 0;
    return {std::move(starts), std::move(entries)};
}

// Returns sum_j K(i, j) values(j) M(j, i) for nodes i = first .. last - 1 and the chosen kernels K, (nodes, kernels, values of a
// node), where M(j, i) = sum_a mix(a, j) K_a(j, i) covariates(c_a, i), K_a is the kernel active_kernels[a], and c_a is
// active_covariates[a]. The active kernels ascend.
template <typename Kernels>
Owned<double, 3> sum_echoes(const Kernels& kernels, Index first, Index last, Vector<const Index> chosen,
                            Matrix<const double> values, Vector<const Index> active_kernels, Vector<const Index> active_covariates,
                            Matrix<const double> mix, Matrix<const double> covariates) {
    StoredRows rows = store_rows(kernels, first, last, chosen);
    Owned<Column> row_of(rows.columns.size());
    for (Index r = 0; r < last - first; r++)
        std::fill(row_of.data + rows.starts[r * chosen.size()], row_of.data + rows.starts[(r + 1) * chosen.size()],
                  static_cast<Column>(first + r));
    const auto by_column = entries_by_column(rows, kernels.n());
    const Owned<Index>& column_starts = by_column.first;
    const Owned<std::uint32_t>& entries = by_column.second;

    // multiplies each entry (i, j) by M(j, i)
    struct Scratch {
        explicit Scratch(const Kernels& kernels) : own(kernels), total(Owned<double>::zeros(kernels.n())) {}
        typename Kernels::Scratch own;
        Owned<double> total;  // row j of M
        std::vector<Column> nonzero;
    };
    const Index n = kernels.n(), n_parts = (n + RANGE - 1) / RANGE, work = 1024 * n;
    std::vector<Scratch> scratch;
    for (int worker = 0; worker < std::max(1, threads_for(n_parts, work)); worker++) scratch.emplace_back(kernels);
    parallel_for(n_parts, work, [&](Index part, int worker) {
        Scratch& here = scratch[static_cast<std::size_t>(worker)];
        for (Index j = part * RANGE; j < std::min(n, (part + 1) * RANGE); j++) {
            if (column_starts[j] == column_starts[j + 1]) continue;
            kernels.begin(j, here.own);
            const Row& row = here.own.row;
            for (Index a = 0; a < active_kernels.size(); a++) {
                if (a == 0 || active_kernels[a] != active_kernels[a - 1]) {
                    kernels.put(j, active_kernels[a], here.own);
                    here.nonzero.insert(here.nonzero.end(), row.columns.begin(), row.columns.begin() + row.count);
                }
                const double factor = mix(a, j);
                const double* covariate = &covariates(active_covariates[a], 0);
                for (Index e = 0; e < row.count; e++)
                    here.total[row.columns[e]] += factor * row.weights[e] * covariate[row.columns[e]];
            }
            for (Index k = column_starts[j]; k < column_starts[j + 1]; k++)
                rows.weights[entries[k]] *= here.total[row_of[entries[k]]];
            for (const Column i : here.nonzero) here.total[i] = 0.0;
            here.nonzero.clear();
        }
    });

    Owned<double, 3> out(last - first, chosen.size(), values.shape[1]);
    parallel_ranges(
        last - first, rows.columns.size(),
        [&](Index lo, Index hi) {
            for (Index r = lo; r < hi; r++)
                for (Index k = 0; k < chosen.size(); k++) {
                    const Index start = rows.starts[r * chosen.size() + k], count = rows.starts[r * chosen.size() + k + 1] - start;
                    HUSHGRAPH_LEVEL(put_row_sums)(rows.columns.data + start, rows.weights.data + start, count, values,
                                                  &out(r, k, 0));
                }
        },
        RANGE);
    return out;
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

// Returns the product of two square matrices without negative entries. Each row keeps its `most` largest entries. Columns ascend.
Rows product_rows(Vector<const Column> left_ptr, Vector<const Column> left_columns, Vector<const double> left,
                  Vector<const Column> right_ptr, Vector<const Column> right_columns, Vector<const double> right, Index most) {
    struct Kernels {
        Sparse left, right;
        Vector<const Index> ids;
        Index most;

        struct Scratch {
            explicit Scratch(const Kernels& kernels) : row(kernels.n()), products(kernels.n()) {}
            Row row;
            Products products;
        };
        Index n() const { return ids.size(); }
        void begin(Index, Scratch&) const {}
        void put(Index i, Index, Scratch& scratch) const { scratch.products.put(i, left, right, most, ids, false, scratch.row); }
    };
    Owned<Index> ids(left_ptr.size() - 1);
    for (Index i = 0; i < ids.size(); i++) ids[i] = i;
    const Kernels kernels{{left_ptr, left_columns, left}, {right_ptr, right_columns, right}, ids, most};
    const Owned<Index> only = Owned<Index>::zeros(1);
    StoredRows rows = store_rows(kernels, 0, kernels.n(), only);
    return {std::move(rows.starts), std::move(rows.columns), std::move(rows.weights)};
}

}  // namespace

// Both classes view the arrays that they are made from; `keep_alive<1, k>` keeps argument k as long as the object.
void bind_surroundings(nb::module_& m) {
    using Numbers = Vector<const double>;
    using Columns = Vector<const Column>;
    using Indices = Vector<const Index>;
    m.def("product_rows", &product_rows, "left_ptr"_a, "left_columns"_a, "left"_a, "right_ptr"_a, "right_columns"_a, "right"_a,
          "most"_a, Unlocked());
    m.def("straight_edges", &straight_edges, "indptr"_a, "indices"_a, "place"_a, "least_cosine"_a, Unlocked());
    nb::class_<Plane>(m, "PlaneKernels")
        .def(
            "__init__",
            [](Plane* self, Numbers x, Numbers y, Numbers cosine, Numbers sine, Indices ids, double cell_size,
               Indices column_starts, Indices heights, Indices cell_starts, Matrix<const double> gaussians, double least,
               Columns edge_ptr, Columns edge_columns, Numbers edge_weights, Columns near_ptr, Columns near_columns,
               Numbers near_weights, Indices onward, Numbers decays, Index hops, Index most_steps) {
                new (self) Plane{x,
                                 y,
                                 cosine,
                                 sine,
                                 ids,
                                 cell_size,
                                 column_starts,
                                 heights,
                                 cell_starts,
                                 gaussians,
                                 least,
                                 {edge_ptr, edge_columns, edge_weights},
                                 {near_ptr, near_columns, near_weights},
                                 onward,
                                 decays,
                                 hops,
                                 most_steps};
            },
            "x"_a, "y"_a, "cosine"_a, "sine"_a, "ids"_a, "cell_size"_a, "column_starts"_a, "heights"_a, "cell_starts"_a,
            "gaussians"_a, "least"_a, "edge_ptr"_a, "edge_columns"_a, "edge_weights"_a, "near_ptr"_a, "near_columns"_a,
            "near_weights"_a, "onward"_a, "decays"_a, "hops"_a, "most_steps"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
            nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(),
            nb::keep_alive<1, 10>(), nb::keep_alive<1, 11>(), nb::keep_alive<1, 13>(), nb::keep_alive<1, 14>(),
            nb::keep_alive<1, 15>(), nb::keep_alive<1, 16>(), nb::keep_alive<1, 17>(), nb::keep_alive<1, 18>(),
            nb::keep_alive<1, 19>(), nb::keep_alive<1, 20>())
        .def("sum_around", &sum_around<Plane>, "first"_a, "last"_a, "chosen"_a, "values"_a, Unlocked())
        .def("sum_echoes", &sum_echoes<Plane>, "first"_a, "last"_a, "chosen"_a, "values"_a, "active_kernels"_a,
             "active_covariates"_a, "mix"_a, "covariates"_a, Unlocked());
    nb::class_<Hops>(m, "HopKernels")
        .def(
            "__init__",
            [](Hops* self, Columns edge_ptr, Columns edge_columns, Numbers edge_weights, Columns step_ptr, Columns step_columns,
               Numbers step_weights, Columns two_ptr, Columns two_columns, Numbers two_weights, Matrix<const double> gaussians,
               Indices ids, Index most_two, Index most_four) {
                new (self) Hops{{edge_ptr, edge_columns, edge_weights},
                                {step_ptr, step_columns, step_weights},
                                {two_ptr, two_columns, two_weights},
                                gaussians,
                                ids,
                                most_two,
                                most_four};
            },
            "edge_ptr"_a, "edge_columns"_a, "edge_weights"_a, "step_ptr"_a, "step_columns"_a, "step_weights"_a, "two_ptr"_a,
            "two_columns"_a, "two_weights"_a, "gaussians"_a, "ids"_a, "most_two"_a, "most_four"_a, nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(),
            nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>(), nb::keep_alive<1, 11>(),
            nb::keep_alive<1, 12>())
        .def("sum_around", &sum_around<Hops>, "first"_a, "last"_a, "chosen"_a, "values"_a, Unlocked())
        .def("sum_echoes", &sum_echoes<Hops>, "first"_a, "last"_a, "chosen"_a, "values"_a, "active_kernels"_a,
             "active_covariates"_a, "mix"_a, "covariates"_a, Unlocked());
}

}  // namespace hushgraph
