"""EdgeTable, the unchecked content of a graph, and its node numbers, labels and weights from the ids and columns of files and packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import columns_in_words, shown
from hushgraph.core import Names
from hushgraph.graphs.construction import checked_labels
from hushgraph.graphs.curves import Curves
from hushgraph.graphs.outlines import Outlines
from hushgraph.graphs.place_names import NodeNames
from hushgraph.graphs.streets import Streets


class Origin(NamedTuple):
    """How a graph was read, for readers: the columns of the table of its zones, that of their labels, the crs that places were converted from."""

    columns: tuple[Any, ...] = ()
    label_column: str | None = None
    crs: str | None = None


class EdgeTable(NamedTuple):
    """Pairs of node numbers with weights, coordinates and labels, in the order of the source; `Graph.from_table` merges and checks them.

    `streets` are attributes of the edges, from which covariates of the nodes are computed; `covariates` are such covariates. `outlines` are
    the polygons of nodes that are zones, `curves` the bends of edges, `names` what readers call the nodes, `attribution` the source of the graph. `origin`
    says how it was read.
    """

    pairs: np.ndarray
    n: int
    weights: Any = None
    coords: Any = None
    crs: str | None = None
    labels: np.ndarray | None = None
    streets: Streets | None = None
    covariates: Mapping[str, Any] | None = None
    outlines: Outlines | None = None
    curves: Curves | None = None
    names: NodeNames | None = None
    attribution: str | None = None
    origin: Origin | None = None


ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))  # names of columns with the ends of edges
PLACES = (("x", "y", "z"), ("lon", "lat"), ("x", "y"))  # names of attributes with the coordinates of a node
# Attributes of a hushgraph graph in other packages and in GraphML, all text: whether labels are none, int or text; the edge attribute
# that is an affinity; the node attributes that are coordinates, if they are not x and y.
LABELS_HINT, WEIGHT_HINT, COORDS_HINT = "hushgraph_labels", "hushgraph_weight", "hushgraph_coords"
LONGEST_LABEL = 4096  # characters
MOST_LABEL_BYTES = 1 << 34
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def is_integer(text: str) -> bool:
    """Return whether a text is an integer of 63 bits without leading zeros, which codes have."""
    return _INTEGER.fullmatch(text) is not None and abs(int(text)) < 2**63


def text_labels(names: list[str], where: object) -> np.ndarray:
    """Return names as an array, in which each takes the memory of the longest."""
    longest = max(map(len, names), default=1)
    if longest > LONGEST_LABEL or 4 * longest * len(names) > MOST_LABEL_BYTES:
        raise _too_long(longest, where)
    return np.array(names, dtype=str)


def labels_of(names: Names, where: object) -> np.ndarray | None:
    """Return `text_labels` of texts in bytes; None if they are not all UTF-8."""
    try:
        labels, longest = names.decoded(LONGEST_LABEL, MOST_LABEL_BYTES)
    except UnicodeDecodeError:
        return None
    if labels is None:
        raise _too_long(longest, where)
    return labels


def _too_long(longest: int, where: object) -> InputError:
    """Return the error for a node id of that many characters."""
    return InputError(f"{where} has a node id of {longest} characters; expected short names; check that it is the right file")


def label_kind(labels: np.ndarray | None, where: object) -> str:
    """Return the kind of labels that files can store: "none", "int" or "text"; others are refused."""
    kind = "none" if labels is None else {"i": "int", "u": "int", "U": "text"}.get(labels.dtype.kind, "")
    if kind == "int" and labels is not None and labels.size and int(labels.max()) >= 2**63:
        kind = ""
    if labels is not None and not len(labels):
        return "none"
    if not kind:
        msg = f"{where} can keep labels that are all text or all integers of 63 bits, not these; relabel the graph: labels=[str(x) ...]"
        raise InputError(msg)
    return kind


def numbered(ids: np.ndarray, is_node: np.ndarray) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Return (pairs of node numbers, n, labels) of (m, 2) integer ids; rows marked in `is_node` list one node, not an edge.

    Nodes come in ascending order, and ids 0 to n - 1 are node numbers, not labels. But if every node is listed, nodes come in the order
    of that list, and all ids are labels.

    Examples
    --------
    >>> numbered(np.array([[30, 10], [10, 20]]), np.zeros(2, dtype=bool))
    (array([[2, 0],
           [0, 1]]), 3, array([10, 20, 30]))
    """
    names, places = _ranks(ids)
    listed = ids[is_node, 0]
    if not len(listed) or len(listed) != len(names) or len(np.unique(listed)) != len(names):
        are_numbers = len(names) == 0 or (names[0] == 0 and names[-1] == len(names) - 1)
        return places[~is_node], len(names), None if are_numbers else names
    order = np.empty(len(names), dtype=np.int64)
    order[places[is_node, 0]] = np.arange(len(names))
    return order[places[~is_node]], len(names), listed


def _ranks(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return np.unique(ids) with the inverse; by a table if the ids lie close together."""
    low, high = (int(ids.min()), int(ids.max())) if ids.size else (0, 0)
    if not ids.size or high - low > 4 * ids.size + (1 << 20):
        names, places = np.unique(ids, return_inverse=True)
        return names, places.reshape(ids.shape)
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[ids.ravel() - low] = True
    rank = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs) + low, rank[ids - low]


def checked_names(labels: Any, n: int) -> np.ndarray | None:
    """Return `checked_labels(labels, n)`.

    No Python objects are made if the labels are surely unique: integers that ascend, or texts whose hashes differ.
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "i" and labels.shape == (n,) and np.all(labels[1:] > labels[:-1]):
        labels = labels.copy()
        labels.flags.writeable = False
        return labels
    if n and isinstance(labels, np.ndarray) and labels.dtype.kind == "U" and labels.shape == (n,) and _surely_unique(labels):
        labels = labels.astype(f"U{_longest(labels)}")
        labels.flags.writeable = False
        return labels
    return checked_labels(labels, n)


def _codes(texts: np.ndarray) -> np.ndarray:
    """Return the characters of texts as numbers, one row per text, padded with zeros."""
    plain = np.ascontiguousarray(texts).view(np.ndarray).astype(texts.dtype.newbyteorder("="), copy=False)
    return plain.view(np.uint32).reshape(len(texts), -1)


def _surely_unique(texts: np.ndarray) -> bool:
    """Return whether the hashes of the texts all differ; if they do not, the texts may still differ."""
    keys = np.zeros(len(texts), dtype=np.uint64)
    for column in _codes(texts).T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(32)
    keys.sort()
    return bool(np.all(keys[1:] != keys[:-1]))


def _longest(texts: np.ndarray) -> int:
    """Return the length of the longest text, at least 1."""
    used = _codes(texts).any(axis=0)
    return max(int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0, 1)


def column_of(names: list[str], weight: Any, distance: Any, where: object) -> tuple[str | None, bool]:
    """Return (name of the edge column with weights or lengths, whether they are lengths); None if every edge weighs 1.

    By default the column "weight" is taken if it exists; weight=False ignores it.
    """
    if weight is not None and weight is not False and distance is not None:
        msg = "give {weight=} (an affinity) or {distance=} (a length), not both; got {!r} and {!r}"
        raise InputError(Sentence(msg, weight, distance))
    column = distance if distance is not None else weight
    if column is None or column is False:
        return ("weight" if "weight" in names and column is None else None), False
    name = str(column) if isinstance(column, int) else column
    if not isinstance(name, str) or name not in names:
        msg = f"{where} has no edge column {shown(column)}; {columns_in_words(names, name)}"
        raise InputError(msg)
    return name, distance is not None


def checked_value(text: str, *, is_distance: bool, is_loop: bool, where: str) -> float:
    """Return a weight or a length as a number; the error for others says where the text is."""
    try:
        value = np.nan if "_" in text else float(text)  # Python's own separator of thousands
    except ValueError:
        value = np.nan
    if 0 < value < np.inf or (value == 0 and (is_loop or not is_distance)):
        return value
    expected = "a length, finite and above 0" if is_distance else "a weight, finite and at least 0 (0: no edge)"
    msg = f"{where} must have {expected}; got {shown(text)}; correct or leave out that edge"
    raise InputError(msg)


def is_lonlat(crs: Any) -> bool:
    """Return whether the crs of a source is EPSG:4326, longitude and latitude; anything else is planar."""
    if crs is None:
        return False
    code = crs.to_epsg() if hasattr(crs, "to_epsg") else crs
    return str(code).strip().lower() in ("epsg:4326", "4326")
