// Sums over blocks of nodes, and thresholds that shrink or drop whole blocks (`blocks.py`).
#include <cmath>

#include "bins.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

// The sums of a block: q, s, tr G and x'G x. An array of sums, (n_scales, n_blocks, 4), has one such block after the other.
struct Block {
    double q, s, trace, spread;

    // Returns z = q / s, the smallest t^2 that drops the block, or -1 if no threshold drops it. All functions use this one rounded
    // value.
    double height() const { return s > 0 ? q / s : q == 0 ? 0.0 : -1.0; }

    // Returns 2 x'G x / q - tr G.
    double tilt() const { return 2 * spread / q - trace; }

    // Returns the share u / z that the threshold t^2 = u removes from the block; 1 for a dropped block.
    double shrinkage(double u) const {
        const double z = height();
        return u == 0 || z < 0 ? 0.0 : z <= u ? 1.0 : u / z;
    }
};

// Returns the sums of one scale as blocks.
Vector<const Block> blocks_of(Matrix<const double> sums) {
    static_assert(sizeof(Block) == 4 * sizeof(double));
    return {reinterpret_cast<const Block*>(sums.data), {sums.size()}, {1}};
}

// Returns q, s, tr G and x'G x of each block, (n_scales, n_blocks, 4). Sums go over nodes in ascending order. tr G needs the
// weights, x'G x needs the bands; without them these sums are 0.
template <typename X, typename W, typename B>
Owned<double, 3> block_sums(Matrix<const X> x, Vector<const std::int32_t> blocks, Optional<const double, 2> scale,
                            Optional<const W, 2> weights, Optional<const B, 3> bands) {
    const Index n = x.shape[1], n_blocks = n ? *std::max_element(blocks.begin(), blocks.end()) + Index(1) : 0;
    Owned<double, 3> sums = Owned<double, 3>::zeros(x.size(), n_blocks, 4);
    parallel_for(x.size(), x.size() * n, [&](Index j) {
        const Matrix<double> out = sums[j];
        const Vector<const X> row = x[j];
        for (Index i = 0; i < n; i++) {
            double* block = &out(blocks[i], 0);
            const double value = row[i];
            block[0] += value * value;
            block[1] += scale ? scale(j, i) * scale(j, i) : 1.0;
            if (weights) block[2] += weights(j, i);
        }
        if (!bands) return;
        const double count = static_cast<double>(bands.size());
        Owned<double> dots(n_blocks);
        for (Index k = 0; k < bands.size(); k++) {
            const B* band = &bands(k, j, 0);
            std::fill(dots.begin(), dots.end(), 0.0);
            for (Index i = 0; i < n; i++) dots[blocks[i]] += row[i] * static_cast<double>(band[i]);
            for (Index b = 0; b < n_blocks; b++) out(b, 3) += dots[b] * dots[b] / count;
        }
    });
    return sums;
}

// A bin of blocks. The sums over its blocks: `energy` of q, `lifted` of (edge / z)^2 q, `traces` of tr G, `tilted` of
// (edge / z) (2 x'G x / q - tr G).
struct Bin {
    double energy = 0.0, lifted = 0.0, traces = 0.0, tilted = 0.0;
    double energy_below = 0.0;         // of all lower bins
    double a = 0.0, b = 0.0, c = 0.0;  // A, B and C at the upper edge of the bin
    double bound = 0.0;                // a lower bound of SURE in the bin
    bool is_open = false;              // whether the bin may contain the minimum
};

// Returns the u > 0 with the least SURE in the open bins, and this SURE without its constant. SURE is a parabola between adjacent
// z; each bin is searched from its upper edge down.
std::tuple<double, double> search_bins(Vector<const double> z, Vector<const Index> keys, Vector<const Block> blocks,
                                       Vector<const Bin> bins, Vector<const double> edges, double variance) {
    const auto is_in_open_bin = [&](Index i) { return keys[i] >= 0 && bins[keys[i]].is_open; };
    Owned<Index> starts = Owned<Index>::zeros(BINS + 1);
    for (Index i = 0; i < z.size(); i++)
        if (is_in_open_bin(i)) starts[keys[i] + 1]++;
    Owned<Index> next = start_groups(starts);
    Owned<Ranked> members(starts[BINS]);
    Owned<double> energies(starts[BINS]);
    for (Index i = 0; i < z.size(); i++)
        if (is_in_open_bin(i)) members[next[keys[i]]++] = {z[i], i};
    double best_u = 0.0, best = INFINITE;
    for (Index k = 0; k < BINS; k++) {
        const Bin& bin = bins[k];
        if (!bin.is_open) continue;
        const Index first = starts[k];
        std::sort(members.begin() + first, members.begin() + starts[k + 1]);
        double energy = 0.0;
        for (Index m = first; m < starts[k + 1]; m++) {
            energy += blocks[members[m].position].q;
            energies[m] = bin.energy_below + energy;
        }
        double a = bin.a, b = bin.b, c = bin.c;  // sums over z > u of (u / z)^2 q, tr G, (u / z) (2 x'G x / q - tr G)
        double above = edges[k + 1];             // the upper end of the present parabola
        for (Index m = starts[k + 1] - 1; m >= first - 1; m--) {
            const bool is_edge = m < first;
            const double below = is_edge ? edges[k] : members[m].size, dropped = is_edge ? bin.energy_below : energies[m];
            const double v = a > 0 ? -variance * c / a : 1.0, r = below / above;
            double value = dropped + v * v * a + 2 * variance * (b + v * c);
            if (r < v && v < 1 && value < best) best_u = std::max(v * above, TINY), best = value;
            a = r * r * a, c = r * c;
            value = dropped + a + 2 * variance * (b + c);
            if (!is_edge && value < best) best_u = std::max(below, TINY), best = value;
            if (is_edge || !(below > 0)) break;
            const Block& block = blocks[members[m].position];
            a = a + block.q, b = b + block.trace, c = c + 2 * block.spread / block.q - block.trace, above = below;
        }
    }
    return {best_u, best};
}

// Returns the u = t^2 with the least SURE of a row, and this SURE. Only blocks in bins that may contain the minimum are sorted.
std::tuple<double, double> least_sure_of_row(Vector<const Block> blocks, double variance) {
    Owned<double> z(blocks.size());
    double top = -1.0, trace = 0.0, constant_trace = 0.0;
    for (Index i = 0; i < z.size(); i++) {
        z[i] = blocks[i].height();
        top = std::max(top, z[i]);
        trace += blocks[i].trace;
        constant_trace += z[i] < 0 ? blocks[i].trace : 0.0;  // no threshold changes these blocks
    }
    const double constant = variance * (2 * constant_trace - trace);
    if (!(top > 0)) return {top == 0 ? TINY : 0.0, constant};
    const Index lowest = lowest_bin(top);
    Owned<double> edges = edges_of(lowest, BINS, SHIFT);
    edges[0] = 0.0;
    Owned<Index> keys(z.size());
    Owned<Bin> bins = Owned<Bin>::filled(Bin(), BINS);
    for (Index i = 0; i < z.size(); i++) {
        keys[i] = z[i] >= 0 ? bin_of(z[i], lowest) : -1;
        if (keys[i] < 0) continue;
        Bin& bin = bins[keys[i]];
        bin.energy += blocks[i].q;
        bin.traces += blocks[i].trace;
        if (z[i] > 0) {
            const double r = edges[keys[i]] / z[i];
            bin.lifted += r * r * blocks[i].q;
            bin.tilted += r * blocks[i].tilt();
        }
    }
    double energy = 0.0;
    for (Bin& bin : bins) {
        energy += bin.energy;
        bin.energy_below = energy - bin.energy;
    }
    const double unchanged = 2 * variance * (trace - constant_trace);  // SURE at u = 0, without its constant
    double a = 0.0, b = 0.0, c = 0.0, least = unchanged;
    for (Index k = BINS - 1; k >= 0; k--) {
        Bin& bin = bins[k];
        bin.a = a, bin.b = b, bin.c = c;
        least = std::min(least, bin.energy_below + bin.energy + a + 2 * variance * (b + c));
        const double r = edges[k] / edges[k + 1], v = std::min(std::max(a > 0 ? -variance * c / a : 1.0, r), 1.0);
        bin.bound = bin.energy_below + bin.lifted + v * v * a + 2 * variance * (b + v * c);
        a = r * r * a + bin.lifted, b = b + bin.traces, c = r * c + bin.tilted;
    }
    for (Bin& bin : bins) bin.is_open = bin.bound <= least + ROUNDING * (least + 2 * variance * trace);
    const auto [best_u, best] = search_bins(z, keys, blocks, bins, edges, variance);
    if (best < unchanged) return {best_u, best + constant};
    return {0.0, unchanged + constant};
}

// Returns the threshold with the least SURE of each row, and this SURE.
std::tuple<Owned<double>, Owned<double>> least_block_sure(Cube<const double> sums, double variance) {
    Owned<double> t(sums.size()), values(sums.size());
    parallel_for(sums.size(), sums.size() * sums.shape[1], [&](Index j) {
        const auto [u, value] = least_sure_of_row(blocks_of(sums[j]), variance);
        const double root = std::sqrt(u);
        t[j] = root * root >= u ? root : std::nextafter(root, INFINITE);  // so that t^2 >= u in spite of rounding
        values[j] = value;
    });
    return {std::move(t), std::move(values)};
}

// Returns the factor of each block, (n_scales, n_blocks), and the divergence of each row.
std::tuple<Owned<double, 2>, Owned<double>> keep_blocks(Vector<const double> t, Cube<const double> sums) {
    const Index n_blocks = sums.shape[1];
    Owned<double, 2> factors(sums.size(), n_blocks);
    Owned<double> divergence(sums.size());
    parallel_for(sums.size(), sums.size() * n_blocks, [&](Index j) {
        const Vector<const Block> blocks = blocks_of(sums[j]);
        double total = 0.0;
        for (Index b = 0; b < n_blocks; b++) {
            const double share = blocks[b].shrinkage(t[j] * t[j]);
            factors(j, b) = 1 - share;
            if (share < 1)
                total += factors(j, b) * blocks[b].trace + (share > 0 ? 2 * share * blocks[b].spread / blocks[b].q : 0.0);
        }
        divergence[j] = total;
    });
    return {std::move(factors), std::move(divergence)};
}

// Returns the coefficients, multiplied by the factors of their blocks.
template <typename X> Owned<X, 2> multiply_blocks(Matrix<const X> x, Vector<const std::int32_t> blocks,
                                                  Matrix<const double> factors) {
    const Index n = x.shape[1];
    Owned<X, 2> result(x.size(), n);
    for (Index j = 0; j < x.size(); j++) {
        parallel_ranges(n, x.size() * n, [&](Index lo, Index hi) {
            for (Index i = lo; i < hi; i++) result(j, i) = static_cast<X>(x(j, i) * factors(j, blocks[i]));
        });
    }
    return result;
}

// Returns the Jacobian J_h of the threshold times each direction, (k, n_scales, n).
template <typename X, typename D> Owned<D, 3> turn_blocks(Matrix<const X> x, Vector<const std::int32_t> blocks,
                                                          Vector<const double> t, Cube<const double> sums,
                                                          Cube<const D> directions) {
    const Index n_scales = x.size(), n = x.shape[1], n_blocks = sums.shape[1], work = n_scales * n;
    Owned<D, 3> result(directions.size(), n_scales, n);
    Owned<double, 2> shares(n_scales, n_blocks);
    parallel_for(n_scales, work, [&](Index j) {
        for (Index b = 0; b < n_blocks; b++) shares(j, b) = blocks_of(sums[j])[b].shrinkage(t[j] * t[j]);
    });
    parallel_for(directions.size() * n_scales, work, [&](Index row_number) {
        const Index k = row_number / n_scales, j = row_number % n_scales;
        const Vector<const X> row = x[j];
        const D* direction = &directions(k, j, 0);
        Owned<double> dots = Owned<double>::zeros(n_blocks);
        for (Index i = 0; i < n; i++) dots[blocks[i]] += static_cast<double>(row[i]) * direction[i];
        for (Index b = 0; b < n_blocks; b++) {
            const double share = shares(j, b);
            dots[b] = 0 < share && share < 1 ? 2 * share * dots[b] / sums(j, b, 0) : 0.0;
        }
        for (Index i = 0; i < n; i++)
            result(k, j, i) = static_cast<D>((1 - shares(j, blocks[i])) * direction[i] + dots[blocks[i]] * row[i]);
    });
    return result;
}

template <typename X, typename W, typename B> void bind_sums_of(nb::module_& m) {
    m.def("block_sums", &block_sums<X, W, B>, "x"_a, "blocks"_a, "scale"_a.none(), "weights"_a.none(), "bands"_a.none(),
          Unlocked());
}

template <typename X> void bind_for(nb::module_& m) {
    bind_sums_of<X, double, double>(m);
    bind_sums_of<X, double, float>(m);
    bind_sums_of<X, float, double>(m);
    bind_sums_of<X, float, float>(m);
    m.def("multiply_blocks", &multiply_blocks<X>, "x"_a, "blocks"_a, "factors"_a, Unlocked());
    m.def("turn_blocks", &turn_blocks<X, double>, "x"_a, "blocks"_a, "t"_a, "sums"_a, "directions"_a, Unlocked());
    m.def("turn_blocks", &turn_blocks<X, float>, "x"_a, "blocks"_a, "t"_a, "sums"_a, "directions"_a, Unlocked());
}

}  // namespace

void bind_blocks(nb::module_& m) {
    bind_for<double>(m);
    bind_for<float>(m);
    m.def("least_block_sure", &least_block_sure, "sums"_a, "variance"_a, Unlocked());
    m.def("keep_blocks", &keep_blocks, "t"_a, "sums"_a, Unlocked());
}

}  // namespace hushgraph
