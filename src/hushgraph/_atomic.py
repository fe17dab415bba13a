"""Files and folders that appear whole or not at all: they are written under another name in the same folder and renamed at the end."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from hushgraph._errors import FileThereError, FolderThereError, NoFolderError, NotAllowedError, Sentence


def check_folder(place: Path, *, expected: str = "", advice: str) -> None:
    """Refuse a place that is no folder and cannot become one, or that cannot be written to.

    The error message begins with `expected` and ends with `advice`.
    """
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise NoFolderError(Sentence("{}{} is a file, and a folder is needed there; {}", expected, place, advice))
    if not os.access(place, os.W_OK | os.X_OK):
        raise NotAllowedError(Sentence("{}{} cannot be written to; {}", expected, place, advice))


# ---- whole or not at all --------------------------------------------------------------------------------------------


@contextmanager
def atomic_file(
    path: str | Path, *, replace: bool = True, sync: bool = False, hard_links_only: bool = False, suffix: str = ""
) -> Iterator[Path]:
    """Yield the name of a draft; the file that the block writes there takes the name `path` when the block ends without an error.

    After an error the draft is gone and `path` is as before.

    Parameters
    ----------
    path : str or Path
        The file to write. Its folder must exist.
    replace : bool
        Whether an existing file is replaced; otherwise it is a FileExistsError, also if it came while the block ran.
    sync : bool
        Whether the file and its name are on disk when the block ends, so that a loss of power leaves the old file or the new one.
    hard_links_only : bool
        With replace=False: fail on a disk without hard links, where the new name is visible with an empty file for an instant.
    suffix : str
        Added to the name of the draft, which otherwise ends like `path`, since the ending may say the format.
    """
    with draft_of(path, suffix=suffix) as draft:
        yield draft
        take_name(draft, path, replace=replace, sync=sync, hard_links_only=hard_links_only)


@contextmanager
def atomic_folder(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a name for a folder that the block creates and fills; it takes the name `path` when the block ends without an error.

    After an error the draft is gone and `path` is as before. Where the folder exists, it is a FileExistsError, or with `replace` it
    is removed when the new one has its name.
    """
    path = Path(path)
    with draft_of(path) as draft:
        yield draft
        if not path.exists():
            draft.rename(path)
        elif replace:
            _exchange(draft, path)
        else:  # a rename would replace an empty folder
            raise _exists(path)


@contextmanager
def atomic_open(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file to write bytes to, packed if the name ends in .gz; it replaces `path`, safely on disk, when the block ends."""
    path = Path(path)
    if path.is_dir():
        msg = f"{path} is a folder; give the name of a file"
        raise FolderThereError(msg)
    with atomic_file(path, sync=True) as draft, draft.open("xb") as file:
        if path.name.lower().endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield file


# ---- the two steps, for a file whose name is known only when it is written ------------------------------------------


@contextmanager
def draft_of(path: str | Path, *, suffix: str = "") -> Iterator[Path]:
    """Yield a new hidden name in the folder of `path`; a file or folder that still has this name at the end is removed.

    An error of a full disk names `path`, and not the draft or no file at all.
    """
    path = Path(path)
    draft = path.with_name(f".{secrets.token_hex(6)}-{path.name}{suffix}")
    try:
        yield draft
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename in (None, str(draft), draft):
            error.filename = str(path)
        raise
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def take_name(draft: Path, path: str | Path, *, replace: bool = True, sync: bool = False, hard_links_only: bool = False) -> None:
    """Rename a finished draft to `path`; the parameters are those of `atomic_file`."""
    path = Path(path)
    if sync:
        flush_to_disk(draft)
    if replace:
        draft.replace(path)
    else:
        _link(draft, path, hard_links_only)
    if sync:
        flush_to_disk(path.parent)


def _link(draft: Path, path: Path, hard_links_only: bool) -> None:
    """Give the draft its name unless the name exists, in one step: a link is never made over a file."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:
        if hard_links_only:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # the name is ours, or a FileExistsError
        draft.replace(path)


def _exchange(draft: Path, path: Path) -> None:
    """Give the draft of a folder the name of an existing one, which is removed only when the new one has the name."""
    old = path.with_name(f".{secrets.token_hex(6)}-old-{path.name}")
    try:
        path.rename(old)
        draft.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exists(path: Path) -> FileThereError:
    return FileThereError(errno.EEXIST, f"{str(path)!r} exists already; choose another name")


def flush_to_disk(path: Path) -> None:
    """Wait until the content of a file, or the list of names in a folder, is on disk."""
    is_folder = path.is_dir()
    try:
        number = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    except PermissionError:
        if is_folder:  # systems that cannot open folders
            return
        raise
    try:
        os.fsync(number)
    finally:
        os.close(number)
