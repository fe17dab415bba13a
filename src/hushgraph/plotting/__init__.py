"""Pictures: maps of signals, figures of frames and risk, and the report, one HTML file."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
