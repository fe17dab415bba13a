"""Files as the only state: arrays that are written whole or not at all, marks of finished tasks, and the manifest.

A file is written under another name and renamed. A task writes its mark last, with the sizes of its files, when they are safely on
disk. The files of a killed task or after a loss of power have no mark, or do not fit it, and the task runs again.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hushgraph._atomic import atomic_file, flush_to_disk
from hushgraph._errors import InputError, PathError, Reference, Sentence, StateError

VERSION = 1
CHUNK = 2**20  # values read at a time where whole arrays are too large


@contextmanager
def room_for(path: str | Path) -> Iterator[None]:
    """Raise errors of a full disk, or of an exhausted quota, with advice on what to do."""
    try:
        yield
    except OSError as error:  # NumPy's own has no number
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) and " requested and " not in str(error):
            raise
        msg = f"there is no room on the disk for {path}; make room and run the same call again: it goes on with what is done"
        raise PathError(errno.ENOSPC, msg) from error


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder, and refuse one that another process works in. The lock ends with its process, even if that is killed."""
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
def open_draft(path: Path, *, safe: bool = False) -> Iterator[Any]:
    """Open a file for writing that takes its name when the block ends without an error; `safe`: it survives a loss of power too."""
    _make(path.parent)
    with room_for(path), atomic_file(path, sync=safe, suffix=".tmp") as draft, draft.open("xb") as file:
        yield file


def _make(folder: Path) -> None:
    """Make the folder and those above it, safely on disk: a loss of power would lose a folder with the files in it."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_to_disk(folder.parent)


def write_array(path: Path, array: np.ndarray, *, safe: bool = False) -> None:
    """Write an array into a .npy file."""
    with open_draft(path, safe=safe) as file:
        np.save(file, array)


def write_rows(path: Path, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray], *, safe: bool = False) -> None:
    """Write an array from its pieces, one after the other: the whole array is never in memory."""
    with open_draft(path, safe=safe) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for row in rows:
            np.ascontiguousarray(row, dtype=dtype).tofile(file)


def read_array(path: Path, *, whole: bool = True) -> np.ndarray:
    """Return the array of a file, in memory if `whole`, otherwise mapped."""
    return np.load(path, mmap_mode=None if whole else "r", allow_pickle=False)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write facts as JSON, safely on disk."""
    with open_draft(path, safe=True) as file:
        file.write(json.dumps(facts, indent=1).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the facts in a JSON file; None if the file is missing or damaged."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def pieces(count: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover 0..count-1, of `size` or CHUNK numbers each."""
    size = size or CHUNK
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class Output:
    """The files of one task: arrays `stage.name.npy` in a folder, and the mark `stage.json`, written last."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.folder, self.stage = folder, stage
        self._sizes: dict[str, int] = {}

    def path(self, name: str) -> Path:
        """Return the file of an array."""
        return self.folder / f"{self.stage}.{name}.npy"

    def save(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        write_array(self.path(name), array)
        self._sizes[name] = self.path(name).stat().st_size

    def save_rows(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray]) -> None:
        """Write an array from its pieces."""
        write_rows(self.path(name), shape, dtype, rows)
        self._sizes[name] = self.path(name).stat().st_size

    def load(self, name: str, *, whole: bool = True) -> np.ndarray:
        """Return an array, in memory if `whole`, otherwise mapped."""
        return read_array(self.path(name), whole=whole)

    def read_facts(self) -> dict[str, Any] | None:
        """Return the facts of a finished task whose files are whole; otherwise None."""
        mark = read_json(self.folder / f"{self.stage}.json")
        if mark is None:
            return None
        for name, size in mark["files"].items():
            with suppress(OSError):
                if self.path(name).stat().st_size == size:
                    continue
            return None
        return mark["facts"]

    def mark_done(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Write the mark after all files are on disk, and return the facts as `read_facts` will."""
        for name in self._sizes:
            flush_to_disk(self.path(name))
        if self._sizes:
            flush_to_disk(self.folder)
        write_json(self.folder / f"{self.stage}.json", {"files": self._sizes, "facts": facts})
        return json.loads(json.dumps(facts))

    def remove(self) -> None:
        """Remove the mark first, then the arrays."""
        for path in [self.folder / f"{self.stage}.json", *self.folder.glob(f"{self.stage}.*.npy")]:
            path.unlink(missing_ok=True)


def is_draft(path: Path) -> bool:
    """Return whether a file is half-written."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def remove_drafts(folders: Iterable[Path]) -> None:
    """Remove the half-written files of killed tasks. No task may be running in these folders."""
    for folder in folders:
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def remove_stages(folders: Iterable[Path], kept: Iterable[str] = ()) -> None:
    """Remove the files of all stages but `kept`, marks first, and drafts."""
    for folder in folders:
        remove_drafts([folder])
        for path in sorted(folder.glob("*.*"), key=lambda path: path.suffix != ".json"):
            if path.name.split(".")[0] not in kept:
                path.unlink(missing_ok=True)


def sum_arrays(outputs: Iterable[Output], name: str) -> np.ndarray:
    """Return the sum of an array over tasks."""
    total: Any = 0
    for out in outputs:
        total = total + out.load(name)
    return total


def part_folder(work: Path, part: int) -> Path:
    """Return the folder of a partition."""
    return work / "parts" / f"{part:05d}"


def local_folder(work: str | Path) -> Path:
    """Return the absolute path of a work folder; an address is refused, since files of the folder are mapped into memory."""
    if "://" in str(work):
        msg = f"the work folder must be a folder that all workers see, not an address; got {work}; only edges, signals and results may be elsewhere"
        raise InputError(msg)
    return Path(work).resolve()


def read_manifest(work: str | Path) -> dict[str, Any]:
    """Return the manifest of a prepared folder."""
    manifest = read_json(local_folder(work) / "manifest.json")
    if manifest is None:
        call = Reference(f"prepare(edges, {str(work)!r})")
        raise InputError(
            Sentence("{} must be a folder that {prepare()} finished; it has no manifest.json; run {} first", work, call)
        )
    if manifest.get("version") != VERSION:
        msg = f"{work} was prepared by another version of hushgraph (format {manifest.get('version')}, expected {VERSION}); prepare it again"
        raise InputError(msg)
    return manifest
