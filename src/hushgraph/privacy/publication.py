"""export: the folder of a release, with the noisy and the denoised map, a certificate and a report for the browser."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushgraph._atomic import atomic_file, atomic_folder
from hushgraph._errors import FileThereError, InputError, PathError
from hushgraph._validation import choose
from hushgraph.estimators import INTERVAL_LEVEL, Denoised, MethodName, denoise
from hushgraph.privacy.certificate import CERTIFICATE, certificate_of, read_certificate, remarks_of
from hushgraph.privacy.guides import check_guides, public_guides
from hushgraph.privacy.map_file import MAP, REPORT, file_digest, map_values, write_map

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
    guides: Any = None,
    report: bool = False,
) -> Path:
    """Write the folder of a release, all of it or nothing; the report is added when map and certificate are safe.

    Parameters
    ----------
    release : Release
        The release.
    folder : path
        A folder that does not exist.
    method, nonnegative, integer, spreadsheet_safe : str, bool, bool, bool
        As in `Release.export`.
    denoised : Denoised, optional
        The result of `denoise` on the release with these options, if it was computed before; it says itself which guides it had.
    guides : optional
        As in `Release.export`; not with `denoised`.
    report : bool
        As in `Release.export`.

    Returns
    -------
    Path
        The folder.
    """
    target = Path(folder)
    if target.exists():
        msg = f"{str(target)!r} exists already; a release is written into a new folder, so choose another name"
        raise FileThereError(msg)
    if not (release.exportable and release.kind == "release"):
        msg = "only a release is exported: its noise comes from the operating system and was charged for"
        raise InputError(msg)
    safe = choose("spreadsheet_safe", spreadsheet_safe, (True, False))
    choose("report", report, (True, False))
    if denoised is not None and guides is not None:
        msg = "give guides or denoised, not both: a denoised map was made with its guides already"
        raise InputError(msg)
    if denoised is None:
        if guides is not None:
            check_guides(release.graph, guides, method=method)
        denoised = denoise(release.graph, release, method=method, nonnegative=nonnegative, integer=integer, guides=guides)
    values = map_values(release.values, denoised)
    certificate = certificate_with_map(release, denoised, method=method, nonnegative=nonnegative, integer=integer)
    certificate["spreadsheet_safe"] = safe
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(target) as draft:
            draft.mkdir()
            draft.chmod(0o755)
            write_map(draft / MAP, release.graph, release.windows, values, spreadsheet_safe=safe)
            certificate["files"] = {MAP: file_digest(draft / MAP)}
            _write_text(draft / CERTIFICATE, _certificate_text(certificate))
    except OSError as error:
        msg = (
            f"the release could not be written ({error.strerror}), and no part of it was left behind; if you have the release in a variable, "
            "export it to another place: a new release is charged again"
        )
        raise PathError(error.errno, msg) from None
    if report and release.graph.coords is not None:
        add_report(target, release, denoised)
    return target


def add_report(folder: Path, release: Release, denoised: Denoised, texts: Mapping[str, Any] | None = None) -> Path | None:
    """Write the report into the folder of a release, and then its SHA-256 into the certificate.

    The folder was complete before, so a report that fails or is interrupted loses nothing: a failure is a warning, since the release was
    charged for. The report shows the certificate as it was before, with the SHA-256 of the map and without its own.

    Parameters
    ----------
    folder : Path
        The folder that `export` wrote.
    release : Release
        The release.
    denoised : Denoised
        Its denoised map.
    texts : dict, optional
        What the report says of the values: title, label and other arguments of `write_report`.

    Returns
    -------
    Path or None
        The report; None if it failed.
    """
    path = folder / REPORT
    try:
        certificate = read_certificate(folder / CERTIFICATE)
        from hushgraph.plotting import write_report  # from a package above, when it is needed: see the contracts in pyproject.toml

        with atomic_file(path, replace=False) as draft:
            write_report(draft, release.graph, release, denoised, certificate=certificate, **(texts or {}))
            digest = file_digest(draft)
        certificate["files"][REPORT] = digest
        with atomic_file(folder / CERTIFICATE, sync=True) as draft:
            _write_text(draft, _certificate_text(certificate))
    except Exception as error:
        warnings.warn(f"the release is complete, but its {REPORT} could not be written ({type(error).__name__})", stacklevel=2)
        return None
    return path


def certificate_with_map(release: Release, denoised: Denoised, *, method: str, nonnegative: bool, integer: bool) -> dict[str, Any]:
    """Return the certificate of a release with what it says of the denoised map: how it was made, and from which public guides.

    Parameters
    ----------
    release : Release
        The release.
    denoised : Denoised
        The denoised map.
    method, nonnegative, integer : str, bool, bool
        How it was made.

    Returns
    -------
    dict
        The certificate, ready for JSON.
    """
    certificate = certificate_of(release)
    certificate["denoised"] = {
        "method": method,
        "nonnegative": nonnegative,
        "integer": integer,
        "noise_level": release.noise_level,
        "interval": INTERVAL_LEVEL,
    }
    if entries := public_guides(denoised):
        certificate["denoised"]["guides"] = entries
    certificate["remarks"] = remarks_of(certificate)
    return certificate


def _certificate_text(certificate: dict[str, Any]) -> str:
    return json.dumps(certificate, indent=2, ensure_ascii=False) + "\n"


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
