"""Test signals: the paper's f_{p,k} = W^k x_p, counts like taxi pickups, smooth and piecewise constant ones.

Smooth and piecewise constant signals are built from the coordinates when the graph has them, from its edges otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from hushgraph._deprecation import renamed
from hushgraph._errors import InputError
from hushgraph._geodesy import planar_coords
from hushgraph._validation import LARGEST, checked_count, checked_number, checked_seed, is_count, shown
from hushgraph.graphs import Graph, as_graph


@renamed(removed_in="0.3", rng="seed")
def bernoulli_signal(graph: Graph, p: float = 0.001, k: int = 4, seed: int | np.random.Generator = 0) -> np.ndarray:
    """Return the paper's f_{p,k} = W^k x_p, with x_p independent Bernoulli(p) on the nodes (Sec. V-D).

    Parameters
    ----------
    graph : Graph
        The graph, with adjacency matrix W.
    p : float
        Probability of a 1, strictly between 0 and 1.
    k : int
        Number of times the adjacency matrix is applied; larger is smoother.
    seed : int or numpy.random.Generator
        A seed, or a generator to draw from. Its old name, `rng`, still works with a DeprecationWarning.

    Returns
    -------
    ndarray of shape (n,)
        The signal.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> bernoulli_signal(graph, p=0.5, k=0, seed=1)
    array([0., 0., 1., 0.])
    >>> bernoulli_signal(graph, p=0.5, k=2, seed=1)
    array([1., 0., 2., 0.])
    """
    p = checked_number("p", p, "a probability strictly between 0 and 1", above=0, below=1)
    k = checked_count("k", k, 0, note=" (how often W is applied)")
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(checked_seed(seed))
    graph = as_graph(graph)
    signal = (rng.random(graph.n) < p).astype(float)
    for step in range(k):
        signal = graph.adjacency @ signal
        if signal.max(initial=0.0) > LARGEST:
            hint = "use a smaller k"
            text = f"k={k} is too large: after {step + 1} products with W the signal exceeds {LARGEST:g}; {hint}"
            raise InputError.about(argument="k", expected=f"at most {step}", got=k, hint=hint, text=text)
    return signal


def hotspot_counts(graph: Graph, *, total: float = 15_000, n_hotspots: int = 12, seed: int = 0) -> np.ndarray:
    """Return counts like those of taxi pickups per junction: a few busy places, many nodes without any event.

    Counts are Poisson. Their mean is a background plus Gaussian hotspots of different widths, times a heavy-tailed
    factor per node, larger where more streets meet.

    Parameters
    ----------
    graph : Graph
        The graph, with coordinates.
    total : float
        Expected sum of the counts.
    n_hotspots : int
        Number of busy places.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    ndarray of shape (n,)
        Whole non-negative numbers as float64.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> counts = hotspot_counts(datasets.city(1000), total=3000)
    >>> bool((counts >= 0).all() and (counts == counts.round()).all())
    True
    """
    graph = as_graph(graph)
    if graph.coords is None:
        text = "hotspot_counts needs the places of the nodes; this graph has no coords, so build it with coords="
        raise InputError.about(argument="graph", verb="have", expected="coords", hint="build it with coords=", text=text)
    total = checked_number("total", total, "a positive expected number of events", above=0, most=1e15)
    n_hotspots = checked_count("n_hotspots", n_hotspots, 0)
    rng = np.random.default_rng(checked_seed(seed))
    place = _unit_coords(graph.coords, graph.crs)
    intensity = 0.03 * np.exp(0.8 * _waves(place, rng)) * np.exp(-3 * ((place - place.mean(axis=0)) ** 2).sum(axis=1))
    for centre, width, height in _hotspots(place, n_hotspots, rng):
        intensity += height * np.exp(-((place - centre) ** 2).sum(axis=1) / (2 * width**2))
    quiet = np.where(rng.random(graph.n) < 0.35, 0.08, 1.0)  # nobody waits at every third corner
    intensity *= quiet * rng.lognormal(0, 0.6, graph.n) * (1 + np.diff(graph.adjacency.indptr)) ** 1.5
    return rng.poisson(total * intensity / intensity.sum()).astype(float)


def smooth_signal(graph: Graph, *, seed: int = 0) -> np.ndarray:
    """Return a smooth random signal of mean 0 and standard deviation 1.

    Long waves over the coordinates; without coordinates, white noise after 200 steps of heat flow, which keeps only
    what varies slowly along the edges.

    Parameters
    ----------
    graph : Graph
        The graph, with or without coordinates.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    ndarray of shape (n,)
        The signal.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> signal = smooth_signal(datasets.grid(20, 20))
    >>> bool(abs(signal.std() - 1) < 1e-12)
    True
    """
    rng = np.random.default_rng(checked_seed(seed))
    graph = as_graph(graph)
    signal = (
        _heat_flow(graph, rng.normal(size=graph.n)) if graph.coords is None else _waves(_unit_coords(graph.coords, graph.crs), rng)
    )
    signal = signal - signal.mean() if graph.n else signal
    spread = signal.std() if graph.n else 0.0
    return signal / spread if spread > 0 else signal


def piecewise_constant_signal(graph: Graph, *, n_pieces: int = 8, seed: int = 0) -> np.ndarray:
    """Return a signal with one random level per piece: each node belongs to the nearest of `n_pieces` random nodes.

    Nearest in the plane, or in steps along edges when the graph has no coordinates. Levels are the numbers
    0, 1, ..., n_pieces - 1 in random order.

    Parameters
    ----------
    graph : Graph
        The graph, with or without coordinates.
    n_pieces : int
        Number of pieces, at most n.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    ndarray of shape (n,)
        The signal.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> sorted(set(piecewise_constant_signal(datasets.grid(20, 20), n_pieces=3).tolist()))
    [0.0, 1.0, 2.0]
    """
    graph = as_graph(graph)
    if not is_count(n_pieces, 1, max(graph.n, 1)):
        expected = f"an integer from 1 to the number of nodes, {graph.n}"
        raise InputError.about(argument="n_pieces", expected=expected, got=shown(n_pieces))
    rng = np.random.default_rng(checked_seed(seed))
    centres = rng.choice(graph.n, n_pieces, replace=False) if graph.n else np.empty(0, dtype=int)
    levels = rng.permutation(n_pieces).astype(float)
    if graph.n == 0:
        return np.empty(0)
    if graph.coords is not None:
        place = planar_coords(graph.coords, graph.crs)
        return levels[cKDTree(place[centres]).query(place)[1]]
    return levels[_nearest_by_edges(graph, centres)]


def _unit_coords(coords: np.ndarray, crs: str | None) -> np.ndarray:
    """Return coordinates in a plane, scaled so that the longer side of the map is 1."""
    place = planar_coords(coords, crs)
    extent = np.ptp(place, axis=0).max(initial=0) if len(place) else 0.0
    return (place - place.min(axis=0)) / extent if extent > 0 else np.zeros_like(place)


def _waves(place: np.ndarray, rng: np.random.Generator, n_waves: int = 8) -> np.ndarray:
    """Return a sum of long cosine waves in random directions, about one period across the map."""
    direction = rng.normal(0, 1.1, (place.shape[1], n_waves))
    return np.cos(2 * np.pi * place @ direction + rng.uniform(0, 2 * np.pi, n_waves)).sum(axis=1) * np.sqrt(2 / n_waves)


def _hotspots(place: np.ndarray, n_hotspots: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, float, float]]:
    """Return (centre, width, height) of each hotspot; narrow hotspots are higher, and most lie near the middle."""
    core = place[((place - np.median(place, axis=0)) ** 2).sum(axis=1).argmin()] if len(place) else 0.0
    near = core + rng.normal(0, 0.13, (n_hotspots, place.shape[1]))
    anywhere = place[rng.integers(0, max(len(place), 1), n_hotspots)] if len(place) else near
    centres = np.where(rng.random((n_hotspots, 1)) < 0.65, near, anywhere)
    widths = np.exp(rng.uniform(np.log(0.02), np.log(0.1), n_hotspots))
    return zip(centres, widths, rng.uniform(0.4, 1.0, n_hotspots) * (0.04 / widths) ** 0.4, strict=True)


def _heat_flow(graph: Graph, signal: np.ndarray, steps: int = 200) -> np.ndarray:
    bound = 2 * graph.degrees.max(initial=0.0)  # an upper bound on the eigenvalues of L, so every step is a contraction
    for _ in range(steps if bound > 0 else 0):
        signal = signal - (graph.degrees * signal - graph.adjacency @ signal) / bound
    return signal


def _nearest_by_edges(graph: Graph, centres: np.ndarray) -> np.ndarray:
    """Return for each node the position in `centres` of the centre with the fewest edges in between; unreached components go round robin."""
    _, _, source = csgraph.dijkstra(
        graph.adjacency, directed=False, indices=centres, unweighted=True, min_only=True, return_predecessors=True
    )
    piece = np.zeros(graph.n, dtype=int)
    piece[centres] = np.arange(len(centres))
    return np.where(source >= 0, piece[np.maximum(source, 0)], graph.components % len(centres))
