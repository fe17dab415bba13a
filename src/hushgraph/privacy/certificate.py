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
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy

import hushgraph
from hushgraph.denoise import Denoised, denoise
from hushgraph.graph import Graph, checked_graph
from hushgraph.privacy.calibration import mechanism_sigma
from hushgraph.privacy.guarantee import guarantee_in_words
from hushgraph.privacy.noise import lattice_step

if TYPE_CHECKING:
    from hushgraph.privacy.release import Release

FORMAT = "hushgraph release 1"
MAP, CERTIFICATE = "map.csv", "certificate.json"
NEIGHBOURS = {
    "add-remove": "adding or removing all data of one {unit}",
    "change-one": "replacing all data of one {unit} by other data",
}


def certificate_of(release: Release) -> dict:
    """The guarantee of a release and what it rests on, ready for JSON."""
    return {
        "format": FORMAT,
        "statement": _statement(release),
        "in_words": guarantee_in_words(release.epsilon, delta=release.delta, unit=release.unit, adjacency=release.adjacency),
        "epsilon": release.epsilon,
        "delta": release.delta,
        "unit": release.unit,
        "adjacency": release.adjacency,
        "not_protected": release.not_protected or "not stated",
        "sensitivity_squared": _number(release.sensitivity_squared),
        "bound": release.bound,
        "caps": release.caps,
        "rules": release.rules,
        "windows": None if release.windows is None else list(release.windows),
        "public_graph": True,
        "graph": {"hash": release.graph_hash, "nodes": release.graph.n, "edges": release.graph.n_edges},
        "mechanism": f"{release.mechanism} Gaussian, rounded to a lattice, sampled exactly from the operating system's entropy",
        "sigma": release.sigma,
        "lattice": release.lattice,
        "largest_count": release.largest_count,
        "ledger": release.ledger,
        "created": release.created,
        "versions": {
            "hushgraph": hushgraph.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "attribution": release.attribution,
        "remarks": _remarks(release),
    }


def _statement(release: Release) -> str:
    change = NEIGHBOURS[release.adjacency].format(unit=release.unit)
    grounds = "the number of values a unit can change was enforced by truncation" if release.bound == "enforced" else (
        "that a unit changes the counts by no more than the stated sensitivity was ASSUMED, not enforced"
    )  # fmt: skip
    return (
        f"(epsilon, delta)-differential privacy: for every set S of possible noisy maps, {change} changes P[S] to at most "
        f"exp({release.epsilon!r}) P[S] + {release.delta!r}; {grounds}."
    )


def _remarks(release: Release) -> list[str]:
    return [
        "The denoised map and its expected error are computed from the noisy map alone and carry the same guarantee.",
        "Counts are those after truncation and dropping by the stated caps and rules; that is what all figures here are about.",
        "Sums over regions should be taken from the noisy column: they are unbiased for those counts, with standard error "
        f"{release.noise_level:.6g} times the root of the number of values; the denoised map is biased for sums.",
        "The guarantee is for this release; all releases of the ledger's period together have what its budget says.",
        "No protection against whoever can time the computation or read the memory of the machine.",
    ]


def _number(value) -> int | str:
    """An exact square as an int, or as 'p/q'."""
    return int(value) if value == int(value) else str(value)


# ---- the folder -------------------------------------------------------------------------------------------------------


def export(
    release: Release, folder, *, method, nonnegative: bool = True, integer: bool = False, denoised: Denoised | None = None
) -> Path:
    """Write the folder of a release; either all of it is there afterwards or nothing.

    `denoised` is what `denoise` makes of the release in this way, if that is there already.
    """
    target = Path(folder)
    if target.exists():
        msg = f"{target.name!r} exists already; a release is written into a new folder, so choose another name"
        raise FileExistsError(msg)
    if not (release.exportable and release.kind == "release"):
        msg = "only a release is exported: its noise comes from the operating system and was charged for"
        raise ValueError(msg)
    if denoised is None:
        denoised = denoise(release.graph, release, method=method, nonnegative=nonnegative, integer=integer)
    certificate = release.certificate
    certificate["denoised"] = {"method": method, "nonnegative": nonnegative, "integer": integer, "noise_level": release.noise_level}
    draft = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        draft.chmod(0o755)
        _write_map(draft / MAP, release, denoised)
        certificate["files"] = {MAP: _digest(draft / MAP)}
        _write(draft / CERTIFICATE, json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
        draft.rename(target)
    except OSError as error:
        msg = (
            f"the release could not be written ({error.strerror}); nothing was left behind, and it is not lost: export the same "
            "object to another place (a new release would be charged again)"
        )
        raise OSError(error.errno, msg) from None
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)  # gone already when it was renamed
    return target


def _write_map(path: Path, release: Release, denoised: Denoised):
    """One row per node, or per node and window."""
    graph, n_windows = release.graph, 1 if release.windows is None else len(release.windows) - 1
    labels = np.arange(graph.n) if graph.labels is None else graph.labels
    columns = {"node": np.repeat(labels, n_windows).tolist()}
    if graph.coords is not None:
        names = ("lon", "lat") if graph.crs == "lonlat" else ("x", "y", "z")
        columns |= {name: np.repeat(place, n_windows).tolist() for name, place in zip(names, graph.coords.T, strict=False)}
    if release.windows is not None:
        columns |= {"from": list(release.windows[:-1]) * graph.n, "to": list(release.windows[1:]) * graph.n}
    for name, values in {
        "noisy": release.values,
        "denoised": denoised.signal,
        "expected_error": denoised.expected_error(),
    }.items():
        columns[name] = np.asarray(values).ravel().tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        file.flush()
        os.fsync(file.fileno())


def _write(path: Path, text: str):
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- and back ---------------------------------------------------------------------------------------------------------


def read_release(folder, graph: Graph) -> Release:
    """The release that was exported into `folder`, for totals and for denoising again.

    The map must be the file that the certificate describes, and the noise what its epsilon and delta ask for. Certificates are
    not signed: whether the ledger was charged for this one only its keeper can tell, with `ledger.verify(certificate)`.

    Parameters
    ----------
    folder : path
    graph : Graph
        The public graph it was made on.
    """
    from hushgraph.privacy.release import _MADE_HERE, Release

    folder = Path(folder)
    try:
        known = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
        fault = _fault(known, folder, checked_graph(graph))
        noisy = np.empty(0) if fault else _noisy_column(folder / MAP, known, graph)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        fault = f"it should hold a whole {CERTIFICATE} and {MAP}, and does not ({type(error).__name__})"
    if fault:
        msg = f"{folder.name!r} is not a release on this graph: {fault}; get the folder again from the publisher"
        raise ValueError(msg)
    windows = None if known["windows"] is None else tuple(known["windows"])
    same = ("epsilon", "delta", "adjacency", "unit", "bound", "caps", "rules", "ledger", "created", "attribution", "not_protected")
    squared = Fraction(known["sensitivity_squared"])
    return Release(
        values=noisy, sigma=known["sigma"], kind="release", graph_hash=graph.hash, exportable=True, lattice=known["lattice"],
        windows=windows, sensitivity_squared=int(squared) if squared.denominator == 1 else squared,
        mechanism=known["mechanism"].split()[0], graph=graph, made_by=_MADE_HERE, **{name: known[name] for name in same},
    )  # fmt: skip


def _fault(known: dict, folder: Path, graph: Graph) -> str | None:
    """What is wrong with a certificate, in words; None if nothing is."""
    if known["format"] != FORMAT or known["public_graph"] is not True or known["adjacency"] not in NEIGHBOURS:
        return f"the certificate is not one of {FORMAT!r}"
    if known["graph"]["hash"] != graph.hash:
        return f"it belongs to another graph ({known['graph']['hash'][:12]}...) than the one given ({graph.hash[:12]}...)"
    if known["files"][MAP] != _digest(folder / MAP):
        return f"{MAP} is not the file that the certificate describes"
    sigma = mechanism_sigma(
        known["mechanism"].split()[0], epsilon=known["epsilon"], delta=known["delta"],
        sensitivity_squared=Fraction(known["sensitivity_squared"]),
    )  # fmt: skip
    if known["sigma"] < sigma or known["lattice"] != lattice_step(known["sigma"]):
        return f"its noise is not that of its epsilon and delta (sigma should be {sigma:.6g}): the certificate was edited"
    return None


def _noisy_column(path: Path, known: dict, graph: Graph) -> np.ndarray:
    """The noisy values, which must be those of the graph's nodes in their order, on the lattice."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(row["node"], float(row["noisy"])) for row in csv.DictReader(file)]
    shape = (graph.n,) if known["windows"] is None else (graph.n, len(known["windows"]) - 1)
    values = np.array([value for _, value in rows])
    names = np.arange(graph.n) if graph.labels is None else graph.labels
    expected = np.repeat(names, len(rows) // graph.n if graph.n else 0).tolist()
    if values.size != np.prod(shape) or [node for node, _ in rows] != list(map(str, expected)):
        raise ValueError
    if not np.array_equal(np.rint(values / known["lattice"]) * known["lattice"], values):
        raise ValueError
    return values.reshape(shape)
