"""The ledger's entries, linked by hashes, and what tells that they are the ones seen before. Knows no ledger file.

Entry 1 is the creation; charges and renewals follow. The hash of an entry, SHA-256 or with a key HMAC-SHA-256, covers the hash
before it and the entry's fields as one JSON text. Whoever can write the file can compute a chain without a key anew, so heads are
kept elsewhere too: in the certificates, and on this machine, one line for each entry it wrote.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from pathlib import Path

from hushgraph.checks import is_count, shown
from hushgraph.privacy.calibration import checked_delta, checked_epsilon, checked_squared, composed_epsilon

_START = "0" * 64  # what the first entry is linked to
KEEP = "put the newest good copy back; without one, start again with Ledger.create, less what the certificates say was spent"
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
}
_LONGEST = 10**140
_UPWARDS = Context(60, ROUND_CEILING, traps=[InvalidOperation, DivisionByZero, Overflow])


class LedgerError(RuntimeError):
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

    @property
    def spent(self) -> float:
        return composed_epsilon(self.mu_squared, self.delta)


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
        raise ValueError(msg)
    return squared


def grown(chain: Chain | None, text: str, head: str) -> Chain:
    """The chain with one more entry, whose link was verified; errors of any kind if its fields make no sense."""
    fields = json.loads(text)
    kind, entry, period = fields["kind"], fields["entry"], fields["period"]
    epsilon, delta = checked_epsilon(float.fromhex(fields["epsilon"])), checked_delta(float.fromhex(fields["delta"]))
    new = {"entry": entry, "head": head, "epsilon": epsilon, "delta": delta, "period": period, "mu_squared": Decimal(0)}
    if chain is None and (kind, entry, fields["format"]) == ("create", 1, 1) and re.fullmatch("[0-9a-f]{32}", fields["identity"]):
        names = {name: fields[name] for name in ("identity", "dataset", "unit", "adjacency")}
        return Chain(**new, **names, periods=frozenset([period]))
    if chain is not None and entry == chain.entry + 1:
        if kind == "renew" and period not in chain.periods:
            return replace(chain, **new, periods=chain.periods | {period})
        total = total_after(chain.mu_squared, Fraction(fields["sensitivity_squared"]), float.fromhex(fields["sigma"]))
        if kind == "charge" and period == chain.period and fields["mu_squared"] == str(total) and total > chain.mu_squared:
            return replace(chain, entry=entry, head=head, mu_squared=total)
    raise ValueError(kind)


def _check_key(name: str, fields: str, key: bytes | None) -> None:
    """That the first entry asks for a key if and only if there is one."""
    keyed = '"keyed":true' in fields
    if keyed and key is None:
        msg = f"the ledger {name} was made with a key; open it with key=..."
        raise LedgerError(msg)
    if key is not None and not keyed:
        msg = f"the ledger {name} was made without a key, and one was given: open it without, or find out who replaced the file"
        raise LedgerTampered(msg)


def verified(name: str, rows: list[tuple], *, key: bytes | None, known: Chain | None) -> Chain:
    """The chain of all `rows`. Every link is computed again; the fields of entries after `known` are read."""
    chain, previous = known, _START
    for number, (entry, fields, head) in enumerate(rows, 1):
        if entry != number or not isinstance(fields, str) or not isinstance(head, str):
            msg = f"the ledger {name} was edited: entry {number} is missing or no entry; {KEEP}"
            raise LedgerTampered(msg)
        if number == 1:
            _check_key(name, fields, key)
        if not hmac.compare_digest(link(key, previous, fields).encode(), head.encode()):
            other = "the key is another one, or " if key is not None and number == 1 else ""
            msg = f"{other}the ledger {name} was edited: entry {number} is not what was written; {KEEP}"
            raise LedgerTampered(msg)
        previous = head
        if known is None or number > known.entry:
            try:
                chain = grown(chain, fields, head)
            except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
                msg = f"the ledger {name} was rewritten: entry {number} makes no sense; {KEEP}"
                raise LedgerTampered(msg) from error
    if chain is None:
        msg = (
            f"{name} has no entries: its creation was interrupted, or goes on; if nobody is at it, delete it and use Ledger.create"
        )
        raise LedgerError(msg)
    return chain


def check_seen(name: str, rows: list[tuple], seen: list[tuple[int, str]], who: str) -> None:
    """That each (entry, head) that `who` has seen is in the file."""
    for entry, head in seen:
        now = rows[entry - 1][2] if 1 <= entry <= len(rows) else None
        if now != head:
            state = "the file lacks" if now is None else "is another one in the file"
            entry_seen = f"entry {entry} ({head[:16]}...), which {state}"
            msg = f"the ledger {name} was rolled back or rewritten: {who} has seen {entry_seen}; {KEEP}"
            raise LedgerTampered(msg)


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


# ---- heads kept elsewhere --------------------------------------------------------------------------------------------


def _witness_path(identity: str) -> Path:
    """Where this machine remembers the heads it has seen."""
    chosen, home = os.environ.get("HUSHGRAPH_STATE"), os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    state = Path(chosen) if chosen else (Path(home) if home else Path.home() / ".local" / "state") / "hushgraph"
    return state / "ledgers" / f"{identity}.heads"


def witnessed(identity: str) -> list[tuple[int, str]]:
    """The complete lines of the witness; a last line without its end is what a crash left."""
    try:
        lines = _witness_path(identity).read_bytes().decode(errors="replace").split("\n")[:-1]
    except (OSError, RuntimeError):  # nothing seen yet, or no home; `remember` warns if it cannot write either
        return []
    found = [re.fullmatch("([0-9]{1,15}) ([0-9a-f]{64})", line) for line in lines]
    return [(int(match[1]), match[2]) for match in found if match]


def remember(chain: Chain) -> None:
    path = _witness_path(chain.identity)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
        cut = b"" if file.read(1) in (b"", b"\n") else b"\n"  # ends the partial line of a crash
        file.write(cut + f"{chain.entry} {chain.head}\n".encode())


def check_certificate(name: str, identity: str, rows: list[tuple], certificate) -> None:
    """That a certificate is of this ledger, that its entry is there, and that both say the same."""
    known, stamp, entry, head = _read_certificate(certificate)
    if stamp != identity:
        msg = f"the certificate is of ledger {shown(stamp)}; {name} is ledger {identity}; check the path"
        raise LedgerError(msg)
    check_seen(name, rows, [(entry, head)], "a certificate")
    charged = read_entry(*rows[entry - 1][1:])
    for field, form in (("epsilon", float), ("delta", float), ("sigma", float), ("sensitivity_squared", Fraction)):
        if field in known and (charged[field] is None or form(known[field]) != form(charged[field])):
            msg = (
                f"the certificate says {field} = {shown(known[field])}, but {name} was charged for {charged[field]}; one was edited"
            )
            raise LedgerTampered(msg)


def _read_certificate(certificate) -> tuple[dict, str, int, str]:
    """The certificate, and identity, entry and head of its ledger."""
    try:
        known = json.loads(Path(certificate).read_bytes()) if isinstance(certificate, str | os.PathLike) else certificate
        stamp = known["ledger"]
        if is_count(stamp["entry"], 1) and isinstance(stamp["head"], str):
            return known, stamp["identity"], stamp["entry"], stamp["head"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    msg = f"a certificate is a dict, or the path of a JSON file, with ledger = {{identity, entry, head}}; got {shown(certificate)}"
    raise ValueError(msg)
