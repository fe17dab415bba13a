"""The ledger's entries, linked by hashes, and the snapshot of a budget that they add up to. Knows no ledger file.

Entry 1 is the creation. Charges and renewals follow, and after each charge that was drawn for a "draw" entry with the SHA-256 of
the noisy values. The hash of an entry, SHA-256 or with a key HMAC-SHA-256, covers the hash before it and the entry's fields as one
JSON text. Whoever can write the file can compute a chain without a key anew, so heads are kept elsewhere too: in the certificates,
and on this machine (memory.py).

Format 1 of a ledger had no claims in its charges and no draws. Such files are read, and go on in the new format. A later format
must write its number into each of its entries, because it may continue a file of this format. An entry of an unknown format or kind is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from typing import Any

from hushgraph._errors import HushgraphError, InputError, Sentence
from hushgraph._validation import shown
from hushgraph.privacy.calibration import (
    analytic_sigma,
    checked_delta,
    checked_epsilon,
    composed_delta,
    composed_epsilon,
)
from hushgraph.privacy.sensitivity import Adjacency, checked_squared

_START = "0" * 64  # what the first entry is linked to
RESTORE_ADVICE = Sentence(
    "put the newest good copy back; without one, start again with {Ledger.create}, less what the certificates say was spent"
)
_SHOWN: dict[str, Callable | None] = {
    "entry": None,
    "kind": None,
    "time": None,
    "period": None,
    "sensitivity_squared": Fraction,
    "sigma": float.fromhex,
    "epsilon": float.fromhex,
    "delta": float.fromhex,
    "note": None,
    "name": None,
    "of": None,
    "values_sha256": None,
    "replaces": None,
}
FORMAT = 2
_KINDS = ("create", "charge", "draw", "renew")
_LONGEST = 10**140
_UPWARDS = Context(60, ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


class LedgerError(HushgraphError, RuntimeError):
    """The ledger cannot be used as asked; nothing may be released."""


class BudgetExceeded(LedgerError):  # noqa: N818
    """The release would cost more than what is left; nothing was charged."""


class OtherMapError(LedgerError):
    """A charge has another map already: one charge pays for one map."""


class LedgerTampered(LedgerError):  # noqa: N818
    """The file was edited, rolled back, rewritten or damaged."""


# ---- the chain ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerSnapshot:
    """A ledger at one moment: its names, its budget and what is spent of it, from all entries up to one of them.

    Attributes
    ----------
    entry, head : int, str
        Number and hash of the last entry.
    identity, dataset, unit, adjacency : str
        Which ledger it is, and what it protects.
    epsilon, delta, period : float, float, str or None
        The budget, and the time it is for.
    periods : frozenset
        The names of all periods so far.
    mu_squared : Decimal
        mu^2 of all releases of the period together, rounded up.
    time : str
        When the last entry was written.
    replaces : str or None
        Identity of the ledger that this one takes the place of.
    """

    entry: int
    head: str
    identity: str
    dataset: str
    unit: str
    adjacency: Adjacency
    epsilon: float
    delta: float
    period: str | None
    periods: frozenset[str | None]
    mu_squared: Decimal
    time: str
    replaces: str | None = None

    @property
    def names(self) -> tuple[str, str, str]:
        """Whose budget it is: data set, unit and adjacency."""
        return self.dataset, self.unit, self.adjacency

    @property
    def spent(self) -> float:
        """epsilon, at the budget's delta, of all releases of this period together, rounded up."""
        return composed_epsilon(self.mu_squared, self.delta)

    def budget(self) -> dict[str, Any]:
        """Return epsilon and delta of the budget, its period, and epsilon of what is spent."""
        return {"epsilon": self.epsilon, "delta": self.delta, "period": self.period, "spent": self.spent}

    def stamp(self) -> dict[str, Any]:
        """Return which budget was charged by the last entry, and how it stood then: the certificate's "ledger"."""
        names = ("identity", "dataset", "entry", "head", "replaces")
        return {name: getattr(self, name) for name in names} | {"budget": self.budget()}

    def remaining(self, delta: float | None = None) -> float:
        """Return the largest epsilon of one more analytic release at `delta` (the budget's by default), rounded down; 0 if none fits."""
        delta = self.delta if delta is None else checked_delta(delta)
        if not self.mu_squared and delta == self.delta:
            return self.epsilon
        downwards = Context(60, ROUND_FLOOR)
        variance = Fraction(analytic_sigma(epsilon=self.epsilon, delta=self.delta, sensitivity_squared=1)) ** 2
        most = downwards.divide(Decimal(variance.denominator), Decimal(variance.numerator))  # mu^2 of the whole budget
        left = downwards.subtract(most, self.mu_squared)
        epsilon = composed_epsilon(left, delta) if left > 0 else 0.0
        while epsilon > 0 and composed_delta(left, epsilon) < delta:
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

    def total_with(self, sensitivity_squared: Fraction, sigma: float) -> Decimal:
        """Return mu^2 of the period after one more release, which the budget must allow.

        Raises
        ------
        BudgetExceeded
            If all releases of the period together would cost more than the budget.
        """
        total = total_after(self.mu_squared, sensitivity_squared, sigma)
        if composed_delta(total, self.epsilon) > self.delta:
            msg = (
                "the budget for {!r} is epsilon = {} at delta = {}; {:.6g} of it is spent, and this release would make it {:.6g}; nothing "
                "was charged; use a smaller {epsilon} (one more release of {:.6g} at most fits, at the budget's delta), or start a new "
                "period with {ledger.renew(...)}"
            )
            after = composed_epsilon(total, self.delta)
            raise BudgetExceeded(Sentence(msg, self.dataset, self.epsilon, self.delta, self.spent, after, self.remaining()))
        return total


def entry_hash(key: bytes | None, previous: str, fields: str) -> str:
    """Return the hash of an entry, which covers the hash before it."""
    text = (previous + fields).encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.digest(key, text, "sha256").hex()


def entry_text(**fields: Any) -> str:
    """Return the one text that stands for the fields of an entry; floats keep every bit."""
    plain = {name: value.hex() if isinstance(value, float) else value for name, value in fields.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def total_after(mu_squared: Decimal, sensitivity_squared: Fraction, sigma: float) -> Decimal:
    """Return mu^2 after one more release, with 60 digits, rounded up twice."""
    term = sensitivity_squared / Fraction(sigma) ** 2
    return _UPWARDS.add(mu_squared, _UPWARDS.divide(Decimal(term.numerator), Decimal(term.denominator)))


def checked_sensitivity(sensitivity_squared: Any) -> Fraction:
    """Return the square of the sensitivity, exactly, and short enough to be written down."""
    squared = checked_squared(None, sensitivity_squared)
    if max(squared.numerator, squared.denominator) > _LONGEST:
        expected, hint = "made of integers of at most 10^140", "round it up to a shorter one"
        raise InputError.about(argument="sensitivity_squared", expected=expected, got="a longer one", hint=hint)
    return squared


def fraction_of(value: Any) -> Fraction:
    """Return the exact number that a file holds: an integer, or text like "8/3" of at most 141 digits each, so never "1e30000000"."""
    if isinstance(value, str) and not re.fullmatch("[0-9]{1,141}(/[0-9]{1,141})?", value):
        msg = "a fraction is written as whole numbers of at most 141 digits, 8/3 say; got another text"
        raise InputError(msg)
    return Fraction(value)


def with_entry(snapshot: LedgerSnapshot | None, text: str, head: str) -> LedgerSnapshot:
    """Return the snapshot after one more entry, whose hash was verified; errors of any kind if its fields make no sense."""
    fields = json.loads(text)
    kind, entry, period = fields["kind"], fields["entry"], fields["period"]
    new = {"entry": entry, "head": head, "time": fields["time"]}
    if snapshot is not None and entry == snapshot.entry + 1 and kind == "draw":
        if period == snapshot.period and 1 < fields["of"] < entry and re.fullmatch("[0-9a-f]{64}", fields["values_sha256"]):
            return replace(snapshot, **new)
        raise ValueError
    epsilon, delta = checked_epsilon(float.fromhex(fields["epsilon"])), checked_delta(float.fromhex(fields["delta"]))
    budget = {"epsilon": epsilon, "delta": delta, "period": period, "mu_squared": Decimal(0)}
    if snapshot is None and (kind, entry) == ("create", 1) and fields["format"] in (1, FORMAT) and _is_identity(fields["identity"]):
        names = {name: fields[name] for name in ("identity", "dataset", "unit", "adjacency")}
        return LedgerSnapshot(**new, **budget, **names, periods=frozenset([period]), replaces=fields.get("replaces"))
    if snapshot is not None and entry == snapshot.entry + 1:
        if kind == "renew" and period not in snapshot.periods:
            return replace(snapshot, **new, **budget, periods=snapshot.periods | {period})
        total = total_after(snapshot.mu_squared, fraction_of(fields["sensitivity_squared"]), float.fromhex(fields["sigma"]))
        if kind == "charge" and period == snapshot.period and fields["mu_squared"] == str(total) and total > snapshot.mu_squared:
            return replace(snapshot, **new, mu_squared=total)
    raise ValueError


def _is_newer(fields: dict[str, Any]) -> bool:
    """Return whether an entry has a later format, or a kind that this version does not know."""
    return fields.get("format", FORMAT) > FORMAT or fields["kind"] not in _KINDS


def _is_identity(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{32}", text) is not None


def checked_identity(name: str, text: Any) -> str:
    """Return the identity of a ledger, 32 hexadecimal digits."""
    if not _is_identity(text):
        expected = Sentence("the identity of a ledger, 32 digits from 0 to f ({ledger.identity})")
        raise InputError.about(argument=name, expected=expected, got=shown(text))
    return text


def history(rows: list[tuple]) -> list[LedgerSnapshot]:
    """Return the snapshot after each of the rows, which were verified."""
    snapshots: list[LedgerSnapshot] = []
    for _, fields, head in rows:
        snapshots.append(with_entry(snapshots[-1] if snapshots else None, fields, head))
    return snapshots


def _check_key(name: str, fields: str, key: bytes | None) -> None:
    """Refuse a first entry that asks for a key without one, or for none with one."""
    keyed = '"keyed":true' in fields
    if keyed and key is None:
        raise LedgerError(Sentence("the ledger {} was made with a key; open it with {key=...}", name))
    if key is not None and not keyed:
        msg = f"the ledger {name} was made without a key, and one was given: open it without, or find out who replaced the file"
        raise LedgerTampered(msg)


def verified_snapshot(
    name: str, rows: list[tuple], *, key: bytes | None, known: LedgerSnapshot | None, tail: bool = False
) -> LedgerSnapshot:
    """Return the snapshot of all `rows`. Every hash is computed again; the fields of entries after `known` are read.

    With `tail`, the rows are those after `known` only.
    """
    snapshot, (start, previous) = known, (known.entry, known.head) if tail and known is not None else (0, _START)
    for number, (entry, fields, head) in enumerate(rows, start + 1):
        if entry != number or not isinstance(fields, str) or not isinstance(head, str):
            raise LedgerTampered(
                Sentence("the ledger {} was edited: entry {} is missing or no entry; {}", name, number, RESTORE_ADVICE)
            )
        if number == 1:
            _check_key(name, fields, key)
        if not hmac.compare_digest(entry_hash(key, previous, fields).encode(), head.encode()):
            other = "the key is another one, or " if key is not None and number == 1 else ""
            msg = "{}the ledger {} was edited: entry {} is not what was written; {}"
            raise LedgerTampered(Sentence(msg, other, name, number, RESTORE_ADVICE))
        previous = head
        if known is None or number > known.entry:
            try:
                if _is_newer(json.loads(fields)):
                    msg = "entry {} of the ledger {} was written by a newer version of hushgraph; use that version; nothing may be released with this one"
                    raise LedgerError(Sentence(msg, number, name))
                snapshot = with_entry(snapshot, fields, head)
            except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
                msg = "the ledger {} was rewritten: entry {} makes no sense; {}"
                raise LedgerTampered(Sentence(msg, name, number, RESTORE_ADVICE)) from error
    if snapshot is None:
        msg = "{} has no entries: its creation was interrupted, or goes on; if nobody is at it, delete it and use {Ledger.create}"
        raise LedgerError(Sentence(msg, name))
    return snapshot


def check_heads(name: str, rows: list[tuple], heads: list[tuple[int, str]], witness: str, *, since: int = 1) -> None:
    """Refuse a file that lacks an (entry, head) that `witness` has seen; its rows from entry `since` on are given."""
    for entry, head in heads:
        now = rows[entry - since][2] if 0 <= entry - since < len(rows) else None
        if now != head:
            state = "the file lacks" if now is None else "is another one in the file"
            msg = "the ledger {} was rolled back or rewritten: {} has seen entry {} ({}...), which {}; {}"
            raise LedgerTampered(Sentence(msg, name, witness, entry, head[:16], state, RESTORE_ADVICE))


def next_entry(snapshot: LedgerSnapshot | None, key: bytes | None, **fields: Any) -> tuple[str, LedgerSnapshot]:
    """Return the text of one more entry, and the snapshot with it.

    The nonce makes each entry another one, so that two copies of a ledger that are charged alike in the same second have different heads.
    """
    entry, previous = (1, _START) if snapshot is None else (snapshot.entry + 1, snapshot.head)
    unique = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "nonce": secrets.token_hex(16)}
    text = entry_text(entry=entry, **unique, **fields)
    return text, with_entry(snapshot, text, entry_hash(key, previous, text))


def read_entry(text: str, head: str) -> dict[str, Any]:
    """Return an entry for people: floats and fractions as such, None for what its kind does not have."""
    fields = json.loads(text)
    entry = {name: fields.get(name) for name in _SHOWN} | {"head": head}
    for name, form in _SHOWN.items():
        if form is not None and entry[name] is not None:
            entry[name] = form(entry[name])
    return entry
