// Polynomials by several terms of the Chebyshev recurrence in one launch, tile by tile in shared memory; `core/tile_layout.py` says
// what tiles are. Formulas, and the order of sums, are those of `recurrence.cu`: both give the same bits. Signals are the y of the grid.

typedef long long i64;

const int THREADS = 512, CODE_BITS = 13, PLACES = (1 << CODE_BITS) - 1, LISTED = 7, MOST_STEPS = 8;

struct Tiles {
    int hops;
    const int* starts;                  // (tiles + 1), rows of their own
    const int* ends;                    // (tiles, hops + 1)
    const int* halo_starts;             // (tiles + 1)
    const int* halo;
    const int* quad_starts;             // (tiles + 1)
    const ushort4* quads;
    const int* list_bases;              // (tiles + 1)
    const int* list_starts;
    const unsigned short* list_places;
    double per_neighbour, offset, gain; // of 2 (scale L - I)
};

// adds the neighbours after the third one, and returns the shift of such a row
template <typename T>
__device__ __forceinline__ T add_list(const Tiles& tiles, int tile, int number, const T* now, T& total) {
    const int list = tiles.list_bases[tile] + number, begin = tiles.list_starts[list], end = tiles.list_starts[list + 1];
    for (int p = begin; p < end; p++) total += now[tiles.list_places[p]];
    return (T)(tiles.per_neighbour * (3 + end - begin) + tiles.offset);
}

// Adds theta_t term_t of `steps` terms after x and before (null: 0) to `sums`, and writes the last two of them to `out`, `stride` rows apart;
// x and the only one, if there is one. The first term of all, T_1, is half of what the others are made of: `fresh` says that it comes
// now, and theta begins with that of x = T_0. The theta of all signals lie side by side.
template <typename T, int ROWS>
__global__ void __launch_bounds__(THREADS, 2) tile_sums(Tiles tiles, int steps, const T* before, const T* x, T* out, i64 stride,
                                                        const T* theta, bool fresh, T* sums) {
    const int MOST = ROWS * THREADS;
    extern __shared__ double room[];
    __shared__ int ends[MOST_STEPS + 1];
    __shared__ T weights[MOST_STEPS + 1], shifts[2][LISTED + 1];
    T *now = (T*)room, *last = now + MOST + 1;
    ushort4* quads = (ushort4*)(room + 2 * (MOST + 1));
    const int tile = blockIdx.x, thread = threadIdx.x, own_start = tiles.starts[tile], n_own = tiles.starts[tile + 1] - own_start;
    const int *own_ends = tiles.ends + tile * (tiles.hops + 1), *halo = tiles.halo + tiles.halo_starts[tile] - n_own;
    const ushort4* own_quads = tiles.quads + tiles.quad_starts[tile];
    const int n_rows = own_ends[steps], n_computed = own_ends[steps - 1];
    x += 2 * stride * blockIdx.y, out += 2 * stride * blockIdx.y, sums += stride * blockIdx.y;
    if (thread <= steps) ends[thread] = own_ends[steps - thread];
    if (thread < steps + fresh) weights[thread] = theta[thread * gridDim.y + blockIdx.y];
    if (thread < 2 * LISTED) shifts[thread / LISTED][thread % LISTED] =
        (thread < LISTED ? (T)1 : (T)0.5) * (T)(tiles.per_neighbour * (thread % LISTED) + tiles.offset);
    if (thread == 0) now[MOST] = last[MOST] = 0;  // where there is no neighbour
    int row[ROWS];
    T own[ROWS], old[ROWS], total_of[ROWS];  // all is asked for before the first is used
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int place = thread + k * THREADS;
        if (place < n_rows) row[k] = place < n_own ? own_start + place : halo[place];
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (thread + k * THREADS < n_rows) own[k] = x[row[k]];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        old[k] = 0;
        if (before && thread + k * THREADS < n_computed) old[k] = (before + 2 * stride * blockIdx.y)[row[k]];
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (thread + k * THREADS < n_rows) now[thread + k * THREADS] = own[k];
    {
        ushort4 quad[ROWS];
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            if (thread + k * THREADS < n_computed) quad[k] = own_quads[thread + k * THREADS];
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            if (thread + k * THREADS < n_computed) quads[thread + k * THREADS] = quad[k];
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (thread + k * THREADS < n_computed) last[thread + k * THREADS] = old[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int place = thread + k * THREADS;
        if (place >= n_own) continue;
        if (steps == 1) out[own_start + place] = now[place];
        total_of[k] = fresh ? (T)0 + weights[0] * now[place] : sums[own_start + place];
    }
    for (int t = 0; t < steps; t++) {
        const int still_right = ends[t + 1];
        const bool half = fresh && t == 0;
        const T factor = half ? (T)0.5 : (T)1, gain = factor * (T)tiles.gain, weight = weights[t + fresh];
        T* target = out + (t - (steps - 2)) * stride + own_start;
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            const int place = thread + k * THREADS;
            if (place >= still_right) continue;
            const ushort4 quad = quads[place];
            const int code = quad.w >> CODE_BITS;
            T total = 0, shift = shifts[half][code];
            total += now[quad.x];
            total += now[quad.y];
            if (code > 2) {
                total += now[quad.z];
                if (code == 4) total += now[quad.w & PLACES];
                if (code == LISTED) shift = factor * add_list(tiles, tile, quad.w & PLACES, now, total);
            }
            const T term = shift * now[place] - gain * total - last[place];
            last[place] = term;
            if (place >= n_own) continue;
            total_of[k] += weight * term;
            if (t >= steps - 2) target[place] = term;
        }
        __syncthreads();
        T* swap = now;
        now = last, last = swap;
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (thread + k * THREADS < n_own) sums[own_start + thread + k * THREADS] = total_of[k];
}
