"""map.csv, the table of a release: one row per node, or per node and window. Written and read here only."""

from __future__ import annotations

import csv
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hushgraph.estimators import INTERVAL_LEVEL

if TYPE_CHECKING:
    from hushgraph.estimators import Denoised
    from hushgraph.graphs import Graph

MAP, REPORT = "map.csv", "report.html"
_FORMULA = re.compile("['=+@＝＋－＠-]|.*[;\\t\\r\\n]", re.DOTALL)  # what a spreadsheet may take for a formula, or split before one


def write_map(path: Path, graph: Graph, windows: Sequence | None, values: dict[str, np.ndarray], *, spreadsheet_safe: bool) -> None:
    """Write one row per node, or per node and window: its label, place and window, and the named values."""
    n_windows = 1 if windows is None else len(windows) - 1
    columns = row_columns(graph, windows, spreadsheet_safe=spreadsheet_safe)
    if graph.coords is not None:
        names = ("lon", "lat") if graph.crs == "lonlat" else ("x", "y", "z")
        places = {name: np.repeat(place, n_windows).tolist() for name, place in zip(names, graph.coords.T, strict=False)}
        columns = {"node": columns.pop("node"), **places, **columns}
    columns |= {name: np.asarray(column).ravel().tolist() for name, column in values.items()}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC if spreadsheet_safe else csv.QUOTE_MINIMAL)  # also where ; separates
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        file.flush()
        os.fsync(file.fileno())


def map_values(noisy: np.ndarray, denoised: Denoised) -> dict[str, np.ndarray]:
    """Return the columns of values of a map, in the order in which they are written."""
    lower, upper = denoised.interval(INTERVAL_LEVEL)
    return {
        "noisy": noisy,
        "denoised": denoised.signal,
        "expected_error": denoised.expected_error(),
        "lower": lower,
        "upper": upper,
    }


def row_columns(graph: Graph, windows: Sequence | None, *, spreadsheet_safe: bool) -> dict[str, list]:
    """Return node and window of each row. No two labels are written alike: one that begins with an apostrophe gets another."""
    labels = (np.arange(graph.n) if graph.labels is None else graph.labels).tolist()
    if spreadsheet_safe:
        labels = [f"'{label}" if isinstance(label, str) and _FORMULA.match(label) else label for label in labels]
    if windows is None:
        return {"node": labels}
    each = [label for label in labels for _ in windows[1:]]
    return {"node": each, "from": list(windows[:-1]) * graph.n, "to": list(windows[1:]) * graph.n}


def map_rows(folder: Path, names: list[str]) -> Iterator[list[str]]:
    """Yield the named columns of the map in a folder, row by row."""
    with (folder / MAP).open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        places = list(map(next(rows, []).index, names))
        for row in rows:
            yield [row[place] for place in places]


def noisy_values(folder: Path, certificate: dict[str, Any]) -> np.ndarray:
    """Return the noisy values of a map, which must be as many as nodes and windows, and on the lattice; an error if they are not."""
    shape = _map_shape(certificate)
    values = np.array([float(value) for (value,) in map_rows(folder, ["noisy"])])
    if values.size != np.prod(shape) or not is_possible_map(values.reshape(shape), certificate):
        raise ValueError
    return values.reshape(shape)


def is_possible_map(values: np.ndarray, claims: dict[str, Any]) -> bool:
    """Return whether noisy values are as many as the nodes and windows that a certificate or a charge claims, and on its lattice."""
    step = claims["lattice"]
    is_whole = values.shape == _map_shape(claims) and values.dtype == np.float64 and bool(np.isfinite(values).all())
    return is_whole and np.array_equal(np.rint(values / step) * step, values)


def _map_shape(claims: dict[str, Any]) -> tuple[int, ...]:
    n = claims["graph"]["nodes"]
    return (n,) if claims["windows"] is None else (n, len(claims["windows"]) - 1)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
