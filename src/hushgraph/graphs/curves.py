"""Curves: the bends of streets between their ends, for drawing. No computation uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._validation import checked_real_array, shown


@dataclass(frozen=True, eq=False)
class Curves:
    """The points at which some edges bend, in one array; all other edges are straight.

    Parameters
    ----------
    points : numpy.ndarray
        The bends of all these edges, shape (k, 2), in the coordinates of the graph, from the lower node number to the higher, without the ends.
    starts : numpy.ndarray
        Where the bends of each of these edges begin in `points`, and k at the end, shape (n_curves + 1,).
    edges : numpy.ndarray
        The two node numbers of each of these edges, the lower one first, shape (n_curves, 2); every edge occurs at most once.

    Examples
    --------
    >>> places = [(0, 0), (0, 5), (0, 9)]
    >>> curves = Curves.of([(1, 0), (1, 2)], [[(0, 5), (1, 5), (0, 0)], [(0, 5), (0, 9)]], places)
    >>> curves.edges.tolist(), curves.points.tolist()
    ([[0, 1]], [[1.0, 5.0]])
    >>> [line.tolist() for line in curves.lines([(1, 0), (1, 2)], places)]
    [[[0.0, 5.0], [1.0, 5.0], [0.0, 0.0]], [[0.0, 5.0], [0.0, 9.0]]]
    """

    points: np.ndarray
    starts: np.ndarray
    edges: np.ndarray

    def __post_init__(self) -> None:
        for name, kind in (("points", np.float64), ("starts", np.int64), ("edges", np.int64)):
            values = np.array(getattr(self, name), dtype=kind)
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Curves, (self.points, self.starts, self.edges)

    @classmethod
    def of(cls, pairs: Any, lines: list, places: Any) -> Curves | None:
        """Return the bends of lines, one for each pair of node numbers; None if all edges are straight.

        A line begins at the end of its edge that is nearer to its first point. Of lines between the same two nodes the first is taken.
        A line of less than three points, or None, is straight.
        """
        edges, places = np.sort(np.asarray(pairs).reshape(-1, 2), axis=1), np.asarray(places, dtype=np.float64)[:, :2]
        sizes = np.array([0 if line is None else len(line) for line in lines], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        points = np.concatenate([np.empty((0, 2)), *(np.asarray(line)[:, :2] for line in lines if line is not None and len(line))])
        first = np.sort(np.unique(edges, axis=0, return_index=True)[1])
        rows = first[(sizes[first] > 2) & (edges[first, 0] != edges[first, 1])]
        if not len(rows):
            return None
        edges, inner = edges[rows], sizes[rows] - 2
        to_low, to_high = (np.abs(points[starts[rows]] - places[end]).sum(axis=1) for end in edges.T)
        is_reversed = to_high < to_low
        ends = np.cumsum(inner)
        within = np.arange(ends[-1]) - np.repeat(ends - inner, inner)  # number of a bend in its line
        begin, step = np.where(is_reversed, starts[rows] + inner, starts[rows] + 1), np.where(is_reversed, -1, 1)
        bends = points[np.repeat(begin, inner) + np.repeat(step, inner) * within]
        return cls(bends, np.concatenate([[0], ends]), edges)

    @classmethod
    def _joined(cls, bends: dict[tuple[int, int], np.ndarray]) -> Curves | None:
        starts = np.concatenate([[0], np.cumsum([len(points) for points in bends.values()])])
        return cls(np.concatenate(list(bends.values())), starts, np.array(list(bends))) if bends else None

    def bends(self) -> dict[tuple[int, int], np.ndarray]:
        """Return the points of each edge that bends, by its two node numbers, the lower one first."""
        parts = np.split(self.points, self.starts[1:-1])
        return {(i, j): points for (i, j), points in zip(self.edges.tolist(), parts, strict=True)}

    def of_nodes(self, numbers: np.ndarray) -> Curves | None:
        """Return the curves between some nodes, which get the numbers of their places in the list."""
        place = {node: k for k, node in enumerate(numbers.tolist())}
        kept = {(place[i], place[j]): points for (i, j), points in self.bends().items() if i in place and j in place}
        return self._joined(
            {(min(edge), max(edge)): points if edge[0] < edge[1] else points[::-1] for edge, points in kept.items()}
        )

    def moved_to(self, points: np.ndarray) -> Curves:
        """Return the same curves with other points."""
        return Curves(points, self.starts, self.edges)

    def lines(self, ends: Any, places: Any) -> list[np.ndarray]:
        """Return each of the edges `ends`, shape (m, 2), as the points to draw, from its first end to its second one.

        `places` are the coordinates of all nodes, two columns.
        """
        bends, places = self.bends(), np.asarray(places, dtype=np.float64)
        straight = np.empty((0, 2))
        lines = []
        for i, j in np.asarray(ends).tolist():
            points = bends.get((min(i, j), max(i, j)), straight)
            lines.append(np.concatenate([places[i : i + 1], points if i < j else points[::-1], places[j : j + 1]]))
        return lines


def checked_curves(curves: Any, n: int) -> Curves | None:
    """Return curves whose edges are pairs of nodes, or None."""
    if curves is None:
        return None
    if not isinstance(curves, Curves):
        raise InputTypeError.about(argument="curves", expected="Curves, as files of streets have them", got=shown(curves))
    points, starts, edges = checked_real_array("curves", curves.points), curves.starts, curves.edges
    whole = (
        points.ndim == edges.ndim == 2
        and points.shape[1] == edges.shape[1] == 2
        and np.isfinite(points).all()
        and starts.shape == (len(edges) + 1,)
        and (starts[0], starts[-1]) == (0, len(points))
        and (np.diff(starts) > 0).all()
        and (edges[:, 0] < edges[:, 1]).all()
        and edges.min(initial=0) >= 0
        and edges.max(initial=-1) < n
    )
    if not whole:
        expected = f"finite points between pairs of the {n} nodes, the lower number first"
        raise InputError.about(argument="curves", verb="hold", expected=expected, hint="make them with Curves.of")
    return curves
