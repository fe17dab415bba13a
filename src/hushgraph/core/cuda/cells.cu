// Which cells may hold the least SURE, and which of their values does: follows `thresholds.cu`, and mirrors `core/thresholds.cpp` step by step.

// ---- where the minimum may be: as `open_bins` and `open_cells` there, a block for each row --------------------------

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
    for (int far = 16; far; far >>= 1) value = fmin(value, __shfl_xor_sync(ALL, value, far));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = value;
    __syncthreads();
    for (int w = 0; w < 8; w++) value = fmin(value, warps[w]);
    __syncthreads();
    return value;
}

__device__ __forceinline__ bool is_open(double bound, double least) { return bound <= least + 1e-12 * fabs(least); }

extern "C" __global__ void __launch_bounds__(256) open_bins(const i64* tops, const double* per_square, const i64* all_sums, double variance,
                                                            double beta, Head* heads, short* slots, double* bins, double* spare) {
    extern __shared__ double shared[];
    double* room = spare ? spare + (i64)blockIdx.x * 9 * BINS : shared;
    double *energy = room, *weight = room + BINS, *lifted = room + 2 * BINS, *tilted = room + 3 * BINS, *ratio = room + 4 * BINS,
           *under = room + 5 * BINS, *a = room + 6 * BINS, *b = room + 7 * BINS, *c = room + 8 * BINS;
    Head& head = heads[blockIdx.x];
    slots += blockIdx.x * BINS, bins += (i64)blockIdx.x * BINS * 5, per_square += (i64)blockIdx.x * BINS;
    for (int k = threadIdx.x; k < BINS; k += 256) slots[k] = -1;
    if (threadIdx.x == 0) head = {0, 0, 0, 0, 0, 0, 0};
    if (tops[TOPS * blockIdx.x] <= 0) return;
    Row row = row_of(tops + TOPS * blockIdx.x);
    const i64* sums = all_sums + (i64)blockIdx.x * BINS * WORDS;
    for (int k = threadIdx.x; k < BINS; k += 256) {
        const i64* own = sums + k * WORDS;
        energy[k] = in_floats(own, 0, per_square[k]), weight[k] = in_floats(own, 1, row.per_weight);
        lifted[k] = in_floats(own, 2, per_square[k]), tilted[k] = in_floats(own, 3, row.per_weight);
        ratio[k] = k ? power(edge_of(row.lowest + k, SHIFT) / edge_of(row.lowest + k + 1, SHIFT), beta) : power(0.0, beta);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double above[3] = {0, 0, 0};
#pragma unroll 16
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
        u32 taken = __ballot_sync(ALL, open);
        if (open) {
            int slot = count + __popc(taken & ((1u << threadIdx.x) - 1));
            slots[k] = slot;
            double* own = bins + 5 * slot;
            own[0] = k, own[1] = under[k], own[2] = a[k], own[3] = b[k], own[4] = c[k];
            values += sums[k * WORDS + 8];
        }
        count += __popc(taken);
    }
    for (int far = 16; far; far >>= 1) values += __shfl_xor_sync(ALL, values, far);
    if (threadIdx.x == 0) head = {(double)count, (double)values, at_zero, least, 0, 0, 0};
}

// the sum of the values of the threads before this one, and of all threads
__device__ int sum_before(int value, int* total) {
    __shared__ int warps[8];
    int lane = threadIdx.x & 31, sum = value;
    for (int far = 1; far < 32; far <<= 1) {
        int other = __shfl_up_sync(ALL, sum, far);
        if (lane >= far) sum += other;
    }
    if (lane == 31) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    int before = 0;
    *total = 0;
    for (int w = 0; w < 8; w++) {
        if (w < threadIdx.x >> 5) before += warps[w];
        *total += warps[w];
    }
    __syncthreads();
    return before + sum - value;
}

// the bound of each finer bin of an open bin, the energy below it and A, B, C above it, by a warp; and the least SURE at an edge
__device__ double bound_finer(const Row& row, double per_square, const i64* words, const double* bin, double variance, double beta, double (*room)[FINER],
                              double* parts) {
    double *energy = room[0], *weight = room[1], *lifted = room[2], *tilted = room[3], *ratio = room[4], *under = room[5], *a = room[6],
           *b = room[7], *c = room[8], least = 1e308;
    int lane = threadIdx.x & 31;
    for (int f = lane; f < FINER; f += 32) {
        i64 number = (row.lowest + (i64)bin[0]) * FINER + f;
        energy[f] = in_floats(words + f * WORDS, 0, per_square), weight[f] = in_floats(words + f * WORDS, 1, row.per_weight);
        lifted[f] = in_floats(words + f * WORDS, 2, per_square), tilted[f] = in_floats(words + f * WORDS, 3, row.per_weight);
        ratio[f] = power(edge_of(number, FINER_SHIFT) / edge_of(number + 1, FINER_SHIFT), beta);
    }
    __syncwarp();
    if (lane == 0) {
        double above[3] = {bin[2], bin[3], bin[4]};
        for (int f = FINER - 1; f >= 0; f--) {
            a[f] = above[0], b[f] = above[1], c[f] = above[2];
            above[0] = ratio[f] * ratio[f] * above[0] + lifted[f];
            above[1] += weight[f];
            above[2] = ratio[f] * above[2] + tilted[f];
        }
        double total = 0;
        for (int f = 0; f < FINER; f++) {
            total += energy[f];
            under[f] = bin[1] + (total - energy[f]);
        }
    }
    __syncwarp();
    for (int f = lane; f < FINER; f += 32) {
        double* own = parts + 5 * f;
        least = fmin(least, sure(under[f] + energy[f], a[f], b[f], c[f], variance, beta));
        own[0] = sure(under[f] + lifted[f], ratio[f] * ratio[f] * a[f], b[f], ratio[f] * c[f], variance, beta);
        own[1] = under[f], own[2] = a[f], own[3] = b[f], own[4] = c[f];
    }
    __syncwarp();
    return least;
}

// `parts` is room; `starts` are the places of the members of each cell among those of its row
extern "C" __global__ void __launch_bounds__(256) open_cells(const i64* tops, const double* per_square, const i64* sums,
                                                             const i64* finer, double variance, double beta, Head* heads, const double* bins, double* parts, double* cells, int* cell_of,
                                                             int* starts) {
    __shared__ double room[8][9][FINER];
    __shared__ int largest;
    const i64 whole_row = (i64)BINS * FINER;
    Head& head = heads[blockIdx.x];
    Row row = row_of(tops + TOPS * blockIdx.x);
    sums += (i64)blockIdx.x * BINS * WORDS, bins += (i64)blockIdx.x * BINS * 5;
    finer += blockIdx.x * whole_row * WORDS, parts += blockIdx.x * whole_row * 5, cells += blockIdx.x * whole_row * 5;
    cell_of += blockIdx.x * whole_row, starts += blockIdx.x * (whole_row + 1);
    int n_bins = (int)head.n_bins, warp = threadIdx.x >> 5, count = 0, filled = 0;
    bool cut = head.values > FEW;
    double least = head.least;
    if (threadIdx.x == 0) largest = 0;
    for (int s = warp; s < n_bins; s += 8)
        if (cut && bins[5 * s] != 0)
            least = fmin(least, bound_finer(row, per_square[(i64)blockIdx.x * BINS + (int)bins[5 * s]], finer + (i64)s * FINER * WORDS, bins + 5 * s, variance, beta, room[warp],
                                            parts + (i64)s * FINER * 5));
    least = least_of_block(least);
    for (int base = 0; base < n_bins * FINER; base += 256) {
        int e = base + threadIdx.x, s = e / FINER, f = e % FINER, members = 0, all, more;
        bool inside = e < n_bins * FINER, whole = inside && (!cut || bins[5 * s] == 0);
        if (inside && whole) members = f ? 0 : (int)sums[(int)bins[5 * s] * WORDS + 8];
        else if (inside && is_open(parts[(i64)e * 5], least)) members = (int)finer[(i64)e * WORDS + 8];
        int cell = count + sum_before(members > 0, &all), place = filled + sum_before(members, &more);
        if (inside && !whole) cell_of[e] = members ? cell : -1;
        if (members) {
            if (whole)
                for (int q = 0; q < FINER; q++) cell_of[e + q] = cell;
            i64 number = (row.lowest + (i64)bins[5 * s]) * FINER + (whole ? FINER : f + 1);
            const double* from = whole ? bins + 5 * s : parts + (i64)e * 5;
            cells[(i64)cell * 5] = edge_of(number, FINER_SHIFT);
            for (int q = 1; q < 5; q++) cells[(i64)cell * 5 + q] = from[q];
            starts[cell] = place;
            atomicMax(&largest, members);
        }
        count += all, filled += more;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        starts[count] = filled;
        head.n_cells = count, head.n_members = filled, head.largest = largest;
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
                                               const int* cell_of, int* counts, const i64* starts, i64 total, double* out) {
    __shared__ int warps[8];
    i64 base = (i64)blockIdx.y * n, lowest = row_of(tops + TOPS * blockIdx.y).lowest;
    int block = blockIdx.y * gridDim.x + blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    i64 place = starts && block ? starts[block - 1] : 0;
    int inside = 0;
    for (int part = 0; part < 4096; part += 256) {
        int i = blockIdx.x * 4096 + part + threadIdx.x;
        double size = 0;
        int cell = cell_at(i, n, base, x, scale, lowest, slots, cell_of, &size);
        u32 taken = __ballot_sync(ALL, cell >= 0);
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

// ---- the values of cells, searched here if they are few ------------------------------------------------------------------

// members of a row, and of a cell, that there is room for
struct Room {
    int row, cell;
};

__device__ __forceinline__ bool is_searched(const Head& head, Room room) { return head.n_members <= room.row && head.largest <= room.cell; }

// size, x, g and number of the members, cell after cell, each in any order; (4, rows, room.row)
template <typename X, typename G, typename S>
__global__ void __launch_bounds__(256) scatter(int n, const X* x, const G* g, const S* scale, const i64* tops, const Head* heads,
                                               const short* slots, const int* cell_of, const int* starts, int* filled, Room room, double* out) {
    if (heads[blockIdx.y].n_cells == 0 || !is_searched(heads[blockIdx.y], room)) return;
    const i64 plane = (i64)gridDim.y * room.row, whole_row = (i64)BINS * FINER;
    i64 base = (i64)blockIdx.y * n, lowest = row_of(tops + TOPS * blockIdx.y).lowest;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        double size = 0;
        int cell = cell_at(i, n, base, x, scale, lowest, slots, cell_of, &size);
        if (cell < 0) continue;
        int place = starts[blockIdx.y * (whole_row + 1) + cell] + atomicAdd(filled + blockIdx.y * whole_row + cell, 1);
        double* own = out + (i64)blockIdx.y * room.row + place;
        own[0] = size, own[plane] = x[base + i], own[2 * plane] = g[base + i], own[3 * plane] = i;
    }
}

// ascending by size, and by number where that is the same; `count` a power of two
__device__ void sort_members(double* size, int* number, short* place, int count) {
    for (int width = 2; width <= count; width <<= 1)
        for (int far = width >> 1; far; far >>= 1) {
            for (int p = threadIdx.x; p < count; p += blockDim.x) {
                int q = p ^ far;
                if (q <= p) continue;
                bool after = size[p] > size[q] || (size[p] == size[q] && number[p] > number[q]);
                if (after == ((p & width) == 0)) {
                    double s = size[p];
                    int i = number[p];
                    short k = place[p];
                    size[p] = size[q], number[p] = number[q], place[p] = place[q];
                    size[q] = s, number[q] = i, place[q] = k;
                }
            }
            __syncthreads();
        }
}

// the least SURE at a value of each cell, and that value: as `walk_cell`
extern "C" __global__ void __launch_bounds__(128) search(const Head* heads, const double* cells, const int* starts, const double* members,
                                                         double variance, double beta, Room room, double* found) {
    extern __shared__ double shared[];
    double *size = shared, *square = size + room.cell, *weight = square + room.cell, *energy = weight + room.cell, *ratio = energy + room.cell;
    int* number = (int*)(ratio + room.cell);
    short* place = (short*)(number + room.cell);
    const i64 plane = (i64)gridDim.y * room.row, whole_row = (i64)BINS * FINER;
    if (!is_searched(heads[blockIdx.y], room)) return;
    cells += blockIdx.y * whole_row * 5, starts += blockIdx.y * (whole_row + 1), found += blockIdx.y * whole_row * 2;
    for (int cell = blockIdx.x; cell < (int)heads[blockIdx.y].n_cells; cell += gridDim.x) {
        int first = starts[cell], count = starts[cell + 1] - first, padded = 1;
        while (padded < count) padded <<= 1;
        const double *own = members + (i64)blockIdx.y * room.row + first, *from = cells + (i64)cell * 5;
        for (int p = threadIdx.x; p < padded; p += 128) {
            size[p] = p < count ? own[p] : __longlong_as_double(0x7ff0000000000000LL);
            number[p] = p < count ? (int)own[3 * plane + p] : 0x7fffffff;
            place[p] = (short)p;
        }
        __syncthreads();
        sort_members(size, number, place, padded);
        for (int p = threadIdx.x; p < count; p += 128) {
            double value = own[plane + place[p]], edge = p + 1 < count ? size[p + 1] : from[0];
            square[p] = value * value, weight[p] = own[2 * plane + place[p]];
            ratio[p] = edge > 0 ? power(size[p] / edge, beta) : 1.0;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double total = 0, a = from[2], b = from[3], c = from[4], best = __longlong_as_double(0x7ff0000000000000LL), at = 0;
            for (int p = 0; p < count; p++) {
                total += square[p];
                energy[p] = from[1] + total;
            }
            for (int p = count - 1; p >= 0; p--) {
                a = ratio[p] * ratio[p] * a, c = ratio[p] * c;
                double value = sure(energy[p], a, b, c, variance, beta);
                if (value < best) best = value, at = size[p];
                a += square[p], b += weight[p], c += weight[p];
            }
            found[2 * cell] = best, found[2 * cell + 1] = at > 0 ? at : __longlong_as_double(1);
        }
        __syncthreads();
    }
}

// the best candidate of each row, the first of equals; and whether it was searched here
extern "C" __global__ void __launch_bounds__(256) pick(const i64* tops, const Head* heads, const double* found, Room room, double* best) {
    __shared__ int first;
    const Head& head = heads[blockIdx.x];
    found += (i64)blockIdx.x * BINS * FINER * 2;
    bool searched = is_searched(head, room);
    double least = __longlong_as_double(0x7ff0000000000000LL);
    if (threadIdx.x == 0) first = 0x7fffffff;
    for (int cell = threadIdx.x; searched && cell < (int)head.n_cells; cell += 256) least = fmin(least, found[2 * cell]);
    least = least_of_block(least);
    for (int cell = threadIdx.x; searched && cell < (int)head.n_cells; cell += 256)
        if (found[2 * cell] == least) atomicMin(&first, cell);
    __syncthreads();
    if (threadIdx.x) return;
    i64 top = tops[TOPS * blockIdx.x];
    double at = top == 0 ? __longlong_as_double(1) : 0.0;
    if (top > 0 && searched && least < head.sure_at_zero) at = found[2 * first + 1];
    best[2 * blockIdx.x] = at, best[2 * blockIdx.x + 1] = searched;
}
