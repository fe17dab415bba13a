"""The paper's building blocks: partition of unity, Chebyshev polynomials, frame, transform, shrinkage, probes and weights, SURE, thresholds."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
