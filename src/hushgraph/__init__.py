"""hushgraph: denoise signals on very large graphs, and publish them privately.

The table of contents, in the order in which data flows. Everything is loaded when first used.
"""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {
    "graph": ["Graph"],
    "interop": ["to_networkx", "to_igraph", "to_scipy", "to_geopandas", "to_pyg", "pyg_signals"],
    "io": ["read_graph", "write_graph", "read_signal", "write_signal"],
    "observation": ["Noisy"],
    "partition": ["linear_plateau", "smooth_plateau", "c3_plateau", "meyer_plateau", "partition", "count_scales"],
    "chebyshev": ["chebyshev_coefficients", "jackson_damping"],
    "frame": ["chebyshev_frame", "exact_frame", "ChebyshevFrame", "ExactFrame"],
    "transform": ["analyze", "synthesize", "as_linear_operator"],
    "shrink": ["soft", "james_stein", "power", "hard", "shrink"],
    "local_noise": ["smooth_weights"],
    "risk": [
        "default_probes",
        "monte_carlo_weights",
        "exact_weights",
        "sure",
        "sure_variance",
        "signal_sure",
        "monte_carlo_divergence",
        "estimate_sigma",
    ],
    "threshold": ["sure_thresholds", "sure_curve", "oracle_thresholds"],
    "blocks": ["block_thresholds", "apply_block_thresholds"],
    "neighbourhoods": ["block_partition"],
    "betas": ["sure_betas"],
    "result": ["Denoised"],
    "chains": ["fused_lasso", "fused_lasso_path", "depth_first_order"],
    "baselines": ["dfs_fused_lasso", "graph_tv"],
    "denoise": ["denoise"],
    "signals": ["bernoulli_signal", "hotspot_counts", "smooth_signal", "piecewise_constant_signal"],
    "metrics": ["snr", "mse"],
    "plotting": ["plot_graph_signal", "plot_maps", "plot_error"],
    "figures": ["plot_partition", "plot_frame", "plot_scales", "plot_sure"],
    "estimator": ["WaveletDenoiser"],
    "report": ["write_report"],
}

__all__ = lazily(__name__, _CONTENTS, packages=("datasets", "privacy", "distributed", "app"))
__version__ = "0.1.0"

if TYPE_CHECKING:  # type checkers do not see the names that are loaded lazily

    def __getattr__(name: str) -> Any: ...
