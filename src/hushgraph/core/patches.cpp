// Patches: estimates of an image from squares of pixels that look alike (`estimators/let/patches.py`).
//
// Around each reference patch the patches that are nearest to it are found. They are denoised together, and each pixel becomes the
// weighted mean of all its estimates. Reference patches stand `step` pixels apart; the last one ends at the border.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"
#include "levels.h"
#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index GAUSSIAN_SIDE = 5, GAUSSIAN_COUNT = 64;  // pixels along a side of a patch, patches in a group
constexpr Index SPECTRAL_SIDE = 8, SPECTRAL_COUNT = 16;
constexpr Index STRIP = 4;  // rows of reference patches that one step of the loop handles

// An image of references: their rows or columns, `step` apart, where a patch of `side` pixels has `length` - side + 1 places.
struct Places {
    Index length, side, step;

    Index count() const { return (length - side + step - 1) / step + 1; }
    Index operator[](Index k) const { return std::min(k * step, length - side); }
};

// The sums of weighted estimates and of weights of the pixels from row `first` on.
struct Sums {
    Index first;
    Matrix<double> values, weights;
};

struct Search {
    Matrix<const float> guide;  // with columns to spare at the right
    Index rows, columns, radius;
};

#define HUSHGRAPH_LOOPS "patches.inc"
#include "both_levels.h"

// Calls filter(row, column, sums) for each reference patch, and writes the weighted means into `out`. Strips of references have
// sums of their own, which are added from the first strip to the last.
template <typename F> void filter_patches(Matrix<double> out, Index side, Index step, Index radius, F&& filter) {
    const Index rows = out.size(), columns = out.shape[1];
    const Places places{rows, side, step};
    const Index n_strips = (places.count() + STRIP - 1) / STRIP, height = std::min(rows, (STRIP - 1) * step + 2 * radius + side);
    Owned<double, 3> values = Owned<double, 3>::zeros(n_strips, height, columns);
    Owned<double, 3> weights = Owned<double, 3>::zeros(n_strips, height, columns);
    const auto first_row = [&](Index strip) { return std::max<Index>(0, std::min(places[strip * STRIP] - radius, rows - height)); };
    parallel_for(n_strips, rows * columns * side * side, [&](Index strip) {
        const Sums sums{first_row(strip), values[strip], weights[strip]};
        const Index last = std::min((strip + 1) * STRIP, places.count());
        for (Index k = strip * STRIP; k < last; k++) filter(places[k], sums);
    });
    parallel_ranges(
        rows, rows * columns * 8,
        [&](Index lo, Index hi) {
            Owned<double> total(columns);
            for (Index i = lo; i < hi; i++) {
                std::fill(&out(i, 0), &out(i, 0) + columns, 0.0);
                std::fill(total.begin(), total.end(), 0.0);
                for (Index strip = 0; strip < n_strips; strip++) {
                    const Index row = i - first_row(strip);
                    if (row < 0 || row >= height) continue;
                    for (Index j = 0; j < columns; j++) {
                        out(i, j) += values(strip, row, j);
                        total[j] += weights(strip, row, j);
                    }
                }
                for (Index j = 0; j < columns; j++) out(i, j) /= total[j];
            }
        },
        8);
}

// Writes the estimate by a Gaussian model of each group of patches (Lebrun, Buades and Morel 2013, first step) into `out`.
//
// guide (rows, columns + 8) is the image that patches are compared on. variances holds the mean variance of the noise in the patch
// that starts at each pixel.
void gaussian_patches(Matrix<const double> noisy, Matrix<const float> guide, Matrix<const double> variances, Index step,
                      Index radius, Matrix<double> out) {
    const Search search{guide, noisy.size(), noisy.shape[1], radius};
    filter_patches(out, GAUSSIAN_SIDE, step, radius, [&](Index row, const Sums& sums) {
        HUSHGRAPH_LEVEL(filter_gaussian_row)(noisy, search, variances, step, row, sums);
    });
}

// Writes the estimate by a transform of each group of patches (Dabov, Foi, Katkovnik and Egiazarian 2007) into `out`: cosines
// within the patches, Haar wavelets from patch to patch.
//
// Without a pilot, coefficients below `threshold` noise levels become 0. With a pilot q, a coefficient is multiplied by
// q^2 / (q^2 + variance). guide and variances are as in `gaussian_patches`.
void spectral_patches(Matrix<const double> noisy, Optional<const double, 2> pilot, Matrix<const float> guide,
                      Matrix<const double> variances, double threshold, Index step, Index radius, Matrix<double> out) {
    const Search search{guide, noisy.size(), noisy.shape[1], radius};
    filter_patches(out, SPECTRAL_SIDE, step, radius, [&](Index row, const Sums& sums) {
        HUSHGRAPH_LEVEL(filter_spectral_row)(noisy, pilot, search, variances, threshold, step, row, sums);
    });
}

}  // namespace

void bind_patches(nb::module_& m) {
    m.def("gaussian_patches", &gaussian_patches, "noisy"_a, "guide"_a, "variances"_a, "step"_a, "radius"_a, "out"_a, Unlocked());
    m.def("spectral_patches", &spectral_patches, "noisy"_a, "pilot"_a.none(), "guide"_a, "variances"_a, "threshold"_a, "step"_a,
          "radius"_a, "out"_a, Unlocked());
}

}  // namespace hushgraph
