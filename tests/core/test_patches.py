"""The loops over patches equal the same computations in NumPy, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.fft import dctn, idctn

from hushgraph.core import _loops, use_threads

STEP, RADIUS, THRESHOLD = 3, 8, 2.0
HAAR = np.array([[1.0]])
while len(HAAR) < 16:
    HAAR = np.concatenate([np.kron(HAAR, [1, 1]), np.kron(np.eye(len(HAAR)), [1, -1])]) / np.sqrt(2)


def image(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    row, column = np.indices((rows, columns))
    return 4.0 * ((row + 2 * column) % 7 < 3) + 0.1 * row + rng.normal(size=(rows, columns))


def guide_of(x):
    return np.pad(x, ((0, 0), (0, 8))).astype(np.float32)


def places(length, side):
    return [*range(0, length - side, STEP), length - side]


def similar(guide, side, count, row, column):
    """Corners of the nearest patches, the nearest first; rows outwards from the reference, as the loops go."""
    rows, columns = guide.shape[0] - side, guide.shape[1] - 8 - side
    own, found = guide[row : row + side, column : column + side], []
    for k in range(2 * RADIUS + 1):
        r = row + (k + 1) // 2 if k % 2 else row - k // 2
        for c in range(max(0, column - RADIUS), min(columns, column + RADIUS) + 1):
            if 0 <= r <= rows and abs(r - row) <= RADIUS:
                found.append((float(np.sum((guide[r : r + side, c : c + side] - own) ** 2, dtype=np.float64)), len(found), r, c))
    found = [(-1.0 if (r, c) == (row, column) else distance, k, r, c) for distance, k, r, c in found]  # the reference comes first
    return [(r, c) for _, _, r, c in sorted(found)[:count]]


def aggregated(noisy, guide, side, count, filtered, window):
    total, weights = np.zeros((2, *noisy.shape))
    for row in places(noisy.shape[0], side):
        for column in places(noisy.shape[1], side):
            corners = similar(guide, side, count, row, column)
            estimates, weight = filtered(corners)
            for (r, c), estimate in zip(corners, estimates, strict=True):
                total[r : r + side, c : c + side] += weight * window * estimate
                weights[r : r + side, c : c + side] += weight * window
    return total / weights


def group(x, corners, side):
    return np.stack([x[r : r + side, c : c + side] for r, c in corners])


def gaussian(noisy, variances):
    def filtered(corners):
        x = group(noisy, corners, 5).reshape(64, 25)
        variance = np.mean([variances[corner] for corner in corners])
        covariance = np.cov(x.T) + 1e-6 * variance * np.eye(25)
        rest = variance * np.linalg.solve(covariance, (x - x.mean(axis=0)).T).T
        return (x - rest).reshape(64, 5, 5), 1.0

    return aggregated(noisy, guide_of(noisy), 5, 64, filtered, np.ones((5, 5)))


def spectral(noisy, pilot, variances):
    def transformed(x, corners):
        return np.tensordot(HAAR, dctn(group(x, corners, 8), axes=(1, 2), norm="ortho"), axes=1)

    def filtered(corners):
        variance = np.mean([variances[corner] for corner in corners])
        x = transformed(noisy, corners)
        if pilot is None:
            gain = 1.0 * (np.abs(x) >= THRESHOLD * np.sqrt(variance))
        else:
            square = transformed(pilot, corners) ** 2
            gain = square / (square + variance)
        back = idctn(np.tensordot(HAAR.T, gain * x, axes=1), axes=(1, 2), norm="ortho")
        return back, 1 / (variance * max(np.sum(gain**2), 1.0))

    window = np.outer(np.kaiser(8, 2.0), np.kaiser(8, 2.0))
    return aggregated(noisy, guide_of(noisy if pilot is None else pilot), 8, 16, filtered, window)


@pytest.mark.parametrize("shape", [(16, 16), (19, 33), (41, 18)])
def test_gaussian_models_as_in_numpy(shape):
    noisy, out = image(*shape), np.empty(shape)
    variances = 0.5 + np.random.default_rng(1).random(shape)
    _loops.gaussian_patches(noisy, guide_of(noisy), variances, STEP, RADIUS, out)
    np.testing.assert_allclose(out, gaussian(noisy, variances), rtol=0, atol=1e-9)


@pytest.mark.parametrize("has_pilot", [False, True])
@pytest.mark.parametrize("shape", [(16, 16), (19, 33), (41, 18)])
def test_transforms_of_groups_as_in_numpy(shape, has_pilot):
    noisy, out = image(*shape), np.empty(shape)
    pilot = noisy + 0.1 * image(*shape, seed=2) if has_pilot else None
    variances = 0.5 + np.random.default_rng(1).random(shape)
    _loops.spectral_patches(noisy, pilot, guide_of(pilot if has_pilot else noisy), variances, THRESHOLD, STEP, RADIUS, out)
    np.testing.assert_allclose(out, spectral(noisy, pilot, variances), rtol=0, atol=1e-9)


def test_equal_patches_leave_no_pixel_out():
    noisy, out = np.full((20, 37), 2.5), np.empty((20, 37))
    _loops.spectral_patches(noisy, None, guide_of(noisy), np.ones(noisy.shape), THRESHOLD, STEP, 19, out)
    np.testing.assert_allclose(out, 2.5)
    _loops.gaussian_patches(noisy, guide_of(noisy), np.ones(noisy.shape), STEP, 14, out)
    np.testing.assert_allclose(out, 2.5)


def test_bits_do_not_depend_on_threads():
    noisy, results = image(70, 90), []
    for threads in (1, 2, 5):
        out = np.empty((2, 70, 90))
        with use_threads(threads):
            _loops.gaussian_patches(noisy, guide_of(noisy), np.ones(noisy.shape), 4, 14, out[0])
            _loops.spectral_patches(noisy, out[0], guide_of(out[0]), np.ones(noisy.shape), 0.0, 4, 19, out[1])
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
