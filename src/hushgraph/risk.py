"""Stein's unbiased risk estimate and its weights (paper, Sec. III), with the corrections described in the docs.

SURE(t) = ||h_t(F) - F||^2 - sigma^2 sum(weights) + 2 sigma^2 sum(weights * slope) estimates the risk of the
*coefficients*; weights are diag(W W'), estimated without bias by the mean of (W eps)^2 over probes eps. The risk of the
*signal* has the same divergence for symmetric Laplacians and is smaller:
||fhat - y||^2 - n sigma^2 + 2 sigma^2 divergence.
"""

from __future__ import annotations

import warnings
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.arrays import beside, namespace, on_device
from hushgraph.checks import (
    LARGEST,
    LARGEST_FLOAT32,
    as_array,
    checked_count,
    checked_number,
    checked_real_array,
    checked_seed,
    checked_sigma,
    choose,
    refuse_device,
    span,
)
from hushgraph.contents import extra
from hushgraph.frame import ExactFrame, Frame, chebyshev_frame
from hushgraph.graph import Graph, checked_graph
from hushgraph.kernels import gpu
from hushgraph.local_noise import checked_weight_size, smooth_weights
from hushgraph.shrink import Rule, checked_thresholds, shrink, sure_exponent
from hushgraph.sums import block_sum, offsets_of, shifted
from hushgraph.transform import checked_coefficient_size, checked_coefficients, checked_frame, checked_frame_of, forward, inverse

Law = Literal["rademacher", "gaussian"]
Domain = Literal["coefficients", "signal"]
FALSE_ALARM = 1e-6  # of `is_below_noise`, for one signal
MARGIN = 2.0  # standard errors above a scale's reading of sigma that are taken for an upper bound
ENOUGH = 2**18  # nodes times probes from which SURE is accurate to about 1 %: it averages over nodes
MAX_PROBES = 64
GROUP = 8  # probes transformed at a time
DENSE_BELOW = 2000


# ---- probes and weights -----------------------------------------------------------------------------------------


def default_probes(n: int) -> int:
    """Number of probes for a graph of n nodes: one from 262,144 nodes on, at most 64.

    >>> [default_probes(n) for n in (100, 4607, 100_000, 1_000_000)]
    [64, 57, 3, 1]
    """
    return int(np.clip(-(-ENOUGH // max(n, 1)), 1, MAX_PROBES))


def probes(n: int, n_probes: int, *, law: Law = "rademacher", seed: int = 0, like=None, nodes=None) -> np.ndarray:
    """Random signals, (n_probes, n): each value is a function of (seed, node, probe) alone, whatever the machine.

    With `like` an array on a GPU they are made there, in its dtype. `nodes` are n node numbers, where they are not 0..n-1.
    """
    choose("law", law, get_args(Law))
    n_probes, seed = checked_count("n_probes", n_probes, 1), checked_seed(seed)
    with np.errstate(over="ignore"):
        key = scramble(np.uint64(seed)) + scramble(np.arange(n_probes, dtype=np.uint64) + np.uint64(0x632BE59BD9B4E019))
        if on_device(like) and law == "rademacher" and nodes is None:
            return gpu.signs(key, n, like.dtype)
        nodes = namespace(like).arange(n, dtype=np.uint64) if nodes is None else np.asarray(nodes).astype(np.uint64)
        bits = scramble(scramble(nodes + np.uint64(1)) ^ beside(key[:, None], nodes))
    if law == "rademacher":
        values = 1.0 - 2.0 * (bits >> np.uint64(63))
    elif on_device(bits):
        values = extra("cupyx.scipy.special", name="cuda", purpose="computing on a GPU").ndtri(
            ((bits >> np.uint64(11)) + 0.5) * 2.0**-53
        )
    else:
        values = ndtri(((bits >> np.uint64(11)) + 0.5) * 2.0**-53)
    return values.astype(like.dtype, copy=False) if on_device(like) else values


def scramble(x):
    """The finaliser of splitmix64: every output bit depends on every input bit."""
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
    sigma=None,
    domain: Domain = "coefficients",
    like=None,
) -> np.ndarray:
    """Unbiased estimate of diag(W W'), shape (n_scales, n), from transforms of random signals.

    Parameters
    ----------
    n_probes : int, optional
        N; the default is chosen from n (`default_probes`).
    sigma : (n,) array, optional
        Standard deviation per node; the weights then take sigma_i^2, and SURE is called with sigma=1.
    domain : {"coefficients", "signal"}
        Differs for the random-walk Laplacian only: signal-domain SURE needs diag(W S) there, S being `synthesize`.
    like : array, optional
        A CuPy array: the weights are worked out on its GPU, and stay there.
    """
    count = default_probes(checked_frame(frame).graph.n) if n_probes is None else n_probes
    eps = probes(frame.graph.n, count, law=law, seed=seed, like=like)
    if sigma is not None:
        eps *= beside(checked_sigma(sigma, frame.graph.n), eps)
    return mean_weights(frame, eps, domain=domain)


def mean_weights(frame: Frame, eps: np.ndarray, *, domain: Domain) -> np.ndarray:
    """Weights from any number of probes, GROUP at a time: memory does not grow with their number."""
    groups = [eps[start : start + GROUP] for start in range(0, len(eps), GROUP)]
    parts = (len(group) / len(eps) * weights_of(frame, group, forward(frame, group), domain=domain) for group in groups)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def weights_of(frame: Frame, eps: np.ndarray, bands: np.ndarray, *, domain: Domain) -> np.ndarray:
    """Weights from probes and their transforms `bands`."""
    if choose("domain", domain, get_args(Domain)) == "signal" and frame.laplacian == "random_walk":
        return np.mean(bands * forward(frame, eps, transposed=True), axis=0)
    return np.square(bands[0]) if len(bands) == 1 else np.mean(np.square(bands), axis=0)


def exact_weights(frame: Frame, *, sigma=None, domain: Domain = "coefficients") -> np.ndarray:
    """diag(W W') itself, shape (n_scales, n); n^2 work per scale and more, so for small graphs."""
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


# ---- SURE -------------------------------------------------------------------------------------------------------


def sure(F, t, *, weights, sigma: float, rule: Rule = "james_stein", beta: float | None = None, scaled=False):
    """SURE of the coefficients thresholded at t: a float, or one value per signal for F of shape (n_scales, n, m).

    Parameters
    ----------
    F : (n_scales, n) or (n_scales, n, m)
    t : float, (n_scales,) or (n_scales, m)
    weights : (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    scaled : bool or (n_scales, n) array
        True: thresholds are t sqrt(weights); an array: t times it.
    """
    sure_exponent(rule, beta)
    F, weights = checked_pair(F, weights)
    variance = checked_sigma(sigma) ** 2
    value, slope = shrink(F, threshold_field(F, t, threshold_scale(weights, scaled)), rule=rule, beta=beta)
    wide = weights if F.ndim == 2 else weights[:, :, None]
    terms = np.square(value - F, dtype=np.float64) + variance * wide * (2 * slope - 1)
    result = sum(block_sum(terms[j]) for j in range(len(F)))
    return float(result) if F.ndim == 2 else result


def sure_variance(
    frame: Frame,
    F,
    t,
    *,
    sigma: float,
    n_probes: int,
    law: Law = "rademacher",
    rule: Rule = "james_stein",
    beta: float | None = None,
    threshold_scale=None,
    seed: int = 0,
) -> float:
    """Variance of SURE over the probes of its weights, given F (Proposition 2, for coordinate-wise rules).

    4 sigma^4 / N (2 |M|_F^2 - (2 - V[eps^2]) sum_p M_pp^2) with M = W' diag(slope) W and V = 0 for Rademacher, 2 for
    Gaussian probes; the constant of SURE is held fixed, as in the paper. M is formed up to 2,000 nodes; above, both norms are
    estimated from 16 probes of their own.
    """
    F = checked_coefficients(frame, F)
    if F.ndim != 2:
        msg = f"sure_variance takes one signal, coefficients of shape (n_scales, n); got {F.shape}"
        raise InputError(msg)
    choose("law", law, get_args(Law))
    sure_exponent(rule, beta)
    sigma, n_probes, seed = checked_sigma(sigma), checked_count("n_probes", n_probes, 1), checked_seed(seed)
    if threshold_scale is not None:
        threshold_scale = checked_scale("threshold_scale", threshold_scale, F.shape)
    slope = shrink(F, threshold_field(F, t, threshold_scale), rule=rule, beta=beta)[1]
    n, exact = frame.graph.n, frame.graph.n <= DENSE_BELOW
    eps = np.eye(n) if exact else probes(n, 16, seed=seed)
    product = inverse(frame, slope * forward(frame, eps), transposed=True)
    if exact:
        frobenius, diagonal = np.sum(product**2), np.sum(np.diag(product) ** 2)
    else:
        frobenius = np.mean([block_sum(row**2) for row in product])
        halves = [np.mean((eps * product)[half], axis=0) for half in (slice(0, 8), slice(8, 16))]  # independent: unbiased product
        diagonal = block_sum(halves[0] * halves[1])
    spread = 2 * frobenius - (2 if law == "rademacher" else 0) * diagonal
    return float(4 * sigma**4 / n_probes * max(spread, 0.0))


def signal_sure(noisy, denoised, *, divergence, sigma):
    """||fhat - y||^2 - sum sigma_i^2 + 2 divergence', where divergence' = sum_i sigma_i^2 d fhat_i / d y_i.

    For a scalar sigma pass the plain divergence sum_i d fhat_i / d y_i.
    """
    noisy, denoised = checked_real_array("noisy", noisy), checked_real_array("denoised", denoised)
    if noisy.ndim not in (1, 2) or noisy.shape != denoised.shape:
        msg = f"noisy and denoised must have the same shape, (n,) or (n, m); got {noisy.shape} and {denoised.shape}"
        raise InputError(msg)
    checked_coefficient_size("noisy", noisy)
    checked_coefficient_size("denoised", denoised)
    divergence = _checked_divergence(divergence, noisy.shape[1:])
    sigma = np.asarray(checked_sigma(sigma, len(noisy)), dtype=float)
    factor = float(sigma) ** 2 if sigma.ndim == 0 else 1.0
    total = len(noisy) * float(sigma) ** 2 if sigma.ndim == 0 else block_sum(sigma**2)
    return block_sum(np.square(denoised - noisy, dtype=np.float64)) - total + 2 * factor * divergence


def _checked_divergence(divergence, shape: tuple):
    """A finite number, or one per signal."""
    values = as_array(divergence, "divergence")
    if values.dtype.kind not in "fiu" or values.shape not in ((), shape) or not np.isfinite(values).all():
        msg = f"divergence must be a finite number{' per signal' if shape else ''}: expected shape {shape}; got {divergence!r}"
        raise InputError(msg)
    return float(values) if values.ndim == 0 else values.astype(np.float64)


def monte_carlo_divergence(estimator, noisy, *, n_probes: int = 10, step: float | None = None, sigma=1.0, seed: int = 0):
    """Divergence of any estimator, by finite differences along probes (Ramani et al. 2008): (value, standard error).

    eps' (estimator(y + step eps) - estimator(y)) / step; it needs no formula, so it checks those we have.
    `step` defaults to 1e-3 sigma (the mean sigma when it is one per node).
    """
    if not callable(estimator):
        msg = f"estimator must be callable, of a noisy signal to a denoised one; got {type(estimator).__name__}"
        raise InputTypeError(msg)
    refuse_device(noisy=noisy)
    noisy = checked_real_array("noisy", noisy).astype(np.float64)
    if noisy.ndim != 1 or len(noisy) == 0:
        msg = f"noisy must be one signal, (n,); got {noisy.shape}"
        raise InputError(msg)
    largest = float(np.abs(checked_coefficient_size("noisy", noisy)).max())
    sigma = float(np.mean(checked_sigma(sigma, len(noisy))))
    words = f"a number above {1e-12 * largest:.2g}, or it is lost in the rounding of the signal"
    step = checked_number("step", 1e-3 * sigma if step is None else step, words, above=0, least=1e-12 * largest, most=LARGEST)

    def estimate(signal):
        values = as_array(result := estimator(signal))
        if values.shape != noisy.shape or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            got = f"shape {values.shape}" if values.dtype.kind in "fiub" else type(result).__name__
            msg = f"estimator must return finite real numbers of shape {noisy.shape}; got {got}"
            raise InputError(msg)
        return values.astype(np.float64)

    base = estimate(noisy)
    draws = [block_sum(eps * (estimate(noisy + step * eps) - base)) / step for eps in probes(len(noisy), n_probes, seed=seed)]
    return float(np.mean(draws)), float(np.std(draws, ddof=1) / np.sqrt(n_probes)) if n_probes > 1 else np.nan


def is_below_noise(energy, trace, *, tests: int, largest: float = 1.0, n_probes: int | None = None) -> np.ndarray:
    """Whether energies ||A y||^2 are too small for noise of variance 1, whatever the signal: sigma is too large then.

    `trace` is that of A A', whose eigenvalues are at most `largest`. With Gaussian noise e, ||A (f + e)||^2 is stochastically least at
    f = 0, and log(1 + 2 t a) >= a log(1 + 2 t) for a in [0, 1] gives it the Chernoff bound of chi-square with T = trace / largest degrees
    of freedom, P(energy <= q trace) <= exp(-T (q - 1 - log q) / 2). Traces of Rademacher probes are taken at their lower end (Hsu, Kakade
    and Zhang 2012). All `tests` together raise a false alarm with probability FALSE_ALARM at most.

    >>> is_below_noise(np.array([700.0, 900.0]), 1000.0, tests=2)
    array([ True, False])
    """
    level = np.log((1 if n_probes is None else 2) * tests / FALSE_ALARM)
    freedom = np.asarray(trace, dtype=np.float64) / largest
    if n_probes is not None:
        margin = level / n_probes
        freedom = np.maximum(np.sqrt(np.maximum(freedom - margin, 0.0)) - np.sqrt(margin), 0.0) ** 2
    energy, freedom = np.broadcast_arrays(np.asarray(energy, dtype=np.float64) / largest, freedom)
    ratio = np.divide(np.minimum(energy, freedom), freedom, out=np.ones(energy.shape), where=freedom > 0)
    ratio = np.maximum(ratio, 1e-300)
    return freedom * (ratio - 1 - np.log(ratio)) / 2 > level


def estimate_sigma(graph: Graph, noisy, *, frame: Frame | None = None, weights=None) -> float:
    """Noise level from the finest scale that carries at least 2 % of the trace: median(|F| / sqrt(weights)) / 0.6745.

    Every other such scale bounds it from above: a signal can only add to the median and to the energy of a scale, so neither the median
    nor sqrt(||F_j||^2 / sum(weights_j)) of any scale, plus MARGIN of its standard errors, may be smaller.
    Biased upwards on rough signals (it warns when the next scale disagrees); give the known sigma where there is one.
    """
    if checked_graph(graph).n == 0:
        msg = "sigma cannot be estimated: the graph has no nodes"
        raise InputError(msg)
    frame = chebyshev_frame(graph) if frame is None else checked_frame_of(graph, frame)
    values = graph.align(noisy)
    if weights is None:
        weights = smooth_weights(graph, monte_carlo_weights(frame, like=values))
    weights = checked_real_array("weights", weights)
    if weights.shape != (frame.n_scales, graph.n):
        msg = f"weights must have shape {(frame.n_scales, graph.n)}, as monte_carlo_weights of the same frame returns them; got {weights.shape}"
        raise InputError(msg)
    checked_weight_size(weights)
    shares = block_sum(weights.T) / max(graph.n, 1)
    usable = np.flatnonzero(shares >= 0.02)[::-1]
    if len(usable) == 0:
        msg = "sigma cannot be estimated: the graph has no scale that carries noise (is it empty?); pass {sigma=}"
        raise InputError(Sentence(msg))
    if not min(float(weights[j].min()) for j in usable[:2]) > 0:
        msg = "weights must be above 0 at every node, in the finest scales at least; pass smooth_weights(graph, weights)"
        raise InputError(msg)
    planes = values[None] if values.ndim == 1 else values.T
    bands = forward(frame, shifted(planes.astype(np.float64), -offsets_of(planes)))

    linked = graph.degrees > 0 if graph.n_edges else np.ones(graph.n, dtype=bool)  # an isolated node has no fine coefficients
    linked = beside(np.flatnonzero(linked), bands)

    def level(j):
        return float(np.median(np.abs(bands[:, j, linked]) / np.sqrt(weights[j, linked]))) / 0.6744897501960817

    sigma = min([level(usable[0]), *(_upper_sigma(level(j), bands[:, j], weights[j]) for j in usable if weights[j].min() > 0)])
    if sigma == 0:
        msg = "the estimated sigma is 0: over half the finest coefficients vanish, so the signal looks noise-free; pass {sigma=}"
        raise InputError(Sentence(msg))
    if len(usable) > 1 and level(usable[1]) > 1.1 * sigma:
        msg = (
            "sigma was estimated as {:.4g}, but the next scale says {:.4g}: the signal is rough and the estimate is probably too high; "
            "pass {sigma=} if you know it"
        )
        warnings.warn(Sentence(msg, sigma, level(usable[1])), stacklevel=2)
    return sigma


def _upper_sigma(median: float, band, weights) -> float:
    """Upper bound of sigma from one scale: the smaller one of its median's and its energy's reading, MARGIN standard errors higher.

    The standard errors are those of as many independent values as the scale has degrees of freedom: 1.17 and 0.71 over their root.
    """
    freedom = float(block_sum(weights)) * len(band)
    energy = float(np.sqrt(block_sum(np.square(band).sum(axis=0)) / freedom))
    return min(median * (1 + MARGIN * 1.167 / np.sqrt(freedom)), energy * (1 + MARGIN * np.sqrt(0.5 / freedom)))


# ---- shapes -----------------------------------------------------------------------------------------------------


def checked_pair(F, weights):
    """Coefficients and weights: finite real numbers of fitting shapes."""
    F = checked_real_array("F", F)
    weights = beside(checked_real_array("weights", weights), F)
    if F.ndim not in (2, 3) or weights.shape != F.shape[:2] or F.shape[2:] == (0,):
        msg = f"F must be (n_scales, n) or (n_scales, n, m), weights (n_scales, n); got {F.shape} and {weights.shape}"
        raise InputError(msg)
    return checked_coefficient_size("F", F), checked_weight_size(weights)


def checked_coefficient_weights(weights):
    """Finite weights of at least 0, as they are of coefficients."""
    if span(checked_weight_size(weights))[0] < 0:
        msg = "weights must not be negative: thresholds minimise the coefficients' SURE, so pass weights of domain='coefficients'"
        raise InputError(msg)
    return weights


def threshold_scale(weights, scaled):
    """None, sqrt(weights), or the given array: what the thresholds are multiplied by."""
    if isinstance(scaled, bool | np.bool_):
        return np.sqrt(np.maximum(weights, 0.0)) if scaled else None
    return checked_scale("scaled", scaled, np.shape(weights))


def checked_scale(name: str, scale, shape: tuple) -> np.ndarray:
    """Finite non-negative numbers of that shape."""
    values = as_array(scale, name)
    fits = values.shape == shape and values.dtype.kind in "fiu"
    least, most = span(values) if fits else (np.nan, np.nan)
    if not (least >= 0 and most <= LARGEST):
        got = f"shape {values.shape}" if not fits else f"some that are negative, NaN or above {LARGEST:g}"
        msg = f"{name} must be {'True, False or ' * (name == 'scaled')}non-negative numbers of shape {shape}; got {got}"
        raise InputError(msg)
    return values.astype(np.float64, copy=False)


def threshold_field(F: np.ndarray, t, scale) -> np.ndarray:
    """Thresholds that broadcast against F: from a float, (n_scales,), or (n_scales, m)."""
    t, largest = checked_thresholds(t), LARGEST_FLOAT32 if F.dtype == np.float32 else LARGEST
    shapes = ((), F.shape[:1]) if F.ndim == 2 else ((), F.shape[:1], (F.shape[0], F.shape[2]))
    if t.shape not in shapes:
        msg = f"t must have one of the shapes {', '.join(map(str, shapes))} for F of shape {F.shape}; got {t.shape}"
        raise InputError(msg)
    if scale is not None and float(t.max(initial=0)) > largest:
        msg = f"t must be at most {largest:g} in size; got {t.max():g}"
        raise InputError(msg)
    with np.errstate(over="ignore"):  # infinite kills everything, which is what it should do
        t = t.astype(F.dtype)
    field = t.reshape(t.shape[:1] + (1,) + t.shape[1:]) if t.ndim else t
    field = field[..., None] if t.ndim == 1 and F.ndim == 3 else field
    if scale is None:
        return field
    return field * (scale if F.ndim == 2 else scale[:, :, None]).astype(F.dtype)
