"""Drawn releases are saved in a folder of this computer as soon as they are charged.

A release exists once. Until it is in a file, it is lost when the program ends, and so is the budget that was spent on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hushgraph._atomic import check_folder
from hushgraph._errors import Sentence
from hushgraph.privacy import Ledger, Release

FOLDER = "hushgraph-releases"


@dataclass(frozen=True)
class SavedRelease:
    """Where a drawn release was saved, or why it could not be saved.

    Attributes
    ----------
    number : int
        Number of the release in this session, from 1.
    folder : Path or None
        Folder of the release; None if it could not be saved.
    fault : str
        Why the release could not be saved; empty if it was.
    """

    number: int
    folder: Path | None
    fault: str = ""

    def __str__(self) -> str:
        if self.folder is not None:
            return f"Release {self.number} is in {self.folder}"
        return f"Release {self.number} could not be saved ({self.fault}): download it on the page before you end the program"


def checked_release_folder(keep: str | Path | None, ledger: Ledger) -> Path:
    """Return the folder for releases, by default beside the ledger; raise an error if it cannot be used, before anything is charged."""
    folder = (ledger.path.absolute().parent / FOLDER if keep is None else Path(keep)).absolute()
    check_folder(folder, expected=Sentence("{keep=} must be a folder for the releases: "), advice="give another place")
    return folder


def save_release(published: Release, parent: Path, *, number: int) -> SavedRelease:
    """Write the release into a new folder in `parent`: release-1, or the next free name.

    A failure is returned, not raised: the release is charged already, and the page can still show it and offer it for download.
    """
    try:
        return SavedRelease(number, _exported(published, parent))
    except OSError as error:
        return SavedRelease(number, None, os.strerror(error.errno) if error.errno else "the disk refused")
    except Exception:  # the text of an unknown error may quote data, so it is not shown
        return SavedRelease(number, None, "the files could not be made")


def _exported(published: Release, parent: Path) -> Path:
    for k in count(1):
        folder = parent / f"release-{k}"
        if folder.exists():
            continue
        try:
            return published.export(folder)
        except OSError:
            if not folder.exists():  # otherwise another program has just taken the name
                raise
    raise AssertionError
