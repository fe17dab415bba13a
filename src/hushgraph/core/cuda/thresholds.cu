// Sums over bins of wavelet coefficients, for thresholds of least SURE; `wavelets/threshold_search.py` says what bins, units, slots and cells are, and this
// gives the same whole numbers. Rows of n values are the y of the grid. `cells.cu` goes on from here.

typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

const int BINS = 2048, FINER = 64, SHIFT = 46, FINER_SHIFT = 40, WORDS = 9, LIMBS = 17, FEW = 1024, SOME = 8192, MANY = 8;
const u32 ALL = 0xffffffffu;

// what is known of a row once its bins are summed
struct Head {
    double n_bins, values, sure_at_zero, least, n_cells, n_members, largest;
};

// `tops` are the bits of the largest size, |x|, |g| and |x| over size
const int TOPS = 4;

struct Row {
    i64 lowest;
    double per_weight;
};

__device__ __forceinline__ double power_of_two_above(double value) {
    int exponent = 0;
    frexp(value, &exponent);
    return fmax(scalbn(1.0, exponent), scalbn(1.0, -900));
}

__device__ __forceinline__ Row row_of(const i64* tops) {
    return {max(0LL, (tops[0] >> SHIFT) - BINS + 1), 4294967296.0 / power_of_two_above(__longlong_as_double(tops[2]))};
}

// how many high units of x^2 there are in 1, in each bin
extern "C" __global__ void __launch_bounds__(256) units(const i64* tops, double* per_square) {
    tops += TOPS * blockIdx.x;
    Row row = row_of(tops);
    double largest = __longlong_as_double(tops[1]), all = power_of_two_above(largest * largest);
    for (int k = threadIdx.x; k < BINS; k += 256) {
        double most = __longlong_as_double((row.lowest + k + 1) << SHIFT) * __longlong_as_double(tops[3]);
        double square = most * most * (1 + 1 / 1099511627776.0);
        per_square[(i64)blockIdx.x * BINS + k] = 4294967296.0 / (isfinite(square) ? fmin(all, power_of_two_above(square)) : all);
    }
}

template <typename X, typename S>
__device__ __forceinline__ double size_of(X x, const S* scale, i64 at) {
    double size = fabs((double)x);
    if (!scale) return size;
    double s = scale[at];
    return s > 0 ? size / s : size == 0 ? 0.0 : -1.0;
}

__device__ __forceinline__ int bin_of(i64 key, i64 lowest) { return (int)max(0LL, (key >> SHIFT) - lowest); }

__device__ __forceinline__ double power(double ratio, double beta) {
    return beta == 1.0 ? ratio : beta == 2.0 ? ratio * ratio : pow(ratio, beta);
}

// whole high units, and low ones of what is left, in the four terms of a value
struct Terms {
    u64 high[4], low[4];
};

__device__ __forceinline__ void split(double value, u64& high, u64& low) {
    high = (u64)value;
    low = (u64)((value - (double)high) * 4294967296.0);
}

__device__ __forceinline__ Terms terms_of(double x, double g, double ratio, double beta, double per_square, double per_weight) {
    Terms terms;
    double square = x * x, r = power(ratio, beta);
    split(square * per_square, terms.high[0], terms.low[0]);
    split(g * per_weight, terms.high[1], terms.low[1]);
    split(square * r * r * per_square, terms.high[2], terms.low[2]);
    split(g * r * per_weight, terms.high[3], terms.low[3]);
    return terms;
}

template <typename X, typename G, typename S>
__global__ void __launch_bounds__(256) extremes(int n, const X* x, const G* g, const S* scale, i64* tops) {
    i64 base = (i64)blockIdx.y * n;
    double found[TOPS] = {-1.0, 0.0, 0.0, 0.0};
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        double value = fabs((double)x[base + i]), size = size_of(x[base + i], scale, base + i);
        found[0] = fmax(found[0], size), found[1] = fmax(found[1], value), found[2] = fmax(found[2], fabs((double)g[base + i]));
        if (size > 0) found[3] = fmax(found[3], scale ? value / size : 1.0);
    }
    __shared__ double warps[TOPS][8];
    for (int what = 0; what < TOPS; what++) {
        for (int far = 16; far; far >>= 1) found[what] = fmax(found[what], __shfl_xor_sync(ALL, found[what], far));
        if ((threadIdx.x & 31) == 0) warps[what][threadIdx.x >> 5] = found[what];
    }
    __syncthreads();
    if (threadIdx.x >= TOPS) return;
    double most = warps[threadIdx.x][0];
    for (int w = 1; w < 8; w++) most = fmax(most, warps[threadIdx.x][w]);
    atomicMax(tops + TOPS * blockIdx.y + threadIdx.x, __double_as_longlong(most));
}

// Sums in shared memory go in limbs of 16 bits, LIMBS planes of them, the last how many values there are: none can overflow as long as a
// bin has at most 65,536 values, so bins that might get more from the next SOME values are emptied into `sums` before.
// A whole warp comes here together, lanes without a value with k = -1. Where many lanes have the same bin, one of them adds for all.
__device__ __forceinline__ void add_limbs(u32* limbs, int width, int k, const Terms& terms) {
    u32 limb[LIMBS];
#pragma unroll
    for (int what = 0; what < 4; what++) {
        limb[4 * what] = (u32)(terms.high[what] >> 16), limb[4 * what + 1] = (u32)(terms.high[what] & 0xffff);
        limb[4 * what + 2] = (u32)(terms.low[what] >> 16), limb[4 * what + 3] = (u32)(terms.low[what] & 0xffff);
    }
    limb[16] = 1;
#if __CUDA_ARCH__ >= 800
    u32 some = __ballot_sync(ALL, k >= 0);
    int first = some ? __ffs(some) - 1 : 0, common = __shfl_sync(ALL, k, first);
    if (__popc(__ballot_sync(ALL, k == common)) >= MANY && common >= 0) {
#pragma unroll
        for (int q = 0; q < LIMBS; q++) {
            u32 sum = __reduce_add_sync(ALL, k == common ? limb[q] : 0u);
            if ((threadIdx.x & 31) == first) atomicAdd(limbs + q * width + common, sum);
        }
        if (k == common) return;
    }
#endif
    if (k < 0) return;
#pragma unroll
    for (int q = 0; q < LIMBS; q++) atomicAdd(limbs + q * width + k, limb[q]);
}

__device__ void empty_limbs(u32* limbs, int width, int used, u32 more_than, u64* sums) {
    for (int k = threadIdx.x; k < used; k += 1024) {
        u32 count = limbs[16 * width + k];
        if (count <= more_than) continue;
        u64* own = sums + (i64)k * WORDS;
        for (int word = 0; word < 8; word++)
            atomicAdd(own + word, ((u64)limbs[2 * word * width + k] << 16) + limbs[(2 * word + 1) * width + k]);
        atomicAdd(own + 8, (u64)count);
        for (int limb = 0; limb < LIMBS; limb++) limbs[limb * width + k] = 0;
    }
}

// `width` bins at a time, as many as fit into shared memory
template <typename X, typename G, typename S>
__global__ void __launch_bounds__(1024) bin_sums(int n, int chunk, const X* x, const G* g, const S* scale, const i64* tops,
                                                 const double* per_square, double beta, int width, u64* sums) {
    extern __shared__ u32 limbs[];
    if (tops[TOPS * blockIdx.y] <= 0) return;
    Row row = row_of(tops + TOPS * blockIdx.y);
    i64 base = (i64)blockIdx.y * n, last = min((i64)n, (i64)(blockIdx.x + 1) * chunk);
    sums += (i64)blockIdx.y * BINS * WORDS, per_square += (i64)blockIdx.y * BINS;
    for (int q = threadIdx.x; q < LIMBS * width; q += 1024) limbs[q] = 0;
    __syncthreads();
    for (int window = 0; window < BINS; window += width)
        for (i64 first = (i64)blockIdx.x * chunk; first < last; first += SOME) {
            for (i64 i = first + threadIdx.x; i < first + SOME; i += 1024) {  // SOME is a multiple of 1,024: warps stay together
                double value = i < last ? (double)x[base + i] : 0.0, weight = i < last ? (double)g[base + i] : 0.0;
                double size = i < last ? size_of(value, scale, base + i) : -1.0;
                int k = size >= 0 ? bin_of(__double_as_longlong(size), row.lowest) : -1;
                bool inside = k >= window && k < window + width;
                double edge = k > 0 ? __longlong_as_double((row.lowest + k) << SHIFT) : 0.0;
                Terms terms = {};
                if (inside) terms = terms_of(value, weight, size > 0 ? edge / size : 0.0, beta, per_square[k], row.per_weight);
                if (__any_sync(ALL, inside)) add_limbs(limbs, width, inside ? k - window : -1, terms);
            }
            __syncthreads();
            empty_limbs(limbs, width, min(width, BINS - window), first + SOME < last ? 65536 - SOME : 0, sums + (i64)window * WORDS);
            __syncthreads();
        }
}

// the values of open bins in finer ones, `window` open bins at a time; `slots` (rows, BINS) are their places
template <typename X, typename G, typename S>
__global__ void __launch_bounds__(1024) finer_sums(int n, int chunk, const X* x, const G* g, const S* scale, const i64* tops,
                                                   const double* per_square, const short* slots, const Head* heads, double beta,
                                                   int window, u64* sums) {
    extern __shared__ u32 limbs[];
    const int width = window * FINER, n_bins = (int)heads[blockIdx.y].n_bins;
    if (heads[blockIdx.y].values <= FEW) return;
    Row row = row_of(tops + TOPS * blockIdx.y);
    i64 base = (i64)blockIdx.y * n, last = min((i64)n, (i64)(blockIdx.x + 1) * chunk);
    sums += (i64)blockIdx.y * BINS * FINER * WORDS, slots += blockIdx.y * BINS, per_square += (i64)blockIdx.y * BINS;
    for (int q = threadIdx.x; q < LIMBS * width; q += 1024) limbs[q] = 0;
    __syncthreads();
    for (int open = 0; open < n_bins; open += window)
        for (i64 first = (i64)blockIdx.x * chunk; first < last; first += SOME) {
            for (i64 i = first + threadIdx.x; i < first + SOME; i += 1024) {
                double value = i < last ? (double)x[base + i] : 0.0, weight = i < last ? (double)g[base + i] : 0.0;
                double size = i < last ? size_of(value, scale, base + i) : -1.0;
                i64 key = __double_as_longlong(size);
                int k = size >= 0 ? bin_of(key, row.lowest) : 0, slot = slots[k] - open, finer = -1;
                Terms terms = {};
                if (k > 0 && slot >= 0 && slot < window) {
                    finer = slot * FINER + (int)((key >> FINER_SHIFT) % FINER);
                    double edge = __longlong_as_double(key >> FINER_SHIFT << FINER_SHIFT);
                    terms = terms_of(value, weight, edge / size, beta, per_square[k], row.per_weight);
                }
                if (__any_sync(ALL, finer >= 0)) add_limbs(limbs, width, finer, terms);
            }
            __syncthreads();
            empty_limbs(limbs, width, min(window, n_bins - open) * FINER, first + SOME < last ? 65536 - SOME : 0,
                        sums + (i64)open * FINER * WORDS);
            __syncthreads();
        }
}
