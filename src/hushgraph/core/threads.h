// Loops on all cores. Results never depend on how many there are: a loop body writes what belongs to its number and nothing else.
#pragma once

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "arrays.h"

namespace hushgraph {

constexpr Index ALONE_BELOW = 1 << 15;  // numbers touched below which waking other threads costs more than they help

// How many threads the loops of the calling thread use.
int thread_count();

// Sets that number and returns the one before; 0 means as many as `set_processors` said.
int set_threads(int count);
void set_processors(int count);

// Lets Ctrl-C through. `look` is cheap enough for every few thousand steps of a long loop; about ten times a second it asks
// Python whether a signal has come, and throws what its handler raised. Only the thread that Python called may own one.
class Interrupts {
  public:
    void look() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ > std::chrono::milliseconds(100)) {
            ask_python();
            last_ = std::chrono::steady_clock::now();
        }
    }

  private:
    static void ask_python();
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// The same for code that may run in a loop on several threads or outside of one; there it does nothing.
void look_for_signals();

// Lives while a thread takes the lock of the interpreter; at the end of the process it never comes to life.
struct Returning {
    Returning();
    ~Returning();
};

// Called by Python when the process ends.
void close();

namespace detail {
using Body = void (*)(void* context, Index number, int worker);
void run(Index count, int threads, Body body, void* context);
}  // namespace detail

// The number of threads that `parallel_for` will use.
inline int threads_for(Index count, Index work) {
    return work < ALONE_BELOW ? 1 : static_cast<int>(std::min<Index>(count, thread_count()));
}

// body(k, worker) for k = 0 .. count - 1 in any order, on several threads if `work`, the amount of numbers touched, is worth it.
// `worker`, from 0 on and below `threads_for(count, work)`, is a number that no other running body has.
template <typename F> void parallel_for(Index count, Index work, F&& body) {
    using Held = std::remove_reference_t<F>;
    const detail::Body call = [](void* context, Index k, int worker) {
        if constexpr (std::is_invocable_v<Held&, Index, int>)
            (*static_cast<Held*>(context))(k, worker);
        else
            (*static_cast<Held*>(context))(k);
    };
    detail::run(count, threads_for(count, work), call, const_cast<void*>(static_cast<const void*>(&body)));
}

// body(first, last) for ranges that cover 0 .. n - 1.
template <typename F> void parallel_ranges(Index n, Index work, F&& body) {
    constexpr Index length = 1 << 14;
    parallel_for((n + length - 1) / length, work, [&](Index k) { body(k * length, std::min(n, (k + 1) * length)); });
}

}  // namespace hushgraph
