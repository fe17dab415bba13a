"""Cases for the compiled loops, and digests of their original results.

Each subject is a file `cases_<subject>.py` in this folder and yields cases. A case has a label, the name of a function of
`hushgraph.core._loops`, and random or extreme arguments. `corpus.json` holds a digest of each case: 80 bits of the SHA-256 of the result and
of all arrays that the function wrote. The first version of hushgraph, whose loops were Python, computed these results. The loops must give
the same bits on every machine and with every compiler. `python tests/core/corpus.py --add` adds the digests of new cases.
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
    """A call of a function. Arguments are arrays, numbers, None, scratch arrays, or tuples of these."""

    label: str
    function: str
    arguments: tuple


class Scratch(NamedTuple):
    """An array full of NaN as work memory for a loop. The digest ignores its final content."""

    shape: tuple[int, ...]
    dtype: type


def subjects() -> list[str]:
    """Return the names of all subjects."""
    return sorted(path.stem.removeprefix("cases_") for path in HERE.glob("cases_*.py"))


def cases_of(subject: str) -> Iterator[Case]:
    """Return the cases of a subject. They are the same in each run and with every version of NumPy."""
    return importlib.import_module(f"cases_{subject}").cases()


def digest_of(call: Callable[..., Any], arguments: tuple) -> str:
    """Return the first 80 bits of the SHA-256 of the result of a call and of its array arguments after the call."""
    copies = _copied(arguments)
    digest = hashlib.sha256()
    _add(digest, call(*copies))
    _add(digest, tuple(copy for copy, argument in zip(copies, arguments, strict=True) if not isinstance(argument, Scratch)))
    return digest.hexdigest()[:20]


def known_digests() -> dict[str, dict[str, str]]:
    """Return the digest of each case by subject and label."""
    return json.loads(DIGESTS.read_text())


def main() -> None:
    """Count the cases without a digest of each subject; with --add, add these digests to corpus.json. Old digests do not change."""
    parser = argparse.ArgumentParser(description="cases of the compiled loops that have no digest in corpus.json")
    parser.add_argument("--add", action="store_true", help="add the digests of the present results of these cases")
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
    """Return a copy of an argument."""
    if isinstance(value, Scratch):
        return np.full(value.shape, np.nan, value.dtype)
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _add(digest, value) -> None:
    """Add type, shape and bytes of a value to the digest. All NaNs count as equal."""
    if isinstance(value, tuple | list):
        digest.update(f"({len(value)}".encode())
        for part in value:
            _add(digest, part)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), value.dtype.type(np.nan), value)
        digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, float | np.floating):
        digest.update(("nan" if np.isnan(value) else float(value).hex()).encode())
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        digest.update(str(int(value)).encode())
    elif value is not None:
        msg = f"a case holds {type(value).__name__}, for which there is no digest"
        raise TypeError(msg)


if __name__ == "__main__":
    importlib.import_module("corpus").main()  # this imported module has the same class Scratch as the cases
