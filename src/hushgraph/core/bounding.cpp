// The cells that a unit keeps (`privacy/bounding.py`).
#include <algorithm>
#include <stdexcept>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

// Entry `cell` of the splitmix64 sequence that starts at `key`; different cells of a unit have different ones.
std::uint64_t priority_of(std::uint64_t key, Index cell) {
    std::uint64_t z = key + (static_cast<std::uint64_t>(cell) + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// Of ascending pairs unit * n_cells + cell with their repeats, those whose cell is among the `max_cells` of its unit that come
// first in the order of the unit's key.
std::tuple<Owned<Index>, Owned<Index>> first_cells(Vector<const Index> pairs, Vector<const Index> repeats,
                                                   Vector<const std::uint64_t> keys, Index n_cells, Index max_cells) {
    const Index n = pairs.size();
    if (repeats.size() != n || n_cells < 1 || max_cells < 1 || (n && (pairs[0] < 0 || pairs[n - 1] / n_cells >= keys.size())))
        throw std::invalid_argument("pairs need repeats and keys of their units");
    Owned<Index> kept_pairs(n), kept_repeats(n);
    Owned<std::uint64_t> priorities(0), sorted(0);
    Interrupts interrupts;
    Index kept = 0, looked = 0;
    for (Index first = 0, last; first < n; first = last) {
        if (first - looked >= 65536) {
            interrupts.look();
            looked = first;
        }
        const Index unit = pairs[first] / n_cells;
        const Index next = (unit + 1) * n_cells;
        for (last = first + 1; last < n && pairs[last] < next;) last++;
        const Index size = last - first;
        std::uint64_t most = ~std::uint64_t(0);
        if (size > max_cells) {
            if (size > priorities.size()) {
                priorities.grow(2 * size);
                sorted.grow(2 * size);
            }
            for (Index k = 0; k < size; k++) priorities[k] = sorted[k] = priority_of(keys[unit], pairs[first + k] - unit * n_cells);
            std::nth_element(sorted.data, sorted.data + max_cells - 1, sorted.data + size);
            most = sorted[max_cells - 1];
        }
        for (Index k = 0; k < size; k++) {
            if (size > max_cells && priorities[k] > most) continue;
            kept_pairs[kept] = pairs[first + k];
            kept_repeats[kept++] = repeats[first + k];
        }
    }
    return {std::move(kept_pairs).shortened(kept), std::move(kept_repeats).shortened(kept)};
}

}  // namespace

void bind_bounding(nb::module_& m) {
    m.def("first_cells", &first_cells, "pairs"_a, "repeats"_a, "keys"_a, "n_cells"_a, "max_cells"_a, Unlocked());
}

}  // namespace hushgraph
