"""Draws by name: a release that was drawn under a name is kept, and returned when the name is asked for again.

The name is a field of the charge, in the ledger, and is taken in the transaction of the charge: two processes cannot both be charged for
it. The noisy values are a file in the folder LEDGER.releases beside the ledger, named by the hash of the charge; it is written before
the "draw" entry that binds their SHA-256 to the charge; from then on a file with other values is never returned. A process that ends between
the two leaves a file that is not bound. It is bound when the name is asked for again, but not in a ledger with a key: whoever can write the
file, and has no key, must not choose the map. Nothing here depends on the counts: whether a name is taken, by which public terms, and what is
returned are functions of the ledger and of what was published.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushgraph._arrays import values_digest
from hushgraph._atomic import atomic_file, check_folder
from hushgraph._errors import PathError, Sentence, warn_without_raising
from hushgraph.files import array_of
from hushgraph.privacy.ledger.budget import Charge, Ledger
from hushgraph.privacy.ledger.chain import LedgerError, LedgerSnapshot
from hushgraph.privacy.map_file import is_possible_map

_FOLLOW = ("sigma", "lattice", "largest_count")  # from the other claims


class NamedDraw(NamedTuple):
    """Noisy values that were drawn before, and the ledger right after their charge."""

    values: np.ndarray
    sigma: float
    state: LedgerSnapshot


def drawn_before(ledger: Ledger, name: str, claims: dict[str, Any]) -> NamedDraw | None:
    """Return what was drawn under a name for these public claims; None for a name that is free.

    Raises
    ------
    LedgerError
        If the name was charged for other claims, or what was drawn for it is lost.
    """
    charge = ledger.charge_named(name)
    if charge is None:
        return None
    day = charge.state.time[:10]
    if changes := _changes(charge.claims, json.loads(json.dumps(claims))):
        msg = "the name {!r} is taken: it was released on {} on other terms ({}); nothing was charged; use another name, or the same terms"
        raise LedgerError(Sentence(msg, name, day, "; ".join(changes)))
    values = _stored_values(_file(ledger, charge.state))
    if charge.values_sha256 is None:
        if values is None or ledger.keyed or not is_possible_map(values, charge.claims):
            msg = (
                "the name {!r} was charged on {} (entry {}), and the ledger has no map for it: the process ended before it was recorded, or is still "
                "at it; nothing was charged now; run this again if another process is drawing, or use another name, which is charged for a new draw"
            )
            raise LedgerError(Sentence(msg, name, day, charge.state.entry))
        ledger.bind(charge, values)
    elif values is None or values_digest(values) != charge.values_sha256:
        msg = (
            "the name {!r} was charged on {} (entry {}), and the map drawn for it is not in {}: the file was removed or changed; nothing was "
            "charged now; put the file back if you have it, or use another name, which is charged for a new draw"
        )
        raise LedgerError(Sentence(msg, name, day, charge.state.entry, _folder(ledger).name))
    return NamedDraw(values, charge.claims["sigma"], charge.state)


def make_folder(ledger: Ledger) -> None:
    """Create the folder for draws by name, before anything is charged."""
    folder = _folder(ledger)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        msg = f"nothing was charged: {folder.name}, the folder for releases with names, cannot be created ({error.strerror}); give access, or leave name= out"
        raise PathError(error.errno, msg) from None
    check_folder(folder, expected="nothing was charged: ", advice="give access, or leave name= out")


def keep_draw(ledger: Ledger, charge: Charge, values: np.ndarray) -> bool:
    """Write the noisy values that a charge paid for, and return whether the name can return them before they are bound.

    If they cannot be written, warn: the release was paid for and is still good.
    """
    try:
        with atomic_file(_file(ledger, charge.state), replace=False, sync=True) as draft:
            np.save(draft, values, allow_pickle=False)
    except OSError as error:
        msg = f"the release was charged and is returned, but cannot be kept under its name ({error.strerror}); export it now"
        warn_without_raising(msg, stacklevel=3)
        return False
    return not ledger.keyed


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the claims that differ, with both values where these are short."""
    if "places" not in before.get("graph", {}):  # the charge is of a version whose certificates did not name places
        now = {**now, "graph": {name: value for name, value in now["graph"].items() if name != "places"}}
    names = [name for name in {**before, **now} if name not in _FOLLOW and before.get(name) != now.get(name)]
    pairs = [(name, before.get(name), now.get(name)) for name in names]
    is_long = [any(isinstance(value, dict | list) for value in pair) for pair in pairs]
    return [
        f"{name} was another one" if long else f"{name} was {old!r}, now {new!r}"
        for (name, old, new), long in zip(pairs, is_long, strict=True)
    ]


def _stored_values(path: Path) -> np.ndarray | None:
    """Return the numbers of a file; None if it is not there or holds anything else."""
    try:
        values = array_of(path.read_bytes())
    except (OSError, ValueError):
        return None
    return values if values.dtype.kind == "f" else None


def _folder(ledger: Ledger) -> Path:
    return ledger.path.with_name(f"{ledger.path.name}.releases")


def _file(ledger: Ledger, state: LedgerSnapshot) -> Path:
    return _folder(ledger) / f"{state.head}.npy"
