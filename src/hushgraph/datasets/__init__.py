"""Graphs, events and signals to try things on: generated ones, which need no download and are the same for the same seed, and real ones.

Real data is looked for in the folder named by HUSHGRAPH_DATA, then in the cache, then at its official source.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "city",
    "roads",
    "grid",
    "path",
    "random_geometric",
    "trips",
    "bernoulli_signal",
    "hotspot_counts",
    "smooth_signal",
    "piecewise_constant_signal",
    "Map",
    "manhattan",
    "san_francisco",
    "road_network",
    "read_snap",
    "read_matrix_market",
    "read_tlc",
    "read_cabspotting",
    "DataUnavailable",
]
