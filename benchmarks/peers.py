"""The peers of `signals.py`: other ways to denoise a signal on a graph, each at its best.

A peer whose name ends with a star has its parameters tuned on the truth. No user has the truth: it shows what the approach could reach.

Linear filters work on the coefficients z = U'y of the eigenvectors U of L, with eigenvalues x. All take the standard deviation of the noise as known.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse
from scipy.sparse import linalg

import hushgraph as hg


class Fit(NamedTuple):
    """A fitted filter: its values at the eigenvalues, its parameters, and the criterion that they minimise."""

    gain: np.ndarray
    parameters: dict[str, float]
    criterion: float


# ---- a Gaussian process ------------------------------------------------------------------------------------------------


def _matern_likelihood(logs, x, z2, sigma2):
    """Twice the negative log likelihood of coefficients with variance s (1 + x/k)^-nu + sigma2, and its gradient in the logarithms of s, k and nu."""
    s, k, nu = np.exp(logs)
    bend = np.log1p(x / k)
    signal = s * np.exp(-nu * bend)
    total = signal + sigma2
    slope = signal / total * (1 - z2 / total)
    gradient = np.array([slope.sum(), (slope * nu * x / (k + x)).sum(), -(slope * nu * bend).sum()])
    return np.sum(np.log(total) + z2 / total), gradient


def matern_process(x: np.ndarray, z: np.ndarray, sigma: float) -> Fit:
    """Fit a Gaussian process with the covariance a (kappa^2 + L)^-nu by maximum marginal likelihood, from many starts.

    a, kappa and nu have wide bounds; at large nu the covariance is that of a heat kernel. The estimate is the posterior mean.
    """
    sigma2, z2 = sigma**2, z**2
    energy = max(np.sum(z2) - len(x) * sigma2, sigma2)
    bounds = [(np.log(1e-6 * sigma2), np.log(1e4 * energy)), (np.log(1e-6), np.log(1e4)), (np.log(0.05), np.log(1e4))]
    best = None
    for k, nu in itertools.product((1e-3, 1e-2, 0.1, 1.0), (0.7, 2.0, 6.0, 30.0)):
        share = (1 + x / k) ** -nu
        start = np.log([max(energy / share.sum(), 1e-5 * sigma2), k, nu])
        found = optimize.minimize(_matern_likelihood, start, (x, z2, sigma2), jac=True, method="L-BFGS-B", bounds=bounds)
        best = found if best is None or found.fun < best.fun else best
    s, k, nu = np.exp(best.x)
    signal = s * np.exp(-nu * np.log1p(x / k))
    return Fit(signal / (signal + sigma2), {"s": s, "kappa2": k, "nu": nu}, float(best.fun))


# ---- linear filters at the least SURE ----------------------------------------------------------------------------------


def exact_sure(gain: np.ndarray, z2: np.ndarray, sigma: float) -> np.ndarray:
    """SURE of linear filters: ||h(L) y - y||^2 - n sigma^2 + 2 sigma^2 tr h(L), from the values of h at the eigenvalues."""
    return (1 - gain) ** 2 @ z2 - len(z2) * sigma**2 + 2 * sigma**2 * gain.sum(axis=-1)


def true_error(gain: np.ndarray, z: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Squared error of linear filters."""
    return np.sum((gain * z - truth) ** 2, axis=-1)


def tikhonov(x: np.ndarray, z: np.ndarray, sigma: float, truth: np.ndarray | None = None) -> Fit:
    """Return (I + a L)^-1 with `a` at the least exact SURE, or with the coefficients `truth` at the least true error."""

    def gain(log_a):
        return 1 / (1 + np.exp(np.asarray(log_a)[..., None]) * x)

    def criterion(log_a):
        return exact_sure(gain(log_a), z**2, sigma) if truth is None else true_error(gain(log_a), z, truth)

    coarse = np.linspace(np.log(1e-4), np.log(1e6), 93)
    middle = np.argmin(criterion(coarse))
    fine = np.linspace(coarse[max(middle - 1, 0)], coarse[min(middle + 1, 92)], 41)
    best = fine[np.argmin(criterion(fine))]
    return Fit(gain(best), {"a": float(np.exp(best))}, float(criterion(best)))


def _wiener(logs, x, sigma):
    """Values of the Matern-Wiener filter 1 / (1 + (sigma^2 / s)(1 + x/k)^nu)."""
    k, nu = np.exp(logs[1:])
    return 1 / (1 + np.exp(np.minimum(2 * np.log(sigma) - logs[0] + nu * np.log1p(x / k), 700.0)))


def _butterworth(logs, x, sigma):
    """Values of the Butterworth filter 1 / (1 + (x/tau)^q)."""
    tau, q = np.exp(logs)
    return 1 / (1 + np.exp(np.clip(q * np.log(np.maximum(x, 1e-300) / tau), -700.0, 700.0)))


def sure_filter(x: np.ndarray, z: np.ndarray, sigma: float) -> Fit:
    """Return one filter of the families Matern-Wiener and Butterworth, at the least exact SURE.

    It is what a product without eigenvectors should reach. The start is the best of a grid, then the simplex of Nelder and Mead.
    """
    z2, best = z**2, None
    energy = max(np.sum(z2) - len(x) * sigma**2, sigma**2)
    wide = [
        np.log([max(energy / ((1 + x / k) ** -nu).sum() * share, 1e-4 * sigma**2), k, nu])
        for k in (1e-3, 1e-2, 0.1, 1.0)
        for nu in (0.7, 2.0, 6.0, 30.0)
        for share in (0.1, 1.0)
    ]
    taus = np.quantile(x[x > 1e-9], [0.001, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8])
    steep = [np.log([tau, q]) for tau in taus for q in (1.0, 3.0, 8.0, 30.0)]
    for name, family, starts in (("Matern-Wiener", _wiener, wide), ("Butterworth", _butterworth, steep)):

        def criterion(logs, family=family):
            return float(exact_sure(family(np.clip(logs, -25, 25), x, sigma), z2, sigma))

        for start in sorted(starts, key=criterion)[:4]:
            found = optimize.minimize(
                criterion, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-3 * sigma**2, "maxiter": 400}
            )
            if best is None or found.fun < best.criterion:
                logs = np.clip(found.x, -25, 25)
                parameters = dict(zip(("s", "kappa2", "nu") if len(logs) == 3 else ("tau", "q"), np.exp(logs), strict=True))
                best = Fit(family(logs, x, sigma), {name: 1.0, **parameters}, found.fun)
    return best


# ---- penalties ---------------------------------------------------------------------------------------------------------


def total_variation(graph: hg.Graph, y: np.ndarray, sigma: float, truth: np.ndarray | None = None) -> np.ndarray:
    """Return total variation on the graph with the penalty at the least SURE, or with `truth` at the least true error."""
    if truth is None:
        return hg.graph_tv(graph, y, sigma=sigma, penalty="sure").signal
    return hg.graph_tv(graph, y, truth=truth, penalty="oracle").signal


def trend_filter(laplacian: sparse.csr_array, y: np.ndarray, penalty: float, *, start=None, steps: int = 300, close: float = 1e-4):
    """Return the minimiser of 1/2 ||x - y||^2 + penalty ||L x||_1 for the columns of y by ADMM, and its dual variables for a warm start.

    Graph trend filtering of order 1 (Wang, Sharpnack, Smola and Tibshirani 2016): the result is nearly linear along the edges, with few kinks.
    """
    rho = penalty
    solve = linalg.splu(sparse.csc_array(sparse.eye_array(len(y)) + rho * laplacian @ laplacian)).solve
    x = y
    kinks, scaled = (laplacian @ y, np.zeros_like(y)) if start is None else (start[0], start[1] / rho)
    for _ in range(steps):
        x = solve(y + rho * (laplacian @ (kinks - scaled)))
        bent = laplacian @ x
        previous, shifted = kinks, bent + scaled
        kinks = np.sign(shifted) * np.maximum(np.abs(shifted) - penalty / rho, 0.0)
        scaled = shifted - kinks
        size = max(np.linalg.norm(bent), np.linalg.norm(kinks), 1e-12)
        if np.linalg.norm(bent - kinks) < close * size and np.linalg.norm(kinks - previous) < close * size:
            break
    return x, (kinks, scaled * rho)


def tuned_trend_filters(laplacian, noisy: np.ndarray, clean: np.ndarray, sigma: float) -> np.ndarray:
    """Return trend filtering of the columns of `noisy`, each with the penalty of the least true error among 14."""
    best, least, start = noisy.copy(), np.sum((noisy - clean) ** 2, axis=0), None
    for penalty in sigma * np.geomspace(0.05, 300, 14):
        x, start = trend_filter(laplacian, noisy, penalty, start=start)
        error = np.sum((x - clean) ** 2, axis=0)
        better = error < least
        best[:, better], least = x[:, better], np.minimum(error, least)
    return best


# ---- images ------------------------------------------------------------------------------------------------------------


def tuned_non_local_means(noisy: np.ndarray, clean: np.ndarray, sigma: float, *, reach: int = 10) -> np.ndarray:
    """Return non-local means of an image with the patch and the bandwidth of the least true error."""
    from skimage.restoration import denoise_nl_means

    tries = (
        denoise_nl_means(noisy, patch_size=size, patch_distance=reach, h=factor * sigma, sigma=sigma, fast_mode=True)
        for size, factor in itertools.product((3, 5, 7), (0.3, 0.5, 0.7, 0.9, 1.2))
    )
    return min(tries, key=lambda estimate: np.sum((estimate - clean) ** 2))


def block_matching(noisy: np.ndarray, sigma: float) -> np.ndarray:
    """Return BM3D of an image, with the settings of its authors."""
    import bm3d

    return bm3d.bm3d(noisy, sigma)


def spun_wavelets(noisy: np.ndarray, sigma: float, *, shifts: int = 8) -> np.ndarray:
    """Return wavelet shrinkage of an image (BayesShrink) averaged over shifts: translation-invariant wavelets."""
    from skimage.restoration import cycle_spin, denoise_wavelet

    options = {"sigma": sigma, "wavelet": "db2", "rescale_sigma": True}
    return cycle_spin(noisy, func=denoise_wavelet, max_shifts=shifts - 1, func_kw=options, num_workers=1)
