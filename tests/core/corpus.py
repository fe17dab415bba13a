"""Cases for the compiled loops, and digests of what came out of them when they were written.

Each subject (`cases_<subject>.py` beside this file) yields cases: a label, the name of a function of `hushgraph.core._loops`, and its
arguments, random and extreme ones. `corpus.json` holds 80 bits of the SHA-256 of what the function returned and of every array it wrote into, as the
first version of hushgraph computed it, whose loops were Python. The loops must give the same bits on every machine and compiler.
`python tests/core/corpus.py --add` adds the digests of new cases.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
DIGESTS = HERE / "corpus.json"


class Case(NamedTuple):
    """One call. Arguments are arrays, numbers, None, scratch arrays, or tuples of these."""

    label: str
    function: str
    arguments: tuple


class Scratch(NamedTuple):
    """An array for a loop to work in, full of NaN; what is left in it does not count."""

    shape: tuple[int, ...]
    dtype: type


def subjects() -> list[str]:
    """The names of all subjects."""
    return sorted(path.stem.removeprefix("cases_") for path in HERE.glob("cases_*.py"))


def cases_of(subject: str) -> Iterator[Case]:
    """The cases of a subject; the same ones each time, on every version of NumPy."""
    return importlib.import_module(f"cases_{subject}").cases()


def digest_of(call: Callable[..., Any], arguments: tuple) -> str:
    """The first 80 bits of the SHA-256 of what the call returns, and of its array arguments afterwards."""
    copies = _copied(arguments)
    found = hashlib.sha256()
    _add(found, call(*copies))
    _add(found, tuple(copy for copy, given in zip(copies, arguments, strict=True) if not isinstance(given, Scratch)))
    return found.hexdigest()[:20]


def known_digests() -> dict[str, dict[str, str]]:
    """The digest of each case by subject and label."""
    return json.loads(DIGESTS.read_text())


def main() -> None:
    """Count the cases without a digest by subject; with --add, add theirs to corpus.json. Digests that are there stay as they are."""
    parser = argparse.ArgumentParser(description="cases of the compiled loops that have no digest in corpus.json")
    parser.add_argument("--add", action="store_true", help="add the digests of what the loops return for them now")
    add = parser.parse_args().add
    loops = importlib.import_module("hushgraph.core._loops")
    known = known_digests()
    for subject in subjects():
        digests = known.setdefault(subject, {})
        missing = [case for case in cases_of(subject) if case.label not in digests]
        if add:
            digests |= {case.label: digest_of(getattr(loops, case.function), case.arguments) for case in missing}
        print(f"{subject}: {len(missing)} {'added' if add else 'missing'}")
    if add:
        DIGESTS.write_text(json.dumps(known, indent=0) + "\n")


def _copied(value):
    if isinstance(value, Scratch):
        return np.full(value.shape, np.nan, value.dtype)
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _add(found, value) -> None:
    """Type, shape and bytes; every NaN counts as the same."""
    if isinstance(value, tuple | list):
        found.update(f"({len(value)}".encode())
        for part in value:
            _add(found, part)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), value.dtype.type(np.nan), value)
        found.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, float | np.floating):
        found.update(("nan" if np.isnan(value) else float(value).hex()).encode())
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        found.update(str(int(value)).encode())
    elif value is not None:
        msg = f"a case holds {type(value).__name__}, which has no digest"
        raise TypeError(msg)


if __name__ == "__main__":
    importlib.import_module("corpus").main()  # the module that the cases import, so that their Scratch is the same class
