"""Names for the streets of a generated city. They have random numbers of their own, so that the city is the same with and without."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from hushgraph.graphs import CodedTexts, NodeNames

_STRAIGHT = -0.85  # cosine between two edges of one street at a junction, at most
_WORDS = (
    "Birch", "Cedar", "Maple", "Willow", "Linden", "Poplar", "Hazel", "Alder", "Juniper", "Laurel", "Chestnut", "Walnut", "Cherry", "Holly",
    "Rowan", "Aspen", "Spruce", "Magnolia", "Acacia", "Sycamore", "Heron", "Swallow", "Falcon", "Lark", "Mill", "Market", "Chapel", "Harbour",
    "Station", "Garden", "Orchard", "Meadow", "Quarry", "Foundry", "Lantern", "Copper", "Silver", "Amber", "Granite", "River",
)  # fmt: skip
_MIDDLE = ("", " Hill", " Park", " Gate", " Field", " Bridge", " Wood", " Green")
_AVENUES, _LANES = ("Av", "Rd", "Blvd"), ("Ln", "Ct", "Pl")


def street_names(xy: np.ndarray, pairs: np.ndarray, *, seed: int) -> NodeNames:
    """Return the names of the streets at each junction: "4 St" for streets that run from west to east, "Birch Av" for others.

    A street is a chain of edges that go straight on at every junction. Dead ends are lanes and courts.
    """
    street = _chains(xy, pairs)
    middle = (xy[pairs[:, 0]] + xy[pairs[:, 1]]) / 2
    step = np.abs(xy[pairs[:, 1]] - xy[pairs[:, 0]])
    edges = np.bincount(street)
    is_flat = np.bincount(street, weights=step[:, 0]) > np.bincount(street, weights=step[:, 1])
    is_short = edges < 2
    height = np.bincount(street, weights=middle[:, 1]) / edges
    numbered = np.flatnonzero(is_flat & ~is_short)
    texts = np.empty(len(edges), dtype=object)
    texts[numbered[np.argsort(height[numbered], kind="stable")]] = [f"{k} St" for k in range(1, len(numbered) + 1)]
    rng = np.random.default_rng([seed, 0x57])
    for chosen, endings in ((~is_flat & ~is_short, _AVENUES), (is_short, _LANES)):
        texts[chosen] = _worded(int(chosen.sum()), endings, rng)
    named = NodeNames.of_streets(pairs, len(xy), CodedTexts(street, texts.tolist()))
    assert named is not None
    return named


def _chains(xy: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the number of the street of each edge; at a junction the two edges that are straightest are one street, then the next two."""
    m = len(pairs)
    node, edge = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.tile(np.arange(m), 2)
    arm = np.concatenate([xy[pairs[:, 1]] - xy[pairs[:, 0]], xy[pairs[:, 0]] - xy[pairs[:, 1]]])
    arm = arm / np.maximum(np.linalg.norm(arm, axis=1, keepdims=True), 1e-9)
    order = np.argsort(node, kind="stable")
    node, edge, arm = node[order], edge[order], arm[order]
    links = []
    for hop in range(1, int(np.bincount(node).max())):  # all pairs of edges at one junction
        first = np.flatnonzero(node[:-hop] == node[hop:])
        links.append(np.stack([first, first + hop], axis=1))
    both = np.concatenate(links)
    cosine = np.einsum("ij,ij->i", arm[both[:, 0]], arm[both[:, 1]])
    both = both[cosine < _STRAIGHT][np.argsort(cosine[cosine < _STRAIGHT], kind="stable")]
    taken = np.full(2 * m, len(both))  # each end of an edge goes on in one other at most: the straightest
    for side in (0, 1):
        np.minimum.at(taken, both[:, side], np.arange(len(both)))
    both = both[(taken[both] == np.arange(len(both))[:, None]).all(axis=1)]
    joined = sparse.coo_array((np.ones(len(both)), (edge[both[:, 0]], edge[both[:, 1]])), shape=(m, m))
    return csgraph.connected_components(joined, directed=False)[1]


def _worded(count: int, endings: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    """Return that many different names of words; the plain ones are used first, and large cities have several of a kind."""
    names = [f"{word}{middle} {ending}" for middle in _MIDDLE for ending in endings for word in _WORDS]
    names += [f"{name} {k}" for k in range(2, -(-count // len(names)) + 1) for name in names]
    block = len(_WORDS) * len(endings)
    chosen = [str(name) for start in range(0, len(names), block) for name in rng.permutation(names[start : start + block])]
    return chosen[:count]
