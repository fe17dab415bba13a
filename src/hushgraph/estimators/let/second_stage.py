"""The second stage: the noisy signal is shrunk where a first estimate p says that there is no signal.

Columns: p itself; the empirical Wiener filter sum_j rho_j(L) [w_j q_j^2 / (q_j^2 + c sigma_j^2)], w_j = rho_j(L) y,
q_j = rho_j(L) p; what stands out of p, h_t(y - p); and y |p| / (|p| + sigma), y p^2 / (p^2 + sigma^2). Their divergences pass
through both stages: with p's derivative along the probes at hand, theirs follow by the chain rule. SURE combines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hushgraph._arrays import namespace, on_device, on_host
from hushgraph._progress import reached
from hushgraph.core import block_sum, gpu, rowwise_dots
from hushgraph.estimators.let.columns import Columns, KnownDerivatives
from hushgraph.estimators.let.combination import Combination, Fits, LetProblem, averaged, fit
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.observation import Observation
from hushgraph.wavelets import james_stein

WIENER = (1.0, 3.0)  # c, noise against what the first estimate finds
OUTLIERS = (2.5, 3.5)  # thresholds, in noise levels
ENOUGH = 8  # probes from which the known divergence of p corrects that of the others


SECOND = ("first", *(f"wiener {c:g}" for c in WIENER), *(f"outliers {t:g}" for t in OUTLIERS), "kept", "kept squared")  # columns


def refine(observation: Observation, first: Combination) -> Combination:
    """Return the combination of the second-stage columns; the weights of the first stage are held fixed."""
    stages = [*_wiener(observation, first.signal, first.jvp), *_pointwise(observation, first.signal, first.jvp)]
    values = np.stack([first.signal, *(value for value, _ in stages)])
    derivatives = np.stack([first.jvp, *(change for _, change in stages)])
    samples = _probe_products(observation.filters.probes.eps, derivatives)
    spent = first.optimism / (2 * observation.noise.mean(observation.graph.n))
    divergence, alike = divergences(samples, first.divergence)
    whole = KnownDerivatives(SECOND, values, divergence, derivatives, tuned=spent * alike)
    columns = Columns(observation.filters, {"all": whole})
    problem = replace(LetProblem.of(columns, observation), places=SECOND_PLACES)
    second = averaged(observation, columns, problem, fit_second(problem), safe=FIRST_ALONE, peak_evidence=first.peak_evidence)
    return replace(second, caution=first.caution * float(second.weights @ alike) + second.caution)


SECOND_PLACES = {"first": np.arange(1), "second": np.arange(1, len(SECOND))}
FIRST_ALONE = ("first alone", np.eye(len(SECOND))[0])


def fit_second(problem: LetProblem) -> Fits:
    """Return the fits of the first estimate alone, and of all columns of the second stage."""
    return fit(problem, {"first": ("first",), "both": ("first", "second")}, largest=1.0)


def _probe_products(eps: Any, derivatives: Any) -> np.ndarray:
    """Return eps'J eps of each column and probe."""
    if on_device(derivatives):
        rows = [rowwise_dots(derivatives[:, p], np.broadcast_to(e, (len(derivatives), len(e)))) for p, e in enumerate(eps)]
        return on_host(np.stack(rows, axis=1))
    return np.array([[block_sum(e * row) for e, row in zip(eps, column, strict=True)] for column in derivatives])


def divergences(samples: np.ndarray, known: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the samples eps'J eps (columns, probes) of each column, and how much of it follows that of the first column, p.

    That of p is known from more probes; what these few make of it is taken out of the others, as far as they follow it.
    """
    means = samples.mean(axis=1)
    alike = np.zeros(len(means))
    if samples.shape[1] >= ENOUGH:
        apart = samples - means[:, None]
        alike = np.clip(apart @ apart[0] / max(apart[0] @ apart[0], 1e-300), 0.0, 1.0)
    alike[0] = 1.0
    return means + alike * (known - means[0]), alike


def _wiener(observation: Observation, p: np.ndarray, moved_p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield value and derivative along the probes for each c."""
    filters: Filters = observation.filters
    w, probed = observation.parts.rho, filters.probes
    q, *moved_q = filters.wavelets(np.concatenate([p[None], moved_p]))
    for c in WIENER:
        reached(0.5, "refine")
        if on_device(q):
            yield from _wiener_on_device(observation, c, q, moved_q)
            continue
        gain, tilt = wiener_factors(w, q, c * (observation.sigma * probed.scale) ** 2)
        rows = [gain * rho + tilt * moved for rho, moved in zip(probed.rho, moved_q, strict=True)]
        whole = filters.synthesize(np.stack([w * gain, *rows]))
        yield whole[0], whole[1:]


def wiener_factors(w: np.ndarray, q: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return q^2 / (q^2 + noise), the gain of the Wiener filter, and the derivative by q of w times the gain."""
    total = np.maximum(q**2 + noise, 1e-300)
    return q**2 / total, 2 * w * q * noise / total**2


def _pointwise(observation: Observation, p: np.ndarray, moved_p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `pointwise` of a signal."""
    y, eps = observation.y, observation.filters.probes.eps
    if on_device(y):
        yield from _pointwise_on_device(observation, p, moved_p)
        return
    yield from pointwise(y, p, np.sqrt(observation.noise.weigh(np.ones_like(y))), eps, moved_p)


def pointwise(
    y: np.ndarray, p: np.ndarray, sigma: np.ndarray, eps: np.ndarray, moved_p: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield value and derivative along the probes of the estimates that use a node's own y and p."""
    for t in OUTLIERS:
        value, slope = james_stein(y - p, t * sigma)
        yield value, slope * (eps - moved_p)
    size = np.abs(p) + sigma
    yield y * np.abs(p) / size, eps * np.abs(p) / size + y * np.sign(p) * sigma / size**2 * moved_p
    square = p**2 + sigma**2
    yield y * p**2 / square, eps * p**2 / square + y * 2 * p * sigma**2 / square**2 * moved_p


# ---- the same on a GPU, each in one pass ----------------------------------------------------------------------------------


def _wiener_on_device(observation: Observation, c: float, q: Any, moved_q: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield what `_wiener` yields for c."""
    filters, w, probed = observation.filters, observation.parts.rho, observation.filters.probes
    rows = namespace(q).empty((1 + len(moved_q), *q.shape))
    kernels = _kernels()
    kernels["wiener"](w, q, probed.scale, c * observation.sigma**2, rows[0])
    for k, moved in enumerate(moved_q):
        kernels["moved_wiener"](w, q, probed.scale, c * observation.sigma**2, probed.rho[k], moved, rows[k + 1])
    whole = filters.synthesize(rows)
    yield whole[0], whole[1:]


def _pointwise_on_device(observation: Observation, p: Any, moved_p: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what `_pointwise` yields."""
    y, eps, kernels = observation.y, observation.filters.probes.eps, _kernels()
    sigma = np.sqrt(observation.noise.weigh(np.ones_like(y)))
    for t in OUTLIERS:
        yield kernels["outlier"](y, p, t * sigma), kernels["moved_outlier"](y, p, t * sigma, eps, moved_p)
    yield kernels["kept"](y, p, sigma), kernels["moved_kept"](y, p, sigma, eps, moved_p)
    yield kernels["kept_squared"](y, p, sigma), kernels["moved_kept_squared"](y, p, sigma, eps, moved_p)


_GAIN = "double noise = c * scale * scale, total = max(q * q + noise, 1e-300), gain = q * q / total;"
_OUTLIER = "double x = y - p, size = abs(x), r = size > t ? t / size : 0;"
_FORMULAS = {  # arguments and code of each; the result is `out`
    "wiener": ("w, q, scale, c", _GAIN + "out = w * gain;"),
    "moved_wiener": ("w, q, scale, c, rho, moved", _GAIN + "out = gain * rho + 2 * w * q * noise / (total * total) * moved;"),
    "outlier": ("y, p, t", _OUTLIER + "out = size > t ? x * (1 - r * r) : 0;"),
    "moved_outlier": ("y, p, t, eps, moved", _OUTLIER + "out = size > t ? (1 + r * r) * (eps - moved) : 0;"),
    "kept": ("y, p, sigma", "out = y * abs(p) / (abs(p) + sigma);"),
    "moved_kept": (
        "y, p, sigma, eps, moved",
        "double size = abs(p) + sigma, sign = p > 0 ? 1 : p < 0 ? -1 : 0; out = eps * abs(p) / size + y * sign * sigma / (size * size) * moved;",
    ),
    "kept_squared": ("y, p, sigma", "out = y * p * p / (p * p + sigma * sigma);"),
    "moved_kept_squared": (
        "y, p, sigma, eps, moved",
        """double variance = sigma * sigma, square = p * p + variance;
        out = eps * p * p / square + y * 2 * p * variance / (square * square) * moved;""",
    ),
}


@cache
def _kernels() -> dict[str, Any]:
    """Return a kernel for each formula."""
    cp = gpu.cupy()
    return {
        name: cp.ElementwiseKernel(
            ", ".join(f"float64 {one}" for one in arguments.split(", ")), "float64 out", code, f"refine_{name}", options=gpu.OPTIONS
        )
        for name, (arguments, code) in _FORMULAS.items()
    }
