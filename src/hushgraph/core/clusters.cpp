// Connected neighborhoods of about equal size (`neighbourhoods.py`).
#include <algorithm>
#include <tuple>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index STEPS = 65536;  // of a loop between two looks for signals

// All nodes, breadth first from the lowest node of each component.
template <typename I>
Owned<std::int32_t> nodes_breadth_first(Vector<const I> indptr, Vector<const I> indices, Interrupts& interrupts) {
    const Index n = indptr.size() - 1;
    Owned<std::int32_t> order(n);
    Owned<bool> seen = Owned<bool>::zeros(n);
    Index filled = 0;
    for (Index root = 0; root < n; root++) {
        if (seen[root]) continue;
        seen[root] = true;
        Index head = filled;
        order[filled++] = static_cast<std::int32_t>(root);
        while (head < filled) {
            if (head % STEPS == 0) interrupts.look();
            const std::int32_t node = order[head++];
            for (I k = indptr[node]; k < indptr[node + 1]; k++) {
                const I neighbor = indices[k];
                if (seen[neighbor]) continue;
                seen[neighbor] = true;
                order[filled++] = static_cast<std::int32_t>(neighbor);
            }
        }
    }
    return order;
}

// The ball that ball b has joined, directly or through others.
Index root_of(Vector<Index> root, Index b) {
    while (root[b] != b) {
        root[b] = root[root[b]];  // halves the path, so that it stays short
        b = root[b];
    }
    return b;
}

// New number of each ball, once those under half the size have joined a neighbor, if one has room.
template <typename I> Owned<std::int32_t> joined_balls(Vector<const I> indptr, Vector<const I> indices, Index size,
                                                       Vector<const std::int32_t> block, Vector<const std::int32_t> placed,
                                                       Vector<const Index> starts, Index count, Interrupts& interrupts) {
    Owned<Index> root(count), sizes(count);
    for (Index b = 0; b < count; b++) {
        root[b] = b;
        sizes[b] = starts[b + 1] - starts[b];
    }
    for (Index b = 0; b < count; b++) {
        if (b % STEPS == 0) interrupts.look();
        if (2 * sizes[b] >= size) continue;
        Index best = -1;
        for (Index p = starts[b]; p < starts[b + 1]; p++) {
            for (I k = indptr[placed[p]]; k < indptr[placed[p] + 1]; k++) {
                const Index c = root_of(root, block[indices[k]]);
                const bool has_room = c != b && sizes[b] + sizes[c] < 2 * size;
                if (has_room && (best < 0 || std::tie(sizes[c], c) < std::tie(sizes[best], best))) best = c;
            }
        }
        if (best < 0) continue;
        root[b] = best;
        sizes[best] += sizes[b];
    }
    Owned<std::int32_t> names = Owned<std::int32_t>::filled(-1, count);
    std::int32_t named = 0;
    for (Index b = 0; b < count; b++) {
        const Index c = root_of(root, b);
        if (names[c] < 0) names[c] = named++;
        names[b] = names[c];
    }
    return names;
}

// Block number of each node, ascending along the breadth-first order of the blocks' first nodes: balls of `size` nodes grow side by
// side, and small ones join a neighbor.
template <typename I> Owned<std::int32_t> grow_balls(Vector<const I> indptr, Vector<const I> indices, Index size) {
    const Index n = indptr.size() - 1;
    Interrupts interrupts;
    const Owned<std::int32_t> order = nodes_breadth_first(indptr, indices, interrupts);
    Owned<std::int32_t> block = Owned<std::int32_t>::filled(-1, n), placed(n);
    Owned<Index> starts(n + 1);
    Index filled = 0, count = 0, looked = 0;
    for (const std::int32_t seed : order) {
        if (filled - looked >= STEPS) {
            interrupts.look();
            looked = filled;
        }
        if (block[seed] >= 0) continue;
        starts[count] = filled;
        Index head = filled;
        const Index most = filled + size;
        placed[filled++] = seed;
        block[seed] = static_cast<std::int32_t>(count);
        while (head < filled && filled < most) {
            const std::int32_t node = placed[head++];
            for (I k = indptr[node]; k < indptr[node + 1] && filled < most; k++) {
                const I neighbor = indices[k];
                if (block[neighbor] >= 0) continue;
                placed[filled++] = static_cast<std::int32_t>(neighbor);
                block[neighbor] = static_cast<std::int32_t>(count);
            }
        }
        count++;
    }
    starts[count] = n;
    const Owned<std::int32_t> names = joined_balls<I>(indptr, indices, size, block, placed, starts, count, interrupts);
    for (std::int32_t& number : block) number = names[number];
    return block;
}

}  // namespace

void bind_clusters(nb::module_& m) {
    m.def("grow_balls", &grow_balls<std::int32_t>, "indptr"_a, "indices"_a, "size"_a, Unlocked());
    m.def("grow_balls", &grow_balls<std::int64_t>, "indptr"_a, "indices"_a, "size"_a, Unlocked());
}

}  // namespace hushgraph
