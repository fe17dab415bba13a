"""Fuzzing of the files that hushgraph reads (those of `corpus/`): damaged copies of small files, which must be read or refused with an error of hushgraph.

    python tests/files/fuzz_files.py --count 100000 [--seed 1] [--only gml,npz]     this many damaged files for each reader
    python tests/files/fuzz_files.py --minutes 30                                   all readers in turn, for so long

The files of `corpus/` are the beginning: one small valid file for each reader, and each file that was once read wrongly (`found-...`). A damaged
file has some bytes changed, removed, doubled, exchanged with those of another file, or cut off, and some numbers replaced by extreme ones.
Another error than those of hushgraph, more than 10 seconds or more than 4 GB are faults; the file is then written to `corpus/`, and
`test_corpus.py` reads it ever after. (`tests/core/fuzz_readers.py` compares the compiled readers of text with plain Python.)
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import hushgraph as hg
from hushgraph._errors import HushgraphError

CORPUS = Path(__file__).parent / "corpus"
SECONDS, BYTES = 10, 4 << 30
EXTREME = [
    b"0",
    b"-1",
    b"1e308",
    b"-1e-320",
    b"nan",
    b"inf",
    b"99999999999999999999",
    b"2147483648",
    b"",
    b'"',
    b"\0",
    b"\xff\xfe",
    b"\xe2\x80\xa8",
    b"1_0",
    b"\n",
    b";",
]
NODES = hg.Graph.from_edges([[0, 1], [1, 2], [2, 3]], n=4, labels=["a", "b", "c", "d"], coords=[[0, 0], [1, 0], [1, 1], [0, 1]])


def in_folder(path: Path, name: str) -> Path:
    """Return the folder of a release in which one file is the damaged one."""
    folder = path.parent / "release"
    folder.mkdir(exist_ok=True)
    for other in ("map.csv", "certificate.json"):
        (folder / other).write_bytes((path if other == name else CORPUS / f"release-{other}").read_bytes())
    return folder


READERS: dict[str, Callable[[Path], object]] = {  # the beginning of a name in the corpus: what reads such a file
    "graph": hg.read_graph,
    "signal": lambda path: hg.read_signal(path, NODES),
    "regions": lambda path: hg.denoise(NODES, [1.0, 2, 3, 4], sigma=1).totals(read_regions(path)),
    "events": lambda path: hg.privacy.check_events(NODES, path, unit="person", max_nodes=1, max_per_node=1, adjacency="add-remove"),
    "release-map": lambda path: hg.privacy.verify_release(in_folder(path, "map.csv")),
    "release-certificate": lambda path: hg.privacy.verify_release(in_folder(path, "certificate.json")),
    "ledger": lambda path: hg.privacy.Ledger.open(path).entries(),
}


def read_regions(path: Path) -> object:
    from hushgraph.files.regions import read_regions as read

    return read(path, NODES)


def reader_of(path: Path) -> Callable[[Path], object]:
    """Return what reads a file of the corpus."""
    name = path.name.removeprefix("found-")
    return next(read for beginning, read in READERS.items() if name.startswith(beginning))


def damaged(text: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Return a copy with one to six faults."""
    for _ in range(dice.randint(1, 6)):
        at, size = dice.randrange(len(text) + 1), min(dice.choice([1, 1, 2, 4, 8, 64]), len(text))
        part = text[at : at + size]
        match dice.randrange(8):
            case 0:
                text = text[:at] + bytes(dice.randrange(256) for _ in part) + text[at + size :]
            case 1:
                text = text[:at] + text[at + size :]
            case 2:
                text = text[:at] + part * dice.choice([2, 3, 50]) + text[at:]
            case 3:
                other = dice.choice(others)
                begin = dice.randrange(len(other) + 1)
                text = text[:at] + other[begin : begin + size] + text[at:]
            case 4:
                text = text[:at]
            case 5:
                numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?", text))
                if numbers:
                    number = dice.choice(numbers)
                    text = text[: number.start()] + dice.choice(EXTREME) + text[number.end() :]
            case 6:
                text = text[:at] + dice.choice(EXTREME) + text[at:]
            case 7 if part:
                bit = at % len(text)
                text = text[:bit] + bytes([text[bit] ^ (1 << dice.randrange(8))]) + text[bit + 1 :]
    return text


def outcome(path: Path, read: Callable[[Path], object]) -> tuple[str, str]:
    """Return what came of reading a file: "read", "refused", or "fault" with the reason."""

    def too_long(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except HushgraphError:
        return "refused", ""
    except Exception as error:
        return "fault", f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1200:]}"
    finally:
        signal.alarm(0)
    return "read", ""


def fuzz(seed_file: Path, n: int, dice: random.Random, folder: Path) -> Counter:
    """Read `n` damaged copies of a file, keep those that are faults, and return the counts."""
    counts: Counter = Counter()
    others = [path.read_bytes() for path in CORPUS.iterdir() if path.suffix == seed_file.suffix]
    text, path = seed_file.read_bytes(), folder / seed_file.name
    for _ in range(n):
        copy = damaged(text, dice, others)
        path.write_bytes(copy)
        kind, reason = outcome(path, reader_of(seed_file))
        counts[kind] += 1
        if kind == "fault":
            kept = (
                CORPUS / f"found-{seed_file.stem.removeprefix('found-')}-{hashlib.sha256(copy).hexdigest()[:8]}{seed_file.suffix}"
            )
            kept.write_bytes(copy)
            print(f"{kept.name}: {reason}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    seeds = [path for path in sorted(CORPUS.iterdir()) if any(word in path.name for word in arguments.only.split(","))]
    total: dict[str, Counter] = {path.name: Counter() for path in seeds}
    began, rounds = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends it with the counts so far
        os.environ["HUSHGRAPH_STATE"] = folder + "/state"
        while (time.monotonic() - began) / 60 < arguments.minutes if arguments.minutes else rounds == 0:
            for path in seeds:
                dice = random.Random(f"{arguments.seed} {rounds} {path.name}")
                total[path.name] += fuzz(path, 100 if arguments.minutes else arguments.count, dice, Path(folder))
            rounds += 1
    for name, counts in total.items():
        print(f"{name}: {counts['read']:,} read, {counts['refused']:,} refused, {counts['fault']:,} faults")
    faults = sum(counts["fault"] for counts in total.values())
    print(f"{sum(c.total() for c in total.values()):,} files in {time.monotonic() - began:.0f} s, {faults:,} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
