"""The plan of a generated city: straight streets that are bent at the end.

Districts are Voronoi cells; each carries a grid of its own angle and block size. The borders between districts, two
diagonals and two river banks are arterials. Every junction is a crossing of two streets, so one table (street, node) sorted
along the streets gives all edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import Voronoi, cKDTree

_SHORTEST, _LONGEST = 46.0, 340.0  # metres between junctions, before bending
_RIVER = 190.0  # metres from bank to bank


@dataclass(frozen=True)
class _Districts:
    centre: np.ndarray  # (cells, 2)
    axes: np.ndarray  # (cells, 2, 2): two unit vectors, the directions of its streets
    spacing: np.ndarray  # (cells, 2): metres between parallel streets, along each axis
    reach: np.ndarray  # (cells,): radius of a circle that covers the cell
    normal: np.ndarray  # (cells, sides, 2): the cell is where normal . x <= offset
    offset: np.ndarray  # (cells, sides), inf where there is no such side
    border: np.ndarray  # (cells, sides): number of the border behind each side
    ends: np.ndarray  # (borders, 2, 2): the two corners of each border
    corner: np.ndarray  # (borders, 2): their numbers


@dataclass(frozen=True)
class _Lines:
    cell: np.ndarray
    axis: np.ndarray  # the line is displaced along this axis of its district (0 or 1) and runs along the other
    shift: np.ndarray  # metres from the centre of the cell
    point: np.ndarray
    direction: np.ndarray
    span: np.ndarray  # (lines, 2): where it enters and leaves the cell
    border: np.ndarray  # (lines, 2): through which borders


@dataclass(frozen=True)
class _Avenues:
    normal: np.ndarray  # (4, 2): two diagonals, then the two banks of the river, as lines normal . x = offset
    offset: np.ndarray

    def direction(self) -> np.ndarray:
        return self.normal[:, ::-1] * [-1, 1]

    def wet(self, xy: np.ndarray) -> np.ndarray:
        across = xy @ self.normal[2]
        return (across > self.offset[2] + 1) & (across < self.offset[3] - 1)


def draw_city(n_nodes: int, radius: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and edges of the largest component of a city of about that size."""
    rng = np.random.default_rng(seed)
    avenues = _draw_avenues(radius, rng)
    districts = _draw_districts(max(5, round(n_nodes / 170)), radius, rng)
    lines = _draw_lines(districts, rng)
    xy, street, node, rank = _junctions(districts, lines, avenues, rng)
    border_direction = np.diff(districts.ends, axis=1)[:, 0]
    border_direction /= np.linalg.norm(border_direction, axis=1, keepdims=True)
    along = np.einsum("ij,ij->i", np.concatenate([lines.direction, border_direction, avenues.direction()])[street], xy[node])
    dry = ~avenues.wet(xy)[node]
    order = np.lexsort([along[dry], street[dry]])
    street, node = street[dry][order], _merge_close(xy, rank)[node[dry][order]]
    pairs, local = np.stack([node[:-1], node[1:]], axis=1), street[:-1] < len(lines.cell)
    same = (street[1:] == street[:-1]) & (pairs[:, 0] != pairs[:, 1])
    keep = _kept_streets(xy, pairs[same], local[same], avenues, radius, rng)
    xy, pairs = _add_dead_ends(xy, _dissolve(xy, pairs[same][keep]), 0.07, rng)
    xy, pairs = _largest_component(xy, pairs)
    return _bend(xy, radius, rng), pairs


def _draw_avenues(radius: float, rng: np.random.Generator) -> _Avenues:
    river = rng.uniform(0, np.pi)
    angle = np.array([river + 0.9, river + 2.1, river, river]) + rng.normal(0, 0.1, 4) * [1, 1, 0, 0]
    offset = radius * np.array([0.06, -0.12, 0.3, 0.3]) + [0, 0, -_RIVER / 2, _RIVER / 2]
    return _Avenues(np.stack([np.cos(angle), np.sin(angle)], axis=1), offset)


def _draw_districts(n_cells: int, radius: float, rng: np.random.Generator) -> _Districts:
    pitch = radius * np.sqrt(np.pi / n_cells)
    ticks = np.arange(-1.7 * radius, 1.7 * radius, pitch)
    seeds = np.stack(np.meshgrid(ticks, ticks), axis=2).reshape(-1, 2)
    seeds = seeds + rng.uniform(-0.42, 0.42, seeds.shape) * pitch
    angle = np.arctan2(seeds[:, 1], seeds[:, 0])
    phase = rng.uniform(0, 2 * np.pi, 3)
    outline = 1 + 0.10 * np.cos(2 * angle + phase[0]) + 0.05 * np.cos(3 * angle + phase[1]) + 0.03 * np.cos(5 * angle + phase[2])
    distance = np.linalg.norm(seeds, axis=1) / radius
    inside = distance < np.maximum(outline, distance.min() + 1e-9)
    turn = rng.normal(0, 0.12, len(seeds)) + rng.choice([0.0, 0.0, 0.35, -0.5, 0.75], len(seeds))
    across = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    size = 0.85 + 0.35 * distance[:, None] ** 1.5
    spacing = size * np.stack([rng.uniform(78, 105, len(seeds)), rng.uniform(95, 205, len(seeds))], axis=1)
    cells = Voronoi(seeds)
    return _cut_cells(cells, inside, np.stack([across, across[:, ::-1] * [-1, 1]], axis=1), spacing)


def _cut_cells(cells: Voronoi, inside: np.ndarray, axes: np.ndarray, spacing: np.ndarray) -> _Districts:
    """Return the cells inside the city as half-planes, one per side, padded to equally many."""
    ridge, corner = cells.ridge_points, np.array(cells.ridge_vertices)
    used = inside[ridge].any(axis=1) & (corner >= 0).all(axis=1)
    ridge, corner = ridge[used], corner[used]
    here = np.concatenate([ridge[:, 0], ridge[:, 1]])
    there, border = np.concatenate([ridge[:, 1], ridge[:, 0]]), np.tile(np.arange(len(ridge)), 2)
    order = np.argsort(here, kind="stable")
    here, there, border = here[order], there[order], border[order]
    slot = np.arange(len(here)) - np.searchsorted(here, here)
    normal, offset = np.zeros((len(inside), slot.max() + 1, 2)), np.full((len(inside), slot.max() + 1), np.inf)
    numbers, reach = np.zeros(offset.shape, dtype=np.int64), np.zeros(len(inside))
    step = cells.points[there] - cells.points[here]
    normal[here, slot] = step / np.linalg.norm(step, axis=1, keepdims=True)
    offset[here, slot] = np.einsum("ij,ij->i", normal[here, slot], (cells.points[there] + cells.points[here]) / 2)
    numbers[here, slot] = border
    ends = cells.vertices[corner]
    np.maximum.at(reach, here, np.linalg.norm(ends[border] - cells.points[here][:, None], axis=2).max(axis=1))
    kept = [part[inside] for part in (cells.points, axes, spacing, reach, normal, offset, numbers)]
    return _Districts(*[*kept, ends, corner])


def _draw_lines(districts: _Districts, rng: np.random.Generator) -> _Lines:
    """Return the parallel streets of every district along both axes, clipped to the district."""
    count = np.ceil(districts.reach[:, None] / districts.spacing).astype(int)
    cell, axis = np.divmod(np.repeat(np.arange(count.size), 2 * count.ravel() + 1), 2)
    first = np.searchsorted(2 * cell + axis, np.arange(count.size))
    place = np.arange(len(cell)) - first[2 * cell + axis] - count[cell, axis] + rng.uniform(-0.2, 0.2, len(cell))
    shift = place * districts.spacing[cell, axis]
    point = districts.centre[cell] + shift[:, None] * districts.axes[cell, axis]
    direction = districts.axes[cell, 1 - axis]
    slope = np.einsum("lsi,li->ls", districts.normal[cell], direction)
    reach = districts.offset[cell] - np.einsum("lsi,li->ls", districts.normal[cell], point)
    with np.errstate(divide="ignore", invalid="ignore"):
        enter = np.where(slope < 0, reach / slope, -np.inf)
        leave = np.where(slope > 0, reach / slope, np.inf)
    sides = np.stack([enter.argmax(axis=1), leave.argmin(axis=1)], axis=1)
    span = np.stack([enter.max(axis=1), leave.min(axis=1)], axis=1)
    keep = span[:, 1] - span[:, 0] > _SHORTEST
    border = districts.border[cell[:, None], sides]
    return _Lines(*(part[keep] for part in (cell, axis, shift, point, direction, span, border)))


def _junctions(
    districts: _Districts, lines: _Lines, avenues: _Avenues, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return all crossings: coordinates (nodes, 2), a table of (street, node), and the rank of the nodes' more important street."""
    n_lines, n_borders = len(lines.cell), len(districts.ends)
    number = np.arange(n_lines)
    tables = [_grid_crossings(districts, lines, rng)]
    for side in (0, 1):
        tables.append((lines.point + lines.span[:, side, None] * lines.direction, [number, n_lines + lines.border[:, side]], 1))
    for k in range(len(avenues.offset)):
        avenue = n_lines + n_borders + k
        hit = _hit(lines.point, lines.direction, lines.span, avenues, k)
        tables.append((hit[1], [number[hit[0]], np.full(len(hit[1]), avenue)], 2))
        step = np.diff(districts.ends, axis=1)[:, 0]
        hit = _hit(districts.ends[:, 0], step, np.tile([0.0, 1.0], (n_borders, 1)), avenues, k)
        tables.append((hit[1], [n_lines + hit[0], np.full(len(hit[1]), avenue)], 3))
    pair = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])  # the banks, 2 and 3, are parallel
    meet = np.linalg.solve(avenues.normal[pair], avenues.offset[pair][..., None])[..., 0]
    tables.append((meet, list(n_lines + n_borders + pair.T), 3))
    start = np.cumsum([0] + [len(xy) for xy, _, _ in tables])
    street = np.concatenate([part for _, streets, _ in tables for part in streets])
    node = np.concatenate([np.tile(np.arange(a, b), 2) for a, b in pairwise(start)])
    rank = np.repeat([rank for _, _, rank in tables], np.diff(start))
    _, first, corner = np.unique(districts.corner, return_index=True, return_inverse=True)
    xy = np.concatenate([xy for xy, _, _ in tables] + [districts.ends.reshape(-1, 2)[first]])
    street = np.concatenate([street, n_lines + np.repeat(np.arange(n_borders), 2)])
    node = np.concatenate([node, start[-1] + corner.ravel()])
    return xy, street, node, np.concatenate([rank, np.full(len(first), 3)])


def _hit(point: np.ndarray, direction: np.ndarray, span: np.ndarray, avenues: _Avenues, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lines that cross avenue k within their span, and the crossings."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (avenues.offset[k] - point @ avenues.normal[k]) / (direction @ avenues.normal[k])
    which = np.flatnonzero((t > span[:, 0]) & (t < span[:, 1]))
    return which, point[which] + t[which, None] * direction[which]


def _grid_crossings(districts: _Districts, lines: _Lines, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray], int]:
    """Return the crossings of the two families of each district, except inside its park."""
    key = 2 * lines.cell + lines.axis
    first = np.searchsorted(key, np.arange(2 * len(districts.centre) + 1))
    count = np.diff(first).reshape(-1, 2)
    cell = np.repeat(np.arange(len(count)), count.prod(axis=1))
    within = np.arange(len(cell)) - np.repeat(np.cumsum(count.prod(axis=1)) - count.prod(axis=1), count.prod(axis=1))
    i, j = np.divmod(within, count[cell, 1])
    a, b = first[2 * cell] + i, first[2 * cell + 1] + j
    u, v = lines.shift[a], lines.shift[b]
    keep = (v > lines.span[a, 0]) & (v < lines.span[a, 1])
    park = rng.uniform(0.12, 0.36, (len(count), 2)) * districts.reach[:, None] * (rng.random((len(count), 1)) < 0.12)
    keep &= ~((np.abs(u) < park[cell, 0]) & (np.abs(v) < park[cell, 1]))
    a, b = a[keep], b[keep]
    return lines.point[a] + lines.shift[b, None] * districts.axes[lines.cell[a], 1], [a, b], 0


def _merge_close(xy: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return for every node the node that it becomes: of two nearest neighbours that are too close, the more important stays."""
    target = np.arange(len(xy))
    alive = np.unique(cKDTree(xy, balanced_tree=False).query_pairs(_SHORTEST, output_type="ndarray"))
    for _ in range(6 * (len(alive) > 1)):
        distance, near = cKDTree(xy[alive], balanced_tree=False).query(xy[alive], k=2)
        near = near[:, 1]
        order = rank[alive] * len(xy) + alive
        loser = (near[near] == np.arange(len(alive))) & (distance[:, 1] < _SHORTEST) & (order < order[near])
        target[alive[loser]] = alive[near[loser]]
        alive = alive[~loser]
        if not loser.any() or len(alive) < 2:
            break
    while (target[target] != target).any():
        target = target[target]
    return target


def _kept_streets(
    xy: np.ndarray, pairs: np.ndarray, local: np.ndarray, avenues: _Avenues, radius: float, rng: np.random.Generator
) -> np.ndarray:
    """Return which streets are kept: not too long, not through water unless they are bridges, and fewer further out."""
    middle = (xy[pairs[:, 0]] + xy[pairs[:, 1]]) / 2
    length = np.linalg.norm(xy[pairs[:, 0]] - xy[pairs[:, 1]], axis=1)
    missing = 0.03 + 0.14 * (np.linalg.norm(middle, axis=1) / radius) ** 2
    wet = avenues.wet(middle) & (rng.random(len(pairs)) > 0.12)  # some local bridges
    return (length < _LONGEST) & (rng.random(len(pairs)) > missing * local) & ~(wet & local)


def _dissolve(xy: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return each edge once, without nodes in the middle of a straight street where nothing else begins."""
    key = np.sort(np.minimum(*pairs.T) * len(xy) + np.maximum(*pairs.T))
    pairs = np.stack(np.divmod(key[np.diff(key, prepend=-1) > 0], len(xy)), axis=1)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.searchsorted(both[:, 0], np.arange(len(xy) + 1))
    node = np.flatnonzero(np.diff(first) == 2)
    ends = both[first[node][:, None] + [0, 1], 1]
    arms = xy[ends] - xy[node][:, None]
    length = np.linalg.norm(arms, axis=2)
    straight = np.einsum("ij,ij->i", arms[:, 0], arms[:, 1]) < -0.95 * length.prod(axis=1)
    candidate = np.zeros(len(xy), dtype=bool)
    candidate[node[straight & (length.sum(axis=1) < _LONGEST)]] = True
    chosen = candidate[node] & ~(candidate[ends] & (ends < node[:, None])).any(axis=1)  # never two in a row
    gone = np.zeros(len(xy), dtype=bool)
    gone[node[chosen]] = True
    return np.concatenate([pairs[~gone[pairs].any(axis=1)], ends[chosen]])


def _add_dead_ends(xy: np.ndarray, pairs: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Add culs-de-sac that leave the middle of a street at a right angle, where the block has room."""
    step = xy[pairs[:, 1]] - xy[pairs[:, 0]]
    length = np.linalg.norm(step, axis=1)
    which = np.flatnonzero((rng.random(len(pairs)) < share) & (length > 2.1 * _SHORTEST))
    middle = (xy[pairs[:, 0]] + xy[pairs[:, 1]]) / 2
    side = step[which][:, ::-1] * [1, -1] * (rng.choice([-1, 1], len(which)) / length[which])[:, None]
    tip = middle[which] + side * rng.uniform(48, 62, len(which))[:, None]
    room = cKDTree(np.concatenate([xy, middle]), balanced_tree=False).query(tip)[0] > 44
    which, tip = which[room], tip[room]
    start = len(xy) + np.arange(len(which))
    halves = [np.stack([pairs[which, i], start], axis=1) for i in (0, 1)]
    stubs = np.stack([start, start + len(which)], axis=1)
    return np.concatenate([xy, middle[which], tip]), np.concatenate([np.delete(pairs, which, axis=0), *halves, stubs])


def _largest_component(xy: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    matrix = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(xy), len(xy)))
    label = csgraph.connected_components(matrix, directed=False)[1]
    keep = label == np.bincount(label).argmax()
    number = np.cumsum(keep) - 1
    return xy[keep], number[pairs[keep[pairs[:, 0]]]]


def _bend(xy: np.ndarray, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Bend straight streets: a slow bend of the whole city, a faster one of the quarters, and jitter."""
    xy = xy + rng.normal(0, 3.0, xy.shape)
    for wavelength, slope in [(3.0 * radius, 0.2), (1.2 * radius, 0.12), (1600.0, 0.09)]:
        xy = bent(xy, wavelength, slope, rng)
    return xy - xy.min(axis=0)


def bent(xy: np.ndarray, wavelength: float, slope: float, rng: np.random.Generator) -> np.ndarray:
    """Displace by one sine wave in each direction; `slope` is the largest change of displacement per distance."""
    turn = rng.uniform(0, 2 * np.pi)
    phase = 2 * np.pi * (xy @ [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) / wavelength
    phase += rng.uniform(0, 2 * np.pi, 2)
    return xy + slope * wavelength / (2 * np.pi) * np.sin(phase)[:, ::-1]
