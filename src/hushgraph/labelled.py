"""Values by label: what names the rows of mappings, tables of pandas, polars, pyarrow and of DataArrays of xarray; and back to their form.

Arrays of NumPy, CuPy and pyarrow, lists and Series of polars have no names and go by position. No package is imported for this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph.checks import by_label, checked_real_array
from hushgraph.contents import extra

NODE_COLUMNS = (
    "node",
    "id",
    "label",
    "__index_level_0__",
)  # that name the nodes in a table without an index; the last is pandas' own


def is_labelled(values) -> bool:
    """Whether values may name their rows; all others go by position."""
    return isinstance(values, Mapping) or _has_index(values) or _is_data_array(values) or _is_column_table(values)


def labels_and_values(name: str, values) -> tuple[list | None, Any]:
    """(labels of the rows, or None where only their position counts; the values of the rows in their order).

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
        node, others = _columns_of(name, values)
        columns = [checked_real_array(f"column {column!r} of {name}", np.asarray(values[column])) for column in others]
        return np.asarray(values[node]).tolist(), np.stack(columns, axis=1)
    return None, values


def in_node_order(name: str, values, nodes: list, *, one: bool = False) -> Any:
    """Values with their rows in the order of `nodes`, by label where they have labels; unlabelled ones stay as they are.

    Where `one` signal is expected, a table with one column of values is one.
    """
    labels, rows = labels_and_values(name, values)
    ordered = rows if labels is None else by_label(name, nodes, labels, rows)
    return ordered[:, 0] if one and labels is not None and ordered.ndim == 2 and ordered.shape[1] == 1 else ordered


def in_form_of(model, nodes: Callable[[], list], values) -> Any:
    """Values in the order of nodes() in the form and order of `model`; a Mapping becomes a dict, arrays stay as they are."""
    if not is_labelled(model):
        return values
    labels, _ = labels_and_values("signal", model)
    place = {node: i for i, node in enumerate(nodes())}
    ordered = values if labels is None else values[[place[label] for label in labels]]
    if isinstance(model, Mapping):
        return dict(zip(model, ordered, strict=True))
    if _has_index(model):
        pandas = pandas_module()
        own = {"name": model.name} if values.ndim == 1 else {"columns": model.columns}
        return (pandas.Series if values.ndim == 1 else pandas.DataFrame)(ordered, index=model.index, **own)
    if _is_data_array(model):
        return model.copy(data=np.moveaxis(ordered, 0, model.dims.index(_node_dimension(model))))
    node, others = _columns_of("signal", model)
    columns = {node: model[node], **dict(zip(others, ordered.T, strict=True))}
    return getattr(type(model), "from_pydict", type(model))(columns)


def pandas_module():
    return extra("pandas", name="pandas", purpose="a Series or DataFrame")


# ---- what there is --------------------------------------------------------------------------------------------------


def _has_index(values) -> bool:
    """Whether it is a Series or DataFrame of pandas or its kin; pyarrow has a method of the name index."""
    kind = type(values)  # an object may have rows or coordinates of any name as its attributes
    return hasattr(kind, "to_numpy") and hasattr(kind, "index") and not callable(kind.index)


def _is_data_array(values) -> bool:
    kind = type(values)
    return hasattr(kind, "dims") and hasattr(kind, "indexes") and hasattr(kind, "to_numpy")


def _is_column_table(values) -> bool:
    """Whether it is a table without an index: a DataFrame of polars, a Table of pyarrow."""
    kind = type(values)
    return hasattr(kind, "column_names") or (hasattr(kind, "columns") and not hasattr(kind, "index"))


def _refuse_unusable_kinds(name: str, values) -> None:
    kind = type(values).__name__
    if hasattr(type(values), "data_vars"):
        msg = f"{name} is a {kind} of {len(values.data_vars)} variables; pass one of them, {name}['...'], or {name}.to_dataframe()"
        raise InputTypeError(msg)
    if hasattr(type(values), "collect_schema") and not hasattr(type(values), "to_numpy"):
        msg = f"{name} is a {kind}, which holds no values yet; pass {name}.collect()"
        raise InputTypeError(msg)
    if _has_index(values) and getattr(values, "ndim", 1) == 2 and "node" in list(values.columns):
        msg = f"rows of a {kind} are matched by its index, and {name} names nodes in a column; pass {name}.set_index('node')"
        raise InputError(msg)


def _node_dimension(array) -> str:
    """The dimension "node", or the one along which a coordinate "node" lies, or the first."""
    return "node" if "node" in array.dims else array.node.dims[0] if _has_node_coordinate(array) else array.dims[0]


def _has_node_coordinate(array) -> bool:
    return "node" in array.coords and array.coords["node"].ndim == 1


def _dimension_labels(array) -> list | None:
    if _has_node_coordinate(array):
        return array.coords["node"].to_numpy().tolist()
    dimension = _node_dimension(array)
    return list(array.indexes[dimension]) if dimension in array.indexes else None


def _columns_of(name: str, table) -> tuple[str, list[str]]:
    """(the column that names the nodes, the others)."""
    columns = list(table.column_names if hasattr(type(table), "column_names") else table.columns)
    found = [column for column in NODE_COLUMNS if column in columns]
    kind = f"{name} is a {type(table).__name__} with"
    if not found or len(columns) < 2:
        names = " or ".join(map(repr, NODE_COLUMNS))
        expected = f"one that is called {names}, with the labels of the nodes, and at least one of values"
        msg = f"{kind} {len(columns)} columns; expected {expected}; rename it, or pass a plain array in node order"
        raise InputError(msg)
    if len(found) > 1:
        msg = f"{kind} several columns that may name the nodes: {', '.join(map(repr, found))}; drop all but one, or rename one that is a signal"
        raise InputError(msg)
    return found[0], [column for column in columns if column != found[0]]


def _numbers_of(table) -> np.ndarray:
    """Values of a Series or DataFrame; pandas' own integers and floats may hold NA, which becomes NaN."""
    values = table.to_numpy()
    kinds = {getattr(dtype, "kind", "O") for dtype in (table.dtypes if table.ndim == 2 else [table.dtype])}
    return table.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype == object and kinds <= set("fiub") else values
