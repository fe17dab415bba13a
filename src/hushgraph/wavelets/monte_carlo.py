"""Random probes, and the weights of SURE that they estimate (paper, Sec. III-B).

The weights are gamma^2_ij, the diagonal of W W'. The mean of (W eps)^2 over probes eps estimates them without bias. The signs of a
probe are a hash of (seed, node number, probe), so they depend neither on threads nor on partitions.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hushgraph._arrays import namespace, on_device, placed_like
from hushgraph._errors import InputError
from hushgraph._extras import extra
from hushgraph._validation import checked_count, checked_seed, checked_sigma, choose, span
from hushgraph.core import gpu
from hushgraph.wavelets.frame import ExactFrame, Frame
from hushgraph.wavelets.transform import checked_frame, forward
from hushgraph.wavelets.weight_smoothing import checked_weight_size

Law = Literal["rademacher", "gaussian"]
Domain = Literal["coefficients", "signal"]
ENOUGH = 2**18  # nodes times probes for which SURE is accurate to about 1 %: it averages over nodes
MAX_PROBES = 64
GROUP = 8  # probes transformed at a time


# ---- probes and weights -----------------------------------------------------------------------------------------


def default_probes(n: int) -> int:
    """Return the default number of probes for a graph of n nodes: at most 64, one from 262,144 nodes on.

    Parameters
    ----------
    n : int
        Number of nodes.

    Returns
    -------
    int
        Number of probes.

    Examples
    --------
    >>> [default_probes(n) for n in (100, 4607, 100_000, 1_000_000)]
    [64, 57, 3, 1]
    """
    return int(np.clip(-(-ENOUGH // max(n, 1)), 1, MAX_PROBES))


def probes(
    n: int, n_probes: int, *, law: Law = "rademacher", seed: int = 0, like: Any = None, nodes: npt.ArrayLike | None = None
) -> np.ndarray:
    """Return random signals, (n_probes, n); each value is a function of (seed, node, probe) alone, on every machine.

    If `like` is an array on a GPU, the probes are made there, in its dtype. `nodes` are n node numbers, if they are not 0..n-1.
    """
    choose("law", law, get_args(Law))
    n_probes, seed = checked_count("n_probes", n_probes, 1), checked_seed(seed)
    with np.errstate(over="ignore"):
        key = scramble(np.uint64(seed)) + scramble(np.arange(n_probes, dtype=np.uint64) + np.uint64(0x632BE59BD9B4E019))
        if on_device(like) and law == "rademacher" and nodes is None:
            return gpu.signs(key, n, like.dtype)
        numbers = namespace(like).arange(n, dtype=np.uint64) if nodes is None else np.asarray(nodes).astype(np.uint64)
        bits = scramble(scramble(numbers + np.uint64(1)) ^ placed_like(key[:, None], numbers))
    if law == "rademacher":
        values = 1.0 - 2.0 * (bits >> np.uint64(63))
    elif on_device(bits):
        values = extra("cupyx.scipy.special", name="cuda", purpose="computing on a GPU").ndtri(
            ((bits >> np.uint64(11)) + 0.5) * 2.0**-53
        )
    else:
        values = ndtri(((bits >> np.uint64(11)) + 0.5) * 2.0**-53)
    return values.astype(like.dtype, copy=False) if on_device(like) else values


def scramble(x: Any) -> Any:
    """Return the finaliser of splitmix64: every output bit depends on every input bit."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def monte_carlo_weights(
    frame: Frame,
    *,
    n_probes: int | None = None,
    law: Law = "rademacher",
    seed: int = 0,
    sigma: npt.ArrayLike | None = None,
    domain: Domain = "coefficients",
    like: Any = None,
) -> np.ndarray:
    """Return an unbiased estimate of diag(W W'), the weights of SURE, from transforms of random signals.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame W.
    n_probes : int, optional
        Number N of random signals; `default_probes` of the number of nodes by default.
    law : {"rademacher", "gaussian"}
        Law of the random signals.
    seed : int
        Seed of the random signals.
    sigma : array_like, shape (n,), optional
        Standard deviation per node; the weights then hold sigma_i^2, and SURE is called with sigma=1.
    domain : {"coefficients", "signal"}
        Differs for the random-walk Laplacian only: signal-domain SURE needs diag(W S) there, S being `synthesize`.
    like : cupy.ndarray, optional
        A CuPy array: the weights are computed on its GPU and stay there.

    Returns
    -------
    numpy.ndarray
        Weights, shape (n_scales, n).
    """
    count = default_probes(checked_frame(frame).graph.n) if n_probes is None else n_probes
    eps = probes(frame.graph.n, count, law=law, seed=seed, like=like)
    if sigma is not None:
        eps *= placed_like(checked_sigma(sigma, frame.graph.n), eps)
    return mean_weights(frame, eps, domain=domain)


def mean_weights(frame: Frame, eps: np.ndarray, *, domain: Domain) -> np.ndarray:
    """Return weights from any number of probes, GROUP at a time: memory does not grow with their number."""
    groups = [eps[start : start + GROUP] for start in range(0, len(eps), GROUP)]
    parts = (len(group) / len(eps) * weights_of(frame, group, forward(frame, group), domain=domain) for group in groups)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def weights_of(frame: Frame, eps: np.ndarray, bands: np.ndarray, *, domain: Domain) -> np.ndarray:
    """Return weights from probes and their transforms `bands`."""
    if choose("domain", domain, get_args(Domain)) == "signal" and frame.laplacian == "random_walk":
        return np.mean(bands * forward(frame, eps, transposed=True), axis=0)
    return np.square(bands[0]) if len(bands) == 1 else np.mean(np.square(bands), axis=0)


def exact_weights(frame: Frame, *, sigma: npt.ArrayLike | None = None, domain: Domain = "coefficients") -> np.ndarray:
    """Return diag(W W') itself; n^2 work per scale and more, so for small graphs.

    Parameters
    ----------
    frame : ChebyshevFrame or ExactFrame
        The frame W.
    sigma : array_like, shape (n,), optional
        Standard deviation per node; the weights then hold sigma_i^2, and SURE is called with sigma=1.
    domain : {"coefficients", "signal"}
        As in `monte_carlo_weights`.

    Returns
    -------
    numpy.ndarray
        Weights, shape (n_scales, n).
    """
    checked_frame(frame)
    choose("domain", domain, get_args(Domain))
    if sigma is None and isinstance(frame, ExactFrame) and (frame.laplacian != "random_walk" or domain == "signal"):
        return frame.filters(frame.eigenvalues) ** 2 @ (frame.eigenvectors**2).T
    variances = np.broadcast_to(1.0 if sigma is None else np.square(checked_sigma(sigma, frame.graph.n)), frame.graph.n)
    weights = np.zeros((frame.n_scales, frame.graph.n))
    for start in range(0, frame.graph.n, 64):
        nodes = np.arange(start, min(start + 64, frame.graph.n))
        units = np.zeros((len(nodes), frame.graph.n))
        units[np.arange(len(nodes)), nodes] = 1
        columns = forward(frame, units)
        other = forward(frame, units, transposed=True) if domain == "signal" and frame.laplacian == "random_walk" else columns
        weights += np.einsum("pji,pji,p->ji", columns, other, variances[nodes])
    return weights


def checked_coefficient_weights(weights: np.ndarray) -> np.ndarray:
    """Return finite weights of at least 0, as those of coefficients are."""
    if span(checked_weight_size(weights))[0] < 0:
        msg = "weights must not be negative: thresholds minimise the coefficients' SURE, so pass weights of domain='coefficients'"
        raise InputError(msg)
    return weights
