"""Where on the spectrum of the Laplacian a signal has its energy, without eigenvectors.

K steps of the Chebyshev recurrence give the moments x'T_m(L) x for m = 0..2K. They are the Fourier coefficients of the energy

    E(theta) = sum_i <u_i, x>^2 delta(theta - theta_i),        eigenvalue_i = upper (1 - cos theta_i) / 2

of the signal x, and damped by Jackson's factors they give a positive density whose resolution in theta is pi / 2K. The energies in bins
of theta then give x'g(L) x for every function g that is smooth at this resolution, without another product with L. The same
moments of random probes give traces tr g(L).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft

from hushgraph._arrays import on_device, on_host
from hushgraph.core import cpu
from hushgraph.wavelets.chebyshev import jackson_damping
from hushgraph.wavelets.frame import ChebyshevFrame
from hushgraph.wavelets.transform import engine

EVEN_BINS = 64  # bins of width pi / 2K next to 0; the others grow
GROWTH = 1.01  # of the bins, from one to the next
SIGNALS_AT_ONCE = 16  # signals transformed at a time


def spectral_moments(frame: ChebyshevFrame, planes: Any, degree: int) -> np.ndarray:
    """Return x'T_m x, m = 0..2 degree, of each signal x: (m, n) -> (m, 2 degree + 1), T_m of the Laplacian mapped to [-1, 1]."""
    return on_host(rowwise_spectral_moments(frame, planes, degree))


def rowwise_spectral_moments(frame: ChebyshevFrame, planes: Any, degree: int) -> Any:
    """Return `spectral_moments`; results on a GPU stay there, and the host does not wait for them."""
    kernels, layout = engine(frame, planes)
    no_filter, scale = np.zeros((0 if on_device(planes) else 1, degree + 1)), frame.laplacian_scale  # the moments alone are wanted
    groups = [planes[start : start + SIGNALS_AT_ONCE] for start in range(0, len(planes), SIGNALS_AT_ONCE)]
    parts = [kernels.forward_with_moments(layout, no_filter, group, scale, n_moments=2 * degree + 1)[1] for group in groups]
    return np.concatenate([part.astype(np.float64) for part in parts])


def climb(
    frame: ChebyshevFrame, coefficients: np.ndarray, terms: np.ndarray, bands: np.ndarray, *, shares: np.ndarray, first: bool
) -> np.ndarray:
    """Continue the recurrence of one signal by some terms, in place; return the products of the terms, see `core.cpu.climb`."""
    layout, scale = frame.graph.layout(frame.laplacian), frame.laplacian_scale
    return cpu.climb(layout, coefficients, terms, bands, scale, shares=shares, first=first)


def moments_of_products(products: np.ndarray) -> np.ndarray:
    """Return x'T_m x from <T_0 x, T_0 x>, <T_1 x, T_0 x>, <T_1 x, T_1 x> and so on: (signals, m) -> (signals, m)."""
    return np.concatenate([products[:, :2], 2 * products[:, 2:] - np.resize(products[:, :2].T, products[:, 2:].T.shape).T], axis=1)


@dataclass(frozen=True, eq=False)
class SpectralBins:
    """Bins of the spectrum [0, upper], as narrow near 0 as polynomials of degree `degree` resolve.

    `ends` are the upper ends of the bins in steps of pi / 4K of theta; `x` are the eigenvalues at their centers.
    """

    degree: int
    upper: float
    ends: np.ndarray
    x: np.ndarray

    @classmethod
    def of(cls, degree: int, upper: float) -> SpectralBins:
        """Return the bins that belong to 2 degree + 1 moments."""
        steps = 4 * max(degree, 1)
        ends = [2 * k for k in range(1, EVEN_BINS + 1) if 2 * k <= steps]
        while ends[-1] < steps:
            ends.append(min(max(ends[-1] + 2, round(ends[-1] * GROWTH)), steps))
        edges = np.array([0, *ends])
        theta = np.pi * (edges[1:] + edges[:-1]) / (2 * steps)
        return cls(degree, upper, edges[1:], upper * (1 - np.cos(theta)) / 2)

    def energies(self, moments: np.ndarray) -> np.ndarray:
        """Return the energy in each bin, at least 0: (m, 2 degree + 1) -> (m, bins)."""
        count = moments.shape[1]
        steps = 4 * max(self.degree, 1)
        # T_m(-cos theta) = (-1)^m cos(m theta): the recurrence has the low end of the spectrum at -1
        damped = moments * jackson_damping(count - 1) * (-1.0) ** np.arange(count)
        series = np.zeros((len(moments), steps - 1))
        series[:, : count - 1] = damped[:, 1:] / np.arange(1, count)
        angles = np.arange(steps + 1) / steps
        running = damped[:, :1] * angles
        running[:, 1:-1] += fft.dst(series, type=1, axis=1) / np.pi
        return np.maximum(np.diff(running[:, self.ends], axis=1, prepend=0.0), 0.0)
