"""Graphs: `Graph` with its Laplacians, construction, spectrum, clusters and orders of nodes, values by label, graphs of other packages."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
