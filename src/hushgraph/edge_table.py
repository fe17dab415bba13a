"""EdgeTable: what a graph is made of, before it is checked; and from ids, as sources have them, to node numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph.adjacency import checked_labels
from hushgraph.checks import shown
from hushgraph.names import Names


class EdgeTable(NamedTuple):
    """Pairs of node numbers with what goes with them, in the order of the source; `Graph` unites and checks."""

    pairs: np.ndarray
    n: int
    weights: Any = None
    coords: Any = None
    crs: str | None = None
    labels: np.ndarray | None = None


ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))  # how columns with the ends of edges are called
PLACES = (("x", "y", "z"), ("lon", "lat"), ("x", "y"))  # how attributes with the place of a node are called
# What a graph of ours says of itself as attributes in other packages and in GraphML, all text: labels are none, int or text; the edge
# attribute that is an affinity; the node attributes that are coordinates, where they are not x and y.
LABELS_HINT, WEIGHT_HINT, COORDS_HINT = "hushgraph_labels", "hushgraph_weight", "hushgraph_coords"
LONGEST_LABEL = 4096  # characters
MOST_LABEL_BYTES = 1 << 34
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


def is_integer(text: str) -> bool:
    """Whether a text is an integer of 63 bits as one would write it: no leading zeros, which codes have."""
    return _INTEGER.fullmatch(text) is not None and abs(int(text)) < 2**63


def text_labels(names: list[str], where) -> np.ndarray:
    """Names as an array, which gives each the room of the longest."""
    longest = max(map(len, names), default=1)
    if longest > LONGEST_LABEL or 4 * longest * len(names) > MOST_LABEL_BYTES:
        raise _too_long(longest, where)
    return np.array(names, dtype=str)


def labels_of(names: Names, where) -> np.ndarray | None:
    """`text_labels` of texts in bytes; None if they are not all UTF-8."""
    try:
        labels, longest = names.decoded(LONGEST_LABEL, MOST_LABEL_BYTES)
    except UnicodeDecodeError:
        return None
    if labels is None:
        raise _too_long(longest, where)
    return labels


def _too_long(longest: int, where) -> ValueError:
    return InputError(f"{where} has a node id of {longest} characters; expected short names; check that it is the right file")


def label_kind(labels: np.ndarray | None, where) -> str:
    """ "none", "int" or "text": what files can keep."""
    kind = "none" if labels is None else {"i": "int", "u": "int", "U": "text"}.get(labels.dtype.kind, "")
    if kind == "int" and labels is not None and labels.size and int(labels.max()) >= 2**63:
        kind = ""
    if labels is not None and not len(labels):
        return "none"
    if not kind:
        msg = f"{where} can keep labels that are all text or all integers of 63 bits, not these; relabel the graph: labels=[str(x) ...]"
        raise InputError(msg)
    return kind


def numbered(ids: np.ndarray, alone: np.ndarray) -> tuple[np.ndarray, int, np.ndarray | None]:
    """(pairs of node numbers, n, labels) of (m, 2) integer ids; rows marked in `alone` state one node, not an edge.

    Nodes come in ascending order, and ids that are 0 to n - 1 are numbers, no labels; but if every node is stated, nodes come in the
    order in which they are, and all ids are labels.

    Examples
    --------
    >>> numbered(np.array([[30, 10], [10, 20]]), np.zeros(2, dtype=bool))
    (array([[2, 0],
           [0, 1]]), 3, array([10, 20, 30]))
    """
    names, places = _ranks(ids)
    stated = ids[alone, 0]
    if not len(stated) or len(stated) != len(names) or len(np.unique(stated)) != len(names):
        plain = len(names) == 0 or (names[0] == 0 and names[-1] == len(names) - 1)
        return places[~alone], len(names), None if plain else names
    order = np.empty(len(names), dtype=np.int64)
    order[places[alone, 0]] = np.arange(len(names))
    return order[places[~alone]], len(names), stated


def _ranks(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """np.unique with the inverse; by a table where the ids lie close together."""
    low, high = (int(ids.min()), int(ids.max())) if ids.size else (0, 0)
    if not ids.size or high - low > 4 * ids.size + (1 << 20):
        names, places = np.unique(ids, return_inverse=True)
        return names, places.reshape(ids.shape)
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[ids.ravel() - low] = True
    rank = np.cumsum(seen) - 1
    return np.flatnonzero(seen) + low, rank[ids - low]


def checked_names(labels, n: int) -> np.ndarray | None:
    """`checked_labels`, without a Python object for each where integers ascend or hashes of texts differ, so that all are unique."""
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
    """Characters of texts as numbers, a row per text, ended by zeros."""
    plain = np.ascontiguousarray(texts).view(np.ndarray).astype(texts.dtype.newbyteorder("="), copy=False)
    return plain.view(np.uint32).reshape(len(texts), -1)


def _surely_unique(texts: np.ndarray) -> bool:
    """Whether texts have hashes that all differ; False settles nothing."""
    keys = np.zeros(len(texts), dtype=np.uint64)
    for column in _codes(texts).T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(32)
    keys.sort()
    return bool(np.all(keys[1:] != keys[:-1]))


def _longest(texts: np.ndarray) -> int:
    """Length of the longest text, at least 1."""
    used = _codes(texts).any(axis=0)
    return max(int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0, 1)


def column_of(names: list[str], weight, distance, where) -> tuple[str | None, bool]:
    """(name of the edge column with weights or lengths, whether they are lengths); None where every edge weighs 1.

    Not asked for anything, "weight" is taken where there is one; weight=False leaves it.
    """
    if weight is not None and weight is not False and distance is not None:
        msg = "give {weight=} (an affinity) or {distance=} (a length), not both; got {!r} and {!r}"
        raise InputError(Sentence(msg, weight, distance))
    asked = distance if distance is not None else weight
    if asked is None or asked is False:
        return ("weight" if "weight" in names and asked is None else None), False
    name = str(asked) if isinstance(asked, int) else asked
    if not isinstance(name, str) or name not in names:
        msg = f"{where} has no edge column {shown(asked)}; it has {', '.join(map(repr, names[:20])) or 'none'}"
        raise InputError(msg)
    return name, distance is not None


def checked_value(text: str, *, is_distance: bool, is_loop: bool, where: str) -> float:
    """A weight or a length as a number, or an error that says where it stands."""
    try:
        value = np.nan if "_" in text else float(text)  # Python's own separator of thousands
    except ValueError:
        value = np.nan
    if 0 < value < np.inf or (value == 0 and (is_loop or not is_distance)):
        return value
    expected = "a length, finite and above 0" if is_distance else "a weight, finite and at least 0 (0: no edge)"
    msg = f"{where} must have {expected}; got {shown(text)}; correct or leave out that edge"
    raise InputError(msg)


def is_lonlat(crs) -> bool:
    """Whether a source's own statement of its coordinates is EPSG:4326, longitude and latitude; anything else is planar."""
    if crs is None:
        return False
    known = crs.to_epsg() if hasattr(crs, "to_epsg") else crs
    return str(known).strip().lower() in ("epsg:4326", "4326")
