// Partitions of the rows of a graph, and the ghost zones of partitions (`distributed/`).
#include "python.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "splitmix.h"
#include "threads.h"

namespace hushgraph {
namespace {

// ---- cutting ------------------------------------------------------------------------------------------------------

// Returns the partition of each point, by a walk through a tree of cuts. Step s compares coordinate axis[s] of the point with
// value[s]; equal coordinates are compared by node number. The next step is following(s, 1) for points before the cut and
// following(s, 0) for others; a step below 0 is the partition ~step.
Owned<Index> walk_cuts(Matrix<const double> points, Vector<const Index> nodes, Vector<const Index> axis, Vector<const double> value,
                       Vector<const Index> node, Matrix<const Index> following) {
    Owned<Index> partition(points.size());
    parallel_ranges(points.size(), points.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            Index step = 0;
            while (step >= 0) {
                const double x = points(i, axis[step]);
                // no branches: the processor could not predict them
                const int is_before = int(x < value[step]) | (int(x == value[step]) & int(nodes[i] < node[step]));
                step = following(step, is_before);
            }
            partition[i] = ~step;
        }
    });
    return partition;
}

// Returns both directions of each edge, sorted by the owner of the first end: (starts of the owners, ends, weights).
template <typename O>
std::tuple<Owned<Index>, Owned<std::int32_t, 2>, Owned<double>> sort_by_owner(Matrix<const std::int32_t> pairs,
                                                                              Vector<const double> weights, Vector<const O> owner,
                                                                              Index parts) {
    Owned<Index> starts = Owned<Index>::zeros(parts + 1);
    Interrupts interrupts;
    for (Index k = 0; k < pairs.size(); k++) {
        interrupts.check_at(k);
        for (Index side = 0; side < 2; side++) starts[owner[pairs(k, side)] + 1]++;
    }
    Owned<Index> next = start_groups(starts);
    Owned<std::int32_t, 2> ends(2 * pairs.size(), 2);
    Owned<double> data(2 * weights.size());
    for (Index k = 0; k < pairs.size(); k++) {
        interrupts.check_at(k);
        for (Index side = 0; side < 2; side++) {
            const Index at = next[owner[pairs(k, side)]]++;
            ends(at, 0) = pairs(k, side);
            ends(at, 1) = pairs(k, 1 - side);
            if (weights.size()) data[at] = weights[k];
        }
    }
    return {std::move(starts), std::move(ends), std::move(data)};
}

// ---- rows ---------------------------------------------------------------------------------------------------------

// Returns the position of a node in the ascending `nodes`, or -1. The search starts at position `guess` and its steps grow.
Index find_node(Vector<const std::int32_t> nodes, std::int32_t node, Index guess) {
    Index low = guess, high = guess, step = 1;
    if (node < nodes[guess]) {
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

// Sorts the neighbours of a row, with their weights if there are any. Equal neighbours keep their order.
void sort_row(Vector<std::int32_t> neighbours, Vector<double> weights) {
    constexpr Index longest_insertion = 64;  // longer rows have a faster sort
    const Index length = neighbours.size();
    const bool weighted = weights.size() > 0;
    if (length > longest_insertion) {
        Owned<Index> order(length);
        Owned<std::int32_t> old_neighbours(length);
        Owned<double> old_weights(weights.size());
        std::iota(order.begin(), order.end(), Index(0));
        std::copy(neighbours.begin(), neighbours.end(), old_neighbours.begin());
        std::copy(weights.begin(), weights.end(), old_weights.begin());
        std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return old_neighbours[a] < old_neighbours[b]; });
        for (Index k = 0; k < length; k++) {
            neighbours[k] = old_neighbours[order[k]];
            if (weighted) weights[k] = old_weights[order[k]];
        }
        return;
    }
    for (Index k = 1; k < length; k++) {
        const std::int32_t neighbour = neighbours[k];
        const double weight = weighted ? weights[k] : 0.0;
        Index at = k;
        for (; at > 0 && neighbours[at - 1] > neighbour; at--) {
            neighbours[at] = neighbours[at - 1];
            if (weighted) weights[at] = weights[at - 1];
        }
        neighbours[at] = neighbour;
        if (weighted) weights[at] = weight;
    }
}

// Returns entries row by row: (starts, neighbours, weights). The neighbours of a row ascend; equal neighbours keep their order.
// `ends` holds (node, neighbour) of each entry; `nodes` ascend and contain all nodes of the entries.
std::tuple<Owned<Index>, Owned<std::int32_t>, Owned<double>> place_entries(Vector<const std::int32_t> nodes,
                                                                           Matrix<const std::int32_t> ends,
                                                                           Vector<const double> weights) {
    const Index n = nodes.size(), count = ends.size();
    const bool weighted = weights.size() > 0;
    Interrupts interrupts;
    Owned<std::int32_t> rows(count);
    Owned<Index> starts = Owned<Index>::zeros(n + 1);
    Index row = 0;
    for (Index k = 0; k < count; k++) {
        interrupts.check_at(k);
        row = n > 0 ? find_node(nodes, ends(k, 0), row) : -1;
        if (row < 0) throw std::runtime_error("an edge has no end in its partition");
        rows[k] = static_cast<std::int32_t>(row);
        starts[row + 1]++;
    }
    Owned<Index> next = start_groups(starts);
    Owned<std::int32_t> neighbours(count);
    Owned<double> data(weights.size());
    for (Index k = 0; k < count; k++) {
        interrupts.check_at(k);
        const Index at = next[rows[k]]++;
        neighbours[at] = ends(k, 1);
        if (weighted) data[at] = weights[k];
    }
    parallel_ranges(n, count, [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            const Index first = starts[i], length = starts[i + 1] - first;
            sort_row({neighbours.data + first, {length}, {1}}, {data.data + (weighted ? first : 0), {weighted ? length : 0}, {1}});
        }
    });
    return {std::move(starts), std::move(neighbours), std::move(data)};
}

// Returns a hash of x, the same as `monte_carlo.scramble`.
std::uint64_t scramble(std::uint64_t x) { return splitmix_output(x + SPLITMIX_STEP); }

// Returns a hash of the entries that does not depend on their order. It distinguishes graphs, but it is not a protection against
// attacks. `bits` are the bits of all weights, or of one weight for all entries.
std::uint64_t fingerprint(Vector<const Index> nodes, Vector<const Index> starts, Vector<const std::int32_t> columns,
                          Vector<const std::uint64_t> bits) {
    std::uint64_t total = 0;
    for (Index i = 0; i < nodes.size(); i++) {
        const std::uint64_t row = scramble(static_cast<std::uint64_t>(nodes[i]));
        for (Index k = starts[i]; k < starts[i + 1]; k++)
            total += scramble((row ^ scramble(static_cast<std::uint64_t>(columns[k]))) + bits[bits.size() > 1 ? k : 0]);
    }
    return total;
}

// ---- ghost zones --------------------------------------------------------------------------------------------------

// Returns rows with local neighbour numbers, in ascending node order: (starts, neighbours, weights). Row i of the result is row
// order[i] of the arguments; neighbours that are not in `nodes` are dropped.
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
        interrupts.check_at(i);
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

// Returns the number of ghost nodes of a partition, and the number of hops made. Ghost nodes are the nodes of other partitions
// within `depth` hops of the nodes that `part` owns; the search stops at more than `most`. It writes `part` into `seen` for each
// ghost node.
template <typename I, typename O> std::tuple<Index, Index> count_ghosts(Vector<const I> starts, Vector<const I> columns,
                                                                        Vector<const O> owner, Index part,
                                                                        Vector<std::int32_t> seen, Index depth, Index most) {
    const Index n = owner.size();
    Owned<Index> front(n), layer(n);
    Interrupts interrupts;
    Index front_size = 0, count = 0;
    for (Index i = 0; i < n; i++)
        if (static_cast<Index>(owner[i]) == part) front[front_size++] = i;
    for (Index hop = 0; hop < depth; hop++) {
        Index size = 0;
        for (Index k = 0; k < front_size; k++) {
            interrupts.check_at(k);
            const Index i = front[k];
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
        std::swap(front, layer);
        front_size = size;
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
