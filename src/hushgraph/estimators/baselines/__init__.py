"""Methods to compare with: the fused lasso along a depth-first order of the graph, and total variation on the graph."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
