"""The data of an experiment: real maps, or generated ones in a smoke test; and its finished cells."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hushgraph.datasets import DataUnavailable, Map, city, hotspot_counts, manhattan, road_network, roads, san_francisco
from hushgraph.experiments.cells import Cells
from hushgraph.graphs import Graph
from hushgraph.wavelets import ExactFrame, eigenpairs, exact_frame, has_eigenpairs, keep_eigenpairs


@dataclass(frozen=True, eq=False)
class Stage:
    """Maps and cells of an experiment.

    Attributes
    ----------
    folder : Path
        Output of the experiments; cells are in its folder "cells".
    cells : Cells
        Finished parts of the experiments.
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
        """Return the columns of a row that name its data."""
        return {"data": place.name, "source": place.source, "attribution": place.attribution}

    @staticmethod
    def digest(signal: np.ndarray) -> str:
        """Return a hash that stands for a signal in the settings of a cell."""
        return hashlib.sha256(np.asarray(signal, dtype=np.float64).tobytes()).hexdigest()

    def repetitions(self, count: int) -> int:
        """Return `count`, or 2 in a smoke test."""
        return 2 if self.smoke else count

    @cached_property
    def manhattan(self) -> Map:
        """Manhattan with the pickups f_matched where there are prepared ones (the paper's hour is not among them)."""
        return _generated_map("Manhattan", 300, 1) if self.smoke else _with_signal(manhattan(), "f_matched", ", 16:00 to 16:51")

    @cached_property
    def manhattan_weighted(self) -> Map:
        """The same with edges weighted by the inverse of their length."""
        if self.smoke:
            return _generated_map("Manhattan by length", 300, 1, weighted=True)
        return _with_signal(manhattan(weighted=True), "f_matched", ", 16:00 to 16:51, edges weighted by length")

    @cached_property
    def san_francisco(self) -> Map:
        """San Francisco with all pickups of the paper's day."""
        return _generated_map("San Francisco", 400, 2) if self.smoke else _with_signal(san_francisco(), "f_all", ", all of them")

    @cached_property
    def manhattan_newyear(self) -> Map:
        """Manhattan with the pickups of New Year's night."""
        if self.smoke:
            return _generated_map("Manhattan at New Year", 300, 3)
        return _with_signal(manhattan(hour="2013-01-01T00"), "f_newyear", ", only trips that ended by 00:56")

    @cached_property
    def san_francisco_dpw(self) -> Map:
        """San Francisco's own street centrelines with all pickups of the paper's day."""
        if self.smoke:
            return _generated_map("San Francisco's centrelines", 400, 4)
        return _with_signal(san_francisco(streets="dpw"), "f_all", ", all of them, on the city's own street centrelines")

    @cached_property
    def large_roads(self) -> Map:
        """roadNet-PA if it is on this computer, else the largest network of HUSHGRAPH_DATA, else roadNet-PA from its server."""
        if self.smoke:
            return Map(roads(2000), {}, "a generated road network", "hushgraph.datasets.roads(2000)", "none")
        for name in ("roadNet-PA", "roads_1m"):
            with suppress(DataUnavailable):
                return road_network(name, allow_download=False)
        return road_network("roadNet-PA")

    def exact_frame(self, graph: Graph) -> ExactFrame:
        """Return the exact frame; its eigenpairs are a cell."""
        if not has_eigenpairs(graph):
            compute = lambda: dict(zip(("values", "vectors"), eigenpairs(graph), strict=True))  # noqa: E731
            pairs = self.cells.arrays(f"eigenpairs-{graph.n}", {"graph": graph.hash}, compute, any_code=True)
            keep_eigenpairs(graph, pairs["values"], pairs["vectors"])
        return exact_frame(graph)


def _with_signal(place: Map, name: str, remark: str) -> Map:
    """Return the map with one signal, and a remark in its name; with the main signal and no remark if there is no such signal."""
    remark, name = (remark, name) if name in place.signals else ("", str(place.main))
    return Map(place.graph, {name: place.signals[name]}, place.name + remark, place.source, place.attribution, name)


def _generated_map(name: str, n: int, seed: int, *, weighted: bool = False) -> Map:
    """Return a generated city in place of a real map, for a smoke test."""
    graph = city(n, seed=seed)
    counts = hotspot_counts(graph, total=3 * graph.n, seed=seed)
    if weighted and graph.coords is not None:
        ends = np.stack(graph.adjacency.tocoo().coords, axis=1)
        length = np.linalg.norm(graph.coords[ends[:, 0]] - graph.coords[ends[:, 1]], axis=1)
        graph = Graph.from_edges(ends, n=graph.n, weights=length.mean() / length, coords=graph.coords)
    return Map(graph, {"f": counts}, f"a generated city for {name}", f"hushgraph.datasets.city({n}, seed={seed})", "none", "f")


def machine() -> str:
    """Return cores, processor and Python version as text."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    processor = next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.machine())
    return f"{os.cpu_count()} cores of {processor}, Python {platform.python_version()}"
