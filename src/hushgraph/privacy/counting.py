"""count_events: events become counts per node, or per node and time window, in which no unit weighs more than a proven bound.

A unit (person, vehicle, ...) draws a random key when it first appears. The key orders all cells (nodes, or pairs of node and
window); the unit keeps the first `max_cells` of those it visits, and at most `max_per_cell` events in each. So its contribution is
a function of its own events and its own key, of nothing else: not of the order of rows, not of other units. Adding or removing
one unit, the keys of the others fixed, changes the counts by a vector with at most `max_cells` entries of at most `max_per_cell`:

    sensitivity^2 = max_cells max_per_cell^2    (add-remove),    2 max_cells max_per_cell^2    (change-one),

the latter since both contributions are non-negative: |a - b|^2 <= |a|^2 + |b|^2. The guarantee holds for every value of the keys,
hence for random ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence, argument
from hushgraph._progress import counting_rows
from hushgraph._validation import as_array, checked_count
from hushgraph.graphs import Graph, as_graph
from hushgraph.privacy.bounding import Tally
from hushgraph.privacy.csv_format import CsvFormat
from hushgraph.privacy.event_rows import open_rows
from hushgraph.privacy.frozen import FrozenDict, frozen_array
from hushgraph.privacy.sensitivity import Adjacency, checked_caps, checked_neighbouring, checked_squared, squared_sensitivity
from hushgraph.privacy.windows import Windows

LARGEST_COUNT = 2**52
_CREATOR = object()  # known to `count_events` and `declare_counts` alone


@dataclass(frozen=True, eq=False, slots=True)
class CountMap:
    """Exact counts with the sensitivity they were made with; made by `count_events` and `declare_counts` only.

    Nothing in it can be changed: what a certificate says of the counts is what was done when they were made. The counts are private.
    Neither the text form nor any message shows them, and they can be neither pickled nor copied: `release` them.

    Parameters
    ----------
    counts : (n,) or (n, h) int64 array
        Private. Per node, or per node and time window.
    graph : Graph
        The public graph.
    sensitivity_squared : int or Fraction
        Exact square of the largest L2 distance between the counts of neighbouring data.
    adjacency : {"add-remove", "change-one"}
        Which data are neighbours.
    unit : str or None
        Whose events are bounded together.
    bound : {"enforced", "assumed"}
        Whether the sensitivity was enforced by counting or is the word of the caller.
    caps : dict
        What each unit was cut down to.
    windows : tuple or None
        The h + 1 edges of the time windows, as numbers or ISO 8601 text.
    rules : dict
        The public rules of the counting.
    unit_column : str or None
        The column of the ids.
    dataset : str or None
        The name of the data, if it was given; `release` then takes that data set's ledger only.
    creator : object
        Known to `count_events` and `declare_counts` alone; any other is refused.
    """

    counts: np.ndarray = field(repr=False)
    graph: Graph = field(repr=False)
    sensitivity_squared: int | Fraction
    adjacency: Adjacency
    unit: str | None
    bound: Literal["enforced", "assumed"]
    caps: dict[str, int]
    windows: tuple | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    unit_column: str | None = None
    dataset: str | None = None
    creator: InitVar[object] = None
    instead_pass: ClassVar[str] = (
        "what privacy.release() makes of them: exact counts are private"  # where plain numbers are expected
    )

    def __post_init__(self, creator: object) -> None:
        if creator is not _CREATOR:
            msg = (
                "a CountMap is made by count_events() and declare_counts() only: a certificate speaks for how it was counted; state "
                "the sensitivity of your own counts with declare_counts"
            )
            raise InputTypeError(msg)
        counts = frozen_array(np.asarray(self.counts, dtype=np.int64))
        for name, value in {"counts": counts, "caps": FrozenDict(self.caps), "rules": FrozenDict(self.rules)}.items():
            object.__setattr__(self, name, value)

    @property
    def sensitivity(self) -> float:
        """The smallest float whose exact square is at least `sensitivity_squared`."""
        root = math.sqrt(self.sensitivity_squared)
        while Fraction(root) ** 2 < self.sensitivity_squared:
            root = math.nextafter(root, math.inf)
        while Fraction(below := math.nextafter(root, 0.0)) ** 2 >= self.sensitivity_squared:
            root = below
        return root

    @property
    def graph_hash(self) -> str:
        """`Graph.hash` of the graph."""
        return self.graph.hash

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        msg = "exact counts are private and can be neither pickled nor copied; release them instead: hushgraph.privacy.release(...)"
        raise InputTypeError(msg)


def count_events(
    graph: Graph,
    events: Any,
    *,
    unit: str | None = None,
    unit_column: str | None = None,
    adjacency: Adjacency | None = None,
    max_nodes: int | None = None,
    max_per_node: int | None = None,
    lon: str | None = None,
    lat: str | None = None,
    x: str | None = None,
    y: str | None = None,
    crs: str | None = None,
    node: str | None = None,
    max_distance: float | None = None,
    far: Literal["drop", "keep"] | None = None,
    time: str | None = None,
    windows: Sequence | None = None,
    max_cells: int | None = None,
    max_per_cell: int | None = None,
    csv_format: CsvFormat | None = None,
    dataset: str | None = None,
    chunk_rows: int = 1_000_000,
    progress: Callable[[int], Any] | bool | None = None,
) -> CountMap:
    """Count events at the nodes of a graph so that each unit contributes at most a public bound.

    Rows without an id, without a place, at an unknown node, too far from every node or in no zone, outside all windows or without a time
    are dropped by these public rules, and so are lines of a text file that cannot be split into fields; nothing tells how many.

    Parameters
    ----------
    graph : Graph
        Public: its nodes are those of the map, whatever the events.
    events : DataFrame of pandas or polars, dict of columns, Arrow table, path of a .csv, .csv.gz or .parquet file, or iterable of these
        One row per event. Files and iterables are read in chunks, so they may be larger than memory. What a row means depends on
        that row alone, and different ids stay different: in text files ids are their exact bytes, numbers and times (ISO 8601)
        follow one grammar; in tables ids are text, bytes, UUIDs or numbers, compared exactly; a whole number and its decimal text are one id, 7 and "7".
        What pandas did when it read your file is not covered by the proof: pass the path, or read with dtype=str. The rules are in
        docs/privacy.md.
    unit : str, optional
        Whose events are bounded together (person, vehicle): the name that ledger and certificate use, and the column of their
        ids. Without it nothing is cut, and the bound is *assumed*, with a warning.
    unit_column : str, optional
        The column of the ids, if it is not named like the unit.
    adjacency : {"add-remove", "change-one"}
        Neighbouring data differ by one unit that is present or absent, or by one unit whose events change in any way.
    max_nodes, max_per_node : int
        At most so many nodes per unit, and so many of its events at each of them.
    lon, lat : str, optional
        Columns of degrees; the event counts at the nearest node, in a local projection about the graph's mean latitude. On a graph of
        zones (`Graph.from_polygons`) it counts in the zone that contains it, and is dropped if none does.
    x, y, crs : str, optional
        Columns of plane coordinates, and crs="planar" for the plane of graph.coords, or what pyproj understands. If no place is
        named, the columns node, lon and lat, longitude and latitude, or (planar graphs) x and y are used; or else the pickup places in
        New York's taxi files, pickup_longitude and pickup_latitude; on zones also zone, zone_id and PULocationID.
    node : str, optional
        Column of node labels, or labels of zones (node numbers when the graph has none; zones without labels are refused).
    max_distance : float, optional
        Events further than this from every node are dropped: metres, or units of the plane. Without it all are kept. Not for zones.
    far : {"drop", "keep"}, optional
        "drop" goes with max_distance; "keep" says that events count at their nearest node however far it is.
    time, windows : str and h + 1 increasing edges, optional
        The column may be left out if it is called time, or pickup_datetime, tpep_pickup_datetime or lpep_pickup_datetime as in New York's taxi files.
        Count per node and window [a, b), with `max_cells` and `max_per_cell` in place of max_nodes and max_per_node: one bound
        over the whole (n, h) map.
    max_cells, max_per_cell : int
        At most so many pairs of node and window per unit, and so many of its events in each.
    csv_format : CsvFormat, optional
        How .csv files are written, if not with commas, decimal points, ISO 8601 times and UTF-8. It is declared, never guessed.
    dataset : str, optional
        Name of the data. `release` then refuses the ledger of another data set.
    chunk_rows : int
        Rows in memory at a time, at most.
    progress : True or callable, optional
        True shows a bar, on a terminal or in a notebook. A function is called with the number of rows done after each chunk.

    Returns
    -------
    CountMap
        The private counts, with their sensitivity.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    >>> events = {"rider": ["ann", "ann", "bob", "ann"], "node": [0, 0, 2, 0]}
    >>> counts = count_events(graph, events, unit="rider", adjacency="add-remove", max_nodes=2, max_per_node=1)
    >>> counts.sensitivity_squared, counts.bound
    (2, 'enforced')
    >>> counts.counts
    array([1, 0, 1])
    """
    graph = as_graph(graph)
    form = checked_neighbouring(adjacency)
    chunk_rows = checked_count("chunk_rows", chunk_rows, 1)
    dataset = checked_dataset(dataset)
    reader = open_rows(
        graph, events, unit=unit, unit_column=unit_column, lon=lon, lat=lat, x=x, y=y, crs=crs, node=node,
        max_distance=max_distance, far=far, time=time, windows=windows, csv_format=csv_format,
    )  # fmt: skip
    slots = reader.windows
    caps = checked_caps(
        slots is not None, max_nodes=max_nodes, max_per_node=max_per_node, max_cells=max_cells, max_per_cell=max_per_cell
    )
    if unit is None:
        first, second = map(argument, caps)
        warnings.warn(Sentence(_ASSUMED, first, second), UserWarning, stacklevel=2)
    most, most_each = caps.values()
    tally, done = Tally(reader.n_cells, most, most_each), 0
    with counting_rows(progress) as report:
        for rows in reader.rows(chunk_rows):
            tally.add(rows.units, rows.cells)
            done += len(rows)
            report(done)
    counts = tally.counts()
    return CountMap(
        counts=counts if slots is None else counts.reshape(graph.n, len(slots)),
        graph=graph,
        sensitivity_squared=squared_sensitivity(most, most_each, form),
        adjacency=form,
        unit=unit,
        bound="assumed" if unit is None else "enforced",
        caps=caps,
        windows=None if slots is None else slots.edges,
        rules=reader.rules,
        unit_column=None if reader.codes is None else reader.codes.name,
        dataset=dataset,
        creator=_CREATOR,
    )


_ASSUMED = (
    "without {unit=} nothing bounds what one person or vehicle contributes: {} and {} are assumed to hold, not enforced, and the "
    "guarantee is only as good as that; pass {unit='...'}, the column that says whose event it is, to have them enforced"
)


# ---- counts that exist already ----------------------------------------------------------------------------------------


def declare_counts(
    graph: Graph,
    counts: Any,
    *,
    unit: str | None = None,
    adjacency: Adjacency | None = None,
    sensitivity: float | None = None,
    sensitivity_squared: int | Fraction | None = None,
    windows: Sequence | None = None,
    dataset: str | None = None,
) -> CountMap:
    """Return counts that were made elsewhere, with the sensitivity you vouch for: the bound is recorded as assumed.

    Parameters
    ----------
    graph : Graph
        Public: its nodes are those of the map.
    counts : (n,) or (n, h) whole numbers, or a Series, DataFrame or dict by node label
        Plain arrays go in node order. Two dimensions need `windows`.
    unit : str
        Whose presence or change the sensitivity is about: "person", say.
    adjacency : {"add-remove", "change-one"}
        See `count_events`.
    sensitivity, sensitivity_squared : number
        One of the two: the largest L2 distance between the counts of neighbouring data, or its exact square (3, where
        sqrt(3) would not fit into a float).
    windows : h + 1 increasing edges, optional
        Edges of the time windows that the columns are.
    dataset : str, optional
        Name of the data. `release` then refuses the ledger of another data set.

    Returns
    -------
    CountMap
        The private counts, with their sensitivity.

    Examples
    --------
    >>> import hushgraph as hg
    >>> graph = hg.Graph.from_edges([(0, 1), (1, 2)])
    >>> counts = declare_counts(graph, [4, 0, 7], unit="person", adjacency="add-remove", sensitivity_squared=3)
    >>> counts.sensitivity_squared, counts.bound
    (3, 'assumed')
    """
    form = checked_neighbouring(adjacency)
    if not isinstance(unit, str) or not unit.strip():
        expected = "in a word whom the sensitivity is about, 'person' or 'vehicle', say"
        raise InputTypeError.about(argument="unit", verb="say", expected=expected, got=type(unit).__name__)
    squared = checked_squared(sensitivity, sensitivity_squared)
    slots = None if windows is None else Windows(windows)
    graph = as_graph(graph)
    values = _whole_numbers(_in_node_order(graph, counts))
    shape = (graph.n,) if slots is None else (graph.n, len(slots))
    if values.shape != shape:
        hint = Sentence("pass {windows=}, the h + 1 edges of the h columns") if slots is None and values.ndim == 2 else ""
        text = Sentence("counts must have one row per node: expected {}, got {}", shape, values.shape)
        text = Sentence("{}; {}", text, hint) if hint else text
        raise InputError.about(argument="counts", verb="have", expected=f"shape {shape}", got=values.shape, hint=hint, text=text)
    return CountMap(
        counts=values,
        graph=graph,
        sensitivity_squared=squared.numerator if squared.denominator == 1 else squared,
        adjacency=form,
        unit=unit,
        bound="assumed",
        caps={},
        windows=None if slots is None else slots.edges,
        dataset=checked_dataset(dataset),
        creator=_CREATOR,
    )


def _in_node_order(graph: Graph, counts: Any) -> Any:
    """Return the values of a Series, DataFrame or dict in node order; plain arrays as they are. Labels stay out of errors."""
    if isinstance(counts, Mapping):
        given, values = list(counts), list(counts.values())
    elif hasattr(counts, "index") and hasattr(counts, "to_numpy"):
        given, values = list(counts.index), counts.to_numpy()
    else:
        return counts
    labels = list(range(graph.n)) if graph.labels is None else graph.labels.tolist()
    position = {label: i for i, label in enumerate(given)}
    if len(given) != graph.n or any(label not in position for label in labels):
        expected = "each node of the graph exactly once and nothing else"
        hint = "reindex them to graph.labels (0 where nothing was counted), or pass a plain array in node order"
        text = f"counts by label must have {expected}; {hint}"
        raise InputError.about(argument="counts", verb="have", expected=expected, hint=hint, text=text)
    return [values[position[label]] for label in labels]


def _whole_numbers(counts: Any) -> np.ndarray:
    """Return counts as int64, exactly."""
    masked = np.ma.is_masked(counts)
    values = np.asarray(None) if masked else as_array(counts, "counts")
    if masked or values.dtype.kind not in "iuf":
        got = "masked entries" if masked else f"dtype {values.dtype}"
        expected = "whole numbers in rows of equal length, without gaps"
        raise InputTypeError.about(argument="counts", expected=expected, got=got, hint="use integers, 0 for nothing")
    if values.dtype.kind == "f" and not (np.isfinite(values).all() and (values == np.trunc(values)).all()):
        got, hint = "fractions, NaN or infinite", "use 0 where nothing was counted"
        text = f"counts must be whole numbers; some are {got}; {hint}"
        raise InputError.about(argument="counts", expected="whole numbers", got=got, hint=hint, text=text)
    if values.size and (values.max() > LARGEST_COUNT or values.min() < -LARGEST_COUNT):
        expected = "at most 2^52 in size, so that they stay exact with noise on them"
        raise InputError.about(argument="counts", expected=expected, hint="count in larger units")
    return values.astype(np.int64)


# ---- checks -----------------------------------------------------------------------------------------------------------


def checked_dataset(dataset: Any) -> str | None:
    """Return the name of a data set, or None."""
    if dataset is not None and not (isinstance(dataset, str) and dataset.strip()):
        expected = "the name of the data, as its ledger has it"
        raise InputTypeError.about(argument="dataset", expected=expected, got=type(dataset).__name__)
    return dataset
