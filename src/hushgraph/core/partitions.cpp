// Rows of a graph cut into partitions, and their ghost zones (`distributed/`).
#include "python.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "threads.h"

namespace hushgraph {
namespace {

// ---- cutting ------------------------------------------------------------------------------------------------------

// The partition of each point, by a walk through a tree of cuts: step s compares coordinate axis[s] with value[s] and goes on at
// following(s, is before); a step below 0 is the partition ~step. Of equal coordinates, lower node numbers come before.
Owned<Index> walk_cuts(Matrix<const double> points, Vector<const Index> nodes, Vector<const Index> axis, Vector<const double> value,
                       Vector<const Index> node, Matrix<const Index> following) {
    Owned<Index> partition(points.size());
    parallel_ranges(points.size(), points.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            Index step = 0;
            while (step >= 0) {
                const double x = points(i, axis[step]);
                const int lower = nodes[i] < node[step],
                          before =
                              int(x < value[step]) | (int(x == value[step]) & lower);  // no branches: they would be guessed wrong
                step = following(step, before);
            }
            partition[i] = ~step;
        }
    });
    return partition;
}

// Each edge, then its other direction, sorted by the owner of the first end: (starts of the owners, ends, weights).
template <typename O>
std::tuple<Owned<Index>, Owned<std::int32_t, 2>, Owned<double>> sort_by_owner(Matrix<const std::int32_t> pairs,
                                                                              Vector<const double> weights, Vector<const O> owner,
                                                                              Index parts) {
    Owned<Index> starts = Owned<Index>::zeros(parts + 1), place(parts);
    Interrupts interrupts;
    for (Index k = 0; k < pairs.size(); k++) {
        if (k % 65536 == 0) interrupts.look();
        for (Index side = 0; side < 2; side++) starts[owner[pairs(k, side)] + 1]++;
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::copy(starts.begin(), starts.end() - 1, place.begin());
    Owned<std::int32_t, 2> ends(2 * pairs.size(), 2);
    Owned<double> data(2 * weights.size());
    for (Index k = 0; k < pairs.size(); k++) {
        if (k % 65536 == 0) interrupts.look();
        for (Index side = 0; side < 2; side++) {
            const Index at = place[owner[pairs(k, side)]]++;
            ends(at, 0) = pairs(k, side);
            ends(at, 1) = pairs(k, 1 - side);
            if (weights.size()) data[at] = weights[k];
        }
    }
    return {std::move(starts), std::move(ends), std::move(data)};
}

// ---- rows ---------------------------------------------------------------------------------------------------------

// The place of a node among ascending ones, looked for in growing steps from `near`; -1 if it is not there.
Index find_node(Vector<const std::int32_t> nodes, std::int32_t node, Index near) {
    Index low = near, high = near, step = 1;
    if (node < nodes[near]) {
        while (low > 0 && nodes[low] > node) {
            high = low;
            low = std::max<Index>(0, low - step);
            step *= 2;
        }
    } else {
        while (high < nodes.size() - 1 && nodes[high] < node) {
            low = high;
            high = std::min(nodes.size() - 1, high + step);
            step *= 2;
        }
    }
    while (low < high) {
        const Index middle = (low + high) / 2;
        if (nodes[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return nodes[low] == node ? low : -1;
}

// Entries row by row, neighbours in ascending number and equal ones in the order given: (starts, neighbours, weights). `ends` holds
// (node, neighbour) of each entry, and each node is among `nodes`, which ascend.
std::tuple<Owned<Index>, Owned<std::int32_t>, Owned<double>> place_entries(Vector<const std::int32_t> nodes,
                                                                           Matrix<const std::int32_t> ends,
                                                                           Vector<const double> weights) {
    const Index n = nodes.size(), count = ends.size();
    const bool weighted = weights.size() > 0;
    Interrupts interrupts;
    Owned<std::int32_t> rows(count);
    Owned<Index> starts = Owned<Index>::zeros(n + 1), place(n);
    Index near = 0;
    for (Index k = 0; k < count; k++) {
        if (k % 65536 == 0) interrupts.look();
        near = n > 0 ? find_node(nodes, ends(k, 0), near) : -1;
        if (near < 0) throw std::runtime_error("an edge belongs to no node of its partition");
        rows[k] = static_cast<std::int32_t>(near);
        starts[near + 1]++;
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::copy(starts.begin(), starts.end() - 1, place.begin());
    Owned<std::int32_t> neighbours(count);
    Owned<double> data(weights.size());
    for (Index k = 0; k < count; k++) {
        if (k % 65536 == 0) interrupts.look();
        const Index at = place[rows[k]]++;
        neighbours[at] = ends(k, 1);
        if (weighted) data[at] = weights[k];
    }
    parallel_ranges(n, count, [&](Index lo, Index hi) {
        Owned<Index> order;
        Owned<std::int32_t> old_neighbours;
        Owned<double> old_data;
        for (Index i = lo; i < hi; i++) {
            const Index first = starts[i], length = starts[i + 1] - first;
            if (length > 64) {
                order = Owned<Index>(length);
                old_neighbours = Owned<std::int32_t>(length);
                old_data = Owned<double>(weighted ? length : 0);
                std::iota(order.begin(), order.end(), Index(0));
                std::copy(&neighbours[first], &neighbours[first] + length, old_neighbours.begin());
                if (weighted) std::copy(&data[first], &data[first] + length, old_data.begin());
                std::stable_sort(order.begin(), order.end(),
                                 [&](Index a, Index b) { return old_neighbours[a] < old_neighbours[b]; });
                for (Index k = 0; k < length; k++) {
                    neighbours[first + k] = old_neighbours[order[k]];
                    if (weighted) data[first + k] = old_data[order[k]];
                }
                continue;
            }
            for (Index k = first + 1; k < first + length; k++) {  // short rows: insertion
                const std::int32_t neighbour = neighbours[k];
                const double weight = weighted ? data[k] : 0.0;
                Index at = k;
                for (; at > first && neighbours[at - 1] > neighbour; at--) {
                    neighbours[at] = neighbours[at - 1];
                    if (weighted) data[at] = data[at - 1];
                }
                neighbours[at] = neighbour;
                if (weighted) data[at] = weight;
            }
        }
    });
    return {std::move(starts), std::move(neighbours), std::move(data)};
}

std::uint64_t scramble(std::uint64_t x) {  // as `risk.scramble`
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

// A number of 64 bits for the entries, the same in any order: it tells graphs apart, it does not protect. `bits` are those of the
// weights, or of one weight for all.
std::uint64_t fingerprint(Vector<const Index> nodes, Vector<const Index> starts, Vector<const std::int32_t> columns,
                          Vector<const std::uint64_t> bits) {
    std::uint64_t total = 0;
    for (Index i = 0; i < nodes.size(); i++) {
        const std::uint64_t own = scramble(static_cast<std::uint64_t>(nodes[i]));
        for (Index k = starts[i]; k < starts[i + 1]; k++)
            total += scramble((own ^ scramble(static_cast<std::uint64_t>(columns[k]))) + bits[bits.size() > 1 ? k : 0]);
    }
    return total;
}

// ---- ghost zones --------------------------------------------------------------------------------------------------

// Rows in ascending node number with local neighbours: (starts, neighbours, weights). Row i is row order[i] of what is given;
// neighbours that are not among `nodes` are dropped.
std::tuple<Owned<std::int32_t>, Owned<std::int32_t>, Owned<double>> localize_rows(Vector<const std::int32_t> nodes,
                                                                                  Vector<const Index> order,
                                                                                  Vector<const Index> starts,
                                                                                  Vector<const std::int32_t> columns,
                                                                                  Vector<const double> data) {
    Owned<std::int32_t> local_starts(nodes.size() + 1), neighbours(columns.size());
    Owned<double> weights(data.size());
    Interrupts interrupts;
    Index size = 0;
    local_starts[0] = 0;
    for (Index i = 0; i < nodes.size(); i++) {
        if (i % 65536 == 0) interrupts.look();
        for (Index p = starts[order[i]]; p < starts[order[i] + 1]; p++) {
            const Index j = find_node(nodes, columns[p], i);
            if (j < 0) continue;
            neighbours[size] = static_cast<std::int32_t>(j);
            if (data.size()) weights[size] = data[p];
            size++;
        }
        local_starts[i + 1] = static_cast<std::int32_t>(size);
    }
    return {std::move(local_starts), std::move(neighbours).shortened(size), std::move(weights).shortened(data.size() ? size : 0)};
}

// Nodes within `depth` hops of those that `part` owns, up to `most`; and how many hops were made. Nodes that are met are stamped in
// `seen`.
template <typename I, typename O> std::tuple<Index, Index> count_ghosts(Vector<const I> starts, Vector<const I> columns,
                                                                        Vector<const O> owner, Index part,
                                                                        Vector<std::int32_t> seen, Index depth, Index most) {
    const Index n = owner.size();
    Owned<Index> here(n), layer(n);
    Interrupts interrupts;
    Index here_size = 0, count = 0;
    for (Index i = 0; i < n; i++)
        if (static_cast<Index>(owner[i]) == part) here[here_size++] = i;
    for (Index hop = 0; hop < depth; hop++) {
        Index size = 0;
        for (Index k = 0; k < here_size; k++) {
            if (k % 65536 == 0) interrupts.look();
            const Index i = here[k];
            for (I p = starts[i]; p < starts[i + 1]; p++) {
                const I j = columns[p];
                if (static_cast<Index>(owner[j]) != part && seen[j] != part) {
                    seen[j] = static_cast<std::int32_t>(part);
                    layer[size++] = j;
                }
            }
        }
        count += size;
        if (size == 0 || count > most) return {count, hop + 1};
        std::swap(here, layer);
        here_size = size;
    }
    return {count, depth};
}

template <typename O> void bind_for(nb::module_& m) {
    m.def("sort_by_owner", &sort_by_owner<O>, "pairs"_a, "weights"_a, "owner"_a, "parts"_a, Unlocked());
    m.def("count_ghosts", &count_ghosts<std::int32_t, O>, "starts"_a, "columns"_a, "owner"_a, "part"_a, "seen"_a, "depth"_a,
          "most"_a, Unlocked());
    m.def("count_ghosts", &count_ghosts<std::int64_t, O>, "starts"_a, "columns"_a, "owner"_a, "part"_a, "seen"_a, "depth"_a,
          "most"_a, Unlocked());
}

}  // namespace

void bind_partitions(nb::module_& m) {
    bind_for<std::uint16_t>(m);
    bind_for<std::uint32_t>(m);
    m.def("walk_cuts", &walk_cuts, "points"_a, "nodes"_a, "axis"_a, "value"_a, "node"_a, "following"_a, Unlocked());
    m.def("place_entries", &place_entries, "nodes"_a, "ends"_a, "weights"_a, Unlocked());
    m.def("fingerprint", &fingerprint, "nodes"_a, "starts"_a, "columns"_a, "bits"_a, Unlocked());
    m.def("localize_rows", &localize_rows, "nodes"_a, "order"_a, "starts"_a, "columns"_a, "data"_a, Unlocked());
}

}  // namespace hushgraph
