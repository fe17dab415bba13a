"""Graphs, events and signals to try things on: generated ones, which need no download and are the same for the same seed, and real ones.

Real data is looked for in the folder named by HUSHGRAPH_DATA, then in the cache, then at its official source.
"""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
