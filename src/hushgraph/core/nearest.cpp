// The nearest of many points in the plane (`privacy/places.py`).
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index LEAF = 12;          // points of a part that is not divided further
constexpr Index LOOK = 4096;        // points of a part whose division is worth a look for signals
constexpr double TIE = 1.0 + 1e-9;  // squared distances whose ratio is at most this count as equal
constexpr int DEEPEST = 64;         // halvings of more points than there can be

struct Point {
    double x, y;
    Index number;
};

// Some of the points, and the rectangle around them. The first half of a part follows it; its second half is at `second`, which is
// 0 for a part that is not divided.
struct Part {
    double left, right, bottom, top;
    Index first, last, second;

    // At most the squared distance of (x, y) to each of the points, also after rounding: all its steps are monotone.
    double bound(double x, double y) const {
        const double across = std::max({left - x, x - right, 0.0}), along = std::max({bottom - y, y - top, 0.0});
        return across * across + along * along;
    }
};

struct Nearest {
    double best = std::numeric_limits<double>::infinity(), second = best;  // squared distances
    Index number = -1;
};

class PointTree {
  public:
    explicit PointTree(Matrix<const double> places) : points_(places.size()), parts_(4 * (places.size() / LEAF + 1)) {
        if (places.shape[1] != 2) throw std::invalid_argument("points of a plane have two coordinates");
        for (Index i = 0; i < places.size(); i++) points_[i] = {places(i, 0), places(i, 1), i};
        parallel_for(1, 0, [&](Index) { divide(0, places.size()); });
    }

    // The distance of each place to its nearest point, and the number of that point (infinity and -1 where no distance is finite);
    // the rows whose two nearest points are so close to equally far that rounding could decide between them.
    std::tuple<Owned<double>, Owned<Index>, Owned<Index>> nearest(Matrix<const double> places) const {
        if (places.shape[1] != 2) throw std::invalid_argument("places of a plane have two coordinates");
        const Index n = places.size();
        Owned<double> distance(n);
        Owned<Index> number(n), ties(n);
        Owned<bool> is_tie(n);
        parallel_ranges(n, 16 * n, [&](Index lo, Index hi) {
            for (Index i = lo; i < hi; i++) {
                const Nearest found = search(places(i, 0), places(i, 1));
                distance[i] = std::sqrt(found.best);
                number[i] = found.number;
                is_tie[i] = found.number >= 0 && found.second <= found.best * TIE;
            }
        });
        Index n_ties = 0;
        for (Index i = 0; i < n; i++)
            if (is_tie[i]) ties[n_ties++] = i;
        return {std::move(distance), std::move(number), std::move(ties).shortened(n_ties)};
    }

  private:
    Owned<Point> points_;
    Owned<Part> parts_;
    Index n_parts_ = 0;

    // Makes a part of some points, and divides it at its middle point along its longer side until parts are small.
    void divide(Index first, Index last) {
        const double far = std::numeric_limits<double>::infinity();
        Part part = {far, -far, far, -far, first, last, 0};
        for (Index i = first; i < last; i++) {
            part.left = std::min(part.left, points_[i].x), part.right = std::max(part.right, points_[i].x);
            part.bottom = std::min(part.bottom, points_[i].y), part.top = std::max(part.top, points_[i].y);
        }
        const Index number = n_parts_++;
        parts_[number] = part;
        if (last - first <= LEAF) return;
        if (last - first > LOOK) look_for_signals();
        const Index middle = first + (last - first) / 2;
        const bool is_wide = part.right - part.left > part.top - part.bottom;
        std::nth_element(&points_[first], &points_[middle], points_.data + last,
                         [&](const Point& a, const Point& b) { return is_wide ? a.x < b.x : a.y < b.y; });
        divide(first, middle);
        parts_[number].second = n_parts_;
        divide(middle, last);
    }

    Nearest search(double x, double y) const {
        Nearest found;
        Index waiting[DEEPEST];
        double bounds[DEEPEST];
        int n_waiting = 1;
        waiting[0] = 0;
        bounds[0] = 0.0;
        while (n_waiting) {
            Index number = waiting[--n_waiting];
            if (bounds[n_waiting] > found.best * TIE) continue;
            while (parts_[number].second) {
                const Index one = number + 1, other = parts_[number].second;
                const double one_bound = parts_[one].bound(x, y), other_bound = parts_[other].bound(x, y);
                const bool other_first = other_bound < one_bound;
                waiting[n_waiting] = other_first ? one : other;
                bounds[n_waiting] = other_first ? one_bound : other_bound;
                n_waiting += bounds[n_waiting] <= found.best * TIE;
                number = other_first ? other : one;
            }
            for (Index i = parts_[number].first; i < parts_[number].last; i++) {
                const double across = points_[i].x - x, along = points_[i].y - y, square = across * across + along * along;
                if (square < found.best) {
                    found.second = found.best;
                    found.best = square;
                    found.number = points_[i].number;
                } else if (square < found.second) {
                    found.second = square;
                }
            }
        }
        return found;
    }
};

}  // namespace

void bind_nearest(nb::module_& m) {
    nb::class_<PointTree>(m, "PointTree")
        .def(nb::init<Matrix<const double>>(), "places"_a, Unlocked())
        .def("nearest", &PointTree::nearest, "places"_a, Unlocked());
}

}  // namespace hushgraph
