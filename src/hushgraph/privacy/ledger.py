"""The ledger: one file is one budget for one data set, unit and adjacency; a release is charged here before any noise is drawn.

Releases add up as mu^2 = sum Delta_i^2 / sigma_i^2 (each term rounded up), and together they may cost at most the budget:

    composed_delta(mu^2, budget epsilon) <= budget delta                                    (see calibration.py)

A charge is durable before `charge` returns: a crash afterwards costs budget, never privacy. Entries form a chain (chain.py), which
shows what was edited or rolled back. Nothing private is kept: no counts, only what certificates say anyway.
"""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
import threading
import warnings
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import get_args

from hushgraph.checks import checked_number, checked_sigma, choose, shown
from hushgraph.privacy.calibration import Adjacency, analytic_sigma, checked_delta, composed_delta, composed_epsilon
from hushgraph.privacy.chain import (
    BudgetExceeded,
    Chain,
    LedgerError,
    LedgerTampered,
    check_certificate,
    check_seen,
    checked_sensitivity,
    next_entry,
    read_entry,
    remember,
    total_after,
    verified,
    witnessed,
)
from hushgraph.privacy.guarantee import checked_guarantee
from hushgraph.privacy.ledger_file import SCHEMA, new_file, rows_of, transaction

__all__ = ["BudgetExceeded", "Charge", "Ledger", "LedgerError", "LedgerTampered"]
_MOST = 1e6  # epsilon: beyond it nothing is private, and numbers overflow
_MADE_HERE = object()


# ---- one charge, one draw -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Charge:
    """Permission to draw noise once, made by `Ledger.charge` only; it cannot be copied, pickled or used after a fork."""

    entry: int
    head: str
    identity: str
    sensitivity_squared: Fraction
    sigma: float
    epsilon: float
    delta: float
    made_by: InitVar[object]
    _spent: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)  # taken once, never given back
    _process: int = field(init=False, repr=False, default_factory=os.getpid)

    def __post_init__(self, made_by):
        if made_by is not _MADE_HERE:
            msg = "a Charge is made by ledger.charge(...) only, which pays for it"
            raise LedgerError(msg)

    def spend(self) -> None:
        """To be called right before the noise is drawn; an error from the second call on."""
        if os.getpid() != self._process or not self._spent.acquire(blocking=False):
            msg = f"one charge, one draw: entry {self.entry} was spent, or belongs to another process; charge the ledger again"
            raise LedgerError(msg)

    def __reduce_ex__(self, protocol):
        msg = "one charge, one draw: a Charge cannot be copied or pickled; draw the noise here, and send the noisy values"
        raise LedgerError(msg)


# ---- the ledger -----------------------------------------------------------------------------------------------------


def _insert(connection: sqlite3.Connection, key: bytes | None, chain: Chain | None, **fields) -> Chain:
    """One more entry, in a transaction that verified the ones before."""
    text, after = next_entry(chain, key, **fields)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (after.entry, text, after.head))
    return after


class Ledger:
    """A privacy budget in a file, shared safely by threads and processes; use `Ledger.create` once, then `Ledger.open`.

    `epsilon`, `delta`, `period`, `spent`, `mu_squared`, `head` and the length are read from the file, and verified, each time.

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

    def __init__(self, path: Path, chain: Chain, *, key: bytes | None):
        self.path, self.identity = path, chain.identity
        self.dataset, self.unit, self.adjacency = chain.dataset, chain.unit, chain.adjacency
        self._key, self._seen, self._warned = key, chain, False

    @classmethod
    def create(
        cls, path, *, dataset, unit, adjacency, epsilon, delta, period=None, key=None, weak_guarantee: bool = False
    ) -> Ledger:
        """A new file with the whole budget left.

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
        weak_guarantee : bool
            Needed for an epsilon above 10, which protects nobody in practice.
        """
        path, key = _checked_path(path), _checked_key(key)
        names = {"dataset": _checked_name("dataset", dataset), "unit": _checked_name("unit", unit)}
        names["adjacency"] = choose("adjacency", adjacency, get_args(Adjacency))
        budget = _checked_budget(epsilon, delta, weak_guarantee)
        period = None if period is None else _checked_name("period", period)
        origin = {"format": 1, "identity": secrets.token_hex(16), "keyed": key is not None, "kind": "create", "note": None}
        with new_file(path) as draft, transaction(draft, "IMMEDIATE", "nothing was created: ") as connection:
            connection.execute(SCHEMA)
            chain = _insert(connection, key, None, **origin, **names, **budget, period=period)
        ledger = cls(path, chain, key=key)
        ledger._keep(chain)
        return ledger

    @classmethod
    def open(cls, path, *, dataset=None, unit=None, adjacency=None, key=None) -> Ledger:
        """An existing ledger, verified from its first entry on; names that are given must be the stored ones."""
        path, key = _checked_path(path), _checked_key(key)
        with transaction(path, "DEFERRED") as connection:
            rows = rows_of(path, connection)
            chain = verified(path.name, rows, key=key, known=None)
            seen = witnessed(chain.identity)
            check_seen(path.name, rows, seen, "this machine")
        for name, given in (("dataset", dataset), ("unit", unit), ("adjacency", adjacency)):
            stored = getattr(chain, name)
            if given is not None and given != stored:
                msg = f"the ledger {path.name} is for {name}={stored!r}; got {shown(given)}; open the ledger that was made for it"
                raise LedgerError(msg)
        ledger = cls(path, chain, key=key)
        if (chain.entry, chain.head) not in seen:
            with suppress(OSError, RuntimeError):  # a charge would warn
                remember(chain)
        return ledger

    def __reduce_ex__(self, protocol):
        if self._key is not None:
            msg = "a ledger with a key is not pickled, since the key would go along; open it again: Ledger.open(path, key=...)"
            raise TypeError(msg)
        return super().__reduce_ex__(protocol)

    def charge(self, *, sensitivity_squared, sigma, epsilon, delta, note=None) -> Charge:
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
        alone = total_after(Decimal(0), squared, sigma)
        if composed_delta(alone, claim["epsilon"]) > claim["delta"]:
            msg = f"sigma = {sigma} is too small for epsilon = {epsilon}, delta = {delta}; use analytic_sigma(...)"
            raise ValueError(msg)
        with transaction(self.path, "IMMEDIATE", "nothing was charged and nothing may be released: ") as connection:
            chain, _ = self._current(connection)
            total = total_after(chain.mu_squared, squared, sigma)
            fits = composed_delta(total, chain.epsilon) <= chain.delta
            if fits:
                cost = {"sensitivity_squared": str(squared), "sigma": sigma, "mu_squared": str(total)}
                chain = _insert(connection, self._key, chain, kind="charge", period=chain.period, note=note, **cost, **claim)
        if not fits:
            msg = (
                f"the budget of {self.path.name} is epsilon = {chain.epsilon} at delta = {chain.delta}; {chain.spent:.6g} of it "
                f"is spent, and this release would make it {composed_epsilon(total, chain.delta):.6g}; nothing was charged; use a "
                "smaller epsilon (ledger.remaining() says how large it can be), or start a new period with ledger.renew(...)"
            )
            raise BudgetExceeded(msg)
        self._keep(chain)
        return Charge(chain.entry, chain.head, self.identity, squared, sigma, **claim, made_by=_MADE_HERE)

    def renew(self, *, epsilon, delta, period, reason, weak_guarantee: bool = False) -> None:
        """Start a new period with a new budget, nothing of it spent: a decision about people's privacy, kept with its reason."""
        budget = _checked_budget(epsilon, delta, weak_guarantee)
        period, reason = _checked_name("period", period), _checked_name("reason", reason)
        with transaction(self.path, "IMMEDIATE", "nothing was renewed: ") as connection:
            chain, _ = self._current(connection)
            if period in chain.periods:
                msg = f"the ledger {self.path.name} had a period {period!r} already; give the new one a name of its own"
                raise LedgerError(msg)
            chain = _insert(connection, self._key, chain, kind="renew", period=period, note=reason, **budget)
        self._keep(chain)

    def verify(self, *certificates) -> None:
        """Read the whole file again; each certificate (a dict, or the path of a JSON file) must say what its entry says."""
        chain, rows = self._read(afresh=True)
        for certificate in certificates:
            check_certificate(self.path.name, chain.identity, rows, certificate)

    def remaining(self, delta=None) -> float:
        """Largest epsilon of one more analytic release at `delta` (the budget's by default), rounded down; 0 if none fits."""
        chain = self._read()[0]
        delta = chain.delta if delta is None else checked_delta(delta)
        if not chain.mu_squared and delta == chain.delta:
            return chain.epsilon
        downwards = Context(60, ROUND_FLOOR)
        variance = Fraction(analytic_sigma(epsilon=chain.epsilon, delta=chain.delta, sensitivity_squared=1)) ** 2
        most = downwards.divide(Decimal(variance.denominator), Decimal(variance.numerator))  # mu^2 of the whole budget
        left = downwards.subtract(most, chain.mu_squared)
        epsilon = composed_epsilon(left, delta) if left > 0 else 0.0
        while epsilon > 0 and composed_delta(left, epsilon) < delta:
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

    def entries(self) -> list[dict]:
        """What was written, oldest first; creation and renewals have the budget as epsilon and delta."""
        return [read_entry(fields, head) for _, fields, head in self._read()[1]]

    def budget(self) -> dict:
        """Budget, period and what is spent of it, all from one look at the file."""
        chain = self._read()[0]
        return {"epsilon": chain.epsilon, "delta": chain.delta, "period": chain.period, "spent": chain.spent}

    @property
    def epsilon(self) -> float:
        return self._read()[0].epsilon

    @property
    def delta(self) -> float:
        return self._read()[0].delta

    @property
    def period(self) -> str | None:
        return self._read()[0].period

    @property
    def spent(self) -> float:
        """epsilon, at the budget's delta, of all releases of this period together, rounded up."""
        return self._read()[0].spent

    @property
    def mu_squared(self) -> Decimal:
        return self._read()[0].mu_squared

    @property
    def head(self) -> str:
        return self._read()[0].head

    def __len__(self) -> int:
        return self._read()[0].entry

    def __repr__(self) -> str:
        seen = self._seen
        names = f"{self.path.name!r}, dataset={self.dataset!r}, unit={self.unit!r}, adjacency={self.adjacency!r}"
        return f"Ledger({names}, spent={seen.spent:.6g}, budget=({seen.epsilon}, {seen.delta}))"

    def _current(self, connection, *, afresh: bool = False) -> tuple[Chain, list[tuple]]:
        """The file as it is now, in which everything must be that this object and this machine have seen."""
        rows, seen = rows_of(self.path, connection), self._seen
        check_seen(self.path.name, rows, [(seen.entry, seen.head)], "this process")
        check_seen(self.path.name, rows, witnessed(self.identity), "this machine")
        return verified(self.path.name, rows, key=self._key, known=None if afresh else seen), rows

    def _read(self, *, afresh: bool = False) -> tuple[Chain, list[tuple]]:
        with transaction(self.path, "DEFERRED") as connection:
            chain, rows = self._current(connection, afresh=afresh)
        self._seen = chain
        return chain, rows

    def _keep(self, chain: Chain) -> None:
        """Remember a new entry, here and on the machine; it stands even if the machine cannot."""
        self._seen = chain
        try:
            remember(chain)
        except (OSError, RuntimeError) as error:
            if not self._warned:
                self._warned = True
                msg = (
                    f"this machine cannot remember the ledger's head ({error}), so rollbacks of {self.path.name} cannot be noticed "
                    "on this machine; the entry stands; set HUSHGRAPH_STATE to a folder that can be written"
                )
                warnings.warn(msg, UserWarning, stacklevel=3)


# ---- checks ---------------------------------------------------------------------------------------------------------


def _checked_path(path) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        msg = f"path must be the path of a ledger file; got {shown(path)}"
        raise ValueError(msg)
    return Path(path).absolute()


def _checked_name(name: str, value) -> str:
    if not isinstance(value, str) or not value.strip():
        msg = f"{name} must be a text that is not empty; got {shown(value)}"
        raise ValueError(msg)
    return value


def _checked_key(key) -> bytes | None:
    if key is not None and not (isinstance(key, bytes) and len(key) >= 16):
        msg = "key must be at least 16 secret bytes, as secrets.token_bytes(32) makes them, or None; got something else"
        raise ValueError(msg)
    return key


def _checked_budget(epsilon, delta, weak_guarantee) -> dict[str, float]:
    epsilon, delta = checked_guarantee(epsilon, delta, weak_guarantee=weak_guarantee, most=_MOST)
    return {"epsilon": epsilon, "delta": delta}
