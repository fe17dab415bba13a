"""Total variation on a GPU as candidates: as many steps for each penalty, with finite differences along the probes.

The steps are a function that has a derivative almost everywhere, so the divergence of what was computed is right, whether the steps have reached the
minimum or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph._arrays import namespace, on_host
from hushgraph.core import rowwise_dots, total_variation_gpu
from hushgraph.estimators.let.columns import KnownDerivatives
from hushgraph.estimators.let.observation import TV_PENALTIES, Observation

DELTA = 1e-3  # step of the differences, in noise levels


def total_variation_columns(observation: Observation) -> KnownDerivatives:
    """Return a column for each penalty."""
    graph, y, eps = observation.graph, observation.y, observation.filters.probes.eps
    edges = graph.cached("edges on device", lambda: total_variation_gpu.Edges.of(graph.adjacency))
    penalties, delta = observation.typical_sigma * observation.unit_weight * np.array(TV_PENALTIES), DELTA * observation.sigma
    signals = np.concatenate([y[None], y + delta * eps])
    rows = total_variation_gpu.total_variation(
        edges, np.concatenate([signals] * len(penalties)), np.repeat(penalties, len(signals))
    ).reshape(len(penalties), len(signals), -1)
    values, derivatives = namespace(y).ascontiguousarray(rows[:, 0]), (rows[:, 1:] - rows[:, :1]) / delta
    divergence = on_host(_divergences(eps, derivatives))
    # of a symmetric J whose eigenvalues are 0 and 1, as the means over pieces are
    doubt = np.sqrt(2 * np.maximum(divergence, 0.0) / len(eps))
    return KnownDerivatives(tuple(f"tv {p:g}" for p in TV_PENALTIES), values, divergence, derivatives, doubt=doubt)


def _divergences(eps: Any, derivatives: Any) -> Any:
    """Return the mean of eps'J eps over the probes, for each column."""
    parts = [rowwise_dots(derivatives[:, p], np.broadcast_to(e, derivatives[:, p].shape)) for p, e in enumerate(eps)]
    return np.mean(np.stack(parts), axis=0)
