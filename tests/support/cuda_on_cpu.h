// Enough of CUDA to run its kernels on the processor, one block after the other, its threads as fibers: for tests where there is no GPU.
// A collective (a shuffle, a ballot, a barrier) waits until all that have not returned are there.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static
#define __CUDA_ARCH__ 900
using std::isfinite;
using std::max;
using std::min;

struct dim3 {
    unsigned x, y, z;
};
struct short4 {
    short x, y, z, w;
};
struct ushort4 {
    unsigned short x, y, z, w;
};
struct int4 {
    int x, y, z, w;
};
struct double4 {
    double x, y, z, w;
};
struct double2 {
    double x, y;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static std::vector<char> dynamic_shared;

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static unsigned current, alive;
static std::function<void()> body;

struct Group {
    unsigned arrived = 0, generation = 0, members = 0;
    uint64_t slots[32], seen[32];
};
static std::vector<Group> warps;
static Group block_group;

static void yield() { swapcontext(&fibers[current].context, &scheduler); }

static void arrive(Group& group) {
    unsigned mine = group.generation;
    if (++group.arrived == group.members) {
        memcpy(group.seen, group.slots, sizeof group.slots);
        group.arrived = 0, group.generation++;
    }
    while (group.generation == mine) yield();
}

static void run_fiber() {
    body();
    Group& warp = warps[current / 32];
    fibers[current].done = true;
    alive--;
    for (Group* group : {&warp, &block_group})
        if (--group->members && group->arrived == group->members) {
            memcpy(group->seen, group->slots, sizeof group->slots);
            group->arrived = 0, group->generation++;
        }
    swapcontext(&fibers[current].context, &scheduler);
}

static void launch(const int* grid, const int* block, int shared, std::function<void()> kernel) {
    gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]}, blockDim = {(unsigned)block[0], 1, 1};
    body = kernel;
    fibers.resize(std::max<size_t>(fibers.size(), blockDim.x));
    for (unsigned b = 0; b < gridDim.x * gridDim.y * gridDim.z; b++) {
        dynamic_shared.assign(shared + 16, (char)0xee);
        warps.assign((blockDim.x + 31) / 32, Group());
        block_group = Group();
        block_group.members = alive = blockDim.x;
        for (unsigned t = 0; t < blockDim.x; t++) {
            Fiber& fiber = fibers[t];
            fiber.stack.resize(1 << 16), fiber.done = false;
            getcontext(&fiber.context);
            fiber.context.uc_stack = {fiber.stack.data(), 0, fiber.stack.size()};
            fiber.context.uc_link = nullptr;
            makecontext(&fiber.context, run_fiber, 0);
            warps[t / 32].members++;
        }
        while (alive)
            for (current = 0; current < blockDim.x; current++)
                if (!fibers[current].done) {
                    threadIdx = {current, 0, 0}, blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
                    swapcontext(&scheduler, &fibers[current].context);
                }
    }
}

static void __syncthreads() { arrive(block_group); }
static void __syncwarp() { arrive(warps[current / 32]); }

template <typename T>
static const uint64_t* gathered(T value) {
    Group& warp = warps[current / 32];
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    warp.slots[current % 32] = word;
    arrive(warp);
    return warp.seen;
}

template <typename T>
static T lane_of(const uint64_t* words, int lane) {
    T value;
    memcpy(&value, words + lane, sizeof value);
    return value;
}

template <typename T> static T __shfl_sync(unsigned, T value, int lane) { return lane_of<T>(gathered(value), lane & 31); }
template <typename T> static T __shfl_xor_sync(unsigned, T value, int far) { return lane_of<T>(gathered(value), (threadIdx.x & 31) ^ far); }
template <typename T> static T __shfl_up_sync(unsigned, T value, int far) {
    int lane = (threadIdx.x & 31) - far;
    return lane_of<T>(gathered(value), lane < 0 ? threadIdx.x & 31 : lane);
}
template <typename T> static T __shfl_down_sync(unsigned, T value, int far) {
    int lane = (threadIdx.x & 31) + far;
    return lane_of<T>(gathered(value), lane > 31 ? threadIdx.x & 31 : lane);
}
static unsigned __ballot_sync(unsigned, bool flag) {
    const uint64_t* words = gathered((unsigned)flag);
    unsigned found = 0;
    for (int lane = 0; lane < 32; lane++) found |= (words[lane] ? 1u : 0u) << lane;
    return found;
}
static bool __any_sync(unsigned mask, bool flag) { return __ballot_sync(mask, flag) != 0; }
static unsigned __reduce_add_sync(unsigned, unsigned value) {
    const uint64_t* words = gathered(value);
    unsigned sum = 0;
    for (int lane = 0; lane < 32; lane++) sum += (unsigned)words[lane];
    return sum;
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }
static double __longlong_as_double(long long bits) { return lane_of<double>((const uint64_t*)&bits, 0); }
static long long __double_as_longlong(double value) { return lane_of<long long>((const uint64_t*)&value, 0); }
template <typename T> static T __ldg(const T* place) { return *place; }
template <typename T> static T __ldcs(const T* place) { return *place; }
template <typename T, typename U> static T atomicAdd(T* place, U more) { T old = *place; *place += (T)more; return old; }
template <typename T, typename U> static T atomicMax(T* place, U other) { T old = *place; *place = std::max(old, (T)other); return old; }
template <typename T, typename U> static T atomicMin(T* place, U other) { T old = *place; *place = std::min(old, (T)other); return old; }
