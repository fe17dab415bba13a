// Sums over bins of wavelet coefficients, and the values of some of them, for thresholds of least SURE; `sure_bins.py` says what bins,
// units, slots and cells are, and this gives the same whole numbers. Rows of n values are the y of the grid.

typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

const int BINS = 2048, FINER = 64, SHIFT = 46, FINER_SHIFT = 40, WORDS = 9, LIMBS = 17, FEW = 1024, SOME = 8192, WINDOW = 48;

struct Row {
    i64 lowest;
    double per_square, per_weight;
};

__device__ __forceinline__ double per_unit(double largest) {
    int exponent = 0;
    frexp(largest, &exponent);
    return 4294967296.0 / fmax(scalbn(1.0, exponent), scalbn(1.0, -900));
}

// of the largest size, |x| and |g|, which come as the bits of a double
__device__ __forceinline__ Row row_of(const i64* tops) {
    double largest = __longlong_as_double(tops[1]);
    return {max(0LL, (tops[0] >> SHIFT) - BINS + 1), per_unit(largest * largest), per_unit(__longlong_as_double(tops[2]))};
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

__device__ __forceinline__ Terms terms_of(double x, double g, double ratio, double beta, const Row& row) {
    Terms terms;
    double square = x * x, r = power(ratio, beta);
    split(square * row.per_square, terms.high[0], terms.low[0]);
    split(g * row.per_weight, terms.high[1], terms.low[1]);
    split(square * r * r * row.per_square, terms.high[2], terms.low[2]);
    split(g * r * row.per_weight, terms.high[3], terms.low[3]);
    return terms;
}

template <typename X, typename G, typename S>
__global__ void __launch_bounds__(256) extremes(int n, const X* x, const G* g, const S* scale, i64* tops) {
    i64 base = (i64)blockIdx.y * n;
    double found[3] = {-1.0, 0.0, 0.0};
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        X value = x[base + i];
        found[0] = fmax(found[0], size_of(value, scale, base + i));
        found[1] = fmax(found[1], fabs((double)value));
        found[2] = fmax(found[2], fabs((double)g[base + i]));
    }
    for (int what = 0; what < 3; what++) {
        for (int far = 16; far; far >>= 1) found[what] = fmax(found[what], __shfl_xor_sync(0xffffffffu, found[what], far));
        if ((threadIdx.x & 31) == 0) atomicMax(tops + 3 * blockIdx.y + what, __double_as_longlong(found[what]));
    }
}

// Sums in shared memory go in limbs of 16 bits, LIMBS planes of them, the last how many values there are: none can overflow as long as a
// bin has at most 65,536 values, so bins that might get more from the next SOME values are emptied into `sums` before.
__device__ __forceinline__ void add_limbs(u32* limbs, int width, int k, const Terms& terms) {
#pragma unroll
    for (int what = 0; what < 4; what++) {
        atomicAdd(limbs + (4 * what) * width + k, (u32)(terms.high[what] >> 16));
        atomicAdd(limbs + (4 * what + 1) * width + k, (u32)(terms.high[what] & 0xffff));
        atomicAdd(limbs + (4 * what + 2) * width + k, (u32)(terms.low[what] >> 16));
        atomicAdd(limbs + (4 * what + 3) * width + k, (u32)(terms.low[what] & 0xffff));
    }
    atomicAdd(limbs + 16 * width + k, 1u);
}

__device__ void empty_limbs(u32* limbs, int width, u32 more_than, u64* sums) {
    for (int k = threadIdx.x; k < width; k += 1024) {
        u32 count = limbs[16 * width + k];
        if (count <= more_than) continue;
        u64* own = sums + (i64)k * WORDS;
        for (int word = 0; word < 8; word++)
            atomicAdd(own + word, ((u64)limbs[2 * word * width + k] << 16) + limbs[(2 * word + 1) * width + k]);
        atomicAdd(own + 8, (u64)count);
        for (int limb = 0; limb < LIMBS; limb++) limbs[limb * width + k] = 0;
    }
}

template <typename X, typename G, typename S>
__global__ void __launch_bounds__(1024) bin_sums(int n, int chunk, const X* x, const G* g, const S* scale, const i64* tops, double beta,
                                                 u64* sums) {
    extern __shared__ u32 limbs[];
    if (tops[3 * blockIdx.y] <= 0) return;
    Row row = row_of(tops + 3 * blockIdx.y);
    i64 base = (i64)blockIdx.y * n, first = (i64)blockIdx.x * chunk, last = min((i64)n, first + chunk);
    sums += (i64)blockIdx.y * BINS * WORDS;
    for (int q = threadIdx.x; q < LIMBS * BINS; q += 1024) limbs[q] = 0;
    __syncthreads();
    for (; first < last; first += SOME) {
        for (i64 i = first + threadIdx.x; i < min(last, first + SOME); i += 1024) {
            double value = x[base + i], size = size_of(x[base + i], scale, base + i);
            if (!(size >= 0)) continue;
            int k = bin_of(__double_as_longlong(size), row.lowest);
            double edge = k ? __longlong_as_double((row.lowest + k) << SHIFT) : 0.0;
            add_limbs(limbs, BINS, k, terms_of(value, g[base + i], size > 0 ? edge / size : 0.0, beta, row));
        }
        __syncthreads();
        empty_limbs(limbs, BINS, first + SOME < last ? 65536 - SOME : 0, sums);
        __syncthreads();
    }
}

// ---- where the minimum may be: as `sure_bins.open_bins` and `open_cells`, a block for each row --------------------------

struct Head {
    double n_bins, values, sure_at_zero, least, n_cells;
};

__device__ __forceinline__ double edge_of(i64 number, int shift) { return __longlong_as_double(number << shift); }

__device__ __forceinline__ double in_floats(const i64* words, int what, double per_unit) {
    double unit = 1 / per_unit;
    return (double)words[2 * what] * unit + (double)words[2 * what + 1] * (unit * (1 / 4294967296.0));
}

__device__ __forceinline__ double sure(double energy, double a, double b, double c, double variance, double beta) {
    return energy + a + 2 * variance * (b + (beta - 1) * c);
}

__device__ double least_of_block(double value) {
    __shared__ double warps[8];
    for (int far = 16; far; far >>= 1) value = fmin(value, __shfl_xor_sync(0xffffffffu, value, far));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = value;
    __syncthreads();
    for (int w = 0; w < 8; w++) value = fmin(value, warps[w]);
    __syncthreads();
    return value;
}

__device__ __forceinline__ bool is_open(double bound, double least) { return bound <= least + 1e-12 * fabs(least); }

extern "C" __global__ void __launch_bounds__(256) open_bins(const i64* tops, const i64* all_sums, double variance, double beta, Head* heads,
                                                            short* slots, double* bins) {
    extern __shared__ double room[];
    double *energy = room, *weight = room + BINS, *lifted = room + 2 * BINS, *tilted = room + 3 * BINS, *ratio = room + 4 * BINS,
           *under = room + 5 * BINS, *a = room + 6 * BINS, *b = room + 7 * BINS, *c = room + 8 * BINS;
    Head& head = heads[blockIdx.x];
    slots += blockIdx.x * BINS, bins += (i64)blockIdx.x * BINS * 5;
    for (int k = threadIdx.x; k < BINS; k += 256) slots[k] = -1;
    if (threadIdx.x == 0) head = {0, 0, 0, 0, 0};
    if (tops[3 * blockIdx.x] <= 0) return;
    Row row = row_of(tops + 3 * blockIdx.x);
    const i64* sums = all_sums + (i64)blockIdx.x * BINS * WORDS;
    for (int k = threadIdx.x; k < BINS; k += 256) {
        const i64* own = sums + k * WORDS;
        energy[k] = in_floats(own, 0, row.per_square), weight[k] = in_floats(own, 1, row.per_weight);
        lifted[k] = in_floats(own, 2, row.per_square), tilted[k] = in_floats(own, 3, row.per_weight);
        ratio[k] = k ? power(edge_of(row.lowest + k, SHIFT) / edge_of(row.lowest + k + 1, SHIFT), beta) : power(0.0, beta);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double above[3] = {0, 0, 0};
        for (int k = BINS - 1; k >= 0; k--) {
            a[k] = above[0], b[k] = above[1], c[k] = above[2];
            above[0] = ratio[k] * ratio[k] * above[0] + lifted[k];
            above[1] += weight[k];
            above[2] = ratio[k] * above[2] + tilted[k];
        }
    } else if (threadIdx.x == 32) {
        double total = 0;
        for (int k = 0; k < BINS; k++) {
            total += energy[k];
            under[k] = total - energy[k];
        }
    }
    __syncthreads();
    double least = 2 * variance * (b[0] + weight[0]), at_zero = least;
    for (int k = threadIdx.x; k < BINS; k += 256) least = fmin(least, sure(under[k] + energy[k], a[k], b[k], c[k], variance, beta));
    least = least_of_block(least);
    if (threadIdx.x >= 32) return;
    int count = 0;
    i64 values = 0;
    for (int base = 0; base < BINS; base += 32) {
        int k = base + threadIdx.x;
        double bound = sure(under[k] + lifted[k], ratio[k] * ratio[k] * a[k], b[k], ratio[k] * c[k], variance, beta);
        bool open = sums[k * WORDS + 8] && is_open(bound, least);
        u32 taken = __ballot_sync(0xffffffffu, open);
        if (open) {
            int slot = count + __popc(taken & ((1u << threadIdx.x) - 1));
            slots[k] = slot;
            double* own = bins + 5 * slot;
            own[0] = k, own[1] = under[k], own[2] = a[k], own[3] = b[k], own[4] = c[k];
            values += sums[k * WORDS + 8];
        }
        count += __popc(taken);
    }
    for (int far = 16; far; far >>= 1) values += __shfl_xor_sync(0xffffffffu, values, far);
    if (threadIdx.x == 0) head = {(double)count, (double)values, at_zero, least, 0};
}

// `parts` is room for the bound of each finer bin, the energy below it and A, B, C above it
extern "C" __global__ void __launch_bounds__(256) open_cells(const i64* tops, const i64* finer, double variance, double beta, Head* heads,
                                                             const double* bins, double* parts, double* cells, int* cell_of) {
    Head& head = heads[blockIdx.x];
    Row row = row_of(tops + 3 * blockIdx.x);
    finer += (i64)blockIdx.x * BINS * FINER * WORDS, bins += (i64)blockIdx.x * BINS * 5, parts += (i64)blockIdx.x * BINS * FINER * 5;
    cells += (i64)blockIdx.x * BINS * FINER * 5, cell_of += (i64)blockIdx.x * BINS * FINER;
    int n_bins = (int)head.n_bins;
    bool cut = head.values > FEW;
    double least = head.least;
    for (int s = threadIdx.x; s < n_bins; s += 256) {
        const double* bin = bins + 5 * s;
        if (!cut || bin[0] == 0) continue;
        const i64* words = finer + (i64)s * FINER * WORDS;
        double* part = parts + (i64)s * FINER * 5;
        double total = 0, a = bin[2], b = bin[3], c = bin[4];
        for (int f = 0; f < FINER; f++) {
            double energy = in_floats(words + f * WORDS, 0, row.per_square);
            total += energy;
            part[5 * f + 1] = bin[1] + (total - energy);
        }
        for (int f = FINER - 1; f >= 0; f--) {
            const i64* own = words + f * WORDS;
            i64 number = (row.lowest + (i64)bin[0]) * FINER + f;
            double r = power(edge_of(number, FINER_SHIFT) / edge_of(number + 1, FINER_SHIFT), beta), under = part[5 * f + 1];
            part[5 * f + 2] = a, part[5 * f + 3] = b, part[5 * f + 4] = c;
            least = fmin(least, sure(under + in_floats(own, 0, row.per_square), a, b, c, variance, beta));
            double lifted = in_floats(own, 2, row.per_square);
            a = r * r * a, c = r * c;
            part[5 * f] = sure(under + lifted, a, b, c, variance, beta);
            a += lifted, b += in_floats(own, 1, row.per_weight), c += in_floats(own, 3, row.per_weight);
        }
    }
    least = least_of_block(least);
    if (threadIdx.x >= 32) return;
    int count = 0;
    for (int s = 0; s < n_bins; s++) {
        const double* bin = bins + 5 * s;
        bool whole = !cut || bin[0] == 0;
        for (int f = threadIdx.x; f < FINER; f += 32) {
            const double* part = parts + ((i64)s * FINER + f) * 5;
            bool open = whole || (finer[((i64)s * FINER + f) * WORDS + 8] && is_open(part[0], least));
            u32 taken = __ballot_sync(0xffffffffu, open);
            int cell = whole ? count : count + __popc(taken & ((1u << threadIdx.x) - 1));
            cell_of[s * FINER + f] = open ? cell : -1;
            if (open && (!whole || f == 0)) {
                i64 number = whole ? (row.lowest + (i64)bin[0] + 1) * FINER : (row.lowest + (i64)bin[0]) * FINER + f + 1;
                double* own = cells + (i64)cell * 5;
                own[0] = edge_of(number, FINER_SHIFT);
                for (int q = 1; q < 5; q++) own[q] = whole ? bin[q] : part[q];
            }
            if (!whole) count += __popc(taken);
        }
        if (whole) count++;
    }
    if (threadIdx.x == 0) head.n_cells = count;
}

// the values of open bins in finer ones, WINDOW open bins at a time; `slots` (rows, BINS) are their places
template <typename X, typename G, typename S>
__global__ void __launch_bounds__(1024) finer_sums(int n, int chunk, const X* x, const G* g, const S* scale, const i64* tops,
                                                   const short* slots, const Head* heads, double beta, u64* sums) {
    extern __shared__ u32 limbs[];
    int window = blockIdx.z * WINDOW, width = WINDOW * FINER;
    if (heads[blockIdx.y].values <= FEW || heads[blockIdx.y].n_bins <= window) return;
    Row row = row_of(tops + 3 * blockIdx.y);
    i64 base = (i64)blockIdx.y * n, first = (i64)blockIdx.x * chunk, last = min((i64)n, first + chunk);
    sums += ((i64)blockIdx.y * BINS + window) * FINER * WORDS, slots += blockIdx.y * BINS;
    for (int q = threadIdx.x; q < LIMBS * width; q += 1024) limbs[q] = 0;
    __syncthreads();
    for (; first < last; first += SOME) {
        for (i64 i = first + threadIdx.x; i < min(last, first + SOME); i += 1024) {
            double value = x[base + i], size = size_of(x[base + i], scale, base + i);
            i64 key = __double_as_longlong(size);
            int k = !(size >= 0) ? 0 : bin_of(key, row.lowest), slot = slots[k] - window;
            if (k == 0 || slot < 0 || slot >= WINDOW) continue;
            double edge = __longlong_as_double(key >> FINER_SHIFT << FINER_SHIFT);
            add_limbs(limbs, width, slot * FINER + (int)((key >> FINER_SHIFT) % FINER), terms_of(value, g[base + i], edge / size, beta, row));
        }
        __syncthreads();
        empty_limbs(limbs, width, first + SOME < last ? 65536 - SOME : 0, sums);
        __syncthreads();
    }
}

template <typename X, typename S>
__device__ __forceinline__ int cell_at(int i, int n, i64 base, const X* x, const S* scale, i64 lowest, const short* slots,
                                       const int* cell_of, double* size) {
    if (i >= n) return -1;
    *size = size_of(x[base + i], scale, base + i);
    if (!(*size >= 0)) return -1;
    i64 key = __double_as_longlong(*size);
    int slot = slots[blockIdx.y * BINS + bin_of(key, lowest)];
    return slot < 0 ? -1 : cell_of[((i64)blockIdx.y * BINS + slot) * FINER + (int)((key >> FINER_SHIFT) % FINER)];
}

// how many of each 4,096 values lie in cells; or, with `starts`, these values in order: cell, size, x, g
template <typename X, typename G, typename S>
__global__ void __launch_bounds__(256) members(int n, const X* x, const G* g, const S* scale, const i64* tops, const short* slots,
                                               const int* cell_of, int* counts, const int* starts, i64 total, double* out) {
    __shared__ int warps[8];
    i64 base = (i64)blockIdx.y * n, lowest = row_of(tops + 3 * blockIdx.y).lowest;
    int block = blockIdx.y * gridDim.x + blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int place = starts && block ? starts[block - 1] : 0, inside = 0;
    for (int part = 0; part < 4096; part += 256) {
        int i = blockIdx.x * 4096 + part + threadIdx.x;
        double size = 0;
        int cell = cell_at(i, n, base, x, scale, lowest, slots, cell_of, &size);
        u32 taken = __ballot_sync(0xffffffffu, cell >= 0);
        if (lane == 0) warps[warp] = __popc(taken);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 8; w++) {
            if (w < warp) before += warps[w];
            all += warps[w];
        }
        if (starts && cell >= 0) {
            i64 at = place + inside + before + __popc(taken & ((1u << lane) - 1));
            out[at] = cell, out[total + at] = size, out[2 * total + at] = x[base + i], out[3 * total + at] = g[base + i];
        }
        inside += all;
        __syncthreads();
    }
    if (!starts && threadIdx.x == 0) counts[block] = inside;
}
