// Parallel loops. Results do not depend on the number of threads: step k of a loop writes only the results of step k.
#pragma once

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "arrays.h"

namespace hushgraph {

constexpr Index MIN_PARALLEL_WORK = 1 << 15;  // a loop over fewer numbers is faster on one thread
constexpr Index STEPS_PER_CHECK = 1 << 16;    // steps of a long loop between two checks for signals

// Returns the number of threads for loops that the calling thread starts.
int thread_count();

// Sets the number of threads for loops that the calling thread starts; 0 means one for each processor. Returns the number before.
int set_threads(int count);

// Sets the number of processors.
void set_processors(int count);

// Makes long loops stop at Ctrl-C. About ten times a second, `check` lets Python run its signal handlers, and throws the exception
// of a handler. Only the thread that Python called may use this class.
class Interrupts {
  public:
    // Cheap enough for every few thousand steps of a loop.
    void check() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ > std::chrono::milliseconds(100)) {
            run_handlers();
            last_ = std::chrono::steady_clock::now();
        }
    }

    // Checks at some of the steps 0, 1, 2, ... of a loop.
    void check_at(Index step) {
        if (step % STEPS_PER_CHECK == 0) check();
    }

    // Counts steps of loops without a step number, and checks now and then.
    void advance(Index steps) {
        unchecked_steps_ += steps;
        if (unchecked_steps_ < STEPS_PER_CHECK) return;
        unchecked_steps_ = 0;
        check();
    }

  private:
    static void run_handlers();
    Index unchecked_steps_ = 0;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Checks for signals inside a parallel loop, on any of its threads; outside of a parallel loop it does nothing.
void check_signals();

// Exists while a thread takes the interpreter lock. When the process ends, the constructor does not return.
struct PythonEntry {
    PythonEntry();
    ~PythonEntry();
};

// Prepares the end of the process; Python calls this function at exit.
void close();

namespace detail {
using Body = void (*)(void* context, Index number, int worker);
void run(Index count, int threads, Body body, void* context);
}  // namespace detail

// Returns the number of threads of a `parallel_for` with the same arguments.
inline int threads_for(Index count, Index work) {
    return work < MIN_PARALLEL_WORK ? 1 : static_cast<int>(std::min<Index>(count, thread_count()));
}

// Calls body(k, worker) for k = 0 .. count - 1 in any order. `work` is the number of values that the loop reads; a loop with enough
// work runs on several threads. `worker` is the number of the thread, below `threads_for(count, work)`.
template <typename F> void parallel_for(Index count, Index work, F&& body) {
    using Function = std::remove_reference_t<F>;
    const detail::Body call = [](void* context, Index k, int worker) {
        if constexpr (std::is_invocable_v<Function&, Index, int>)
            (*static_cast<Function*>(context))(k, worker);
        else
            (*static_cast<Function*>(context))(k);
    };
    detail::run(count, threads_for(count, work), call, const_cast<void*>(static_cast<const void*>(&body)));
}

// Calls body(first, last) for ranges first .. last - 1 of at most `length` numbers that cover 0 .. n - 1.
template <typename F> void parallel_ranges(Index n, Index work, F&& body, Index length = 1 << 14) {
    parallel_for((n + length - 1) / length, work, [&](Index k) { body(k * length, std::min(n, (k + 1) * length)); });
}

}  // namespace hushgraph
