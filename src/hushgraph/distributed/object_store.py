"""A work folder in an object store: files written whole, read through a cache on this machine, locked by a lease.

An object appears in a store when its upload is complete, so a file is whole or missing, as on a disk. Arrays are mapped into memory: they
are fetched once into a cache folder of this machine, under a name that holds the tag of their content. A store that fails for a while
is asked again, with growing pauses; one that fails for longer ends the call with an error, and the same call goes on later.

The store must show a new object to all readers at once, as S3, Google Cloud Storage, Azure and MinIO do.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hushgraph._atomic import atomic_file, draft_of
from hushgraph._errors import HushgraphError, InputError, MissingPackageError, PathError, StateError
from hushgraph._extras import extra

PATIENCE = 60.0  # seconds for which a store may fail before a call gives up
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 8.0  # seconds between two requests
LEASE, RENEWAL = 30.0, 8.0  # seconds after which a lock that was not renewed is of a process that died; seconds between renewals
OLD = 7 * 86_400  # seconds after which an unused file of the cache is removed
CACHE_SHARE = 0.5  # of the room on the disk that the cache may take
ADVICE = "see that the store can be reached and is well, and run the same call again: it goes on with what is done"
_S3, _OTHERS = ("s3", "s3a"), ("gs", "gcs", "abfs", "abfss", "az")  # protocols of stores whose packages keep listings
_PACKAGES = (
    "botocore",
    "aiobotocore",
    "aiohttp",
    "urllib3",
    "requests",
    "gcsfs",
    "google",
    "azure",
    "adlfs",
    "fsspec",
)  # of stores
_LASTING = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)
RECENT, MOST_RECENT = 30.0, 1000  # seconds and number of the arrays that are not looked up again
_recent: dict[str, tuple[Path, float]] = {}  # the copies of arrays, and when they were looked up
T = TypeVar("T")


class StoreError(PathError):
    """An object store did not do what it was asked to, after all retries or for a reason that a retry does not change."""


# ---- file systems and retries ------------------------------------------------------------------------------------------


def file_system_of(path: str) -> tuple[Any, str]:
    """Return the fsspec file system of a path or an address, and the path inside that file system.

    Listings are not kept: other processes write too. Requests are repeated by `patiently` and not by the packages below it, which
    would multiply the pauses.
    """
    core, kind = extra("fsspec.core", name="dask", purpose="files of a distributed run"), path.partition("://")[0]
    try:
        system, place = core.url_to_fs(path, **_options(kind))
    except ImportError as error:
        if kind in _S3:
            msg = f"files at {kind}:// need s3fs: pip install 'hushgraph[s3]'"
            raise MissingPackageError(msg) from error
        msg = f"files at {kind}:// need a package that is not installed; install the fsspec package for it, such as s3fs for s3://"
        raise MissingPackageError(msg) from error
    except ValueError as error:
        if "rotocol not known" not in str(error):
            raise
        msg = f"an address must begin with a protocol that fsspec knows, such as s3:// or file://; got {kind}://; correct it, or give a path"
        raise InputError(msg) from error
    if kind in _S3:
        system.retries = 1
    return system, place


def _options(kind: str) -> dict[str, Any]:
    """Return options for a file system; those that a user set in the configuration of fsspec come first."""
    if kind not in _S3:
        return {"use_listings_cache": False} if kind in _OTHERS else {}
    from fsspec.config import conf

    given = conf.get("s3", {}).get("config_kwargs", {})
    return {"use_listings_cache": False, "config_kwargs": {"retries": {"total_max_attempts": 1}, **given}}


def is_local(system: Any) -> bool:
    """Return whether a file system is the disk of this machine."""
    return "file" in np.atleast_1d(system.protocol)


def patiently(action: Callable[[], T], address: str, *, missing_ok: bool = True) -> T:
    """Return what `action` returns; repeat it, with growing pauses, while the store at `address` fails for a reason that may pass.

    A missing file is the caller's business with `missing_ok`, and otherwise an error of the store: writing needs its bucket.
    """
    began, tries = 0.0, 0
    while True:
        try:
            return action()
        except Exception as error:
            if isinstance(error, HushgraphError) or (isinstance(error, FileNotFoundError) and missing_ok):
                raise
            if not _may_pass(error):
                if (lasting := _lasting_error(error, address)) is None:
                    raise
                raise lasting from error
            now, tries = time.monotonic(), tries + 1
            began = began or now
            pause = min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE) * random.uniform(0.5, 1.0)
            if now + pause - began > PATIENCE:
                msg = f"{address} must be readable and writable; its store failed for {now - began:.0f} seconds, {tries} times, lastly with {_reason(error)}; {ADVICE}"
                raise StoreError(errno.EIO, msg) from error
        time.sleep(pause)


def _may_pass(error: Exception) -> bool:
    """Return whether another request may succeed: errors of the network and of servers, not of rights, names or programs."""
    if isinstance(error, _LASTING) or type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"):
        return False
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return False
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _PACKAGES


def _lasting_error(error: Exception, address: str) -> HushgraphError | None:
    """Return the error to raise where a retry would not help; None: the error itself says it."""
    if isinstance(error, FileNotFoundError):
        msg = f"{address} must lie in a bucket that exists; its store answered {_reason(error)}; create the bucket, or correct the address"
        return StoreError(errno.ENOENT, msg)
    if isinstance(error, PermissionError):
        msg = f"{address} must be readable, writable and listable with the credentials of this process; its store answered {_reason(error)}; give it rights, or other credentials"
        return StoreError(errno.EACCES, msg)
    if type(error).__module__.partition(".")[0] in _PACKAGES:
        msg = f"{address} needs credentials or a configuration that works; its store's package says {_reason(error)}; set them on client and workers"
        return StoreError(errno.EACCES, msg)
    if isinstance(error, NotImplementedError):
        return InputError(
            f"{address} must lie in a store that can be written to; this kind of address is only read; choose another one"
        )
    return None


def _reason(error: Exception) -> str:
    """Return an error in one line of at most 200 characters; it quotes requests and answers, never content."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


class PatientFile:
    """A file in a store, opened for reading; a read that fails is repeated from the same place."""

    def __init__(self, file: Any, address: str) -> None:
        self._file, self._address, self.closed = file, address, False

    def read(self, size: int = -1) -> bytes:
        """Read bytes from the current place on."""
        return patiently(lambda: self._file.read(size), self._address)

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """Return the current place."""
        return self._file.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return False."""
        return False

    def seekable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Do nothing: the file is only read."""

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._file.close()

    def __enter__(self) -> PatientFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ---- paths -------------------------------------------------------------------------------------------------------------


class StoredPath:
    """A file or folder of a work folder in an object store, with those methods of `Path` that a run uses.

    Parameters
    ----------
    address : str
        The address, such as s3://bucket/folder.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def __str__(self) -> str:
        return self.address

    def __repr__(self) -> str:
        return f"StoredPath({self.address!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPath) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __lt__(self, other: StoredPath) -> bool:
        return self.address < other.address

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(f"{self.address}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return Path(self.name).suffix

    @property
    def parent(self) -> StoredPath:
        """The folder."""
        return StoredPath(self.address.rsplit("/", 1)[0])

    def _ask(self, action: Callable[[Any, str], T], *, missing_ok: bool = True) -> T:
        """Return what `action` of the file system and the path returns, with retries."""

        def asked() -> T:
            return action(*file_system_of(self.address))

        return patiently(asked, self.address, missing_ok=missing_ok)

    def info(self) -> dict[str, Any]:
        """Return the facts that the store has of a file; a FileNotFoundError if there is none."""
        return self._ask(lambda system, path: system.info(path))

    def exists(self) -> bool:
        """Return whether there is a file of this name, or one below it."""
        try:
            self.info()
        except FileNotFoundError:
            return False
        return True

    def size(self) -> int:
        """Return the number of bytes of a file."""
        return int(self.info()["size"])

    def changed(self) -> float:
        """Return when a file was written, in seconds, by the clock of the store."""
        moment: datetime = self._ask(lambda system, path: system.modified(path))
        return moment.timestamp()

    def sizes(self) -> dict[str, int]:
        """Return the files in a folder and their sizes, from one listing."""
        return {name: size for name, size in self._listed().items() if size is not None}

    def _listed(self) -> dict[str, int | None]:
        """Return the names in a folder, with the sizes of files and None for folders."""
        try:
            found = self._ask(lambda system, path: system.ls(path, detail=True))
        except FileNotFoundError:
            return {}
        entries = {entry["name"].rstrip("/").rsplit("/", 1)[-1]: entry for entry in found}
        return {name: int(entry["size"] or 0) if entry["type"] == "file" else None for name, entry in entries.items() if name}

    def iterdir(self) -> Iterator[StoredPath]:
        """Yield what a folder holds."""
        return (self / name for name in self._listed())

    def glob(self, pattern: str) -> Iterator[StoredPath]:
        """Yield what fits a pattern; each part of it is matched in one folder."""
        first, _, rest = pattern.partition("/")
        if not rest:
            yield from (self / name for name in self._listed() if fnmatch.fnmatchcase(name, first))
            return
        folders = [self / first]
        if "*" in first:
            folders = [self / name for name, size in self._listed().items() if size is None and fnmatch.fnmatchcase(name, first)]
        for folder in folders:
            yield from folder.glob(rest)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        _recent.pop(self.address, None)
        try:
            self._ask(lambda system, path: system.rm_file(path))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self) -> None:
        """Remove a folder and all that it holds."""
        with suppress(FileNotFoundError):
            self._ask(lambda system, path: system.rm(path, recursive=True))

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        return self._ask(lambda system, path: system.cat_file(path))

    def write_bytes(self, content: bytes) -> None:
        """Write a file: it appears whole, or not at all."""
        self._ask(lambda system, path: system.pipe_file(path, content), missing_ok=False)

    # ---- through the cache ---------------------------------------------------------------------------------------------

    def fetched(self) -> Path:
        """Return a copy on this machine, fetched unless the cache has the same content.

        Arrays of a run do not change: one that was looked up a moment ago is not looked up again.
        """
        copy, moment = _recent.get(self.address, (None, 0.0))
        if copy is not None and time.monotonic() - moment < RECENT and copy.exists():
            return copy
        info = self.info()
        copy = _cached_name(self.address, info)
        if not copy.exists():
            _make_room(copy.parent, int(info["size"]))
            with atomic_file(copy, suffix=".tmp") as draft:
                self._ask(lambda system, path: system.get_file(path, str(draft)))
                if draft.stat().st_size != info["size"]:
                    msg = f"{self} must have {info['size']} bytes, as its store says; {draft.stat().st_size} came; {ADVICE}"
                    raise StoreError(errno.EIO, msg)
        with suppress(OSError):
            os.utime(copy)  # it is in use
        self._note(copy)
        return copy

    def forget_copy(self) -> None:
        """Remove the copy on this machine: the next look fetches the file again."""
        with suppress(FileNotFoundError):
            _cached_name(self.address, self.info()).unlink(missing_ok=True)
        _recent.pop(self.address, None)

    def _note(self, copy: Path) -> None:
        """Note where the copy of this file is; the notes of the longest unused files are dropped."""
        _recent[self.address] = copy, time.monotonic()
        while len(_recent) > MOST_RECENT:
            _recent.pop(next(iter(_recent)), None)

    @contextmanager
    def uploaded(self) -> Iterator[Path]:
        """Yield the name of a draft on this machine; what the block writes there is uploaded when it ends without an error."""
        folder = cache_folder()
        _make_room(folder, 0)
        with draft_of(folder / self.name, suffix=".tmp") as draft:
            yield draft
            self.upload(draft)

    def upload(self, draft: Path) -> None:
        """Upload a file of the cache folder, which becomes the cached copy."""
        size = draft.stat().st_size
        self._ask(lambda system, path: system.put_file(str(draft), path), missing_ok=False)
        info = self.info()
        if info["size"] != size:
            msg = f"{self} must have {size} bytes, as were sent; its store has {info['size']}; {ADVICE}"
            raise StoreError(errno.EIO, msg)
        copy = _cached_name(self.address, info)
        with suppress(OSError):  # the store has it
            draft.replace(copy)
        self._note(copy)


# ---- the cache ---------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder for copies of files on this machine: in HUSHGRAPH_CACHE, or in the folder for temporary files."""
    given = os.environ.get("HUSHGRAPH_CACHE")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(given, "work") if given else Path(tempfile.gettempdir(), f"hushgraph-{user}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        msg = f"{folder} must belong to the user of this process, because copies of files are kept there; it does not; set HUSHGRAPH_CACHE to another folder"
        raise StateError(msg)
    return folder


def _cached_name(address: str, info: dict[str, Any]) -> Path:
    """Return the file of the cache for an object: its name holds address, size and tag, so a replaced object has another one."""
    text = "\n".join([address, str(info["size"]), content_tag(info)])
    return cache_folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}{Path(address).suffix}"


def content_tag(info: dict[str, Any]) -> str:
    """Return the tag of a file's content, or the time of its last change."""
    keys = ("ETag", "etag", "mtime", "LastModified", "last_modified", "created")
    return str(next((info[key] for key in keys if key in info), None))


def _make_room(folder: Path, size: int) -> None:
    """Remove files of the cache that were not used for a week, and then the longest unused ones while it takes too much of the disk.

    A file that a process has mapped stays readable for it. One that is removed before it is opened is fetched again.
    """
    files = []
    for path in folder.iterdir():
        with suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime, facts.st_size, path))
    taken, free, now = sum(one[1] for one in files), shutil.disk_usage(folder).free, time.time()
    most = CACHE_SHARE * (taken + free)
    for used, length, path in sorted(files):
        if used > now - OLD and (taken + size <= most or path.suffix == ".tmp"):
            continue
        path.unlink(missing_ok=True)
        taken -= length


# ---- locks -------------------------------------------------------------------------------------------------------------


def is_claim(path: Any) -> bool:
    """Return whether a file says that a process works in its folder."""
    return path.name.startswith("lock-")


@contextmanager
def stored_lock(folder: StoredPath) -> Iterator[None]:
    """Lock a folder by an object that is renewed while the block runs; refuse a folder that another process works in.

    Each process writes an object of its own and then lists those of others. Of two processes that begin at the same time at least one
    sees the other. A process that died does not renew its object: after `LEASE` seconds it does not count. All times are the store's.
    """
    claim, name = folder / f"lock-{os.urandom(8).hex()}", f"process {os.getpid()}".encode()
    claim.write_bytes(name)
    try:
        _wait_for_the_dead(folder, claim, name)
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEWAL):
                with suppress(Exception):  # a store that fails for long ends the run elsewhere
                    system, path = file_system_of(claim.address)
                    system.pipe_file(path, name)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(RENEWAL)
    finally:
        with suppress(Exception):
            system, path = file_system_of(claim.address)
            system.rm_file(path)


def _wait_for_the_dead(folder: StoredPath, claim: StoredPath, content: bytes) -> None:
    """Return when no other process holds a lock; refuse the folder as soon as one renews its lock."""
    seen: dict[StoredPath, float] = {}
    while True:
        now, others = claim.changed(), {}
        for other in folder.glob("lock-*"):
            with suppress(FileNotFoundError):
                if other != claim:
                    others[other] = other.changed()
        for other, renewed in others.items():
            if renewed > seen.setdefault(other, renewed):
                msg = f"another run works in {folder}; wait until it ends, or end it and run the same call again: it goes on with what is done"
                raise StateError(msg)
            if now - renewed >= LEASE:
                other.unlink(missing_ok=True)
        if all(now - renewed >= LEASE for renewed in others.values()):
            return
        time.sleep(min(1.0, LEASE / 5))
        claim.write_bytes(content)
