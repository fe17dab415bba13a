"""Files as the only state: arrays written whole or not at all, marks that say which work is done, and the manifest.

A file is written under another name and renamed. A task writes its mark last, with the sizes of its files, when they are safely on
disk: what a killed task or a loss of power leaves behind has no mark, or does not fit it, and the task runs again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, PathError, Reference, Sentence, StateError

VERSION = 1
CHUNK = 2**20  # values read at a time where whole arrays are too large


@contextmanager
def room_for(path) -> Iterator[None]:
    """Say what to do where a disk is full, or what may be written to it."""
    try:
        yield
    except OSError as error:  # NumPy's own has no number
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) and " requested and " not in str(error):
            raise
        msg = f"there is no room on the disk for {path}; make room and run the same call again: it goes on with what is done"
        raise PathError(errno.ENOSPC, msg) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process works in. The lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows; tasks of two runs write the same bits
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"another run works in {folder}; wait until it ends, or end it and run the same call again: it goes on with what is done"
            raise StateError(msg) from error
        except OSError:  # a file system without locks
            pass
        yield


@contextmanager
def drafted(path: Path, *, safe: bool = False) -> Iterator[Any]:
    """A file to write to that takes its place when the block ends without an error; `safe` also survives a loss of power."""
    _make(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with room_for(path), draft.open("wb") as file:
            yield file
            file.flush()
            if safe:
                os.fsync(file.fileno())
        draft.replace(path)
        if safe:
            settle(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _make(folder: Path) -> None:
    """The folder and those above it, such that a loss of power does not take them away with what is in them."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        settle(folder.parent)


def settle(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on disk."""
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # of folders, where the system cannot open them
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_array(path: Path, array: np.ndarray, *, safe: bool = False) -> None:
    with drafted(path, safe=safe) as file:
        np.save(file, array)


def write_rows(path: Path, shape: tuple[int, ...], dtype, rows: Iterable[np.ndarray], *, safe: bool = False) -> None:
    """An array made of these pieces, one after the other: it never exists as a whole."""
    with drafted(path, safe=safe) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for row in rows:
            np.ascontiguousarray(row, dtype=dtype).tofile(file)


def read_array(path: Path, *, whole: bool = True) -> np.ndarray:
    """An array in memory, or mapped if it is not wanted `whole`."""
    return np.load(path, mmap_mode=None if whole else "r", allow_pickle=False)


def hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, facts: dict[str, Any]) -> None:
    with drafted(path, safe=True) as file:
        file.write(json.dumps(facts, indent=1).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """What the file says, None if it is not there or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def pieces(count: int, size: int | None = None) -> Iterator[slice]:
    """0..count-1 in pieces."""
    size = size or CHUNK
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class Output:
    """What one task leaves: arrays `stage.name.npy` in a folder, and `stage.json`, written last."""

    def __init__(self, folder: Path, stage: str):
        self.folder, self.stage = folder, stage
        self._sizes: dict[str, int] = {}

    def path(self, name: str) -> Path:
        return self.folder / f"{self.stage}.{name}.npy"

    def save(self, name: str, array: np.ndarray) -> None:
        write_array(self.path(name), array)
        self._sizes[name] = self.path(name).stat().st_size

    def save_rows(self, name: str, shape: tuple[int, ...], dtype, rows: Iterable[np.ndarray]) -> None:
        write_rows(self.path(name), shape, dtype, rows)
        self._sizes[name] = self.path(name).stat().st_size

    def load(self, name: str, *, whole: bool = True) -> np.ndarray:
        return read_array(self.path(name), whole=whole)

    def known(self) -> dict[str, Any] | None:
        """The facts of a task that is done, if its files are whole."""
        mark = read_json(self.folder / f"{self.stage}.json")
        if mark is None:
            return None
        for name, size in mark["files"].items():
            with suppress(OSError):
                if self.path(name).stat().st_size == size:
                    continue
            return None
        return mark["facts"]

    def done(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Write the mark, after all that it vouches for; returns the facts as they will be read again."""
        for name in self._sizes:
            settle(self.path(name))
        if self._sizes:
            settle(self.folder)
        write_json(self.folder / f"{self.stage}.json", {"files": self._sizes, "facts": facts})
        return json.loads(json.dumps(facts))

    def remove(self) -> None:
        """The mark first, then the arrays."""
        for path in [self.folder / f"{self.stage}.json", *self.folder.glob(f"{self.stage}.*.npy")]:
            path.unlink(missing_ok=True)


def is_draft(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".tmp")


def remove_drafts(folders: Iterable[Path]) -> None:
    """What killed tasks left half-written. No task may be at work in these folders."""
    for folder in folders:
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def remove_stages(folders: Iterable[Path], kept: Iterable[str] = ()) -> None:
    """The files of all stages but these, marks first; and drafts."""
    for folder in folders:
        remove_drafts([folder])
        for path in sorted(folder.glob("*.*"), key=lambda path: path.suffix != ".json"):
            if path.name.split(".")[0] not in kept:
                path.unlink(missing_ok=True)


def added(outputs: Iterable[Output], name: str) -> np.ndarray:
    """The sum of an array over tasks."""
    total: Any = 0
    for out in outputs:
        total = total + out.load(name)
    return total


def part_folder(work: Path, part: int) -> Path:
    return work / "parts" / f"{part:05d}"


def local_folder(work) -> Path:
    """The whole path of a work folder, which is mapped into memory."""
    if "://" in str(work):
        msg = f"the work folder must be a folder that all workers see, not an address; got {work}; only edges, signals and results may be elsewhere"
        raise InputError(msg)
    return Path(work).resolve()


def manifest_of(work) -> dict[str, Any]:
    """The manifest of a prepared folder, or an error that says what to do."""
    found = read_json(local_folder(work) / "manifest.json")
    if found is None:
        call = Reference(f"prepare(edges, {str(work)!r})")
        raise InputError(
            Sentence("{} must be a folder that {prepare()} finished; it has no manifest.json; run {} first", work, call)
        )
    if found.get("version") != VERSION:
        msg = f"{work} was prepared by another version of hushgraph (format {found.get('version')}, expected {VERSION}); prepare it again"
        raise InputError(msg)
    return found
