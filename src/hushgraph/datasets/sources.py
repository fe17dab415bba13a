"""Where data files come from: the folder of HUSHGRAPH_DATA, the user's cache, or their official source on the web.

Nothing is downloaded that one of the folders has, and a download that fails or is interrupted leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from hushgraph._errors import HushgraphError, InputError

_TIMEOUT = 30.0  # seconds without an answer
_PIECE = 1 << 18  # bytes


class DataUnavailable(HushgraphError, RuntimeError):  # noqa: N818  (what happened to the data, not to the program)
    """Data is neither in the folders nor to be had from its source; the message says where it was looked for and what to do."""


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
    """The folders data files are looked for in, in this order: HUSHGRAPH_DATA if it is set, then the cache.

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
    """Where downloads go: $HUSHGRAPH_CACHE, else $XDG_CACHE_HOME/hushgraph, else ~/.cache/hushgraph."""
    if given := os.environ.get("HUSHGRAPH_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hushgraph"


def find_file(file: DataFile) -> Path | None:
    """The file in the first folder that has it, or None. A copy with a wrong checksum is an error, never used or passed over.

    Where the catalogue knows no checksum, that of the download, which was kept beside it, counts.
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
    """The file from the folders, else downloaded from its official source into the cache.

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
    """The error to raise for a file that no folder has, where `hint` says what else would help."""
    return DataUnavailable(_unavailable(file, "there is no address to download it from", hint))


def _unavailable(file: DataFile, fault: str, hint: str = "") -> str:
    looked = [f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in data_folders()]
    place = "the folder of HUSHGRAPH_DATA" if os.environ.get("HUSHGRAPH_DATA") else "a folder, and set HUSHGRAPH_DATA to it"
    act = f"get it from {file.url} by hand and put it into {place}" if file.url else f"put it into {place}"
    return f"{file.name} ({file.source}) was not found in {' or '.join(looked)}, and {fault}; {act}{'; ' + hint if hint else ''}"


# ---- downloads --------------------------------------------------------------------------------------------------------


def download(file: DataFile) -> Path:
    """The file from its official source, checked, in the cache under its name; a progress bar goes to stderr."""
    _check_address(file.url)
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=folder, prefix=f".{file.name}.", suffix=".part")
    except OSError as fault:
        msg = f"cannot write into the cache {folder} ({fault}); set HUSHGRAPH_CACHE to a folder that can be written"
        raise DataUnavailable(msg) from fault
    try:
        with os.fdopen(handle, "wb") as target:
            digest = _receive(file, target)
        if file.sha256 and digest != file.sha256:
            fault_text = f"what {file.url} sent has the SHA-256 {digest}, not {file.sha256}"
            raise DataUnavailable(_unavailable(file, f"{fault_text}: it was damaged on the way, or has changed"))
        Path(part).chmod(0o644)
        _record_of(folder / file.name).write_text(f"{digest}  {file.name}\n")
        os.replace(part, folder / file.name)
    finally:
        Path(part).unlink(missing_ok=True)
    return folder / file.name


def _receive(file: DataFile, target) -> str:
    """Write what the address sends; returns its SHA-256."""
    digest, received = hashlib.sha256(), 0
    try:
        with urlopen(Request(file.url, headers={"User-Agent": "hushgraph"}), timeout=_TIMEOUT) as answer:
            _check_address(answer.url)  # after redirects
            expected = _whole_number(answer.headers.get("Content-Length"))
            with _progress(file.name, expected) as advance:
                while piece := answer.read(_PIECE):
                    target.write(piece)
                    digest.update(piece)
                    received += len(piece)
                    advance(len(piece))
    except (OSError, HTTPException) as fault:
        reason = getattr(fault, "reason", None) or fault
        raise DataUnavailable(_unavailable(file, f"the download failed ({type(fault).__name__}: {reason})")) from fault
    if expected is not None and received != expected:
        raise DataUnavailable(_unavailable(file, f"the download ended after {received} of {expected} bytes"))
    return digest.hexdigest()


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        msg = f"data is downloaded over https only; got {url}; download it by hand and give its path"
        raise InputError(msg)


@contextmanager
def _progress(name: str, total: int | None) -> Iterator:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        bar = bars.add_task(name, total=total)
        yield lambda size: bars.advance(bar, size)


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _recorded(path: Path) -> str:
    """The checksum that a download left beside the file, if there is one."""
    try:
        return _record_of(path).read_text().split()[0]
    except (OSError, IndexError):
        return ""


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
