// Coefficients shrunk behind a gate, their divergences and derivatives: `shrink_rows`, `gate_moves` and `add_moved` of the processor
// (`core/shrinkage.cpp`). Rows of n values are the y of the grid; strides are between rows.

typedef long long i64;

const int PER_BLOCK = 2048, MOST_THRESHOLDS = 4;

struct Shrunken {
    double value, slope;
};

__device__ __forceinline__ Shrunken shrunken(double x, double limit) {
    double size = fabs(x), alive = size > limit || limit == 0 ? 1 : 0, r = limit > 0 && size > limit ? limit / size : 0;
    return {alive * (x * (1 - r * r)), alive * (1 + r * r)};
}

// gate h_t(x_k) for each threshold t in multiples of the scales, (thresholds, rows, n); and sums of the terms of their divergences over
// PER_BLOCK nodes, (thresholds, rows, blocks). Without a gate `opening` and `moves` are null.
extern "C" __global__ void __launch_bounds__(256) shrink_rows(i64 n, int count, const double* thresholds, const double* x, i64 x_stride,
                                                              const double* scale, i64 scale_stride, const double* weight, i64 weight_stride,
                                                              const double* opening, const double* moves, double* values, double* parts) {
    __shared__ double warps[8];
    int row = blockIdx.y;
    x += row * x_stride, scale += row * scale_stride, weight += row * weight_stride;
    double sums[MOST_THRESHOLDS] = {0, 0, 0, 0};
    i64 first = (i64)blockIdx.x * PER_BLOCK, last = min(n, first + PER_BLOCK);
    for (i64 i = first + threadIdx.x; i < last; i += 256) {
        double value = x[i], unit = scale[i], open = opening ? opening[i] : 1.0, share = weight[i], move = moves ? moves[row * n + i] : 0.0;
#pragma unroll
        for (int t = 0; t < MOST_THRESHOLDS; t++) {
            if (t >= count) break;
            Shrunken one = shrunken(value, thresholds[t] * unit);
            values[((i64)t * gridDim.y + row) * n + i] = open * one.value;
            sums[t] += share * open * one.slope + move * one.value;
        }
    }
    for (int t = 0; t < count; t++) {
        double sum = sums[t];
        for (int far = 16; far; far >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, far);
        if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < 8; w++) sum += warps[w];
            parts[((i64)t * gridDim.y + row) * gridDim.x + blockIdx.x] = sum;
        }
        __syncthreads();
    }
}

// the factor of h_t in the divergence: slope (cross_k - mean over probes of (shift + stretch z) rho_k)
extern "C" __global__ void __launch_bounds__(256) gate_moves(i64 n, int probes, const double* cross, i64 cross_stride, const double* rho,
                                                             const double* z, const double* slope, const double* shift,
                                                             const double* stretch, double* out) {
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    double sum = 0;
    for (int p = 0; p < probes; p++) sum += (shift[p] + stretch[p] * z[i]) * rho[((i64)p * gridDim.y + blockIdx.y) * n + i];
    out[blockIdx.y * n + i] = slope[i] * (cross[blockIdx.y * cross_stride + i] - sum / probes);
}

struct GateAlongProbes {
    const double *open, *z, *slope, *smooth, *shift, *stretch;  // null: there is no gate
};

// adds the derivative of sum_t a_tk gate h_t(x_k) along the probes to out (probes, rows, n); with `is_summed`, its sum over rows to (probes, 1, n)
extern "C" __global__ void __launch_bounds__(256) add_moved(i64 n, int n_rows, int count, const double* thresholds, const double* shares,
                                                            const double* x, i64 x_stride, const double* scale, i64 scale_stride, int probes,
                                                            const double* rows, GateAlongProbes gate, bool is_summed, double* out,
                                                            i64 out_stride) {
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    int first = is_summed ? 0 : blockIdx.y, last = is_summed ? n_rows : first + 1;
    for (int row = first; row < last; row++) {
        double value = 0, slope = 0;
        for (int t = 0; t < count; t++) {
            Shrunken one = shrunken(x[row * x_stride + i], thresholds[t] * scale[row * scale_stride + i]);
            value += shares[t * n_rows + row] * one.value, slope += shares[t * n_rows + row] * one.slope;
        }
        for (int p = 0; p < probes; p++) {
            double derivative = slope * rows[((i64)p * n_rows + row) * n + i];
            if (gate.open) {
                double change = gate.slope[i] * (gate.smooth[p * n + i] - gate.shift[p] - gate.stretch[p] * gate.z[i]);
                derivative = gate.open[i] * derivative + change * value;
            }
            out[p * out_stride + (row - (is_summed ? row : 0)) * n + i] += derivative;
        }
    }
}
