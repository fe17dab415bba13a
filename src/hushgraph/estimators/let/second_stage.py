"""The second stage: the noisy signal is shrunk where a first estimate p says that there is no signal.

Columns: p itself; the empirical Wiener filter sum_j rho_j(L) [w_j q_j^2 / (q_j^2 + c sigma_j^2)], w_j = rho_j(L) y,
q_j = rho_j(L) p; what stands out of p, h_t(y - p); and y |p| / (|p| + sigma), y p^2 / (p^2 + sigma^2). Their divergences pass
through both stages: with p's derivative along the probes at hand, theirs follow by the chain rule. SURE combines them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hushgraph._progress import reached
from hushgraph.core import block_sum
from hushgraph.estimators.let.columns import Columns, KnownDerivatives
from hushgraph.estimators.let.combination import Combination, LetProblem, averaged, fit
from hushgraph.estimators.let.filters import Filters
from hushgraph.estimators.let.observation import Observation
from hushgraph.wavelets import james_stein

WIENER = (1.0, 3.0)  # c, noise against what the first estimate finds
OUTLIERS = (2.5, 3.5)  # thresholds, in noise levels
ENOUGH = 8  # probes from which the known divergence of p corrects that of the others


def refine(observation: Observation, first: Combination) -> Combination:
    """Return the combination of the second-stage columns; the weights of the first stage are held fixed."""
    stages = [*_wiener(observation, first.signal, first.jvp), *_pointwise(observation, first.signal, first.jvp)]
    names = ("first", *(f"wiener {c:g}" for c in WIENER), *(f"outliers {t:g}" for t in OUTLIERS), "kept", "kept squared")
    values = np.stack([first.signal, *(value for value, _ in stages)])
    derivatives = np.stack([first.jvp, *(change for _, change in stages)])
    spent = first.optimism / (2 * observation.noise.mean(observation.graph.n))
    divergence, alike = _divergences(observation, derivatives, first.divergence)
    whole = KnownDerivatives(names, values, divergence, derivatives, tuned=spent * alike)
    columns = Columns(observation.filters, {"all": whole})
    problem = replace(LetProblem.of(columns, observation), places={"first": np.arange(1), "second": np.arange(1, len(names))})
    fits = fit(problem, {"first": ("first",), "both": ("first", "second")}, largest=1.0)
    return averaged(observation, columns, problem, fits, safe=("first alone", np.eye(len(names))[0]), peaked=first.peaked)


def _divergences(observation: Observation, moved: np.ndarray, known: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of eps'J eps of each column, and how much of it follows that of p.

    That of p is known from more probes; what these few make of it is taken out of the others, as far as they follow it.
    """
    eps = observation.filters.probes.eps
    samples = np.array([[block_sum(e * row) for e, row in zip(eps, column, strict=True)] for column in moved])
    means = samples.mean(axis=1)
    alike = np.zeros(len(means))
    if len(eps) >= ENOUGH:
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
        noise = c * (observation.sigma * probed.scale) ** 2
        total = np.maximum(q**2 + noise, 1e-300)
        gain, tilt = q**2 / total, 2 * w * q * noise / total**2
        rows = [gain * rho + tilt * moved for rho, moved in zip(probed.rho, moved_q, strict=True)]
        whole = filters.synthesize(np.stack([w * gain, *rows]))
        yield whole[0], whole[1:]


def _pointwise(observation: Observation, p: np.ndarray, moved_p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield value and derivative of the estimates that use a node's own y and p."""
    y, eps = observation.y, observation.filters.probes.eps
    sigma = np.sqrt(observation.noise.weigh(np.ones_like(y)))
    for t in OUTLIERS:
        value, slope = james_stein(y - p, t * sigma)
        yield value, slope * (eps - moved_p)
    size = np.abs(p) + sigma
    yield y * np.abs(p) / size, eps * np.abs(p) / size + y * np.sign(p) * sigma / size**2 * moved_p
    square = p**2 + sigma**2
    yield y * p**2 / square, eps * p**2 / square + y * 2 * p * sigma**2 / square**2 * moved_p
