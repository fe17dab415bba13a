"""Patches: estimates of an image from squares of pixels elsewhere that look alike. Only for graphs that are lattices.

Groups of similar patches are denoised together, and a pixel becomes the weighted mean of its estimates, three times:

    threshold   16 patches of 8 x 8: coefficients of cosines and Haar wavelets below 2.7 sigma are 0     (Dabov and others 2007)
    gaussian    64 patches of 5 x 5, with a Gaussian model of the group: x - sigma^2 C^-1 (x - mean)      (Lebrun and others 2013)
    wiener      16 patches of 8 x 8: the same coefficients of the noisy image times q^2 / (q^2 + sigma^2), where q are those of the pilot,
                the mean of the images by `threshold` and `gaussian`. Patches are compared on the pilot, too.

The last one is the column. The first two as columns of their own gain 0.02 dB, and make the choice of weights noisier.

Its derivatives along the probes are finite differences of all steps, the search for similar patches included: with the groups held fixed,
the divergence is a tenth too small. The estimate jumps where a group changes, so the step d (DIFFERENCE_STEP) is not small. The signal
y + d sigma eps has noise of variance sigma^2 (1 + d^2), and is denoised as such; without that the divergence is too large.
"""

from __future__ import annotations

import numpy as np

from hushgraph._progress import reached
from hushgraph.core import _loops, block_sum
from hushgraph.estimators.let.columns import KnownDerivatives
from hushgraph.estimators.let.observation import Observation
from hushgraph.graphs import Graph, Lattice, lattice_of

LEAST_SIDE = 16  # rows and columns of an image; with so many, each group of patches is full
GAUSSIAN_SIDE, SPECTRAL_SIDE = 5, 8  # sides of patches in the compiled loops
REFERENCE_STEP = 4  # pixels from one reference patch to the next
GAUSSIAN_RADIUS, SPECTRAL_RADIUS = 14, 19  # pixels around a reference patch that are searched
THRESHOLD = 2.7  # in noise levels
SPARE_COLUMNS = 8  # to the right of the image, which the loops may read
LARGEST_VALUE = 1e15  # in noise levels, so that squares are numbers in single precision
DIFFERENCE_STEP = 0.1  # of the finite differences, in noise levels
DIVERGENCE_ERROR = 1.0  # standard error of the divergence from one probe, over the root of n; 0.4 to 0.8 on photographs


def takes_patches(graph: Graph) -> bool:
    """Return whether a graph is an image that is large enough for groups of patches."""
    return _large_lattice(graph) is not None


def _large_lattice(graph: Graph) -> Lattice | None:
    """Return the lattice of a graph that is an image large enough for groups of patches, or None."""
    lattice = lattice_of(graph)
    return None if lattice is None or min(lattice.shape) < LEAST_SIDE else lattice


def similar_patches(observation: Observation) -> KnownDerivatives:
    """Return the column of an image; of other graphs, and where numbers are too large or too small for it, a column of zeros."""
    y, eps, lattice = observation.y, observation.filters.probes.eps, _large_lattice(observation.graph)
    zeros = KnownDerivatives(("patches",), np.zeros((1, len(y))), np.zeros(1), np.zeros((1, *eps.shape)))
    if lattice is None:
        return zeros
    variance, step = lattice.image(observation.node_variance * observation.noise.variance), DIFFERENCE_STEP * observation.sigma
    value, derivatives = _estimate(lattice, y, variance), np.empty((1, *eps.shape))
    for k, probe in enumerate(eps):
        reached((k + 1) / (len(eps) + 1), "patches")
        derivatives[0, k] = (_estimate(lattice, y + step * probe, (1 + DIFFERENCE_STEP**2) * variance) - value) / step
    if not np.all(np.isfinite(value)) or not np.all(np.isfinite(derivatives)):  # squares of values or of sigma overflow
        return zeros
    divergence = np.mean([block_sum(probe * row) for probe, row in zip(eps, derivatives[0], strict=True)])
    doubt = DIVERGENCE_ERROR * np.sqrt(len(y) / len(eps))
    return KnownDerivatives(("patches",), value[None], divergence[None], derivatives, doubt=doubt)


def _estimate(lattice: Lattice, y: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the estimate of a signal (n,), given the variance of the noise of each pixel (rows, columns)."""
    level = float(block_sum(y)) / len(y)
    noisy, unit = lattice.image(y - level), float(np.sqrt(variance.mean()))
    guide = _guide(noisy, unit)
    gaussian, threshold, wiener = np.empty((3, *noisy.shape))
    _loops.gaussian_patches(noisy, guide, _patch_means(variance, GAUSSIAN_SIDE), REFERENCE_STEP, GAUSSIAN_RADIUS, gaussian)
    patch_variance = _patch_means(variance, SPECTRAL_SIDE)
    _loops.spectral_patches(noisy, None, guide, patch_variance, THRESHOLD, REFERENCE_STEP, SPECTRAL_RADIUS, threshold)
    pilot = (gaussian + threshold) / 2
    _loops.spectral_patches(noisy, pilot, _guide(pilot, unit), patch_variance, 0.0, REFERENCE_STEP, SPECTRAL_RADIUS, wiener)
    return level + lattice.signal(wiener)


def _guide(image: np.ndarray, unit: float) -> np.ndarray:
    """Return the image that patches are compared on, in noise levels and single precision."""
    guide = np.zeros((image.shape[0], image.shape[1] + SPARE_COLUMNS), dtype=np.float32)
    with np.errstate(over="ignore"):
        guide[:, : image.shape[1]] = np.clip(image / unit, -LARGEST_VALUE, LARGEST_VALUE)
    return guide


def _patch_means(image: np.ndarray, side: int) -> np.ndarray:
    """Return the mean over the patch that starts at each pixel, (rows - side + 1, columns - side + 1)."""
    if np.all(image == image[0, 0]):
        return np.full((image.shape[0] - side + 1, image.shape[1] - side + 1), image[0, 0])
    return np.lib.stride_tricks.sliding_window_view(image, (side, side)).mean(axis=(2, 3))
