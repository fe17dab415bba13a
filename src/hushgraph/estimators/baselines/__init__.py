"""Methods to compare with: the fused lasso along a depth-first order of the graph, and total variation on the graph."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "dfs_fused_lasso",
    "graph_tv",
    "fused_lasso",
    "fused_lasso_path",
]
