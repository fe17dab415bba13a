"""`denoise` and every method behind it, the result with its risk, the methods to compare with, and how far an estimate is from the truth."""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [
    "denoise",
    "Denoised",
    "WaveletDenoiser",
    "snr",
    "mse",
    "baselines",
]
