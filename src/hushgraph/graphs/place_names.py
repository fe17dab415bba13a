"""What readers call the nodes: the streets that meet at a junction, or the name of a zone. Labels identify nodes; names describe them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import shown
from hushgraph.graphs.streets import CodedTexts

OSM_ATTRIBUTION = "© OpenStreetMap contributors"
STREETS_PER_NODE = 2
LONGEST_NAME = 60  # characters; longer names are cut
_ABSENT = {"", "nan", "None", "<NA>"}  # what Python and pandas make of a missing value


@dataclass(frozen=True, eq=False)
class NodeNames:
    """Names of the nodes, each text stored once.

    Parameters
    ----------
    texts : sequence of str
        The different names: of streets, or of zones.
    codes : array_like of int, shape (n, k)
        The names of each node as positions in `texts`; -1 where there is no name.

    Examples
    --------
    >>> names = NodeNames(["8 Av", "W 33 St"], [[1, 0], [0, -1], [-1, -1]])
    >>> names.of_node(0), names.of_node(1), names.of_node(2)
    ('W 33 St / 8 Av', '8 Av', '')
    """

    texts: tuple[str, ...]
    codes: np.ndarray

    def __post_init__(self) -> None:
        codes = np.array(self.codes)
        if codes.ndim != 2 or codes.dtype.kind not in "iu" or not all(isinstance(text, str) for text in self.texts):
            raise InputError.about(argument="names", expected="texts, and (n, k) positions in them", got=shown(self.codes))
        if codes.size and (codes.min() < -1 or codes.max() >= len(self.texts)):
            raise InputError.about(argument="names", expected=f"positions from -1 to {len(self.texts) - 1}", got=shown(codes))
        codes = codes.astype(np.int32)
        codes.flags.writeable = False
        object.__setattr__(self, "texts", tuple(self.texts))
        object.__setattr__(self, "codes", codes)

    def __reduce__(self) -> tuple[Any, ...]:
        return NodeNames, (self.texts, self.codes)

    @classmethod
    def of_zones(cls, texts: Iterable[Any]) -> NodeNames | None:
        """Return one name per node, from texts that may be missing; None if all are."""
        coded = CodedTexts.of(_plain(text) if isinstance(text, str) else None for text in texts)
        return cls(tuple(coded.texts), coded.codes[:, None]) if coded.texts else None

    @classmethod
    def of_streets(cls, pairs: np.ndarray, n: int, streets: CodedTexts) -> NodeNames | None:
        """Return the names of the streets at each node, those with most edges there first; None if no street has a name.

        An edge may have several names, as a list that OSMnx writes as text.

        Examples
        --------
        >>> names = NodeNames.of_streets(np.array([[0, 1], [1, 2], [1, 3]]), 4, CodedTexts.of(["Elm", "Elm", "Oak"]))
        >>> [names.of_node(k) for k in range(4)]
        ['Elm', 'Elm / Oak', 'Elm', 'Oak']
        """
        lists = [_plain_names(text) for text in streets.texts]
        plain = CodedTexts.of(name for names in lists for name in names)
        sizes = np.array([len(names) for names in lists] + [0])  # the last one is for edges without a text
        repeats = sizes[streets.codes]
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)  # number of a name in its list
        code = plain.codes[np.repeat((np.cumsum(sizes) - sizes)[streets.codes], repeats) + within]
        low, high = np.repeat(np.sort(pairs, axis=1), repeats, axis=0).T
        known = low != high
        if not known.any():
            return None
        low, high, code, k = low[known], high[known], code[known], len(plain.texts)
        edge = np.unique(low * n + high, return_inverse=True)[1]
        once = np.unique(edge * k + code, return_index=True)[1]  # both directions are one street
        keys, counts = np.unique(np.concatenate([low[once] * k + code[once], high[once] * k + code[once]]), return_counts=True)
        node, code = np.divmod(keys, k)
        order = np.lexsort([code, -counts, node])
        node, code = node[order], code[order]
        rank = np.arange(len(node)) - np.searchsorted(node, node)
        first = rank < STREETS_PER_NODE
        codes = np.full((n, STREETS_PER_NODE), -1, dtype=np.int32)
        codes[node[first], rank[first]] = code[first]
        return cls(tuple(plain.texts), codes)

    def of_node(self, node: int) -> str:
        """Return the names of a node, with a slash between them; empty if it has none."""
        return " / ".join(self.texts[code] for code in self.codes[node].tolist() if code >= 0)

    def of_nodes(self, numbers: np.ndarray) -> NodeNames:
        """Return the names of some nodes, in their order."""
        used, codes = np.unique(self.codes[numbers], return_inverse=True)
        shift = int(len(used) > 0 and used[0] < 0)
        return NodeNames(tuple(self.texts[code] for code in used[shift:].tolist()), codes.reshape(-1, self.codes.shape[1]) - shift)

    def of_edges(self, pairs: np.ndarray) -> np.ndarray:
        """Return the position of the name that both ends of each edge have, -1 if they have none in common."""
        found = np.full(len(pairs), -1, dtype=np.int64)
        first, second = self.codes[pairs[:, 0]], self.codes[pairs[:, 1]]
        for code in first.T[::-1]:  # the first name takes precedence
            found = np.where((code >= 0) & (code[:, None] == second).any(axis=1), code, found)
        return found


def checked_names_of(names: Any, n: int) -> NodeNames | None:
    """Return the names if there is one row for each of the n nodes."""
    if names is not None and not isinstance(names, NodeNames):
        raise InputTypeError.about(argument="names", expected="NodeNames", got=type(names).__name__)
    if names is not None and len(names.codes) != n:
        raise InputError.about(argument="names", verb="have", expected=f"one row per node, {n}", got=len(names.codes))
    return names


def _plain_names(text: str) -> list[str]:
    """Return the names in a text: one, or those of a list as OSMnx writes it, "['8 Av', 'Elm St']"; empty if there is none."""
    parts: Any = [text]
    if text.startswith("[") and text.endswith("]"):
        try:
            parts = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            parts = []
    names = [_plain(part) for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return [name for name in dict.fromkeys(names) if name is not None]


def _plain(text: str) -> str | None:
    """Return a name without blanks around it, cut if it is long; None if there is none."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return None if text in _ABSENT else text


def attribution_of(facts: Any) -> str | None:
    """Return the source that a file or graph states in its attributes: "attribution", or OpenStreetMap if OSMnx made it."""
    stated = facts.get("attribution")
    if isinstance(stated, str) and stated.strip():
        return stated.strip()[:500]
    return OSM_ATTRIBUTION if str(facts.get("created_with", "")).startswith("OSMnx") else None
