// Thresholds with the least SURE, found with bins (`wavelets/threshold_search.py`), SURE at given thresholds, and the application
// of thresholds.
#include <cmath>
#include <vector>

#include "bins.h"
#include "levels.h"
#include "python.h"
#include "sums.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index FINER = 64;               // finer bins in a bin
constexpr int FINER_SHIFT = 40;           // number of low bits of a float64 that do not belong to the finer bin number
constexpr Index MAX_UNCUT_VALUES = 1024;  // up to this many values in open bins, bins are not cut
constexpr Index WORDS = 9;               // integers of a bin: the high and low units of four sums (`Bin`), and the number of values
constexpr double LEAST_UNIT = 0x1p-900;  // no unit is smaller
constexpr Index SLICE = 512;             // values that stay in the first-level cache
constexpr Index MIN_PIECE_VALUES = 1 << 15;  // values of the smallest piece of a row
constexpr Index PIECES_PER_THREAD = 4;
constexpr Index BATCH_VALUES = 1 << 20;  // values of the rows that are searched together, if these are more rows than threads

// A power of two above every x^2, the high unit of g, and the largest |x| / size.
using Units = std::tuple<double, double, double>;

// The number of values in open bins, SURE at threshold 0, and the least SURE known so far.
using Inside = std::tuple<double, double, double>;

// Functions r -> r^beta for beta = 1, 2 and any other. The compiler can vectorize the simple ones.
struct Same {
    static constexpr bool is_simple = true;
    template <typename T> T operator()(T r) const { return r; }
};
struct Squared {
    static constexpr bool is_simple = true;
    template <typename T> T operator()(T r) const { return r * r; }
};
struct Raised {
    static constexpr bool is_simple = false;
    double beta;
    double operator()(double r) const { return std::pow(r, beta); }
};

// Calls body with the function r -> r^beta.
template <typename F> auto with_power(double beta, F&& body) {
    if (beta == 1.0) return body(Same{});
    if (beta == 2.0) return body(Squared{});
    return body(Raised{beta});
}

// Returns ratio^beta.
double power(double ratio, double beta) {
    return with_power(beta, [&](auto raise) { return static_cast<double>(raise(ratio)); });
}

// The largest size (-1 if there is none), |x|, |g| and |x| / size.
struct Extremes {
    double top = -1.0, largest = 0.0, heaviest = 0.0, widest = 0.0;

    void join(const Extremes& other) {
        top = std::max(top, other.top);
        largest = std::max(largest, other.largest);
        heaviest = std::max(heaviest, other.heaviest);
        widest = std::max(widest, other.widest);
    }
};

// The sizes z of values: given numbers, or |x| if thresholds have no scale.
struct GivenSizes {
    static constexpr bool is_absolute = false;
    const double* z;
    double operator[](Index i) const { return z[i]; }
};
struct AbsoluteSizes {
    static constexpr bool is_absolute = true;
    const double* x;
    double operator[](Index i) const { return std::abs(x[i]); }
};

#define HUSHGRAPH_LOOPS "thresholds.inc"
#include "both_levels.h"

// ---- sums over bins; sums of threads, of a GPU or of parts of a graph can be added --------------------------------------

// Writes the sizes |x|, or |x| / scale. A value with scale 0 is not changed by any threshold; its size is -1, below all candidates
// (0 if x is 0).
void measure_sizes(const double* x, const double* scale, Index count, double* sizes) {
    if (!scale) {
        for (Index i = 0; i < count; i++) sizes[i] = std::abs(x[i]);
        return;
    }
    for (Index i = 0; i < count; i++) {
        const double size = std::abs(x[i]), quotient = size / scale[i];
        sizes[i] = scale[i] > 0 ? quotient : size == 0 ? 0.0 : -1.0;
    }
}

// Returns the sizes of all values.
Owned<double> scaled_sizes(Vector<const double> x, Optional<const double, 1> scale) {
    Owned<double> sizes(x.size());
    measure_sizes(x.data, scale.data, x.size(), sizes.data);
    return sizes;
}

// Joins the extremes of some values into `extremes`. Four lanes are independent of each other, so that no comparison waits for the
// one before.
template <typename Sizes> void join_extremes(Sizes z, const double* x, const double* g, Index count, Extremes& extremes) {
    constexpr int W = 4;
    double top[W], largest[W], heaviest[W], widest[W];
    for (int lane = 0; lane < W; lane++)
        top[lane] = extremes.top, largest[lane] = extremes.largest, heaviest[lane] = extremes.heaviest,
        widest[lane] = extremes.widest;
    const auto larger = [](double a, double b) { return b > a ? b : a; };
    const auto take = [&](Index i, int lane) {
        const double size = std::abs(x[i]), quotient = Sizes::is_absolute ? 1.0 : size / z[i];
        top[lane] = larger(top[lane], z[i]);
        largest[lane] = larger(largest[lane], size);
        heaviest[lane] = larger(heaviest[lane], std::abs(g[i]));
        widest[lane] = larger(widest[lane], z[i] > 0 ? quotient : 0.0);
    };
    Index i = 0;
    for (; i + W <= count; i += W)
        for (int lane = 0; lane < W; lane++) take(i + lane, lane);
    for (; i < count; i++) take(i, 0);
    for (int lane = 0; lane < W; lane++) extremes.join({top[lane], largest[lane], heaviest[lane], widest[lane]});
}

// Returns the members of `Extremes` for all values.
std::tuple<double, double, double, double> extremes(Vector<const double> z, Vector<const double> x, Vector<const double> g) {
    Extremes all;
    join_extremes(GivenSizes{z.data}, x.data, g.data, z.size(), all);
    return {all.top, all.largest, all.heaviest, all.widest};
}

// Returns the smallest power of two above the value, at least LEAST_UNIT; 1 for the value 0.
double power_of_two_above(double value) {
    int exponent;
    std::frexp(value, &exponent);
    return std::max(std::ldexp(1.0, exponent), LEAST_UNIT);
}

// Returns the units for the largest |x|, |g| and |x| / size.
Units units_of(double largest, double heaviest, double widest) {
    return {power_of_two_above(largest * largest), power_of_two_above(heaviest) * LOW_UNIT, widest};
}

// Returns the high unit of x^2 in each bin: 2^-32 times a power of two above all x^2 of the bin. So small terms are as exact as
// large ones.
Owned<double> square_units(Index lowest, const Units& units) {
    const auto [largest_square, weight, widest] = units;
    Owned<double> unit(BINS);
    for (Index k = 0; k < BINS; k++) {
        const double largest = float_of((lowest + k + 1) << SHIFT) * widest;
        const double square = largest * largest * (1 + 0x1p-40);  // a margin for the rounding of sizes
        unit[k] = (square < INFINITE ? std::min(largest_square, power_of_two_above(square)) : largest_square) * LOW_UNIT;
    }
    return unit;
}

// The number of high units in 1, for x^2 in each bin and for g. These powers of two are exact, and so are products with them.
struct PerUnit {
    Owned<double> square;
    double weight;

    PerUnit() = default;
    PerUnit(Index lowest, const Units& units) : square(square_units(lowest, units)), weight(1 / std::get<1>(units)) {
        for (double& unit : square) unit = 1 / unit;
    }
};

// Adds a value to the sums of its bin; r = (edge / z)^beta.
inline void add_value(Index* bin, double x, double g, double r, double per_square, double per_weight) {
    const double square = x * x;
    add_units(square * per_square, bin[0], bin[1]);
    add_units(g * per_weight, bin[2], bin[3]);
    add_units(square * r * r * per_square, bin[4], bin[5]);
    add_units(g * r * per_weight, bin[6], bin[7]);
    bin[8]++;
}

// Adds each value to the sums of its bin. Values with z < 0 are in no bin.
template <typename Sizes> void add_values(Sizes z, const double* x, const double* g, Index count, Index lowest, const PerUnit& per,
                                          double beta, Matrix<Index> sums) {
    with_power(beta, [&](auto raise) {
        for (Index i = 0; i < count; i++) {
            if (!(z[i] >= 0)) continue;
            const Index k = bin_of(z[i], lowest);
            const double edge = k > 0 ? float_of(bits_of(z[i]) >> SHIFT << SHIFT) : 0.0;  // the lower edge of the lowest bin is 0
            add_value(&sums(k, 0), x[i], g[i], raise(z[i] > 0 ? edge / z[i] : 0.0), per.square[k], per.weight);
        }
    });
}

// Adds all values to `sums` (BINS, WORDS).
void add_to_bins(Vector<const double> z, Vector<const double> x, Vector<const double> g, Index lowest, const Units& units,
                 double beta, Matrix<Index> sums) {
    add_values(GivenSizes{z.data}, x.data, g.data, z.size(), lowest, PerUnit(lowest, units), beta, sums);
}

// Returns the finer bin of a size inside its bin.
inline Index finer_bin_of(double size) { return (bits_of(size) >> FINER_SHIFT) & (FINER - 1); }

// Adds the values in open bins to the sums of their finer bins. The lowest bin has no finer bins.
void add_finer_values(Vector<const double> z, Vector<const double> x, Vector<const double> g, Index lowest,
                      Vector<const Index> slots, const PerUnit& per, double beta, Cube<Index> sums) {
    with_power(beta, [&](auto raise) {
        for (Index i = 0; i < z.size(); i++) {
            const Index k = bin_of(z[i], lowest);
            if (!(z[i] >= 0) || slots[k] < 0 || k == 0) continue;
            const double edge = float_of(bits_of(z[i]) >> FINER_SHIFT << FINER_SHIFT);
            add_value(&sums(slots[k], finer_bin_of(z[i]), 0), x[i], g[i], raise(edge / z[i]), per.square[k], per.weight);
        }
    });
}

// Adds all values in open bins to `sums` (open bins, FINER, WORDS).
void add_to_finer(Vector<const double> z, Vector<const double> x, Vector<const double> g, Index lowest, Vector<const Index> slots,
                  const Units& units, double beta, Cube<Index> sums) {
    add_finer_values(z, x, g, lowest, slots, PerUnit(lowest, units), beta, sums);
}

// ---- bins that may contain the minimum ----------------------------------------------------------------------------------

// A bin or finer bin. The sums over its values: `energy` of x^2, `weight` of g, `lifted` of x^2 (edge / z)^2beta, `tilted` of
// g (edge / z)^beta.
struct Bin {
    double energy, weight, lifted, tilted;
    double bound;         // a lower bound of SURE in the bin
    double energy_below;  // of all lower bins
    double a, b, c;       // A, B and C at the upper edge of the bin

    Bin() = default;
    Bin(const Index* units, double per_square, double per_weight) {
        const auto sum_of = [&](Index number, double per_unit) {
            const double unit = 1 / per_unit;  // exact
            return static_cast<double>(units[2 * number]) * unit + static_cast<double>(units[2 * number + 1]) * (unit * LOW_UNIT);
        };
        energy = sum_of(0, per_square), weight = sum_of(1, per_weight);
        lifted = sum_of(2, per_square), tilted = sum_of(3, per_weight);
    }
};

// Sets the bound, the energy below and A, B, C of each bin; returns the least SURE at an edge. `last` holds the energy below all
// these bins, and A, B, C at the upper edge of the last bin.
double bound_bins(Vector<Bin> bins, Vector<const double> edges, const Bin& last, double variance, double beta) {
    double energy = 0.0, least = INFINITE, a = last.a, b = last.b, c = last.c;
    for (Bin& bin : bins) {
        energy += bin.energy;
        bin.energy_below = last.energy_below + (energy - bin.energy);
    }
    for (Index k = bins.size() - 1; k >= 0; k--) {
        Bin& bin = bins[k];
        bin.a = a, bin.b = b, bin.c = c;
        least = std::min(least, bin.energy_below + bin.energy + a + 2 * variance * (b + (beta - 1) * c));  // SURE at the upper edge
        const double r = power(edges[k] / edges[k + 1], beta);
        a = r * r * a, c = r * c;
        bin.bound = bin.energy_below + bin.lifted + a + 2 * variance * (b + (beta - 1) * c);
        a = a + bin.lifted, b = b + bin.weight, c = c + bin.tilted;
    }
    return least;
}

// Returns whether a bin with this bound may contain the minimum.
bool may_contain_minimum(double bound, double least) { return bound <= least + ROUNDING * std::abs(least); }

// Opens the bins that may contain the minimum. Returns (slots, bins, inside): the position of each bin in the list of open bins, or
// -1; for each open bin its number, the energy below it and A, B, C at its upper edge; and `Inside`.
std::tuple<Owned<Index>, Owned<double, 2>, Inside> choose_bins(Matrix<const Index> sums, Index lowest, const PerUnit& per,
                                                               double variance, double beta) {
    Owned<double> edges = edges_of(lowest, BINS, SHIFT);
    edges[0] = 0.0;
    Owned<Bin> all(BINS);
    for (Index k = 0; k < BINS; k++) all[k] = Bin(&sums(k, 0), per.square[k], per.weight);
    Bin last;
    last.energy_below = last.a = last.b = last.c = 0.0;
    double least = bound_bins(all, edges, last, variance, beta);
    const double sure_at_zero = 2 * variance * (all[0].b + all[0].weight);
    least = std::min(least, sure_at_zero);
    Owned<Index> slots = Owned<Index>::filled(-1, BINS);
    Owned<double, 2> bins(BINS, 5);
    Index count = 0, values = 0;
    for (Index k = 0; k < BINS; k++) {
        if (sums(k, 8) == 0 || !may_contain_minimum(all[k].bound, least)) continue;
        slots[k] = count;
        const double row[] = {static_cast<double>(k), all[k].energy_below, all[k].a, all[k].b, all[k].c};
        std::copy(row, row + 5, &bins(count, 0));
        count++;
        values += sums(k, 8);
    }
    return {std::move(slots), std::move(bins).shortened(count), Inside(static_cast<double>(values), sure_at_zero, least)};
}

// Calls `choose_bins` with these units.
std::tuple<Owned<Index>, Owned<double, 2>, Inside> open_bins(Matrix<const Index> sums, Index lowest, const Units& units,
                                                             double variance, double beta) {
    return choose_bins(sums, lowest, PerUnit(lowest, units), variance, beta);
}

// Returns whether open bins contain so many values that cutting them into finer bins saves time.
bool is_cut(const Inside& inside) { return std::get<0>(inside) > MAX_UNCUT_VALUES; }

// Chooses the cells that may contain the minimum. Returns (cells, cell_of): for each cell its upper edge, the energy below it and
// A, B, C at the edge; and the cell of each finer bin, or -1.
//
// A cell is an open finer bin, or an open bin if bins are not cut. The lowest bin is never cut.
std::tuple<Owned<double, 2>, Owned<Index, 2>> choose_cells(Matrix<const double> bins, const Inside& inside, Cube<const Index> finer,
                                                           Index lowest, const PerUnit& per, double variance, double beta) {
    const Index n_bins = bins.size();
    const auto is_whole = [&](Index s) { return !is_cut(inside) || bins(s, 0) == 0; };
    Owned<Bin, 2> parts(is_cut(inside) ? n_bins : 0, FINER);
    double least = std::get<2>(inside);
    for (Index s = 0; s < n_bins; s++) {
        if (is_whole(s)) continue;
        const Index k = static_cast<Index>(bins(s, 0));
        for (Index f = 0; f < FINER; f++) parts(s, f) = Bin(&finer(s, f, 0), per.square[k], per.weight);
        Bin last;
        last.energy_below = bins(s, 1), last.a = bins(s, 2), last.b = bins(s, 3), last.c = bins(s, 4);
        least = std::min(least, bound_bins(parts[s], edges_of((lowest + k) * FINER, FINER, FINER_SHIFT), last, variance, beta));
    }
    Owned<Index, 2> cell_of = Owned<Index, 2>::filled(-1, n_bins, FINER);
    Owned<double, 2> cells(is_cut(inside) ? n_bins * FINER : n_bins, 5);
    Index count = 0;
    const auto add_cell = [&](double edge, double energy_below, double a, double b, double c) {
        const double row[] = {edge, energy_below, a, b, c};
        std::copy(row, row + 5, &cells(count++, 0));
    };
    for (Index s = 0; s < n_bins; s++) {
        const Index number = lowest + static_cast<Index>(bins(s, 0));
        if (is_whole(s)) {
            for (Index f = 0; f < FINER; f++) cell_of(s, f) = count;
            add_cell(float_of((number + 1) << SHIFT), bins(s, 1), bins(s, 2), bins(s, 3), bins(s, 4));
            continue;
        }
        for (Index f = 0; f < FINER; f++) {
            const Bin& part = parts(s, f);
            if (finer(s, f, 8) == 0 || !may_contain_minimum(part.bound, least)) continue;
            cell_of(s, f) = count;
            add_cell(float_of((number * FINER + f + 1) << FINER_SHIFT), part.energy_below, part.a, part.b, part.c);
        }
    }
    return {std::move(cells).shortened(count), std::move(cell_of)};
}

// Calls `choose_cells` with these units.
std::tuple<Owned<double, 2>, Owned<Index, 2>> open_cells(Matrix<const double> bins, const Inside& inside, Cube<const Index> finer,
                                                         Index lowest, const Units& units, double variance, double beta) {
    return choose_cells(bins, inside, finer, lowest, PerUnit(lowest, units), variance, beta);
}

// ---- the search among the values in open bins ---------------------------------------------------------------------------

// Writes the positions of the values in open bins, in ascending order; returns their number.
template <typename Sizes> Index find_open(Sizes z, Index count, Index lowest, const Index* slots, Index* positions) {
    Index n_open = 0;
    for (Index i = 0; i < count; i++) {
        positions[n_open] = i;
        n_open += (z[i] >= 0) & (slots[bin_of(z[i], lowest)] >= 0);
    }
    return n_open;
}

// Returns the positions of the values in open bins, in ascending order.
Owned<Index> places_in_bins(Vector<const double> z, Index lowest, Vector<const Index> slots) {
    Owned<Index> positions(z.size());
    const Index n_open = find_open(GivenSizes{z.data}, z.size(), lowest, slots.data, positions.data);
    return std::move(positions).shortened(n_open);
}

// Returns the cell of each value, or -1.
Owned<Index> cell_numbers(Vector<const double> z, Index lowest, Vector<const Index> slots, Matrix<const Index> cell_of) {
    Owned<Index> numbers(z.size());
    for (Index i = 0; i < z.size(); i++) {
        const Index slot = z[i] >= 0 ? slots[bin_of(z[i], lowest)] : -1;
        numbers[i] = slot >= 0 ? cell_of(slot, finer_bin_of(z[i])) : -1;
    }
    return numbers;
}

// Returns the start of each cell, and the positions of the values, sorted by cell. The values of a cell keep their order.
std::tuple<Owned<Index>, Owned<Index>> places_in_cells(Vector<const Index> numbers, Index n_cells) {
    Owned<Index> starts = Owned<Index>::zeros(n_cells + 1);
    for (const Index cell : numbers)
        if (cell >= 0) starts[cell + 1]++;
    Owned<Index> next = start_groups(starts), positions(starts[n_cells]);
    for (Index i = 0; i < numbers.size(); i++)
        if (numbers[i] >= 0) positions[next[numbers[i]]++] = i;
    return {std::move(starts), std::move(positions)};
}

// Returns the least SURE at the sizes in a cell, and the size. The search goes from the largest size down, as in `sure_at_data`.
std::tuple<double, double> walk_cell(const double* z, const double* x, const double* g, const double* cell, double variance,
                                     double beta, Vector<Ranked> order, double* energies) {
    double best = INFINITE, best_t = 0.0, energy = 0.0;
    for (Index q = 0; q < order.size(); q++) order[q] = {z[q], q};
    std::sort(order.begin(), order.end());
    for (Index q = 0; q < order.size(); q++) {
        const double value = x[order[q].position];
        energy += value * value;
        energies[q] = cell[1] + energy;
    }
    double edge = cell[0], a = cell[2], b = cell[3], c = cell[4];
    for (Index q = order.size() - 1; q >= 0; q--) {
        const auto [size, i] = order[q];
        const double r = edge > 0 ? power(size / edge, beta) : 1.0;
        a = r * r * a, c = r * c;
        const double value = energies[q] + a + 2 * variance * (b + (beta - 1) * c);
        if (value < best) best = value, best_t = std::max(size, TINY);
        a = a + x[i] * x[i], b = b + g[i], c = c + g[i], edge = size;
    }
    return {best, best_t};
}

// Returns the best candidate: 0 or one of the sizes in the cells. The values are sorted by cell.
double least_of_cells(Matrix<const double> cells, Vector<const Index> starts, Vector<const double> z, Vector<const double> x,
                      Vector<const double> g, double sure_at_zero, double variance, double beta) {
    double best = sure_at_zero, best_t = 0.0;
    Index largest = 0;
    for (Index k = 0; k < cells.size(); k++) largest = std::max(largest, starts[k + 1] - starts[k]);
    Owned<Ranked> order(largest);
    Owned<double> energies(largest);
    for (Index k = 0; k < cells.size(); k++) {
        const Index first = starts[k];
        const Vector<Ranked> cell_order{order.data, {starts[k + 1] - first}, {1}};
        const auto [value, t] =
            walk_cell(z.data + first, x.data + first, g.data + first, &cells(k, 0), variance, beta, cell_order, energies.data);
        if (value < best) best = value, best_t = t;
    }
    return best_t;
}

// Returns the values at these positions.
Owned<double> values_at(Vector<const double> values, Vector<const Index> positions) {
    Owned<double> result(positions.size());
    for (Index i = 0; i < positions.size(); i++) result[i] = values[positions[i]];
    return result;
}

// Returns the best candidate for values with known cells.
double least_of_members(Matrix<const double> cells, Vector<const Index> numbers, Vector<const double> z, Vector<const double> x,
                        Vector<const double> g, double sure_at_zero, double variance, double beta) {
    const auto [starts, positions] = places_in_cells(numbers, cells.size());
    return least_of_cells(cells, starts, values_at(z, positions), values_at(x, positions), values_at(g, positions), sure_at_zero,
                          variance, beta);
}

// Returns the best candidate of each row. `known` holds for each row the largest size, the number of open bins, the number of
// values in them, SURE at 0, the least SURE, the number of cells, and the end of its members. Members have a cell, a size, x and g,
// in the order of nodes.
Owned<double> least_of_rows(Matrix<const double> known, Cube<const double> cells, Matrix<const double> members, double variance,
                            double beta) {
    Owned<double> best = Owned<double>::zeros(known.size());
    Interrupts interrupts;
    for (Index j = 0, start = 0; j < known.size(); j++) {
        const double top = known(j, 0);
        const Index end = static_cast<Index>(known(j, 6));
        if (top > 0) {
            const auto members_of = [&](Index field) { return Vector<const double>{&members(field, start), {end - start}, {1}}; };
            Owned<Index> numbers(end - start);
            for (Index i = start; i < end; i++) numbers[i - start] = static_cast<Index>(members(0, i));
            Matrix<const double> row_cells = cells[j];
            row_cells.shape[0] = static_cast<Index>(known(j, 5));
            best[j] =
                least_of_members(row_cells, numbers, members_of(1), members_of(2), members_of(3), known(j, 3), variance, beta);
        } else if (top == 0) {
            best[j] = TINY;
        }
        start = end;
        interrupts.check();
    }
    return best;
}

// ---- the whole search for rows in memory --------------------------------------------------------------------------------

// The search for the best candidate of one row. The public functions are the steps of the search. A step with a piece is called for
// all pieces of the row, in any order, before the next step.
class Search {
  public:
    // `sizes` is memory for |x| / scale, if there is a scale.
    Search(Vector<const double> x, Vector<const double> g, const double* scale, double* sizes, double variance, double beta,
           Index pieces)
        : x_(x), g_(g), scale_(scale), sizes_(sizes), variance_(variance), beta_(beta), extremes_(pieces), starts_(pieces + 1) {}

    void find_extremes(Index piece) {
        Extremes extremes;
        for (Index lo = start_of(piece); lo < start_of(piece + 1); lo += SLICE) {
            const Index count = std::min(SLICE, start_of(piece + 1) - lo);
            if (scale_) measure_sizes(&x_[lo], scale_ + lo, count, sizes_ + lo);
            with_sizes(lo, [&](auto z) { join_extremes(z, &x_[lo], &g_[lo], count, extremes); });
        }
        extremes_[piece] = extremes;
    }

    void choose_units() {
        Extremes all;
        for (const Extremes& extremes : extremes_) all.join(extremes);
        top_ = all.top;
        if (!is_searched()) return;
        lowest_ = lowest_bin(top_);
        per_ = PerUnit(lowest_, units_of(all.largest, all.heaviest, all.widest));
        sums_ = Owned<Index, 3>::zeros(extremes_.size(), BINS, WORDS);
    }

    void sum_bins(Index piece) {
        if (!is_searched()) return;
        const Index lo = start_of(piece), count = start_of(piece + 1) - lo;
        with_sizes(lo, [&](auto z) { add_values(z, &x_[lo], &g_[lo], count, lowest_, per_, beta_, sums_[piece]); });
    }

    void open_row_bins() {
        if (!is_searched()) return;
        Owned<Index, 2> sums = Owned<Index, 2>::zeros(BINS, WORDS);
        for (Index piece = 0; piece < sums_.size(); piece++)
            for (Index word = 0; word < BINS * WORDS; word++) sums.data[word] += sums_[piece].data[word];
        std::tie(slots_, bins_, inside_) = choose_bins(sums, lowest_, per_, variance_, beta_);
        starts_[0] = 0;
        for (Index piece = 0; piece < sums_.size(); piece++) {
            starts_[piece + 1] = starts_[piece];
            for (Index k = 0; k < BINS; k++)
                if (slots_[k] >= 0) starts_[piece + 1] += sums_(piece, k, 8);
        }
        open_ = Owned<double, 2>(3, starts_[sums_.size()]);
        sums_ = Owned<Index, 3>();
    }

    void collect(Index piece) {
        if (!is_searched()) return;
        Index at = starts_[piece], positions[SLICE];
        for (Index lo = start_of(piece); lo < start_of(piece + 1); lo += SLICE) {
            with_sizes(lo, [&](auto z) {
                const Index n_open = find_open(z, std::min(SLICE, start_of(piece + 1) - lo), lowest_, slots_.data, positions);
                for (Index q = 0; q < n_open; q++, at++) {
                    open_(0, at) = z[positions[q]];
                    open_(1, at) = x_[lo + positions[q]];
                    open_(2, at) = g_[lo + positions[q]];
                }
            });
        }
    }

    double least() {
        if (!is_searched()) return top_ == 0 ? TINY : 0.0;
        const Vector<const double> z = open_[0], x = open_[1], g = open_[2];
        Owned<Index, 3> finer = Owned<Index, 3>::zeros(is_cut(inside_) ? bins_.size() : 0, FINER, WORDS);
        if (is_cut(inside_)) add_finer_values(z, x, g, lowest_, slots_, per_, beta_, finer);
        const auto [cells, cell_of] = choose_cells(bins_, inside_, finer, lowest_, per_, variance_, beta_);
        return least_of_members(cells, cell_numbers(z, lowest_, slots_, cell_of), z, x, g, std::get<1>(inside_), variance_, beta_);
    }

    // Returns the best candidate of a row of one piece.
    double search_alone() {
        find_extremes(0);
        choose_units();
        sum_bins(0);
        open_row_bins();
        collect(0);
        return least();
    }

  private:
    bool is_searched() const { return top_ > 0; }

    Index start_of(Index piece) const { return x_.size() * piece / extremes_.size(); }

    // Calls body with the sizes of the values, starting with value `first`.
    template <typename F> void with_sizes(Index first, F&& body) const {
        if (scale_)
            body(GivenSizes{sizes_ + first});
        else
            body(AbsoluteSizes{&x_[first]});
    }

    Vector<const double> x_, g_;
    const double* scale_;
    double* sizes_;
    double variance_, beta_;
    Owned<Extremes> extremes_;  // of each piece
    double top_ = -1.0;
    Index lowest_ = 0;
    PerUnit per_;
    Owned<Index, 3> sums_;  // of each piece
    Owned<Index> slots_;
    Owned<double, 2> bins_;
    Inside inside_;
    Owned<Index> starts_;    // start of each piece in open_
    Owned<double, 2> open_;  // z, x and g of the values in open bins
};

// Returns the candidate with the least SURE of each row.
Owned<double> least_sure(Matrix<const double> x, Matrix<const double> g, Optional<const double, 2> scale, double variance,
                         double beta) {
    const Index count = x.size(), n = x.shape[1], work = count * n;
    const Index batch = std::min(count, std::max<Index>(thread_count(), BATCH_VALUES / std::max<Index>(n, 1)));
    Owned<double> best(count);
    Owned<double, 2> sizes(scale ? batch : 0, n);
    for (Index first = 0; first < count; first += batch) {
        const Index n_rows = std::min(batch, count - first);
        const Index pieces = std::max<Index>(1, std::min(PIECES_PER_THREAD * thread_count() / n_rows, n / MIN_PIECE_VALUES));
        std::vector<Search> rows;
        for (Index j = 0; j < n_rows; j++)
            rows.emplace_back(x[first + j], g[first + j], scale ? scale[first + j].data : nullptr, scale ? sizes[j].data : nullptr,
                              variance, beta, pieces);
        if (pieces == 1) {
            parallel_for(n_rows, work, [&](Index j) { best[first + j] = rows[j].search_alone(); });
            continue;
        }
        parallel_for(n_rows * pieces, work, [&](Index k) { rows[k / pieces].find_extremes(k % pieces); });
        parallel_for(n_rows, work, [&](Index j) { rows[j].choose_units(); });
        parallel_for(n_rows * pieces, work, [&](Index k) { rows[k / pieces].sum_bins(k % pieces); });
        parallel_for(n_rows, work, [&](Index j) { rows[j].open_row_bins(); });
        parallel_for(n_rows * pieces, work, [&](Index k) { rows[k / pieces].collect(k % pieces); });
        parallel_for(n_rows, work, [&](Index j) { best[first + j] = rows[j].least(); });
    }
    return best;
}

// ---- SURE and the true error at given thresholds ------------------------------------------------------------------------

// Calls body(i) for i = n - 1 .. 0, and checks for signals now and then.
template <typename F> void for_descending(Index n, F&& body) {
    Interrupts interrupts;
    for (Index last = n, first; last > 0; last = first) {
        interrupts.check();
        first = std::max<Index>(0, last - STEPS_PER_CHECK);
        for (Index i = last - 1; i >= first; i--) body(i);
    }
}

// Returns the candidates 0, z_0, ..., z_n-1 and SURE without its constant at each candidate. The sizes z ascend.
std::tuple<Owned<double>, Owned<double>> sure_at_data(Vector<const double> z, Vector<const double> x, Vector<const double> g,
                                                      double variance, double beta) {
    const Index n = z.size();
    Owned<double> t(n + 1), values(n + 1);
    double energy = 0.0;
    t[0] = values[0] = 0.0;
    for (Index i = 0; i < n; i++) {
        t[i + 1] = std::max(z[i], TINY);
        energy += x[i] * x[i];
        values[i + 1] = energy;
    }
    with_power(beta, [&](auto raise) {
        double a = 0.0, b = 0.0, c = 0.0;
        for_descending(n, [&](Index i) {
            const double below = i > 0 ? z[i - 1] : 0.0, r = raise(z[i] > 0 ? below / z[i] : 1.0);
            a = r * r * (a + x[i] * x[i]), c = r * (c + g[i]), b = b + g[i];
            values[i] = values[i] + a + 2 * variance * (b + (beta - 1) * c);
        });
        values[0] = 2 * variance * b;  // t = 0 changes no value, not even x = 0
    });
    for (Index i = n - 1; i > 0; i--)  // equal sizes are the same candidate
        if (z[i - 1] == z[i]) values[i] = values[i + 1];
    return {std::move(t), std::move(values)};
}

// Returns the threshold t >= 0 with the least sum of (h_t(x) - f)^2; hard thresholds are 0 or one of the sizes. The sizes z ascend.
//
// With e = |x| - f sgn x and p = |x| (z_i / z)^beta, a value above the threshold costs (e - v p)^2, where v = (t / z_i)^beta.
template <bool HARD> double least_error(Vector<const double> z, Vector<const double> x, Vector<const double> f, double beta) {
    const Index n = z.size();
    const double root = 1 / beta;
    Owned<double> cost_below(n + 1);  // cost of the values up to each candidate, which become 0
    cost_below[0] = 0.0;
    for (Index i = 0; i < n; i++) cost_below[i + 1] = cost_below[i] + f[i] * f[i];
    double best_t = n ? z[n - 1] : 0.0, best = cost_below[n];
    double ee = 0.0, ep = 0.0, pp = 0.0;  // sums over the values above the threshold, p relative to t = z_i
    for_descending(n, [&](Index i) {
        const double size = std::abs(x[i]), e = size - f[i] * std::copysign(1.0, x[i]), below = i > 0 ? z[i - 1] : 0.0;
        ee += e * e, ep += e * size, pp += x[i] * x[i];
        double v = 0.0, r = 1.0, t = below;
        if (!HARD) {
            r = std::pow(z[i] > 0 ? below / z[i] : 1.0, beta);
            v = std::min(std::max(pp > 0 ? ep / pp : 1.0, r), 1.0);
            if (v > r) t = z[i] * std::pow(v, root);
        }
        const double cost = cost_below[i] + ee - 2 * v * ep + v * v * pp;
        const bool is_tie = HARD && i > 0 && below == z[i];  // equal sizes are the same hard threshold
        if (cost < best && !is_tie) best_t = t, best = cost;
        ep = r * ep, pp = r * r * pp;
    });
    return best_t;
}

// Returns `least_error` for this beta; an infinite beta means hard thresholds.
double oracle_threshold(Vector<const double> z, Vector<const double> x, Vector<const double> f, double beta) {
    return std::isinf(beta) ? least_error<true>(z, x, f, beta) : least_error<false>(z, x, f, beta);
}

// Returns SURE of each row at its threshold.
Owned<double> sure_of_rows(Matrix<const double> x, Matrix<const double> g, Optional<const double, 2> scale, Vector<const double> t,
                           double variance, double beta) {
    const Index n = x.shape[1];
    Owned<double> values(x.size());
    parallel_for(x.size(), x.size() * n, [&](Index j) {
        const double* scales = scale ? scale[j].data : nullptr;
        values[j] = with_power(beta, [&](auto raise) {
            return HUSHGRAPH_LEVEL(sure_of_row<decltype(raise)>)(&x(j, 0), &g(j, 0), scales, n, t[j], variance, beta, raise);
        });
    });
    return values;
}

// Replaces F by x (1 - |t / x|^beta)_+ and writes the derivative into `slope`. The power and all later steps have double precision.
template <typename T>
void apply_thresholds(Matrix<T> F, Vector<const T> t, Optional<const T, 2> scale, double beta, Matrix<T> slope) {
    for (Index j = 0; j < F.size(); j++) {
        parallel_ranges(F.shape[1], F.size() * F.shape[1], [&](Index lo, Index hi) {
            with_power(beta, [&](auto raise) {
                HUSHGRAPH_LEVEL(apply_threshold<T, decltype(raise)>)
                (&F(j, lo), scale ? &scale(j, lo) : nullptr, hi - lo, t[j], beta, raise, &slope(j, lo));
            });
        });
    }
}

}  // namespace

void bind_thresholds(nb::module_& m) {
    m.attr("TINY") = TINY;
    m.attr("BINS") = BINS;
    m.attr("FINER") = FINER;
    m.attr("WORDS") = WORDS;
    m.def("scaled_sizes", &scaled_sizes, "x"_a, "scale"_a.none(), Unlocked());
    m.def("extremes", &extremes, "z"_a, "x"_a, "g"_a, Unlocked());
    m.def("lowest_bin", &lowest_bin, "top"_a, Unlocked());
    m.def("units_of", &units_of, "largest"_a, "heaviest"_a, "widest"_a, Unlocked());
    m.def("square_units", &square_units, "lowest"_a, "units"_a, Unlocked());
    m.def("add_to_bins", &add_to_bins, "z"_a, "x"_a, "g"_a, "lowest"_a, "units"_a, "beta"_a, "sums"_a, Unlocked());
    m.def("add_to_finer", &add_to_finer, "z"_a, "x"_a, "g"_a, "lowest"_a, "slots"_a, "units"_a, "beta"_a, "sums"_a, Unlocked());
    m.def("open_bins", &open_bins, "sums"_a, "lowest"_a, "units"_a, "variance"_a, "beta"_a, Unlocked());
    m.def("is_cut", &is_cut, "inside"_a, Unlocked());
    m.def("open_cells", &open_cells, "bins"_a, "inside"_a, "finer"_a, "lowest"_a, "units"_a, "variance"_a, "beta"_a, Unlocked());
    m.def("places_in_bins", &places_in_bins, "z"_a, "lowest"_a, "slots"_a, Unlocked());
    m.def("cell_numbers", &cell_numbers, "z"_a, "lowest"_a, "slots"_a, "cell_of"_a, Unlocked());
    m.def("places_in_cells", &places_in_cells, "numbers"_a, "n_cells"_a, Unlocked());
    m.def("least_of_cells", &least_of_cells, "cells"_a, "starts"_a, "z"_a, "x"_a, "g"_a, "sure_at_zero"_a, "variance"_a, "beta"_a,
          Unlocked());
    m.def("least_of_rows", &least_of_rows, "known"_a, "cells"_a, "members"_a, "variance"_a, "beta"_a, Unlocked());
    m.def("least_sure", &least_sure, "x"_a, "g"_a, "scale"_a.none(), "variance"_a, "beta"_a, Unlocked());
    m.def("sure_at_data", &sure_at_data, "z"_a, "x"_a, "g"_a, "variance"_a, "beta"_a, Unlocked());
    m.def("oracle_threshold", &oracle_threshold, "z"_a, "x"_a, "f"_a, "beta"_a, Unlocked());
    m.def("sure_of_rows", &sure_of_rows, "x"_a, "g"_a, "scale"_a.none(), "t"_a, "variance"_a, "beta"_a, Unlocked());
    m.def("apply_thresholds", &apply_thresholds<float>, "F"_a, "t"_a, "scale"_a.none(), "beta"_a, "slope"_a, Unlocked());
    m.def("apply_thresholds", &apply_thresholds<double>, "F"_a, "t"_a, "scale"_a.none(), "beta"_a, "slope"_a, Unlocked());
}

}  // namespace hushgraph
