"""Whether a certificate is true: compared with itself, with its map, with the graph and with the ledger.

One list of checks is behind `read_release`, `Ledger.verify`, `verify_release` and `hushgraph verify`. Each check says what is claimed
and whether it holds, does not hold, or could not be checked.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hushgraph._arrays import values_digest
from hushgraph._validation import shown
from hushgraph.estimators import INTERVAL_LEVEL, METHODS
from hushgraph.graphs import Graph, as_graph
from hushgraph.privacy.calibration import mechanism_sigma
from hushgraph.privacy.certificate import (
    BROKEN,
    CERTIFICATE,
    FORMAT,
    OLD_FORMAT,
    largest_count,
    newer_version,
    noise_level_of,
    read_certificate,
    remarks_of,
    stamped_certificate,
    statement_of,
    words_of,
)
from hushgraph.privacy.guides import GUIDE_FIELDS, is_guide_list
from hushgraph.privacy.lattice import lattice_step
from hushgraph.privacy.ledger.chain import LedgerTampered, check_heads, fraction_of, history, read_entry
from hushgraph.privacy.map_file import MAP, REPORT, file_digest, map_rows, noisy_values, row_columns
from hushgraph.privacy.sensitivity import Adjacency, caps_sensitivity

if TYPE_CHECKING:
    from hushgraph.privacy.ledger.budget import Ledger

_BROKEN = (*BROKEN, csv.Error)
_NOT_WHOLE = "it should hold a whole certificate.json and map.csv, and does not ({})"
_CLAIMED = (
    "epsilon", "delta", "unit", "adjacency", "not_protected", "sensitivity_squared", "bound", "caps", "rules", "windows", "public_graph",
    "graph", "mechanism", "sigma", "lattice", "largest_count", "attribution", "ledger", "created", "versions", "denoised", "files",
)  # fmt: skip
_TEXTS = ("statement", "in_words", "remarks")
_NEW = ("in_words", "unit_column", "dataset", "values_sha256", "spreadsheet_safe")  # which format 1 does not have
_PARTS = {
    "graph": {"hash", "nodes", "edges", "places"},
    "ledger": {"identity", "dataset", "entry", "head", "replaces", "budget"},
    "versions": {"hushgraph", "python", "numpy", "scipy"},
    "denoised": {"method", "nonnegative", "integer", "noise_level", "guides", "interval"},
    "files": {MAP, REPORT},
    "rules": {"place", "max_distance", "far"},
}
_BUDGET = {"epsilon", "delta", "period", "spent"}
KNOWN_FORMAT = "This version of hushgraph knows the format of the certificate"
_GUIDES = "Each guide of its denoised map has a name, an origin and its SHA-256"

Subject = Literal["certificate", "map", "graph", "ledger"]
Finding = tuple[bool | None, str]


@dataclass(frozen=True)
class Check:
    """One claim of a release.

    Parameters
    ----------
    subject : {"certificate", "map", "graph", "ledger"}
        What it was compared with.
    claim : str
        The claim, as a sentence.
    holds : bool or None
        Whether it holds; None if it could not be checked.
    detail : str
        What is wrong or missing.
    """

    subject: Subject
    claim: str
    holds: bool | None
    detail: str = ""

    def __str__(self) -> str:
        return {True: "yes", False: "NO", None: "not checked"}[self.holds] + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Verification:
    """The result of `verify_release`; print it for a line per claim.

    Parameters
    ----------
    checks : tuple of Check
        All claims, whether they hold or not.
    """

    checks: tuple[Check, ...]

    @property
    def faults(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def ok(self) -> bool:
        """Whether no check failed; what could not be checked is in `checks` with holds=None."""
        return not self.faults

    def __str__(self) -> str:
        return "\n".join(f"{check.claim}: {check}" for check in self.checks)


# ---- the certificate by itself --------------------------------------------------------------------------------------------


def attempt(subject: Subject, claim: str, finding: Callable[[], Finding], fault: str = _NOT_WHOLE) -> Check:
    """Return the check of a claim; whatever breaks `finding` is a certificate or map that is not whole."""
    try:
        return Check(subject, claim, *finding())
    except _BROKEN as error:
        return Check(subject, claim, False, fault.format(type(error).__name__))


def certificate_checks(certificate: dict[str, Any]) -> list[Check]:
    """Check what follows from the certificate alone."""

    def form() -> Finding:
        whole = (
            certificate["format"] in (OLD_FORMAT, FORMAT)
            and certificate["public_graph"] is True
            and certificate["adjacency"] in get_args(Adjacency)
        )
        whole = whole and type(certificate.get("spreadsheet_safe", False)) is bool
        whole = whole and _is_map_entry(certificate.get("denoised"))
        return whole, "" if whole else f"the certificate is not one of {FORMAT!r}"

    def fields() -> Finding:
        more = _unknown_fields(certificate)
        return not more, f"it has {len(more)} field(s) that its format does not have, such as {shown(min(more))}" if more else ""

    def noise() -> Finding:
        least = mechanism_sigma(
            certificate["mechanism"].split()[0], epsilon=certificate["epsilon"], delta=certificate["delta"],
            sensitivity_squared=fraction_of(certificate["sensitivity_squared"]),
        )  # fmt: skip
        sigma = certificate["sigma"]
        right = (
            sigma >= least
            and certificate["lattice"] == lattice_step(sigma)
            and certificate["largest_count"] == largest_count(sigma)
        )
        return right, "" if right else (
            f"its noise is not that of its epsilon and delta (sigma should be {least:.6g}): the certificate was edited"
        )

    return [
        attempt("certificate", "The certificate has a form that is known here", form),
        attempt("certificate", "It has no fields but those of its form", fields),
        attempt("certificate", "Its sensitivity follows from its caps and adjacency", lambda: _sensitivity(certificate)),
        attempt("certificate", "Its noise is enough for its epsilon, delta and sensitivity", noise),
        words_check(certificate),
        *_guide_checks(certificate),
    ]


def _is_map_entry(denoised: Any) -> bool:
    """Return whether a certificate says of the denoised map what a release can say; a certificate without the map says nothing."""
    if denoised is None:
        return True
    return (
        denoised["method"] in METHODS
        and type(denoised["nonnegative"]) is bool
        and type(denoised["integer"]) is bool
        and denoised.get("interval", INTERVAL_LEVEL) == INTERVAL_LEVEL
    )


def _guide_checks(certificate: Any) -> Iterator[Check]:
    """Check the list of guides, if the certificate has one. Guides are no claims of the charge: they may be chosen after it."""
    denoised = certificate.get("denoised") if isinstance(certificate, dict) else None
    if isinstance(denoised, dict) and "guides" in denoised:
        fault = (
            "" if (right := is_guide_list(denoised["guides"])) else "its list of guides is not whole: the certificate was edited"
        )
        yield Check("certificate", _GUIDES, right, fault)


def words_check(certificate: dict[str, Any]) -> Check:
    """Check that statement, words and remarks are those of the fields; a part of a certificate need not have them."""
    return attempt("certificate", "Its statement and remarks say what its fields say", lambda: _words(certificate))


def _sensitivity(certificate: dict[str, Any]) -> Finding:
    if certificate["bound"] not in ("enforced", "assumed"):
        stated = shown(certificate["bound"])
        return False, f"its bound is {stated}, which must be 'enforced' or 'assumed': the certificate was edited"
    if certificate["bound"] == "assumed" and not certificate["caps"]:
        return None, "the owner states the sensitivity of counts made elsewhere"
    least = caps_sensitivity(certificate["caps"], certificate["adjacency"], windows=certificate["windows"] is not None)
    if fraction_of(certificate["sensitivity_squared"]) != least:
        stated = shown(certificate["sensitivity_squared"])
        fault = f"its sensitivity squared is {stated}, and {least} follows from its caps and adjacency: the certificate was edited"
        return False, fault
    enforced = certificate["bound"] == "enforced"
    return True, "" if enforced else "that nobody exceeds the caps is assumed; there were no ids to enforce it"


def _unknown_fields(certificate: dict[str, Any]) -> set[str]:
    """Return the names of fields that a certificate of its format does not have."""
    allowed = {"format", *_CLAIMED, *_TEXTS, *_NEW} - (set(_NEW) if certificate["format"] == OLD_FORMAT else set())
    more = certificate.keys() - allowed
    for name, inner in _PARTS.items():
        more |= {f"{name}.{field}" for field in certificate.get(name, {}).keys() - inner}
    guides = certificate.get("denoised", {}).get("guides", [])
    if certificate["format"] == OLD_FORMAT:
        more |= {f"denoised.{field}" for field in ("guides", "interval") if field in certificate.get("denoised", {})}
    more |= {f"denoised.guides.{field}" for guide in guides if isinstance(guide, dict) for field in guide.keys() - GUIDE_FIELDS}
    return more | {f"ledger.budget.{field}" for field in certificate["ledger"]["budget"].keys() - _BUDGET}


def _words(certificate: dict[str, Any]) -> Finding:
    texts = {"statement": statement_of, "remarks": remarks_of, "in_words": words_of}
    due = {None: (), OLD_FORMAT: ("statement", "remarks")}.get(certificate.get("format"), _TEXTS)
    for name, text in texts.items():
        if (name in due or name in certificate) and certificate[name] != text(certificate):
            return False, f"its {name} is not what follows from its fields: the certificate was edited"
    return True, ""


# ---- the certificate and the ledger -----------------------------------------------------------------------------------------


class Record:
    """The entries of a ledger, which were verified, for comparing certificates with them."""

    def __init__(self, name: str, rows: list[tuple]) -> None:
        self.name, self.rows, self.states = name, rows, history(rows)
        self.draws: dict[int, list[str]] = {}
        for _, text, _ in rows:
            if (fields := json.loads(text))["kind"] == "draw":
                self.draws.setdefault(fields["of"], []).append(fields["values_sha256"])


def ledger_checks(record: Record, certificate: dict[str, Any]) -> list[Check]:
    """Compare everything that a certificate claims with a ledger.

    A certificate without "format" is a part of one: what it claims is compared, and it need not claim everything.
    """
    entry, head = certificate["ledger"]["entry"], certificate["ledger"]["head"]
    in_chain = attempt("ledger", f"Its charge is entry {entry} of the ledger", lambda: _in_chain(record, entry, head))
    if not in_chain.holds:
        return [in_chain]
    comparison = _Comparison(record, certificate)
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
        check_heads(record.name, record.rows, [(entry, head)], "a certificate")
    except LedgerTampered as error:
        return False, str(error)
    return True, ""


class _Comparison:
    """One certificate and the entry of its charge."""

    def __init__(self, record: Record, certificate: dict[str, Any]) -> None:
        self.name, self.certificate, self.whole = record.name, certificate, "format" in certificate
        self.entry = certificate["ledger"]["entry"]
        _, text, head = record.rows[self.entry - 1]
        self.fields, self.charge, self.state = json.loads(text), read_entry(text, head), record.states[self.entry - 1]
        self.draws = record.draws.get(self.entry, [])

    def _differing(self, claimed: dict, true: dict) -> Finding:
        """Compare each of the true values with the claimed one; a part of a certificate need not claim it."""
        for field, value in true.items():
            if (field in claimed or self.whole) and (field not in claimed or not _same(claimed[field], value)):
                stated = shown(claimed[field]) if field in claimed else "nothing"
                return False, f"the certificate says {field} = {stated}, but {self.name} has {value!s}; one was edited"
        return True, ""

    def amounts(self) -> Finding:
        if self.charge["kind"] != "charge":
            return False, f"entry {self.entry} of {self.name} is no charge but a {self.charge['kind']}: the certificate was edited"
        return self._differing(
            self.certificate, {name: self.charge[name] for name in ("epsilon", "delta", "sigma", "sensitivity_squared")}
        )

    def names(self) -> Finding:
        stamp, budget = self.certificate["ledger"], self.state.budget()
        if "claims" not in self.fields and isinstance(stamp.get("budget"), dict) and stamp["budget"]["spent"] >= budget["spent"]:
            budget["spent"] = stamp["budget"]["spent"]  # the former version read it later, when others could have spent more
        true = {"dataset": self.state.dataset, "budget": budget}
        if "claims" in self.fields:
            true["replaces"] = self.state.replaces
        finding = self._differing(self.certificate, {"unit": self.state.unit, "adjacency": self.state.adjacency})
        return finding if finding[0] is False else self._differing(stamp, true)

    def claims(self) -> Finding:
        if "claims" not in self.fields:
            return None, "the charge is of a version that did not record them"
        if self.whole and self.certificate["format"] != FORMAT:
            return False, f"the certificate is of another format than the charge ({FORMAT!r}): it was edited"
        certificate, recorded = self.certificate, self.fields["claims"]
        if "places" not in recorded["graph"] and isinstance(
            certificate.get("graph"), dict
        ):  # the charge is of a version before they were named
            stated = {name: value for name, value in certificate["graph"].items() if name != "places"}
            certificate = {**certificate, "graph": stated}
        return self._differing(certificate, recorded)

    def time(self) -> Finding:
        created, charged = self.certificate.get("created"), self.fields["time"]
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
        return self._differing(self.certificate, {"values_sha256": self.draws[0]})


def _same(claimed: Any, true: Any) -> bool:
    """Return whether two values are the same; exact squares may be written as int, fraction or text."""
    if isinstance(true, Fraction):
        return fraction_of(claimed) == true
    return type(claimed) in (type(true), *((int, float) if type(true) in (int, float) else ())) and claimed == true


# ---- the folder ---------------------------------------------------------------------------------------------------------


def verify_release(folder: str | os.PathLike, graph: Graph | None = None, ledger: Ledger | None = None) -> Verification:
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
    folder, graph = Path(folder), None if graph is None else as_graph(graph)
    try:
        certificate = read_certificate(folder / CERTIFICATE)
    except (OSError, ValueError, RecursionError) as error:
        detail = f"it should hold a whole {CERTIFICATE} and {MAP}, and does not ({type(error).__name__})"
        return Verification((Check("certificate", "The folder holds a certificate", False, detail),))
    if newer := newer_version(certificate):
        return Verification((Check("certificate", KNOWN_FORMAT, False, newer),))
    form, *others = certificate_checks(certificate)
    parts = (
        _graph_check(certificate, graph),
        *_places_checks(certificate, graph),
        *others,
        *_map_checks(folder, certificate, graph),
        *_charge_checks(certificate, ledger),
        *_unknown(is_guided=any(check.claim == _GUIDES for check in others)),
    )
    return Verification((form, *parts))


def _unknown(*, is_guided: bool) -> tuple[Check, ...]:
    """Return the claims that no file can show."""
    source = " and the guides that are listed" * is_guided
    again = f"hushgraph denoise GRAPH FOLDER{' --guide ...' * is_guided} makes them again"
    return (
        Check(
            "certificate",
            "The owner's word is true",
            None,
            "no file can show that graph, windows and caps were chosen without looking at the data, and that ids are those of the units"
            + "; nor that the guides are public" * is_guided,
        ),
        Check(
            "map",
            "The denoised column is that of the method",
            None,
            f"it is made from the noisy one{source}, in the way that is stated, and so are expected errors and intervals; {again}",
        ),
        Check(
            "map",
            "Coordinates and versions are right",
            None,
            "those in the map are for information, as are further columns and files",
        ),
    )


def _graph_check(certificate: dict[str, Any], graph: Graph | None) -> Check:
    """Compare a certificate with the graph."""
    claim = "The graph is the one it was made on"
    if graph is None:
        return Check("graph", claim, None, "no graph was given")

    def same() -> Finding:
        stated, true = certificate["graph"], {"hash": graph.hash, "nodes": graph.n, "edges": graph.n_edges}
        if stated["hash"] != graph.hash:
            return False, f"it belongs to another graph ({stated['hash'][:12]}...) than the one given ({graph.hash[:12]}...)"
        is_same = {name: value for name, value in stated.items() if name != "places"} == true
        return is_same, "" if is_same else "its numbers of nodes and edges are not the graph's: it was edited"

    return attempt("graph", claim, same)


def _places_checks(certificate: dict[str, Any], graph: Graph | None) -> Iterator[Check]:
    """Compare the outlines of zones, or the coordinates of nodes, with those that events were counted on, if the certificate names them."""

    def same() -> Finding:
        if graph is None or graph.places_hash is None:
            return None, "no graph was given" if graph is None else "the graph has no coordinates"
        if certificate["graph"]["places"] == graph.places_hash:
            return True, ""
        if graph.outlines is not None:
            return False, (
                "the outlines of the zones differ from those it was counted on: other places, or the same zones rounded by another program; "
                "give the file that the release used"
            )
        return None, "the coordinates are others, or were rounded when the graph was written by another program"

    stated = certificate.get("graph") if isinstance(certificate, dict) else None
    if isinstance(stated, dict) and stated.get("places") is not None:
        yield attempt("graph", "Its places are those it was counted on", same)


def _rows_match(folder: Path, certificate: dict[str, Any], graph: Graph) -> Finding:
    """Compare nodes and windows of the map with the graph and the certificate, row by row."""
    expected = row_columns(graph, certificate["windows"], spreadsheet_safe=certificate.get("spreadsheet_safe", False))
    rows = map_rows(folder, list(expected))
    for row in zip(*expected.values(), strict=True):
        if next(rows, None) != list(map(str, row)):
            raise ValueError
    if next(rows, None) is not None:
        raise ValueError
    return True, ""


def _map_checks(folder: Path, certificate: dict[str, Any], graph: Graph | None) -> Iterator[Check]:
    """Compare a certificate with the map."""

    def file() -> Finding:
        same = certificate["files"][MAP] == file_digest(folder / MAP)
        return same, "" if same else f"{MAP} is not the file that the certificate describes"

    def values() -> Finding:
        digest = values_digest(noisy_values(folder, certificate))
        if certificate["format"] == OLD_FORMAT:
            return None, "the certificate is of a version that did not name their SHA-256; they are on its lattice"
        same = certificate["values_sha256"] == digest
        return same, "" if same else f"the noisy values of {MAP} are not those of the certificate"

    def level() -> Finding:
        same = certificate["denoised"]["noise_level"] == noise_level_of(certificate)
        return same, "" if same else "the noise level of its denoised map is not that of sigma and lattice: it was edited"

    yield attempt("map", "The noise level it was denoised with follows from its noise", level)
    yield attempt("map", f"{MAP} is the file that the certificate describes", file)
    yield attempt("map", "Its noisy values are those of the certificate, on its lattice", values)
    rows = "Its rows are the graph's nodes and the certificate's windows"
    if graph is None:
        yield Check("map", rows, None, "no graph was given")
    else:
        yield attempt("map", rows, lambda: _rows_match(folder, certificate, graph))
    yield from _report_checks(folder, certificate)


def _report_checks(folder: Path, certificate: Any) -> Iterator[Check]:
    """Compare the report with the certificate, if there is one; one that was removed takes nothing from the map."""
    files = certificate.get("files") if isinstance(certificate, dict) else None
    stated, is_there = files.get(REPORT) if isinstance(files, dict) else None, (folder / REPORT).exists()

    def file() -> Finding:
        if stated is None:
            again = f"hushgraph denoise GRAPH FOLDER --report {REPORT} makes one"
            return None, f"the certificate does not name it: it was added later and may say anything; {again}"
        if not is_there:
            return None, "it was removed from the folder; nothing else depends on it"
        same = stated == file_digest(folder / REPORT)
        return same, "" if same else f"{REPORT} is not the page that the certificate describes: it was edited or replaced"

    if is_there or stated is not None:
        yield attempt("map", f"{REPORT} is the page that the certificate describes", file)


def _charge_checks(certificate: dict[str, Any], ledger: Ledger | None) -> list[Check]:
    """Compare a certificate with the ledger, as far as there is one."""
    claim = "The ledger was charged for it"
    if ledger is None:
        return [Check("ledger", claim, None, "no ledger was given, and certificates are not signed: ask its keeper")]
    try:
        stamp = stamped_certificate(certificate)["ledger"]["identity"]
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
    return [*ledger_checks(Record(ledger.path.name, ledger.rows()), certificate), trust]
