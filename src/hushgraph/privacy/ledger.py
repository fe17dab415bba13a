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

import os
import secrets
import sqlite3
import threading
import warnings
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import get_args

from hushgraph._errors import InputError, InputTypeError, Reference, Sentence, argument
from hushgraph.checks import checked_number, checked_sigma, choose, shown
from hushgraph.privacy.calibration import Adjacency, checked_delta, composed_delta, composed_epsilon
from hushgraph.privacy.chain import (
    FORMAT,
    BudgetExceeded,
    Chain,
    LedgerError,
    LedgerTampered,
    check_seen,
    checked_identity,
    checked_sensitivity,
    next_entry,
    read_entry,
    total_after,
    verified,
)
from hushgraph.privacy.claims import Record, certificate_checks, check_stamp, ledger_checks, values_digest, words_check
from hushgraph.privacy.guarantee import checked_guarantee
from hushgraph.privacy.ledger_file import SCHEMA, new_file, rows_of, transaction
from hushgraph.privacy.memory import check_names, check_path, remember, witnessed

__all__ = ["BudgetExceeded", "Charge", "Ledger", "LedgerError", "LedgerTampered"]
_MOST = 1e6  # epsilon: beyond it nothing is private, and numbers overflow
_MADE_HERE = object()


# ---- one charge, one draw -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Charge:
    """Permission to draw noise once, made by `Ledger.charge` only; it cannot be copied, pickled or used after a fork."""

    state: Chain = field(repr=False)  # the ledger right after the charge
    sensitivity_squared: Fraction
    sigma: float
    epsilon: float
    delta: float
    made_by: InitVar[object]
    _spent: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)  # taken once, never given back
    _bound: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)  # likewise
    _process: int = field(init=False, repr=False, default_factory=os.getpid)

    def __post_init__(self, made_by):
        if made_by is not _MADE_HERE:
            msg = "a Charge is made by ledger.charge(...) only, which pays for it"
            raise LedgerError(msg)

    @property
    def entry(self) -> int:
        return self.state.entry

    @property
    def head(self) -> str:
        return self.state.head

    @property
    def identity(self) -> str:
        return self.state.identity

    @property
    def stamp(self) -> dict:
        """Which budget was charged, and how it stood then: the certificate's "ledger"."""
        names = ("identity", "dataset", "entry", "head", "replaces")
        return {name: getattr(self.state, name) for name in names} | {"budget": self.state.budget()}

    def spend(self) -> None:
        """To be called right before the noise is drawn; an error from the second call on."""
        if os.getpid() != self._process or not self._spent.acquire(blocking=False):
            msg = f"one charge, one draw: entry {self.entry} was spent, or belongs to another process; charge the ledger again"
            raise LedgerError(msg)

    def check_drawn(self) -> None:
        """To be called right before the values are bound to the charge; an error before the draw, and from the second call on."""
        if not self._spent.locked() or not self._bound.acquire(blocking=False):
            msg = f"one charge, one map: entry {self.entry} was not drawn for, or has its map already"
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

    `epsilon`, `delta`, `period`, `spent`, `mu_squared`, `head` and the length are read from the file, and verified, each time. For
    several of them at once take `ledger.read()`, one look at the file, or `ledger.seen`, the last look, which reads nothing.

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
        cls, path, *, dataset, unit, adjacency, epsilon, delta, period=None, key=None, replaces=None, weak_guarantee: bool = False
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
        replaces : str, optional
            Identity of the ledger that this one takes the place of. Needed where this machine has seen a ledger with spending at the
            path, or for the same data set, unit and adjacency: the same people get a second budget, which is recorded for everyone to see.
        weak_guarantee : bool
            Needed for an epsilon above 10, which protects nobody in practice.
        """
        path, key = _checked_path(path), _checked_key(key)
        names = {"dataset": _checked_name("dataset", dataset), "unit": _checked_name("unit", unit)}
        names["adjacency"] = choose("adjacency", adjacency, get_args(Adjacency))
        budget = _checked_budget(epsilon, delta, weak_guarantee)
        period = None if period is None else _checked_name("period", period)
        replaces = None if replaces is None else checked_identity("replaces", replaces)
        if not path.exists():  # which is refused below
            check_names(**names, identity=None, replaces=(replaces,))
            check_path(path, None, (replaces,))
        origin = {"format": FORMAT, "identity": secrets.token_hex(16), "keyed": key is not None, "kind": "create", "note": None}
        with new_file(path) as draft, transaction(draft, "IMMEDIATE", "nothing was created: ") as connection:
            connection.execute(SCHEMA)
            chain = _insert(connection, key, None, **origin, **names, **budget, period=period, replaces=replaces)
        ledger = cls(path, chain, key=key)
        ledger._keep(chain)
        return ledger

    @classmethod
    def open(cls, path, *, dataset=None, unit=None, adjacency=None, key=None, replaces=None) -> Ledger:
        """An existing ledger, verified from its first entry on; names that are given must be the stored ones.

        Where this machine has seen another ledger with spending at the path, or for the same data set, unit and adjacency, `replaces`
        must name that one, unless the ledger itself does: the owner's word that it was replaced on purpose.
        """
        path, key = _checked_path(path), _checked_key(key)
        with transaction(path, "DEFERRED") as connection:
            rows = rows_of(path, connection)
            chain = verified(path.name, rows, key=key, known=None)
            seen = witnessed(chain.identity)
            check_seen(path.name, rows, seen, "this machine")
            replaced = (chain.replaces, None if replaces is None else checked_identity("replaces", replaces))
            check_path(path, chain.identity, replaced)
            check_names(chain.dataset, chain.unit, chain.adjacency, chain.identity, replaced)
        for name, given in (("dataset", dataset), ("unit", unit), ("adjacency", adjacency)):
            stored = getattr(chain, name)
            if given is not None and given != stored:
                msg = "the ledger {} is for {}{!r}; got {}; open the ledger that was made for it"
                raise LedgerError(Sentence(msg, path.name, Reference(f"{name}="), stored, shown(given)))
        ledger = cls(path, chain, key=key)
        with suppress(OSError, RuntimeError):  # a charge would warn
            remember(chain, path)
        return ledger

    def __reduce_ex__(self, protocol):
        if self._key is not None:
            msg = "a ledger with a key is not pickled, since the key would go along; open it again: Ledger.open(path, key=...)"
            raise InputTypeError(msg)
        return super().__reduce_ex__(protocol)

    def charge(self, *, sensitivity_squared, sigma, epsilon, delta, note=None, claims=None) -> Charge:
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
            raise InputError(msg)
        with transaction(self.path, "IMMEDIATE", "nothing was charged and nothing may be released: ") as connection:
            chain, _ = self._current(connection)
            check_names(self.dataset, self.unit, self.adjacency, self.identity, (chain.replaces,))
            total = total_after(chain.mu_squared, squared, sigma)
            fits = composed_delta(total, chain.epsilon) <= chain.delta
            if fits:
                cost = {"sensitivity_squared": str(squared), "sigma": sigma, "mu_squared": str(total)}
                promise = {} if claims is None else {"claims": claims}
                fields = {"kind": "charge", "period": chain.period, "note": note, **cost, **claim, **promise}
                chain = _insert(connection, self._key, chain, **fields)
        if not fits:
            msg = (
                "the budget of {} is epsilon = {} at delta = {}; {:.6g} of it is spent, and this release would make it {:.6g}; nothing was "
                "charged; use a smaller epsilon ({ledger.remaining()} says how large it can be), or start a new period with "
                "{ledger.renew(...)}"
            )
            after = composed_epsilon(total, chain.delta)
            raise BudgetExceeded(Sentence(msg, self.path.name, chain.epsilon, chain.delta, chain.spent, after))
        self._keep(chain)
        return Charge(chain, squared, sigma, **claim, made_by=_MADE_HERE)

    def bind(self, charge: Charge, values) -> None:
        """Write down the SHA-256 of the noisy values that a charge paid for: `verify` tells them from any others. Costs nothing.

        The file was verified as a whole for the charge a moment ago, so only what was written since is read.
        """
        charge.check_drawn()
        seen, drawn = charge.state, {"of": charge.entry, "values_sha256": values_digest(values)}
        with transaction(self.path, "IMMEDIATE", "the charge stands, and its map was not bound to it: ") as connection:
            rows = rows_of(self.path, connection, since=seen.entry)
            check_seen(self.path.name, rows, [(seen.entry, seen.head)], "this process", since=seen.entry)
            chain = verified(self.path.name, rows[1:], key=self._key, known=seen, tail=True)
            chain = _insert(connection, self._key, chain, kind="draw", period=chain.period, note=None, **drawn)
        self._keep(chain)

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
        """Read the whole file again; each certificate (a dict, or the path of a JSON file) must say what the ledger says.

        A file must hold a whole certificate; a dict without "format" may hold a part of one.

        Everything that a certificate claims is compared: names, budget, bound, caps, rules, windows, graph, noise, its statement,
        and the SHA-256 of its noisy values. `verify_release` tells what was compared, and compares the map itself too.

        Raises
        ------
        LedgerError
            If the certificate is of another ledger.
        LedgerTampered
            If the ledger was edited, or a certificate says something else than the ledger.
        """
        chain, rows = self._read(afresh=True)
        record = Record(self.path.name, rows) if certificates else None
        for certificate in certificates:
            known = check_stamp(certificate)
            if known["ledger"]["identity"] != chain.identity:
                stamp = shown(known["ledger"]["identity"])
                msg = f"the certificate is of ledger {stamp}; {self.path.name} is ledger {chain.identity}; check the path"
                raise LedgerError(msg)
            assert record is not None
            checks = [*ledger_checks(record, known), *(certificate_checks(known) if "format" in known else [words_check(known)])]
            for check in checks:
                if check.holds is False:
                    raise LedgerTampered(check.detail)

    def rows(self) -> list[tuple]:
        """Return the entries as they are in the file, after verifying all of them anew."""
        return self._read(afresh=True)[1]

    def read(self) -> Chain:
        """Return budget, period, spending and head from one look at the file, verified."""
        return self._read()[0]

    @property
    def seen(self) -> Chain:
        """The ledger as this object last saw it, at the latest after its own last charge; the file is not read."""
        return self._seen

    @property
    def keyed(self) -> bool:
        return self._key is not None

    def remaining(self, delta=None) -> float:
        """Largest epsilon of one more analytic release at `delta` (the budget's by default), rounded down; 0 if none fits."""
        return self.read().remaining(delta)

    def entries(self) -> list[dict]:
        """What was written, oldest first; creation and renewals have the budget as epsilon and delta."""
        return [read_entry(fields, head) for _, fields, head in self._read()[1]]

    def budget(self) -> dict:
        """Budget, period and what is spent of it, all from one look at the file."""
        return self.read().budget()

    @property
    def epsilon(self) -> float:
        return self.read().epsilon

    @property
    def delta(self) -> float:
        return self.read().delta

    @property
    def period(self) -> str | None:
        return self.read().period

    @property
    def spent(self) -> float:
        """epsilon, at the budget's delta, of all releases of this period together, rounded up."""
        return self.read().spent

    @property
    def mu_squared(self) -> Decimal:
        return self.read().mu_squared

    @property
    def head(self) -> str:
        return self.read().head

    def __len__(self) -> int:
        return self.read().entry

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
            remember(chain, self.path)
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
        raise InputError(msg)
    return Path(path).absolute()


def _checked_name(name: str, value) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(Sentence("{} must be a text that is not empty; got {}", argument(name), shown(value)))
    return value


def _checked_key(key) -> bytes | None:
    if key is not None and not (isinstance(key, bytes) and len(key) >= 16):
        msg = "{key} must be at least 16 secret bytes, as secrets.token_bytes(32) makes them, or None; got something else"
        raise InputError(Sentence(msg))
    return key


def _checked_budget(epsilon, delta, weak_guarantee) -> dict[str, float]:
    epsilon, delta = checked_guarantee(epsilon, delta, weak_guarantee=weak_guarantee, most=_MOST)
    return {"epsilon": epsilon, "delta": delta}
