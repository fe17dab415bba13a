"""`read_signal` and `write_signal`: values on nodes in text, parquet and npy files.

A table may have a column of labels; the reader finds it by its name or by its values. Each row is matched to its node by label.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hushgraph._atomic import atomic_open
from hushgraph._errors import InputError, Sentence
from hushgraph._validation import columns_in_words, first_of, is_number, shown
from hushgraph.files.edge_list import quoted, write_lines
from hushgraph.files.features import FEATURE_ENDINGS, write_features
from hushgraph.files.formats import DELIMITERS, SIGNAL_ENDINGS, format_of
from hushgraph.files.npy import array_of
from hushgraph.files.parquet import arrow
from hushgraph.files.tables import PANDAS_INDEX, WHOLE, Table, label_of, parquet_table, text_table
from hushgraph.files.text import all_bytes, existing_file
from hushgraph.graphs import PLACES, Graph, as_graph, is_integer, label_kind, node_names, signal_columns

_SAMPLE = 200  # rows that show whether a column may hold the labels


class NamedSignal(NamedTuple):
    """Values (n, m) in node order, the names of their columns, and the columns of numbers that were left out by default."""

    values: np.ndarray
    names: list[str]
    left_out: list[str]


def read_table(
    path: Path, delimiter: str | None, graph: Graph, *, columns: str | Sequence[str] | None, label: str | None, missing_ok: bool
) -> NamedSignal:
    """Return values by label from a text table, or from parquet without a delimiter; the parameters are those of `read_signal`."""
    nodes, integers = node_names(graph), graph.labels is None or graph.labels.dtype.kind != "U"
    table = parquet_table(path, integers) if delimiter is None else text_table(path, delimiter, integers)
    chosen = [columns] if isinstance(columns, str) else columns if columns is None else list(columns)
    key = label if label is not None else _label_column(table, chosen, nodes, missing_ok)
    taken, left_out = (chosen, []) if chosen is not None else _signals_among(
        [name for name in table.names if name != key and name not in table.row_names]
    )  # fmt: skip
    for name in [key, *taken]:
        if table.names.count(name) > 1 and _is_headless(table, table.names[0], set(nodes), {}):
            raise InputError(_no_names(path))
        if table.names.count(name) != 1:
            msg = "{} must have one column {}; {}; say {columns=} and {label=}"
            raise InputError(Sentence(msg, path, shown(name), columns_in_words(table.names, name)))
    if not taken:
        msg = "{} has no column of values beside the labels; {}; say {columns=} and {label=}"
        raise InputError(Sentence(msg, path, columns_in_words(table.names)))
    given, values = table.read(key, taken)
    rows = _rows_of(table, key, given, nodes, missing_ok)
    return NamedSignal(np.concatenate([values, np.full((1, len(taken)), np.nan)])[rows], taken, left_out)


# ---- which columns --------------------------------------------------------------------------------------------------


def _signals_among(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the columns that are signals, and those that accompany them: coordinates, expected errors, and the ends of intervals.

    Ends of intervals are accompanied by each other: `lower` and `upper`, or `a_lower` and `a_upper` beside `a`, as hushgraph writes them.
    """
    companions = {name for places in PLACES if set(places) <= set(names) for name in places}
    companions |= {name for name in names if name == "expected_error" or name.endswith("_expected_error")}
    ends = [("lower", "upper"), *((f"{name}_lower", f"{name}_upper") for name in names)]
    companions |= {name for pair in ends if set(pair) <= set(names) for name in pair}
    signals = [name for name in names if name not in companions]
    return (signals, [name for name in names if name in companions]) if signals else (names, [])


def _label_column(table: Table, chosen: list[str] | None, nodes: list, missing_ok: bool) -> Any:
    """Return the column of labels: "node"; or the index of pandas, unless only another column fits the graph; or the first."""
    if "node" in table.names:
        return "node"
    index = [name for name in table.row_names if name not in (chosen or ())]
    if not index:
        return next(iter(table.names), None)
    others = [name for name in table.names if name not in table.row_names and name not in (chosen or ())]
    if chosen is None and len(others) < 2:
        others = []  # one column must remain as the signal
    known = set(nodes)
    samples = table.labels([*index, *others], _SAMPLE)
    likely = [name for name, sample in samples.items() if known.issuperset(sample)]
    whole = table.labels(likely, None)
    fitting = [name for name in likely if _fits(whole[name], known, missing_ok)]
    named = [name for name in fitting if name in index and name not in PANDAS_INDEX and not name.startswith("__index_level_")]
    if not named and any(whole[name] != whole[fitting[0]] for name in fitting):
        msg = "{} has several columns that fit the labels of the graph: {}; say {label=}"
        raise InputError(Sentence(msg, table.path, first_of(fitting)))
    if named or fitting:
        return (named or fitting)[0]
    return max(samples, key=lambda name: sum(one in known for one in samples[name]), default=index[0])


def _fits(given: list, known: set, missing_ok: bool) -> bool:
    return len(set(given)) == len(given) and known.issuperset(given) and (missing_ok or len(given) == len(known))


# ---- which rows -----------------------------------------------------------------------------------------------------


def _rows_of(table: Table, key: str, given: list, nodes: list, missing_ok: bool) -> list[int]:
    """Return the row of each node, -1 for a node without a row if `missing_ok`."""
    row = {name: i for i, name in enumerate(given)}
    if len(row) < len(given):
        twice = list(dict.fromkeys(name for i, name in enumerate(given) if row[name] != i))
        msg = "{} has {} labels more than once (first: {}); each node needs exactly one row; {}"
        raise InputError(Sentence(msg, table.path, len(twice), first_of(twice), _advice(table, key, twice, set(nodes))))
    known = set(nodes)
    absent, foreign = [name for name in nodes if name not in row], [name for name in given if name not in known]
    if (absent or foreign) and _is_headless(table, key, known, row):
        raise InputError(_no_names(table.path))
    if foreign or (absent and not missing_ok):
        msg = "labels of {} and graph differ: {} nodes have no row (first: {}), {} rows are of no node (first: {}); {}"
        advice = _advice(table, key, foreign, known)
        raise InputError(Sentence(msg, table.path, len(absent), first_of(absent), len(foreign), first_of(foreign), advice))
    return [row.get(name, -1) for name in nodes]


def _no_names(path: Path) -> str:
    return f"the first line of {path} must name the columns; it looks like a row of values; put a line such as node,value before it"


def _is_headless(table: Table, key: str, known: set, row: dict) -> bool:
    """Whether the names of columns are a node and its values, and this node has no other row."""
    label = label_of(key, not isinstance(next(iter(known), 0), str))
    others = [name for name in table.names if name != key]
    return label not in row and (label in known or is_number(key)) and bool(others) and all(map(is_number, others))


def _advice(table: Table, key: str, foreign: list, known: set) -> str:
    """Return the advice for labels that do not match, or for missing rows if there are no such labels."""
    if not foreign:
        return Sentence("add their rows, or let them be missing: {missing_ok=True}")
    others = [name for name in table.names if name != key and table.names.count(name) == 1]
    fitting = [name for name, sample in table.labels(others, _SAMPLE).items() if sample and _fits(sample, known, True)]
    if fitting:
        return Sentence("column {!r} fits the graph: say {label=}{!r}", fitting[0], fitting[0])
    text = isinstance(next(iter(known), 0), str)
    if all(isinstance(name, int) for name in foreign) and text:
        return "the file has integers and the graph has text: store them as text"
    if not text and all(isinstance(name, str) and is_integer(name) for name in foreign):
        return "the file has text and the graph has integers: store them as integers"
    if text and all((whole := WHOLE.fullmatch(str(name))) and whole[1] in known for name in foreign):
        return "they were written as floats: store them without the .0, as integers or text"
    return Sentence("check that it belongs to this graph, and {label=}")


# ---- signals --------------------------------------------------------------------------------------------------------


def read_signal(
    path: str | Path,
    graph: Graph,
    *,
    columns: str | Sequence[str] | None = None,
    label: str | None = None,
    missing_ok: bool = False,
) -> np.ndarray:
    """Return the values in a file on the nodes of a graph, in node order.

    In tables (.csv, .tsv, .parquet) the rows may have any order: they are matched to `graph.labels`, or to 0 to n - 1 in a graph without
    labels; every node needs exactly one row. An .npy file has no labels: row i belongs to node i, and there must be n rows. Empty cells
    and NaN are missing values and stay NaN. All files may end in .gz. In a .csv file semicolons or tabs may separate the columns if its
    first line has no comma; then numbers may have decimal commas.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv, .parquet or .npy file.
    graph : Graph
        The graph of the signal.
    columns : str or list of str, optional
        Columns to read: the result has shape (n,) for a name and (n, m) for a list. By default all columns but the labels, the index of
        pandas, x and y, lon and lat, those whose names end in expected_error, and the ends of intervals: lower and upper, or a_lower
        and a_upper of a column a; the shape is then (n,) if this is one column.
    label : str, optional
        Column with the labels. By default "node" if there is one; otherwise the index of pandas, or the column that fits the graph
        if the index does not; otherwise the first column.
    missing_ok : bool
        Whether nodes without a row are missing values; otherwise they are an error.

    Returns
    -------
    ndarray
        Float64 of shape (n,), or (n, m) for several columns.

    Raises
    ------
    InputError
        A ValueError, if the file is damaged or its labels are not those of the graph.
    NoFileError
        A FileNotFoundError, if there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], labels=["elm", "oak", "ash"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "counts.csv"
    ...     _ = path.write_text("node,count\\nash,3\\nelm,1.5\\noak,\\n")
    ...     read_signal(path, graph)
    array([1.5, nan, 3. ])
    """
    return read_named_signal(path, graph, columns=columns, label=label, missing_ok=missing_ok).values


def read_named_signal(
    path: str | Path,
    graph: Graph,
    *,
    columns: str | Sequence[str] | None = None,
    label: str | None = None,
    missing_ok: bool = False,
) -> NamedSignal:
    """Return what `read_signal` returns with the names of the columns, which an .npy file does not have, and of those left out."""
    path, graph = existing_file(path, "the signal"), as_graph(graph)
    kind = signal_format(path)
    if kind == "npy":
        if columns is not None or label is not None:
            raise InputError(
                Sentence("{} has no columns with names; leave {columns=} and {label=} out, or use .csv or .parquet", path)
            )
        signal = NamedSignal(_read_npy(path, graph.n), [], [])
    else:
        label_kind(graph.labels, f"{path.name}, a table,")
        signal = read_table(path, DELIMITERS.get(kind), graph, columns=columns, label=label, missing_ok=missing_ok)
        if isinstance(columns, str) or (columns is None and len(signal.names) == 1):
            signal = signal._replace(values=signal.values[:, 0])
    if np.isinf(signal.values).any():
        msg = f"{path} has {int(np.isinf(signal.values).sum())} infinite values; write missing ones as empty cells"
        raise InputError(msg)
    return signal


def signal_format(path: str | Path, *, writing: bool = False) -> str:
    """Return the format that the name of a file with signals ends in, one of those that are read or written; otherwise raise an error."""
    sheet = Path(path).suffix.lower() in (".xlsx", ".xls", ".ods")
    advice = "sheets are neither read nor written: in Excel, save as CSV UTF-8" if sheet else "rename it"
    return format_of(Path(path), SIGNAL_ENDINGS | (FEATURE_ENDINGS if writing else {}), None, advice=advice)


def _read_npy(path: Path, n: int) -> np.ndarray:
    content, values = all_bytes(path).getvalue(), None
    with suppress(ValueError):
        values = array_of(content)
    if values is None or values.dtype.kind not in "fiub":
        msg = f"{path} must be a whole .npy file of real numbers; it is truncated or something else"
        raise InputError(msg)
    if values.ndim not in (1, 2) or len(values) != n or values.size == 0 < n:
        msg = f"{path} needs one row per node: expected ({n},) or ({n}, m), got {values.shape}"
        raise InputError(msg)
    with np.errstate(over="ignore"):
        return values.astype(np.float64)


def write_signal(path: str | Path, graph: Graph, values: Any) -> Path:
    """Write values on the nodes as .csv, .tsv, .parquet or .npy, each also with .gz, or as a layer of a map: .geojson or .gpkg.

    `read_signal` returns the same values from the first four. A layer has a point for each node, or the polygons of a zone; .gpkg needs the
    extra geopandas.

    `read_signal` leaves columns called x and y, lon and lat, expected_error or lower and upper out unless their names are given.

    Parameters
    ----------
    path : str or Path
        The file to write; its name says the format. An existing file is replaced when the new one is complete.
    graph : Graph
        The graph of the signal.
    values : array_like of shape (n,), or dict of str to array_like
        One signal, which gets the column name "value", or signals by name. Tables have a column "node" with the labels, or with
        0 to n - 1 for a graph without labels. NaN becomes an empty cell. An .npy file has no names: several signals become its columns.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], labels=["elm", "oak", "ash"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_signal(Path(folder) / "counts.csv", graph, {"count": [1, 2.5, float("nan")]}).read_text())
    node,count
    elm,1.0
    oak,2.5
    ash,
    <BLANKLINE>
    """
    path, graph = Path(path), as_graph(graph)
    kind = signal_format(path, writing=True)
    columns = signal_columns(graph, values, name="value")
    if not columns or "node" in columns:
        expected = "one value per node, or a dict of names other than 'node'"
        raise InputError.about(argument="values", expected=expected, got=shown(values))
    if kind in FEATURE_ENDINGS.values():
        return write_features(path, graph, columns)
    table = np.stack(list(columns.values()), axis=1).astype(np.float64)
    if kind != "npy":
        label_kind(graph.labels, f"{path.name}, a table,")
    with atomic_open(path) as file:
        if kind == "npy":
            content = io.BytesIO()
            np.save(content, table[:, 0] if len(columns) == 1 else table)
            file.write(content.getvalue())
        elif kind == "parquet":
            _write_parquet_table(file, graph, columns)
        else:
            _write_text_table(file, graph, list(columns), table, DELIMITERS[kind] or ",")
    return path


def write_rows(path: Path, graph: Graph, columns: Mapping[str, Any], *, nodes: np.ndarray | None = None) -> None:
    """Write a .parquet file with several rows for a node: its label, its place and the columns, which may be texts."""
    names = ("lon", "lat") if graph.crs == "lonlat" else ("x", "y", "z")
    places = {} if graph.coords is None else dict(zip(names, graph.coords.T, strict=False))
    rows = slice(None) if nodes is None else nodes
    with atomic_open(path) as file:
        _write_parquet_table(file, graph, {name: place[rows] for name, place in places.items()} | dict(columns), rows)


def _write_parquet_table(file: BinaryIO, graph: Graph, columns: Mapping[str, Any], rows: Any = slice(None)) -> None:
    pyarrow, parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
    names = (np.arange(graph.n) if graph.labels is None else graph.labels)[rows]
    parquet.write_table(pyarrow.table({"node": names} | {name: pyarrow.array(values) for name, values in columns.items()}), file)


def _write_text_table(file: BinaryIO, graph: Graph, names: list[str], table: np.ndarray, delimiter: str) -> None:
    labels = list(map(str, node_names(graph)))
    if graph.labels is not None and graph.labels.dtype.kind == "U":
        labels = [quoted(name, delimiter) for name in labels]
    write_lines(file, [delimiter.join(["node", *(quoted(name, delimiter) for name in names)])])
    for start in range(0, graph.n, 100_000):
        rows = zip(labels[start : start + 100_000], table[start : start + 100_000].tolist(), strict=True)
        write_lines(file, [delimiter.join([name, *("" if x != x else repr(x) for x in row)]) for name, row in rows])
