"""A file or folder is written whole or not at all; nothing else is left behind."""

import errno
import gzip
import os
from pathlib import Path

import pytest

from hushgraph import _atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_links(*_):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_takes_its_name_at_the_end(tmp_path, sync):
    path = tmp_path / "a.csv"
    path.write_text("old")
    with _atomic.atomic_file(path, sync=sync) as draft:
        assert draft.parent == tmp_path
        assert draft.name.endswith("a.csv"), "the ending may say the format"
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.csv"]


def write_and_fail(manager, path: Path, error: type[BaseException]):
    with manager(path) as draft:
        if manager is _atomic.atomic_folder:
            draft.mkdir()
            (draft / "part").write_text("half")
        elif manager is _atomic.atomic_file:
            draft.write_text("half")
        else:
            draft.write(b"half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("manager", [_atomic.atomic_file, _atomic.atomic_folder, _atomic.atomic_open])
def test_an_error_leaves_what_was_there(tmp_path, manager, error):
    with pytest.raises(error):
        write_and_fail(manager, tmp_path / "a", error)
    assert names(tmp_path) == []


def write_second(path: Path):
    with _atomic.atomic_file(path, replace=False) as draft:
        draft.write_text("late")
        path.write_text("early")


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path, monkeypatch, links):
    path = tmp_path / "a"
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(FileExistsError, match="exists"):
        write_second(path)
    assert (names(tmp_path), path.read_text()) == (["a"], "early")


def test_disks_without_hard_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    with _atomic.atomic_file(tmp_path / "a", replace=False) as draft:
        draft.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    with pytest.raises(PermissionError), _atomic.atomic_file(tmp_path / "b", replace=False, hard_links_only=True) as draft:
        draft.write_text("whole")
    assert names(tmp_path) == ["a"]


def test_folders(tmp_path):
    path = tmp_path / "release"

    def write(content: str, **options):
        with _atomic.atomic_folder(path, **options) as draft:
            draft.mkdir()
            (draft / "map.csv").write_text(content)

    write("first")
    with pytest.raises(FileExistsError):
        write("second")
    assert (path / "map.csv").read_text() == "first"
    write("third", replace=True)
    assert (path / "map.csv").read_text() == "third"
    assert names(tmp_path) == ["release"]


def test_a_folder_that_cannot_be_replaced_comes_back(tmp_path):
    path = tmp_path / "release"
    path.mkdir()
    (path / "map.csv").write_text("old")
    with pytest.raises(FileNotFoundError), _atomic.atomic_folder(path, replace=True):
        pass  # no draft is made, so that the second rename fails
    assert (path / "map.csv").read_text() == "old"
    assert names(tmp_path) == ["release"]


def test_packed_files_hold_no_time_and_no_name(tmp_path):
    contents = set()
    for name in ("a.gz", "b.GZ"):
        with _atomic.atomic_open(tmp_path / name) as file:
            file.write(b"text")
        contents.add((tmp_path / name).read_bytes())
    assert len(contents) == 1
    assert gzip.decompress(contents.pop()) == b"text"
    with pytest.raises(IsADirectoryError), _atomic.atomic_open(tmp_path):
        pass
