"""Values by label: from mappings, pandas, polars and pyarrow tables and xarray DataArrays to arrays in node order, and back.

Arrays of NumPy, CuPy and pyarrow, lists and polars Series have no labels: their rows go by position. No package is imported for this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph._extras import extra
from hushgraph._validation import checked_real_array, shown

if TYPE_CHECKING:
    from hushgraph.graphs.graph import Graph


def node_names(graph: Graph) -> list:
    """Return the labels of a graph, or its node numbers if it has no labels, as plain Python values."""
    return list(range(graph.n)) if graph.labels is None else graph.labels.tolist()


def by_label(name: str, labels: list, row_labels: list, values: np.ndarray) -> np.ndarray:
    """Return `values`, whose rows have the labels `row_labels`, in the order of `labels`; each label must occur exactly once."""
    position, nodes = {label: i for i, label in enumerate(row_labels)}, set(labels)
    absent, foreign = [x for x in labels if x not in position], [x for x in position if x not in nodes]
    if len(position) != len(row_labels):
        got, expected = f"{len(row_labels) - len(position)} repeated labels", "exactly one value"
        text = f"{name} has {got}; each node needs {expected}"
        raise InputError.about(argument=name, verb="have", expected=f"{expected} per node", got=got, text=text)
    if absent or foreign:
        rows = "; pass Y.T if signals are rows" if values.ndim == 2 and values.shape[1] == len(labels) else ""
        first = f" (first: {shown(foreign[0])})" if foreign else ""
        order = f"the numbers 0 to {len(labels) - 1}" if labels == list(range(len(labels))) else "graph.labels"
        got = f"{len(absent)} nodes have no value (first: {absent[:3]}), {len(foreign)} labels are not nodes{first}"
        hint = f"{_kinds(labels, foreign)}reindex {name} to {order}, or pass a plain array in node order{rows}"
        text = f"labels of {name} and graph differ: {got}; {hint}"
        raise InputError.about(argument=name, verb="have", expected="the labels of the graph", got=got, hint=hint, text=text)
    return values[[position[x] for x in labels]]


def _kinds(labels: list, foreign: list) -> str:
    """Return advice if the labels of a graph are integers and those given are text, or the other way round."""
    for kinds, names in (((Integral, str), ("integers", "text")), ((str, Integral), ("text", "integers"))):
        if foreign and all(isinstance(x, kinds[0]) for x in labels) and all(isinstance(x, kinds[1]) for x in foreign):
            return f"the graph has {names[0]}, these are {names[1]}: turn them into {names[0]}; "
    return ""


# columns that name the nodes in a table without an index; pandas writes the last one
NODE_COLUMNS = ("node", "id", "label", "__index_level_0__")


def is_labelled(values: Any) -> bool:
    """Return whether values may have labels for their rows; all others go by position."""
    return isinstance(values, Mapping) or _has_index(values) or _is_data_array(values) or _is_column_table(values)


def labels_and_values(name: str, values: Any) -> tuple[list | None, Any]:
    """Return (labels of the rows, or None if only their position counts; the values of the rows in their order).

    Examples
    --------
    >>> labels_and_values("signal", {"b": 2.0, "a": 1.0})
    (['b', 'a'], array([2., 1.]))
    >>> labels_and_values("signal", [2.0, 1.0])
    (None, [2.0, 1.0])
    """
    _refuse_unusable_kinds(name, values)
    if isinstance(values, Mapping):
        return list(values), checked_real_array(name, list(values.values()))
    if _has_index(values):
        return list(values.index), checked_real_array(name, _numbers_of(values))
    if _is_data_array(values):
        rows = values.transpose(_node_dimension(values), ...)
        return _dimension_labels(values), checked_real_array(name, rows.to_numpy())
    if _is_column_table(values):
        node, value_columns = _columns_of(name, values)
        columns = [checked_real_array(f"column {column!r} of {name}", np.asarray(values[column])) for column in value_columns]
        return np.asarray(values[node]).tolist(), np.stack(columns, axis=1)
    return None, values


def in_node_order(name: str, values: Any, nodes: list, *, one: bool = False) -> Any:
    """Return values with their rows in the order of `nodes`, by label if they have labels; unlabelled ones stay as they are.

    With `one`, a table with one column of values is one signal.
    """
    labels, rows = labels_and_values(name, values)
    ordered = rows if labels is None else by_label(name, nodes, labels, rows)
    return ordered[:, 0] if one and labels is not None and ordered.ndim == 2 and ordered.shape[1] == 1 else ordered


def in_form_of(model: Any, nodes: Callable[[], list], values: Any) -> Any:
    """Return values, whose rows are in the order of nodes(), in the form and order of `model`; a Mapping becomes a dict, arrays stay as they are.

    A polars Series has no labels, and goes by position.
    """
    if type(model).__module__.partition(".")[0] == "polars" and type(model).__name__ == "Series" and values.ndim == 1:
        return type(model)(model.name, values)  # without labels, so in its order
    if not is_labelled(model):
        return values
    labels, _ = labels_and_values("signal", model)
    place = {node: i for i, node in enumerate(nodes())}
    ordered = values if labels is None else values[[place[label] for label in labels]]
    if isinstance(model, Mapping):
        return dict(zip(model, ordered, strict=True))
    if _has_index(model):
        pandas = pandas_module()
        if values.ndim == 1:
            return pandas.Series(ordered, index=model.index, name=model.name)
        return pandas.DataFrame(ordered, index=model.index, columns=model.columns)
    if _is_data_array(model):
        return model.copy(data=np.moveaxis(ordered, 0, model.dims.index(_node_dimension(model))))
    node, value_columns = _columns_of("signal", model)
    columns = {node: model[node], **dict(zip(value_columns, ordered.T, strict=True))}
    return getattr(type(model), "from_pydict", type(model))(columns)


def is_missing(name: Any) -> bool:
    """Return whether a name in a table is missing: None, NaN, or pandas.NA and NaT.

    >>> is_missing(None), is_missing(float("nan")), is_missing("nan")
    (True, True, False)
    """
    return name is None or type(name).__name__ in ("NAType", "NaTType") or (isinstance(name, float) and bool(np.isnan(name)))


def pandas_module() -> Any:
    """Return pandas, or raise an error that names the extra."""
    return extra("pandas", name="pandas", purpose="a Series or DataFrame")


# ---- kinds of tables ------------------------------------------------------------------------------------------------


def _has_index(values: Any) -> bool:
    """Return whether values are a Series or DataFrame of pandas or of a similar package; in pyarrow `index` is a method."""
    kind = type(values)  # an object may have rows or coordinates of any name as its attributes
    return hasattr(kind, "to_numpy") and hasattr(kind, "index") and not callable(kind.index)


def _is_data_array(values: Any) -> bool:
    """Return whether values are an xarray DataArray."""
    kind = type(values)
    return hasattr(kind, "dims") and hasattr(kind, "indexes") and hasattr(kind, "to_numpy")


def _is_column_table(values: Any) -> bool:
    """Return whether values are a table without an index: a DataFrame of polars, a Table of pyarrow."""
    kind = type(values)
    return hasattr(kind, "column_names") or (hasattr(kind, "columns") and not hasattr(kind, "index"))


def _refuse_unusable_kinds(name: str, values: Any) -> None:
    """Refuse an xarray Dataset, a lazy polars frame, and a pandas frame that names nodes in a column."""
    kind = type(values).__name__
    if hasattr(type(values), "data_vars"):
        got, hint = f"a {kind} of {len(values.data_vars)} variables", f"pass one of them, {name}['...'], or {name}.to_dataframe()"
        raise InputTypeError.about(argument=name, expected="one variable", got=got, hint=hint, text=f"{name} is {got}; {hint}")
    if hasattr(type(values), "collect_schema") and not hasattr(type(values), "to_numpy"):
        hint = f"pass {name}.collect()"
        text = f"{name} is a {kind}, which holds no values yet; {hint}"
        raise InputTypeError.about(argument=name, expected="a table with values", got=f"a {kind}", hint=hint, text=text)
    if _has_index(values) and getattr(values, "ndim", 1) == 2 and "node" in list(values.columns):
        hint = f"pass {name}.set_index('node')"
        text = f"rows of a {kind} are matched by its index, and {name} names nodes in a column; {hint}"
        raise InputError.about(
            argument=name, verb="name", expected="nodes in its index", got="a column of them", hint=hint, text=text
        )


def _node_dimension(array: Any) -> Any:
    """Return the dimension "node", or the one along which a coordinate "node" lies, or the first."""
    return "node" if "node" in array.dims else array.node.dims[0] if _has_node_coordinate(array) else array.dims[0]


def _has_node_coordinate(array: Any) -> bool:
    """Return whether a DataArray has a coordinate "node" along one dimension."""
    return "node" in array.coords and array.coords["node"].ndim == 1


def _dimension_labels(array: Any) -> list | None:
    """Return the labels along the node dimension, or None if it has none."""
    if _has_node_coordinate(array):
        return array.coords["node"].to_numpy().tolist()
    dimension = _node_dimension(array)
    return list(array.indexes[dimension]) if dimension in array.indexes else None


def _columns_of(name: str, table: Any) -> tuple[str, list[str]]:
    """Return (the column that names the nodes, the others)."""
    columns = list(table.column_names if hasattr(type(table), "column_names") else table.columns)
    node_columns = [column for column in NODE_COLUMNS if column in columns]
    kind = f"{name} is a {type(table).__name__} with"
    if not node_columns or len(columns) < 2:
        names = " or ".join(map(repr, NODE_COLUMNS))
        expected = f"one that is called {names}, with the labels of the nodes, and at least one of values"
        got, hint = f"{len(columns)} columns", "rename it, or pass a plain array in node order"
        text = f"{kind} {got}; expected {expected}; {hint}"
        raise InputError.about(argument=name, verb="have", expected=f"a column, {expected}", got=got, hint=hint, text=text)
    if len(node_columns) > 1:
        got, hint = ", ".join(map(repr, node_columns)), "drop all but one, or rename one that is a signal"
        text = f"{kind} several columns that may name the nodes: {got}; {hint}"
        raise InputError.about(
            argument=name, verb="have", expected="one column that names the nodes", got=got, hint=hint, text=text
        )
    return node_columns[0], [column for column in columns if column != node_columns[0]]


def _numbers_of(table: Any) -> np.ndarray:
    """Return the values of a Series or DataFrame; nullable integers and floats of pandas may hold NA, which becomes NaN."""
    values = table.to_numpy()
    kinds = {getattr(dtype, "kind", "O") for dtype in (table.dtypes if table.ndim == 2 else [table.dtype])}
    return table.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype == object and kinds <= set("fiub") else values
