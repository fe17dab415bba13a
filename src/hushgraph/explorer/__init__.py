"""The explorer: a page on this computer that shows what an epsilon costs and what denoising gives back."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "serve",
]
