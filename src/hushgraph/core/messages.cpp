// Belief propagation with few labels on a graph (`estimators/let/level_sets.py`).
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index RANGE = 1024;    // nodes that a thread processes at a time
constexpr double TINY = 1e-100;  // products of messages below this are scaled up

// The arrays of `pass_messages`.
template <typename I> struct Passing {
    Vector<const I> indptr, back;
    Vector<const double> apart;
    Cube<const double> evidence, messages;
    Cube<double> beliefs, sent;
};

// Divides the K beliefs of each of B signals by their sum.
template <int K, int B> inline void scale_to_sum(double (&belief)[K][B]) {
    for (int b = 0; b < B; b++) {
        double sum = 0.0;
        for (int k = 0; k < K; k++) sum += belief[k][b];
        for (int k = 0; k < K; k++) belief[k][b] /= sum;
    }
}

// Multiplies the beliefs by what arrived over one arc. Returns the least of the largest numbers of each signal.
template <int K, int B> inline double multiply(double (&belief)[K][B], const double* message) {
    double least = 1.0;
    for (int b = 0; b < B; b++) {
        double most = 0.0;
        for (int k = 0; k < K; k++) most = std::max(most, belief[k][b] *= message[k * B + b]);
        least = std::min(least, most);
    }
    return least;
}

// Writes the beliefs of node i and what it sends to its neighbors.
template <int K, int B, typename I> inline void pass_from(Index i, const Passing<I>& all) {
    double belief[K][B], without[K][B];
    const double* evidence = &all.evidence(i, 0, 0);
    for (int k = 0; k < K; k++) {
        for (int b = 0; b < B; b++) belief[k][b] = evidence[k * B + b];
    }
    for (I a = all.indptr[i]; a < all.indptr[i + 1]; a++) {
        if (multiply<K, B>(belief, &all.messages(a, 0, 0)) < TINY) scale_to_sum<K, B>(belief);
    }
    scale_to_sum<K, B>(belief);
    double* result = &all.beliefs(i, 0, 0);
    for (int k = 0; k < K; k++) {
        for (int b = 0; b < B; b++) result[k * B + b] = belief[k][b];
    }
    for (I a = all.indptr[i]; a < all.indptr[i + 1]; a++) {
        const double *message = &all.messages(a, 0, 0), apart = all.apart[a];
        double* out = &all.sent(all.back[a], 0, 0);
        double total[B] = {};
        for (int k = 0; k < K; k++) {
            for (int b = 0; b < B; b++) total[b] += without[k][b] = belief[k][b] / message[k * B + b];
        }
        for (int b = 0; b < B; b++) total[b] = (1 - apart) / total[b];
        for (int k = 0; k < K; k++) {
            for (int b = 0; b < B; b++) out[k * B + b] = total[b] * without[k][b] + apart;
        }
    }
}

template <int K, int B, typename I> void pass_all(const Passing<I>& all) {
    const auto pass = [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) pass_from<K, B>(i, all);
    };
    parallel_ranges(all.evidence.shape[0], all.messages.shape[0] * (K * B), pass, RANGE);
}

template <int K, typename I> void pass_labels(const Passing<I>& all) {
    switch (all.evidence.shape[2]) {
        case 1:
            return pass_all<K, 1>(all);
        case 4:
            return pass_all<K, 4>(all);
        default:
            throw std::invalid_argument("one or four signals at a time");
    }
}

// Writes the beliefs of all nodes, (n, labels, signals), and what each node sends to its neighbors, (arcs, labels, signals).
// messages[a] is what arrived over arc a, at the first node of the arc from the second one. Each edge is two arcs, sorted by first
// node; back[a] is the opposite arc of arc a. Two neighbors have different labels with the factor apart[a], above 0 and at most 1:
// sent[back[a]] = (1 - apart) c + apart, where c is the belief of the first node without the message of the second one.
template <typename I> void pass_messages(Vector<const I> indptr, Vector<const I> back, Vector<const double> apart,
                                         Cube<const double> evidence, Cube<const double> messages, Cube<double> beliefs,
                                         Cube<double> sent) {
    const Passing<I> all{indptr, back, apart, evidence, messages, beliefs, sent};
    switch (evidence.shape[1]) {
        case 2:
            return pass_labels<2>(all);
        case 3:
            return pass_labels<3>(all);
        case 4:
            return pass_labels<4>(all);
        case 5:
            return pass_labels<5>(all);
        case 6:
            return pass_labels<6>(all);
        case 8:
            return pass_labels<8>(all);
        case 12:
            return pass_labels<12>(all);
        default:
            throw std::invalid_argument("2, 3, 4, 5, 6, 8 or 12 labels");
    }
}

// Writes -precision (y - level)^2 / 2 of each label, less the largest of the node, (n, labels, signals).
void put_exponents(Matrix<const double> y, Matrix<const double> levels, Vector<const double> precision, Cube<double> out) {
    const Index count = levels.shape[0], width = levels.shape[1];
    const auto put = [&](Index lo, Index hi) {
        for (Index i = lo; i < hi; i++) {
            const double factor = -0.5 * precision[i];
            double* row = &out(i, 0, 0);
            for (Index b = 0; b < width; b++) {
                double least = INFINITY;
                for (Index k = 0; k < count; k++) {
                    const double rest = y(i, b) - levels(k, b);
                    row[k * width + b] = rest * rest;
                    least = std::min(least, rest * rest);
                }
                for (Index k = 0; k < count; k++) row[k * width + b] = factor * (row[k * width + b] - least);
            }
        }
    };
    parallel_ranges(y.shape[0], y.shape[0] * count * width, put, RANGE);
}

// Returns the sums over nodes of precision times belief, and of that times y: (2, labels, signals). Ranges are added up one by one.
Owned<double, 3> sum_by_label(Matrix<const double> y, Vector<const double> precision, Cube<const double> beliefs) {
    const Index n = y.shape[0], count = beliefs.shape[1], width = beliefs.shape[2], size = count * width;
    const Index ranges = (n + RANGE - 1) / RANGE;
    Owned<double, 2> parts = Owned<double, 2>::zeros(ranges, 2 * size);
    const auto add = [&](Index lo, Index hi) {
        double* part = &parts(lo / RANGE, 0);
        for (Index i = lo; i < hi; i++) {
            const double* belief = &beliefs(i, 0, 0);
            for (Index k = 0; k < count; k++) {
                for (Index b = 0; b < width; b++) {
                    const double share = precision[i] * belief[k * width + b];
                    part[k * width + b] += share;
                    part[size + k * width + b] += share * y(i, b);
                }
            }
        }
    };
    parallel_ranges(n, n * size, add, RANGE);
    Owned<double, 3> sums = Owned<double, 3>::zeros(Index(2), count, width);
    for (Index r = 0; r < ranges; r++) {
        for (Index k = 0; k < 2 * size; k++) sums.data[k] += parts(r, k);
    }
    return sums;
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("pass_messages", &pass_messages<I>, "indptr"_a, "back"_a, "apart"_a, "evidence"_a, "messages"_a, "beliefs"_a, "sent"_a,
          Unlocked());
}

}  // namespace

void bind_messages(nb::module_& m) {
    m.def("put_exponents", &put_exponents, "y"_a, "levels"_a, "precision"_a, "out"_a, Unlocked());
    m.def("sum_by_label", &sum_by_label, "y"_a, "precision"_a, "beliefs"_a, Unlocked());
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
}

}  // namespace hushgraph
