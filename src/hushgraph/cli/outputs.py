"""Files that appear whole or not at all, and replace nothing unless told to."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushgraph._errors import FileThereError, FolderThereError, InputError

RELEASE_FILES = {"map.csv", "certificate.json", "report.html"}


def checked_file(path: Path, *, force: bool) -> Path:
    """`path` if a file can come there, before any work is done."""
    if str(path) == "-":
        msg = "- is no file: results go to a file, not to standard output; give its name"
        raise InputError(msg)
    if path.is_dir():
        msg = f"{path} is a folder, and a file is to be written; give it a name inside"
        raise FolderThereError(msg)
    if path.exists() and not force:
        raise FileThereError(_exists(path))
    _check_room(path)
    return path


def checked_report(path: Path | None, output: Path, *, force: bool) -> None:
    """Refuse a report, if one is wanted, that is no page or would come in the place of what it reports on."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        msg = f"{path} must end in .html: a report is a page for the browser; choose such a name"
        raise InputError(msg)
    if path.absolute() == output.absolute():
        msg = f"{path} is the name of the report and of the output; choose another name for one of them"
        raise InputError(msg)
    checked_file(path, force=force)


def checked_folder(path: Path, *, force: bool) -> Path:
    """`path` if a release's folder can come there; with `force` also instead of an earlier release, never of anything else."""
    if path.exists():
        if not force:
            raise FileThereError(_exists(path))
        if not path.is_dir() or {part.name for part in path.iterdir()} - RELEASE_FILES:
            msg = f"{path} is not the folder of an earlier release alone; --force replaces only that; choose another name"
            raise FileThereError(msg)
    _check_room(path)
    return path


@contextmanager
def written(path: Path, *, force: bool) -> Iterator[Path]:
    """A draft beside `path`, to be written in the block; it takes the name when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{secrets.token_hex(6)}-{path.name}")  # the ending says the format
    try:
        yield draft
        if force:
            draft.replace(path)
        else:
            _take_name(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def written_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """A folder's name to be filled in the block; with `force` it then takes the place of the earlier one."""
    if not (force and path.exists()):
        yield path
        return
    token = secrets.token_hex(6)
    draft, old = (path.with_name(f".{token}-{part}-{path.name}") for part in ("new", "old"))
    try:
        yield draft
        path.rename(old)
        draft.rename(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        for part in (draft, old):
            shutil.rmtree(part, ignore_errors=True)


def _take_name(draft: Path, path: Path) -> None:
    """Rename, unless somebody was faster: a link is never made over a file."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # disks without hard links
        if not path.exists():
            draft.replace(path)
            return
    else:
        return
    raise FileThereError(_exists(path))


def _exists(path: Path) -> str:
    return f"{path} exists already; choose another name, or say --force to replace it"


def _check_room(path: Path) -> None:
    """Refuse a place where nothing can be written."""
    from hushgraph.text_files import check_folder

    check_folder(path.absolute().parent, advice="choose another place")
