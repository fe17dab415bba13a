// The Chebyshev recurrence on one GPU; `gpu.py` says how the pieces make a transform, `quads.py` how rows are stored.
//
// Vectors come in planes of `stride` values, one for each column. Sums go in the order of the processor's kernel and no multiplication
// is fused with an addition, so that both give the same bits, but for rows that a warp adds up.

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

template <typename T>
struct Rows {
    int n;
    i64 stride;              // between planes of vectors, and of quads
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

// shift own - gain sum of neighbours - before, for C columns; all threads of a warp come here together
template <typename T, typename D, int QUADS, int C>
__device__ __forceinline__ void row(const Rows<T>& rows, int i, T factor, const T* __restrict__ x, const T* __restrict__ before, T* term) {
    bool inside = i < rows.n, more = false;
    T total[C];
    int length = 0;
#pragma unroll
    for (int c = 0; c < C; c++) total[c] = 0;
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
        typename Four<D>::type four = {0, 0, 0, 0};
        if (inside) four = __ldg((const typename Four<D>::type*)rows.differences + q * rows.stride + i);
        int step[4] = {four.x, four.y, four.z, four.w};
        if (q == QUADS - 1 && step[3] == Four<D>::more) {
            more = true;
            step[3] = 0;
        }
#pragma unroll
        for (int p = 0; p < 4; p++) {
            if (step[p]) {
                length++;
                T weight = rows.values ? __ldg(rows.values + 4 * (q * rows.stride + i) + p) : (T)1;
#pragma unroll
                for (int c = 0; c < C; c++) {
                    T neighbour = __ldg(x + c * rows.stride + (i + step[p]));
                    total[c] += rows.values ? weight * neighbour : neighbour;
                }
            }
        }
    }
    u32 tails = __ballot_sync(0xffffffffu, more);
    if (more) {
        u32 number = __ldg(rows.warp_tails + (i >> 5)) + __popc(tails & ((1u << (i & 31)) - 1));
        u32 start = __ldg(rows.tail_starts + number), end = __ldg(rows.tail_starts + number + 1);
        length += end - start;
        for (u32 p = start; p < end; p++) {
            u32 at = __ldg(rows.tail_rows + p);
            T weight = rows.values ? __ldg(rows.tail_values + p) : (T)1;
#pragma unroll
            for (int c = 0; c < C; c++) {
                T neighbour = __ldg(x + c * rows.stride + at);
                total[c] += rows.values ? weight * neighbour : neighbour;
            }
        }
    }
    if (!inside) return;
    T shift = factor * (rows.shift ? __ldg(rows.shift + i) : (T)(rows.per_neighbour * length + rows.offset)), gain = factor * rows.gain;
#pragma unroll
    for (int c = 0; c < C; c++) {
        T own = __ldg(x + c * rows.stride + i);
        term[c] = shift * own - gain * total[c] - (before ? __ldg(before + c * rows.stride + i) : (T)0);
    }
}

// out = [start +] the term after x, whose predecessor is `before`; null vectors are 0
template <typename T, typename D, int QUADS, int C>
__global__ void __launch_bounds__(STEP_THREADS, 2048 / STEP_THREADS / (C > 2 ? 2 : 1)) step(
    Rows<T> rows, T factor, const T* before, const T* x, const T* start, T* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T term[C];
    row<T, D, QUADS, C>(rows, i, factor, x, before, term);
    if (i >= rows.n) return;
#pragma unroll
    for (int c = 0; c < C; c++) out[c * rows.stride + i] = start ? start[c * rows.stride + i] + term[c] : term[c];
}

// the rows of many neighbours, a warp each, after `step`, which left their sums out
template <typename T, int C>
__global__ void long_rows(Rows<T> rows, T factor, const T* x, T* out, int n_long, const int* which, const u32* starts, const u32* neighbours,
                          const T* values) {
    int number = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (number >= n_long) return;
    T total[C];
#pragma unroll
    for (int c = 0; c < C; c++) total[c] = 0;
    for (u32 p = starts[number] + lane; p < starts[number + 1]; p += 32) {
#pragma unroll
        for (int c = 0; c < C; c++) {
            T neighbour = __ldg(x + c * rows.stride + neighbours[p]);
            total[c] += rows.values ? values[p] * neighbour : neighbour;
        }
    }
#pragma unroll
    for (int c = 0; c < C; c++) {
        for (int far = 16; far; far >>= 1) total[c] += __shfl_down_sync(0xffffffffu, total[c], far);
        if (lane == 0) out[c * rows.stride + which[number]] -= factor * rows.gain * total[c];
    }
}

// bands_j [+]= sum_s theta_js terms_s, in ascending s; BANDS of them at a time. With `order` the result goes to nodes, not rows.
template <typename T, int BANDS>
__global__ void mix(int n, i64 stride, int columns, int count, const T* theta, int n_terms, const T* terms, i64 term_stride, bool fresh,
                    const T* bands, i64 band_stride, i64 bands_per_column, T* out, const int* order, i64 out_stride) {
    extern __shared__ double room[];
    T* weight = (T*)room;
    for (int q = threadIdx.x; q < BANDS * count; q += blockDim.x) weight[q] = theta[(q / count) * n_terms + q % count];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    i64 place = order ? order[i] : i;
    for (int c = 0; c < columns; c++) {
        T sum[BANDS];
#pragma unroll
        for (int j = 0; j < BANDS; j++) sum[j] = fresh ? (T)0 : bands[c * bands_per_column * band_stride + j * band_stride + i];
#pragma unroll 4
        for (int s = 0; s < count; s++) {
            T term = terms[s * term_stride + c * stride + i];
#pragma unroll
            for (int j = 0; j < BANDS; j++) sum[j] += weight[j * count + s] * term;
        }
#pragma unroll
        for (int j = 0; j < BANDS; j++) out[c * bands_per_column * out_stride + j * out_stride + place] = sum[j];
    }
}

// terms_s = sum_j theta_sj bands_j in ascending j, TERMS of them at a time
template <typename T, int TERMS>
__global__ void unmix(int n, i64 stride, int columns, int n_bands, const T* theta, const T* bands, i64 band_stride, T* terms,
                      i64 term_stride) {
    extern __shared__ double room[];
    T* weight = (T*)room;
    for (int q = threadIdx.x; q < TERMS * n_bands; q += blockDim.x) weight[q] = theta[q];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int c = 0; c < columns; c++) {
        T sum[TERMS];
#pragma unroll
        for (int s = 0; s < TERMS; s++) sum[s] = 0;
        for (int j = 0; j < n_bands; j++) {
            T band = bands[(c * n_bands + j) * band_stride + i];
#pragma unroll
            for (int s = 0; s < TERMS; s++) sum[s] += weight[s * n_bands + j] * band;
        }
#pragma unroll
        for (int s = 0; s < TERMS; s++) terms[s * term_stride + c * stride + i] = sum[s];
    }
}

// planes in node order to planes in row order, or BACK
template <typename T, bool BACK>
__global__ void reorder(int n, int planes, const int* order, const T* from, i64 from_stride, T* to, i64 to_stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int source = BACK ? i : order[i], target = BACK ? order[i] : i;
    for (int p = 0; p < planes; p++) to[p * to_stride + target] = from[p * from_stride + source];
}

// <a_s, a_s> and <a_s, a_s-1> of terms 0 .. count - 1 (the one before the first in `before`), summed over each block of rows
template <typename T>
__global__ void __launch_bounds__(256) moments(int n, i64 stride, int count, const T* terms, i64 term_stride, const T* before, double* parts) {
    __shared__ double sums[2][8];
    int c = blockIdx.y, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int s = 0; s < count; s++) {
        const T* own = terms + s * term_stride + c * stride;
        const T* last = s ? own - term_stride : before ? before + c * stride : 0;
        double same = 0, next = 0;
        for (int i = blockIdx.x * 4096 + threadIdx.x; i < min(n, (int)(blockIdx.x + 1) * 4096); i += 256) {
            double value = own[i];
            same += value * value;
            if (last) next += value * (double)last[i];
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
            parts[((i64)(c * count + s) * 2 + threadIdx.x) * gridDim.x + blockIdx.x] = total;
        }
        __syncthreads();
    }
}
