// Sums over nodes, in an order that never changes; and random signs.

typedef long long i64;
typedef unsigned long long u64;

const int PER_BLOCK = 8192;

// sum_i a_ki b_ki over PER_BLOCK nodes i, for rows k; without b, of a alone
template <typename A, typename B>
__global__ void __launch_bounds__(256) dots(i64 n, const A* a, i64 a_stride, const B* b, i64 b_stride, double* parts) {
    __shared__ double warps[8];
    const A* left = a + (i64)blockIdx.y * a_stride;
    const B* right = b + (i64)blockIdx.y * b_stride;
    i64 first = (i64)blockIdx.x * PER_BLOCK, last = min(n, first + PER_BLOCK);
    double sum = 0;
    for (i64 i = first + threadIdx.x; i < last; i += 256) sum += b ? (double)left[i] * (double)right[i] : (double)left[i];
    for (int far = 16; far; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) sum += warps[w];
        parts[(i64)blockIdx.y * gridDim.x + blockIdx.x] = sum;
    }
}

__device__ __forceinline__ u64 scramble(u64 x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// one sign for each node and key, as `monte_carlo.probes` makes them
template <typename T>
__global__ void __launch_bounds__(256) signs(i64 n, const u64* keys, T* out) {
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[(i64)blockIdx.y * n + i] = scramble(scramble((u64)i + 1) ^ keys[blockIdx.y]) >> 63 ? (T)-1 : (T)1;
}
