"""What a result was made from, so that its values can be denoised again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushgraph._arrays import on_host
from hushgraph.estimators.problem import Problem
from hushgraph.estimators.settings import Settings
from hushgraph.graphs import Noisy


@dataclass(frozen=True, eq=False)
class Origin:
    """The problem and the settings of one result, its signal before anything was clipped or rounded, and the `Noisy` map that was given, if any.

    `cache` holds what was computed from them, which takes several denoisings.
    """

    problem: Problem
    settings: Settings
    signal: Any = field(repr=False)
    noisy: Noisy | None = field(default=None, repr=False)
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def on_host(self) -> Origin:
        """Return the same in NumPy arrays."""
        problem = replace(self.problem, values=on_host(self.problem.values), sigma=on_host(self.problem.sigma))
        return replace(self, problem=problem, signal=on_host(self.signal))

    @property
    def values(self) -> np.ndarray:
        """The noisy values (n, m), NaN where one is missing."""
        return _columns(self.problem.values)

    @property
    def estimate(self) -> np.ndarray:
        """The estimate (n, m)."""
        return _columns(self.signal)

    @property
    def sigma(self) -> np.ndarray:
        """The noise (n, m)."""
        values, sigma = self.values, np.asarray(on_host(self.problem.sigma), dtype=np.float64)
        return np.broadcast_to(sigma[:, None] if sigma.ndim == 1 else sigma, values.shape)


def _columns(values: Any) -> np.ndarray:
    values = np.asarray(on_host(values), dtype=np.float64)
    return values.reshape(len(values), -1)
