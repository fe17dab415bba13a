"""Where drawn releases are kept: a folder of this computer, written as soon as one is paid for.

A release exists once. Until it is in a file, ending the program would lose it, and with it what was spent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hushgraph._errors import Sentence
from hushgraph.privacy.ledger import Ledger
from hushgraph.privacy.release import Release
from hushgraph.text_files import check_folder

FOLDER = "hushgraph-releases"


@dataclass(frozen=True)
class Kept:
    """What became of a release after it was drawn: the folder it is in, or why it is in none."""

    number: int  # of this session, from 1
    folder: Path | None
    fault: str = ""

    def __str__(self):
        if self.folder is not None:
            return f"Release {self.number} is in {self.folder}"
        return f"Release {self.number} could not be saved ({self.fault}): download it on the page before you end the program"


def keeping_place(keep, ledger: Ledger) -> Path:
    """The folder that releases are written to, beside the ledger if none is given; refused before anything is charged."""
    place = (ledger.path.absolute().parent / FOLDER if keep is None else Path(keep)).absolute()
    check_folder(place, expected=Sentence("{keep=} must be a folder for the releases: "), advice="give another place")
    return place


def keep_release(published: Release, place: Path, *, number: int) -> Kept:
    """Write the release into a new folder of `place`: release-1, or the next name that is free.

    Whatever goes wrong is told, not raised: the release is paid for, and whoever holds it can still pass it on.
    """
    try:
        return Kept(number, _exported(published, place))
    except OSError as error:
        return Kept(number, None, os.strerror(error.errno) if error.errno else "the disk refused")
    except Exception:  # its text might come from anywhere; the release must be shown all the same
        return Kept(number, None, "the files could not be made")


def _exported(published: Release, place: Path) -> Path:
    for k in count(1):
        folder = place / f"release-{k}"
        if folder.exists():
            continue
        try:
            return published.export(folder)
        except OSError:
            if not folder.exists():  # else another program took the name in the meantime
                raise
    raise AssertionError
