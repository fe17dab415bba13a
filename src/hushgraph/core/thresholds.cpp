// The thresholds of least SURE in bins (`sure_bins.py`), SURE at given thresholds, and what thresholds make of coefficients.
#include <cmath>
#include <limits>
#include <vector>

#include "bins.h"
#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index FINER = 64;              // finer bins into which a bin is cut
constexpr int FINER_SHIFT = 40;          // bits of a float64 below those that say its finer bin
constexpr Index FEW = 1024;              // values in open bins up to which bins are not cut
constexpr Index WORDS = 9;               // of a bin: the high and low units of four sums (`Bin`), and the number of values
constexpr double LOW_UNIT = 0x1p-32;     // in high units
constexpr double LEAST_UNIT = 0x1p-900;  // no unit is smaller
constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr Index SLICE = 512;            // values that stay in the first-level cache
constexpr Index LEAST_PIECE = 1 << 15;  // values of a row that are worth a thread
constexpr Index PIECES_PER_THREAD = 4;
constexpr Index TOGETHER = 1 << 20;  // values of rows searched side by side, if these are more rows than threads

// A power of two above every x^2, the high unit of g, and the largest |x| over size.
using Units = std::tuple<double, double, double>;

// How many values the open bins hold, SURE at 0, and the least SURE known so far.
using Inside = std::tuple<double, double, double>;

// r -> r^beta for beta 1, 2 and any other; several of the simple ones can be computed at once.
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

// Calls body with the one of them that fits.
template <typename F> auto with_power(double beta, F&& body) {
    if (beta == 1.0) return body(Same{});
    if (beta == 2.0) return body(Squared{});
    return body(Raised{beta});
}

// ratio^beta.
double power(double ratio, double beta) {
    return with_power(beta, [&](auto raise) { return static_cast<double>(raise(ratio)); });
}

// The largest size (-1 if there is none), |x|, |g|, and |x| over size.
struct Extremes {
    double top = -1.0, largest = 0.0, heaviest = 0.0, widest = 0.0;

    void join(const Extremes& other) {
        top = std::max(top, other.top);
        largest = std::max(largest, other.largest);
        heaviest = std::max(heaviest, other.heaviest);
        widest = std::max(widest, other.widest);
    }
};

// The sizes z of values: numbers of their own, or |x| where thresholds have no scale.
struct GivenSizes {
    static constexpr bool plain = false;
    const double* z;
    double operator[](Index i) const { return z[i]; }
};
struct PlainSizes {
    static constexpr bool plain = true;
    const double* x;
    double operator[](Index i) const { return std::abs(x[i]); }
};

#define HUSHGRAPH_LOOPS "thresholds.inc"
#include "both_levels.h"

// ---- sums that add up: over threads, over a GPU, over parts of a graph --------------------------------------------------

// |x|, or |x| / scale; scale 0 is never reached by a threshold: -1, out of the way, below every candidate.
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

// The sizes of all values.
Owned<double> scaled_sizes(Vector<const double> x, Optional<const double, 1> scale) {
    Owned<double> sizes(x.size());
    measure_sizes(x.data, scale.data, x.size(), sizes.data);
    return sizes;
}

// Joins the extremes of these values to those found so far; four side by side, so that none waits for another.
template <typename Sizes> void join_extremes(Sizes z, const double* x, const double* g, Index count, Extremes& found) {
    constexpr int W = 4;
    double top[W], largest[W], heaviest[W], widest[W];
    for (int lane = 0; lane < W; lane++)
        top[lane] = found.top, largest[lane] = found.largest, heaviest[lane] = found.heaviest, widest[lane] = found.widest;
    const auto larger = [](double a, double b) { return b > a ? b : a; };
    const auto take = [&](Index i, int lane) {
        const double size = std::abs(x[i]), quotient = Sizes::plain ? 1.0 : size / z[i];
        top[lane] = larger(top[lane], z[i]);
        largest[lane] = larger(largest[lane], size);
        heaviest[lane] = larger(heaviest[lane], std::abs(g[i]));
        widest[lane] = larger(widest[lane], z[i] > 0 ? quotient : 0.0);
    };
    Index i = 0;
    for (; i + W <= count; i += W)
        for (int lane = 0; lane < W; lane++) take(i + lane, lane);
    for (; i < count; i++) take(i, 0);
    for (int lane = 0; lane < W; lane++) found.join({top[lane], largest[lane], heaviest[lane], widest[lane]});
}

// The members of `Extremes` for all values.
std::tuple<double, double, double, double> extremes(Vector<const double> z, Vector<const double> x, Vector<const double> g) {
    Extremes found;
    join_extremes(GivenSizes{z.data}, x.data, g.data, z.size(), found);
    return {found.top, found.largest, found.heaviest, found.widest};
}

// The least power of two above the value, but at least LEAST_UNIT; 1 above 0.
double power_of_two_above(double value) {
    int exponent;
    std::frexp(value, &exponent);
    return std::max(std::ldexp(1.0, exponent), LEAST_UNIT);
}

// What the units follow from.
Units units_of(double largest, double heaviest, double widest) {
    return {power_of_two_above(largest * largest), power_of_two_above(heaviest) * LOW_UNIT, widest};
}

// The high unit of x^2 in each bin: 2^-32 of a power of two above all there. So small terms are as exact as large ones.
Owned<double> square_units(Index lowest, const Units& units) {
    const auto [most_of_all, weight, widest] = units;
    Owned<double> found(BINS);
    for (Index k = 0; k < BINS; k++) {
        const double most = float_of((lowest + k + 1) << SHIFT) * widest;
        const double square = most * most * (1 + 0x1p-40);  // room for the rounding of sizes
        found[k] = (square < INFINITE ? std::min(most_of_all, power_of_two_above(square)) : most_of_all) * LOW_UNIT;
    }
    return found;
}

// How many high units are in 1, for x^2 in each bin and for g: exact, as is what they multiply.
struct PerUnit {
    Owned<double> square;
    double weight;

    PerUnit() = default;
    PerUnit(Index lowest, const Units& units) : square(square_units(lowest, units)), weight(1 / std::get<1>(units)) {
        for (double& unit : square) unit = 1 / unit;
    }
};

// Adds the high units in a value, and of what is left the low ones: exact but for less than one of these.
inline void count_value(Index* own, double value) {
    const Index high = static_cast<Index>(value);
    own[0] += high;
    own[1] += static_cast<Index>((value - static_cast<double>(high)) * (1 / LOW_UNIT));
}

// Adds a value to the words of its bin; r = (edge / z)^beta.
inline void add_value(Index* own, double x, double g, double r, double per_square, double per_weight) {
    const double square = x * x;
    count_value(own, square * per_square);
    count_value(own + 2, g * per_weight);
    count_value(own + 4, square * r * r * per_square);
    count_value(own + 6, g * r * per_weight);
    own[8]++;
}

// Adds each value to its bin; z < 0 belongs nowhere.
template <typename Sizes> void add_values(Sizes z, const double* x, const double* g, Index count, Index lowest, const PerUnit& per,
                                          double beta, Matrix<Index> sums) {
    with_power(beta, [&](auto raise) {
        for (Index i = 0; i < count; i++) {
            if (!(z[i] >= 0)) continue;
            const Index k = bin_of(z[i], lowest);
            const double edge = k > 0 ? float_of(bits_of(z[i]) >> SHIFT << SHIFT) : 0.0;  // the lowest bin begins at 0
            add_value(&sums(k, 0), x[i], g[i], raise(z[i] > 0 ? edge / z[i] : 0.0), per.square[k], per.weight);
        }
    });
}

// Adds the values to `sums` (BINS, WORDS).
void add_to_bins(Vector<const double> z, Vector<const double> x, Vector<const double> g, Index lowest, const Units& units,
                 double beta, Matrix<Index> sums) {
    add_values(GivenSizes{z.data}, x.data, g.data, z.size(), lowest, PerUnit(lowest, units), beta, sums);
}

// The finer bin of a size in its bin.
inline Index finer_bin_of(double size) { return (bits_of(size) >> FINER_SHIFT) & (FINER - 1); }

// Adds the values of open bins to their finer ones. The lowest bin has none.
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

// Adds the values to `sums` (open bins, FINER, WORDS).
void add_to_finer(Vector<const double> z, Vector<const double> x, Vector<const double> g, Index lowest, Vector<const Index> slots,
                  const Units& units, double beta, Cube<Index> sums) {
    add_finer_values(z, x, g, lowest, slots, PerUnit(lowest, units), beta, sums);
}

// ---- where the minimum may be -------------------------------------------------------------------------------------------

// Of a bin or finer bin: the sums of x^2, g, x^2 (edge / z)^2beta and g (edge / z)^beta, a bound that SURE is not below, the energy
// below the bin, and A, B, C at its upper edge.
struct Bin {
    double energy, weight, lifted, tilted, bound, under, a, b, c;

    Bin() = default;
    Bin(const Index* words, double per_square, double per_weight) {
        const auto in_floats = [&](Index what, double per_unit) {
            const double unit = 1 / per_unit;  // exact
            return static_cast<double>(words[2 * what]) * unit + static_cast<double>(words[2 * what + 1]) * (unit * LOW_UNIT);
        };
        energy = in_floats(0, per_square), weight = in_floats(1, per_weight);
        lifted = in_floats(2, per_square), tilted = in_floats(3, per_weight);
    }
};

// Fills in the bounds, energies and A, B, C of bins, and returns the least SURE at an edge. `last` holds the energy below all of
// the bins, and A, B, C at the upper edge of the last one.
double bound_bins(Vector<Bin> bins, Vector<const double> edges, const Bin& last, double variance, double beta) {
    double energy = 0.0, least = INFINITE, a = last.a, b = last.b, c = last.c;
    for (Bin& bin : bins) {
        energy += bin.energy;
        bin.under = last.under + (energy - bin.energy);
    }
    for (Index k = bins.size() - 1; k >= 0; k--) {
        Bin& bin = bins[k];
        bin.a = a, bin.b = b, bin.c = c;
        least = std::min(least, bin.under + bin.energy + a + 2 * variance * (b + (beta - 1) * c));  // at the edge itself
        const double r = power(edges[k] / edges[k + 1], beta);
        a = r * r * a, c = r * c;
        bin.bound = bin.under + bin.lifted + a + 2 * variance * (b + (beta - 1) * c);
        a = a + bin.lifted, b = b + bin.weight, c = c + bin.tilted;
    }
    return least;
}

// Whether a bin of that bound may hold a minimum.
bool may_hold(double bound, double least) { return bound <= least + ROUNDING * std::abs(least); }

// (slots, bins, inside): the place of each bin among the open ones, or -1; of each open bin its number, the energy below it and
// A, B, C at its upper edge; and `Inside`.
std::tuple<Owned<Index>, Owned<double, 2>, Inside> choose_bins(Matrix<const Index> sums, Index lowest, const PerUnit& per,
                                                               double variance, double beta) {
    Owned<double> edges = edges_of(lowest, BINS, SHIFT);
    edges[0] = 0.0;
    Owned<Bin> all(BINS);
    for (Index k = 0; k < BINS; k++) all[k] = Bin(&sums(k, 0), per.square[k], per.weight);
    Bin last;
    last.under = last.a = last.b = last.c = 0.0;
    double least = bound_bins(all, edges, last, variance, beta);
    const double sure_at_zero = 2 * variance * (all[0].b + all[0].weight);
    least = std::min(least, sure_at_zero);
    Owned<Index> slots = Owned<Index>::filled(-1, BINS);
    Owned<double, 2> bins(BINS, 5);
    Index count = 0, values = 0;
    for (Index k = 0; k < BINS; k++) {
        if (sums(k, 8) == 0 || !may_hold(all[k].bound, least)) continue;
        slots[k] = count;
        const double known[] = {static_cast<double>(k), all[k].under, all[k].a, all[k].b, all[k].c};
        std::copy(known, known + 5, &bins(count, 0));
        count++;
        values += sums(k, 8);
    }
    return {std::move(slots), std::move(bins).shortened(count), Inside(static_cast<double>(values), sure_at_zero, least)};
}

// The same for these units.
std::tuple<Owned<Index>, Owned<double, 2>, Inside> open_bins(Matrix<const Index> sums, Index lowest, const Units& units,
                                                             double variance, double beta) {
    return choose_bins(sums, lowest, PerUnit(lowest, units), variance, beta);
}

// Whether open bins hold so many values that it pays to cut them.
bool is_cut(const Inside& inside) { return std::get<0>(inside) > FEW; }

// (cells, cell_of): of each cell its upper edge, the energy below it and A, B, C there; and the cell of each finer bin, or -1.
//
// A cell is an open finer bin, or a whole bin if bins are not cut; the lowest never is.
std::tuple<Owned<double, 2>, Owned<Index, 2>> choose_cells(Matrix<const double> bins, const Inside& inside, Cube<const Index> finer,
                                                           Index lowest, const PerUnit& per, double variance, double beta) {
    const Index n_bins = bins.size();
    const auto stays_whole = [&](Index s) { return !is_cut(inside) || bins(s, 0) == 0; };
    Owned<Bin, 2> parts(is_cut(inside) ? n_bins : 0, FINER);
    double least = std::get<2>(inside);
    for (Index s = 0; s < n_bins; s++) {
        if (stays_whole(s)) continue;
        const Index k = static_cast<Index>(bins(s, 0));
        for (Index f = 0; f < FINER; f++) parts(s, f) = Bin(&finer(s, f, 0), per.square[k], per.weight);
        Bin last;
        last.under = bins(s, 1), last.a = bins(s, 2), last.b = bins(s, 3), last.c = bins(s, 4);
        least = std::min(least, bound_bins(parts[s], edges_of((lowest + k) * FINER, FINER, FINER_SHIFT), last, variance, beta));
    }
    Owned<Index, 2> cell_of = Owned<Index, 2>::filled(-1, n_bins, FINER);
    Owned<double, 2> cells(is_cut(inside) ? n_bins * FINER : n_bins, 5);
    Index count = 0;
    const auto add_cell = [&](double edge, double under, double a, double b, double c) {
        const double known[] = {edge, under, a, b, c};
        std::copy(known, known + 5, &cells(count++, 0));
    };
    for (Index s = 0; s < n_bins; s++) {
        const Index number = lowest + static_cast<Index>(bins(s, 0));
        if (stays_whole(s)) {
            for (Index f = 0; f < FINER; f++) cell_of(s, f) = count;
            add_cell(float_of((number + 1) << SHIFT), bins(s, 1), bins(s, 2), bins(s, 3), bins(s, 4));
            continue;
        }
        for (Index f = 0; f < FINER; f++) {
            const Bin& part = parts(s, f);
            if (finer(s, f, 8) == 0 || !may_hold(part.bound, least)) continue;
            cell_of(s, f) = count;
            add_cell(float_of((number * FINER + f + 1) << FINER_SHIFT), part.under, part.a, part.b, part.c);
        }
    }
    return {std::move(cells).shortened(count), std::move(cell_of)};
}

// The same for these units.
std::tuple<Owned<double, 2>, Owned<Index, 2>> open_cells(Matrix<const double> bins, const Inside& inside, Cube<const Index> finer,
                                                         Index lowest, const Units& units, double variance, double beta) {
    return choose_cells(bins, inside, finer, lowest, PerUnit(lowest, units), variance, beta);
}

// ---- value by value -----------------------------------------------------------------------------------------------------

// Writes the places of values in open bins, in their order, and returns how many there are.
template <typename Sizes> Index find_open(Sizes z, Index count, Index lowest, const Index* slots, Index* places) {
    Index found = 0;
    for (Index i = 0; i < count; i++) {
        places[found] = i;
        found += (z[i] >= 0) & (slots[bin_of(z[i], lowest)] >= 0);
    }
    return found;
}

// The places of values in open bins, in their order.
Owned<Index> places_in_bins(Vector<const double> z, Index lowest, Vector<const Index> slots) {
    Owned<Index> places(z.size());
    const Index found = find_open(GivenSizes{z.data}, z.size(), lowest, slots.data, places.data);
    return std::move(places).shortened(found);
}

// The cell of each value, or -1.
Owned<Index> cell_numbers(Vector<const double> z, Index lowest, Vector<const Index> slots, Matrix<const Index> cell_of) {
    Owned<Index> numbers(z.size());
    for (Index i = 0; i < z.size(); i++) {
        const Index slot = z[i] >= 0 ? slots[bin_of(z[i], lowest)] : -1;
        numbers[i] = slot >= 0 ? cell_of(slot, finer_bin_of(z[i])) : -1;
    }
    return numbers;
}

// Where the values of each cell start, and the places of them, each in the order they came.
std::tuple<Owned<Index>, Owned<Index>> places_in_cells(Vector<const Index> numbers, Index n_cells) {
    Owned<Index> starts = Owned<Index>::zeros(n_cells + 1), filled(n_cells + 1);
    for (const Index cell : numbers)
        if (cell >= 0) starts[cell + 1]++;
    for (Index cell = 0; cell < n_cells; cell++) starts[cell + 1] += starts[cell];
    std::copy(starts.begin(), starts.end(), filled.begin());
    Owned<Index> places(starts[n_cells]);
    for (Index i = 0; i < numbers.size(); i++)
        if (numbers[i] >= 0) places[filled[numbers[i]]++] = i;
    return {std::move(starts), std::move(places)};
}

// The least SURE at one of the values of a cell, from the largest down, as in `sure_at_data`; and that value.
std::tuple<double, double> walk_cell(const double* z, const double* x, const double* g, const double* cell, double variance,
                                     double beta, Vector<Ranked> order, double* energies) {
    double best = INFINITE, best_t = 0.0, energy = 0.0;
    for (Index q = 0; q < order.size(); q++) order[q] = {z[q], q};
    std::sort(order.begin(), order.end());
    for (Index q = 0; q < order.size(); q++) {
        const double value = x[order[q].place];
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

// The best candidate among 0 and the values of cells, which come cell after cell.
double least_of_cells(Matrix<const double> cells, Vector<const Index> starts, Vector<const double> z, Vector<const double> x,
                      Vector<const double> g, double sure_at_zero, double variance, double beta) {
    double best = sure_at_zero, best_t = 0.0;
    Index most = 0;
    for (Index k = 0; k < cells.size(); k++) most = std::max(most, starts[k + 1] - starts[k]);
    Owned<Ranked> order(most);
    Owned<double> energies(most);
    for (Index k = 0; k < cells.size(); k++) {
        const Index first = starts[k];
        const Vector<Ranked> own{order.data, {starts[k + 1] - first}, {1}};
        const auto [value, t] =
            walk_cell(z.data + first, x.data + first, g.data + first, &cells(k, 0), variance, beta, own, energies.data);
        if (value < best) best = value, best_t = t;
    }
    return best_t;
}

// The values at these places.
Owned<double> taken(Vector<const double> values, Vector<const Index> places) {
    Owned<double> found(places.size());
    for (Index i = 0; i < places.size(); i++) found[i] = values[places[i]];
    return found;
}

// The best candidate of values whose cells are known.
double least_of_members(Matrix<const double> cells, Vector<const Index> numbers, Vector<const double> z, Vector<const double> x,
                        Vector<const double> g, double sure_at_zero, double variance, double beta) {
    const auto [starts, places] = places_in_cells(numbers, cells.size());
    return least_of_cells(cells, starts, taken(z, places), taken(x, places), taken(g, places), sure_at_zero, variance, beta);
}

// The best candidate of each row. Of a row are known its largest size, how many bins are open and values in them, SURE at 0, the
// least bound, how many cells there are, and where its members end; members have a cell, a size, x and g, in the order of nodes.
Owned<double> least_of_rows(Matrix<const double> known, Cube<const double> cells, Matrix<const double> members, double variance,
                            double beta) {
    Owned<double> found = Owned<double>::zeros(known.size());
    Interrupts interrupts;
    for (Index j = 0, start = 0; j < known.size(); j++) {
        const double top = known(j, 0);
        const Index end = static_cast<Index>(known(j, 6));
        if (top > 0) {
            const auto own = [&](Index what) { return Vector<const double>{&members(what, start), {end - start}, {1}}; };
            Owned<Index> numbers(end - start);
            for (Index i = start; i < end; i++) numbers[i - start] = static_cast<Index>(members(0, i));
            Matrix<const double> here = cells[j];
            here.shape[0] = static_cast<Index>(known(j, 5));
            found[j] = least_of_members(here, numbers, own(1), own(2), own(3), known(j, 3), variance, beta);
        } else if (top == 0) {
            found[j] = TINY;
        }
        start = end;
        interrupts.look();
    }
    return found;
}

// ---- all of it for rows in memory ---------------------------------------------------------------------------------------

// The search for the best candidate of one row. Each step is done for all pieces of the row, in any order, before the next one.
class Search {
  public:
    // `sizes` is room for |x| / scale where there is a scale.
    Search(Vector<const double> x, Vector<const double> g, const double* scale, double* sizes, double variance, double beta,
           Index pieces)
        : x_(x), g_(g), scale_(scale), sizes_(sizes), variance_(variance), beta_(beta), extremes_(pieces), starts_(pieces + 1) {}

    void find_extremes(Index piece) {
        Extremes found;
        for (Index lo = start_of(piece); lo < start_of(piece + 1); lo += SLICE) {
            const Index count = std::min(SLICE, start_of(piece + 1) - lo);
            if (scale_) measure_sizes(&x_[lo], scale_ + lo, count, sizes_ + lo);
            with_sizes(lo, [&](auto z) { join_extremes(z, &x_[lo], &g_[lo], count, found); });
        }
        extremes_[piece] = found;
    }

    void choose_units() {
        Extremes found;
        for (const Extremes& one : extremes_) found.join(one);
        top_ = found.top;
        if (!is_searched()) return;
        lowest_ = lowest_bin(top_);
        per_ = PerUnit(lowest_, units_of(found.largest, found.heaviest, found.widest));
        sums_ = Owned<Index, 3>::zeros(extremes_.size(), BINS, WORDS);
    }

    void sum_bins(Index piece) {
        if (!is_searched()) return;
        const Index lo = start_of(piece), count = start_of(piece + 1) - lo;
        with_sizes(lo, [&](auto z) { add_values(z, &x_[lo], &g_[lo], count, lowest_, per_, beta_, sums_[piece]); });
    }

    void open() {
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
        Index at = starts_[piece], places[SLICE];
        for (Index lo = start_of(piece); lo < start_of(piece + 1); lo += SLICE) {
            with_sizes(lo, [&](auto z) {
                const Index found = find_open(z, std::min(SLICE, start_of(piece + 1) - lo), lowest_, slots_.data, places);
                for (Index q = 0; q < found; q++, at++) {
                    open_(0, at) = z[places[q]];
                    open_(1, at) = x_[lo + places[q]];
                    open_(2, at) = g_[lo + places[q]];
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

    // All steps for a row of one piece.
    double search_alone() {
        find_extremes(0);
        choose_units();
        sum_bins(0);
        open();
        collect(0);
        return least();
    }

  private:
    bool is_searched() const { return top_ > 0; }

    Index start_of(Index piece) const { return x_.size() * piece / extremes_.size(); }

    // Calls body with the sizes of the values from number `first` on.
    template <typename F> void with_sizes(Index first, F&& body) const {
        if (scale_)
            body(GivenSizes{sizes_ + first});
        else
            body(PlainSizes{&x_[first]});
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
    Owned<Index> starts_;    // of the values of each piece that are in open bins
    Owned<double, 2> open_;  // their z, x and g
};

// For each row the candidate with the least SURE.
Owned<double> least_sure(Matrix<const double> x, Matrix<const double> g, Optional<const double, 2> scale, double variance,
                         double beta) {
    const Index count = x.size(), n = x.shape[1], work = count * n;
    const Index together = std::min(count, std::max<Index>(thread_count(), TOGETHER / std::max<Index>(n, 1)));
    Owned<double> best(count);
    Owned<double, 2> sizes(scale ? together : 0, n);
    for (Index first = 0; first < count; first += together) {
        const Index here = std::min(together, count - first);
        const Index pieces = std::max<Index>(1, std::min(PIECES_PER_THREAD * thread_count() / here, n / LEAST_PIECE));
        std::vector<Search> rows;
        for (Index j = 0; j < here; j++)
            rows.emplace_back(x[first + j], g[first + j], scale ? scale[first + j].data : nullptr, scale ? sizes[j].data : nullptr,
                              variance, beta, pieces);
        if (pieces == 1) {
            parallel_for(here, work, [&](Index j) { best[first + j] = rows[j].search_alone(); });
            continue;
        }
        parallel_for(here * pieces, work, [&](Index k) { rows[k / pieces].find_extremes(k % pieces); });
        parallel_for(here, work, [&](Index j) { rows[j].choose_units(); });
        parallel_for(here * pieces, work, [&](Index k) { rows[k / pieces].sum_bins(k % pieces); });
        parallel_for(here, work, [&](Index j) { rows[j].open(); });
        parallel_for(here * pieces, work, [&](Index k) { rows[k / pieces].collect(k % pieces); });
        parallel_for(here, work, [&](Index j) { best[first + j] = rows[j].least(); });
    }
    return best;
}

// ---- SURE and the true error at given thresholds ------------------------------------------------------------------------

// body(i) for i = n - 1 .. 0, and a look for Ctrl-C now and then.
template <typename F> void downwards(Index n, F&& body) {
    constexpr Index stretch = 1 << 16;
    Interrupts interrupts;
    for (Index end = n; end > 0; end = std::max<Index>(0, end - stretch)) {
        interrupts.look();
        for (Index i = end - 1; i >= std::max<Index>(0, end - stretch); i--) body(i);
    }
}

// Candidates 0, z_0, ..., z_n-1 and SURE without its constant at each; z ascend.
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
        downwards(n, [&](Index i) {
            const double below = i > 0 ? z[i - 1] : 0.0, r = raise(z[i] > 0 ? below / z[i] : 1.0);
            a = r * r * (a + x[i] * x[i]), c = r * (c + g[i]), b = b + g[i];
            values[i] = values[i] + a + 2 * variance * (b + (beta - 1) * c);
        });
        values[0] = 2 * variance * b;  // t = 0 is the identity, also where x = 0
    });
    for (Index i = n - 1; i > 0; i--)  // a threshold takes all equal values or none
        if (z[i - 1] == z[i]) values[i] = values[i + 1];
    return {std::move(t), std::move(values)};
}

// The threshold with the least sum of (h_t(x) - f)^2, over all t >= 0 (over data values and 0 for hard thresholds); z ascend.
//
// With e = |x| - f sgn x and p = |x| (z_i / z)^beta, active terms cost (e - v p)^2, v = (t / z_i)^beta.
template <bool HARD> double least_error(Vector<const double> z, Vector<const double> x, Vector<const double> f, double beta) {
    const Index n = z.size();
    const double root = 1 / beta;
    Owned<double> killed(n + 1);  // cost of the values at or below each candidate
    killed[0] = 0.0;
    for (Index i = 0; i < n; i++) killed[i + 1] = killed[i] + f[i] * f[i];
    double best_t = n ? z[n - 1] : 0.0, best = killed[n];
    double ee = 0.0, ep = 0.0, pp = 0.0;  // sums over active values, p relative to t = z_i
    downwards(n, [&](Index i) {
        const double size = std::abs(x[i]), e = size - f[i] * std::copysign(1.0, x[i]), below = i > 0 ? z[i - 1] : 0.0;
        ee += e * e, ep += e * size, pp += x[i] * x[i];
        double v = 0.0, r = 1.0, t = below;
        if (!HARD) {
            r = std::pow(z[i] > 0 ? below / z[i] : 1.0, beta);
            v = std::min(std::max(pp > 0 ? ep / pp : 1.0, r), 1.0);
            if (v > r) t = z[i] * std::pow(v, root);
        }
        const double cost = killed[i] + ee - 2 * v * ep + v * v * pp;
        const bool tied = HARD && i > 0 && below == z[i];  // a hard threshold takes all equal values or none
        if (cost < best && !tied) best_t = t, best = cost;
        ep = r * ep, pp = r * r * pp;
    });
    return best_t;
}

// `least_error` for this beta, which is infinite for hard thresholds.
double oracle_threshold(Vector<const double> z, Vector<const double> x, Vector<const double> f, double beta) {
    return std::isinf(beta) ? least_error<true>(z, x, f, beta) : least_error<false>(z, x, f, beta);
}

// SURE of each row at its threshold.
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

// F becomes x (1 - |t / x|^beta)_+, slope its derivative; from r on in double precision.
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
