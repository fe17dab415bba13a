// The Chebyshev recurrence on one GPU; `gpu.py` says how the pieces make a transform, `core/gpu_layout.py` how rows are stored.
//
// The values of a row lie side by side, one for each of COLUMNS signals; bands and what goes to nodes have a plane for each signal.
// Sums go in the order of the processor's kernel and no multiplication is fused with an addition, so that both give the same bits, but for
// rows that a warp adds up.

typedef unsigned int u32;
typedef long long i64;

template <typename D>
struct Four;
template <>
struct Four<short> {
    typedef short4 type;
    static const int more = -32768;
};
template <>
struct Four<int> {
    typedef int4 type;
    static const int more = (int)0x80000000;
};

// COUNT values of a row, as many as a thread loads at once
template <typename T, int COUNT>
struct Load {
    typedef T type;
};
template <>
struct Load<double, 2> {
    typedef double2 type;
};
template <>
struct Load<float, 2> {
    typedef float2 type;
};
template <>
struct Load<float, 4> {
    typedef float4 type;
};
template <typename T, int COUNT>
union Part {
    typename Load<T, COUNT>::type whole;
    T at[COUNT];
};

template <typename T>
struct Rows {
    int n;
    i64 stride;              // between quads
    const void* differences; // (QUADS, stride) of four
    const T* values;         // (QUADS, stride, 4), or null: every edge weighs the same
    const u32* warp_tails;
    const u32* tail_starts;
    const u32* tail_rows;
    const T* tail_values;
    const T* shift;          // (n), or null: per_neighbour * length + offset
    double per_neighbour, offset;
    T gain;
};

// out = [start +] shift own - gain sum of neighbours - before; null vectors are 0. LANES threads share a row, each with its columns of it.
// What a row reads is asked for before the first of it is used; a place without a neighbour reads its own row and adds nothing.
// `turned` goes through the rows from the last to the first: the next term finds in the cache what this one used last.
template <typename T, typename D, int QUADS, int COLUMNS, int LANES, bool WEIGHTED>
__global__ void __launch_bounds__(STEP_THREADS) step(Rows<T> rows, T factor, const T* __restrict__ before_at, const T* __restrict__ x_at,
                                                     const T* start_at, T* out_at, bool turned) {
    const int OWN = COLUMNS / LANES;
    typedef typename Load<T, OWN>::type V;
    typedef typename Four<D>::type Quad;
    const V *x = (const V*)x_at, *before = (const V*)before_at, *start = (const V*)start_at;
    const Quad* differences = (const Quad*)rows.differences;
    i64 thread = (i64)(turned ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * blockDim.x + threadIdx.x, row = thread / LANES;
    int lane = thread % LANES, length = 0, far[QUADS][4];
    bool inside = row < rows.n;
    i64 i = inside ? row : 0, at = i * LANES + lane;
    u32 number = __ldg(rows.warp_tails + (i >> 5)), begin = 0, end = 0;
    Part<T, OWN> total, own, last, first;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        Quad four = __ldg(differences + q * rows.stride + i);
        far[q][0] = four.x, far[q][1] = four.y, far[q][2] = four.z, far[q][3] = four.w;
    }
    own.whole = __ldg(x + at);
    if (before) last.whole = __ldcs(before + at);
    if (start) first.whole = __ldcs(start + at);
    // a bit for each of the 32 rows around this one that has a tail
    bool more = far[QUADS - 1][3] == Four<D>::more, flag = more && inside;
    if (LANES > 1) {
        i64 around = min(row & ~31LL, rows.stride - 32);
        flag = __ldg(differences + (QUADS - 1) * rows.stride + around + (threadIdx.x & 31)).w == Four<D>::more;
    }
    u32 tails = __ballot_sync(0xffffffffu, flag);
    if (more) {
        far[QUADS - 1][3] = 0;
        number += __popc(tails & ((1u << (i & 31)) - 1));
        begin = __ldg(rows.tail_starts + number), end = __ldg(rows.tail_starts + number + 1);
    }
#pragma unroll
    for (int w = 0; w < OWN; w++) total.at[w] = 0;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        Part<T, OWN> neighbour[4];
        T weight[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            if (WEIGHTED) weight[p] = __ldg(rows.values + 4 * (q * rows.stride + i) + p);
            neighbour[p].whole = __ldg(x + at + (i64)far[q][p] * LANES);
        }
#pragma unroll
        for (int p = 0; p < 4; p++) {
            length += far[q][p] != 0;
#pragma unroll
            for (int w = 0; w < OWN; w++) {
                T sum = total.at[w] + (WEIGHTED ? weight[p] * neighbour[p].at[w] : neighbour[p].at[w]);
                total.at[w] = far[q][p] ? sum : total.at[w];
            }
        }
    }
#pragma unroll 1
    for (u32 p = begin; p < end; p++) {
        Part<T, OWN> neighbour;
        neighbour.whole = __ldg(x + (i64)__ldg(rows.tail_rows + p) * LANES + lane);
        T weight = WEIGHTED ? __ldg(rows.tail_values + p) : (T)1;
#pragma unroll
        for (int w = 0; w < OWN; w++) total.at[w] += WEIGHTED ? weight * neighbour.at[w] : neighbour.at[w];
    }
    if (!inside) return;
    length += end - begin;
    T shift = factor * (rows.shift ? __ldg(rows.shift + i) : (T)(rows.per_neighbour * length + rows.offset)), gain = factor * rows.gain;
    Part<T, OWN> term;
#pragma unroll
    for (int w = 0; w < OWN; w++) {
        term.at[w] = shift * own.at[w] - gain * total.at[w] - (before ? last.at[w] : (T)0);
        if (start) term.at[w] = first.at[w] + term.at[w];
    }
    ((V*)out_at)[at] = term.whole;
}

// the rows of many neighbours, a warp each, after `step`, which left their sums out
template <typename T, int COLUMNS>
__global__ void long_rows(Rows<T> rows, T factor, const T* x, T* out, int n_long, const int* which, const u32* starts, const u32* neighbours,
                          const T* values) {
    int number = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (number >= n_long) return;
    T total[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) total[c] = 0;
    for (u32 p = starts[number] + lane; p < starts[number + 1]; p += 32) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            T neighbour = __ldg(x + (i64)neighbours[p] * COLUMNS + c);
            total[c] += rows.values ? values[p] * neighbour : neighbour;
        }
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        for (int far = 16; far; far >>= 1) total[c] += __shfl_down_sync(0xffffffffu, total[c], far);
        if (lane == 0) out[(i64)which[number] * COLUMNS + c] -= factor * rows.gain * total[c];
    }
}

// bands_j [+]= sum_s theta_sj terms_s, in ascending s; BANDS of them at a time. With `order` the result goes to nodes, not rows. A block
// turns its rows around before it writes them, so that neighbouring threads write neighbouring rows of one signal.
template <typename T, int BANDS, int COLUMNS>
__global__ void __launch_bounds__(256) mix(int n, i64 stride, int count, const T* theta, int n_bands, const T* terms, bool fresh, const T* bands,
                                           T* out, const int* order, i64 out_stride) {
    extern __shared__ double4 room[];  // whole fours of weights for each term
    const int width = (BANDS + 3) / 4 * 4, rows = 256 / COLUMNS;
    __shared__ T turned[BANDS][COLUMNS][rows + 1];
    T* weight = (T*)room;
    for (int q = threadIdx.x; q < width * count; q += 256)
        if (q % width < BANDS) weight[q] = theta[q / width * n_bands + q % width];
    __syncthreads();
    i64 first = (i64)blockIdx.x * rows, i = first + threadIdx.x / COLUMNS;
    int c = threadIdx.x % COLUMNS;
    if (i < n) {
        T sum[BANDS];
#pragma unroll
        for (int j = 0; j < BANDS; j++) sum[j] = fresh ? (T)0 : bands[(c * n_bands + j) * stride + i];
#pragma unroll 4
        for (int s = 0; s < count; s++) {
            T term = __ldcs(terms + (s * stride + i) * COLUMNS + c);
#pragma unroll
            for (int j = 0; j < BANDS; j++) sum[j] += weight[s * width + j] * term;
        }
#pragma unroll
        for (int j = 0; j < BANDS; j++) turned[j][c][threadIdx.x / COLUMNS] = sum[j];
    }
    __syncthreads();
    i = first + threadIdx.x % rows, c = threadIdx.x / rows;
    if (i >= n) return;
    i64 place = order ? order[i] : i;
#pragma unroll
    for (int j = 0; j < BANDS; j++) out[(c * n_bands + j) * out_stride + place] = turned[j][c][threadIdx.x % rows];
}

// terms_s = sum_j theta_sj bands_j in ascending j, TERMS of them at a time
template <typename T, int TERMS, int COLUMNS>
__global__ void __launch_bounds__(256) unmix(int n, i64 stride, int n_bands, const T* theta, const T* bands, T* terms) {
    extern __shared__ double4 room[];  // whole fours of weights for each band
    const int width = (TERMS + 3) / 4 * 4;
    T* weight = (T*)room;
    for (int q = threadIdx.x; q < TERMS * n_bands; q += 256) weight[q % n_bands * width + q / n_bands] = theta[q];
    __syncthreads();
    i64 at = (i64)blockIdx.x * 256 + threadIdx.x, i = at / COLUMNS, c = at % COLUMNS;
    if (i >= n) return;
    T sum[TERMS];
#pragma unroll
    for (int s = 0; s < TERMS; s++) sum[s] = 0;
    for (int j = 0; j < n_bands; j++) {
        T band = bands[(c * n_bands + j) * stride + i];
#pragma unroll
        for (int s = 0; s < TERMS; s++) sum[s] += weight[j * width + s] * band;
    }
#pragma unroll
    for (int s = 0; s < TERMS; s++) terms[s * stride * COLUMNS + at] = sum[s];
}

// what lies at node * node_step + column * column_step to rows, COLUMNS side by side in each plane of `stride` rows; or BACK
template <typename T, bool BACK, int COLUMNS>
__global__ void __launch_bounds__(256) reorder(int n, int planes, const int* order, const T* from, T* to, i64 column_step, i64 node_step,
                                               i64 stride) {
    i64 at = (i64)blockIdx.x * 256 + threadIdx.x, i = at / COLUMNS;
    if (i >= n) return;
    i64 node = order[i] * node_step;
    for (int p = 0; p < planes; p++) {
        i64 there = node + (p * COLUMNS + at % COLUMNS) * column_step, here = p * stride * COLUMNS + at;
        to[BACK ? there : here] = from[BACK ? here : there];
    }
}

// <a_s, a_s> and <a_s, a_s-1> of terms 0 .. count - 1 (the one before the first in `before`), summed over each block of rows;
// `n_terms` is how many terms `parts` has room for, for each signal
template <typename T, int COLUMNS>
__global__ void __launch_bounds__(256) moments(int n, i64 stride, int count, const T* terms, const T* before, double* parts,
                                               int n_terms) {
    __shared__ double sums[2][8];
    int c = blockIdx.y, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int s = 0; s < count; s++) {
        const T* own = terms + s * stride * COLUMNS + c;
        const T* last = s ? own - stride * COLUMNS : before ? before + c : 0;
        double same = 0, next = 0;
        for (int i = blockIdx.x * 4096 + threadIdx.x; i < min(n, (int)(blockIdx.x + 1) * 4096); i += 256) {
            double value = own[(i64)i * COLUMNS];
            same += value * value;
            if (last) next += value * (double)last[(i64)i * COLUMNS];
        }
        for (int far = 16; far; far >>= 1) {
            same += __shfl_down_sync(0xffffffffu, same, far);
            next += __shfl_down_sync(0xffffffffu, next, far);
        }
        if (lane == 0) sums[0][warp] = same, sums[1][warp] = next;
        __syncthreads();
        if (threadIdx.x < 2) {
            double total = 0;
            for (int w = 0; w < 8; w++) total += sums[threadIdx.x][w];
            parts[((i64)(c * n_terms + s) * 2 + threadIdx.x) * gridDim.x + blockIdx.x] = total;
        }
        __syncthreads();
    }
}
