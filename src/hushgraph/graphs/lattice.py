"""Lattices: graphs whose nodes are the pixels of an image. Coordinates and edges tell which graphs are lattices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hushgraph.graphs.graph import Graph

ROUNDING = 1e-6  # part of a step by which a coordinate may be off its place


@dataclass(frozen=True, eq=False)
class Lattice:
    """The nodes of a graph as the pixels of an image.

    Parameters
    ----------
    shape : (int, int)
        Number of rows and of columns.
    order : numpy.ndarray, optional
        The node of each pixel, row by row; None if nodes are numbered like that already.
    """

    shape: tuple[int, int]
    order: np.ndarray | None = field(repr=False, default=None)

    def image(self, signal: np.ndarray) -> np.ndarray:
        """Return a signal (n,) as an image (rows, columns)."""
        return np.ascontiguousarray(signal if self.order is None else signal[self.order]).reshape(self.shape)

    def signal(self, image: np.ndarray) -> np.ndarray:
        """Return an image (rows, columns) as a signal (n,)."""
        if self.order is None:
            return image.reshape(-1)
        signal = np.empty(image.size, dtype=image.dtype)
        signal[self.order] = image.reshape(-1)
        return signal


def lattice_of(graph: Graph) -> Lattice | None:
    """Return the rows and columns of a graph whose nodes are the pixels of an image, or None for other graphs.

    Such a graph is called a lattice. Its coordinates are all places of a rectangle, evenly spaced along each axis; each node is joined to
    its neighbours in its row and in its column; and no edge leads farther than to the 8 places around a node. Weights do not matter. An
    image with missing pixels is no lattice. The graph caches the answer.

    Parameters
    ----------
    graph : Graph
        The graph.

    Returns
    -------
    Lattice or None
        Shape and order of the pixels. The first row has the largest y, as in `Graph.from_image`.

    Examples
    --------
    >>> import hushgraph as hg
    >>> lattice_of(hg.datasets.grid(3, 4))
    Lattice(shape=(3, 4))
    >>> lattice_of(hg.datasets.city(100)) is None
    True
    """
    return graph.cached("lattice", lambda: _detected_lattice(graph))


def _detected_lattice(graph: Graph) -> Lattice | None:
    """Return the lattice that the coordinates and edges of a graph describe, or None."""
    if graph.n == 0 or graph.coords is None or graph.coords.shape[1] != 2:
        return None
    places = [_places(graph.coords[:, axis]) for axis in range(2)]
    if places[0] is None or places[1] is None:
        return None
    column, row = places[0], places[1].max() - places[1]
    rows, columns = int(row.max()) + 1, int(column.max()) + 1
    if rows * columns != graph.n:
        return None
    pixel = row * columns + column
    if np.any(np.bincount(pixel, minlength=graph.n) != 1):
        return None
    edges = graph.adjacency.tocoo()
    down, right = (np.abs(place[edges.row] - place[edges.col]) for place in (row, column))
    n_straight = 2 * ((rows - 1) * columns + rows * (columns - 1))
    if np.any(np.maximum(down, right) > 1) or np.count_nonzero(down + right == 1) != n_straight:
        return None
    return Lattice((rows, columns), None if np.array_equal(pixel, np.arange(graph.n)) else np.argsort(pixel))


def _places(x: np.ndarray) -> np.ndarray | None:
    """Return coordinates along one axis as whole numbers of steps from the smallest, or None if they are not evenly spaced."""
    low, high = float(x.min()), float(x.max())
    if low == high:
        return np.zeros(len(x), dtype=np.int64)
    above = x[x > low + ROUNDING * (high - low) / len(x)]
    step = float(above.min()) - low
    count = round((high - low) / step)
    if count >= len(x):
        return None
    steps = (x - low) * (count / (high - low))  # the step of the whole range, which is more exact
    places = np.rint(steps).astype(np.int64)
    return None if np.any(np.abs(steps - places) > ROUNDING) else places
