// Sums over blocks of nodes, and thresholds that keep or drop whole blocks (`blocks.py`).
#include <cmath>
#include <limits>

#include "bins.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Of a block: q, s, tr G and x'G x. Sums (n_scales, n_blocks, 4) hold one after the other.
struct Block {
    double q, s, trace, spread;

    // z = q / s, the least t^2 that drops the block; -1 where none does. The one place where it is rounded.
    double height() const { return s > 0 ? q / s : q == 0 ? 0.0 : -1.0; }

    // 2 x'G x / q - tr G.
    double tilt() const { return 2 * spread / q - trace; }

    // u / z of a block that is kept, 1 of one that is dropped.
    double shrinkage(double u) const {
        const double z = height();
        return u == 0 || z < 0 ? 0.0 : z <= u ? 1.0 : u / z;
    }
};

// The blocks of one row of sums.
Vector<const Block> blocks_of(Matrix<const double> sums) {
    static_assert(sizeof(Block) == 4 * sizeof(double));
    return {reinterpret_cast<const Block*>(sums.data), {sums.size()}, {1}};
}

// q, s, tr G and x'G x of each block, (n_scales, n_blocks, 4), nodes in ascending number. Without weights and bands, q and s alone.
template <typename X, typename W, typename B>
Owned<double, 3> block_sums(Matrix<const X> x, Vector<const std::int32_t> blocks, Optional<const double, 2> scale,
                            Optional<const W, 2> weights, Optional<const B, 3> bands) {
    const Index n = x.shape[1], n_blocks = n ? *std::max_element(blocks.begin(), blocks.end()) + Index(1) : 0;
    Owned<double, 3> sums = Owned<double, 3>::zeros(x.size(), n_blocks, 4);
    parallel_for(x.size(), x.size() * n, [&](Index j) {
        const Matrix<double> out = sums[j];
        const Vector<const X> row = x[j];
        for (Index i = 0; i < n; i++) {
            double* own = &out(blocks[i], 0);
            const double value = row[i];
            own[0] += value * value;
            own[1] += scale ? scale(j, i) * scale(j, i) : 1.0;
            if (weights) own[2] += weights(j, i);
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

// Of a bin of blocks: the sums of q, (edge / z)^2 q, tr G and (edge / z) (2 x'G x / q - tr G), the energy below it, A, B and C at
// its upper edge, a bound that SURE is not below, and whether it may hold the minimum.
struct Bin {
    double energy = 0.0, lifted = 0.0, traces = 0.0, tilted = 0.0, under = 0.0, a = 0.0, b = 0.0, c = 0.0, bound = 0.0;
    bool is_open = false;
};

// The u > 0 with the least SURE (up to its constant) in the open bins, and that SURE: piece by piece from each upper edge down.
std::tuple<double, double> search_bins(Vector<const double> z, Vector<const Index> keys, Vector<const Block> blocks,
                                       Vector<const Bin> bins, Vector<const double> edges, double variance) {
    const auto is_inside = [&](Index i) { return keys[i] >= 0 && bins[keys[i]].is_open; };
    Owned<Index> starts = Owned<Index>::zeros(BINS + 1), filled(BINS);
    for (Index i = 0; i < z.size(); i++)
        if (is_inside(i)) starts[keys[i] + 1]++;
    for (Index k = 0; k < BINS; k++) starts[k + 1] += starts[k], filled[k] = starts[k];
    Owned<Ranked> members(starts[BINS]);
    Owned<double> energies(starts[BINS]);
    for (Index i = 0; i < z.size(); i++)
        if (is_inside(i)) members[filled[keys[i]]++] = {z[i], i};
    double best_u = 0.0, best = INFINITE;
    for (Index k = 0; k < BINS; k++) {
        const Bin& bin = bins[k];
        if (!bin.is_open) continue;
        const Index first = starts[k];
        std::sort(members.begin() + first, members.begin() + starts[k + 1]);
        double energy = 0.0;
        for (Index place = first; place < starts[k + 1]; place++) {
            energy += blocks[members[place].place].q;
            energies[place] = bin.under + energy;
        }
        double a = bin.a, b = bin.b, c = bin.c;  // sums over z > u of (u / z)^2 q, tr G, (u / z) (2 x'G x / q - tr G)
        double before = edges[k + 1];
        for (Index place = starts[k + 1] - 1; place >= first - 1; place--) {
            const bool is_edge = place < first;
            const double below = is_edge ? edges[k] : members[place].size, dropped = is_edge ? bin.under : energies[place];
            const double v = a > 0 ? -variance * c / a : 1.0, r = below / before;
            double value = dropped + v * v * a + 2 * variance * (b + v * c);
            if (r < v && v < 1 && value < best) best_u = std::max(v * before, TINY), best = value;
            a = r * r * a, c = r * c;
            value = dropped + a + 2 * variance * (b + c);
            if (!is_edge && value < best) best_u = std::max(below, TINY), best = value;
            if (is_edge || !(below > 0)) break;
            const Block& block = blocks[members[place].place];
            a = a + block.q, b = b + block.trace, c = c + 2 * block.spread / block.q - block.trace, before = below;
        }
    }
    return {best_u, best};
}

// The u = t^2 with the least SURE, and that SURE; only bins that may hold the minimum are sorted.
std::tuple<double, double> least_sure_of_row(Vector<const Block> blocks, double variance) {
    Owned<double> z(blocks.size());
    double top = -1.0, trace = 0.0, kept = 0.0;
    for (Index i = 0; i < z.size(); i++) {
        z[i] = blocks[i].height();
        top = std::max(top, z[i]);
        trace += blocks[i].trace;
        kept += z[i] < 0 ? blocks[i].trace : 0.0;  // kept whatever the threshold
    }
    const double constant = variance * (2 * kept - trace);
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
        bin.under = energy - bin.energy;
    }
    const double unchanged = 2 * variance * (trace - kept);  // at u = 0
    double a = 0.0, b = 0.0, c = 0.0, least = unchanged;
    for (Index k = BINS - 1; k >= 0; k--) {
        Bin& bin = bins[k];
        bin.a = a, bin.b = b, bin.c = c;
        least = std::min(least, bin.under + bin.energy + a + 2 * variance * (b + c));
        const double r = edges[k] / edges[k + 1], v = std::min(std::max(a > 0 ? -variance * c / a : 1.0, r), 1.0);
        bin.bound = bin.under + bin.lifted + v * v * a + 2 * variance * (b + v * c);  // SURE is at least this in the bin
        a = r * r * a + bin.lifted, b = b + bin.traces, c = r * c + bin.tilted;
    }
    for (Bin& bin : bins) bin.is_open = bin.bound <= least + ROUNDING * (least + 2 * variance * trace);
    const auto [best_u, best] = search_bins(z, keys, blocks, bins, edges, variance);
    if (best < unchanged) return {best_u, best + constant};
    return {0.0, unchanged + constant};
}

// The threshold with the least SURE of each row, and that SURE.
std::tuple<Owned<double>, Owned<double>> least_block_sure(Cube<const double> sums, double variance) {
    Owned<double> t(sums.size()), values(sums.size());
    parallel_for(sums.size(), sums.size() * sums.shape[1], [&](Index j) {
        const auto [u, value] = least_sure_of_row(blocks_of(sums[j]), variance);
        const double root = std::sqrt(u);
        t[j] = root * root >= u ? root : std::nextafter(root, INFINITE);  // so that t^2 still reaches the z it was made of
        values[j] = value;
    });
    return {std::move(t), std::move(values)};
}

// What each block is multiplied by, (n_scales, n_blocks), and the divergence of each row.
std::tuple<Owned<double, 2>, Owned<double>> keep_blocks(Vector<const double> t, Cube<const double> sums) {
    const Index n_blocks = sums.shape[1];
    Owned<double, 2> kept(sums.size(), n_blocks);
    Owned<double> divergence(sums.size());
    parallel_for(sums.size(), sums.size() * n_blocks, [&](Index j) {
        const Vector<const Block> blocks = blocks_of(sums[j]);
        double total = 0.0;
        for (Index b = 0; b < n_blocks; b++) {
            const double share = blocks[b].shrinkage(t[j] * t[j]);
            kept(j, b) = 1 - share;
            if (share < 1) total += kept(j, b) * blocks[b].trace + (share > 0 ? 2 * share * blocks[b].spread / blocks[b].q : 0.0);
        }
        divergence[j] = total;
    });
    return {std::move(kept), std::move(divergence)};
}

// The coefficients of each block times its factor.
template <typename X> Owned<X, 2> multiply_blocks(Matrix<const X> x, Vector<const std::int32_t> blocks, Matrix<const double> kept) {
    const Index n = x.shape[1];
    Owned<X, 2> result(x.size(), n);
    for (Index j = 0; j < x.size(); j++) {
        parallel_ranges(n, x.size() * n, [&](Index lo, Index hi) {
            for (Index i = lo; i < hi; i++) result(j, i) = static_cast<X>(x(j, i) * kept(j, blocks[i]));
        });
    }
    return result;
}

// J_h times each direction, (k, n_scales, n).
template <typename X, typename D> Owned<D, 3> turn_blocks(Matrix<const X> x, Vector<const std::int32_t> blocks,
                                                          Vector<const double> t, Cube<const double> sums,
                                                          Cube<const D> directions) {
    const Index n_scales = x.size(), n = x.shape[1], n_blocks = sums.shape[1], work = n_scales * n;
    Owned<D, 3> result(directions.size(), n_scales, n);
    Owned<double, 2> shares(n_scales, n_blocks);
    parallel_for(n_scales, work, [&](Index j) {
        for (Index b = 0; b < n_blocks; b++) shares(j, b) = blocks_of(sums[j])[b].shrinkage(t[j] * t[j]);
    });
    parallel_for(directions.size() * n_scales, work, [&](Index number) {
        const Index k = number / n_scales, j = number % n_scales;
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
    m.def("multiply_blocks", &multiply_blocks<X>, "x"_a, "blocks"_a, "kept"_a, Unlocked());
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
