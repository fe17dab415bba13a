// Orders of the rows of a symmetric matrix that are fast on processors (`core/layout.py`) and on GPUs (`core/gpu_layout.py`).
#include "python.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "breadth_first.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index RUNS_PER_TASK = 64;

// ---- for processors: breadth-first levels, runs of equal length ---------------------------------------------------

// Returns the nodes sorted by breadth-first levels, and the starts of the levels. Each component starts at a node at one of its
// ends: the last node of a first search.
template <typename I> std::tuple<Owned<Index>, Owned<Index>> breadth_first(Vector<const I> indptr, Vector<const I> indices) {
    const Index n = indptr.size() - 1;
    Owned<Index> order(n), queue(n), levels(n + 1);
    Owned<std::int8_t> state = Owned<std::int8_t>::zeros(n);  // 1: reached by the first search, 2: has a position in `order`
    Interrupts interrupts;
    Index n_levels = 0, n_ordered = 0;
    for (Index seed = 0; seed < n; seed++) {
        if (state[seed] == 2) continue;
        queue[0] = seed;
        state[seed] = 1;
        const auto visit = [&](I neighbor, Index) {
            if (state[neighbor] != 0) return false;
            state[neighbor] = 1;
            return true;
        };
        const Index end = queue[search_breadth_first<I, Index>(indptr, indices, queue, 0, 1, interrupts, visit) - 1];
        order[n_ordered] = end;
        state[end] = 2;
        Index head = n_ordered++;
        while (head < n_ordered) {
            levels[n_levels++] = head;
            for (const Index level_end = n_ordered; head < level_end; head++) {
                interrupts.check_at(head);
                for (I p = indptr[order[head]]; p < indptr[order[head] + 1]; p++) {
                    if (state[indices[p]] == 1) {
                        state[indices[p]] = 2;
                        order[n_ordered++] = indices[p];
                    }
                }
            }
        }
    }
    levels[n_levels] = n;
    return {std::move(order), std::move(levels).shortened(n_levels + 1)};
}

// Returns the starts of blocks that consist of whole levels and have at least `least` rows.
Owned<Index> cut_levels(Vector<const Index> levels, Index n, Index least) {
    Owned<Index> cuts(levels.size() + 1);
    Index count = 1;
    cuts[0] = 0;
    if (n == 0) return std::move(cuts).shortened(1);
    for (const Index start : levels)
        if (start - cuts[count - 1] >= least) cuts[count++] = start;
    if (n - cuts[count - 1] < least && count > 1) count--;  // a short remainder joins the block before it
    cuts[count] = n;
    return std::move(cuts).shortened(count + 1);
}

// Returns the rows sorted by length inside each block (a stable counting sort), the runs of equal length, and the first run of each
// block.
template <typename I> std::tuple<Owned<Index>, Owned<Index, 2>, Owned<Index>> sort_runs(Vector<const I> indptr,
                                                                                        Vector<const Index> order,
                                                                                        Vector<const Index> blocks) {
    const Index n = order.size();
    const auto length_of = [&](Index i) { return static_cast<Index>(indptr[order[i] + 1] - indptr[order[i]]); };
    Index longest = 0;
    for (Index i = 0; i < n; i++) longest = std::max(longest, static_cast<Index>(indptr[i + 1] - indptr[i]));
    Owned<Index> result(n), block_runs = Owned<Index>::zeros(blocks.size()), counts = Owned<Index>::zeros(longest + 2);
    Owned<Index, 2> runs(n, 4);
    Index n_runs = 0, pointer = 0;
    for (Index b = 0; b + 1 < blocks.size(); b++) {
        Index top = 0;
        for (Index i = blocks[b]; i < blocks[b + 1]; i++) {
            const Index length = length_of(i);
            counts[length + 1]++;
            top = std::max(top, length);
        }
        Index row = blocks[b];
        for (Index length = 0; length <= top; length++) {
            const Index count = counts[length + 1];
            if (count) {
                runs(n_runs, 0) = row;
                runs(n_runs, 1) = row + count;
                runs(n_runs, 2) = length;
                runs(n_runs, 3) = pointer;
                pointer += length * count;
                n_runs++;
            }
            counts[length + 1] = row;  // now the position for the next row of this length
            row += count;
        }
        for (Index i = blocks[b]; i < blocks[b + 1]; i++) result[counts[length_of(i) + 1]++] = order[i];
        std::fill(counts.begin(), counts.begin() + top + 2, 0);
        block_runs[b + 1] = n_runs;
    }
    return {std::move(result), std::move(runs).shortened(n_runs), std::move(block_runs)};
}

// Returns the neighbours in the new numbering, and their values if `data` is not empty. Each row keeps the order of old node
// numbers.
template <typename I> std::tuple<Owned<std::uint32_t>, Owned<double>> renumber(Vector<const I> indptr, Vector<const I> indices,
                                                                               Vector<const double> data, Vector<const Index> order,
                                                                               Matrix<const Index> runs) {
    const Index n = order.size();
    Owned<std::uint32_t> renumbered(n), new_indices(indices.size());
    Owned<double> values(data.size());
    parallel_ranges(n, n, [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) renumbered[order[i]] = static_cast<std::uint32_t>(i);
    });
    const auto copy_runs = [&](Index first_run, Index last_run) {
        for (Index r = first_run; r < last_run; r++) {
            const Index first = runs(r, 0), last = runs(r, 1), length = runs(r, 2);
            Index target = runs(r, 3);
            for (Index i = first; i < last; i++, target += length) {
                const Index source = indptr[order[i]];
                for (Index p = 0; p < length; p++) {
                    new_indices[target + p] = renumbered[indices[source + p]];
                    if (values.size()) values[target + p] = data[source + p];
                }
            }
        }
    };
    parallel_ranges(runs.size(), n, copy_runs, RUNS_PER_TASK);
    return {std::move(new_indices), std::move(values)};
}

// ---- for GPUs: a Hilbert curve through distances from landmarks, neighbours in groups of four ---------------------

// Returns a node at one end of each component, and the component of each node.
template <typename I> std::tuple<Owned<Index>, Owned<std::int32_t>> far_ends(Vector<const I> indptr, Vector<const I> indices) {
    const Index n = indptr.size() - 1;
    Owned<std::int32_t> component = Owned<std::int32_t>::filled(-1, n);
    Owned<Index> queue(n), ends(n);
    Interrupts interrupts;
    std::int32_t count = 0;
    for (Index seed = 0; seed < n; seed++) {
        if (component[seed] >= 0) continue;
        queue[0] = seed;
        component[seed] = count;
        const auto visit = [&](I neighbor, Index) {
            if (component[neighbor] >= 0) return false;
            component[neighbor] = count;
            return true;
        };
        ends[count] = queue[search_breadth_first<I, Index>(indptr, indices, queue, 0, 1, interrupts, visit) - 1];
        count++;
    }
    return {std::move(ends).shortened(count), std::move(component)};
}

// Returns the number of steps from the seed of its component for each node, and the last node that a search from each seed reaches.
template <typename I> std::tuple<Owned<std::int32_t>, Owned<Index>> steps_from(Vector<const I> indptr, Vector<const I> indices,
                                                                               Vector<const Index> seeds) {
    const Index n = indptr.size() - 1;
    Owned<std::int32_t> distance = Owned<std::int32_t>::filled(-1, n);
    Owned<Index> queue(n), last(seeds.size());
    Interrupts interrupts;
    for (Index k = 0; k < seeds.size(); k++) {
        queue[0] = seeds[k];
        distance[seeds[k]] = 0;
        const auto visit = [&](I neighbor, Index node) {
            if (distance[neighbor] >= 0) return false;
            distance[neighbor] = distance[node] + 1;
            return true;
        };
        last[k] = queue[search_breadth_first<I, Index>(indptr, indices, queue, 0, 1, interrupts, visit) - 1];
    }
    return {std::move(distance), std::move(last)};
}

// Returns the node with the largest value in each component; of several such nodes the first.
Owned<Index> largest_nodes(Vector<const std::int32_t> values, Vector<const std::int32_t> component, Index count) {
    Owned<Index> best = Owned<Index>::filled(-1, count);
    for (Index i = 0; i < values.size(); i++)
        if (best[component[i]] < 0 || values[i] > values[best[component[i]]]) best[component[i]] = i;
    return best;
}

// Returns the position of each node along the Hilbert curve. Each component is stretched over the whole curve.
Owned<Index> hilbert_places(Vector<const std::int32_t> x, Vector<const std::int32_t> y, Vector<const std::int32_t> component,
                            Index count, Index bits) {
    const Index side = (Index(1) << bits) - 1;
    Owned<Index, 2> largest = Owned<Index, 2>::filled(1, count, 2);
    for (Index i = 0; i < x.size(); i++) {
        largest(component[i], 0) = std::max<Index>(largest(component[i], 0), x[i]);
        largest(component[i], 1) = std::max<Index>(largest(component[i], 1), y[i]);
    }
    Owned<Index> out(x.size());
    for (Index i = 0; i < x.size(); i++) {
        Index a = x[i] * side / largest(component[i], 0), b = y[i] * side / largest(component[i], 1), position = 0;
        for (Index s = Index(1) << (bits - 1); s > 0; s >>= 1) {
            const Index right = a & s ? 1 : 0, up = b & s ? 1 : 0;
            position += s * s * ((3 * right) ^ up);
            if (up == 0) {
                if (right == 1) {
                    a = side - a;
                    b = side - b;
                }
                std::swap(a, b);
            }
        }
        out[i] = position;
    }
    return out;
}

// Returns the number of neighbours of each row that fit into its quads, and the number of rows with a neighbour too far away for a
// quad. The other neighbours of a row belong to its tail.
template <typename I> std::tuple<Owned<Index>, Index> count_inside(Vector<const I> indptr, Vector<const I> indices,
                                                                   Vector<const Index> order, Vector<const Index> renumbered,
                                                                   Vector<const bool> is_long, Index per_row, Index most) {
    const Index n = order.size();
    Owned<Index> inside = Owned<Index>::zeros(n);
    Owned<std::int8_t> is_far = Owned<std::int8_t>::zeros(n);
    parallel_ranges(n, n, [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            if (is_long[i]) continue;
            const Index start = indptr[order[i]], length = indptr[order[i] + 1] - start;
            const Index room = length <= 4 * per_row ? 4 * per_row : 4 * per_row - 1, wanted = std::min(length, room);
            Index count = 0;
            while (count < wanted && std::abs(renumbered[indices[start + count]] - i) <= most) count++;
            is_far[i] = count < wanted;
            inside[i] = count < length ? std::min(count, 4 * per_row - 1) : count;
        }
    });
    Index n_far = 0;
    for (const std::int8_t far : is_far) n_far += far;
    return {std::move(inside), n_far};
}

// Writes differences of row numbers into quads, (quads, stride, 4). The smallest number of the type marks a row with a tail.
template <typename I, typename D> void fill_quads(Vector<const I> indptr, Vector<const I> indices, Vector<const Index> order,
                                                  Vector<const Index> renumbered, Vector<const Index> inside,
                                                  Vector<const Index> length, Vector<const bool> is_long, Cube<D> out) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            for (Index p = 0; p < inside[i]; p++)
                out(p / 4, i, p % 4) = static_cast<D>(renumbered[indices[indptr[order[i]] + p]] - i);
            if (inside[i] < length[i] && !is_long[i]) out(out.size() - 1, i, 3) = std::numeric_limits<D>::min();
        }
    });
}

// Writes the values of the neighbours in quads, (quads, stride, 4).
template <typename I> void fill_quad_values(Vector<const I> indptr, Vector<const double> data, Vector<const Index> order,
                                            Vector<const Index> inside, Cube<double> out) {
    parallel_ranges(order.size(), order.size(), [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++)
            for (Index p = 0; p < inside[i]; p++) out(p / 4, i, p % 4) = data[indptr[order[i]] + p];
    });
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("breadth_first", &breadth_first<I>, "indptr"_a, "indices"_a, Unlocked());
    m.def("sort_runs", &sort_runs<I>, "indptr"_a, "order"_a, "blocks"_a, Unlocked());
    m.def("renumber", &renumber<I>, "indptr"_a, "indices"_a, "data"_a, "order"_a, "runs"_a, Unlocked());
    m.def("far_ends", &far_ends<I>, "indptr"_a, "indices"_a, Unlocked());
    m.def("steps_from", &steps_from<I>, "indptr"_a, "indices"_a, "seeds"_a, Unlocked());
    m.def("count_inside", &count_inside<I>, "indptr"_a, "indices"_a, "order"_a, "renumbered"_a, "is_long"_a, "per_row"_a, "most"_a,
          Unlocked());
    m.def("fill_quads", &fill_quads<I, std::int16_t>, "indptr"_a, "indices"_a, "order"_a, "renumbered"_a, "inside"_a, "length"_a,
          "is_long"_a, "out"_a, Unlocked());
    m.def("fill_quads", &fill_quads<I, std::int32_t>, "indptr"_a, "indices"_a, "order"_a, "renumbered"_a, "inside"_a, "length"_a,
          "is_long"_a, "out"_a, Unlocked());
    m.def("fill_quad_values", &fill_quad_values<I>, "indptr"_a, "data"_a, "order"_a, "inside"_a, "out"_a, Unlocked());
}

}  // namespace

void bind_layout(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
    m.def("cut_levels", &cut_levels, "levels"_a, "n"_a, "least"_a, Unlocked());
    m.def("largest_nodes", &largest_nodes, "values"_a, "component"_a, "count"_a, Unlocked());
    m.def("hilbert_places", &hilbert_places, "x"_a, "y"_a, "component"_a, "count"_a, "bits"_a, Unlocked());
}

}  // namespace hushgraph
