"""Private releases: how much noise, the noise itself, events and counts, the budget, the release and its certificate."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
