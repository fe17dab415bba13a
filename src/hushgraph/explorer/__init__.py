"""The explorer: a page on this computer that shows what an epsilon costs and what denoising gives back."""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
