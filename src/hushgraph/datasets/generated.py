"""Generated graphs: a city, a road network of any size, zones, a grid, a path, random geometric. Offline, the same for the same seed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.spatial import Voronoi, cKDTree

from hushgraph._geodesy import LocalPlane
from hushgraph._validation import checked_count, checked_number, checked_seed, choose
from hushgraph.datasets.city_plan import bent, draw_city
from hushgraph.datasets.city_streets import street_names
from hushgraph.graphs import CRS_MEMBER, Graph, signed_area

_MIDDLE = (-30.0, 40.7)  # longitude and latitude of the generated zones
_CALIBRATED = 20_000  # larger cities take their area per node from one of this size


def city(n_nodes: int = 4000, *, seed: int = 0) -> Graph:
    """Return a connected street network with districts, arterials, a river with bridges, parks and dead ends.

    Parameters
    ----------
    n_nodes : int
        Number of junctions, at least 100; the graph has this number to within 10 %.
    seed : int
        Seed of the random numbers; the same seed gives the same city.

    Returns
    -------
    Graph
        Unweighted, connected, with planar coordinates in metres and generated names of streets.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> graph = datasets.city(1000)
    >>> 900 <= graph.n <= 1100
    True
    """
    checked_count("n_nodes", n_nodes, 100)
    checked_seed(seed)
    goal = min(n_nodes, _CALIBRATED)
    area, best = 15_000.0, np.inf  # square metres per junction, a first guess
    for _ in range(12):
        plan = draw_city(goal, np.sqrt(area * goal / np.pi), seed)
        miss = len(plan[0]) / goal - 1
        if abs(miss) < abs(best):
            best, fitting, (xy, pairs) = miss, area, plan
        if abs(best) < 0.04:
            break
        area /= 1 + 0.7 * miss  # less than the whole correction: the count jumps when a street enters or leaves
    if n_nodes > goal:
        xy, pairs = draw_city(n_nodes, np.sqrt(fitting * n_nodes / np.pi), seed)
    return Graph.from_edges(pairs, n=len(xy), coords=xy, names=street_names(xy, pairs, seed=seed))


def roads(n_nodes: int = 100_000, *, seed: int = 0) -> Graph:
    """Return a road network of exactly `n_nodes` nodes: sparse, in several components, numbered like a real file.

    Degrees are spread like those of real road data: about 9 % dead ends, a third bends, most others three-way junctions,
    a few hubs of degree 8 or more. Neighbours mostly have close numbers, but the numbering is not sorted.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 100. Four million take a few seconds.
    seed : int
        Seed of the random numbers; the same seed gives the same network.

    Returns
    -------
    Graph
        Unweighted, with planar coordinates in metres.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.roads(2500).n
    2500
    """
    checked_count("n_nodes", n_nodes, 100)
    rng = np.random.default_rng(checked_seed(seed))
    columns = int(np.sqrt(0.62 * n_nodes))
    rows = int(0.62 * n_nodes / columns)
    xy, pairs = _country(rows, columns, rng)
    xy, pairs = _bends_and_stubs(xy, pairs, n_nodes, rng)
    order = _file_order(xy, rng)
    number = np.empty(n_nodes, dtype=np.int32)
    number[order] = np.arange(n_nodes, dtype=np.int32)
    return Graph.from_edges(number[pairs], n=n_nodes, coords=250.0 * xy[order])


def zones(n_zones: int = 263, *, crs: Literal["lonlat"] | None = "lonlat", seed: int = 0) -> Graph:
    """Return the zones of a generated city, numbered from 1 like those of taxi data: small in the middle, with a ragged coast.

    Parameters
    ----------
    n_zones : int
        Number of zones, at least 1.
    crs : {"lonlat", None}
        Longitude and latitude, somewhere in the Atlantic; or a plane, in metres.
    seed : int
        Seed of the random numbers; the same seed gives the same zones.

    Returns
    -------
    Graph
        Zones with a common border are joined; labels are 1 to n_zones, `outlines` are convex polygons about a kilometre wide.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> graph = datasets.zones(40)
    >>> graph.n, graph.labels[:3].tolist(), graph.outlines.n_rings
    (40, [1, 2, 3], 40)
    """
    checked_count("n_zones", n_zones, 1)
    choose("crs", crs, (None, "lonlat"))
    rng = np.random.default_rng(checked_seed(seed))
    n_cells = 2 * n_zones + 12  # the outer ones are water
    sites = rng.normal(0.0, 1.0, (n_cells, 2)) * [1.0, 1.3]
    for _ in range(6):  # cells become rounder and more even
        sites = np.array([_center(ring) for ring in _cells(sites)])
    land = np.argsort(np.hypot(*(sites / [1.0, 1.3]).T), kind="stable")[:n_zones]
    rings = _cells(sites)
    land = land[np.lexsort([sites[land, 0], -np.round(sites[land, 1], 1)])]  # numbered from north to south
    width = np.sqrt(np.mean([signed_area(rings[cell]) for cell in land.tolist()]))
    corners = [np.round(rings[cell] * (1000 / width), 1) for cell in land.tolist()]  # to 10 cm, as in a file
    if crs == "lonlat":
        plane = LocalPlane(*_MIDDLE)
        corners = [np.round(plane.degrees(ring), 7) for ring in corners]
    shapes = [{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in corners]
    features = [{"type": "Feature", "id": k, "geometry": shape} for k, shape in enumerate(shapes, start=1)]
    plane_member = {} if crs == "lonlat" else {CRS_MEMBER: "planar"}
    return Graph.from_polygons({"type": "FeatureCollection", **plane_member, "features": features})


def grid(rows: int, columns: int) -> Graph:
    """Return a rows x columns grid: every cell is joined to its 4 neighbours, and cells are numbered row by row from the top.

    Parameters
    ----------
    rows : int
        Number of rows, at least 1.
    columns : int
        Number of columns, at least 1.

    Returns
    -------
    Graph
        Unweighted, with coordinates: columns are x, and y falls from row to row.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.grid(3, 4)
    Graph(n=12, n_edges=17, unweighted, coords)
    """
    checked_count("rows", rows, 1)
    checked_count("columns", columns, 1)
    return Graph.from_image((rows, columns), neighbours=4)


def path(n_nodes: int, *, weight: float = 1.0) -> Graph:
    """Return a path: nodes in a row, each joined to the next; `graph.product(path(24))` is a graph over time.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 1.
    weight : float
        Weight of every edge.

    Returns
    -------
    Graph
        Without coordinates.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.path(24)
    Graph(n=24, n_edges=23, unweighted)
    """
    row = np.arange(checked_count("n_nodes", n_nodes, 1) - 1)
    return Graph.from_edges(
        np.stack([row, row + 1], axis=1),
        n=n_nodes,
        weights=np.full(len(row), checked_number("weight", weight, "positive", above=0)),
    )


def random_geometric(n_nodes: int, *, radius: float | None = None, seed: int = 0) -> Graph:
    """Return a graph of random points in the unit square, joined when they are at most `radius` apart.

    Parameters
    ----------
    n_nodes : int
        Number of points, at least 1.
    radius : float, optional
        Largest length of an edge. By default the mean degree is about 6.
    seed : int
        Seed of the random numbers; the same seed gives the same graph.

    Returns
    -------
    Graph
        Unweighted, with planar coordinates.

    Examples
    --------
    >>> from hushgraph import datasets
    >>> datasets.random_geometric(500, radius=0.0)
    Graph(n=500, n_edges=0, unweighted, coords)
    """
    checked_count("n_nodes", n_nodes, 1)
    radius = np.sqrt(6 / (np.pi * n_nodes)) if radius is None else radius
    radius = checked_number("radius", radius, "a finite distance of at least 0 in the unit square", least=0)
    xy = np.random.default_rng(checked_seed(seed)).random((n_nodes, 2))
    return Graph.from_edges(cKDTree(xy).query_pairs(radius, output_type="ndarray"), n=n_nodes, coords=xy)


# ---- zones --------------------------------------------------------------------------------------------------------


def _cells(sites: np.ndarray) -> list[np.ndarray]:
    """Return the corners of the Voronoi cell of each site, cut off by a square around all of them, in which the sites are mirrored."""
    radius = 1.15 * np.abs(sites).max() + 1e-9
    outer = [sites * sign + shift for sign, shift in (([-1, 1], [2 * radius, 0]), ([-1, 1], [-2 * radius, 0]))]
    outer += [sites * sign + shift for sign, shift in (([1, -1], [0, 2 * radius]), ([1, -1], [0, -2 * radius]))]
    diagram = Voronoi(np.concatenate([sites, *outer]))
    rings = [diagram.vertices[diagram.regions[region]] for region in diagram.point_region[: len(sites)]]
    return [ring[np.argsort(np.arctan2(*(ring - ring.mean(axis=0)).T[::-1]))] for ring in rings]  # counterclockwise


def _center(ring: np.ndarray) -> np.ndarray:
    following = np.roll(ring, -1, axis=0)
    cross = ring[:, 0] * following[:, 1] - ring[:, 1] * following[:, 0]
    return ((ring + following) * cross[:, None]).sum(axis=0) / (3 * cross.sum())


# ---- the road network ---------------------------------------------------------------------------------------------


def _country(rows: int, columns: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return junctions on a bent lattice with many links missing, and a few hubs joined to all around them."""
    number = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    y, x = np.divmod(np.arange(rows * columns), columns)
    xy = np.stack([x, y], axis=1) + rng.uniform(-0.3, 0.3, (rows * columns, 2))
    brick = np.where((np.add(*np.indices((rows - 1, columns))) % 2).ravel(), 0.94, 0.30).astype(np.float32)  # mostly three-way
    pairs = np.concatenate([
        _thinned(number[:, :-1], number[:, 1:], 0.88, rng),
        _thinned(number[:-1], number[1:], brick, rng),
        _thinned(number[:-1, :-1], number[1:, 1:], 0.03, rng),
    ])  # fmt: skip
    pairs = _with_hubs(pairs, rows, columns, 1 + rows * columns // 20_000, rng)
    shore = np.floor(xy @ rng.normal(0, 1.6 / np.array([columns, rows])) + rng.random())  # land masses without a bridge
    pairs = pairs[shore[pairs[:, 0]] == shore[pairs[:, 1]]]
    for wavelength, slope in [(columns / 2.3, 0.45), (columns / 7.1, 0.45), (61.0, 0.4), (17.0, 0.3)]:
        xy = bent(xy, wavelength, slope, rng)
    return xy, pairs


def _with_hubs(pairs: np.ndarray, rows: int, columns: int, n_hubs: int, rng: np.random.Generator) -> np.ndarray:
    """Join a few junctions to all eight around them."""
    hub = np.unique(rng.integers(1, rows - 1, n_hubs) * columns + rng.integers(1, columns - 1, n_hubs))
    is_hub = np.zeros(rows * columns, dtype=bool)
    is_hub[hub] = True
    around = (np.array([[-1], [0], [1]]) * columns + [-1, 0, 1]).ravel()[[0, 1, 2, 3, 5, 6, 7, 8]]
    spokes = np.stack([np.repeat(hub, 8), (hub[:, None] + around).ravel()], axis=1).astype(np.int32)
    return np.concatenate([pairs[~is_hub[pairs].any(axis=1)], spokes])


def _thinned(sources: np.ndarray, targets: np.ndarray, share: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return pairs of nodes, each kept with a probability of `share`."""
    keep = rng.random(sources.size, dtype=np.float32) < share
    return np.stack([sources.ravel()[keep], targets.ravel()[keep]], axis=1)


def _bends_and_stubs(xy: np.ndarray, pairs: np.ndarray, n_nodes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Add nodes up to `n_nodes`: bends in the middle of roads, and short dead ends that start at some of the bends."""
    n_stubs = int(0.08 * n_nodes)
    n_bends = n_nodes - len(xy) - n_stubs
    which = rng.permutation(len(pairs))[:n_bends]
    bend = len(xy) + np.arange(n_bends, dtype=np.int32)
    stub = bend[:n_stubs] + np.int32(n_bends)
    middle = xy[pairs[which]].mean(axis=1) + rng.normal(0, 0.08, (n_bends, 2))
    tip = middle[:n_stubs] + rng.normal(0, 0.2, (n_stubs, 2))
    second = np.stack([bend, pairs[which, 1]], axis=1)
    pairs = pairs.copy()
    pairs[which, 1] = bend
    pairs = np.concatenate([pairs, second, np.stack([bend[:n_stubs], stub], axis=1)])
    return np.concatenate([xy, middle, tip]), pairs


def _file_order(xy: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the order of a real file: sheet after sheet, each surveyed in strips, with some nodes entered late."""
    sheet = np.floor(xy / 80).astype(np.int64)
    sheet -= sheet.min(axis=0)
    strip = np.floor(xy[:, 1] / 4)
    within = 20 * (strip % 20) + np.mod(xy[:, 0], 80) / 4
    late = rng.normal(0, 1.0, len(xy)) + 40 * (rng.random(len(xy)) < 0.02)
    return np.argsort((sheet[:, 1] * (sheet[:, 0].max() + 1) + sheet[:, 0]) * 400.0 + within + late, kind="stable")
