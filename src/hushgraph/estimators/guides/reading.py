"""Guides as callers pass them: arrays, tables, dicts, noisy maps, releases and results, alone or in lists.

Noisy maps of one kind are combined by inverse variance, so that twelve months act as a year. Maps of one kind stand in one list, or
under one name of a dict; releases of different data sets are different kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

import numpy as np

from hushgraph._arrays import on_device, values_digest
from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph._validation import shown
from hushgraph.estimators.guides.draws import draw_marks
from hushgraph.estimators.harmonic import harmonic_values
from hushgraph.estimators.result import Denoised
from hushgraph.graphs import Graph, Noisy, is_labelled, labels_and_values, node_names

MOST_GUIDES = 100
FILL_ACCURACY = 1e-4
UNNAMED = {"release": "earlier release", "measurement": "noisy map", "simulation": "noisy map"}  # names of noisy maps without one
SAME_DRAW = (
    "the guide {} holds the noise of the values that are to be denoised: it is the same map, or was made from it. Guides must not "
    "share noise with them; pass maps of other days, places or kinds"
)


@dataclass(frozen=True, eq=False)
class Guide:
    """A public map on all nodes, without gaps, that helps to denoise another.

    Parameters
    ----------
    name : str
        What the map is called.
    values : (n,) array
        The map.
    sigma : float, optional
        The noise of the map, as long as it was not removed.
    made_from : str
        What it was made from, in words.
    digests : tuple of str
        SHA-256 of each map that was given.
    draws : frozenset of str
        Marks of the noisy maps that it depends on.
    """

    name: str
    values: np.ndarray = field(repr=False)
    sigma: float | None = None
    made_from: str = "a public map"
    digests: tuple[str, ...] = ()
    draws: frozenset[str] = frozenset()


def read_guides(graph: Graph, guides: Any, draws: frozenset[str] = frozenset()) -> list[Guide]:
    """Return the guides that a caller passes, or raise an InputError; those with a sigma are still noisy.

    Parameters
    ----------
    graph : Graph
        The graph of the signal.
    guides : array, table, mapping, Noisy, Denoised, or a list of these
        As in `denoise`.
    draws : frozenset of str
        Marks of the signal that is to be denoised; a guide with one of them is refused.

    Returns
    -------
    list of Guide
        One for each kind of map.
    """
    if isinstance(guides, list | tuple | Mapping) and not guides:
        return []
    return guides_of_maps(_maps(graph, guides, "guide"), draws)


def guides_of_maps(maps: Iterable[tuple[Kind | None, Guide]], draws: frozenset[str]) -> list[Guide]:
    """Return one guide for each kind of map; a map with one of the marks `draws` is refused."""
    kinds: dict[Hashable, list[Guide]] = {}
    for number, (kind, guide) in enumerate(maps):
        if guide.draws & draws:
            raise InputError(Sentence(SAME_DRAW, repr(guide.name)))
        kinds.setdefault(number if kind is None else kind, []).append(guide)
    if len(kinds) > MOST_GUIDES:
        msg = f"at most {MOST_GUIDES} guides can be weighed against each other; got {len(kinds)}: pass the most useful ones"
        raise InputError(msg)
    return _with_different_names([_mean_of_kind(members) for members in kinds.values()])


# ---- from what is passed to maps -----------------------------------------------------------------------------------


Kind = tuple[str, str, str | None]  # the name that was given, the kind of noisy map, its data set


def _maps(graph: Graph, given: Any, name: str) -> Iterator[tuple[Kind | None, Guide]]:
    """Yield every map of what was given under this name; noisy maps have a kind, and those of one kind are combined later."""
    if isinstance(given, Noisy):
        yield from _noisy_maps(graph, given, name)
    elif isinstance(given, Denoised):
        label = "denoised map" if name == "guide" else name
        for _, guide in _plain_maps(graph, given.on_host().signal, label):
            yield None, replace(guide, draws=guide.draws | given.draws, made_from="a denoised map")
    elif isinstance(given, Mapping) and not all(isinstance(value, Number) for value in given.values()):
        for key, value in given.items():
            yield from _maps(graph, value, str(key))
    elif isinstance(given, list | tuple) and not all(isinstance(one, Number) for one in given):
        for one in given:
            yield from _maps(graph, one, name)
    else:
        yield from _plain_maps(graph, given, name)


def _noisy_maps(graph: Graph, noisy: Noisy, name: str) -> Iterator[tuple[Kind, Guide]]:
    """Yield the columns of a noisy map, all of one kind, each with the noise level."""
    values, sigma = noisy.opened(graph)
    yield from maps_of_noisy(noisy, values, sigma, name)


def maps_of_noisy(noisy: Noisy, values: Any, sigma: float, name: str) -> Iterator[tuple[Kind, Guide]]:
    """Yield the columns of the values of a noisy map under this name, with its kind; "guide" stands for no name."""
    dataset = getattr(noisy, "dataset", None)
    title = (dataset or UNNAMED[noisy.kind]) if name == "guide" else name
    for column in np.asarray(values, dtype=np.float64).reshape(len(values), -1).T:
        yield (name, noisy.kind, dataset), Guide(title, column, sigma, digests=(values_digest(column),), draws=draw_marks(column))


def _plain_maps(graph: Graph, given: Any, name: str) -> Iterator[tuple[None, Guide]]:
    """Yield the columns of an array or a table; values that are missing are NaN."""
    if given is None or isinstance(given, str):
        expected = "an array, a table, a dict of name to map, a Noisy map, a Release, a Denoised result, or a list of these"
        raise InputTypeError.about(argument="guides", expected=expected, got=shown(given))
    if on_device(given):
        msg = "guides are used on the CPU only: {pass cupy.asnumpy(guide)}"
        raise InputError(Sentence(msg))
    values = graph.aligned(name, _with_gaps(graph, name, given) if is_labelled(given) else given, missing_ok=True)
    columns = values.astype(np.float64).reshape(graph.n, -1).T
    for column, title in zip(columns, _titles(given, name, len(columns)), strict=True):
        yield None, Guide(title, column, digests=(values_digest(column),), draws=draw_marks(column))


def _with_gaps(graph: Graph, name: str, given: Any) -> Any:
    """Return labelled values in node order, with NaN for nodes that have no row; other labels than the graph's are an error."""
    labels, values = labels_and_values(name, given)
    if labels is None:
        return values
    nodes, known = node_names(graph), set(labels)
    absent = [node for node in nodes if node not in known]
    if not absent or len(known) < len(labels):
        return given  # complete, or with labels given twice, which `aligned` refuses
    foreign = len(known - set(nodes))
    if foreign:
        msg = f"{foreign:,} of the {len(labels):,} labels of {name} are no nodes of the graph; keep the rows of its nodes only"
        raise InputError(msg)
    values = np.asarray(values, dtype=np.float64)
    place = {label: row for row, label in enumerate(labels)}
    rows = np.array([place.get(node, -1) for node in nodes])
    gaps = np.full((len(nodes), *values.shape[1:]), np.nan)
    gaps[rows >= 0] = values[rows[rows >= 0]]
    return gaps


def _titles(given: Any, name: str, count: int) -> list[str]:
    """Return the names of the columns: those of a table, else the name with a number."""
    columns = getattr(given, "columns", None)
    if columns is not None and len(columns) == count:
        return [str(column) for column in columns]
    own = getattr(given, "name", None)
    title = own if name == "guide" and isinstance(own, str) and own else name
    return [title] if count == 1 else [f"{title} {k + 1}" for k in range(count)]


# ---- from maps to guides -------------------------------------------------------------------------------------------


def _mean_of_kind(members: list[Guide]) -> Guide:
    """Return the mean of noisy maps of one kind, weighted by inverse variance; a map without noise is the only one of its kind."""
    first, count = members[0], len(members)
    if first.sigma is None:
        return first
    precision = np.array([1 / member.sigma**2 for member in members if member.sigma is not None])
    sigma = float(precision.sum() ** -0.5) if count > 1 else first.sigma
    shares = precision / precision.sum()
    many = f"{count} noisy maps, combined" if count > 1 else "a noisy map"
    return Guide(
        name=f"{count} {first.name}s" if count > 1 and first.name in UNNAMED.values() else first.name,
        values=np.asarray(sum(share * member.values for share, member in zip(shares, members, strict=True))),
        sigma=sigma,
        made_from=f"{many} (noise {sigma:.4g}) and denoised",
        digests=tuple(digest for member in members for digest in member.digests),
        draws=frozenset().union(*(member.draws for member in members)),
    )


def _with_different_names(guides: list[Guide]) -> list[Guide]:
    """Return the guides with a number after names that are there already."""
    names: Counter[str] = Counter()
    different = []
    for guide in guides:
        names[guide.name] += 1
        different.append(guide if names[guide.name] == 1 else replace(guide, name=f"{guide.name} {names[guide.name]}"))
    return different


def without_gaps(graph: Graph, values: np.ndarray, name: str) -> np.ndarray:
    """Return the map with harmonic values where it has gaps, and its mean in components without any value."""
    known = ~np.isnan(values)
    if known.all():
        return values
    if not known.any():
        msg = f"the guide {name!r} has no value at any node; leave it out"
        raise InputError(msg)
    whole = values.copy()
    whole[~known] = harmonic_values(graph, values, known, accuracy=FILL_ACCURACY)
    return np.where(np.isnan(whole), whole[known].mean(), whole)
