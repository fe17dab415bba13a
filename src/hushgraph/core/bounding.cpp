// Contribution bounding: the choice of the cells in which a unit counts (`privacy/bounding.py`).
#include <algorithm>
#include <stdexcept>

#include "python.h"
#include "splitmix.h"
#include "threads.h"

namespace hushgraph {
namespace {

// Returns number `cell` of the SplitMix64 sequence that starts at `key`. Different cells of a unit have different priorities.
std::uint64_t priority_of(std::uint64_t key, Index cell) {
    return splitmix_output(key + (static_cast<std::uint64_t>(cell) + 1) * SPLITMIX_STEP);
}

// Returns the pairs of the selected cells and the repeats of these pairs. A pair is unit * n_cells + cell; pairs ascend. Each unit
// keeps the `max_cells` cells with the lowest priorities.
std::tuple<Owned<Index>, Owned<Index>> first_cells(Vector<const Index> pairs, Vector<const Index> repeats,
                                                   Vector<const std::uint64_t> keys, Index n_cells, Index max_cells) {
    const Index n = pairs.size();
    if (repeats.size() != n || n_cells < 1 || max_cells < 1 || (n && (pairs[0] < 0 || pairs[n - 1] / n_cells >= keys.size())))
        throw std::invalid_argument("each pair needs a number of repeats, and each unit needs a key");
    Owned<Index> selected_pairs(n), selected_repeats(n);
    Owned<std::uint64_t> priorities(0), ranked(0);
    Interrupts interrupts;
    Index n_selected = 0;
    for (Index first = 0, last; first < n; first = last) {
        const Index unit = pairs[first] / n_cells;
        const Index next = (unit + 1) * n_cells;
        for (last = first + 1; last < n && pairs[last] < next;) last++;
        const Index size = last - first;
        interrupts.advance(size);
        std::uint64_t highest = ~std::uint64_t(0);  // priority of a selected cell
        if (size > max_cells) {
            if (size > priorities.size()) {
                priorities.grow(2 * size);
                ranked.grow(2 * size);
            }
            for (Index k = 0; k < size; k++) priorities[k] = ranked[k] = priority_of(keys[unit], pairs[first + k] - unit * n_cells);
            std::nth_element(ranked.data, ranked.data + max_cells - 1, ranked.data + size);
            highest = ranked[max_cells - 1];
        }
        for (Index k = 0; k < size; k++) {
            if (size > max_cells && priorities[k] > highest) continue;
            selected_pairs[n_selected] = pairs[first + k];
            selected_repeats[n_selected++] = repeats[first + k];
        }
    }
    return {std::move(selected_pairs).shortened(n_selected), std::move(selected_repeats).shortened(n_selected)};
}

}  // namespace

void bind_bounding(nb::module_& m) {
    m.def("first_cells", &first_cells, "pairs"_a, "repeats"_a, "keys"_a, "n_cells"_a, "max_cells"_a, Unlocked());
}

}  // namespace hushgraph
