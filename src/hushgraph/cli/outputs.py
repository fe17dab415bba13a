"""Output files of commands: they appear completely or not at all, replace nothing without --force, and links never."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hushgraph._atomic import atomic_file, atomic_folder, check_folder
from hushgraph._errors import FileThereError, FolderThereError, InputError

RELEASE_FILES = {"map.csv", "certificate.json", "report.html"}
SERIES_FILES = {"summary.csv", "summary.json"}


def checked_file(path: Path, *, force: bool) -> Path:
    """Return `path` if a file can be written there; called before any work is done."""
    if str(path) == "-":
        msg = "- is no file: results go to a file, not to standard output; give its name"
        raise InputError(msg)
    if path.is_dir():
        msg = f"{path} is a folder, and a file is to be written; give it a name inside"
        raise FolderThereError(msg)
    _refuse_link(path, "file", force=force)
    if path.exists() and not force:
        raise FileThereError(_exists(path))
    _check_room(path)
    return path


def checked_report(path: Path | None, output: Path, *, force: bool) -> None:
    """Raise an error if the report would not be an HTML file, or would replace the output that it describes."""
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
    """Return `path` if the folder of a release can be written there; with `force` it may replace an earlier release, nothing else."""
    return _checked_new(path, "release", lambda names: names <= RELEASE_FILES, force=force)


def checked_series_folder(path: Path, *, force: bool) -> Path:
    """Return `path` if the folder of a series can be written there; with `force` it may replace an earlier series, nothing else."""
    return _checked_new(path, "series", lambda names: names >= SERIES_FILES and names <= _files_of_series(path), force=force)


def _files_of_series(folder: Path) -> set[str]:
    """Return the names of the files that the summary of a series lists, and of the summary itself; none if it cannot be read."""
    try:
        listed = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["releases"]
        return SERIES_FILES | {str(one["file"]) for one in listed}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _checked_new(path: Path, kind: str, is_one: Callable[[set[str]], bool], *, force: bool) -> Path:
    _refuse_link(path, "folder", force=force)
    if path.exists():
        if not force:
            raise FileThereError(_exists(path))
        if not path.is_dir() or not is_one({part.name for part in path.iterdir()}):
            msg = f"{path} is not the folder of an earlier {kind} alone; --force replaces only that; choose another name"
            raise FileThereError(msg)
    _check_room(path)
    return path


def _refuse_link(path: Path, kind: str, *, force: bool) -> None:
    """Refuse a link that would be replaced, and one to nothing: what it points to would stay as it was."""
    if path.is_symlink() and (force or not path.exists()):
        msg = f"{path} is a link, and a {kind} of its own is to be written; choose another name, or that of the {kind} itself"
        raise FileThereError(msg)


@contextmanager
def written(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield the path of a draft beside `path`; the draft is renamed to `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_file(path, replace=force) as draft:
            yield draft
    except FileExistsError:
        if path.exists() and not force:
            raise FileThereError(_exists(path)) from None
        raise


@contextmanager
def written_folder(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield the path of a folder to write; with `force` it then replaces the earlier folder."""
    if not (force and path.exists()):
        yield path
        return
    with atomic_folder(path, replace=True) as draft:
        yield draft


def _exists(path: Path) -> str:
    return f"{path} exists already; choose another name, or say --force to replace it"


def _check_room(path: Path) -> None:
    """Refuse a place where nothing can be written."""
    check_folder(path.absolute().parent, advice="choose another place")
