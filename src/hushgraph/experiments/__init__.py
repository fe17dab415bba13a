"""The tables and figures of the paper, one module each, and the demo."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
