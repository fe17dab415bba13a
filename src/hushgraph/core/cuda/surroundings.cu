// Sums over the nodes around each node, with weights that fall with the distance: the kernels in the plane of `core/surroundings.cpp`, with the
// same weights to the bit. A warp computes a node. No row is stored.

typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

const u32 ALL = 0xffffffffu;
const int WARPS = 4;                       // of a block
const double NEVER = -1e300;               // a power that no row takes
const int NOT_CUT = -2, NO_TIE_LEFT = -1;  // in place of the last node of equal weight that a row takes

// As `Plane` of `core/surroundings.cpp`; nodes are numbered cell by cell. Kernels: first the Gaussians, then walks, edges, two steps.
struct Plane {
    i64 n, n_columns, n_gaussians, n_walks, hops;
    double cell_size, floor;  // floor: power of a Gaussian below which its weight is 0
    const double *x, *y, *cosine, *sine;
    const i64 *ids, *column_starts, *heights, *cell_starts;
    const double* gaussians;  // (Gaussians, 3): width along and across, largest number of nodes
    const int *edge_starts, *edge_columns;
    const double* edge_weights;
    const int *near_starts, *near_columns;
    const double* near_weights;
    const int* onward;
    const double* walk_weights;  // (walks, hops)
    double* cut_power;           // (Gaussians, n): the smallest power that a row takes
    int* cut_node;               // (Gaussians, n): the last node of that power that it takes, NO_TIE_LEFT or NOT_CUT
};

struct Gaussian {
    double x, y, cosine, sine, twice_along, twice_across;
};

__device__ __forceinline__ Gaussian gaussian_of(const Plane& plane, i64 i, int k) {
    double along = plane.gaussians[3 * k], across = plane.gaussians[3 * k + 1];
    return {plane.x[i], plane.y[i], plane.cosine[i], plane.sine[i], 2 * along * along, 2 * across * across};
}

__device__ __forceinline__ double power_of(const Plane& plane, const Gaussian& gaussian, i64 j) {
    double dx = plane.x[j] - gaussian.x, dy = plane.y[j] - gaussian.y;
    double u = gaussian.cosine * dx + gaussian.sine * dy, v = gaussian.cosine * dy - gaussian.sine * dx;
    return -(u * u) / gaussian.twice_along - v * v / gaussian.twice_across;
}

// as `exponentiate` of `core/surroundings.inc`
__device__ __forceinline__ double exponential(double x) {
    double shifted = x * 1.4426950408889634 + 6755399441055744.0, k = shifted - 6755399441055744.0;
    double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double sum = 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r * r + r + 1;
    i64 power = ((i64)((u64)__double_as_longlong(shifted) << 52) >> 52) + 1023;
    return sum * __longlong_as_double(power << 52);
}

__device__ __forceinline__ i64 cell_below(const Plane& plane, double place) { return (i64)floor(place / plane.cell_size); }

// the first cell of begin .. end - 1 whose height is at least `least`
__device__ __forceinline__ i64 first_cell(const Plane& plane, i64 begin, i64 end, i64 least) {
    while (begin < end) {
        i64 middle = (begin + end) / 2;
        if (plane.heights[middle] < least)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// Calls body(j, valid) on all lanes for the nodes j in the cells around the ellipse, 32 at a time; each lane finds the cells of one column.
template <typename F>
__device__ __forceinline__ void for_candidates(const Plane& plane, const Gaussian& gaussian, F&& body) {
    int lane = threadIdx.x & 31;
    double reach = sqrt(-plane.floor) * (1 + 1e-9);  // the factor leaves room for rounding
    double c = gaussian.cosine * gaussian.cosine, s = gaussian.sine * gaussian.sine;
    double width = reach * sqrt(c * gaussian.twice_along + s * gaussian.twice_across);
    double height = reach * sqrt(s * gaussian.twice_along + c * gaussian.twice_across);
    i64 low = cell_below(plane, gaussian.y - height), high = cell_below(plane, gaussian.y + height);
    i64 last_column = min(cell_below(plane, gaussian.x + width), plane.n_columns - 1);
    for (i64 base = max(cell_below(plane, gaussian.x - width), 0LL); base <= last_column; base += 32) {
        int begin = 0, end = 0;
        if (base + lane <= last_column) {
            i64 start = plane.column_starts[base + lane], stop = plane.column_starts[base + lane + 1];
            i64 first = first_cell(plane, start, stop, low), last = first_cell(plane, first, stop, high + 1);
            if (first < last) begin = (int)plane.cell_starts[first], end = (int)plane.cell_starts[last];
        }
        int columns = (int)min(32LL, last_column - base + 1);
        for (int column = 0; column < columns; column++) {
            int from = __shfl_sync(ALL, begin, column), to = __shfl_sync(ALL, end, column);
            for (int start = from; start < to; start += 32) body(start + lane, start + lane < to);
        }
    }
}

// ---- which nodes a row takes -------------------------------------------------------------------------------------------

// the order of nodes of equal power: by cells as large as the reach of the Gaussian, then by id
__device__ __forceinline__ bool is_before(const Plane& plane, double size, int a, int b) {
    double ax = floor(plane.x[a] / size), bx = floor(plane.x[b] / size);
    if (ax != bx) return ax < bx;
    double ay = floor(plane.y[a] / size), by = floor(plane.y[b] / size);
    return ay != by ? ay < by : plane.ids[a] < plane.ids[b];
}

__device__ __forceinline__ double reach_of(const Plane& plane, int k) {
    return sqrt(-2 * plane.floor) * fmax(plane.gaussians[3 * k], plane.gaussians[3 * k + 1]);
}

__device__ __forceinline__ bool takes(const Plane& plane, i64 i, int k, int j, double power) {
    if (!(power >= plane.floor)) return false;
    int tied = plane.cut_node[k * plane.n + i];
    if (tied == NOT_CUT) return true;
    double least = plane.cut_power[k * plane.n + i], room = 1e-12 * fabs(least);
    if (power < least - room) return false;
    return tied == NO_TIE_LEFT || fabs(power - least) > room || !is_before(plane, reach_of(plane, k), tied, j);
}

__device__ __forceinline__ u32 warp_sum(u32 value) {
    for (int far = 16; far; far >>= 1) value += __shfl_xor_sync(ALL, value, far);
    return value;
}

// Returns the key number `rank` in ascending order, from 0 on, of those that key_of(j, key) returns true for. `bins` are 256 numbers of this warp.
template <typename F>
__device__ u64 key_of_rank(const Plane& plane, const Gaussian& gaussian, u32 rank, volatile u32* bins, F&& key_of) {
    int lane = threadIdx.x & 31;
    u64 found = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (int b = lane; b < 256; b += 32) bins[b] = 0;
        __syncwarp();
        for_candidates(plane, gaussian, [&](int j, bool valid) {
            u64 key = 0;
            if (!valid || !key_of(j, key)) return;
            if (shift == 56 || (key >> shift) >> 8 == (found >> shift) >> 8) atomicAdd((u32*)bins + ((key >> shift) & 255), 1u);
        });
        __syncwarp();
        u32 own = 0;
        for (int b = 0; b < 8; b++) own += bins[8 * lane + b];
        u32 until = own;
        for (int far = 1; far < 32; far <<= 1) {
            u32 other = __shfl_up_sync(ALL, until, far);
            until += lane >= far ? other : 0;
        }
        u32 before = until - own;
        int owner = __ffs(__ballot_sync(ALL, before <= rank && rank < until)) - 1, digit = 8 * lane;
        for (; digit < 8 * lane + 7 && before + bins[digit] <= rank; digit++) before += bins[digit];
        digit = __shfl_sync(ALL, digit, owner);
        rank -= __shfl_sync(ALL, before, owner);
        found |= (u64)digit << shift;
        __syncwarp();
    }
    return found;
}

// Finds the smallest power that each row of each Gaussian takes, and the last node of that power: rows have a largest number of nodes.
extern "C" __global__ void __launch_bounds__(128) find_cuts(Plane plane) {
    __shared__ u32 all_bins[WARPS][256];
    int lane = threadIdx.x & 31;
    i64 i = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (i >= plane.n) return;
    u32* bins = all_bins[threadIdx.x >> 5];
    for (int k = 0; k < plane.n_gaussians; k++) {
        Gaussian gaussian = gaussian_of(plane, i, k);
        u32 most = (u32)plane.gaussians[3 * k + 2], count = 0;
        const auto power_at = [&](int j) { return j == i ? NEVER : power_of(plane, gaussian, j); };
        for_candidates(plane, gaussian, [&](int j, bool valid) { count += valid && power_at(j) >= plane.floor; });
        count = warp_sum(count);
        double least = plane.floor;
        int tied = NOT_CUT;
        if (count > most) {
            least = -__longlong_as_double((i64)key_of_rank(plane, gaussian, most - 1, bins, [&](int j, u64& key) {
                double power = power_at(j);
                key = (u64)__double_as_longlong(fabs(power));
                return power >= plane.floor;
            }));
            double room = 1e-12 * fabs(least), size = reach_of(plane, k), ax = floor(plane.x[i] / size), ay = floor(plane.y[i] / size);
            u32 above = 0, equal = 0;
            for_candidates(plane, gaussian, [&](int j, bool valid) {
                double power = valid ? power_at(j) : NEVER;
                if (!(power >= plane.floor)) return;
                above += power > least + room, equal += fabs(power - least) <= room;
            });
            above = warp_sum(above), equal = warp_sum(equal);
            tied = NO_TIE_LEFT;
            if (equal > most - above) {
                const auto order_of = [&](int j, u64& key) {  // cells are at most 2 away
                    double power = power_at(j);
                    i64 dx = (i64)(floor(plane.x[j] / size) - ax) + 3, dy = (i64)(floor(plane.y[j] / size) - ay) + 3;
                    key = (u64)(8 * dx + dy) << 40 | (u64)plane.ids[j];
                    return power >= plane.floor && fabs(power - least) <= room;
                };
                u64 last = key_of_rank(plane, gaussian, most - above - 1, bins, order_of);
                u32 number = 0;
                for_candidates(plane, gaussian, [&](int j, bool valid) {
                    u64 key = 0;
                    if (valid && order_of(j, key) && key == last) number = (u32)j + 1;
                });
                tied = (int)warp_sum(number) - 1;
            }
        }
        if (lane == 0) plane.cut_power[k * plane.n + i] = least, plane.cut_node[k * plane.n + i] = tied;
    }
}

// ---- rows of weights ---------------------------------------------------------------------------------------------------

// Calls body(j, weight) for the entries of row i of a kernel that is no Gaussian. Lanes have different entries, a node possibly several.
template <typename F>
__device__ __forceinline__ void for_entries(const Plane& plane, i64 i, int kernel, F&& body) {
    int lane = threadIdx.x & 31, walk = kernel - (int)plane.n_gaussians, sparse = walk - (int)plane.n_walks;
    if (sparse == 0) {
        for (int e = plane.edge_starts[i] + lane; e < plane.edge_starts[i + 1]; e += 32) body(plane.edge_columns[e], plane.edge_weights[e]);
        return;
    }
    for (int start = plane.near_starts[i] + lane; start < plane.near_starts[i + 1]; start += 32) {
        if (sparse < 0) {
            const double* weights = plane.walk_weights + walk * plane.hops;
            int e = start;
            for (int hop = 0; e >= 0 && hop < plane.hops && plane.near_columns[e] != i; hop++, e = plane.onward[e])
                body(plane.near_columns[e], weights[hop]);
            continue;
        }
        int j = plane.near_columns[start];
        for (int f = plane.near_starts[j]; f < plane.near_starts[j + 1]; f++)
            if (plane.near_columns[f] != i) body(plane.near_columns[f], plane.near_weights[start] * plane.near_weights[f]);
    }
}

// K(j, i), for j != i
__device__ double weight_at(const Plane& plane, int kernel, int j, i64 i) {
    int walk = kernel - (int)plane.n_gaussians, sparse = walk - (int)plane.n_walks;
    double weight = 0;
    if (walk < 0) {
        double power = power_of(plane, gaussian_of(plane, j, kernel), i);
        return takes(plane, j, kernel, (int)i, power) ? exponential(power) : 0.0;
    }
    if (sparse == 0) {  // the matrix is symmetric: the shorter row is searched
        bool other = plane.edge_starts[i + 1] - plane.edge_starts[i] < plane.edge_starts[j + 1] - plane.edge_starts[j];
        i64 row = other ? i : j, column = other ? j : i;
        for (int e = plane.edge_starts[row]; e < plane.edge_starts[row + 1]; e++)
            if (plane.edge_columns[e] == column) weight = plane.edge_weights[e];
        return weight;
    }
    for (int start = plane.near_starts[j]; start < plane.near_starts[j + 1]; start++) {
        if (sparse < 0) {
            int e = start;
            for (int hop = 0; e >= 0 && hop < plane.hops && plane.near_columns[e] != j; hop++, e = plane.onward[e])
                if (plane.near_columns[e] == i) weight += plane.walk_weights[walk * plane.hops + hop];
            continue;
        }
        int middle = plane.near_columns[start];
        for (int f = plane.near_starts[middle]; f < plane.near_starts[middle + 1]; f++)
            if (plane.near_columns[f] == i) weight += plane.near_weights[start] * plane.near_weights[f];
    }
    return weight;
}

// ---- sums --------------------------------------------------------------------------------------------------------------

// Writes the sums over all lanes, in a fixed order, to out[0], out[n], out[2 n], ...
template <int L>
__device__ __forceinline__ void put_sums(double* sums, i64 n, double* out) {
    for (int l = 0; l < L; l++) {
        double sum = sums[l];
        for (int far = 16; far; far >>= 1) sum += __shfl_xor_sync(ALL, sum, far);
        if ((threadIdx.x & 31) == l % 32) out[l * n] = sum;
    }
}

// sum_j K(i, j) values(l, j) for all nodes i and the chosen kernels K: (kernels, L, n), in the order of ids
template <int L>
__global__ void __launch_bounds__(128) sum_around(Plane plane, int n_chosen, const int* chosen, const double* values, double* out) {
    i64 i = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5), n = plane.n;
    if (i >= n) return;
    for (int c = 0; c < n_chosen; c++) {
        int kernel = chosen[c];
        double sums[L];
        for (int l = 0; l < L; l++) sums[l] = 0;
        const auto add = [&](int j, double weight) {
            for (int l = 0; l < L; l++) sums[l] += weight * values[l * n + j];
        };
        if (kernel < plane.n_gaussians) {
            Gaussian gaussian = gaussian_of(plane, i, kernel);
            for_candidates(plane, gaussian, [&](int j, bool valid) {
                if (!valid || j == i) return;
                double power = power_of(plane, gaussian, j);
                if (takes(plane, i, kernel, j, power)) add(j, exponential(power));
            });
        } else
            for_entries(plane, i, kernel, add);
        put_sums<L>(sums, n, out + (i64)c * L * n + plane.ids[i]);
    }
}

// M(j, i) = sum_a mix(a, j) K_a(j, i) covariates(c_a, i); active kernels ascend
struct Mix {
    i64 count;
    const int *kernels, *covariates_of;
    const double *mix, *covariates;
};

__device__ __forceinline__ double mixed_weight(const Plane& plane, const Mix& mix, int j, i64 i) {
    double total = 0, weight = 0;
    for (int a = 0, before = -1; a < mix.count; a++) {
        int kernel = mix.kernels[a];
        if (kernel != before) weight = weight_at(plane, kernel, j, i);
        before = kernel;
        if (weight != 0) total += mix.mix[a * plane.n + j] * weight * mix.covariates[mix.covariates_of[a] * plane.n + i];
    }
    return total;
}

// sum_j K(i, j) M(j, i) values(l, j) for all nodes i and the chosen kernels K: (kernels, L, n), in the order of ids
template <int L>
__global__ void __launch_bounds__(128) sum_echoes(Plane plane, int n_chosen, const int* chosen, const double* values, Mix mix, double* out) {
    __shared__ int all_nodes[WARPS][64];
    __shared__ double all_weights[WARPS][64];
    int lane = threadIdx.x & 31, *nodes = all_nodes[threadIdx.x >> 5];
    double* weights = all_weights[threadIdx.x >> 5];
    i64 i = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5), n = plane.n;
    if (i >= n) return;
    for (int c = 0; c < n_chosen; c++) {
        int kernel = chosen[c];
        double sums[L];
        for (int l = 0; l < L; l++) sums[l] = 0;
        const auto add = [&](int j, double weight) {
            weight *= mixed_weight(plane, mix, j, i);
            for (int l = 0; l < L; l++) sums[l] += weight * values[l * n + j];
        };
        if (kernel < plane.n_gaussians) {  // entries are collected until all lanes have one
            Gaussian gaussian = gaussian_of(plane, i, kernel);
            int filled = 0;
            for_candidates(plane, gaussian, [&](int j, bool valid) {
                double power = valid && j != i ? power_of(plane, gaussian, j) : NEVER;
                bool taken = takes(plane, i, kernel, j, power);
                u32 others = __ballot_sync(ALL, taken);
                int place = filled + __popc(others & ((1u << lane) - 1));
                if (taken) nodes[place] = j, weights[place] = exponential(power);
                filled += __popc(others);
                __syncwarp();
                if (filled < 32) return;
                int node = nodes[lane], rest = nodes[32 + lane];
                double weight = weights[lane], rest_weight = weights[32 + lane];
                __syncwarp();
                nodes[lane] = rest, weights[lane] = rest_weight;
                filled -= 32;
                __syncwarp();
                add(node, weight);
            });
            if (lane < filled) add(nodes[lane], weights[lane]);
            __syncwarp();
        } else
            for_entries(plane, i, kernel, add);
        put_sums<L>(sums, n, out + (i64)c * L * n + plane.ids[i]);
    }
}
