"""export: the folder of a release, with the noisy and the denoised map and a certificate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hushgraph._atomic import atomic_folder
from hushgraph._errors import FileThereError, InputError, PathError
from hushgraph._validation import choose
from hushgraph.estimators import Denoised, MethodName, denoise
from hushgraph.privacy.certificate import CERTIFICATE, certificate_of
from hushgraph.privacy.map_file import MAP, file_digest, write_map

if TYPE_CHECKING:
    from hushgraph.privacy.releases import Release


def export(
    release: Release,
    folder: str | os.PathLike,
    *,
    method: MethodName,
    nonnegative: bool = True,
    integer: bool = False,
    spreadsheet_safe: bool = False,
    denoised: Denoised | None = None,
) -> Path:
    """Write the folder of a release, all of it or nothing.

    Parameters
    ----------
    release : Release
        The release.
    folder : path
        A folder that does not exist.
    method, nonnegative, integer, spreadsheet_safe : str, bool, bool, bool
        As in `Release.export`.
    denoised : Denoised, optional
        The result of `denoise` on the release with these options, if it was computed before.

    Returns
    -------
    Path
        The folder.
    """
    target = Path(folder)
    if target.exists():
        msg = f"{target.name!r} exists already; a release is written into a new folder, so choose another name"
        raise FileThereError(msg)
    if not (release.exportable and release.kind == "release"):
        msg = "only a release is exported: its noise comes from the operating system and was charged for"
        raise InputError(msg)
    safe = choose("spreadsheet_safe", spreadsheet_safe, (True, False))
    if denoised is None:
        denoised = denoise(release.graph, release, method=method, nonnegative=nonnegative, integer=integer)
    values = {"noisy": release.values, "denoised": denoised.signal, "expected_error": denoised.expected_error()}
    certificate = certificate_of(release)
    certificate["denoised"] = {"method": method, "nonnegative": nonnegative, "integer": integer, "noise_level": release.noise_level}
    certificate["spreadsheet_safe"] = safe
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(target) as draft:
            draft.mkdir()
            draft.chmod(0o755)
            write_map(draft / MAP, release.graph, release.windows, values, spreadsheet_safe=safe)
            certificate["files"] = {MAP: file_digest(draft / MAP)}
            _write_text(draft / CERTIFICATE, json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        msg = (
            f"the release could not be written ({error.strerror}); nothing was left behind, and it is not lost: export the same "
            "object to another place (a new release would be charged again)"
        )
        raise PathError(error.errno, msg) from None
    return target


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
