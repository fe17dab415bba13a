"""Graphs: `Graph` with its Laplacians, construction, spectrum, clusters and orders of nodes, values by label, graphs of other packages."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "Graph",
    "Noisy",
    "to_networkx",
    "to_igraph",
    "to_scipy",
    "to_geopandas",
    "to_pyg",
    "pyg_signals",
    "block_partition",
    "depth_first_order",
]
