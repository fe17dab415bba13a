"""Where data files come from: the folder of HUSHGRAPH_DATA, the user's cache, or their official source on the web.

Nothing is downloaded that one of the folders has, and a download that fails or is interrupted leaves nothing behind. Only downloads
need the package pooch.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hushgraph._atomic import check_folder
from hushgraph._errors import HushgraphError, InputError
from hushgraph._extras import extra

_TIMEOUT = 30.0  # seconds without an answer
_PIECE = 1 << 18  # bytes


class DataUnavailable(HushgraphError, RuntimeError):  # noqa: N818  (what happened to the data, not to the program)
    """Data is in no folder and cannot be downloaded; the message says which folders were searched and what to do."""


@dataclass(frozen=True)
class DataFile:
    """A file, where it comes from, and how to know it.

    Attributes
    ----------
    name : str
        Its name in the folders.
    source : str
        Where it comes from, in words.
    url : str
        Official address for downloads (https), empty if there is none.
    sha256 : str
        Its checksum, empty if unknown; a file with another one is refused.
    also : tuple of str
        Other names under which a copy is accepted.
    """

    name: str
    source: str
    url: str = ""
    sha256: str = ""
    also: tuple[str, ...] = ()


def data_folders() -> list[Path]:
    """Return the folders that are searched for data files, in this order: HUSHGRAPH_DATA if it is set, then the cache.

    Examples
    --------
    >>> import os
    >>> os.environ["HUSHGRAPH_CACHE"] = "cache"
    >>> data_folders()[-1].name
    'cache'
    >>> del os.environ["HUSHGRAPH_CACHE"]
    """
    given = os.environ.get("HUSHGRAPH_DATA")
    return [*([Path(given)] if given else []), cache_folder()]


def cache_folder() -> Path:
    """Return the folder for downloads: $HUSHGRAPH_CACHE, else $XDG_CACHE_HOME/hushgraph, else ~/.cache/hushgraph."""
    if given := os.environ.get("HUSHGRAPH_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hushgraph"


def find_file(file: DataFile) -> Path | None:
    """Return the path in the first folder that has the file, or None. A copy with a wrong checksum is an error.

    If the catalogue has no checksum, the checksum that was written next to a download is used.
    """
    for folder in data_folders():
        for name in (file.name, *file.also):
            if (path := folder / name).is_file():
                expected = (file.sha256 if name == file.name else "") or _recorded(path)
                if expected and (got := _sha256(path)) != expected:
                    msg = f"{path} is damaged or not {file.name}: its SHA-256 should be {expected}, but is {got}; remove it"
                    raise DataUnavailable(msg)
                return path
    return None


def fetch_file(file: DataFile, *, allow_download: bool = True) -> Path:
    """Return the path of a file in the folders; download it from its official source into the cache if they do not have it.

    Raises
    ------
    DataUnavailable
        With the name of the file, the folders, the official address, and what to do.
    """
    path = find_file(file)
    if path is not None:
        return path
    if not file.url:
        raise DataUnavailable(_unavailable(file, "there is no address to download it from"))
    if not allow_download:
        raise DataUnavailable(_unavailable(file, "downloads are off (allow_download=False)"))
    return download(file)


def missing_file(file: DataFile, hint: str = "") -> DataUnavailable:
    """Return the error for a file that no folder has; `hint` says what else would help."""
    return DataUnavailable(_unavailable(file, "there is no address to download it from", hint))


def _unavailable(file: DataFile, fault: str, hint: str = "") -> str:
    looked = [f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in data_folders()]
    place = "the folder of HUSHGRAPH_DATA" if os.environ.get("HUSHGRAPH_DATA") else "a folder, and set HUSHGRAPH_DATA to it"
    act = f"get it from {file.url} by hand and put it into {place}" if file.url else f"put it into {place}"
    return f"{file.name} ({file.source}) was not found in {' or '.join(looked)}, and {fault}; {act}{'; ' + hint if hint else ''}"


# ---- downloads --------------------------------------------------------------------------------------------------------


def download(file: DataFile) -> Path:
    """Download a file from its official source into the cache, check it and return its path; a progress bar goes to stderr.

    pooch receives the file under another name and renames it when size and checksum are right.
    """
    _check_address(file.url)
    pooch = extra("pooch", name="data", purpose=f"downloading {file.name}")
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder, advice="choose another cache")
    except OSError as fault:
        msg = f"cannot write into the cache {folder} ({fault}); set HUSHGRAPH_CACHE to a folder that can be written"
        raise DataUnavailable(msg) from fault
    known_hash = f"sha256:{file.sha256}" if file.sha256 else None
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # the progress bar says the same
    try:
        pooch.retrieve(file.url, known_hash, fname=file.name, path=folder, downloader=partial(_receive, file))
    except OSError as fault:  # errors of requests are such errors
        reason = f"the download failed ({type(fault).__name__}: {getattr(fault, 'reason', None) or fault})"
        raise DataUnavailable(_unavailable(file, reason)) from fault
    except ValueError as fault:
        if isinstance(fault, HushgraphError):
            raise
        reason = f"what {file.url} sent has not the SHA-256 {file.sha256}: it was damaged on the way, or has changed"
        raise DataUnavailable(_unavailable(file, reason)) from fault
    finally:
        logger.setLevel(level)
    return folder / file.name


def _receive(file: DataFile, url: str, output: str, _: object) -> None:
    """Write what the address sends to the file `output`; pooch calls this."""
    sizes: list[int | None] = []

    def check_response(response: Any, **_: object) -> None:
        _check_address(response.url)  # of each redirect, too
        sizes.append(_whole_number(response.headers.get("Content-Length")))

    headers = {"User-Agent": "hushgraph", "Accept-Encoding": "identity"}
    with ProgressBar(file.name) as bar:
        pooch = extra("pooch", name="data", purpose=f"downloading {file.name}")
        options = {"headers": headers, "hooks": {"response": check_response}, "timeout": _TIMEOUT, "chunk_size": _PIECE}
        pooch.HTTPDownloader(progressbar=bar, **options)(url, output, None)
    received = Path(output).stat().st_size
    if sizes[-1] is not None and received != sizes[-1]:
        raise DataUnavailable(_unavailable(file, f"the download ended after {received} of {sizes[-1]} bytes"))
    Path(output).chmod(0o644)
    if not file.sha256:  # before the file takes its name, so that there is never a file without its checksum
        _record_of(cache_folder() / file.name).write_text(f"{_sha256(Path(output))}  {file.name}\n")


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        msg = f"data is downloaded over https only; got {url}; download it by hand and give its path"
        raise InputError(msg)


class ProgressBar:
    """A progress bar of rich with the methods that pooch calls."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bars = Progress(*columns, console=Console(stderr=True))
        self._bar = self._bars.add_task(name, total=None)

    def __enter__(self) -> ProgressBar:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @property
    def total(self) -> float | None:
        """The number of bytes to come, None if unknown."""
        return self._bars.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._bars.update(self._bar, total=size or None)

    def update(self, size: int) -> None:
        """Move on by a number of bytes."""
        self._bars.advance(self._bar, size)

    def reset(self) -> None:
        """Go back to the start."""
        self._bars.update(self._bar, completed=0)

    def close(self) -> None:
        """Do nothing: the bar ends with its block."""


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _recorded(path: Path) -> str:
    """Return the checksum that was written next to a downloaded file, empty if there is none."""
    try:
        return _record_of(path).read_text(errors="replace").split()[0]
    except (OSError, IndexError):
        return ""


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
