"""What a certificate says: claims that are known before the noise is drawn, texts that follow from them, and its file.

Never written: exact counts, errors against the truth, numbers of events, units, clipped or dropped rows, timings of the counting,
file names of the input, seeds.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

import hushgraph
from hushgraph._arrays import values_digest
from hushgraph._errors import InputError
from hushgraph._validation import is_count, shown
from hushgraph.privacy.guarantee import earlier_words, formal_statement, guarantee_in_words
from hushgraph.privacy.lattice import lattice_step

if TYPE_CHECKING:
    from hushgraph.graphs import Graph
    from hushgraph.privacy.releases import Release

CERTIFICATE = "certificate.json"
OLD_FORMAT, FORMAT = "hushgraph release 1", "hushgraph release 2"  # format 1 has no unit_column, dataset and values_sha256
_COUNT_BITS = 52  # bits for counts in steps of the lattice: counts beyond 2^52 g are clamped, noise needs far less than one more
BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, IndexError, RecursionError)
_INTERVALS = (
    "The columns lower and upper are an interval for each value: about {:g} % of the true counts are expected between them. This is an "
    "estimate, not a guarantee, and intervals cannot be added up."
)
_LARGEST_FILE = 1_000_000  # bytes of a certificate that are read
_LARGEST_CLAIMS = 600_000  # bytes of its claims; the rest is for texts, guides and files


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a release promises and what that rests on: all that is known before the noise is drawn. Fields as in `Release`."""

    epsilon: float
    delta: float
    unit: str | None
    adjacency: str
    not_protected: str | None
    sensitivity_squared: int | Fraction
    bound: str
    caps: dict[str, int]
    rules: dict[str, Any]
    unit_column: str | None
    windows: Sequence | None
    graph: Graph
    mechanism: str
    sigma: float
    attribution: str | None
    dataset: str | None

    @classmethod
    def of(cls, release: Release) -> Terms:
        """Return the terms of a release."""
        return cls(**{field.name: getattr(release, field.name) for field in fields(cls)})

    def claims(self) -> dict[str, Any]:
        """Return what a certificate claims and its charge records, ready for JSON."""
        squared = self.sensitivity_squared
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "adjacency": self.adjacency,
            "not_protected": self.not_protected or "not stated",
            "sensitivity_squared": int(squared) if squared == int(squared) else str(squared),
            "bound": self.bound,
            "caps": dict(self.caps),
            "rules": dict(self.rules),
            "unit_column": self.unit_column,
            "dataset": self.dataset,
            "windows": None if self.windows is None else list(self.windows),
            "public_graph": True,
            "graph": {
                "hash": self.graph.hash,
                "nodes": self.graph.n,
                "edges": self.graph.n_edges,
                "places": self.graph.places_hash,
            },
            "mechanism": f"{self.mechanism} Gaussian, rounded to a lattice, sampled exactly from the operating system's entropy",
            "sigma": self.sigma,
            "lattice": lattice_step(self.sigma),
            "largest_count": largest_count(self.sigma),
            "attribution": self.attribution,
        }


def check_size(claims: dict[str, Any]) -> None:
    """Raise an error, before anything is charged, if a certificate with these claims would be too large to be read again."""
    size = len(json.dumps(claims, indent=2))
    if size > _LARGEST_CLAIMS:
        msg = (
            f"nothing was charged: the certificate would have {size:,} bytes or more, and {_LARGEST_CLAIMS:,} are the most, so that it can be "
            "read again; use fewer windows or shorter texts"
        )
        raise InputError(msg)


def certificate_of(release: Release) -> dict[str, Any]:
    """Return the guarantee of a release and what it rests on, ready for JSON."""
    claims = Terms.of(release).claims()
    return {
        "format": FORMAT,
        "statement": statement_of(claims),
        "in_words": words_of(claims),
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


def largest_count(sigma: float) -> int:
    """Return the size that counts are clamped to, a public rule."""
    return int(2.0**_COUNT_BITS * lattice_step(sigma))


def statement_of(certificate: dict[str, Any]) -> str:
    """Return the proven inequality; it follows from the other fields, so that an edited one is noticed."""
    names = {name: certificate[name] for name in ("epsilon", "delta", "unit", "adjacency")}
    return formal_statement(**names, enforced=certificate["bound"] == "enforced")


def words_of(certificate: dict[str, Any]) -> str:
    """Return what the guarantee protects, for people; it follows from the other fields. Earlier certificates keep their words."""
    terms = {name: certificate[name] for name in ("epsilon", "delta", "unit", "adjacency")}
    said_before = "in_words" in certificate and certificate["in_words"] == earlier_words(**terms)
    return certificate["in_words"] if said_before else guarantee_in_words(**terms)


def noise_level_of(certificate: dict[str, Any]) -> float:
    """Return the standard deviation of noise and rounding together."""
    return math.hypot(certificate["sigma"], certificate["lattice"] / math.sqrt(12))


def remarks_of(certificate: dict[str, Any]) -> list[str]:
    """Return the certificate's remarks, which follow from the other fields."""
    denoised = certificate.get("denoised", {})
    source = "and from the public guides listed under denoised.guides; they" if denoised.get("guides") else "alone and"
    level = denoised.get("interval")  # earlier releases have none, and their remarks stay as they were written
    what = "The denoised map and its expected error" if level is None else "The denoised map, its expected error and its intervals"
    return [
        f"{what} are computed from the noisy map {source} carry the same guarantee.",
        *([] if level is None else [_INTERVALS.format(100 * level)]),
        "Counts are those after truncation and dropping by the stated caps and rules; that is what all figures here are about.",
        "Sums over regions should be taken from the noisy column: they are unbiased for those counts, with standard error "
        f"{noise_level_of(certificate):.6g} times the root of the number of values; the denoised map is biased for sums.",
        "The guarantee is for this release; all releases of the ledger's period together have what its budget says.",
        "No protection against whoever can time the computation or read the memory of the machine.",
    ]


# ---- its file -----------------------------------------------------------------------------------------------------------


def read_certificate(path: Path) -> dict[str, Any]:
    """Return what a certificate's file holds; a ValueError if it is too long or says something twice."""
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        msg = f"a certificate has at most {_LARGEST_FILE:,} bytes; got more"
        raise InputError(msg)
    return json.loads(text, object_pairs_hook=_without_duplicates)


def newer_version(certificate: Any) -> str:
    """Return the error message for a certificate of a later format; an empty text for any other certificate."""
    stated = certificate.get("format") if isinstance(certificate, dict) else None
    number = re.fullmatch("hushgraph release ([0-9]{1,9})", stated) if isinstance(stated, str) else None
    if number is None or int(number[1]) <= int(FORMAT.split()[-1]):
        return ""
    return f"the certificate was written by a newer version of hushgraph (format {stated!r}; this version knows {FORMAT!r}); use that version"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) != len(pairs):
        msg = "a certificate says each thing once; a field of this one is there twice"
        raise InputError(msg)
    return fields


def stamped_certificate(source: Any) -> dict[str, Any]:
    """Return a certificate from a dict, or from the path of a JSON file, which must be whole; it must name ledger, entry and head."""
    try:
        from_file = isinstance(source, str | os.PathLike)
        certificate = read_certificate(Path(source)) if from_file else source
        stamp = certificate["ledger"]
        named = is_count(stamp["entry"], 1) and isinstance(stamp["head"], str) and "identity" in stamp
        if named and ("format" in certificate or not from_file):
            return certificate
    except BROKEN:
        pass
    msg = (
        "a certificate is a dict, or the path of a JSON file with format and each field once, and has ledger = {identity, entry, head}; "
        f"got {shown(source)}"
    )
    raise InputError(msg)
