"""hushgraph: denoise signals on very large graphs, and publish them privately.

The table of contents, in the order in which data flows. Everything is loaded when first used.
"""

import sys
from importlib import import_module
from types import ModuleType

_CONTENTS = {
    "graph": ["Graph"],
    "observation": ["Noisy"],
    "partition": ["linear_plateau", "smooth_plateau", "c3_plateau", "meyer_plateau", "partition", "count_scales"],
    "chebyshev": ["chebyshev_coefficients", "jackson_damping"],
    "frame": ["chebyshev_frame", "exact_frame", "ChebyshevFrame", "ExactFrame"],
    "transform": ["analyze", "synthesize", "as_linear_operator"],
    "shrink": ["soft", "james_stein", "power", "hard", "shrink"],
    "risk": [
        "default_probes",
        "monte_carlo_weights",
        "exact_weights",
        "smooth_weights",
        "sure",
        "sure_variance",
        "signal_sure",
        "monte_carlo_divergence",
        "estimate_sigma",
    ],
    "threshold": ["sure_thresholds", "sure_curve", "oracle_thresholds"],
    "denoise": ["denoise", "Denoised"],
    "signals": ["bernoulli_signal", "hotspot_counts", "smooth_signal", "piecewise_constant_signal"],
    "metrics": ["snr", "mse"],
    "plotting": ["plot_graph_signal", "plot_maps"],
    "estimator": ["WaveletDenoiser"],
}
_HOME = {name: module for module, names in _CONTENTS.items() for name in names}
_PACKAGES = ("datasets",)

__all__ = [*_HOME, *_PACKAGES]
__version__ = "0.1.0"


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(f"hushgraph.{_HOME[name]}"), name)
    if name in _PACKAGES:
        return import_module(f"hushgraph.{name}")
    msg = f"module 'hushgraph' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__():
    return sorted([*globals(), *__all__])


class _Contents(ModuleType):
    """Keeps hushgraph.denoise the function, whoever imports the file of that name (partition and shrink likewise)."""

    def __setattr__(self, name, value):
        if isinstance(value, ModuleType) and _HOME.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Contents
