"""What leaves the house: the folder of a release, with a certificate that says what is guaranteed and on what grounds.

Never written: exact counts, errors against the truth, numbers of events, units, clipped or dropped rows, timings of the counting,
file names of the input, seeds.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy

import hushgraph
from hushgraph._errors import FileThereError, InputError, PathError
from hushgraph.checks import choose
from hushgraph.denoise import Denoised, denoise
from hushgraph.graph import Graph, checked_graph
from hushgraph.privacy.chain import fraction_of
from hushgraph.privacy.claims import (
    FORMAT,
    Check,
    Finding,
    Record,
    Verification,
    attempt,
    certificate_checks,
    check_stamp,
    claims_of,
    in_words,
    ledger_checks,
    noise_level_of,
    read_certificate,
    remarks_of,
    statement_of,
    values_digest,
)
from hushgraph.privacy.ledger import Ledger

if TYPE_CHECKING:
    from hushgraph.privacy.release import Release

MAP, CERTIFICATE = "map.csv", "certificate.json"
_FORMULA = re.compile("['=+@＝＋－＠-]|.*[;\\t\\r\\n]", re.DOTALL)  # what a spreadsheet may take for a formula, or split before one
_TERMS = (
    "epsilon", "delta", "unit", "adjacency", "not_protected", "sensitivity_squared", "bound", "caps", "rules", "unit_column",
    "windows", "graph", "mechanism", "sigma", "attribution", "dataset",
)  # fmt: skip


def certificate_of(release: Release) -> dict:
    """The guarantee of a release and what it rests on, ready for JSON."""
    claims = claims_of(**{name: getattr(release, name) for name in _TERMS})
    return {
        "format": FORMAT,
        "statement": statement_of(claims),
        "in_words": in_words(claims),
        **claims,
        "values_sha256": values_digest(release.values),
        "ledger": {**release.ledger, "budget": dict(release.ledger["budget"])},
        "created": release.created,
        "versions": {
            "hushgraph": hushgraph.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "remarks": remarks_of(claims),
    }


# ---- the folder -------------------------------------------------------------------------------------------------------


def export(
    release: Release,
    folder,
    *,
    method,
    nonnegative: bool = True,
    integer: bool = False,
    spreadsheet_safe: bool = False,
    denoised: Denoised | None = None,
) -> Path:
    """Write the folder of a release; either all of it is there afterwards or nothing.

    `denoised` is what `denoise` makes of the release in this way, if that is there already.
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
    certificate = release.certificate
    certificate["denoised"] = {"method": method, "nonnegative": nonnegative, "integer": integer, "noise_level": release.noise_level}
    certificate["spreadsheet_safe"] = safe
    draft = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        draft.chmod(0o755)
        _write_map(draft / MAP, release, denoised, safe)
        certificate["files"] = {MAP: _digest(draft / MAP)}
        _write(draft / CERTIFICATE, json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
        draft.rename(target)
    except OSError as error:
        msg = (
            f"the release could not be written ({error.strerror}); nothing was left behind, and it is not lost: export the same "
            "object to another place (a new release would be charged again)"
        )
        raise PathError(error.errno, msg) from None
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)  # gone already when it was renamed
    return target


def _write_map(path: Path, release: Release, denoised: Denoised, spreadsheet_safe: bool):
    """One row per node, or per node and window."""
    graph, n_windows = release.graph, 1 if release.windows is None else len(release.windows) - 1
    columns = _public_columns(graph, release.windows, spreadsheet_safe=spreadsheet_safe)
    if graph.coords is not None:
        names = ("lon", "lat") if graph.crs == "lonlat" else ("x", "y", "z")
        places = {name: np.repeat(place, n_windows).tolist() for name, place in zip(names, graph.coords.T, strict=False)}
        columns = {"node": columns.pop("node"), **places, **columns}
    for name, values in {
        "noisy": release.values,
        "denoised": denoised.signal,
        "expected_error": denoised.expected_error(),
    }.items():
        columns[name] = np.asarray(values).ravel().tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC if spreadsheet_safe else csv.QUOTE_MINIMAL)  # also where ; separates
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        file.flush()
        os.fsync(file.fileno())


def _public_columns(graph: Graph, windows, *, spreadsheet_safe: bool) -> dict[str, list]:
    """Node and window of each row of the map. No two labels are written alike: one that begins with an apostrophe gets another."""
    labels = (np.arange(graph.n) if graph.labels is None else graph.labels).tolist()
    if spreadsheet_safe:
        labels = [f"'{label}" if isinstance(label, str) and _FORMULA.match(label) else label for label in labels]
    if windows is None:
        return {"node": labels}
    each = [label for label in labels for _ in windows[1:]]
    return {"node": each, "from": list(windows[:-1]) * graph.n, "to": list(windows[1:]) * graph.n}


def _write(path: Path, text: str):
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- and back ---------------------------------------------------------------------------------------------------------


def read_release(folder, graph: Graph, *, ledger: Ledger | None = None) -> Release:
    """The release that was exported into `folder`, for totals and for denoising again.

    Everything is checked that `verify_release` checks; a fault is an error. Certificates are not signed: whether the ledger was
    charged for this one only the ledger can tell.

    Parameters
    ----------
    folder : path
    graph : Graph
        The public graph it was made on.
    ledger : Ledger, optional
        The ledger that was charged, if you have it.
    """
    from hushgraph.privacy.release import _MADE_HERE, Release

    fault = next(iter(verify_release(folder, checked_graph(graph), ledger).faults), None)
    folder = Path(folder)
    if fault is not None:
        msg = f"{folder.name!r} is not a release on this graph: {fault.detail}; get the folder again from the publisher"
        raise InputError(msg)
    known = read_certificate(folder / CERTIFICATE)
    windows = None if known["windows"] is None else tuple(known["windows"])
    same = ("epsilon", "delta", "adjacency", "unit", "bound", "caps", "rules", "ledger", "created", "attribution", "not_protected")
    squared = fraction_of(known["sensitivity_squared"])
    return Release(
        values=_noisy_values(folder, known), sigma=known["sigma"], kind="release", graph_hash=graph.hash, exportable=True,
        lattice=known["lattice"], windows=windows, sensitivity_squared=int(squared) if squared.denominator == 1 else squared,
        mechanism=known["mechanism"].split()[0], graph=graph, made_by=_MADE_HERE, unit_column=known.get("unit_column"),
        dataset=known.get("dataset"), **{name: known[name] for name in same},
    )  # fmt: skip


def verify_release(folder, graph: Graph | None = None, ledger: Ledger | None = None) -> Verification:
    """Compare all that a folder's certificate claims with its map, the graph and the ledger, as far as these are given.

    Parameters
    ----------
    folder : path
        As `release.export` wrote it.
    graph : Graph, optional
        The public graph.
    ledger : Ledger, optional
        The ledger that was charged.

    Returns
    -------
    Verification
        `checks`, each with `claim`, `holds` (True, False, or None for what could not be checked) and `detail`; `faults`; `ok`.
    """
    folder = Path(folder)
    try:
        known = read_certificate(folder / CERTIFICATE)
    except (OSError, ValueError, RecursionError) as error:
        detail = f"it should hold a whole {CERTIFICATE} and {MAP}, and does not ({type(error).__name__})"
        return Verification((Check("certificate", "The folder holds a certificate", False, detail),))
    own = certificate_checks(known)
    parts = _graph_check(known, graph), *own[1:], *_map_checks(folder, known, graph), *_charge_checks(known, ledger), *_UNKNOWN
    return Verification((own[0], *parts))


_UNKNOWN = (
    Check(
        "certificate",
        "The owner's word is true",
        None,
        "no file can show that graph, windows and caps were chosen without looking at the data, and that ids are those of the units",
    ),
    Check(
        "map",
        "The denoised column is that of the method",
        None,
        "it is made from the noisy one, in the way that is stated, and so are expected errors; hushgraph denoise GRAPH FOLDER makes them again",
    ),
    Check(
        "map",
        "Coordinates and versions are right",
        None,
        "they are for information, as are further columns and files; the graph's hash does not cover coordinates",
    ),
)


def _graph_check(known: dict, graph: Graph | None) -> Check:
    claim = "The graph is the one it was made on"
    if graph is None:
        return Check("graph", claim, None, "no graph was given")

    def same() -> Finding:
        stated, true = known["graph"], {"hash": graph.hash, "nodes": graph.n, "edges": graph.n_edges}
        if stated["hash"] != graph.hash:
            return False, f"it belongs to another graph ({stated['hash'][:12]}...) than the one given ({graph.hash[:12]}...)"
        return stated == true, "" if stated == true else "its numbers of nodes and edges are not the graph's: it was edited"

    return attempt("graph", claim, same)


def _rows_match(folder: Path, known: dict, graph: Graph) -> Finding:
    expected = _public_columns(graph, known["windows"], spreadsheet_safe=known.get("spreadsheet_safe", False))
    rows = _map_rows(folder, list(expected))
    for row in zip(*expected.values(), strict=True):
        if next(rows, None) != list(map(str, row)):
            raise ValueError
    if next(rows, None) is not None:
        raise ValueError
    return True, ""


def _map_checks(folder: Path, known: dict, graph: Graph | None) -> Iterator[Check]:
    def file() -> Finding:
        same = known["files"][MAP] == _digest(folder / MAP)
        return same, "" if same else f"{MAP} is not the file that the certificate describes"

    def values() -> Finding:
        digest = values_digest(_noisy_values(folder, known))
        if known["format"] != FORMAT:
            return None, "the certificate is of a version that did not name their SHA-256; they are on its lattice"
        same = known["values_sha256"] == digest
        return same, "" if same else f"the noisy values of {MAP} are not those of the certificate"

    def level() -> Finding:
        same = known["denoised"]["noise_level"] == noise_level_of(known)
        return same, "" if same else "the noise level of its denoised map is not that of sigma and lattice: it was edited"

    yield attempt("map", "The noise level it was denoised with follows from its noise", level)
    yield attempt("map", f"{MAP} is the file that the certificate describes", file)
    yield attempt("map", "Its noisy values are those of the certificate, on its lattice", values)
    rows = "Its rows are the graph's nodes and the certificate's windows"
    if graph is None:
        yield Check("map", rows, None, "no graph was given")
    else:
        yield attempt("map", rows, lambda: _rows_match(folder, known, graph))


def _charge_checks(known: dict, ledger: Ledger | None) -> list[Check]:
    claim = "The ledger was charged for it"
    if ledger is None:
        return [Check("ledger", claim, None, "no ledger was given, and certificates are not signed: ask its keeper")]
    try:
        stamp = check_stamp(known)["ledger"]["identity"]
    except ValueError:
        return [Check("ledger", claim, False, "the certificate names no ledger, entry and head: it was edited")]
    if stamp != ledger.identity:
        return [Check("ledger", claim, False, f"the certificate is of another ledger than {ledger.path.name}; check the path")]
    trust = Check(
        "ledger",
        "Nobody without the key rewrote the ledger" if ledger.keyed else "Nobody rewrote the ledger",
        True if ledger.keyed else None,
        ""
        if ledger.keyed
        else "it has no key: whoever can write the file can write it anew, unless this machine or a certificate of "
        "yours has seen it before",
    )
    return [*ledger_checks(Record(ledger.path.name, ledger.rows()), known), trust]


def _noisy_values(folder: Path, known: dict) -> np.ndarray:
    """The noisy values, which must be as many as nodes and windows, on the lattice; an error if they are not."""
    values, n = np.array([float(value) for (value,) in _map_rows(folder, ["noisy"])]), known["graph"]["nodes"]
    shape = (n,) if known["windows"] is None else (n, len(known["windows"]) - 1)
    if values.size != np.prod(shape) or not np.array_equal(np.rint(values / known["lattice"]) * known["lattice"], values):
        raise ValueError
    return values.reshape(shape)


def _map_rows(folder: Path, names: list[str]) -> Iterator[list[str]]:
    """Some columns of the map, row by row."""
    with (folder / MAP).open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        places = list(map(next(rows, []).index, names))
        for row in rows:
            yield [row[place] for place in places]
