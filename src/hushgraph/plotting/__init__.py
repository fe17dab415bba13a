"""Pictures: maps of signals, figures of frames and risk, and the report, one HTML file."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "plot_graph_signal",
    "plot_maps",
    "plot_error",
    "plot_partition",
    "plot_frame",
    "plot_scales",
    "plot_sure",
    "write_report",
]
