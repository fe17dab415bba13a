// Connected blocks of nodes of about equal size (`graphs/clusters.py`).
#include <algorithm>
#include <tuple>
#include <utility>

#include "breadth_first.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

// Returns all nodes in breadth-first order, from the lowest node of each component.
template <typename I>
Owned<std::int32_t> nodes_breadth_first(Vector<const I> indptr, Vector<const I> indices, Interrupts& interrupts) {
    const Index n = indptr.size() - 1;
    Owned<std::int32_t> order(n);
    Owned<bool> seen = Owned<bool>::zeros(n);
    Index filled = 0;
    for (Index root = 0; root < n; root++) {
        if (seen[root]) continue;
        seen[root] = true;
        order[filled] = static_cast<std::int32_t>(root);
        const auto visit = [&](I neighbor, std::int32_t) { return !std::exchange(seen[neighbor], true); };
        filled = search_breadth_first<I, std::int32_t>(indptr, indices, order, filled, filled + 1, interrupts, visit);
    }
    return order;
}

// Returns the ball that ball b has joined, directly or through other balls.
Index root_of(Vector<Index> root, Index b) {
    while (root[b] != b) {
        root[b] = root[root[b]];  // halves the path, so that it stays short
        b = root[b];
    }
    return b;
}

// Returns the new number of each ball. A ball smaller than size / 2 joins the smallest adjacent ball, if the sum is below 2 size.
template <typename I> Owned<std::int32_t> joined_balls(Vector<const I> indptr, Vector<const I> indices, Index size,
                                                       Vector<const std::int32_t> block, Vector<const std::int32_t> members,
                                                       Vector<const Index> starts, Index count, Interrupts& interrupts) {
    Owned<Index> root(count), sizes(count);
    for (Index b = 0; b < count; b++) {
        root[b] = b;
        sizes[b] = starts[b + 1] - starts[b];
    }
    for (Index b = 0; b < count; b++) {
        interrupts.check_at(b);
        if (2 * sizes[b] >= size) continue;
        Index best = -1;
        for (Index p = starts[b]; p < starts[b + 1]; p++) {
            for (I k = indptr[members[p]]; k < indptr[members[p] + 1]; k++) {
                const Index c = root_of(root, block[indices[k]]);
                const bool has_room = c != b && sizes[b] + sizes[c] < 2 * size;
                if (has_room && (best < 0 || std::tie(sizes[c], c) < std::tie(sizes[best], best))) best = c;
            }
        }
        if (best < 0) continue;
        root[b] = best;
        sizes[best] += sizes[b];
    }
    Owned<std::int32_t> numbers = Owned<std::int32_t>::filled(-1, count);
    std::int32_t n_numbers = 0;
    for (Index b = 0; b < count; b++) {
        const Index c = root_of(root, b);
        if (numbers[c] < 0) numbers[c] = n_numbers++;
        numbers[b] = numbers[c];
    }
    return numbers;
}

// Returns the block number of each node. Balls of `size` nodes grow one after the other, each from the first free node in
// breadth-first order; small balls then join an adjacent ball. Blocks are numbered in the order of their first balls.
template <typename I> Owned<std::int32_t> grow_balls(Vector<const I> indptr, Vector<const I> indices, Index size) {
    const Index n = indptr.size() - 1;
    Interrupts interrupts;
    const Owned<std::int32_t> order = nodes_breadth_first(indptr, indices, interrupts);
    Owned<std::int32_t> block = Owned<std::int32_t>::filled(-1, n), members(n);
    Owned<Index> starts(n + 1);
    Index filled = 0, count = 0;
    for (const std::int32_t seed : order) {
        if (block[seed] >= 0) continue;
        starts[count] = filled;
        Index head = filled;
        const Index ball_end = filled + size;
        members[filled++] = seed;
        block[seed] = static_cast<std::int32_t>(count);
        while (head < filled && filled < ball_end) {
            const std::int32_t node = members[head++];
            for (I k = indptr[node]; k < indptr[node + 1] && filled < ball_end; k++) {
                const I neighbor = indices[k];
                if (block[neighbor] >= 0) continue;
                members[filled++] = static_cast<std::int32_t>(neighbor);
                block[neighbor] = static_cast<std::int32_t>(count);
            }
        }
        interrupts.advance(filled - starts[count++]);
    }
    starts[count] = n;
    const Owned<std::int32_t> numbers = joined_balls<I>(indptr, indices, size, block, members, starts, count, interrupts);
    for (std::int32_t& number : block) number = numbers[number];
    return block;
}

}  // namespace

void bind_clusters(nb::module_& m) {
    m.def("grow_balls", &grow_balls<std::int32_t>, "indptr"_a, "indices"_a, "size"_a, Unlocked());
    m.def("grow_balls", &grow_balls<std::int64_t>, "indptr"_a, "indices"_a, "size"_a, Unlocked());
}

}  // namespace hushgraph
