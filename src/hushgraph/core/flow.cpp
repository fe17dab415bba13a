// Total variation on a graph by maximum flows (`total_variation.py`).
#include <algorithm>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

constexpr Index STEPS = 65536;  // of a loop between two looks for signals

// Sets of nodes that flows divide into an upper and a lower part each, until every set is a piece of one value. Each edge is two
// arcs, one in each direction, by their first node; back[a] is the arc in the other direction of a.
template <typename I> class Division {
  public:
    Division(Vector<const I> indptr, Vector<const I> indices, Vector<const I> back, Vector<const double> capacity,
             Vector<const double> y, double unsent, Vector<double> x, Vector<double> flow)
        : n_(static_cast<I>(y.size())),
          indptr_(indptr),
          indices_(indices),
          back_(back),
          capacity_(capacity),
          y_(y),
          unsent_(unsent),
          x_(x),
          flow_(flow),
          cut_(Owned<bool>::zeros(flow.size())),
          done_(Owned<bool>::zeros(y.size())),
          waiting_(y.size()),
          label_(y.size()),
          distance_(y.size()),
          queue_(y.size()),
          ahead_(y.size()),
          excess_(y.size()) {}

    void run() {
        while (!std::all_of(done_.begin(), done_.end(), [](bool one) { return one; })) {
            const Index count = label_sets();
            const Owned<double> mean = set_excess(count);
            send();
            split(count, mean);
        }
    }

  private:
    // Numbers the connected sets of unfinished nodes; returns how many there are.
    Index label_sets() {
        std::fill(label_.begin(), label_.end(), I(-1));
        I count = 0;
        for (I root = 0; root < n_; root++) {
            if (done_[root] || label_[root] >= 0) continue;
            Index head = 0, tail = 1;
            label_[root] = count;
            queue_[0] = root;
            while (head < tail) {
                look();
                const I i = queue_[head++];
                for (I a = indptr_[i]; a < indptr_[i + 1]; a++) {
                    const I j = indices_[a];
                    if (cut_[a] || label_[j] >= 0) continue;
                    label_[j] = count;
                    queue_[tail++] = j;
                }
            }
            count++;
        }
        return count;
    }

    // Sets what each node still has above the mean of its set, after the flows over its cut edges; returns the means.
    Owned<double> set_excess(Index count) {
        Owned<double> mean = Owned<double>::zeros(count), size = Owned<double>::zeros(count);
        for (I i = 0; i < n_; i++) {
            if (done_[i]) continue;
            double excess = y_[i];
            for (I a = indptr_[i]; a < indptr_[i + 1]; a++) excess -= flow_[a];
            excess_[i] = excess;
            mean[label_[i]] += excess;
            size[label_[i]] += 1;
        }
        for (Index k = 0; k < count; k++) mean[k] /= size[k];
        for (I i = 0; i < n_; i++)
            if (!done_[i]) excess_[i] -= mean[label_[i]];
        return mean;
    }

    // Maximum flow from nodes above their mean to nodes below (push-relabel, first in first out). In the end the distance is n for
    // the nodes from which no unserved node can be reached.
    void send() {
        set_distances();
        std::fill(waiting_.begin(), waiting_.end(), false);
        std::copy(indptr_.begin(), indptr_.end() - 1, ahead_.begin());
        Owned<I> ring(n_);
        I head = 0, size = 0;
        Index raised = 0;  // distances raised since all were last set
        for (I i = 0; i < n_; i++) {
            if (!done_[i] && excess_[i] > unsent_ && distance_[i] < n_) {
                waiting_[i] = true;
                ring[size++] = i;
            }
        }
        I end = size == n_ ? 0 : size;  // where the next node of the ring goes
        while (size > 0) {
            look();
            const I i = ring[head];
            head = head + 1 == n_ ? 0 : head + 1;
            size--;
            waiting_[i] = false;
            const I first = indptr_[i], last = indptr_[i + 1];
            double mine = excess_[i];
            I level = distance_[i], a = ahead_[i];
            while (mine > unsent_ && level < n_) {
                if (a == last) {
                    level = raised_distance(i);
                    a = first;
                    raised++;
                    continue;
                }
                const I j = indices_[a];
                const double room = capacity_[a] - flow_[a];
                if (cut_[a] || room <= 0 || level != distance_[j] + 1) {
                    a++;
                    continue;
                }
                const double amount = std::min(mine, room), flow = amount == room ? capacity_[a] : flow_[a] + amount;
                flow_[a] = flow;
                flow_[back_[a]] = -flow;
                mine -= amount;
                excess_[j] += amount;
                if (excess_[j] > unsent_ && !waiting_[j] && distance_[j] < n_) {
                    waiting_[j] = true;
                    ring[end] = j;
                    end = end + 1 == n_ ? 0 : end + 1;
                    size++;
                }
            }
            excess_[i] = mine;
            distance_[i] = level;
            ahead_[i] = a;
            if (raised >= n_) {
                raised = 0;
                std::copy(indptr_.begin(), indptr_.end() - 1, ahead_.begin());
                set_distances();
            }
        }
        set_distances();
    }

    // One more than the least distance that node i can still send to.
    I raised_distance(I i) const {
        I least = n_ - 1;
        for (I a = indptr_[i]; a < indptr_[i + 1]; a++)
            if (!cut_[a] && flow_[a] < capacity_[a]) least = std::min(least, distance_[indices_[a]]);
        return least + 1;
    }

    // Steps over arcs with room from each node to the nearest unserved one; n where none can be reached.
    void set_distances() {
        std::fill(distance_.begin(), distance_.end(), n_);
        Index head = 0, tail = 0;
        for (I i = 0; i < n_; i++) {
            if (!done_[i] && excess_[i] < -unsent_) {
                distance_[i] = 0;
                queue_[tail++] = i;
            }
        }
        while (head < tail) {
            look();
            const I j = queue_[head++];
            for (I a = indptr_[j]; a < indptr_[j + 1]; a++) {
                const I i = indices_[a];
                if (cut_[a] || distance_[i] != n_ || !(flow_[back_[a]] < capacity_[back_[a]])) continue;
                distance_[i] = distance_[j] + 1;
                queue_[tail++] = i;
            }
        }
    }

    // Sets without an upper or without a lower part take their mean and are done; in the others the arcs from the upper to the
    // lower part are full, and cut.
    void split(Index count, Vector<const double> mean) {
        Owned<bool> upper = Owned<bool>::zeros(count), lower = Owned<bool>::zeros(count);
        for (I i = 0; i < n_; i++)
            if (!done_[i]) (distance_[i] == n_ ? upper : lower)[label_[i]] = true;
        for (I i = 0; i < n_; i++) {
            if (done_[i]) continue;
            if (!(upper[label_[i]] && lower[label_[i]])) {
                x_[i] = mean[label_[i]];
                done_[i] = true;
                continue;
            }
            if (distance_[i] < n_) continue;
            for (I a = indptr_[i]; a < indptr_[i + 1]; a++) {
                if (cut_[a] || distance_[indices_[a]] == n_) continue;
                cut_[a] = cut_[back_[a]] = true;
                flow_[a] = capacity_[a];
                flow_[back_[a]] = -capacity_[a];
            }
        }
    }

    void look() {
        if (++steps_ % STEPS == 0) interrupts_.look();
    }

    const I n_;
    const Vector<const I> indptr_, indices_, back_;
    const Vector<const double> capacity_, y_;
    const double unsent_;  // what counts as nothing left to send
    const Vector<double> x_, flow_;
    Owned<bool> cut_, done_, waiting_;
    Owned<I> label_, distance_, queue_, ahead_;
    Owned<double> excess_;
    Interrupts interrupts_;
    Index steps_ = 0;
};

// Writes the value of each node's piece into x, and the flow over each arc into `flow`.
template <typename I> void split_into_pieces(Vector<const I> indptr, Vector<const I> indices, Vector<const I> back,
                                             Vector<const double> capacity, Vector<const double> y, double unsent, Vector<double> x,
                                             Vector<double> flow) {
    Division<I>(indptr, indices, back, capacity, y, unsent, x, flow).run();
}

template <typename I> void bind_for(nb::module_& m) {
    m.def("split_into_pieces", &split_into_pieces<I>, "indptr"_a, "indices"_a, "back"_a, "capacity"_a, "y"_a, "unsent"_a, "x"_a,
          "flow"_a, Unlocked());
}

}  // namespace

void bind_flow(nb::module_& m) {
    bind_for<std::int32_t>(m);
    bind_for<std::int64_t>(m);
}

}  // namespace hushgraph
