"""The tables in a published folder, of a release or a series, as one table with a row for each node and map."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError
from hushgraph.graphs import Graph, as_graph
from hushgraph.privacy.certificate import BROKEN, CERTIFICATE
from hushgraph.privacy.map_file import MAP, row_columns
from hushgraph.privacy.releases import read_release
from hushgraph.privacy.series_folder import FORMAT, SUMMARY

_VALUES = ("noisy", "denoised", "expected_error", "lower", "upper")  # earlier releases lack the last two


@dataclass(frozen=True, eq=False)
class PublishedMaps:
    """What a published folder says of each node.

    Parameters
    ----------
    titles : list of str
        The name of each map: a time window or a release; empty for one map.
    nodes, maps : (k,) arrays of int
        The node and the map of each row.
    columns : dict of str to sequence
        The columns of the table.
    attribution : str or None
        Source of the graph.
    """

    titles: list[str]
    nodes: np.ndarray = field(repr=False)
    maps: np.ndarray = field(repr=False)
    columns: dict[str, Any] = field(repr=False)
    attribution: str | None

    def signals(self) -> dict[str, np.ndarray]:
        """Return what a picture shows: the noisy and the denoised map, or all denoised maps; by title.

        Returns
        -------
        dict
            Titles and values in the order of the nodes.
        """
        if not self.titles:
            return {"Noisy": self.columns["noisy"], "Denoised": self.columns["denoised"]}
        return {title: self.columns["denoised"][self.maps == k] for k, title in enumerate(self.titles)}


def read_published(folder: str | os.PathLike, graph: Graph) -> PublishedMaps:
    """Return the tables in the folder of a release, which must verify, or of a series on this graph.

    Parameters
    ----------
    folder : path
        As `hushgraph release`, `release.export` or `hushgraph series` wrote it.
    graph : Graph
        The public graph.

    Returns
    -------
    PublishedMaps
        The table.
    """
    folder, graph = Path(folder), as_graph(graph)
    if (folder / CERTIFICATE).exists():
        return _of_release(folder, graph)
    if (folder / f"{SUMMARY}.json").exists():
        try:
            return _of_series(folder, graph)
        except (*BROKEN, csv.Error) as error:
            if isinstance(error, InputError):
                raise
            msg = f"{folder} is the folder of a series of which a part is missing or damaged; make it again with hushgraph series"
            raise InputError(msg) from None
    msg = f"{folder} is not the folder of a release (with {CERTIFICATE}) or of a series (with {SUMMARY}.json); check its name"
    raise InputError(msg)


def _of_release(folder: Path, graph: Graph) -> PublishedMaps:
    release = read_release(folder, graph)  # the rows are those of the graph then
    names = row_columns(graph, release.windows, spreadsheet_safe=False)
    titles = [] if release.windows is None else [str(start) for start in release.windows[:-1]]
    n_maps = max(len(titles), 1)
    columns = {name: column for name, column in names.items() if name != "node"} | _values(folder / MAP, graph.n * n_maps)
    nodes = np.repeat(np.arange(graph.n), n_maps)
    return PublishedMaps(titles, nodes, np.tile(np.arange(n_maps), graph.n), columns, release.attribution)


def _of_series(folder: Path, graph: Graph) -> PublishedMaps:
    summary = json.loads((folder / f"{SUMMARY}.json").read_text(encoding="utf-8"))
    if summary.get("format", 1) > FORMAT:
        msg = (
            f"{folder} is a series that was written by a newer version of hushgraph (format {summary['format']}); use that version"
        )
        raise InputError(msg)
    if summary["graph"]["hash"] != graph.hash:
        msg = (
            f"{folder} is a series on another graph ({summary['graph']['hash'][:12]}...) than the one given ({graph.hash[:12]}...)"
        )
        raise InputError(msg)
    releases = summary["releases"]
    nodes = list(map(str, row_columns(graph, None, spreadsheet_safe=summary.get("spreadsheet_safe", False))["node"]))
    tables = [_values(folder / Path(one["file"]).name, graph.n, nodes) for one in releases]
    columns: dict[str, Any] = {
        name: [str(one[name]) for one in releases for _ in range(graph.n)] for name in ("release", "created")
    }
    columns |= {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    maps = np.repeat(np.arange(len(releases)), graph.n)
    credit = next((one["attribution"] for one in releases if one.get("attribution")), None)
    return PublishedMaps([one["release"] for one in releases], np.tile(np.arange(graph.n), len(releases)), maps, columns, credit)


def _values(path: Path, n_rows: int, nodes: list[str] | None = None) -> dict[str, np.ndarray]:
    """Return the columns of numbers of a table, which must have so many rows, for these nodes if they are given; an empty cell is NaN."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        head = next(rows, [])
        places = {name: head.index(name) for name in _VALUES if name in head}
        content = list(rows)
    if len(content) != n_rows or (nodes is not None and [row[head.index("node")] for row in content] != nodes):
        raise ValueError
    table = [[float(row[place] or "nan") for place in places.values()] for row in content]
    return dict(zip(places, np.array(table, dtype=np.float64).reshape(n_rows, len(places)).T, strict=True))
