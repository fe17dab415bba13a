"""What an experiment runs on: real maps, or generated ones that stand in for them in a smoke test; and its finished cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hushgraph.datasets.generated import city, roads
from hushgraph.datasets.maps import Map, manhattan, road_network, san_francisco
from hushgraph.experiments.cells import Cells
from hushgraph.frame import ExactFrame, exact_frame
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

    def repetitions(self, wanted: int) -> int:
        return 2 if self.smoke else wanted

    @cached_property
    def manhattan(self) -> Map:
        """Manhattan with the pickups f_matched (the paper's hour is not among them)."""
        if self.smoke:
            return _stand_in("Manhattan", 300, 1)
        found = manhattan()
        name = "Manhattan (OpenStreetMap of March 2025), taxi pickups of 2013-11-18, 16:00 to 16:51"
        return Map(found.graph, {"f_matched": found.signals["f_matched"]}, name, found.source, found.attribution, "f_matched")

    @cached_property
    def manhattan_weighted(self) -> Map:
        """The same with edges weighted by the inverse of their length."""
        if self.smoke:
            return _stand_in("Manhattan by length", 300, 1, weighted=True)
        found, plain = manhattan(weighted=True), self.manhattan
        return Map(
            found.graph,
            dict(plain.signals),
            f"{plain.name}, edges weighted by length",
            found.source,
            found.attribution,
            "f_matched",
        )

    @cached_property
    def san_francisco(self) -> Map:
        """San Francisco with all pickups of the paper's day."""
        if self.smoke:
            return _stand_in("San Francisco", 400, 2)
        found = san_francisco()
        name = "San Francisco (OpenStreetMap), all taxi pickups of 2008-05-25"
        return Map(found.graph, {"f_all": found.signals["f_all"]}, name, found.source, found.attribution, "f_all")

    @cached_property
    def large_roads(self) -> Map:
        """The largest road network there is here; roadNet-PA where it can be had without asking a server."""
        if self.smoke:
            return Map(roads(2000), {}, "generated roads", "hushgraph.datasets.roads(2000)", "none")
        try:
            return road_network("roadNet-PA", allow_download=False)
        except RuntimeError:
            found = road_network("roads_1m")
            name = "roads_1m (world highways, Moscow and Seattle side by side; not the paper's roadNet-PA)"
            return Map(found.graph, {}, name, found.source, found.attribution)

    def exact_frame(self, graph: Graph) -> ExactFrame:
        """The exact frame; its eigenpairs are a cell."""
        key = ("eigenpairs", True)
        if key not in graph.memo:

            def compute():
                frame = exact_frame(graph)
                return {"values": graph.memo[key][0], "vectors": frame.eigenvectors}

            pairs = self.cells.arrays(f"eigenpairs-{graph.n}", {"graph": graph.hash}, compute)
            graph.memo[key] = pairs["values"], pairs["vectors"]
        return exact_frame(graph)


def _stand_in(name: str, n: int, seed: int, *, weighted: bool = False) -> Map:
    graph = city(n, seed=seed)
    counts = hotspot_counts(graph, total=3 * graph.n, seed=seed)
    if weighted and graph.coords is not None:
        ends = np.stack(graph.adjacency.tocoo().coords, axis=1)
        length = np.linalg.norm(graph.coords[ends[:, 0]] - graph.coords[ends[:, 1]], axis=1)
        graph = Graph.from_edges(ends, n=graph.n, weights=length.mean() / length, coords=graph.coords)
    return Map(graph, {"f": counts}, f"a generated city for {name}", f"hushgraph.datasets.city({n}, seed={seed})", "none", "f")
