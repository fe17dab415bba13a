"""Totals of regions that are drawn on the map, computed from noisy values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushgraph.estimators import INTERVAL_LEVEL, Denoised
from hushgraph.explorer.guides import PublicGuides
from hushgraph.explorer.views import ViewRequest, denoised_for
from hushgraph.graphs import Graph, Noisy, in_rings
from hushgraph.plotting import planar_places

MOST_CORNERS = 150


@dataclass(frozen=True)
class RegionRequest:
    """A region on the map at the settings of the page: corners over the larger side of the map, from its south-west corner."""

    view: ViewRequest
    ring: tuple[tuple[float, float], ...]


class RegionTotals:
    """Totals of regions of one graph. The latest result is kept, since measuring its errors takes several denoisings."""

    def __init__(self, graph: Graph, guides: PublicGuides):
        self.graph, self.guides = graph, guides
        places, _ = planar_places(graph)
        size = float(np.ptp(places, axis=0).max(initial=0.0)) or 1.0
        self.places = (places - places.min(axis=0, initial=np.inf)) / size
        self._latest: tuple[tuple[Any, ...], Denoised] | None = None

    def answer(self, noisy: Noisy, request: RegionRequest) -> dict[str, Any]:
        """Return the total of the nodes inside, ready for JSON."""
        inside = in_rings(self.places, [np.array(request.ring, dtype=np.float64)])
        total = self._result(noisy, request.view).total(inside)
        lower, upper = total.interval(INTERVAL_LEVEL)
        return {
            "nodes": total.n_nodes,
            "total": total.value,
            "se": total.se,
            "level": INTERVAL_LEVEL,
            "lower": lower,
            "upper": upper,
            "noisy": total.noisy,
            "noisy_se": total.noisy_se,
        }

    def _result(self, noisy: Noisy, view: ViewRequest) -> Denoised:
        view = replace(view, moving=False, integer=False)
        key = (view, hash(np.asarray(noisy.values).tobytes()))
        if self._latest is None or self._latest[0] != key:
            self._latest = key, denoised_for(self.graph, noisy, view, self.guides)
        return self._latest[1]
