"""The ledger's entries, linked by hashes, and what tells that they are the ones seen before. Knows no ledger file.

Entry 1 is the creation. Charges and renewals follow, and after each charge that was drawn for a "draw" entry with the SHA-256 of
the noisy values. The hash of an entry, SHA-256 or with a key HMAC-SHA-256, covers the hash before it and the entry's fields as one
JSON text. Whoever can write the file can compute a chain without a key anew, so heads are kept elsewhere too: in the certificates,
and on this machine (memory.py).

Format 1 of a ledger had no claims in its charges and no draws. Such files are read, and go on in the new format.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction

from hushgraph._errors import HushgraphError, InputError, Sentence, argument
from hushgraph.checks import shown
from hushgraph.privacy.calibration import (
    analytic_sigma,
    checked_delta,
    checked_epsilon,
    checked_squared,
    composed_delta,
    composed_epsilon,
)

_START = "0" * 64  # what the first entry is linked to
KEEP = Sentence(
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
    "of": None,
    "values_sha256": None,
    "replaces": None,
}
FORMAT = 2
_LONGEST = 10**140
_UPWARDS = Context(60, ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


class LedgerError(HushgraphError, RuntimeError):
    """The ledger cannot be used as asked; nothing may be released."""


class BudgetExceeded(LedgerError):  # noqa: N818
    """The release would cost more than what is left; nothing was charged."""


class LedgerTampered(LedgerError):  # noqa: N818
    """The file was edited, rolled back, rewritten or damaged."""


# ---- the chain ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """What the entries say together, up to one of them."""

    entry: int
    head: str
    identity: str
    dataset: str
    unit: str
    adjacency: str
    epsilon: float
    delta: float
    period: str | None
    periods: frozenset[str | None]
    mu_squared: Decimal
    time: str
    replaces: str | None = None

    @property
    def spent(self) -> float:
        """epsilon, at the budget's delta, of all releases of this period together, rounded up."""
        return composed_epsilon(self.mu_squared, self.delta)

    def budget(self) -> dict:
        """Return budget, period and what is spent of it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "period": self.period, "spent": self.spent}

    def remaining(self, delta=None) -> float:
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


def link(key: bytes | None, previous: str, fields: str) -> str:
    text = (previous + fields).encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.digest(key, text, "sha256").hex()


def written(**fields) -> str:
    """Fields as the one text that stands for them; floats keep every bit."""
    plain = {name: value.hex() if isinstance(value, float) else value for name, value in fields.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def total_after(mu_squared: Decimal, sensitivity_squared: Fraction, sigma: float) -> Decimal:
    """mu^2 after one more release, with 60 digits, rounded up twice."""
    term = sensitivity_squared / Fraction(sigma) ** 2
    return _UPWARDS.add(mu_squared, _UPWARDS.divide(Decimal(term.numerator), Decimal(term.denominator)))


def checked_sensitivity(sensitivity_squared) -> Fraction:
    """The square of the sensitivity, exactly, and short enough to be written down."""
    squared = checked_squared(None, sensitivity_squared)
    if max(squared.numerator, squared.denominator) > _LONGEST:
        msg = "sensitivity_squared must be made of integers of at most 10^140; got a longer one; round it up to a shorter one"
        raise InputError(msg)
    return squared


def fraction_of(value) -> Fraction:
    """The exact number that a file holds: an integer, or text like "8/3" of at most 141 digits each; "1e30000000" would never be done."""
    if isinstance(value, str) and not re.fullmatch("[0-9]{1,141}(/[0-9]{1,141})?", value):
        msg = "a fraction is written as whole numbers of at most 141 digits, 8/3 say; got another text"
        raise InputError(msg)
    return Fraction(value)


def grown(chain: Chain | None, text: str, head: str) -> Chain:
    """The chain with one more entry, whose link was verified; errors of any kind if its fields make no sense."""
    fields = json.loads(text)
    kind, entry, period = fields["kind"], fields["entry"], fields["period"]
    new = {"entry": entry, "head": head, "time": fields["time"]}
    if chain is not None and entry == chain.entry + 1 and kind == "draw":
        if period == chain.period and 1 < fields["of"] < entry and re.fullmatch("[0-9a-f]{64}", fields["values_sha256"]):
            return replace(chain, **new)
        raise ValueError
    epsilon, delta = checked_epsilon(float.fromhex(fields["epsilon"])), checked_delta(float.fromhex(fields["delta"]))
    budget = {"epsilon": epsilon, "delta": delta, "period": period, "mu_squared": Decimal(0)}
    if chain is None and (kind, entry) == ("create", 1) and fields["format"] in (1, FORMAT) and _is_identity(fields["identity"]):
        names = {name: fields[name] for name in ("identity", "dataset", "unit", "adjacency")}
        return Chain(**new, **budget, **names, periods=frozenset([period]), replaces=fields.get("replaces"))
    if chain is not None and entry == chain.entry + 1:
        if kind == "renew" and period not in chain.periods:
            return replace(chain, **new, **budget, periods=chain.periods | {period})
        total = total_after(chain.mu_squared, fraction_of(fields["sensitivity_squared"]), float.fromhex(fields["sigma"]))
        if kind == "charge" and period == chain.period and fields["mu_squared"] == str(total) and total > chain.mu_squared:
            return replace(chain, **new, mu_squared=total)
    raise ValueError


def _is_identity(text) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{32}", text) is not None


def checked_identity(name: str, text) -> str:
    """The identity of a ledger, 32 hexadecimal digits."""
    if not _is_identity(text):
        msg = "{} must be the identity of a ledger, 32 digits from 0 to f ({ledger.identity}); got {}"
        raise InputError(Sentence(msg, argument(name), shown(text)))
    return text


def history(rows: list[tuple]) -> list[Chain]:
    """The chain after each of the rows, which were verified."""
    chains: list[Chain] = []
    for _, fields, head in rows:
        chains.append(grown(chains[-1] if chains else None, fields, head))
    return chains


def _check_key(name: str, fields: str, key: bytes | None) -> None:
    """That the first entry asks for a key if and only if there is one."""
    keyed = '"keyed":true' in fields
    if keyed and key is None:
        raise LedgerError(Sentence("the ledger {} was made with a key; open it with {key=...}", name))
    if key is not None and not keyed:
        msg = f"the ledger {name} was made without a key, and one was given: open it without, or find out who replaced the file"
        raise LedgerTampered(msg)


def verified(name: str, rows: list[tuple], *, key: bytes | None, known: Chain | None, tail: bool = False) -> Chain:
    """The chain of all `rows`. Every link is computed again; the fields of entries after `known` are read.

    With `tail`, the rows are those after `known` only.
    """
    chain, (start, previous) = known, (known.entry, known.head) if tail and known is not None else (0, _START)
    for number, (entry, fields, head) in enumerate(rows, start + 1):
        if entry != number or not isinstance(fields, str) or not isinstance(head, str):
            raise LedgerTampered(Sentence("the ledger {} was edited: entry {} is missing or no entry; {}", name, number, KEEP))
        if number == 1:
            _check_key(name, fields, key)
        if not hmac.compare_digest(link(key, previous, fields).encode(), head.encode()):
            other = "the key is another one, or " if key is not None and number == 1 else ""
            msg = "{}the ledger {} was edited: entry {} is not what was written; {}"
            raise LedgerTampered(Sentence(msg, other, name, number, KEEP))
        previous = head
        if known is None or number > known.entry:
            try:
                chain = grown(chain, fields, head)
            except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
                msg = "the ledger {} was rewritten: entry {} makes no sense; {}"
                raise LedgerTampered(Sentence(msg, name, number, KEEP)) from error
    if chain is None:
        msg = "{} has no entries: its creation was interrupted, or goes on; if nobody is at it, delete it and use {Ledger.create}"
        raise LedgerError(Sentence(msg, name))
    return chain


def check_seen(name: str, rows: list[tuple], seen: list[tuple[int, str]], who: str, *, since: int = 1) -> None:
    """That each (entry, head) that `who` has seen is in the file, whose rows from entry `since` on are given."""
    for entry, head in seen:
        now = rows[entry - since][2] if 0 <= entry - since < len(rows) else None
        if now != head:
            state = "the file lacks" if now is None else "is another one in the file"
            msg = "the ledger {} was rolled back or rewritten: {} has seen entry {} ({}...), which {}; {}"
            raise LedgerTampered(Sentence(msg, name, who, entry, head[:16], state, KEEP))


def next_entry(chain: Chain | None, key: bytes | None, **fields) -> tuple[str, Chain]:
    """Text of one more entry, and the chain with it."""
    entry, previous = (1, _START) if chain is None else (chain.entry + 1, chain.head)
    text = written(entry=entry, time=datetime.now(UTC).isoformat(timespec="seconds"), **fields)
    return text, grown(chain, text, link(key, previous, text))


def read_entry(text: str, head: str) -> dict:
    """An entry for people: floats and fractions as such, None for what its kind does not have."""
    fields = json.loads(text)
    entry = {name: fields.get(name) for name in _SHOWN} | {"head": head}
    for name, form in _SHOWN.items():
        if form is not None and entry[name] is not None:
            entry[name] = form(entry[name])
    return entry
