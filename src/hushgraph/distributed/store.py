"""Files as the only state: arrays that are written whole or not at all, marks of finished tasks, and the manifest.

A file is written under another name and renamed, or uploaded whole into an object store (`object_store`). A task writes its mark last,
with the sizes of its files, when they are safe. The files of a killed task or after a loss of power have no mark, or do not fit it, and
the task runs again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from hushgraph._atomic import atomic_file, flush_to_disk
from hushgraph._errors import InputError, PathError, Reference, Sentence, StateError
from hushgraph.distributed.object_store import StoredPath, StoreError, cache_folder, is_claim, stored_lock

Place = Path | StoredPath  # a file or folder of a work folder: on a disk that all workers see, or in an object store
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
def folder_lock(folder: Place) -> Iterator[None]:
    """Lock a folder, and refuse one that another process works in. The lock ends with its process, even if that is killed."""
    if isinstance(folder, StoredPath):
        with stored_lock(folder):
            yield
        return
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
def open_draft(path: Place, *, safe: bool = False) -> Iterator[Any]:
    """Open a file for writing that takes its name when the block ends without an error; `safe`: it survives a loss of power too."""
    if isinstance(path, StoredPath):
        with room_for(cache_folder()), path.uploaded() as draft, draft.open("xb") as file:
            yield file
        return
    _make(path.parent)
    with room_for(path), atomic_file(path, sync=safe, suffix=".tmp") as draft, draft.open("xb") as file:
        yield file


def _make(folder: Path) -> None:
    """Make the folder and those above it, safely on disk: a loss of power would lose a folder with the files in it."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_to_disk(folder.parent)


def write_array(path: Place, array: np.ndarray, *, safe: bool = False) -> None:
    """Write an array into a .npy file."""
    with open_draft(path, safe=safe) as file:
        np.save(file, array)


def write_rows(path: Place, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray], *, safe: bool = False) -> None:
    """Write an array from its pieces, one after the other: the whole array is never in memory."""
    with open_draft(path, safe=safe) as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for row in rows:
            np.ascontiguousarray(row, dtype=dtype).tofile(file)


def read_array(path: Place, *, whole: bool = True) -> np.ndarray:
    """Return the array of a file, in memory if `whole`, otherwise mapped."""
    mode: Literal["r"] | None = None if whole else "r"
    while isinstance(path, StoredPath):
        copy = path.fetched()
        with suppress(FileNotFoundError):  # another process made room in the cache just now
            return np.load(copy, mmap_mode=mode, allow_pickle=False)
    return np.load(path, mmap_mode=mode, allow_pickle=False)


def file_hash(path: Place) -> str:
    """Return the SHA-256 of a file."""
    with (path.fetched() if isinstance(path, StoredPath) else path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Place, facts: dict[str, Any]) -> None:
    """Write facts as JSON, safely on disk."""
    content = json.dumps(facts, indent=1).encode()
    if isinstance(path, StoredPath):
        path.write_bytes(content)
        return
    with open_draft(path, safe=True) as file:
        file.write(content)


def read_json(path: Place) -> dict[str, Any] | None:
    """Return the facts in a JSON file; None if the file is missing or damaged."""
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except StoreError:  # it may be there
        raise
    except (OSError, ValueError):
        return None


def size_of(path: Place) -> int:
    """Return the number of bytes of a file."""
    return path.size() if isinstance(path, StoredPath) else path.stat().st_size


def changed_at(path: Place) -> float:
    """Return when a file was written, in seconds."""
    return path.changed() if isinstance(path, StoredPath) else path.stat().st_mtime


def remove_tree(folder: Place) -> None:
    """Remove a folder and all that it holds."""
    if isinstance(folder, StoredPath):
        folder.remove_tree()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def pieces(count: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover 0..count-1, of `size` or CHUNK numbers each."""
    size = size or CHUNK
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class Output:
    """The files of one task: arrays `stage.name.npy` in a folder, and the mark `stage.json`, written last."""

    def __init__(self, folder: Place, stage: str) -> None:
        self.folder, self.stage = folder, stage
        self._sizes: dict[str, int] = {}

    def path(self, name: str) -> Place:
        """Return the file of an array."""
        return self.folder / f"{self.stage}.{name}.npy"

    def save(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        write_array(self.path(name), array)
        self._sizes[name] = size_of(self.path(name))

    def save_rows(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray]) -> None:
        """Write an array from its pieces."""
        write_rows(self.path(name), shape, dtype, rows)
        self._sizes[name] = size_of(self.path(name))

    def load(self, name: str, *, whole: bool = True) -> np.ndarray:
        """Return an array, in memory if `whole`, otherwise mapped."""
        return read_array(self.path(name), whole=whole)

    def read_facts(self) -> dict[str, Any] | None:
        """Return the facts of a finished task whose files are whole; otherwise None."""
        mark = read_json(self.folder / f"{self.stage}.json")
        if mark is None:
            return None
        sizes = self._found_sizes(mark["files"])
        return mark["facts"] if all(sizes.get(name) == size for name, size in mark["files"].items()) else None

    def _found_sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Return the sizes of those files that exist."""
        if isinstance(self.folder, StoredPath):
            sizes = self.folder.sizes() if names else {}
            return {name: sizes[self.path(name).name] for name in names if self.path(name).name in sizes}
        found = {}
        for name in names:
            with suppress(OSError):
                found[name] = size_of(self.path(name))
        return found

    def mark_done(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Write the mark after all files are on disk, and return the facts as `read_facts` will."""
        if isinstance(self.folder, Path) and self._sizes:  # an upload is safe when it ends
            for name in self._sizes:
                flush_to_disk(self.folder / f"{self.stage}.{name}.npy")
            flush_to_disk(self.folder)
        write_json(self.folder / f"{self.stage}.json", {"files": self._sizes, "facts": facts})
        return json.loads(json.dumps(facts))

    def remove(self) -> None:
        """Remove the mark first, then the arrays."""
        for path in [self.folder / f"{self.stage}.json", *self.folder.glob(f"{self.stage}.*.npy")]:
            path.unlink(missing_ok=True)


def is_lock(path: Place) -> bool:
    """Return whether a file only says that a process works in its folder."""
    return path.name == "lock" or is_claim(path)


def is_draft(path: Place) -> bool:
    """Return whether a file is half-written."""
    return path.name.startswith(".") and path.name.endswith(".tmp")


def remove_drafts(folders: Iterable[Place]) -> None:
    """Remove the half-written files of killed tasks. No task may be running in these folders. Object stores have no such files."""
    for folder in (folder for folder in folders if isinstance(folder, Path)):
        for path in folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def remove_stages(folders: Iterable[Place], kept: Iterable[str] = ()) -> None:
    """Remove the files of all stages but `kept`, marks first, and drafts."""
    for folder in folders:
        remove_drafts([folder])
        files: list[Place] = [*folder.glob("*.*")]
        for path in sorted(files, key=lambda path: path.suffix != ".json"):
            if path.name.split(".")[0] not in kept:
                path.unlink(missing_ok=True)


def sum_arrays(outputs: Iterable[Output], name: str) -> np.ndarray:
    """Return the sum of an array over tasks."""
    total: Any = 0
    for out in outputs:
        total = total + out.load(name)
    return total


def part_folder(work: Place, part: int) -> Place:
    """Return the folder of a partition."""
    return work / "parts" / f"{part:05d}"


def work_folder(work: str | Place) -> Place:
    """Return the absolute path of a work folder, or its place in an object store."""
    if isinstance(work, StoredPath):
        return work
    kind, _, rest = str(work).partition("://")
    if kind == "file":
        return Path(rest).resolve()
    if not rest and "://" in str(work):
        msg = f"the address of a work folder must name a bucket and a folder, such as s3://bucket/folder; got {work}"
        raise InputError(msg)
    return StoredPath(str(work)) if rest else Path(work).resolve()


def read_manifest(work: str | Place) -> dict[str, Any]:
    """Return the manifest of a prepared folder."""
    manifest = read_json(work_folder(work) / "manifest.json")
    if manifest is None:
        call = Reference(f"prepare(edges, {str(work)!r})")
        raise InputError(
            Sentence("{} must be a folder that {prepare()} finished; it has no manifest.json; run {} first", work, call)
        )
    if manifest.get("version") != VERSION:
        msg = f"{work} was prepared by another version of hushgraph (format {manifest.get('version')}, expected {VERSION}); prepare it again"
        raise InputError(msg)
    return manifest
