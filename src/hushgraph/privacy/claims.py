"""What a certificate claims, and whether it is true: compared with itself, with its map, with the graph and with the ledger.

One list of checks is behind `read_release`, `Ledger.verify`, `verify_release` and `hushgraph verify`. Each check says what is claimed
and whether it holds, does not hold, or could not be checked.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np

from hushgraph._errors import InputError, InputTypeError
from hushgraph.checks import is_count, shown
from hushgraph.privacy.calibration import Adjacency, mechanism_sigma, squared_sensitivity
from hushgraph.privacy.chain import LedgerTampered, check_seen, fraction_of, history, read_entry
from hushgraph.privacy.guarantee import guarantee_in_words
from hushgraph.privacy.noise import lattice_step

OLD_FORMAT, FORMAT = "hushgraph release 1", "hushgraph release 2"  # format 1 has no unit_column, dataset and values_sha256
ROOM = 52  # bits for counts in steps of the lattice: counts beyond 2^52 g are clamped, noise needs far less than one more
NEIGHBOURS = {
    "add-remove": "adding or removing all data of one {unit}",
    "change-one": "replacing all data of one {unit} by other data",
}
_CAPS = {False: ["max_nodes", "max_per_node"], True: ["max_cells", "max_per_cell"]}
_NOT_WHOLE = "it should hold a whole certificate.json and map.csv, and does not ({})"
_BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, IndexError, RecursionError, csv.Error)
_LARGEST_FILE = 1_000_000  # bytes of a certificate that are read
_CLAIMED = (
    "epsilon", "delta", "unit", "adjacency", "not_protected", "sensitivity_squared", "bound", "caps", "rules", "windows", "public_graph",
    "graph", "mechanism", "sigma", "lattice", "largest_count", "attribution", "ledger", "created", "versions", "denoised", "files",
)  # fmt: skip
_TEXTS = ("statement", "in_words", "remarks")
_NEW = ("in_words", "unit_column", "dataset", "values_sha256", "spreadsheet_safe")  # which format 1 does not have
_PARTS = {
    "graph": {"hash", "nodes", "edges"},
    "ledger": {"identity", "dataset", "entry", "head", "replaces", "budget"},
    "versions": {"hushgraph", "python", "numpy", "scipy"},
    "denoised": {"method", "nonnegative", "integer", "noise_level"},
    "files": {"map.csv"},
    "rules": {"place", "max_distance", "far"},
}
_BUDGET = {"epsilon", "delta", "period", "spent"}

Subject = Literal["certificate", "map", "graph", "ledger"]
Finding = tuple[bool | None, str]


@dataclass(frozen=True)
class Check:
    """One claim of a release, whether it holds (None: it could not be checked), and what is wrong or missing."""

    subject: Subject
    claim: str
    holds: bool | None
    detail: str = ""

    def __str__(self):
        return {True: "yes", False: "NO", None: "not checked"}[self.holds] + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Verification:
    """What was compared when a release was verified; print it for a line per claim."""

    checks: tuple[Check, ...]

    @property
    def faults(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def ok(self) -> bool:
        """Whether no check failed; what could not be checked is in `checks` with holds=None."""
        return not self.faults

    def __str__(self):
        return "\n".join(f"{check.claim}: {check}" for check in self.checks)


class FrozenDict(dict):
    """A dict that cannot be changed, so that nobody edits what a certificate will say; pickles and prints like a dict."""

    def __init__(self, values):
        super().__init__({name: FrozenDict(value) if isinstance(value, dict) else value for name, value in values.items()})

    def _refuse(self, *_, **__):
        msg = "these values belong to counts or a release and cannot be changed; use dict(...) for a copy"
        raise InputTypeError(msg)

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self):
        return FrozenDict, (dict(self),)


# ---- what a certificate says --------------------------------------------------------------------------------------------


def claims_of(
    *, epsilon, delta, unit, adjacency, not_protected, sensitivity_squared, bound, caps, rules, unit_column, windows, graph,
    mechanism, sigma, attribution, dataset,
) -> dict:  # fmt: skip
    """Return what a certificate claims and its charge records, ready for JSON: all that is known before the noise is drawn."""
    return {
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "adjacency": adjacency,
        "not_protected": not_protected or "not stated",
        "sensitivity_squared": int(sensitivity_squared)
        if sensitivity_squared == int(sensitivity_squared)
        else str(sensitivity_squared),
        "bound": bound,
        "caps": dict(caps),
        "rules": dict(rules),
        "unit_column": unit_column,
        "dataset": dataset,
        "windows": None if windows is None else list(windows),
        "public_graph": True,
        "graph": {"hash": graph.hash, "nodes": graph.n, "edges": graph.n_edges},
        "mechanism": f"{mechanism} Gaussian, rounded to a lattice, sampled exactly from the operating system's entropy",
        "sigma": sigma,
        "lattice": lattice_step(sigma),
        "largest_count": largest_count(sigma),
        "attribution": attribution,
    }


def largest_count(sigma: float) -> int:
    """Return the size that counts are clamped to, a public rule."""
    return int(2.0**ROOM * lattice_step(sigma))


def statement_of(known: dict) -> str:
    """Return the guarantee in words; it follows from the other fields, so that an edited one is noticed."""
    change = NEIGHBOURS[known["adjacency"]].format(unit=known["unit"])
    grounds = "the number of values a unit can change was enforced by truncation" if known["bound"] == "enforced" else (
        "that a unit changes the counts by no more than the stated sensitivity was ASSUMED, not enforced"
    )  # fmt: skip
    return (
        f"(epsilon, delta)-differential privacy: for every set S of possible noisy maps, {change} changes P[S] to at most "
        f"exp({float(known['epsilon'])!r}) P[S] + {float(known['delta'])!r}; {grounds}."
    )


def in_words(known: dict) -> str:
    """Return what the guarantee protects, for people; it follows from the other fields."""
    return guarantee_in_words(known["epsilon"], delta=known["delta"], unit=known["unit"], adjacency=known["adjacency"])


def noise_level_of(known: dict) -> float:
    """Return the standard deviation of noise and rounding together."""
    return math.hypot(known["sigma"], known["lattice"] / math.sqrt(12))


def remarks_of(known: dict) -> list[str]:
    """Return the certificate's remarks, which follow from the other fields."""
    return [
        "The denoised map and its expected error are computed from the noisy map alone and carry the same guarantee.",
        "Counts are those after truncation and dropping by the stated caps and rules; that is what all figures here are about.",
        "Sums over regions should be taken from the noisy column: they are unbiased for those counts, with standard error "
        f"{noise_level_of(known):.6g} times the root of the number of values; the denoised map is biased for sums.",
        "The guarantee is for this release; all releases of the ledger's period together have what its budget says.",
        "No protection against whoever can time the computation or read the memory of the machine.",
    ]


def values_digest(values) -> str:
    """Return the SHA-256 of noisy values: their shape as text, a line feed, and float64, little-endian, row by row."""
    array = np.ascontiguousarray(values, dtype="<f8")
    return hashlib.sha256("x".join(map(str, array.shape)).encode() + b"\n" + array.tobytes()).hexdigest()


def caps_sensitivity(caps, adjacency: Adjacency, *, windows: bool) -> int:
    """Return the squared sensitivity that caps enforce; they must be the pair that goes with windows, or without."""
    if list(caps) != _CAPS[windows] or not all(is_count(cap, 1) for cap in caps.values()):
        msg = f"caps must be {' and '.join(_CAPS[windows])}, whole numbers of at least 1; got {shown(caps)}"
        raise InputError(msg)
    most, most_each = caps.values()
    return squared_sensitivity(most, most_each, adjacency)


# ---- the certificate by itself --------------------------------------------------------------------------------------------


def attempt(subject: Subject, claim: str, finding: Callable[[], Finding], fault: str = _NOT_WHOLE) -> Check:
    """Return the check of a claim; whatever breaks `finding` is a certificate or map that is not whole."""
    try:
        return Check(subject, claim, *finding())
    except _BROKEN as error:
        return Check(subject, claim, False, fault.format(type(error).__name__))


def certificate_checks(known: dict) -> list[Check]:
    """Check what follows from the certificate alone."""

    def form() -> Finding:
        whole = known["format"] in (OLD_FORMAT, FORMAT) and known["public_graph"] is True and known["adjacency"] in NEIGHBOURS
        whole = whole and type(known.get("spreadsheet_safe", False)) is bool
        return whole, "" if whole else f"the certificate is not one of {FORMAT!r}"

    def fields() -> Finding:
        more = _unknown_fields(known)
        return not more, f"it has {len(more)} field(s) that its format does not have, such as {shown(min(more))}" if more else ""

    def noise() -> Finding:
        least = mechanism_sigma(
            known["mechanism"].split()[0], epsilon=known["epsilon"], delta=known["delta"],
            sensitivity_squared=fraction_of(known["sensitivity_squared"]),
        )  # fmt: skip
        sigma = known["sigma"]
        right = sigma >= least and known["lattice"] == lattice_step(sigma) and known["largest_count"] == largest_count(sigma)
        return right, "" if right else (
            f"its noise is not that of its epsilon and delta (sigma should be {least:.6g}): the certificate was edited"
        )

    return [
        attempt("certificate", "The certificate has a form that is known here", form),
        attempt("certificate", "It has no fields but those of its form", fields),
        attempt("certificate", "Its sensitivity follows from its caps and adjacency", lambda: _sensitivity(known)),
        attempt("certificate", "Its noise is enough for its epsilon, delta and sensitivity", noise),
        words_check(known),
    ]


def words_check(known: dict) -> Check:
    """Check that statement, words and remarks are those of the fields; a part of a certificate need not have them."""
    return attempt("certificate", "Its statement and remarks say what its fields say", lambda: _words(known))


def _sensitivity(known: dict) -> Finding:
    if known["bound"] not in ("enforced", "assumed"):
        return False, f"its bound is {shown(known['bound'])}, which must be 'enforced' or 'assumed': the certificate was edited"
    if known["bound"] == "assumed" and not known["caps"]:
        return None, "the owner states the sensitivity of counts made elsewhere"
    least = caps_sensitivity(known["caps"], known["adjacency"], windows=known["windows"] is not None)
    if fraction_of(known["sensitivity_squared"]) != least:
        said = shown(known["sensitivity_squared"])
        return (
            False,
            f"its sensitivity squared is {said}, and {least} follows from its caps and adjacency: the certificate was edited",
        )
    return True, "" if known["bound"] == "enforced" else "that nobody exceeds the caps is assumed; there were no ids to enforce it"


def _unknown_fields(known: dict) -> set[str]:
    """Return the names of fields that a certificate of its format does not have."""
    allowed = {"format", *_CLAIMED, *_TEXTS, *_NEW} - (set(_NEW) if known["format"] == OLD_FORMAT else set())
    more = known.keys() - allowed
    for name, inner in _PARTS.items():
        more |= {f"{name}.{field}" for field in known.get(name, {}).keys() - inner}
    return more | {f"ledger.budget.{field}" for field in known["ledger"]["budget"].keys() - _BUDGET}


def _words(known: dict) -> Finding:
    texts = {"statement": statement_of, "remarks": remarks_of, "in_words": in_words}
    due = {None: (), OLD_FORMAT: ("statement", "remarks")}.get(known.get("format"), _TEXTS)
    for name, text in texts.items():
        if (name in due or name in known) and known[name] != text(known):
            return False, f"its {name} is not what follows from its fields: the certificate was edited"
    return True, ""


# ---- the certificate and the ledger -----------------------------------------------------------------------------------------


def read_certificate(path: Path) -> dict:
    """Return what a certificate's file holds; a ValueError if it is too long or says something twice."""
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        msg = f"a certificate has at most {_LARGEST_FILE:,} bytes; got more"
        raise InputError(msg)
    return json.loads(text, object_pairs_hook=_said_once)


def _said_once(pairs: list[tuple]) -> dict:
    if len(known := dict(pairs)) != len(pairs):
        msg = "a certificate says each thing once; a field of this one is there twice"
        raise InputError(msg)
    return known


def check_stamp(certificate) -> dict:
    """Return the certificate (a dict, or the path of a JSON file, which must be whole), which must name ledger, entry and head."""
    try:
        from_file = isinstance(certificate, str | os.PathLike)
        known = read_certificate(Path(certificate)) if from_file else certificate
        stamp = known["ledger"]
        named = is_count(stamp["entry"], 1) and isinstance(stamp["head"], str) and "identity" in stamp
        if named and ("format" in known or not from_file):
            return known
    except _BROKEN:
        pass
    msg = (
        "a certificate is a dict, or the path of a JSON file with format and each field once, and has ledger = {identity, entry, head}; "
        f"got {shown(certificate)}"
    )
    raise InputError(msg)


class Record:
    """The entries of a ledger, which were verified, for comparing certificates with them."""

    def __init__(self, name: str, rows: list[tuple]):
        self.name, self.rows, self.states = name, rows, history(rows)
        self.draws: dict[int, list[str]] = {}
        for _, text, _ in rows:
            if (fields := json.loads(text))["kind"] == "draw":
                self.draws.setdefault(fields["of"], []).append(fields["values_sha256"])


def ledger_checks(record: Record, known: dict) -> list[Check]:
    """Compare everything that a certificate claims with a ledger.

    A certificate without "format" is a part of one: what it claims is compared, and it need not claim everything.
    """
    entry, head = known["ledger"]["entry"], known["ledger"]["head"]
    in_chain = attempt("ledger", f"Its charge is entry {entry} of the ledger", lambda: _in_chain(record, entry, head))
    if not in_chain.holds:
        return [in_chain]
    comparison = _Comparison(record, known)
    return [
        in_chain,
        attempt("ledger", "Epsilon, delta, sigma and sensitivity are those charged for", comparison.amounts),
        attempt("ledger", "Data set, unit, adjacency and budget are those of the ledger", comparison.names),
        attempt("ledger", "Bound, caps, rules, windows, graph and texts are those recorded with the charge", comparison.claims),
        attempt("ledger", "It was made when the charge was", comparison.time),
        attempt("ledger", "Its noisy values are those drawn for the charge", comparison.values),
    ]


def _in_chain(record: Record, entry: int, head: str) -> Finding:
    try:
        check_seen(record.name, record.rows, [(entry, head)], "a certificate")
    except LedgerTampered as error:
        return False, str(error)
    return True, ""


class _Comparison:
    """One certificate beside the entry of its charge."""

    def __init__(self, record: Record, known: dict):
        self.name, self.known, self.whole = record.name, known, "format" in known
        self.entry = known["ledger"]["entry"]
        _, text, head = record.rows[self.entry - 1]
        self.fields, self.charge, self.state = json.loads(text), read_entry(text, head), record.states[self.entry - 1]
        self.draws = record.draws.get(self.entry, [])

    def _differing(self, claimed: dict, true: dict) -> Finding:
        """Whether each of the true values is the claimed one; a part of a certificate need not claim it."""
        for field, value in true.items():
            if (field in claimed or self.whole) and (field not in claimed or not _same(claimed[field], value)):
                said = shown(claimed[field]) if field in claimed else "nothing"
                return False, f"the certificate says {field} = {said}, but {self.name} has {value!s}; one was edited"
        return True, ""

    def amounts(self) -> Finding:
        if self.charge["kind"] != "charge":
            return False, f"entry {self.entry} of {self.name} is no charge but a {self.charge['kind']}: the certificate was edited"
        return self._differing(
            self.known, {name: self.charge[name] for name in ("epsilon", "delta", "sigma", "sensitivity_squared")}
        )

    def names(self) -> Finding:
        stamp, budget = self.known["ledger"], self.state.budget()
        if "claims" not in self.fields and isinstance(stamp.get("budget"), dict) and stamp["budget"]["spent"] >= budget["spent"]:
            budget["spent"] = stamp["budget"]["spent"]  # the former version read it later, when others could have spent more
        true = {"dataset": self.state.dataset, "budget": budget}
        if "claims" in self.fields:
            true["replaces"] = self.state.replaces
        finding = self._differing(self.known, {"unit": self.state.unit, "adjacency": self.state.adjacency})
        return finding if finding[0] is False else self._differing(stamp, true)

    def claims(self) -> Finding:
        if "claims" not in self.fields:
            return None, "the charge is of a version that did not record them"
        if self.whole and self.known["format"] != FORMAT:
            return False, f"the certificate is of another format than the charge ({FORMAT!r}): it was edited"
        return self._differing(self.known, self.fields["claims"])

    def time(self) -> Finding:
        created, charged = self.known.get("created"), self.fields["time"]
        if created is None and not self.whole:
            return None, "it does not say when it was made"
        right = created == charged if "claims" in self.fields else created >= charged
        return (
            right,
            "" if right else f"the certificate says created = {shown(created)}, but the charge is of {charged}; one was edited",
        )

    def values(self) -> Finding:
        if len(self.draws) > 1:
            return False, f"{self.name} has several maps for entry {self.entry}; whoever can write the file added one"
        if not self.draws and "claims" in self.fields:
            return False, f"no map is bound to entry {self.entry} of {self.name}: its release was never finished, so it has no map"
        if not self.draws:
            return None, "the charge is of a version that did not bind maps to charges: another map would not be noticed"
        return self._differing(self.known, {"values_sha256": self.draws[0]})


def _same(claimed, true) -> bool:
    """Whether two values are the same; exact squares may be written as int, fraction or text."""
    if isinstance(true, Fraction):
        return fraction_of(claimed) == true
    return type(claimed) in (type(true), *((int, float) if type(true) in (int, float) else ())) and claimed == true
