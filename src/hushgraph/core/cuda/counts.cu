// Posterior means and variances of counts, a thread for each node: `Pass.posterior` of `estimators/counts/empirical_bayes.py`, with likelihoods that
// are computed where they are needed.

typedef long long i64;

struct Priors {
    i64 points;                  // of the grid
    const double *grid, *width;  // of its cells
    i64 rows, lowest;            // of the table of Gammas; its first row is that of the mean exp(lowest step)
    const double* gammas;        // (rows, points)
    double b0, b1, level, step;
    i64 n_knots;
    const double *knots, *hats;         // (knots, points), at least two rows
    double underflow, farthest, least;  // how far from y the grid is used, in sigmas; smallest evidence
};

// the number of grid points below x
__device__ __forceinline__ i64 points_below(const double* grid, i64 points, double x) {
    i64 begin = 0, end = points;
    while (begin < end) {
        i64 middle = (begin + end) / 2;
        if (grid[middle] < x)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

struct Moments {
    double one, mean, square;
};

extern "C" __global__ void __launch_bounds__(128) posterior(i64 n, const double* y, const double* sigma, const double* mu, Priors priors,
                                                            double* means, double* variances) {
    i64 i = (i64)blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    const double* grid = priors.grid;
    i64 top = priors.points - 1;
    double value = y[i], spread = sigma[i], nearest = fmax(value, 0.0);
    i64 below = min(max(points_below(grid, priors.points, nearest), (i64)1), top);  // the cell of `nearest` ends at this point
    double slope = (priors.width[below] - priors.width[below - 1]) / (grid[below] - grid[below - 1]);
    bool plain = nearest > grid[top] || slope * (nearest - grid[below - 1]) + priors.width[below - 1] > spread;

    double place = log(priors.b0 + priors.b1 * (mu[i] / priors.level)) / priors.step;
    i64 row = min(max((i64)floor(place) - priors.lowest, (i64)0), priors.rows - 2);
    double share = fmin(fmax(place - (double)(row + priors.lowest), 0.0), 1.0);
    const double *gamma = priors.gammas + row * priors.points, *next_gamma = gamma + priors.points;
    i64 knot = 0;
    while (knot + 2 < priors.n_knots && mu[i] >= priors.knots[knot + 1]) knot++;
    double part = 0;
    if (priors.n_knots > 1) part = fmin(fmax((mu[i] - priors.knots[knot]) / (priors.knots[knot + 1] - priors.knots[knot]), 0.0), 1.0);
    const double *hat = priors.hats + knot * priors.points, *next_hat = hat + priors.points;

    Moments by_gammas = {0, 0, 0}, by_hats = {0, 0, 0};
    if (!plain) {
        i64 first = points_below(grid, priors.points, nearest - priors.underflow * spread);
        i64 last = max(points_below(grid, priors.points, nearest + priors.farthest * spread), first + 1);
        double best = (value - nearest) * (value - nearest), scale = 2 * (spread * spread);
        for (i64 p = first; p < last; p++) {
            double f = grid[p], likelihood = exp((best - (value - f) * (value - f)) / scale);
            double mass = likelihood * ((1 - share) * gamma[p] + share * next_gamma[p]);
            by_gammas.one += mass, by_gammas.mean += mass * f, by_gammas.square += mass * (f * f);
            mass = likelihood * ((1 - part) * hat[p] + part * next_hat[p]);
            by_hats.one += mass, by_hats.mean += mass * f, by_hats.square += mass * (f * f);
        }
    }
    double total = by_gammas.one + by_hats.one, mean = nearest, variance = spread * spread;
    if (!plain && total > priors.least) {
        mean = (by_gammas.mean + by_hats.mean) / total;
        variance = fmax((by_gammas.square + by_hats.square) / total - mean * mean, 0.0);
    }
    means[i] = mean, variances[i] = variance;
}

// ---- priors, fitted to stored likelihoods ------------------------------------------------------------------------------

// Likelihoods of nodes, and their priors, as `Nodes` of `core/counts.cpp`: node i has values[starts[i]] .. values[starts[i + 1] - 1] from the point
// first[i] on, and the prior (1 - share) table[low] + share table[low + 1].
struct Nodes {
    i64 n, points;
    const double* values;
    const i64 *starts, *first, *low;
    const double* share;
};

// Sums over the grid of the likelihood of a node times its two distributions, for all lanes of a warp.
__device__ __forceinline__ void evidence_of(const Nodes& nodes, i64 i, const double* table, double* lower, double* upper) {
    const double* values = nodes.values + nodes.starts[i];
    const double *below = table + nodes.low[i] * nodes.points + nodes.first[i], *above = below + nodes.points;
    double s = 0, t = 0;
    for (i64 p = threadIdx.x & 31; p < nodes.starts[i + 1] - nodes.starts[i]; p += 32) s += values[p] * below[p], t += values[p] * above[p];
    for (int far = 16; far; far >>= 1) {
        s += __shfl_xor_sync(0xffffffffu, s, far);
        t += __shfl_xor_sync(0xffffffffu, t, far);
    }
    *lower = s, *upper = t;
}

// The evidence of each node, a warp for each.
extern "C" __global__ void __launch_bounds__(128) sum_evidence(Nodes nodes, const double* table, double* out) {
    i64 i = (i64)blockIdx.x * 4 + (threadIdx.x >> 5);
    if (i >= nodes.n) return;
    double s, t;
    evidence_of(nodes, i, table, &s, &t);
    if ((threadIdx.x & 31) == 0) out[i] = (1 - nodes.share[i]) * s + nodes.share[i] * t;
}

// (1 - share) / evidence and share / evidence of each node; 0 for nodes that are plain or whose evidence is at most `least`.
extern "C" __global__ void __launch_bounds__(128) put_factors(Nodes nodes, const double* table, const bool* plain, double least, double* factors) {
    i64 i = (i64)blockIdx.x * 4 + (threadIdx.x >> 5);
    if (i >= nodes.n) return;
    double s, t;
    evidence_of(nodes, i, table, &s, &t);
    double w = nodes.share[i], evidence = (1 - w) * s + w * t;
    bool counted = !plain[i] && evidence > least;
    if ((threadIdx.x & 31) == 0) factors[2 * i] = counted ? (1 - w) / evidence : 0.0, factors[2 * i + 1] = counted ? w / evidence : 0.0;
}

__device__ __forceinline__ double block_total(double value, double* warps) {
    for (int far = 16; far; far >>= 1) value += __shfl_xor_sync(0xffffffffu, value, far);
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = value;
    __syncthreads();
    double total = 0;
    for (int w = 0; w < 8; w++) total += warps[w];
    __syncthreads();
    return total;
}

// Sums of likelihood times factors over the entries of one point and one lower distribution, a block for each; entries are sorted by these.
extern "C" __global__ void __launch_bounds__(256) sum_expected(const i64* starts, const int* node_of, const double* values, const double* factors,
                                                               double* lower, double* upper) {
    __shared__ double warps[8];
    double s = 0, t = 0;
    for (i64 e = starts[blockIdx.x] + threadIdx.x; e < starts[blockIdx.x + 1]; e += 256) {
        const double* factor = factors + 2 * (i64)node_of[e];
        s += factor[0] * values[e], t += factor[1] * values[e];
    }
    s = block_total(s, warps), t = block_total(t, warps);
    if (threadIdx.x == 0) lower[blockIdx.x] = s, upper[blockIdx.x] = t;
}

// table expected + prior over its sum, a block for each row; the expected numbers are those of the nodes below and above a row.
extern "C" __global__ void __launch_bounds__(256) update_table(i64 points, i64 rows, const double* table, const double* prior, const double* lower,
                                                               const double* upper, double* out) {
    __shared__ double warps[8];
    i64 row = blockIdx.x;
    double sum = 0;
    for (i64 p = threadIdx.x; p < points; p += 256) {
        double expected = (row + 1 < rows ? lower[row * points + p] : 0.0) + (row > 0 ? upper[(row - 1) * points + p] : 0.0);
        sum += out[row * points + p] = table[row * points + p] * expected + prior[row * points + p];
    }
    sum = block_total(sum, warps);
    for (i64 p = threadIdx.x; p < points; p += 256) out[row * points + p] /= sum;
}
