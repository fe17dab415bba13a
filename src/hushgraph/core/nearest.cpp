// Search for the nearest of many points in the plane (`privacy/locating.py`).
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index LEAF = 12;                  // a part of at most this many points is not divided
constexpr Index MIN_CHECKED_POINTS = 4096;  // the division of a part of more points checks for signals
constexpr double TIE = 1.0 + 1e-9;          // squared distances whose ratio is at most this count as equal
constexpr int MAX_DEPTH = 64;               // depth that no tree reaches

struct Point {
    double x, y;
    Index number;
};

// A node of the tree: some of the points, and the rectangle around them. The first half of a part is the next part of the array;
// the second half has the number `second`, or 0 if the part is not divided.
struct Part {
    double left, right, bottom, top;
    Index first, last, second;

    // Returns a lower bound of the squared distances from (x, y) to the points. It also holds after rounding, because all steps are
    // monotone.
    double bound(double x, double y) const {
        const double dx = std::max({left - x, x - right, 0.0}), dy = std::max({bottom - y, y - top, 0.0});
        return dx * dx + dy * dy;
    }
};

struct Nearest {
    double best = std::numeric_limits<double>::infinity(), second = best;  // squared distances
    Index number = -1;
};

class PointTree {
  public:
    explicit PointTree(Matrix<const double> places) : points_(places.size()), parts_(4 * (places.size() / LEAF + 1)) {
        if (places.shape[1] != 2) throw std::invalid_argument("points in the plane need two coordinates");
        for (Index i = 0; i < places.size(); i++) points_[i] = {places(i, 0), places(i, 1), i};
        parallel_for(1, 0, [&](Index) { divide(0, places.size()); });
    }

    // Returns the distance of each place to its nearest point and the number of this point (infinity and -1 if no distance is
    // finite), and the ties: places with two nearest points at distances so close that rounding may decide between them.
    std::tuple<Owned<double>, Owned<Index>, Owned<Index>> nearest(Matrix<const double> places) const {
        if (places.shape[1] != 2) throw std::invalid_argument("places in the plane need two coordinates");
        const Index n = places.size();
        Owned<double> distance(n);
        Owned<Index> number(n), ties(n);
        Owned<bool> is_tie(n);
        parallel_ranges(n, 16 * n, [&](Index lo, Index hi) {
            for (Index i = lo; i < hi; i++) {
                const Nearest result = search(places(i, 0), places(i, 1));
                distance[i] = std::sqrt(result.best);
                number[i] = result.number;
                is_tie[i] = result.number >= 0 && result.second <= result.best * TIE;
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

    // Adds a part with the points first .. last - 1, and divides it at the middle point along its longer side until parts are
    // small.
    void divide(Index first, Index last) {
        const double infinity = std::numeric_limits<double>::infinity();
        Part part = {infinity, -infinity, infinity, -infinity, first, last, 0};
        for (Index i = first; i < last; i++) {
            part.left = std::min(part.left, points_[i].x), part.right = std::max(part.right, points_[i].x);
            part.bottom = std::min(part.bottom, points_[i].y), part.top = std::max(part.top, points_[i].y);
        }
        const Index number = n_parts_++;
        parts_[number] = part;
        if (last - first <= LEAF) return;
        if (last - first > MIN_CHECKED_POINTS) check_signals();
        const Index middle = first + (last - first) / 2;
        const bool is_wide = part.right - part.left > part.top - part.bottom;
        std::nth_element(&points_[first], &points_[middle], points_.data + last,
                         [&](const Point& a, const Point& b) { return is_wide ? a.x < b.x : a.y < b.y; });
        divide(first, middle);
        parts_[number].second = n_parts_;
        divide(middle, last);
    }

    // Returns the nearest point of (x, y), and the two smallest squared distances.
    Nearest search(double x, double y) const {
        Nearest nearest;
        Index stack[MAX_DEPTH];  // parts that are still to be searched, and their bounds
        double bounds[MAX_DEPTH];
        int depth = 1;
        stack[0] = 0;
        bounds[0] = 0.0;
        while (depth) {
            Index number = stack[--depth];
            if (bounds[depth] > nearest.best * TIE) continue;
            while (parts_[number].second) {
                const Index first = number + 1, second = parts_[number].second;
                const double first_bound = parts_[first].bound(x, y), second_bound = parts_[second].bound(x, y);
                const bool is_second_nearer = second_bound < first_bound;
                stack[depth] = is_second_nearer ? first : second;
                bounds[depth] = is_second_nearer ? first_bound : second_bound;
                depth += bounds[depth] <= nearest.best * TIE;
                number = is_second_nearer ? second : first;
            }
            for (Index i = parts_[number].first; i < parts_[number].last; i++) {
                const double dx = points_[i].x - x, dy = points_[i].y - y, square = dx * dx + dy * dy;
                if (square < nearest.best) {
                    nearest.second = nearest.best;
                    nearest.best = square;
                    nearest.number = points_[i].number;
                } else if (square < nearest.second) {
                    nearest.second = square;
                }
            }
        }
        return nearest;
    }
};

}  // namespace

void bind_nearest(nb::module_& m) {
    nb::class_<PointTree>(m, "PointTree")
        .def(nb::init<Matrix<const double>>(), "places"_a, Unlocked())
        .def("nearest", &PointTree::nearest, "places"_a, Unlocked());
}

}  // namespace hushgraph
