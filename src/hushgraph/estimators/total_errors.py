"""The errors of sums of an estimate over regions, for any method.

Let y = f + noise, Sigma the covariance of the noise (diagonal), f^ the estimate, J its Jacobian, and a the indicator of a region. The sum
of the noisy values has the variance V = a'Sigma a. With G = a'J Sigma a, Stein's lemma gives for the sum of the estimate

    H = E(a'f^ - a'f)^2 = E(a'f^ - a'y)^2 - V + 2 G,

and S = a'y + u a'(f^ - y) has the error (1 - u)^2 V + 2 u (1 - u) G + u^2 H, least at u = (V - G) / (V - 2 G + H). For the mean of a
posterior H = G and u = 1. What H exceeds G by is the squared bias that the estimate could have avoided; it grows fastest with the region.

For one region, (a'f^ - a'y)^2 has one degree of freedom, so both are fitted to many blocks of nodes, in partitions of several sizes:

- G is measured by denoising again. The noise is shifted by a random sign in each block; the change of a block's sum along its own sign is
  G, without the noise that independent probes of single nodes would have. It holds for the whole procedure, choices of methods included.
- The model is a Gaussian one: the sum of the signal over a region deviates from what its surroundings say by the variance T, and
  G = V T / (V + T). T = sum_l alpha_l a'K_l a, where K_l holds together nodes of one block of size m_l, with the weights
  tau^2 = sigma^2 sqrt(odds), odds those of the share of noise that is left at the node. Without the root, quiet regions get too small errors.
- H - G = sum_l gamma_l a'K_l a with the weights sigma^2, alpha and gamma not negative.

The model is a covariance: it gives the errors of several regions together, whether they overlap, touch, or are scattered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse

from hushgraph._progress import nth
from hushgraph.graphs import Graph, block_partition

MIN_NODES = 40  # on fewer nodes nothing can be pooled: the noisy sums are all there is
N_SIZES = 6  # sizes of blocks, from 1 to a quarter of the nodes; a denoising for each
NODE_STEP = 0.2  # how far a node is shifted at most, over the standard deviation of its noise
BLOCK_STEP = 0.5  # how far the sum of a block is shifted at most, likewise; more would look like a signal and be kept
# Sizes of the blocks of the model over those of the measurement. With the same blocks, other regions would fit less well.
KERNEL_SIZES = (0.7, 1.4)
LEAST_LEFT, MOST_LEFT = 1e-3, 0.98  # of the variance of the noise: what is left at a node
MODEL_ERROR = 0.1  # relative error of the model, beside that of the measurement
LOG_ALPHA = (-14.0, 12.0)

Denoiser = Callable[[np.ndarray], np.ndarray]


class Shifts(NamedTuple):
    """The changes of an estimate (n,) under shifts of the noise: the block of each node, and G of each block."""

    block: np.ndarray
    agreement: np.ndarray


class Measured(NamedTuple):
    """Numbers of the blocks of one partition: V, G / V, squared residual over V, the mean share of noise that is left, and rows of `Kernel`."""

    noise: np.ndarray
    agreement: np.ndarray
    residual: np.ndarray
    left: np.ndarray
    prior: np.ndarray
    coherent: np.ndarray


def block_sizes(n: int) -> list[int]:
    """Return the sizes of the blocks that errors are pooled over, from 1 to a quarter of n nodes.

    >>> block_sizes(4000)
    [1, 4, 16, 63, 251, 1000]
    """
    return np.unique(np.rint(np.geomspace(1, max(n / 4, 1), N_SIZES)).astype(int)).tolist()


def measured_shifts(
    graph: Graph, values: np.ndarray, estimate: np.ndarray, sigma: np.ndarray, run: Denoiser, seed: int
) -> list[list[Shifts]]:
    """Return, for each signal and size of blocks, what shifts of the noise do to the estimate; `run` denoises values of this shape again.

    All are (n, m), one column per signal. Every column is shifted by signs of its own, so that it can be seen apart if columns are denoised together.
    """
    by_size = []
    sizes = block_sizes(graph.n)
    for k, size in enumerate(sizes):
        block = block_partition(graph, size=size)
        signs = np.random.default_rng([seed, k]).choice([-1.0, 1.0], size=(int(block.max()) + 1, values.shape[1]))
        step = min(NODE_STEP, BLOCK_STEP / np.sqrt(size))
        level = np.sqrt(np.mean(sigma**2, axis=0))
        with nth(k, len(sizes)):
            moved = run(values + step * sigma**2 / level * signs[block])
        change = (moved - estimate) / step * level  # J Sigma times the signs
        by_size.append([Shifts(block, signs[:, j] * np.bincount(block, change[:, j])) for j in range(values.shape[1])])
    return [list(column) for column in zip(*by_size, strict=True)]


class Kernel:
    """Products with the K_l of the model: nodes of one block belong together, with a weight per node."""

    def __init__(self, graph: Graph) -> None:
        self.levels = [
            [
                _membership(block_partition(graph, size=max(round(size * share), 1)))
                for share in (KERNEL_SIZES if size > 1 else (1.0,))
            ]
            for size in block_sizes(graph.n)
        ]

    def rows(self, regions: sparse.csr_array, weights: np.ndarray) -> list[sparse.csr_array]:
        """Return, for each l, rows whose products are a'K_l b of each two regions a and b."""
        weighted = regions @ sparse.diags_array(weights)
        return [
            sparse.csr_array(
                sparse.hstack([(weighted @ part) * np.sqrt(part.shape[1] / (part.shape[0] * len(level))) for part in level])
            )
            for level in self.levels
        ]

    def squares(self, regions: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
        """Return a'K_l a, shape (levels, regions)."""
        return np.stack([_row_squares(rows) for rows in self.rows(regions, weights)])


def _membership(block: np.ndarray) -> sparse.csr_array:
    """Return the matrix (nodes, blocks) that says which node is in which block."""
    n = len(block)
    return sparse.csr_array((np.ones(n), np.asarray(block), np.arange(n + 1)), shape=(n, int(block.max()) + 1))


def _row_squares(rows: sparse.csr_array) -> np.ndarray:
    return np.asarray(rows.power(2).sum(axis=1)).ravel()


class Mixture(NamedTuple):
    """How noisy and denoised sums of regions are mixed, and the errors: `factor` times its transpose is their covariance."""

    share: np.ndarray  # u
    factor: sparse.csr_array


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """The fitted model of one signal on a graph.

    Parameters
    ----------
    graph : Graph
        The graph of the nodes with a value.
    sigma : (n,) array
        Standard deviation of the noise.
    tau : (n,) array
        Root of the prior variance of each node, up to alpha.
    alpha, gamma : (levels,) arrays
        The weights of the K_l in T, and in H - G.
    largest_noise : float
        V of the largest block that was measured.
    """

    graph: Graph
    sigma: np.ndarray
    tau: np.ndarray
    alpha: np.ndarray
    gamma: np.ndarray
    largest_noise: float

    @classmethod
    def fitted(cls, graph: Graph, residual: np.ndarray, sigma: np.ndarray, error: np.ndarray, shifts: list[Shifts]) -> ErrorModel:
        """Return the model of an estimate, from its residual f^ - y, the expected error of each node, and what shifts did to it."""
        left = np.clip((error / sigma) ** 2, LEAST_LEFT, MOST_LEFT)
        tau = sigma * (left / (1 - left)) ** 0.25
        kernel = Kernel(graph)
        rungs = []
        for block, agreement in shifts:
            regions = sparse.csr_array(_membership(block).T)
            noise, size = regions @ sigma**2, np.bincount(block)
            prior, coherent = kernel.squares(regions, tau), kernel.squares(regions, sigma)
            rungs.append(
                Measured(noise, agreement / noise, (regions @ residual) ** 2 / noise, regions @ left / size, prior, coherent)
            )
        alpha = _fitted_alpha(rungs)
        return cls(graph, sigma, tau, alpha, _fitted_gamma(rungs, alpha), max(float(rung.noise.max()) for rung in rungs))

    def mixture(self, regions: sparse.csr_array, moved: np.ndarray) -> Mixture:
        """Return how the sums over regions, rows of indicators (regions, n), are mixed, and their errors.

        `moved` is the denoised sum of each region less the noisy one. Where it is 0, as it is on a whole map if the estimate keeps the mean, and in
        regions larger than any block that was measured, the noisy sum is taken as it is, with its error.
        """
        kernel = Kernel(self.graph)
        noise = sparse.csr_array(regions @ sparse.diags_array(self.sigma))
        prior = sparse.hstack([np.sqrt(w) * part for w, part in zip(self.alpha, kernel.rows(regions, self.tau), strict=True)])
        bias = sparse.hstack([np.sqrt(w) * part for w, part in zip(self.gamma, kernel.rows(regions, self.sigma), strict=True)])
        V, T, excess = (_row_squares(sparse.csr_array(part)) for part in (noise, prior, bias))
        kept = np.divide(T, V + T, out=np.zeros_like(V), where=V > 0)  # G / V
        gap = V * (1 - kept)
        share = np.divide(gap, gap + excess, out=np.zeros_like(V), where=gap + excess > 1e-9 * V)
        share[(np.abs(moved) <= 1e-6 * np.sqrt(V)) | (self.largest_noise < V)] = 0.0
        # the error of S is (1 - u + u G / V) noise - u (1 - G / V) deviation + u bias, three independent parts
        parts = ((1 - share + share * kept, noise), (share * (1 - kept), prior), (share, bias))
        return Mixture(share, sparse.csr_array(sparse.hstack([sparse.diags_array(scale) @ part for scale, part in parts])))


def only_noise(sigma: np.ndarray, regions: sparse.csr_array) -> Mixture:
    """Return the mixture that takes the noisy sums as they are."""
    return Mixture(np.zeros(regions.shape[0]), sparse.csr_array(regions @ sparse.diags_array(sigma)))


def _kept(alpha: np.ndarray, rung: Measured) -> np.ndarray:
    """Return G / V of the model for the blocks of one partition."""
    T = alpha @ rung.prior
    return T / (rung.noise + T)


def _fitted_alpha(rungs: list[Measured]) -> np.ndarray:
    """Return the weights of least squares between the mean G / V of quiet, middling and busy blocks of each size and the model."""
    groups = [np.array_split(np.argsort(rung.left), 3 if len(rung.left) >= 12 else 1) for rung in rungs]
    parts = [rung.agreement[part] for rung, split in zip(rungs, groups, strict=True) for part in split]
    goal, se = (
        np.array(numbers) for numbers in ([part.mean() for part in parts], [part.std() / np.sqrt(len(part)) for part in parts])
    )
    scale = np.sqrt(se**2 + (MODEL_ERROR * goal) ** 2 + 1e-3**2)

    def misfit(log_alpha: np.ndarray) -> np.ndarray:
        kept = [_kept(np.exp(log_alpha), rung) for rung in rungs]
        model = np.array([one[part].mean() for one, split in zip(kept, groups, strict=True) for part in split])
        return np.append((model - goal) / scale, 0.02 * (log_alpha + 3))  # the second part keeps weights that do not matter finite

    start = np.full(len(rungs[0].prior), -1.0)
    return np.exp(optimize.least_squares(misfit, start, bounds=LOG_ALPHA).x)


def _fitted_gamma(rungs: list[Measured], alpha: np.ndarray) -> np.ndarray:
    """Return the weights, not negative, of least squares between the mean (H - G) / V of blocks of each size and the model."""
    gaps = [1 - _kept(alpha, rung) for rung in rungs]
    # below 0 the model of G is too large; that says nothing about larger blocks
    excess = np.array([max(np.mean(rung.residual - gap), 0.0) for rung, gap in zip(rungs, gaps, strict=True)])
    scale = np.array(
        [np.sqrt(2 / len(gap)) * max(np.mean(rung.residual), np.mean(gap), 0.05) for rung, gap in zip(rungs, gaps, strict=True)]
    )  # a squared residual has one degree of freedom
    features = np.stack([(rung.coherent / rung.noise).mean(axis=1) for rung in rungs])
    return optimize.nnls(features / scale[:, None], excess / scale)[0]
