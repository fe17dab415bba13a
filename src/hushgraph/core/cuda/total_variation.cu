// Accelerated steps on the dual problem of total variation on a graph; `core/total_variation_gpu.py` says which. Signals are the y of the grid.

typedef long long i64;

// x = y - D'v: a node adds the flows of its arcs in ascending order of its neighbours. The flow over edge e leaves where the arc says e and
// arrives where it says ~e.
extern "C" __global__ void __launch_bounds__(256) node_values(int n, int n_edges, const int* starts, const int* arcs, const double* y,
                                                              const double* flow, double* x) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    flow += (i64)blockIdx.y * n_edges;
    double sum = 0;
    for (int k = starts[i]; k < starts[i + 1]; k++) sum += arcs[k] >= 0 ? flow[arcs[k]] : -flow[~arcs[k]];
    x[(i64)blockIdx.y * n + i] = y[(i64)blockIdx.y * n + i] - sum;
}

// a step of the flow `ahead` along the difference of x, back into its bounds, and the next `ahead`
extern "C" __global__ void __launch_bounds__(256) flow_step(int n, int n_edges, const int* ends, const double* step, const double* capacity,
                                                            const double* penalty, const double* x, double momentum, double* flow,
                                                            double* ahead) {
    int e = blockIdx.x * 256 + threadIdx.x;
    if (e >= n_edges) return;
    x += (i64)blockIdx.y * n, flow += (i64)blockIdx.y * n_edges, ahead += (i64)blockIdx.y * n_edges;
    double bound = penalty[blockIdx.y] * capacity[e], moved = ahead[e] + step[e] * (x[ends[2 * e]] - x[ends[2 * e + 1]]);
    double now = fmin(fmax(moved, -bound), bound);
    ahead[e] = now + momentum * (now - flow[e]);
    flow[e] = now;
}
