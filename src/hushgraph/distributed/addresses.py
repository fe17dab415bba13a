"""Parquet and .npy files at paths of this machine or at addresses of object stores (fsspec): finding, opening and telling them apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TypeVar

import numpy as np

from hushgraph._errors import HushgraphError, InputError, InputTypeError, NoFileError
from hushgraph._extras import extra
from hushgraph._validation import shown
from hushgraph.distributed.object_store import PatientFile, content_tag, file_system_of, is_local, patiently
from hushgraph.files import parquet_faults

T = TypeVar("T")
BUFFER = 2**20  # bytes of a column read at a time, of local files
EDGES, VALUES = "with the columns source and target", "with the columns node and value, or all values in one .npy file"


def open_file(path: str) -> Any:
    """Open the file at a path or an address for reading bytes."""
    system, place = file_system_of(path)
    if is_local(system):
        return system.open(place, "rb")
    return PatientFile(patiently(lambda: system.open(place, "rb"), path), path)


def _asked(system: Any, action: Callable[[], T], address: str) -> T:
    """Return what a request returns; an object store is asked again where it fails for a while."""
    return action() if is_local(system) else patiently(action, address)


def absolute_address(path: str | Path) -> str:
    """Return an address as it is, and a path from the root: workers have other current folders."""
    return str(path) if "://" in str(path) else str(Path(path).resolve())


def is_files(source: Any) -> bool:
    """Return whether `source` names files, and does not hold numbers itself."""
    return isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and len(source) > 0 and all(isinstance(path, str | Path) for path in source)
    )


def list_files(source: Any, signal: str | None = None) -> list[str]:
    """Return the parquet files of a path, a pattern, a folder, an address of an object store, or a list of them, in order.

    part.2 comes before part.10. `signal` is the name of the values in the files, where they are no edges.
    """
    if isinstance(source, list | tuple):
        return [path for part in source for path in list_files(part, signal)]
    if not isinstance(source, str | Path):
        msg = f"edges must be a Graph, or parquet files: a path, pattern, folder, address or a list of them; got {shown(source)}"
        raise InputTypeError(msg)
    system, path = file_system_of(str(source))
    system.invalidate_cache()  # files may have changed since they were listed
    prefix = "" if is_local(system) else f"{np.atleast_1d(system.protocol)[0]}://"

    def listed() -> list[str]:
        return system.glob(f"{path.rstrip('/')}/*.parquet") if system.isdir(path) else system.glob(path)

    names = _asked(system, listed, str(source))
    if not names and signal is not None:
        raise no_values_error(source, signal)
    if not names:
        msg = f"there are no parquet files at {shown(str(source))}; expected a file, a pattern, or a folder that holds *.parquet"
        raise NoFileError(msg)
    return [prefix + name for name in sorted(map(str, names), key=_natural_order)]


def no_values_error(source: str | Path, signal: str) -> FileNotFoundError:
    """Return the error of a signal whose files do not exist."""
    return NoFileError(
        f"{signal} must be numbers, a .npy file, or parquet files with the columns node and value (a path, pattern, folder or address); "
        f"there is no such file at {shown(str(source))}"
    )


def _natural_order(name: str) -> tuple[list[str | int], str]:
    """Return a sort key of a name that reads its digits as numbers."""
    return [int(part) if k % 2 else part for k, part in enumerate(re.split(r"(\d+)", name))], name


def file_identity(path: str) -> list[Any]:
    """Return the address of a file, its size, and its tag or the time of its last change: a replaced file has another identity."""
    system, place = file_system_of(path)
    info = _asked(system, lambda: system.info(place), path)
    return [path, info.get("size"), content_tag(info)]


# ---- parquet -----------------------------------------------------------------------------------------------------------


def parquet_module() -> ModuleType:
    """Return `pyarrow.parquet`."""
    return extra("pyarrow.parquet", name="dask", purpose="parquet files")


def pyarrow_module() -> ModuleType:
    """Return `pyarrow`."""
    return extra("pyarrow", name="dask", purpose="parquet files")


def open_parquet(file: BinaryIO, path: str, expected: str = EDGES, *, few_rows: bool = False) -> Any:
    """Return the parquet file in an open file, or raise an error with its path and with what was expected in it.

    Columns of a file at an address are read at once, because requests are slow, unless `few_rows` are wanted.
    """
    is_far = "://" in path and not few_rows
    with reading_parquet(path, expected):
        return parquet_module().ParquetFile(file, buffer_size=0 if is_far else BUFFER, pre_buffer=is_far)


@contextmanager
def reading_parquet(path: str, expected: str = EDGES) -> Iterator[None]:
    """Raise errors of a damaged parquet file with its path and with what was expected in it.

    Errors of disks and stores are OSErrors with a number; those of damaged bytes have none.
    """
    try:
        yield
    except parquet_faults() as error:
        is_other = isinstance(error, HushgraphError | FileNotFoundError | pyarrow_module().ArrowCancelled)
        if is_other or getattr(error, "errno", None) is not None:
            raise
        if isinstance(error, MemoryError):
            msg = f"{path} needs more memory than there is, or is damaged; read it with more memory, or write it again with smaller row groups"
            raise InputError(msg) from error
        if isinstance(error, NotImplementedError):
            msg = f"{path} was written in a way that this pyarrow cannot read, such as a compression that it lacks, or is damaged; write it again"
            raise InputError(msg) from error
        raise damaged_parquet(path, expected) from error


def damaged_parquet(path: str, expected: str = EDGES) -> InputError:
    """Return the error of a file that pyarrow cannot read."""
    return InputError(f"{path} is not a parquet file, or is damaged; write it again, {expected}")


def is_integer_type(arrow_type: Any) -> bool:
    """Return whether an Arrow type is one of the eight integer types."""
    return pyarrow_module().types.is_integer(arrow_type)


def as_numpy(column: Any) -> np.ndarray:
    """Return an Arrow array as a NumPy array without a copy; `to_numpy`, which imports pandas, is used only where values are missing."""
    types = pyarrow_module().types
    if column.null_count or not (types.is_integer(column.type) or types.is_float32(column.type) or types.is_float64(column.type)):
        return column.to_numpy(zero_copy_only=False)
    values = np.frombuffer(column.buffers()[1] or b"", dtype=column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]
