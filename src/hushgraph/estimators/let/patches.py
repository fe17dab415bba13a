"""Patches: estimates of an image from squares of pixels elsewhere that look alike. Only for graphs that are lattices.

Groups of similar patches are denoised together, and a pixel becomes the weighted mean of its estimates. There are two columns:

    threshold   16 patches of 8 x 8: coefficients of cosines and Haar wavelets below 2.7 sigma are 0   (Dabov and others 2007)
    wiener      the same coefficients times q^2 / (q^2 + sigma^2), where q are those of a pilot; patches are compared there

The pilot is the mean of `threshold` and of a Gaussian model of groups of 64 patches of 5 x 5, x - sigma^2 C^-1 (x - mean) (Lebrun, Buades
and Morel 2013).

Their derivatives along the probes are finite differences of everything, the search for similar patches too: with the groups held fixed,
the divergence is a tenth too small. The estimates jump where a group changes, so the step DELTA is not small. The signal with DELTA eps
added to it has noise of variance sigma^2 (1 + DELTA^2), and is denoised as such; without that the divergence is too large.
"""

from __future__ import annotations

import numpy as np

from hushgraph._progress import reached
from hushgraph.core import _loops, block_sum
from hushgraph.estimators.let.columns import KnownDerivatives
from hushgraph.estimators.let.observation import Observation
from hushgraph.graphs import Graph, Lattice, lattice_of

LEAST_SIDE = 16  # rows and columns of an image; each group of patches is full then
GAUSSIAN, SPECTRAL = 5, 8  # sides of patches in the compiled loops
STEP = 4  # pixels from one reference patch to the next
GAUSSIAN_RADIUS, SPECTRAL_RADIUS = 14, 19  # pixels around a reference patch that are searched
THRESHOLD = 2.7  # in noise levels
SPARE = 8  # columns to the right of the image that the loops may read
DELTA = 0.1  # step of the differences, in noise levels
NAMES = ("patches",)
JUMPS = 1.0


def takes_patches(graph: Graph) -> bool:
    """Return whether a graph is an image that is large enough for groups of patches."""
    lattice = lattice_of(graph)
    return lattice is not None and min(lattice.shape) >= LEAST_SIDE


def patches(observation: Observation) -> KnownDerivatives:
    """Return the two columns of an image; of other graphs, no columns."""
    eps, lattice = observation.filters.probes.eps, lattice_of(observation.graph)
    if lattice is None or min(lattice.shape) < LEAST_SIDE:
        return KnownDerivatives((), np.empty((0, len(observation.y))), np.empty(0), np.empty((0, *eps.shape)))
    variance = lattice.image(observation.node_variance * observation.noise.variance)
    values = _estimates(lattice, observation.y, variance)
    derivatives, delta = np.empty((len(values), *eps.shape)), DELTA * observation.sigma
    for k, probe in enumerate(eps):
        reached((k + 1) / (len(eps) + 1), "patches")
        moved = _estimates(lattice, observation.y + delta * probe, (1 + DELTA**2) * variance)
        derivatives[:, k] = (moved - values) / delta
    divergence = np.array([[block_sum(e * row) for e, row in zip(eps, rows, strict=True)] for rows in derivatives]).mean(axis=1)
    return KnownDerivatives(NAMES, values, divergence, derivatives, doubt=JUMPS * np.sqrt(len(values[0]) / len(eps)))


def _estimates(lattice: Lattice, y: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return both estimates of a signal, (2, n). `variance` is that of the noise of each pixel."""
    noisy = lattice.image(y)
    unit = float(np.sqrt(variance.mean()))
    guide = _guide(noisy, unit)
    gaussian, threshold, wiener = np.empty((3, *noisy.shape))
    _loops.gaussian_patches(noisy, guide, _patch_means(variance, GAUSSIAN), STEP, GAUSSIAN_RADIUS, gaussian)
    of_patches = _patch_means(variance, SPECTRAL)
    _loops.spectral_patches(noisy, None, guide, of_patches, THRESHOLD, STEP, SPECTRAL_RADIUS, threshold)
    pilot = (gaussian + threshold) / 2
    _loops.spectral_patches(noisy, pilot, _guide(pilot, unit), of_patches, 0.0, STEP, SPECTRAL_RADIUS, wiener)
    return np.stack([lattice.signal(image) for image in (wiener,)])


def _guide(image: np.ndarray, unit: float) -> np.ndarray:
    """Return the image that patches are compared on, in noise levels and single precision."""
    guide = np.zeros((image.shape[0], image.shape[1] + SPARE), dtype=np.float32)
    guide[:, : image.shape[1]] = image / unit
    return guide


def _patch_means(image: np.ndarray, side: int) -> np.ndarray:
    """Return the mean over the patch that starts at each pixel, (rows - side + 1, columns - side + 1)."""
    if np.all(image == image[0, 0]):
        return np.full((image.shape[0] - side + 1, image.shape[1] - side + 1), image[0, 0])
    return np.lib.stride_tricks.sliding_window_view(image, (side, side)).mean(axis=(2, 3))
