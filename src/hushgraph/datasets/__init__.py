"""Graphs and events to try things on: generated ones, which need no download and are the same for the same seed, and real ones.

Real data is looked for in the folder named by HUSHGRAPH_DATA, then in the cache, then at its official source.
"""

from typing import TYPE_CHECKING, Any

from hushgraph.contents import lazily

_CONTENTS = {
    "generated": ["city", "roads", "grid", "path", "random_geometric"],
    "trips": ["trips"],
    "maps": ["Map", "manhattan", "san_francisco", "road_network"],
    "graph_files": ["read_snap", "read_matrix_market"],
    "pickup_files": ["read_tlc", "read_cabspotting"],
    "sources": ["DataUnavailable"],
}
__all__ = lazily(__name__, _CONTENTS)

if TYPE_CHECKING:  # type checkers do not see the names that are loaded lazily

    def __getattr__(name: str) -> Any: ...
