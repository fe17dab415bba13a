"""Files as the only state: arrays that are written whole or not at all, marks of finished tasks, and the manifest.

A file is written under another name and renamed, or uploaded whole into an object store (`object_store`). A task writes its mark last,
with the sizes and checksums of its files, when they are safe. The files of a killed task or after a loss of power have no mark, or do
not fit it, and the task runs again. A file whose bytes changed later, with the same size, does not fit its checksum: it is not used.

A process compares a checksum once for each file that it did not itself write on a disk. Arrays without a task have theirs in a file beside
them (`mark_array`). The facts in marks, in the manifest and in other JSON files have one in the file itself. Folders of earlier versions have no checksums.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from hushgraph._atomic import atomic_file, flush_to_disk
from hushgraph._errors import InputError, NoFileError, PathError, Reference, Sentence, StateError
from hushgraph.distributed.object_store import StoredPath, StoreError, cache_folder, is_claim, stored_lock
from hushgraph.files import ArrayHeader, read_array_header

Place = Path | StoredPath  # a file or folder of a work folder: on a disk that all workers see, or in an object store
VERSION = 1
CHUNK = 2**20  # values, or bytes, read at a time where whole arrays are too large
DEEPEST = 6  # the folder of a run is at most so many folders above its files
_FACTS_CHECKSUM = "checksum of all other facts"
MOST_KNOWN = 100_000  # files whose checksums are not compared again
_known: dict[str, tuple[int, int, int]] = {}  # files that this process wrote or compared with their checksums, as they were then


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


# ---- arrays ------------------------------------------------------------------------------------------------------------


def write_array(path: Place, array: np.ndarray, *, safe: bool = False) -> int:
    """Write an array into a .npy file, and return its checksum."""
    header = np.lib.format.header_data_from_array_1_0(array)
    return _write(path, header, [array.T if header["fortran_order"] else array], safe)


def write_rows(path: Place, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray], *, safe: bool = False) -> int:
    """Write an array from its pieces, one after the other, and return its checksum: the whole array is never in memory."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    return _write(path, header, (np.asarray(row, dtype=dtype) for row in rows), safe)


def _write(path: Place, header: dict[str, Any], rows: Iterable[np.ndarray], safe: bool) -> int:
    """Write the header and the numbers of an array, and return the checksum of all bytes: CRC-32, of which zlib does gigabytes per second."""
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, header)
    with open_draft(path, safe=safe) as file:
        file.write(start.getvalue())
        checksum = zlib.crc32(start.getvalue())
        for row in rows:
            numbers = np.ascontiguousarray(row)
            checksum = zlib.crc32(numbers.data, checksum)
            numbers.tofile(file)
    if isinstance(path, Path):
        _know(path, _identity(path))
    return checksum


def read_array(path: Place, *, whole: bool = True, checksum: Callable[[], int | None] | None = None) -> np.ndarray:
    """Return the array of a file, in memory if `whole`, otherwise mapped; an InputError if the file is damaged.

    `checksum` returns what `write_array` returned; None: it is not known. It is called once for a file that this process did not write.
    A mapped file is read through for it once, beside the mapping: pages of a mapping would count as memory of the process.
    """
    try:
        if isinstance(path, Path):
            array = _load(path, whole, checksum)
        elif (array := _load_copy(path, whole, checksum)) is None:
            path.forget_copy()  # perhaps only the copy on this machine is damaged
            array = _load_copy(path, whole, checksum)
    except FileNotFoundError as error:
        raise _gone_error(path) from error
    if array is None:
        raise damaged_error(path)
    return array


def mark_array(path: Place, checksum: int) -> None:
    """Write the checksum of an array that belongs to no task into a file beside it, when the array is safe."""
    write_json(_mark_of(path), {"checksum": checksum})


def is_marked(path: Place) -> bool:
    """Return whether an array and its checksum are there."""
    return _mark_of(path).exists() and path.exists()


def read_marked(path: Place, *, whole: bool = True) -> np.ndarray:
    """Return an array, compared with the checksum beside it, if there is one."""
    return read_array(path, whole=whole, checksum=lambda: (read_json(_mark_of(path)) or {}).get("checksum"))


def _mark_of(path: Place) -> Place:
    return path.parent / f"{path.name.removesuffix('.npy')}.json"


def _load_copy(path: StoredPath, whole: bool, checksum: Callable[[], int | None] | None) -> np.ndarray | None:
    while True:
        copy = path.fetched()
        with suppress(FileNotFoundError):  # another process made room in the cache just now
            return _load(copy, whole, checksum, is_copy=True)


def _load(path: Path, whole: bool, checksum: Callable[[], int | None] | None, *, is_copy: bool = False) -> np.ndarray | None:
    """Return the array of a file of this machine; None if it is damaged."""
    with path.open("rb") as file:
        identity, header = _identity(file.fileno(), is_copy=is_copy), read_array_header(file)
        if header is None or header.dtype.kind not in "biuf" or file.tell() + header.size > identity[1]:
            return None
        start = file.tell()
        expected = None if checksum is None or _known.get(str(path)) == identity else checksum()
        try:
            array = _read_numbers(file, header) if whole else _map_numbers(file, header)
        except (ValueError, OverflowError):  # such as no rows, but more columns than there are addresses
            return None
        if checksum is not None and expected is None:
            _know(path, identity)
        elif expected is not None:
            numbers = [(array.T if header.fortran_order else array).data] if whole else _bytes_of(file, start, header.size)
            file.seek(0)
            if _checksum_of(file.read(start), numbers) != expected:
                return None
            _know(path, identity)
    return array


def _read_numbers(file: BinaryIO, header: ArrayHeader) -> np.ndarray:
    numbers = np.fromfile(file, header.dtype, math.prod(header.shape))
    return numbers.reshape(header.shape[::-1]).T if header.fortran_order else numbers.reshape(header.shape)


def _map_numbers(file: Any, header: ArrayHeader) -> np.ndarray:
    return np.memmap(file, header.dtype, "r", file.tell(), header.shape, "F" if header.fortran_order else "C")


def _checksum_of(header: bytes, numbers: Iterable[Any]) -> int:
    checksum = zlib.crc32(header)
    for part in numbers:
        checksum = zlib.crc32(part, checksum)
    return checksum


def _bytes_of(file: BinaryIO, start: int, size: int) -> Iterator[bytes]:
    """Yield the bytes of a stretch of a file."""
    file.seek(start)
    for piece in pieces(size):
        yield file.read(piece.stop - piece.start)


def _identity(file: Path | int, *, is_copy: bool = False) -> tuple[int, int, int]:
    """Return what changes when a file is written: its number on the disk, its size and its time; 0 for the time of a copy, which each use sets."""
    facts = os.stat(file)
    return facts.st_ino, facts.st_size, 0 if is_copy else facts.st_mtime_ns


def _know(path: Path, identity: tuple[int, int, int]) -> None:
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[str(path)] = identity


def damaged_error(path: Place) -> InputError:
    """Return the error of a file whose content is not what was written, with what to do."""
    advice = "remove this file and run the same call again: it is computed again"
    if _is_of_prepared_graph(path):
        advice = "prepare the graph again in another folder"
    return InputError(Sentence("{} is damaged: it does not hold what was written there; {}", path, advice))


def _gone_error(path: Place) -> NoFileError:
    """Return the error of a file that is missing, with what to do."""
    if _is_of_prepared_graph(path):
        return NoFileError(Sentence("{} is gone; prepare the graph again in another folder", path))
    if (run := _run_of(path)) is not None:
        msg = "{} is gone; remove the folder {} and call {denoise()} again: all of it is computed again"
        return NoFileError(Sentence(msg, path, run))
    return NoFileError(Sentence("{} is gone; run the same call again: it is computed again", path))


def _is_of_prepared_graph(path: Place) -> bool:
    """Return whether a file was written by a preparation that has ended: nothing writes it again."""
    stage, folder = path.name.split(".")[0], path.parent
    root = folder.parent.parent if folder.parent.name == "parts" else folder
    is_written_once = stage in ("rows", "zone", "frame", "owner") and root.name.startswith("graph-")
    return is_written_once and (root / "manifest.json").exists()


def _run_of(path: Place) -> Place | None:
    """Return the folder of the run that a file belongs to; None for other files."""
    folder = path.parent
    for _ in range(DEEPEST):
        if (folder / "run.json").exists():
            return folder
        folder = folder.parent
    return None


def has_hash(path: Place, digest: str) -> bool:
    """Return whether a file has this SHA-256; a process looks once."""
    copy = path.fetched() if isinstance(path, StoredPath) else path
    identity = _identity(copy, is_copy=copy is not path)
    if _known.get(str(copy)) == identity:
        return True
    if file_hash(path) != digest:
        return False
    _know(copy, identity)
    return True


def file_hash(path: Place) -> str:
    """Return the SHA-256 of a file."""
    with (path.fetched() if isinstance(path, StoredPath) else path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Place, facts: dict[str, Any]) -> None:
    """Write facts as JSON with their checksum, safely on disk."""
    facts = json.loads(json.dumps(facts))  # as they will be read
    content = json.dumps({**facts, _FACTS_CHECKSUM: _checksum_of_facts(facts)}, indent=1).encode()
    if isinstance(path, StoredPath):
        path.write_bytes(content)
        return
    with open_draft(path, safe=True) as file:
        file.write(content)


def read_json(path: Place) -> dict[str, Any] | None:
    """Return the facts in a JSON file; None if the file is missing or damaged."""
    try:
        facts = json.loads(path.read_bytes().decode("utf-8"))
    except StoreError:  # it may be there
        raise
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(facts, dict):
        return None
    if _FACTS_CHECKSUM not in facts:  # a file of an earlier version
        return facts
    return facts if facts.pop(_FACTS_CHECKSUM) == _checksum_of_facts(facts) else None


def _checksum_of_facts(facts: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


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


class MarkFacts(dict[str, Any]):
    """The facts in the mark of a task. One that is missing, in a mark without a checksum, is the error of a damaged file."""

    def __init__(self, facts: dict[str, Any], path: Place) -> None:
        super().__init__(facts)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise damaged_error(self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        return MarkFacts, (dict(self), self._path)


class Output:
    """The files of one task: arrays `stage.name.npy` in a folder, and the mark `stage.json`, written last."""

    def __init__(self, folder: Place, stage: str) -> None:
        self.folder, self.stage = folder, stage
        self._sizes: dict[str, int] = {}
        self._checksums: dict[str, int] = {}
        self._mark: dict[str, Any] | None = None

    def path(self, name: str) -> Place:
        """Return the file of an array."""
        return self.folder / f"{self.stage}.{name}.npy"

    def save(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        self._checksums[name] = write_array(self.path(name), array)
        self._sizes[name] = size_of(self.path(name))

    def save_rows(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, rows: Iterable[np.ndarray]) -> None:
        """Write an array from its pieces."""
        self._checksums[name] = write_rows(self.path(name), shape, dtype, rows)
        self._sizes[name] = size_of(self.path(name))

    def load(self, name: str, *, whole: bool = True) -> np.ndarray:
        """Return an array, in memory if `whole`, otherwise mapped."""
        return read_array(self.path(name), whole=whole, checksum=lambda: self._checksum(name))

    def has(self, name: str) -> bool:
        """Return whether the task wrote an array of this name: some are written only where they are needed."""
        mark = self._read_mark()
        return name in mark["files"] if mark is not None else self.path(name).exists()

    @property
    def has_checksums(self) -> bool:
        """Whether the mark has a checksum of each array: what they hold need not be looked at then."""
        mark = self._read_mark()
        return mark is not None and all(isinstance(mark["checksums"].get(name), int) for name in mark["files"])

    def _checksum(self, name: str) -> int | None:
        """Return the checksum of an array, as this object wrote it, or as the mark states it; None if it is not known."""
        if name in self._checksums or (mark := self._read_mark()) is None:
            return self._checksums.get(name)
        return mark["checksums"].get(name)

    def _read_mark(self) -> dict[str, Any] | None:
        """Return the mark, which is read once; None if it is missing or damaged."""
        if self._mark is None:
            path = self.folder / f"{self.stage}.json"
            mark = read_json(path)
            if mark is not None and all(isinstance(mark.get(name), dict) for name in ("files", "facts")):
                checksums = mark.get("checksums")
                facts = MarkFacts(mark["facts"], path)
                self._mark = {**mark, "checksums": checksums if isinstance(checksums, dict) else {}, "facts": facts}
        return self._mark

    def read_facts(self) -> dict[str, Any] | None:
        """Return the facts of a finished task whose files are whole; otherwise None."""
        self._mark = None  # another process may have finished the task meanwhile
        if (mark := self._read_mark()) is None:
            return None
        sizes = self._found_sizes(mark["files"])
        return mark["facts"] if all(sizes.get(name) == size for name, size in mark["files"].items()) else None

    def read_stated(self) -> dict[str, Any]:
        """Return the facts of a task that is known to be finished; an InputError if its mark is missing or damaged."""
        if (mark := self._read_mark()) is None:
            raise damaged_error(self.folder / f"{self.stage}.json")
        return mark["facts"]

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
        mark = {"files": self._sizes, "checksums": self._checksums, "facts": facts}
        write_json(self.folder / f"{self.stage}.json", mark)
        return json.loads(json.dumps(facts))

    def remove(self) -> None:
        """Remove the mark first, then the arrays."""
        self._mark = None
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


def checked_manifest(work: str | Place) -> dict[str, Any]:
    """Return the manifest of a work folder, which must be that of the graph in it: a damaged one differs."""
    manifest = read_manifest(work)
    folder = str(manifest.get("folder"))
    is_name = re.fullmatch(r"[\w-]+", folder) is not None
    if not is_name or read_json(work_folder(work) / folder / "manifest.json") != manifest:
        msg = (
            "manifest.json of {} is damaged: it does not agree with that of the graph in the folder; remove it and call {prepare()} with the "
            "same arguments again: it goes on with what is done"
        )
        raise InputError(Sentence(msg, work))
    return manifest
