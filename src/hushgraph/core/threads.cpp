// A pool of threads. It works after a fork. A caller never waits for the pool: if another caller uses it, the loop runs on one
// thread.
#include "python.h"

#include "threads.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace hushgraph {
namespace {

std::atomic<int> processors{1};
std::atomic<bool> is_closing{false};         // whether the process is ending
std::atomic<std::thread::id> last_thread{};  // the thread that ends the process
std::atomic<int> n_entering{0};              // number of threads that are about to take the interpreter lock
thread_local int thread_limit = 0;           // threads for loops that this thread starts; 0: one for each processor

struct Loop;
struct LoopContext {
    Loop* loop = nullptr;              // the loop that the thread runs, if any; a loop inside it runs on this thread only
    Interrupts* interrupts = nullptr;  // null on threads of the pool
};
thread_local LoopContext current;

// Exception that stops the other threads of a loop after one thread has failed; `Loop::work` catches it.
struct Stopped {};

// Sets `current` for the life of this object.
class ContextGuard {
  public:
    ContextGuard(Loop* loop, Interrupts* interrupts) : outer_(current) { current = {loop, interrupts}; }
    ~ContextGuard() { current = outer_; }
    ContextGuard(const ContextGuard&) = delete;
    ContextGuard& operator=(const ContextGuard&) = delete;

  private:
    LoopContext outer_;
};

struct Loop {
    Index count;
    detail::Body body;
    void* context;
    std::atomic<Index> next{0};
    std::atomic<bool> stopped{false};
    std::exception_ptr failure{};
    std::mutex failure_mutex{};

    void fail(std::exception_ptr error) {
        std::lock_guard<std::mutex> lock(failure_mutex);
        if (!failure) failure = error;
        stopped = true;
    }

    // Runs steps until none are left. Only the thread that Python called has `interrupts` and checks for signals.
    void work(int worker, Interrupts* interrupts) noexcept {
        const ContextGuard guard(this, interrupts);
        try {
            for (Index k; !stopped && (k = next++) < count;) {
                body(context, k, worker);
                if (interrupts) interrupts->check();
            }
        } catch (...) {
            fail(std::current_exception());
        }
    }
};

class Pool {
  public:
    // Runs the loop on `threads` threads, including the calling thread. Returns false if another caller uses the pool.
    bool run(Loop& loop, int threads) {
        std::unique_lock<std::mutex> use(in_use_, std::try_to_lock);
        if (!use.owns_lock()) return false;
        const int helpers = std::min(threads - 1, start_workers(threads - 1));
        {
            std::lock_guard<std::mutex> lock(state_);
            loop_ = &loop;
            n_wanted_ = helpers;
            n_running_ = 0;
            generation_++;
        }
        wake_.notify_all();
        Interrupts interrupts;
        loop.work(0, &interrupts);
        std::unique_lock<std::mutex> lock(state_);
        n_wanted_ = 0;  // workers that have not started yet are no longer needed
        idle_.wait(lock, [&] { return n_running_ == 0; });
        loop_ = nullptr;
        return true;
    }

  private:
    // Starts workers until `count` exist; returns how many exist. It is no error if the system refuses to start a thread.
    int start_workers(int count) {
        while (static_cast<int>(workers_.size()) < count) {
            try {
                workers_.emplace_back([this] { serve(); });
            } catch (...) {
                break;
            }
        }
        return static_cast<int>(workers_.size());
    }

    void serve() {
        std::uint64_t seen = 0;
        std::unique_lock<std::mutex> lock(state_);
        for (;;) {
            wake_.wait(lock, [&] { return generation_ != seen && n_wanted_ > 0; });
            seen = generation_;
            const int worker = n_wanted_--;
            n_running_++;
            Loop& loop = *loop_;
            lock.unlock();
            loop.work(worker, nullptr);
            lock.lock();
            if (--n_running_ == 0) idle_.notify_one();
        }
    }

    std::mutex in_use_, state_;
    std::condition_variable wake_, idle_;
    std::vector<std::thread> workers_;
    Loop* loop_ = nullptr;
    int n_wanted_ = 0, n_running_ = 0;
    std::uint64_t generation_ = 0;  // number of loops so far
};

std::atomic<Pool*> pool{nullptr};

// Returns the pool of this process. A forked child has none of the threads of its parent, so the child gets a new pool. Pools are
// never deleted: the workers wait until the process ends.
Pool& the_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] {
            pool = new Pool;
            n_entering = 0;
        });
#endif
        pool = new Pool;
    });
    return *pool;
}

}  // namespace

int thread_count() { return thread_limit > 0 ? thread_limit : processors.load(); }

int set_threads(int count) {
    const int before = thread_limit;
    thread_limit = count;
    return before;
}

void set_processors(int count) { processors = std::max(1, count); }

void Interrupts::run_handlers() {
    const PythonEntry entry;
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void check_signals() {
    if (current.interrupts)
        current.interrupts->check();
    else if (current.loop && current.loop->stopped)
        throw Stopped();
}

// ---- the end of the process

// When Python shuts down, it ends each thread that asks for the interpreter lock, in a way that makes C++ abort the process. So a
// thread that comes back from a loop during the shutdown sleeps until the process ends. `close` is the first step of the shutdown;
// it waits for threads that are already taking the lock.
PythonEntry::PythonEntry() {
    n_entering++;
    if (!is_closing || std::this_thread::get_id() == last_thread.load()) return;
    n_entering--;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

PythonEntry::~PythonEntry() { n_entering--; }

void close() {
    last_thread = std::this_thread::get_id();
    is_closing = true;
    PyThreadState* state = PyEval_SaveThread();
    for (int tries = 0; n_entering > 0 && tries < 1000; tries++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
}

void detail::run(Index count, int threads, Body body, void* context) {
    if (current.loop) {
        for (Index k = 0; k < count; k++) body(context, k, 0);
        return;
    }
    Loop loop{count, body, context};
    if (threads < 2 || !the_pool().run(loop, threads)) {
        Interrupts interrupts;
        loop.work(0, &interrupts);
    }
    if (loop.failure) std::rethrow_exception(loop.failure);
}

}  // namespace hushgraph
