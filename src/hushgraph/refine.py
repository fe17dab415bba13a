"""A second look at the noisy signal in the light of a first estimate p: what p says is there is kept, the rest is shrunk.

Columns: p itself; the empirical Wiener filter sum_j rho_j(L) [w_j q_j^2 / (q_j^2 + c sigma_j^2)], w_j = rho_j(L) y,
q_j = rho_j(L) p; what stands out of p, h_t(y - p); and y |p| / (|p| + sigma), y p^2 / (p^2 + sigma^2). Their divergences pass
through both stages: with p's derivative along the probes at hand, theirs follow by the chain rule. SURE combines them.
"""

from __future__ import annotations

import numpy as np

from hushgraph.columns import Columns, Observation
from hushgraph.combine import Combination, averaged, fit
from hushgraph.filters import Filters
from hushgraph.progress import reached
from hushgraph.shrink import james_stein
from hushgraph.sums import block_sum, sum_of_rows

WIENER = (1.0, 3.0)  # c, noise against what the first estimate finds
OUTLIERS = (2.5, 3.5)  # thresholds, in noise levels
ENOUGH = 8  # probes from which the known divergence of p corrects that of the others


def refine(seen: Observation, first: Combination) -> Combination:
    """The combination of the second-stage columns; the weights of the first stage are held fixed."""
    moved_p = first.push
    stages = [*_wiener(seen, first.signal, moved_p), *_pointwise(seen, first.signal, moved_p)]
    names = ("first", *(f"wiener {c:g}" for c in WIENER), *(f"outliers {t:g}" for t in OUTLIERS), "kept", "kept squared")
    values = np.stack([first.signal, *(value for value, _ in stages)])
    moved = np.stack([moved_p, *(change for _, change in stages)])
    known, spent = float(first.weights @ first.columns.divergence), first.optimism / (2 * seen.noise.mean(seen.graph.n))
    divergence, alike = _divergences(seen, moved, known)

    def add(a, into):
        into.nodes = into.nodes + sum_of_rows(a, moved)

    columns = Columns(
        seen.filters,
        names,
        (values,),
        divergence,
        add,
        tuned=spent * alike,
        places={"first": np.arange(1), "second": np.arange(1, len(names))},
    )
    fits = fit(columns, seen.y, seen.noise, {"first": ("first",), "both": ("first", "second")}, most=1.0)
    return averaged(seen, columns, fits)


def _divergences(seen: Observation, moved: np.ndarray, known: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean of eps'J eps of each column, and how much of it follows that of p.

    That of p is known from more probes; what these few make of it is taken out of the others, as far as they follow it.
    """
    eps = seen.filters.probes.eps
    samples = np.array([[block_sum(e * row) for e, row in zip(eps, column, strict=True)] for column in moved])
    means = samples.mean(axis=1)
    alike = np.zeros(len(means))
    if len(eps) >= ENOUGH:
        apart = samples - means[:, None]
        alike = np.clip(apart @ apart[0] / max(apart[0] @ apart[0], 1e-300), 0.0, 1.0)
    alike[0] = 1.0
    return means + alike * (known - means[0]), alike


def _wiener(seen: Observation, p: np.ndarray, moved_p: np.ndarray):
    """Value and derivative along the probes for each c."""
    filters: Filters = seen.filters
    w, probed = seen.parts.rho, filters.probes
    q, *moved_q = filters.wavelets(np.concatenate([p[None], moved_p]))
    for c in WIENER:
        reached(0.5, "refine")
        noise = c * (seen.sigma * probed.scale) ** 2
        total = np.maximum(q**2 + noise, 1e-300)
        gain, tilt = q**2 / total, 2 * w * q * noise / total**2
        rows = [gain * rho + tilt * moved for rho, moved in zip(probed.rho, moved_q, strict=True)]
        whole = filters.synthesize(np.stack([w * gain, *rows]))
        yield whole[0], whole[1:]


def _pointwise(seen: Observation, p: np.ndarray, moved_p: np.ndarray):
    """Value and derivative of what looks at a node's own y and p."""
    y, eps = seen.y, seen.filters.probes.eps
    sigma = np.sqrt(seen.noise.weigh(np.ones_like(y)))
    for t in OUTLIERS:
        value, slope = james_stein(y - p, t * sigma)
        yield value, slope * (eps - moved_p)
    size = np.abs(p) + sigma
    yield y * np.abs(p) / size, eps * np.abs(p) / size + y * np.sign(p) * sigma / size**2 * moved_p
    square = p**2 + sigma**2
    yield y * p**2 / square, eps * p**2 / square + y * 2 * p * sigma**2 / square**2 * moved_p
