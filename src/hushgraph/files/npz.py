"""Graphs in .npz files: those that `write_graph` writes, and the sparse matrices that SciPy writes."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from scipy import sparse

from hushgraph._errors import InputError
from hushgraph._validation import shown
from hushgraph.files.formats import ColumnChoice
from hushgraph.files.npy import array_of
from hushgraph.files.text import MOST_UNPACKED, UNPACKED_FREELY, all_bytes
from hushgraph.graphs import MAX_NODES, Curves, EdgeTable, NodeNames, Outlines, affinities, column_of, label_kind

FORMAT = 1  # of the graphs that `write_graph` writes; files from before 20 November 2026 do not state it
_COVARIATES = "covariate_names", "covariates"
_CURVES = "curve_points", "curve_starts", "curve_edges"
_OUTLINES = "outline_corners", "outline_starts", "outline_nodes"
_NAMES = "name_texts", "name_codes"
_BARE_NODES, _NODES_PER_EDGE = 1_000_000, 100
_UNPACKING_FAULTS = (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
                     zlib.error, zipfile.BadZipFile)  # fmt: skip


Shape = TypeVar("Shape", Outlines, Curves)


# ---- npz ------------------------------------------------------------------------------------------------------------


def read_npz(path: Path, *, weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    """Return the edges of an .npz file that `write_graph` or scipy.sparse.save_npz wrote."""
    arrays = read_arrays(path)
    if {"edges", "n"} <= arrays.keys():
        return _our_table(path, arrays, weight, distance)
    if {"format", "shape", "data"} <= arrays.keys():
        return _scipy_table(path, arrays, weight, distance)
    msg = f"{path} must hold edges and n, or a matrix saved by scipy.sparse.save_npz; it holds {sorted(arrays)[:20]}"
    raise InputError(msg)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name, read-only; an InputError if the file is damaged."""
    content = all_bytes(path) if path.name.lower().endswith(".gz") else path.open("rb")
    arrays, fault = {}, ""
    with content:
        try:
            with zipfile.ZipFile(content) as packed:
                members = [member for member in packed.infolist() if member.filename.endswith(".npy")]
                size = content.seek(0, 2)
                if sum(member.file_size for member in members) > UNPACKED_FREELY + MOST_UNPACKED * size:
                    fault = f"{path} unpacks to more than {MOST_UNPACKED} times its size, which no graph does"
                else:
                    arrays = {member.filename[:-4]: array_of(packed.read(member)) for member in members}
        except _UNPACKING_FAULTS:
            fault = f"{path} cannot be read: it is truncated, damaged or no .npz file; copy or download it again"
    if fault:
        raise InputError(fault)
    return arrays


def _our_table(path: Path, arrays: dict[str, np.ndarray], weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    stated = arrays.get("version", np.int64(FORMAT))
    if stated.shape != () or stated.dtype.kind not in "iu" or stated < 1:
        msg = f"version in {path} must be an integer from 1; got {shown(stated)}; write the graph again"
        raise InputError(msg)
    if stated > FORMAT:
        msg = (
            f"{path} was written by a newer version of hushgraph (version {int(stated)}; this one knows {FORMAT}); use that version"
        )
        raise InputError(msg)
    pairs, n = arrays["edges"], arrays["n"]
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or n.shape != () or n.dtype.kind not in "iu":
        msg = f"{path} must hold edges, (m, 2) integers, and n, an integer; got {shown(pairs)} and {shown(n)}"
        raise InputError(msg)
    others = ("labels", "edges", "coords", *_COVARIATES, *_OUTLINES, *_NAMES)
    names = [name for name, values in arrays.items() if values.shape == (len(pairs),) and name not in others]
    if weight is None and distance is None and "weights" in arrays:
        weight = "weights"
    value, is_distance = column_of(names, weight, distance, path)
    labels = arrays.get("labels")
    if labels is not None and (labels.ndim != 1 or labels.dtype.kind not in "iuU"):
        msg = f"labels in {path} must be a row of integers or of text; got {shown(labels)} of dtype {labels.dtype}"
        raise InputError(msg)
    crs = "" if "crs" not in arrays else str(arrays["crs"].item() if arrays["crs"].size == 1 else "?")
    if crs not in ("", "None", "lonlat"):
        msg = f"crs in {path} must be 'lonlat', or not be there; got {shown(crs)}"
        raise InputError(msg)
    table = _table(path, pairs, int(n), arrays.get(value) if value else None, value, is_distance, coords=arrays.get("coords"),
                   crs="lonlat" if crs == "lonlat" else None, labels=labels)  # fmt: skip
    return table._replace(
        covariates=_covariates(path, arrays, int(n)),
        outlines=_shapes(path, arrays, _OUTLINES, Outlines),
        curves=_shapes(path, arrays, _CURVES, Curves),
        names=_names(path, arrays, int(n)),
        attribution=_attribution(arrays),
    )


def _names(path: Path, arrays: dict[str, np.ndarray], n: int) -> NodeNames | None:
    """Return what readers call the nodes; None if the file does not say it."""
    texts, codes = (arrays.get(key) for key in _NAMES)
    if texts is None and codes is None:
        return None
    if texts is None or codes is None or texts.ndim != 1 or texts.dtype.kind != "U" or codes.ndim != 2 or len(codes) != n:
        msg = f"{' and '.join(_NAMES)} in {path} must be texts and ({n}, k) positions in them; write the graph again"
        raise InputError(msg)
    return NodeNames(tuple(texts.tolist()), codes)


def _attribution(arrays: dict[str, np.ndarray]) -> str | None:
    stated = arrays.get("attribution")
    return str(stated.item()) if stated is not None and stated.size == 1 and stated.dtype.kind == "U" else None


def _shapes(path: Path, arrays: dict[str, np.ndarray], names: tuple[str, ...], form: type[Shape]) -> Shape | None:
    """Return the outlines of zones or the curves of edges, which `Graph` checks; None if the file has none."""
    parts = [arrays[name] for name in names if name in arrays]
    if not parts:
        return None
    if len(parts) < len(names) or any(part.dtype.kind not in kinds for part, kinds in zip(parts, ("f", "iu", "iu"), strict=True)):
        msg = f"{', '.join(names)} in {path} must be all there, numbers and whole numbers; write the graph again"
        raise InputError(msg)
    return form(*parts)


def _covariates(path: Path, arrays: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """Return the covariates of the nodes by name; none if the file has none."""
    names, rows = (arrays.get(key) for key in _COVARIATES)
    if names is None and rows is None:
        return {}
    if (
        names is None
        or rows is None
        or names.ndim != 1
        or names.dtype.kind != "U"
        or rows.shape != (len(names), n)
        or (rows.dtype.kind != "f" or np.isinf(rows).any() or len(set(names.tolist())) != len(names) or "" in names.tolist())
    ):
        msg = f"{' and '.join(_COVARIATES)} in {path} must be k different names and (k, {n}) numbers, NaN where unknown; write the graph again"
        raise InputError(msg)
    return dict(zip(names.tolist(), rows, strict=True))


def _scipy_table(path: Path, arrays: dict[str, np.ndarray], weight: ColumnChoice, distance: ColumnChoice) -> EdgeTable:
    kind = arrays["format"].item() if arrays["format"].size == 1 else ""
    kind = kind.decode(errors="replace") if isinstance(kind, bytes) else kind
    value, is_distance = column_of(["weight"], weight, distance, path)
    matrix = None
    try:
        shape = tuple(int(side) for side in arrays["shape"])
        if kind in ("csr", "csc") and len(shape) == 2 and max(shape) <= _BARE_NODES + _NODES_PER_EDGE * arrays["data"].size:
            form = sparse.csr_array if kind == "csr" else sparse.csc_array
            matrix = form((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        elif kind == "coo" and len(shape) == 2:
            ends = [arrays[name] for name in (("row", "col") if "row" in arrays else ("coords_0", "coords_1"))]
            matrix = sparse.coo_array((arrays["data"], tuple(ends)), shape=shape)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        matrix = None
    if matrix is None or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiub":
        msg = f"{path} must hold a whole square matrix of real numbers in the format csr, csc or coo; got {shown(kind)}"
        raise InputError(msg)
    entries = matrix.tocoo()
    pairs = np.stack(entries.coords, axis=1).astype(np.int64)
    values = entries.data.astype(np.float64)
    if value is None:
        pairs, values = pairs[values != 0], None
    return _table(path, pairs, matrix.shape[0], values, value, is_distance)


def _table(
    path: Path,
    pairs: np.ndarray,
    n: int,
    values: np.ndarray | None,
    value: str | None,
    is_distance: bool,
    *,
    coords: np.ndarray | None = None,
    crs: str | None = None,
    labels: np.ndarray | None = None,
) -> EdgeTable:
    """Return a checked table; errors name the file instead of the array."""
    known = max([len(part) for part in (coords, labels) if part is not None and part.ndim], default=0)
    if not 0 <= n <= min(MAX_NODES, max(known, _BARE_NODES + _NODES_PER_EDGE * len(pairs))):
        msg = f"{path} states {n} nodes, which cannot be, or is far too many for {len(pairs)} edges"
        raise InputError(msg)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        msg = f"{path} has edges to nodes that are not 0 to {n - 1}"
        raise InputError(msg)
    for name, part in (("weights", values), ("coords", coords)):
        if part is not None and part.dtype.kind not in "fiub":
            msg = f"{name} in {path} must be real numbers; got dtype {part.dtype}"
            raise InputError(msg)
    pairs = pairs.astype(np.int64)
    return EdgeTable(pairs, n, affinities(values, value, pairs, is_distance=is_distance), coords, crs, labels)


def write_npz(file: BinaryIO, table: EdgeTable) -> None:
    """Write `version`, `edges`, `n`, and weights, coordinates, labels, covariates, outlines, names and attribution if there are any, packed."""
    label_kind(table.labels, ".npz")
    arrays: dict[str, Any] = {"version": np.int64(FORMAT), "edges": table.pairs, "n": np.int64(table.n)}
    arrays |= {"weights": table.weights, "coords": table.coords}
    arrays |= {"labels": table.labels, "crs": None if table.crs is None else np.array(table.crs)}
    if table.covariates:
        arrays |= dict(zip(_COVARIATES, (np.array(list(table.covariates)), np.stack(list(table.covariates.values()))), strict=True))
    if table.outlines is not None:
        arrays |= dict(zip(_OUTLINES, (table.outlines.corners, table.outlines.starts, table.outlines.nodes), strict=True))
    if table.curves is not None:
        arrays |= dict(zip(_CURVES, (table.curves.points, table.curves.starts, table.curves.edges), strict=True))
    if table.names is not None:
        arrays |= dict(zip(_NAMES, (np.array(table.names.texts, dtype=str), table.names.codes), strict=True))
    arrays["attribution"] = None if table.attribution is None else np.array(table.attribution)
    content = io.BytesIO()  # a packed file cannot be rewound, and zip does
    np.savez_compressed(content, **{name: values for name, values in arrays.items() if values is not None})
    file.write(content.getbuffer())
