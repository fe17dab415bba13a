"""What an experiment runs on: real maps, or generated ones that stand in for them in a smoke test; and its finished cells."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hushgraph.datasets.generated import city, roads
from hushgraph.datasets.maps import Map, manhattan, road_network, san_francisco
from hushgraph.datasets.sources import DataUnavailable
from hushgraph.experiments.cells import Cells
from hushgraph.frame import ExactFrame, eigenpairs, exact_frame, has_eigenpairs, keep_eigenpairs
from hushgraph.graph import Graph
from hushgraph.signals import hotspot_counts


@dataclass(frozen=True, eq=False)
class Stage:
    """Where an experiment finds its maps and keeps its cells.

    Attributes
    ----------
    folder : Path
        Output of the experiments; cells are in its folder "cells".
    cells : Cells
    smoke : bool
        Generated data and few repetitions: everything runs, nothing is a result.
    methods : tuple of str
        Further methods of `denoise` for the tables.
    """

    folder: Path
    cells: Cells
    smoke: bool = False
    methods: tuple[str, ...] = ()

    def about(self, place: Map) -> dict[str, str]:
        """What a row says of its data."""
        return {"data": place.name, "source": place.source, "attribution": place.attribution}

    @staticmethod
    def digest(signal: np.ndarray) -> str:
        """What stands for a signal in the settings of a cell."""
        return hashlib.sha256(np.asarray(signal, dtype=np.float64).tobytes()).hexdigest()

    def repetitions(self, wanted: int) -> int:
        return 2 if self.smoke else wanted

    @cached_property
    def manhattan(self) -> Map:
        """Manhattan with the pickups f_matched where there are prepared ones (the paper's hour is not among them)."""
        return _stand_in("Manhattan", 300, 1) if self.smoke else _with_signal(manhattan(), "f_matched", ", 16:00 to 16:51")

    @cached_property
    def manhattan_weighted(self) -> Map:
        """The same with edges weighted by the inverse of their length."""
        if self.smoke:
            return _stand_in("Manhattan by length", 300, 1, weighted=True)
        return _with_signal(manhattan(weighted=True), "f_matched", ", 16:00 to 16:51, edges weighted by length")

    @cached_property
    def san_francisco(self) -> Map:
        """San Francisco with all pickups of the paper's day."""
        return _stand_in("San Francisco", 400, 2) if self.smoke else _with_signal(san_francisco(), "f_all", ", all of them")

    @cached_property
    def manhattan_newyear(self) -> Map:
        """Manhattan with the pickups of New Year's night."""
        if self.smoke:
            return _stand_in("Manhattan at New Year", 300, 3)
        return _with_signal(manhattan(hour="2013-01-01T00"), "f_newyear", ", only trips that ended by 00:56")

    @cached_property
    def san_francisco_dpw(self) -> Map:
        """San Francisco's own street centrelines with all pickups of the paper's day."""
        if self.smoke:
            return _stand_in("San Francisco's centrelines", 400, 4)
        return _with_signal(san_francisco(streets="dpw"), "f_all", ", all of them, on the city's own street centrelines")

    @cached_property
    def large_roads(self) -> Map:
        """roadNet-PA where it can be had without asking a server, else the largest network of HUSHGRAPH_DATA, else the server's."""
        if self.smoke:
            return Map(roads(2000), {}, "a generated road network", "hushgraph.datasets.roads(2000)", "none")
        for name in ("roadNet-PA", "roads_1m"):
            with suppress(DataUnavailable):
                return road_network(name, allow_download=False)
        return road_network("roadNet-PA")

    def exact_frame(self, graph: Graph) -> ExactFrame:
        """The exact frame; its eigenpairs are a cell."""
        if not has_eigenpairs(graph):
            compute = lambda: dict(zip(("values", "vectors"), eigenpairs(graph), strict=True))  # noqa: E731
            pairs = self.cells.arrays(f"eigenpairs-{graph.n}", {"graph": graph.hash}, compute, lasting=True)
            keep_eigenpairs(graph, pairs["values"], pairs["vectors"])
        return exact_frame(graph)


def _with_signal(found: Map, name: str, words: str) -> Map:
    """The map with one signal; the main one, and no further words, if that is not there."""
    words, name = (words, name) if name in found.signals else ("", str(found.main))
    return Map(found.graph, {name: found.signals[name]}, found.name + words, found.source, found.attribution, name)


def _stand_in(name: str, n: int, seed: int, *, weighted: bool = False) -> Map:
    graph = city(n, seed=seed)
    counts = hotspot_counts(graph, total=3 * graph.n, seed=seed)
    if weighted and graph.coords is not None:
        ends = np.stack(graph.adjacency.tocoo().coords, axis=1)
        length = np.linalg.norm(graph.coords[ends[:, 0]] - graph.coords[ends[:, 1]], axis=1)
        graph = Graph.from_edges(ends, n=graph.n, weights=length.mean() / length, coords=graph.coords)
    return Map(graph, {"f": counts}, f"a generated city for {name}", f"hushgraph.datasets.city({n}, seed={seed})", "none", "f")


def machine() -> str:
    """Processor, cores and Python, in words."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    processor = next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.machine())
    return f"{os.cpu_count()} cores of {processor}, Python {platform.python_version()}"
