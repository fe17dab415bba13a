from .chain_fused_lasso import (
    fused_lasso as fused_lasso,
    fused_lasso_path as fused_lasso_path,
)
from .penalized import (
    dfs_fused_lasso as dfs_fused_lasso,
    graph_tv as graph_tv,
)

__all__ = [
    "dfs_fused_lasso",
    "graph_tv",
    "fused_lasso",
    "fused_lasso_path",
]
