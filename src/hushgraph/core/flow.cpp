// Total variation denoising on a graph by maximum flows (`total_variation.py`).
#include <algorithm>

#include "python.h"
#include "threads.h"

namespace hushgraph {
namespace {

// Divides sets of nodes. A maximum flow divides each connected set into an upper and a lower part, until each set is a piece of one
// value. Each edge is two arcs, one in each direction, sorted by first node; back[a] is the opposite arc of arc a.
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
          is_cut_(Owned<bool>::zeros(flow.size())),
          is_done_(Owned<bool>::zeros(y.size())),
          is_queued_(y.size()),
          label_(y.size()),
          distance_(y.size()),
          queue_(y.size()),
          next_arc_(y.size()),
          excess_(y.size()) {}

    void run() {
        while (!std::all_of(is_done_.begin(), is_done_.end(), [](bool done) { return done; })) {
            const Index count = label_sets();
            const Owned<double> mean = set_excess(count);
            send_flow();
            split(count, mean);
        }
    }

  private:
    // Numbers the connected sets of unfinished nodes; returns the number of sets.
    Index label_sets() {
        std::fill(label_.begin(), label_.end(), I(-1));
        I count = 0;
        for (I root = 0; root < n_; root++) {
            if (is_done_[root] || label_[root] >= 0) continue;
            Index head = 0, tail = 1;
            label_[root] = count;
            queue_[0] = root;
            while (head < tail) {
                interrupts_.advance(1);
                const I i = queue_[head++];
                for (I a = indptr_[i]; a < indptr_[i + 1]; a++) {
                    const I j = indices_[a];
                    if (is_cut_[a] || label_[j] >= 0) continue;
                    label_[j] = count;
                    queue_[tail++] = j;
                }
            }
            count++;
        }
        return count;
    }

    // Sets the excess of each node over the mean of its set, after the flows over cut edges; returns the means.
    Owned<double> set_excess(Index count) {
        Owned<double> mean = Owned<double>::zeros(count), size = Owned<double>::zeros(count);
        for (I i = 0; i < n_; i++) {
            if (is_done_[i]) continue;
            double excess = y_[i];
            for (I a = indptr_[i]; a < indptr_[i + 1]; a++) excess -= flow_[a];
            excess_[i] = excess;
            mean[label_[i]] += excess;
            size[label_[i]] += 1;
        }
        for (Index k = 0; k < count; k++) mean[k] /= size[k];
        for (I i = 0; i < n_; i++)
            if (!is_done_[i]) excess_[i] -= mean[label_[i]];
        return mean;
    }

    // Sends a maximum flow from nodes above the mean of their set to nodes below it (push-relabel, first in, first out). At the
    // end, the distance is n for nodes from which no node below the mean can be reached.
    void send_flow() {
        set_distances();
        std::fill(is_queued_.begin(), is_queued_.end(), false);
        std::copy(indptr_.begin(), indptr_.end() - 1, next_arc_.begin());
        Owned<I> ring(n_);
        I head = 0, size = 0;
        Index n_raised = 0;  // distances raised since the last call of set_distances
        for (I i = 0; i < n_; i++) {
            if (!is_done_[i] && excess_[i] > unsent_ && distance_[i] < n_) {
                is_queued_[i] = true;
                ring[size++] = i;
            }
        }
        I end = size == n_ ? 0 : size;  // position for the next node in the ring
        while (size > 0) {
            interrupts_.advance(1);
            const I i = ring[head];
            head = head + 1 == n_ ? 0 : head + 1;
            size--;
            is_queued_[i] = false;
            const I first = indptr_[i], last = indptr_[i + 1];
            double excess = excess_[i];
            I level = distance_[i], a = next_arc_[i];
            while (excess > unsent_ && level < n_) {
                if (a == last) {
                    level = raised_distance(i);
                    a = first;
                    n_raised++;
                    continue;
                }
                const I j = indices_[a];
                const double room = capacity_[a] - flow_[a];
                if (is_cut_[a] || room <= 0 || level != distance_[j] + 1) {
                    a++;
                    continue;
                }
                const double amount = std::min(excess, room), flow = amount == room ? capacity_[a] : flow_[a] + amount;
                flow_[a] = flow;
                flow_[back_[a]] = -flow;
                excess -= amount;
                excess_[j] += amount;
                if (excess_[j] > unsent_ && !is_queued_[j] && distance_[j] < n_) {
                    is_queued_[j] = true;
                    ring[end] = j;
                    end = end + 1 == n_ ? 0 : end + 1;
                    size++;
                }
            }
            excess_[i] = excess;
            distance_[i] = level;
            next_arc_[i] = a;
            if (n_raised >= n_) {
                n_raised = 0;
                std::copy(indptr_.begin(), indptr_.end() - 1, next_arc_.begin());
                set_distances();
            }
        }
        set_distances();
    }

    // Returns 1 plus the smallest distance of a neighbor to which node i can still send flow.
    I raised_distance(I i) const {
        I least = n_ - 1;
        for (I a = indptr_[i]; a < indptr_[i + 1]; a++)
            if (!is_cut_[a] && flow_[a] < capacity_[a]) least = std::min(least, distance_[indices_[a]]);
        return least + 1;
    }

    // Sets the number of arcs with room from each node to the nearest node below its mean; n if none can be reached.
    void set_distances() {
        std::fill(distance_.begin(), distance_.end(), n_);
        Index head = 0, tail = 0;
        for (I i = 0; i < n_; i++) {
            if (!is_done_[i] && excess_[i] < -unsent_) {
                distance_[i] = 0;
                queue_[tail++] = i;
            }
        }
        while (head < tail) {
            interrupts_.advance(1);
            const I j = queue_[head++];
            for (I a = indptr_[j]; a < indptr_[j + 1]; a++) {
                const I i = indices_[a];
                if (is_cut_[a] || distance_[i] != n_ || !(flow_[back_[a]] < capacity_[back_[a]])) continue;
                distance_[i] = distance_[j] + 1;
                queue_[tail++] = i;
            }
        }
    }

    // Finishes the sets without an upper or a lower part: their nodes take the mean. In the other sets, the arcs from the upper to
    // the lower part are full; these arcs are cut.
    void split(Index count, Vector<const double> mean) {
        Owned<bool> has_upper = Owned<bool>::zeros(count), has_lower = Owned<bool>::zeros(count);
        for (I i = 0; i < n_; i++)
            if (!is_done_[i]) (distance_[i] == n_ ? has_upper : has_lower)[label_[i]] = true;
        for (I i = 0; i < n_; i++) {
            if (is_done_[i]) continue;
            if (!(has_upper[label_[i]] && has_lower[label_[i]])) {
                x_[i] = mean[label_[i]];
                is_done_[i] = true;
                continue;
            }
            if (distance_[i] < n_) continue;
            for (I a = indptr_[i]; a < indptr_[i + 1]; a++) {
                if (is_cut_[a] || distance_[indices_[a]] == n_) continue;
                is_cut_[a] = is_cut_[back_[a]] = true;
                flow_[a] = capacity_[a];
                flow_[back_[a]] = -capacity_[a];
            }
        }
    }

    const I n_;
    const Vector<const I> indptr_, indices_, back_;
    const Vector<const double> capacity_, y_;
    const double unsent_;  // an excess up to this counts as 0
    const Vector<double> x_, flow_;
    Owned<bool> is_cut_, is_done_, is_queued_;
    Owned<I> label_, distance_, queue_, next_arc_;
    Owned<double> excess_;
    Interrupts interrupts_;
};

// Writes the value of the piece of each node into x, and the flow over each arc into `flow`.
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
