"""Results in parquet files, one per partition: writing them, checking that they are those of a run, and reading them again."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import Any

import numpy as np

from hushgraph._errors import InputError, NoFileError, Sentence
from hushgraph.distributed.addresses import open_file, parquet_module, pyarrow_module, reading_parquet
from hushgraph.distributed.object_store import StoredPath, StoreError, file_system_of, is_local, patiently
from hushgraph.distributed.store import Output, room_for
from hushgraph.distributed.stored_arrays import is_places
from hushgraph.distributed.wavelet_tasks import Run

RUN = b"hushgraph.run"  # key of the metadata of a part file: the run that wrote it


def write_part(run: Run, part: int, address: str, unchanged: bool) -> dict[str, Any]:
    """Write a parquet file with the nodes and the denoised values of a partition."""
    out = run.output(part, "write")
    if (
        (finished := out.read_facts()) is not None
        and finished.get("address") == address
        and is_written(run, part, address, finished.get("rows"))
    ):
        return finished
    nodes = run.owned(part)
    values = run.values(nodes)  # in the precision of the signal
    values = values if unchanged else run.output(part, "finish").load("signal").astype(values.dtype, copy=False)
    values = np.maximum(values, 0) if run.nonnegative else values
    values = np.rint(values) if run.integer else values
    pa = pyarrow_module()
    columns = [
        pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])
        for column in (nodes, values)
    ]
    table = pa.Table.from_arrays(columns, names=["node", "denoised"])  # pa.table of NumPy arrays would import pandas
    table = table.replace_schema_metadata({RUN: run.folder.name})
    system, path = file_system_of(part_file(address, part))
    if not is_local(system):
        _upload(run, table, part_file(address, part), address)
        return Output(out.folder, "write").mark_done({"address": address, "rows": len(nodes)})
    system.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    draft = path.rsplit("/", 1)[0] + f"/.part-{part:05d}.{os.urandom(4).hex()}.tmp"
    with room_for(path), system.open(draft, "wb") as file:
        parquet_module().write_table(table, file, write_page_checksum=True)
        with suppress(io.UnsupportedOperation, AttributeError):  # files in object stores are safe when they are closed
            number = file.fileno()
            file.flush()
            os.fsync(number)
    try:
        _check_file_of_run(run, system, path, address, damaged_ok=True)
    except ValueError:
        system.rm_file(draft)
        raise
    system.mv(draft, path)
    return Output(out.folder, "write").mark_done({"address": address, "rows": len(nodes)})


def _upload(run: Run, table: Any, place: str, address: str) -> None:
    """Write a table to an object store: an object appears whole, or not at all."""
    buffer = io.BytesIO()
    parquet_module().write_table(table, buffer, write_page_checksum=True)
    system, path = file_system_of(place)
    patiently(lambda: _check_file_of_run(run, system, path, address, damaged_ok=True), place)
    StoredPath(place).write_bytes(buffer.getvalue())


# ---- the files of a result ---------------------------------------------------------------------------------------------


def part_file(address: str, part: int) -> str:
    """Return the address of the file of a partition."""
    return f"{address}/part-{part:05d}.parquet"


def is_written(run: Run, part: int, address: str, rows: int | None) -> bool:
    """Return whether the file of a partition exists, has so many rows and belongs to this run, as the metadata at its end says."""
    try:
        with open_file(part_file(address, part)) as file, reading_parquet(part_file(address, part)):
            metadata = parquet_module().ParquetFile(file).metadata
    except StoreError:  # it may be there
        raise
    except (OSError, ValueError):  # missing, or damaged
        return False
    return metadata.num_rows == rows and (metadata.metadata or {}).get(RUN) == run.folder.name.encode()


def check_output(run: Run, parts: int, address: str, *, clean: bool = False) -> None:
    """Refuse a folder with other parquet files: a reader of the folder would mix them. `clean` removes drafts of killed tasks."""
    names = {part_file("", part).strip("/") for part in range(parts)}
    system, folder = file_system_of(address)
    system.invalidate_cache()

    def check() -> None:
        for path in sorted(system.ls(folder, detail=False)) if system.exists(folder) else ():
            _check_one(run, system, path, address, names, clean)

    check() if is_local(system) else patiently(check, address)


def _check_one(run: Run, system: Any, path: str, address: str, names: set[str], clean: bool) -> None:
    """Refuse a parquet file of another run, and remove a draft if `clean`."""
    name = path.rsplit("/", 1)[-1]
    if name.startswith(".part-") and name.endswith(".tmp"):
        if clean:
            system.rm_file(path)
    elif name.endswith(".parquet"):
        _check_file_of_run(run, system, path, address, damaged_ok=name in names)


def _check_file_of_run(run: Run, system: Any, path: str, address: str, *, damaged_ok: bool) -> None:
    """Refuse a file whose metadata does not name this run; a damaged file of a partition will be written again."""
    try:
        with system.open(path, "rb") as file, reading_parquet(path):
            is_of_run = (parquet_module().ParquetFile(file).metadata.metadata or {}).get(RUN) == run.folder.name.encode()
    except FileNotFoundError:
        return
    except ValueError:
        is_of_run = damaged_ok
    if not is_of_run:
        name = path.rsplit("/", 1)[-1]
        msg = (
            "{output} must be a folder without other parquet files; {} holds {}, which is not of this run; choose another folder, or remove "
            "them"
        )
        raise InputError(Sentence(msg, address, name))


def _whole_part(file: Any, path: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the nodes and the values in an open part file, and the name of the run that wrote it."""
    try:
        with reading_parquet(path):
            table = parquet_module().read_table(file, page_checksum_verification=True)
            table.validate(full=True)
            nodes, values = (
                np.asarray(table.column(k)) for k in (0, 1)
            )  # the name of a column is decoded here, and may be damaged
    except InputError as error:
        raise _damaged_part(path) from error
    return nodes, values, (table.schema.metadata or {}).get(RUN, b"").decode(errors="replace")


def _damaged_part(path: str) -> InputError:
    return InputError(Sentence("{} is damaged; remove it and call {denoise()} again: it writes what is lost", path))


def read_parts(address: str, parts: int, n: int, run: str) -> np.ndarray:
    """Return the signal in node order, from exactly the files of this run."""
    signal, rows = np.empty(0), 0
    for part in range(parts):
        try:
            with open_file(part_file(address, part)) as file:
                nodes, values, writer = _whole_part(file, part_file(address, part))
        except FileNotFoundError:
            msg = "{} is gone; call {denoise()} again: it writes what is lost"
            raise NoFileError(Sentence(msg, part_file(address, part))) from None
        if writer != run:
            msg = "{} must be a file of the run {}, and is of another; call {denoise()} again, with another output folder"
            raise InputError(Sentence(msg, part_file(address, part), run))
        if not is_places(nodes, len(nodes), n) or values.dtype.kind != "f":  # files of earlier versions have no checksums
            raise _damaged_part(part_file(address, part))
        signal = np.empty(n, values.dtype) if part == 0 else signal
        signal[nodes] = values
        rows += len(nodes)
    if rows != n:
        msg = "the files at {} must hold {} nodes, and hold {}; call {denoise()} again: it writes what is lost"
        raise InputError(Sentence(msg, address, n, rows))
    return signal
