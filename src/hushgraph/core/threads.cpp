// A pool of threads that survives fork and is never waited for: a caller who finds it busy works alone.
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
std::atomic<bool> closing{false};            // the process ends
std::atomic<std::thread::id> last_thread{};  // the one that ends it
std::atomic<int> returning{0};               // threads that are about to take the lock of the interpreter
thread_local int chosen = 0;                 // threads of the loops that this thread starts; 0: all processors

struct Loop;
struct Place {
    Loop* loop = nullptr;  // a loop inside a loop runs alone
    Interrupts* interrupts = nullptr;
};
thread_local Place here;  // where the calling thread is

// Thrown in the other threads of a loop that has failed in one; nobody sees it.
struct Stopped {};

// Sets where the calling thread is, for the life of this object.
class Inside {
  public:
    Inside(Loop* loop, Interrupts* interrupts) : before_(here) { here = {loop, interrupts}; }
    ~Inside() { here = before_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    Place before_;
};

struct Loop {
    Index count;
    detail::Body body;
    void* context;
    std::atomic<Index> next{0};
    std::atomic<bool> stopped{false};
    std::exception_ptr failure{};
    std::mutex failing{};

    void fail(std::exception_ptr error) {
        std::lock_guard<std::mutex> hold(failing);
        if (!failure) failure = error;
        stopped = true;
    }

    // Takes numbers until none are left. Only the thread that Python called looks for signals.
    void work(int worker, Interrupts* interrupts) noexcept {
        const Inside inside(this, interrupts);
        try {
            for (Index k; !stopped && (k = next++) < count;) {
                body(context, k, worker);
                if (interrupts) interrupts->look();
            }
        } catch (...) {
            fail(std::current_exception());
        }
    }
};

class Pool {
  public:
    // Runs the loop on `threads` threads, the caller's included; false if another caller has the pool.
    bool run(Loop& loop, int threads) {
        std::unique_lock<std::mutex> mine(taken_, std::try_to_lock);
        if (!mine.owns_lock()) return false;
        const int others = std::min(threads - 1, start(threads - 1));
        {
            std::lock_guard<std::mutex> hold(state_);
            loop_ = &loop;
            wanted_ = others;
            running_ = 0;
            generation_++;
        }
        wake_.notify_all();
        Interrupts interrupts;
        loop.work(0, &interrupts);
        std::unique_lock<std::mutex> hold(state_);
        wanted_ = 0;  // who has not come yet is too late
        idle_.wait(hold, [&] { return running_ == 0; });
        loop_ = nullptr;
        return true;
    }

  private:
    // Makes sure that so many workers exist; returns how many do. A system that gives no more threads is no error.
    int start(int count) {
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
        std::unique_lock<std::mutex> hold(state_);
        for (;;) {
            wake_.wait(hold, [&] { return generation_ != seen && wanted_ > 0; });
            seen = generation_;
            const int worker = wanted_--;
            running_++;
            Loop& loop = *loop_;
            hold.unlock();
            loop.work(worker, nullptr);
            hold.lock();
            if (--running_ == 0) idle_.notify_one();
        }
    }

    std::mutex taken_, state_;
    std::condition_variable wake_, idle_;
    std::vector<std::thread> workers_;
    Loop* loop_ = nullptr;
    int wanted_ = 0, running_ = 0;
    std::uint64_t generation_ = 0;
};

std::atomic<Pool*> pool{nullptr};

// The threads of a parent process do not exist in its child, which gets a new pool. Pools are never deleted: their threads wait
// until the process ends.
Pool& the_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] {
            pool = new Pool;
            returning = 0;
        });
#endif
        pool = new Pool;
    });
    return *pool;
}

}  // namespace

int thread_count() { return chosen > 0 ? chosen : processors.load(); }

int set_threads(int count) {
    const int before = chosen;
    chosen = count;
    return before;
}

void set_processors(int count) { processors = std::max(1, count); }

void Interrupts::ask_python() {
    const Returning returning;
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void look_for_signals() {
    if (here.interrupts)
        here.interrupts->look();
    else if (here.loop && here.loop->stopped)
        throw Stopped();
}

// ---- the end of the process

// Python ends threads that ask for its lock after its end has begun, in a way that C++ answers with an abort. So those that come
// back from a loop then wait for the end of the process instead. `close` is the first thing that happens at the end; it lets those
// that are about to take the lock take it.
Returning::Returning() {
    returning++;
    if (!closing || std::this_thread::get_id() == last_thread.load()) return;
    returning--;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

Returning::~Returning() { returning--; }

void close() {
    last_thread = std::this_thread::get_id();
    closing = true;
    PyThreadState* state = PyEval_SaveThread();
    for (int tries = 0; returning > 0 && tries < 1000; tries++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
}

void detail::run(Index count, int threads, Body body, void* context) {
    if (here.loop) {
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
