"""The noise: a Gaussian rounded to a lattice, sampled exactly from the operating system's entropy.

Float noise leaks through its low bits (Mironov, 2012): which floats x + noise can reach depends on x. Here a release is
x + g J with g a power of two and

    P[J = j] = Phi((j + 1/2) g / sigma) - Phi((j - 1/2) g / sigma),

that is, a normal variable rounded to the nearest multiple of g. Whole numbers x lie on the lattice, so x + g J has the law of
round_g(x + N(0, sigma^2)): post-processing of the ideal mechanism, with the same (epsilon, delta) (proof in docs/privacy.md).

J comes from the inverse distribution function at a uniform real number U, whose bits are drawn as far as they matter: 64 of
them, and more where the value is so close to a rounding boundary, or so far in a tail, that they leave it open. There is no
buffer (a forked process cannot repeat noise) and no seed. Time spent may depend on the noise: no protection against whoever
can time the sampler.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy.special import ndtri, ndtri_exp

from hushgraph._validation import checked_count, checked_number

SMALLEST_SIGMA, LARGEST_SIGMA = 2.0**-10, 2.0**32
_SUBDIVISION = 2.0**10  # lattice points per sigma, at least
_TAIL = -5.0  # below this z the 64 bits are too coarse for the margin
_MARGIN = 2.0**-38  # of z around a boundary where floats do not decide; ndtri and 64 bits are good to 2^-42 above the tail (tested)
_BLOCK = 1 << 14  # entries at a time: the working arrays stay in cache

Source = Callable[[int], bytes]


def lattice_step(sigma: float) -> float:
    """Return the lattice's g: the largest power of two that is at most 1 and at most sigma / 1024. It depends on sigma alone.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    float
        Spacing of the lattice.

    Examples
    --------
    >>> lattice_step(4.22), lattice_step(26.49), lattice_step(1e6)
    (0.00390625, 0.015625, 1.0)
    """
    sigma = checked_lattice_sigma(sigma)
    return min(1.0, 2.0 ** (math.frexp(sigma / _SUBDIVISION)[1] - 1))


def lattice_noise(size: int, *, sigma: float) -> np.ndarray:
    """Draw J `size` times, independently, from the operating system's entropy; the noise is lattice_step(sigma) * J.

    Parameters
    ----------
    size : int
        Number of draws.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    (size,) int64 array
        The draws, in steps of the lattice.

    Examples
    --------
    >>> noise = lattice_step(2.0) * lattice_noise(1000, sigma=2.0)
    >>> bool(1.5 < noise.std() < 2.5)
    True
    """
    return steps_from(os.urandom, checked_count("size", size, 0), sigma)


def steps_from(source: Source, size: int, sigma: float) -> np.ndarray:
    """Return `size` draws of J from the random bytes of `source`."""
    step = lattice_step(sigma)
    result = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        part = result[start : start + _BLOCK]
        bits = np.frombuffer(source(8 * len(part)), dtype="<u8")
        doubtful = _fast_steps(bits, sigma / step, part)
        for i in np.flatnonzero(doubtful):
            part[i] = exact_step(int(bits[i]), sigma, step, source)
    return result


def _fast_steps(bits: np.ndarray, ratio: float, steps: np.ndarray) -> np.ndarray:
    """Write J from 64 bits each into `steps`; return where these do not decide. The lowest bit is the sign, the rest U < 1/2."""
    z = (bits >> np.uint64(1)).astype(np.float64)
    z += 0.5
    z *= 2.0**-64
    ndtri(z, out=z)
    tail = z < _TAIL
    z *= ratio
    nearest = np.rint(z)
    np.copyto(steps, nearest, casting="unsafe")
    sign = (bits & np.uint64(1)).view(np.int64)
    sign <<= 1
    sign -= 1
    steps *= sign  # J of U < 1/2 is at most 0
    z -= nearest
    np.abs(z, out=z)
    return (z > 0.5 - ratio * _MARGIN) | tail


def exact_step(bits: int, sigma: float, step: float, source: Source) -> int:
    """Return J of the uniform number that begins with these 64 bits, with as many more as it takes; bounds by mpmath."""
    sign = 2 * (bits & 1) - 1
    low, length = bits >> 1, 64  # U is in [low, low + 1) / 2^length, below 1/2
    while True:
        low, length = (low << 128) | int.from_bytes(source(16), "little"), length + 128
        if low == 0:
            continue
        guess = round(float(ndtri_exp(math.log(low) - length * math.log(2))) * (sigma / step))
        for j in (guess, guess - 1, guess + 1):
            if _cell_holds(j, low, length, sigma, step):
                return sign * j


def _cell_holds(j: int, low: int, length: int, sigma: float, step: float) -> bool:
    """Return whether [low, low + 1) / 2^length lies within Phi((j -+ 1/2) g / sigma), by a margin of 2^-40 of its length."""
    mp = mpmath.MPContext()
    mp.prec = length + 64
    unit, slack = mp.mpf(2) ** -length, mp.mpf(2) ** -40
    below, above = (mp.ncdf((j + half) * mp.mpf(step) / mp.mpf(sigma)) / unit for half in (mp.mpf(-0.5), mp.mpf(0.5)))
    return bool(below + slack <= low and low + 1 + slack <= above)


def checked_lattice_sigma(sigma: Any) -> float:
    """Return a sigma that leaves room for counts and noise in 53 bits."""
    expected = f"between {SMALLEST_SIGMA:g} and {LARGEST_SIGMA:g} to release counts (choose epsilon and delta accordingly)"
    return checked_number("sigma", sigma, expected, least=SMALLEST_SIGMA, most=LARGEST_SIGMA)
