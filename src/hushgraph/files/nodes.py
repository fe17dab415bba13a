"""Tables of nodes that belong to an edge list: labels, and places if there are any."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hushgraph._errors import InputError
from hushgraph._validation import columns_in_words, first_of, shown
from hushgraph.files.formats import DELIMITERS, LABEL_COLUMNS, TABLE_ENDINGS, format_of
from hushgraph.files.tables import Table, parquet_table, text_table
from hushgraph.files.text import existing_file
from hushgraph.graphs import EdgeTable, text_labels

_DEGREES, _PLANE = (("lon", "lat"), ("longitude", "latitude")), (("x", "y"),)


def with_nodes(table: EdgeTable, path: str | Path, *, crs: str | None, delimiter: str | None) -> EdgeTable:
    """Return edges between the nodes of a table, in its order: nodes without edges stay, and every end of an edge must be in the table."""
    path = existing_file(path, "the table of nodes")
    integers = table.labels is None or table.labels.dtype.kind in "iu"
    kind = format_of(path, TABLE_ENDINGS, None)
    file = parquet_table(path, integers) if kind == "parquet" else text_table(path, delimiter or DELIMITERS[kind] or ",", integers)
    key, axes = _label_column(file), _place_columns(file, crs)
    names, places = file.read(key, axes)
    position = {name: i for i, name in enumerate(names)}
    if len(position) < len(names):
        twice = list(dict.fromkeys(name for i, name in enumerate(names) if position[name] != i))
        msg = f"{path} has {len(twice)} nodes more than once (first: {first_of(twice)}); each node needs one row"
        raise InputError(msg)
    ends = list(range(table.n)) if table.labels is None else table.labels.tolist()
    unknown = [name for name in ends if name not in position]
    if unknown:
        msg = f"{len(unknown)} ends of edges are no nodes of {path} (first: {first_of(unknown)}); add their rows, or leave these edges out"
        raise InputError(msg)
    pairs = np.array([position[name] for name in ends], dtype=np.int64)[table.pairs]
    coords = _coords(path, names, axes, places) if axes else None
    is_lonlat = bool(axes) and axes[0].lower() != "x"
    labels = _labels(path, names, integers)
    return table._replace(pairs=pairs, n=len(names), labels=labels, coords=coords, crs="lonlat" if is_lonlat else None)


def _label_column(file: Table) -> str:
    """Return the column of labels, by its name."""
    found = [name for wanted in LABEL_COLUMNS for name in file.names if name.lower() == wanted]
    if not found:
        msg = f"{file.path} must have a column of node labels called {' or '.join(LABEL_COLUMNS)}; {columns_in_words(file.names)}"
        raise InputError(msg)
    return found[0]


def _place_columns(file: Table, crs: str | None) -> list[str]:
    """Return the two columns of places, none if there are none; lon and lat are preferred to x and y, unless a plane is asked for."""
    by_name = {name.lower(): name for name in file.names}
    for axes in (*_PLANE, *_DEGREES) if crs == "planar" else (*_DEGREES, *_PLANE):
        given = [by_name[axis] for axis in axes if axis in by_name]
        if len(given) == 1:
            msg = f"{file.path} has a column {given[0]} and none called {' and '.join(a for a in axes if a not in by_name)}; a place needs both"
            raise InputError(msg)
        if given:
            return given
    return []


def _coords(path: Path, names: list, axes: list[str], places: np.ndarray) -> np.ndarray:
    absent = ~np.isfinite(places).all(axis=1)
    if absent.any():
        first = shown(names[int(absent.argmax())])
        msg = f"{int(absent.sum())} nodes of {path} have no {' and '.join(axes)} (first: {first}); every node needs a place, or none has one"
        raise InputError(msg)
    return places


def _labels(path: Path, names: list, integers: bool) -> np.ndarray | None:
    """Return labels of the kind of the ids in the edges; None for 0 to n - 1."""
    text = [name for name in names if isinstance(name, str)]
    if integers and text:
        msg = f"{len(text)} labels of {path} are text (first: {first_of(text)}), and the ids of the edges are integers; write both alike"
        raise InputError(msg)
    if not integers:
        return text_labels([str(name) for name in names], path)
    return None if names == list(range(len(names))) else np.array(names, dtype=np.int64)
