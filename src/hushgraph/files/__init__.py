"""Files: graphs and signals are read and written here, one module per format."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
