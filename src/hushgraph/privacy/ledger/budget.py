"""The ledger: one file is one budget for one data set, unit and adjacency; a release is charged here before any noise is drawn.

Releases add up as mu^2 = sum Delta_i^2 / sigma_i^2 (each term rounded up), and together they may cost at most the budget:

    composed_delta(mu^2, budget epsilon) <= budget delta                                    (see calibration.py)

Whoever asks for a release may choose its sigma, and the question itself, after seeing the earlier ones. Composition theorems for
mechanisms fixed in advance do not cover that; a privacy filter does. Smith and Thakurta, "Fully adaptive composition for Gaussian
differential privacy" (2022), prove it for Gaussian differential privacy: as long as no release is made that would bring sum mu_i^2
above mu^2, with each mu_i chosen from the earlier outputs, all of them together are mu-GDP, the same mu as without adaptivity. The
refusal in `charge` is that filter, and a mu-GDP mechanism is (epsilon, delta)-private exactly as the formula above says.

A charge is durable before `charge` returns: a crash afterwards costs budget, never privacy. Entries form a chain (chain.py), which
shows what was edited or rolled back. A charge holds all that the certificate will claim; after the draw a second entry binds the
SHA-256 of the noisy values to it. Nothing private is kept: no counts, only what certificates say anyway.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._arrays import values_digest
from hushgraph._deprecation import warn_renamed
from hushgraph._errors import InputError, InputTypeError, Reference, Sentence, warn_without_raising
from hushgraph._validation import checked_number, checked_sigma, shown
from hushgraph.privacy.calibration import checked_delta, composed_delta
from hushgraph.privacy.certificate import newer_version, stamped_certificate
from hushgraph.privacy.guarantee import checked_guarantee
from hushgraph.privacy.ledger.chain import (
    FORMAT,
    BudgetExceeded,
    LedgerError,
    LedgerSnapshot,
    LedgerTampered,
    OtherMapError,
    check_heads,
    checked_identity,
    checked_sensitivity,
    next_entry,
    read_entry,
    total_after,
    verified_snapshot,
)
from hushgraph.privacy.ledger.file import SCHEMA, begun, commit, error_code, new_file, rows_of, transaction
from hushgraph.privacy.ledger.memory import Memory, locked_memory, read_memory
from hushgraph.privacy.sensitivity import Adjacency, checked_neighbouring
from hushgraph.privacy.verification import Record, certificate_checks, ledger_checks, words_check

__all__ = ["BudgetExceeded", "Charge", "Ledger", "LedgerError", "LedgerSnapshot", "LedgerTampered"]
_MOST = 1e6  # epsilon: beyond it nothing is private, and numbers overflow
_CREATOR = object()  # known to Ledger.charge alone


# ---- one charge, one draw -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Charge:
    """Permission to draw noise once, made by `Ledger.charge` only; it cannot be copied, pickled or used after a fork."""

    state: LedgerSnapshot = field(repr=False)  # the ledger right after the charge
    sensitivity_squared: Fraction
    sigma: float
    epsilon: float
    delta: float
    creator: InitVar[object]
    _spent: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)  # taken once, never given back
    _bound: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)  # likewise
    _process: int = field(init=False, repr=False, default_factory=os.getpid)

    def __post_init__(self, creator: object) -> None:
        if creator is not _CREATOR:
            msg = "a Charge is made by ledger.charge(...) only, which pays for it"
            raise LedgerError(msg)

    @property
    def entry(self) -> int:
        """Number of the charge's entry in the ledger."""
        return self.state.entry

    @property
    def head(self) -> str:
        """Hash of the charge's entry."""
        return self.state.head

    @property
    def identity(self) -> str:
        """Identity of the ledger."""
        return self.state.identity

    def spend(self) -> None:
        """Use the charge up, right before the noise is drawn; an error from the second call on."""
        if os.getpid() != self._process or not self._spent.acquire(blocking=False):
            msg = f"one charge, one draw: entry {self.entry} was spent, or belongs to another process; charge the ledger again"
            raise LedgerError(msg)

    def check_drawn(self) -> None:
        """Use the right to one map up, right before the values are bound to the charge; an error before the draw, and from the second call on."""
        if not self._spent.locked() or not self._bound.acquire(blocking=False):
            msg = f"one charge, one map: entry {self.entry} was not drawn for, or has its map already"
            raise LedgerError(msg)

    def __reduce_ex__(self, protocol: Any) -> Any:
        msg = "one charge, one draw: a Charge cannot be copied or pickled; draw the noise here, and send the noisy values"
        raise LedgerError(msg)


@dataclass(frozen=True)
class NamedCharge:
    """A charge with a name: the ledger right after it, what it claims, and the SHA-256 of the values drawn for it, if they were bound."""

    state: LedgerSnapshot
    claims: dict[str, Any]
    values_sha256: str | None


# ---- the ledger -----------------------------------------------------------------------------------------------------

# What may be so, by kind of the entry, if the disk failed while it was written.
_DOUBT = {
    "charge": "it may be charged, and no noise was drawn for it",
    "draw": "the map may be recorded",
    "renew": "the new period may have begun",
}


def _insert(connection: sqlite3.Connection, key: bytes | None, snapshot: LedgerSnapshot | None, **fields: Any) -> LedgerSnapshot:
    """Write one more entry, in a transaction that verified the ones before, and return the snapshot with it."""
    text, after = next_entry(snapshot, key, **fields)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (after.entry, text, after.head))
    return after


class Ledger:
    """A privacy budget in a file, shared safely by threads and processes; use `Ledger.create` once, then `Ledger.open`.

    `epsilon`, `delta`, `period`, `spent`, `mu_squared`, `head` and the length are read from the file, and verified, each time. For
    several of them take `ledger.snapshot()`, which reads the file once, or `ledger.last_snapshot`, which does not read it.

    Parameters
    ----------
    path : Path
        The file.
    snapshot : LedgerSnapshot
        Its state.
    key : bytes or None
        Its secret key, if it has one.

    Attributes
    ----------
    identity : str
        32 hexadecimal digits that no other ledger has.
    dataset, unit, adjacency : str
        What is protected, as `create` was told.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.environ["HUSHGRAPH_STATE"] = folder.name  # this machine's memory of heads; ~/.local/state/hushgraph if not set
    >>> ledger = Ledger.create(
    ...     f"{folder.name}/budget.db", dataset="taxis", unit="passenger", adjacency="add-remove", epsilon=1, delta=1e-6
    ... )
    >>> charge = ledger.charge(sensitivity_squared=4, sigma=16.2, epsilon=0.5, delta=1e-6)
    >>> ledger
    Ledger('budget.db', dataset='taxis', unit='passenger', adjacency='add-remove', spent=0.4972, budget=(1.0, 1e-06))
    >>> round(ledger.remaining(), 3)
    0.843
    >>> del os.environ["HUSHGRAPH_STATE"]
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, snapshot: LedgerSnapshot, *, key: bytes | None) -> None:
        self.path, self.identity = path, snapshot.identity
        self.dataset, self.unit, self.adjacency = snapshot.dataset, snapshot.unit, snapshot.adjacency
        self._key, self._last, self._warned = key, snapshot, False

    @classmethod
    def create(
        cls,
        path: str | os.PathLike,
        *,
        dataset: str,
        unit: str,
        adjacency: Adjacency,
        epsilon: float,
        delta: float,
        period: str | None = None,
        key: bytes | None = None,
        replaces: str | None = None,
        weak_guarantee: bool = False,
    ) -> Ledger:
        """Create the file of a new ledger, with the whole budget left.

        Parameters
        ----------
        path : path
            A file that does not exist, in a folder that does.
        dataset, unit : str
            What is protected: "taxis", "passenger", say. Public.
        adjacency : {"add-remove", "change-one"}
            What neighbouring data sets are.
        epsilon, delta : float
            The budget: all releases of a period are together (epsilon, delta)-differentially private; delta is at most 1/1000.
        period : str, optional
            Name of the time the budget is for; `renew` starts another one.
        key : bytes, optional
            At least 16 secret bytes, kept outside the file: without them nobody can make a chain that verifies.
        replaces : str, optional
            Identity of the ledger that this one takes the place of. Needed where this machine has seen a ledger with spending at the
            path, or for the same data set, unit and adjacency: the same people get a second budget, which is recorded for everyone to see.
        weak_guarantee : bool
            Needed for an epsilon above 10, which protects nobody in practice.

        Returns
        -------
        Ledger
            The new ledger.

        Raises
        ------
        LedgerError
            If the file exists, cannot be written, or would be a second budget for the same people.
        """
        path, key = _checked_path(path), _checked_key(key)
        names = {"dataset": _checked_name("dataset", dataset), "unit": _checked_name("unit", unit)}
        names["adjacency"] = checked_neighbouring(adjacency)
        budget = _checked_budget(epsilon, delta, weak_guarantee)
        period = None if period is None else _checked_name("period", period)
        replaces = None if replaces is None else checked_identity("replaces", replaces)
        origin = {"format": FORMAT, "identity": secrets.token_hex(16), "keyed": key is not None, "kind": "create", "note": None}
        with locked_memory(refusal := "nothing was created: ") as memory:
            if not os.path.lexists(path):  # which is refused below
                memory.check_names((names["dataset"], names["unit"], names["adjacency"]), None, (replaces,))
                memory.check_path(path, None, (replaces,))
            with new_file(path) as draft, transaction(draft, "IMMEDIATE", refusal) as connection:
                connection.execute(SCHEMA)
                snapshot = _insert(connection, key, None, **origin, **names, **budget, period=period, replaces=replaces)
            ledger = cls(path, snapshot, key=key)
            memory.add(snapshot, path)
        ledger._warn_if_not_written(memory)
        return ledger

    @classmethod
    def open(
        cls,
        path: str | os.PathLike,
        *,
        dataset: str | None = None,
        unit: str | None = None,
        adjacency: str | None = None,
        key: bytes | None = None,
        replaces: str | None = None,
    ) -> Ledger:
        """Open an existing ledger and verify it from its first entry on.

        Parameters
        ----------
        path : path
            The file.
        dataset, unit, adjacency : str, optional
            Names that are given must be the stored ones.
        key : bytes, optional
            The secret bytes that the ledger was created with.
        replaces : str, optional
            Needed where this machine has seen another ledger with spending at the path, or for the same data set, unit and adjacency,
            unless the ledger itself names that one: its identity, as the owner's word that it was replaced on purpose.

        Returns
        -------
        Ledger
            The ledger.

        Raises
        ------
        LedgerError
            If there is no ledger, or it is for something else.
        LedgerTampered
            If it was edited, rolled back or replaced.
        """
        path, key = _checked_path(path), _checked_key(key)
        replaces = None if replaces is None else checked_identity("replaces", replaces)
        with transaction(path, "DEFERRED") as connection:
            rows = rows_of(path, connection)
            snapshot = verified_snapshot(path.name, rows, key=key, known=None)
            check_heads(path.name, rows, (memory := read_memory()).seen(snapshot.identity), "this machine")
            memory.check_path(path, snapshot.identity, memory.replaced_by(snapshot, replaces))
            memory.check_names(snapshot.names, snapshot.identity, memory.replaced_by(snapshot, replaces), to_read=replaces is None)
        for name, given in (("dataset", dataset), ("unit", unit), ("adjacency", adjacency)):
            stored = getattr(snapshot, name)
            if given is not None and given != stored:
                msg = "the ledger {} is for {}{!r}; got {}; open the ledger that was made for it"
                raise LedgerError(Sentence(msg, path.name, Reference(f"{name}="), stored, shown(given)))
        try:
            with locked_memory("", patience=1.0 if replaces is None else None) as memory:
                memory.check_names(
                    snapshot.names, snapshot.identity, memory.replaced_by(snapshot, replaces), to_read=replaces is None
                )
                was_charged_elsewhere = snapshot.entry > 1 and not memory.was_used(snapshot.identity)
                memory.add(snapshot, path, takes_over=was_charged_elsewhere or replaces is not None)
        except LedgerError:
            if replaces is not None:
                raise  # without `replaces` the ledger can be read, and a charge reports what is wrong
        if replaces is not None and memory.problem:
            msg = f"this machine cannot remember which ledger {path.name} replaces ({memory.problem}); nothing was replaced"
            raise LedgerError(msg)
        return cls(path, snapshot, key=key)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._key is not None:
            msg = "a ledger with a key is not pickled, since the key would go along; open it again: Ledger.open(path, key=...)"
            raise InputTypeError(msg)
        return super().__reduce_ex__(protocol)

    def charge(
        self,
        *,
        sensitivity_squared: int | Fraction,
        sigma: float,
        epsilon: float,
        delta: float,
        note: str | None = None,
        claims: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Charge:
        """Pay for one release before its noise is drawn.

        Parameters
        ----------
        sensitivity_squared : int or Fraction
            Square of the L2 sensitivity, exactly.
        sigma : float
            Standard deviation of the noise; mu^2 = sensitivity_squared / sigma^2 is what is charged.
        epsilon, delta : float
            What the release says of itself; sigma must be enough for it.
        note : str, optional
            For people. Public.
        claims : dict, optional
            What else the certificate will say, ready for JSON; `verify` compares it. Public.
        name : str, optional
            A name that no other charge of the ledger has, for `charge_named`. Public.

        Returns
        -------
        Charge
            Permission to draw noise once.

        Raises
        ------
        BudgetExceeded
            If all releases together would cost more than the budget; nothing is charged.
        LedgerError
            If the file cannot be written or does not verify; nothing is charged.
        """
        squared, sigma = checked_sensitivity(sensitivity_squared), float(checked_sigma(sigma))
        claim = {"epsilon": checked_number("epsilon", epsilon, "from 0 to 1e6", least=0, most=_MOST), "delta": checked_delta(delta)}
        note = None if note is None else _checked_name("note", note)
        named = {} if name is None else {"name": _checked_name("name", name)}
        alone = total_after(Decimal(0), squared, sigma)
        if composed_delta(alone, claim["epsilon"]) > claim["delta"]:
            msg = f"sigma = {sigma} is too small for epsilon = {epsilon}, delta = {delta}; use analytic_sigma(...)"
            raise InputError(msg)
        refusal = "nothing was charged and nothing may be released: "
        with transaction(self.path, "IMMEDIATE", refusal) as connection, locked_memory(refusal) as memory:
            snapshot, rows = self._current(connection, memory)
            if name is not None and _entry_named(rows, name) is not None:
                msg = f"another process was charged for the name {name!r} a moment ago; nothing was charged here; run this again"
                raise LedgerError(msg)
            total = snapshot.total_with(squared, sigma)
            cost = {"sensitivity_squared": str(squared), "sigma": sigma, "mu_squared": str(total)}
            promise = {} if claims is None else {"claims": claims}
            fields = {"kind": "charge", "period": snapshot.period, "note": note, **named, **cost, **claim, **promise}
            snapshot = self._use(connection, memory, snapshot, **fields)
        self._warn_if_not_written(memory)
        return Charge(snapshot, squared, sigma, **claim, creator=_CREATOR)

    def bind(self, charge: Charge | NamedCharge, values: np.ndarray) -> None:
        """Write the SHA-256 of the noisy values that a charge paid for, so that `verify` tells them from any others. Costs nothing.

        The file was verified as a whole for the charge, so only what was written since is read.

        Parameters
        ----------
        charge : Charge or NamedCharge
            A charge of this ledger that was drawn for; a NamedCharge if the process that drew ended before it could bind what it kept.
        values : array
            The noisy values.

        Raises
        ------
        LedgerError
            If other values are bound to the charge already (OtherMapError), or the file cannot be written.
        """
        if isinstance(charge, Charge):
            charge.check_drawn()
        paid = charge.state
        drawn: dict[str, Any] = {"of": paid.entry, "values_sha256": values_digest(values)}
        refusal = "the charge was made and stays, and its map was not bound to it: "
        with transaction(self.path, "IMMEDIATE", refusal) as connection, locked_memory(refusal) as memory:
            rows = rows_of(self.path, connection, since=paid.entry)
            check_heads(self.path.name, rows, [(paid.entry, paid.head)], "this process", since=paid.entry)
            later = [(entry, head) for entry, head in memory.seen(self.identity) if entry > paid.entry]
            check_heads(self.path.name, rows, later, "this machine", since=paid.entry)
            snapshot = verified_snapshot(self.path.name, rows[1:], key=self._key, known=paid, tail=True)
            bound = [
                fields for _, text, _ in rows[1:] if (fields := json.loads(text))["kind"] == "draw" and fields["of"] == paid.entry
            ]
            if not bound:
                self._append(connection, memory, snapshot, kind="draw", period=snapshot.period, note=None, **drawn)
            elif bound[0]["values_sha256"] != drawn["values_sha256"]:
                msg = "{}entry {} of {} has another map already; one charge pays for one map"
                raise OtherMapError(Sentence(msg, refusal, paid.entry, self.path.name))
        self._warn_if_not_written(memory)

    def charge_named(self, name: str) -> NamedCharge | None:
        """Return the charge of that name, of whatever period.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        NamedCharge or None
            The charge; None if no charge has the name.
        """
        rows = self._read(afresh=True)[1]
        entry = _entry_named(rows, _checked_name("name", name))
        if entry is None:
            return None
        record = Record(self.path.name, rows)
        draws = record.draws.get(entry, [])
        return NamedCharge(record.states[entry - 1], json.loads(rows[entry - 1][1]).get("claims", {}), draws[0] if draws else None)

    def renew(self, *, epsilon: float, delta: float, period: str, reason: str, weak_guarantee: bool = False) -> None:
        """Start a new period with a new budget, nothing of it spent: a decision about people's privacy, kept with its reason.

        Parameters
        ----------
        epsilon, delta : float
            The new budget, as in `create`.
        period : str
            Name of the new time; no earlier period may have it.
        reason : str
            Why people may be asked for more of their privacy; kept for ever. Public.
        weak_guarantee : bool
            Needed for an epsilon above 10, which protects nobody in practice.
        """
        budget = _checked_budget(epsilon, delta, weak_guarantee)
        period, reason = _checked_name("period", period), _checked_name("reason", reason)
        refusal = "nothing was renewed: "
        with transaction(self.path, "IMMEDIATE", refusal) as connection, locked_memory(refusal) as memory:
            snapshot, _ = self._current(connection, memory)
            if period in snapshot.periods:
                msg = f"the ledger {self.path.name} had a period {period!r} already; give the new one a name of its own"
                raise LedgerError(msg)
            self._use(connection, memory, snapshot, kind="renew", period=period, note=reason, **budget)
        self._warn_if_not_written(memory)

    def verify(self, *certificates: dict[str, Any] | str | os.PathLike) -> None:
        """Read the whole file again; each certificate must say what the ledger says.

        Everything that a certificate claims is compared: names, budget, bound, caps, rules, windows, graph, noise, its statement,
        and the SHA-256 of its noisy values. `verify_release` tells what was compared, and compares the map itself too.

        Parameters
        ----------
        *certificates : dict or path
            A dict, or the path of a JSON file. A file must hold a whole certificate; a dict without "format" may hold a part of one.

        Raises
        ------
        LedgerError
            If the certificate is of another ledger.
        LedgerTampered
            If the ledger was edited, or a certificate says something else than the ledger.
        """
        snapshot, rows = self._read(afresh=True)
        record = Record(self.path.name, rows) if certificates else None
        for source in certificates:
            certificate = stamped_certificate(source)
            if newer := newer_version(certificate):
                raise LedgerError(newer)
            if certificate["ledger"]["identity"] != snapshot.identity:
                stamp = shown(certificate["ledger"]["identity"])
                msg = f"the certificate is of ledger {stamp}; {self.path.name} is ledger {snapshot.identity}; check the path"
                raise LedgerError(msg)
            assert record is not None
            itself = certificate_checks(certificate) if "format" in certificate else [words_check(certificate)]
            for check in [*ledger_checks(record, certificate), *itself]:
                if check.holds is False:
                    raise LedgerTampered(check.detail)

    def rows(self) -> list[tuple]:
        """Return the entries as they are in the file, after verifying all of them anew.

        Returns
        -------
        list of tuple
            Number, fields as JSON text, and hash of each entry.
        """
        return self._read(afresh=True)[1]

    def snapshot(self) -> LedgerSnapshot:
        """Return the state of the ledger, read from the file in one transaction and verified.

        Returns
        -------
        LedgerSnapshot
            Names, budget, period, spending, and number and hash of the last entry.
        """
        return self._read()[0]

    @property
    def last_snapshot(self) -> LedgerSnapshot:
        """The ledger as this object last read or wrote it, its own last charge included; the file is not read."""
        return self._last

    def read(self) -> LedgerSnapshot:
        """Return `snapshot()`; the old name.

        Returns
        -------
        LedgerSnapshot
            The state of the ledger.
        """
        warn_renamed("Ledger.read()", "Ledger.snapshot()", removed_in="0.3")
        return self.snapshot()

    @property
    def seen(self) -> LedgerSnapshot:
        """The old name of `last_snapshot`."""
        warn_renamed("Ledger.seen", "Ledger.last_snapshot", removed_in="0.3")
        return self.last_snapshot

    @property
    def keyed(self) -> bool:
        """Whether the ledger has a key."""
        return self._key is not None

    def remaining(self, delta: float | None = None) -> float:
        """Return the largest epsilon of one more analytic release, rounded down; 0 if none fits.

        Parameters
        ----------
        delta : float, optional
            delta of that release; the budget's by default.

        Returns
        -------
        float
            Its largest epsilon.
        """
        return self.snapshot().remaining(delta)

    def entries(self) -> list[dict[str, Any]]:
        """Return what was written, oldest first.

        Returns
        -------
        list of dict
            The fields of each entry; creation and renewals have the budget as epsilon and delta.
        """
        return [read_entry(fields, head) for _, fields, head in self._read()[1]]

    def budget(self) -> dict[str, Any]:
        """Return the budget and what is spent of it, read from the file in one transaction.

        Returns
        -------
        dict
            `epsilon`, `delta`, `period` and `spent`.
        """
        return self.snapshot().budget()

    @property
    def epsilon(self) -> float:
        """The budget's epsilon."""
        return self.snapshot().epsilon

    @property
    def delta(self) -> float:
        """The budget's delta."""
        return self.snapshot().delta

    @property
    def period(self) -> str | None:
        """Name of the time the budget is for."""
        return self.snapshot().period

    @property
    def spent(self) -> float:
        """Epsilon, at the budget's delta, of all releases of this period together, rounded up."""
        return self.snapshot().spent

    @property
    def mu_squared(self) -> Decimal:
        """Sum of mu^2 over all releases of this period, rounded up."""
        return self.snapshot().mu_squared

    @property
    def head(self) -> str:
        """Hash of the last entry."""
        return self.snapshot().head

    def __len__(self) -> int:
        return self.snapshot().entry

    def __repr__(self) -> str:
        last = self._last
        names = f"{self.path.name!r}, dataset={self.dataset!r}, unit={self.unit!r}, adjacency={self.adjacency!r}"
        return f"Ledger({names}, spent={last.spent:.6g}, budget=({last.epsilon}, {last.delta}))"

    def _current(
        self, connection: sqlite3.Connection, memory: Memory, *, afresh: bool = False
    ) -> tuple[LedgerSnapshot, list[tuple]]:
        """Return the file as it is now, in which everything must be that this object and this machine have seen."""
        rows, last = rows_of(self.path, connection), self._last
        check_heads(self.path.name, rows, [(last.entry, last.head)], "this process")
        check_heads(self.path.name, rows, memory.seen(self.identity), "this machine")
        return verified_snapshot(self.path.name, rows, key=self._key, known=None if afresh else last), rows

    def _read(self, *, afresh: bool = False) -> tuple[LedgerSnapshot, list[tuple]]:
        with transaction(self.path, "DEFERRED") as connection:
            snapshot, rows = self._current(connection, read_memory(), afresh=afresh)
        self._last = snapshot
        return snapshot, rows

    def _use(self, connection: sqlite3.Connection, memory: Memory, snapshot: LedgerSnapshot, **fields: Any) -> LedgerSnapshot:
        """Write an entry that uses the ledger, a charge or a renewal, if no other ledger is in use for the same people."""
        memory.check_names(snapshot.names, self.identity, memory.replaced_by(snapshot))
        return self._append(connection, memory, snapshot, takes_over=True, **fields)

    def _append(
        self, connection: sqlite3.Connection, memory: Memory, snapshot: LedgerSnapshot, *, takes_over: bool = False, **fields: Any
    ) -> LedgerSnapshot:
        """Write one more entry, commit it, and add it to the memory.

        The ledger is committed first. If the process ends in between, the memory lacks an entry for which nothing was drawn.
        """
        snapshot = _insert(connection, self._key, snapshot, **fields)
        try:
            commit(connection, waits_for=self.path.name)
        except sqlite3.OperationalError as error:
            connection.close()
            if error_code(error) != sqlite3.SQLITE_IOERR or not self._may_hold(snapshot):
                raise
            msg = "the disk failed ({}) after entry {} was written to the ledger {}; {}; {ledger.entries()} shows it"
            raise LedgerError(Sentence(msg, error, snapshot.entry, self.path, _DOUBT[fields["kind"]])) from error
        self._last = snapshot
        memory.add(snapshot, self.path, takes_over=takes_over)
        return snapshot

    def _may_hold(self, snapshot: LedgerSnapshot) -> bool:
        """Return whether the file has the last entry of a snapshot; True also if the file cannot be read now."""
        try:
            with begun(self.path, "DEFERRED") as connection:
                return any(head == snapshot.head for _, _, head in rows_of(self.path, connection, since=snapshot.entry))
        except (sqlite3.Error, LedgerError):
            return True

    def _warn_if_not_written(self, memory: Memory) -> None:
        """Warn once if this machine could not write a new entry down; the entry is in the ledger all the same."""
        if memory.problem and not self._warned:
            self._warned = True
            msg = (
                f"this machine cannot remember what was written to {self.path.name} ({memory.problem}), so that an older or another copy of it would not be noticed "
                f"here; the new entry is in the ledger"
            )
            warn_without_raising(msg, stacklevel=4)


def _entry_named(rows: list[tuple], name: str) -> int | None:
    """Return the number of the charge of that name."""
    return next((entry for entry, fields, _ in rows if json.loads(fields).get("name") == name), None)


# ---- checks ---------------------------------------------------------------------------------------------------------


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputError.about(argument="path", expected="the path of a ledger file", got=shown(path))
    return Path(path).absolute()


def _checked_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError.about(argument=name, expected="a text that is not empty", got=shown(value))
    return value


def _checked_key(key: Any) -> bytes | None:
    if key is not None and not (isinstance(key, bytes) and len(key) >= 16):
        expected = "at least 16 secret bytes, as secrets.token_bytes(32) makes them, or None"
        raise InputError.about(argument="key", expected=expected, got="something else")
    return key


def _checked_budget(epsilon: Any, delta: Any, weak_guarantee: bool) -> dict[str, float]:
    epsilon, delta = checked_guarantee(epsilon, delta, weak_guarantee=weak_guarantee, most=_MOST)
    return {"epsilon": epsilon, "delta": delta}
