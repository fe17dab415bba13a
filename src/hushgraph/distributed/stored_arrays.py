"""What stored arrays must hold before compiled loops get them: these do not check the indices.

Folders of this version have checksums, so that most of these checks are left out. Those of earlier versions have none: a damaged number
in them may change a result unseen, and must not end the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushgraph.distributed.store import Output, damaged_error


def load_nodes(out: Output, name: str, fact: str, below: int) -> np.ndarray:
    """Return an array of ascending node numbers, as many as the mark says under `fact`, all below a limit."""
    nodes = out.load(name)
    if not out.has_checksums and not is_ascending(nodes, out.read_stated().get(fact), below):
        raise damaged_error(out.path(name))
    return nodes


def check_rows(out: Output, starts: Any, columns: Any, weights: Any, n_rows: int, n_columns: int) -> None:
    """Refuse rows of a sparse matrix that point outside of it."""
    is_good = {
        "starts": starts.dtype.kind == "i" and _is_starts(starts, n_rows + 1, columns.size),
        "columns": columns.dtype == np.int32 and is_places(columns, columns.size, n_columns),
        "weights": weights is None or is_floats(weights, (columns.size,)),
    }
    _refuse(out, is_good)


def check_sources(out: Output, sources: tuple[np.ndarray, ...], owned: np.ndarray, n_parts: int, n: int) -> None:
    """Refuse places of ghosts that point outside of the zone of n nodes; those in other partitions are looked at when they are used."""
    parts, starts, places, ghosts = sources
    is_good = {
        "source_parts": is_ascending(parts, parts.size, n_parts),
        "source_starts": _is_starts(starts, parts.size + 1, ghosts.size),
        "source_places": is_places(places, ghosts.size, 2**31),
        "ghosts": is_places(ghosts, n - len(owned), n) and _is_order(np.concatenate([owned, ghosts]), n),
    }
    _refuse(out, is_good)


def check_layout(out: Output, arrays: dict[str, Any], rest: np.ndarray, n: int) -> None:
    """Refuse a layout of n rows whose runs do not follow each other, or which points outside of its rows."""
    order, blocks, runs, indices = (arrays[name] for name in ("order", "blocks", "runs", "indices"))
    values, diagonal = arrays["values"], arrays["diagonal"]
    is_good = {
        "order": order.dtype == np.int64 and is_places(order, n, n) and _is_order(order, n),
        "blocks": blocks.dtype == np.int64 and _is_starts(blocks, blocks.size, n),
        "runs": runs.dtype == np.int64 and _are_runs(runs, n, indices.size),
        "indices": indices.dtype == np.uint32 and is_places(indices, indices.size, n),
        "values": values is None or is_floats(values, (indices.size,)),
        "diagonal": (diagonal is None) == (values is None) and (diagonal is None or is_floats(diagonal, (n,))),
        "rest": is_floats(rest, (2,)) and rest[1] in (0.0, 1.0),
    }
    _refuse(out, {f"layout_{name}": good for name, good in is_good.items()})
    firsts = arrays["block_runs"]
    is_whole = firsts.dtype == np.int64 and _is_starts(firsts, len(blocks), len(runs))
    _refuse(out, {"layout_block_runs": is_whole and np.array_equal(np.append(runs[:, 0], n)[firsts], blocks)})


def _is_order(places: np.ndarray, n: int) -> bool:
    """Return whether each of the numbers 0 to n - 1 is among these places once."""
    return bool(np.all(np.bincount(places, minlength=n) == 1))


def _are_runs(runs: np.ndarray, n: int, n_indices: int) -> bool:
    """Return whether runs (first row, last row + 1, row length, place of its first index) cover n rows and all indices, in order."""
    if runs.ndim != 2 or runs.shape[1] != 4 or not is_places(runs.ravel(), 4 * len(runs), max(n, n_indices) + 1):
        return False
    first, last, length, place = runs.T
    rows, starts = np.append(first, n), np.append(place, n_indices)
    return bool(rows[0] == 0 and starts[0] == 0 and np.array_equal(rows[1:], last) and np.all(last > first)) and np.array_equal(
        starts[1:], place + (last - first) * length
    )


def _refuse(out: Output, is_good: dict[str, bool]) -> None:
    for name, good in is_good.items():
        if not good:
            raise damaged_error(out.path(name))


def is_floats(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether an array has this shape, and finite numbers in double precision."""
    return array.shape == shape and array.dtype == np.float64 and bool(np.all(np.isfinite(array)))


def is_places(array: np.ndarray, count: int, below: int) -> bool:
    """Return whether an array has so many whole numbers, from 0 to below the limit."""
    is_whole = array.ndim == 1 and array.dtype.kind in "iu" and array.dtype.isnative and len(array) == count
    return is_whole and (count == 0 or bool(array.min() >= 0 and array.max() < below))


def is_ascending(array: np.ndarray, count: int | None, below: int) -> bool:
    """Return whether an array has so many whole numbers of 32 bits, each above the one before it, from 0 to below the limit."""
    return count is not None and array.dtype == np.int32 and is_places(array, count, below) and bool(np.all(array[1:] > array[:-1]))


def _is_starts(array: np.ndarray, count: int, last: int) -> bool:
    """Return whether an array has so many whole numbers, from 0 to the last one, none below the one before it."""
    is_whole = count > 0 and is_places(array, count, last + 1)
    return is_whole and bool(array[0] == 0 and array[-1] == last and np.all(array[1:] >= array[:-1]))
