// Breadth-first search on the rows of a symmetric matrix.
#pragma once

#include "threads.h"

namespace hushgraph {

// Searches from the nodes queue[first] .. queue[last - 1] and returns the new end of the queue. `visit(neighbor, node)` marks the
// neighbor of a node and returns true if the search meets the neighbor for the first time; such a neighbor is appended to the
// queue.
template <typename I, typename Node, typename Visit>
Index search_breadth_first(Vector<const I> indptr, Vector<const I> indices, Vector<Node> queue, Index first, Index last,
                           Interrupts& interrupts, Visit&& visit) {
    for (Index head = first; head < last; head++) {
        interrupts.check_at(head);
        const Node node = queue[head];
        for (I k = indptr[node]; k < indptr[node + 1]; k++)
            if (visit(indices[k], node)) queue[last++] = static_cast<Node>(indices[k]);
    }
    return last;
}

}  // namespace hushgraph
