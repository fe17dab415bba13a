"""Fuzzing of the files that hushgraph reads (those of `corpus/`): damaged copies of small files, which must be read or refused with an error of hushgraph.

    python tests/files/fuzz_files.py --count 100000 [--only gml,npz]      this many damaged files for each file of the corpus
    python tests/files/fuzz_files.py --minutes 30 --jobs 2                all files in turn, for so long, in two processes
    python tests/files/fuzz_files.py --count 100000 --seed 7              the same damaged files as each other run with this seed

The seed is the time if none is given, so that each run reads other files; it is printed. The last line says what was read: all damaged files, and how
many of them are distinct, which are those that differ in their bytes or in what reads them.

The files of `corpus/` are the beginning: small valid files for each reader, and each file that was once read wrongly (`found-...`). A damaged
file has some bytes changed, removed, doubled, exchanged with those of another file, or cut off, and some numbers replaced by extreme ones.
A damaged file that is refused with a new sentence got to a new place in the code, so further ones are made from it. Of a packed file (.gz) half of
the damage is inside.
Another error than those of hushgraph, a crash, more than 10 seconds of the processor or more than 4 GB are faults; the file is then written to `corpus/`, and
`test_corpus.py` reads it ever after. (`tests/core/fuzz_readers.py` compares the compiled readers of text with plain Python.)
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import faulthandler
import functools
import gzip
import hashlib
import importlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import hushgraph as hg
from hushgraph._errors import FileThereError, HushgraphError
from hushgraph.cli.guide_files import read_guide_files
from hushgraph.cli.outputs import checked_series_folder
from hushgraph.datasets.graph_files import read_snap
from hushgraph.distributed.signals import store_signal
from hushgraph.distributed.store import _known
from hushgraph.explorer.server import parse_body, parse_draw_request, parse_region_request, parse_view_request
from hushgraph.explorer.session import RequestRefused
from hushgraph.files.regions import read_regions
from hushgraph.plotting.report.backdrop import read_outlines
from hushgraph.privacy.ledger.memory import path_key
from hushgraph.privacy.published_maps import read_published

CORPUS = Path(__file__).parent / "corpus"
PREPARED = Path(__file__).parents[1] / "old_files" / "2026-11-18"
SECONDS, LONGEST, BYTES = 10, 300, 4 << 30  # of the processor; of the clock, also on a busy machine; of memory
PACKAGES = ("geopandas", "networkx", "pyarrow.parquet")  # imported once, before the processes that read begin
BATCH_SECONDS, MOST_PARENTS = 2.0, 300
EXTREME = [
    b"0", b"-1", b"1e308", b"-1e-320", b"nan", b"inf", b"99999999999999999999", b"2147483648", b"", b'"', b"\0", b"\xff\xfe", b"\xe2\x80\xa8", b"1_0", b"\n",
    b";", b"null", b"[]", b"{}", b"true", b"[" * 20_000,
]  # fmt: skip
PART_RUN = "0123456789abcdef"  # the run that the parts of the corpus are of
NODES = hg.Graph.from_edges([[0, 1], [1, 2], [2, 3]], n=4, labels=["a", "b", "c", "d"], coords=[[0, 0], [1, 0], [1, 1], [0, 1]])
DRAW = {"epsilon": 0.5, "delta": 1e-6, "public_graph": True}
EVENTS = {"unit": "person", "max_nodes": 1, "max_per_node": 1, "adjacency": "add-remove"}
PLACES = {
    "unit": "person",
    "max_cells": 2,
    "max_per_cell": 1,
    "adjacency": "add-remove",
    "time": "when",
    "windows": ["2026-01-01", "2026-02-01", "2026-03-01"],
    "max_distance": 0.5,
    "csv_format": hg.privacy.CsvFormat(delimiter=";", decimal=",", time_format="%d.%m.%Y %H:%M", encoding="cp1252"),
}


# ---- readers ---------------------------------------------------------------------------------------------------------


def folder_with(path: Path, *parts: str) -> Path:
    """Return a folder with these files of the corpus, one of which is the damaged one; "release-map.csv" is called map.csv there."""
    folder = path.parent / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    damaged = path.name.removeprefix("found-")
    for part in parts:
        kind, name = part.split("-", 1)
        is_damaged = damaged.startswith(Path(part).stem) and damaged.endswith(Path(part).suffix)
        (folder / (name if kind != "shapes" else part)).write_bytes((path if is_damaged else CORPUS / part).read_bytes())
    return folder


def read_release(path: Path) -> None:
    """Verify and read the folder of a release."""
    folder = folder_with(path, "release-map.csv", "release-certificate.json")
    hg.privacy.verify_release(folder, graph=NODES)
    hg.privacy.read_release(folder, NODES)


def read_series(path: Path) -> None:
    """Read the folder of a series."""
    read_published(folder_with(path, "series-first.csv", "series-summary.json"), NODES)


def read_summary(path: Path) -> None:
    """Ask whether a folder with a damaged summary is that of an earlier series, which may be replaced."""
    folder = folder_with(path, "summary-first.csv", "summary-summary.csv", "summary-summary.json")
    with contextlib.suppress(FileThereError):  # it is not
        checked_series_folder(folder, force=True)


def read_certificate(path: Path) -> None:
    """Compare a damaged certificate with its ledger, by itself and with its map."""
    folder = folder_with(path, "release-map.csv", "certificate-certificate.json")
    ledger = hg.privacy.Ledger.open(shutil.copy(CORPUS / "ledger.db", path.parent))
    hg.privacy.verify_release(folder, graph=NODES, ledger=ledger)
    ledger.verify(folder / "certificate.json")


def read_shapefile(path: Path) -> None:
    """Read a Shapefile, which has several files."""
    hg.read_graph(folder_with(path, "shapes-streets.shp", "shapes-streets.shx", "shapes-streets.dbf") / "shapes-streets.shp")


def read_polygons(path: Path) -> None:
    """Read zones from a file, or from a Shapefile, which has several files."""
    parts = ("polygons-zones.shp", "polygons-zones.shx", "polygons-zones.dbf")
    is_shapefile = any(path.suffix == Path(part).suffix for part in parts)
    hg.Graph.from_polygons(folder_with(path, *parts) / "zones.shp" if is_shapefile else path)


def read_matrix(path: Path) -> None:
    """Read a graph from a Matrix Market file, with its weights and without."""
    hg.datasets.read_matrix_market(path, duplicates="max")
    hg.datasets.read_matrix_market(path, weighted=False)


def read_prepared(path: Path) -> None:
    """Denoise in a prepared folder with a damaged manifest."""
    folder = path.parent / "work"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PREPARED / "work", folder)
    (folder / "manifest.json").write_bytes(path.read_bytes())
    hg.distributed.denoise(folder, PREPARED / "noisy.npy", sigma=1.0, method="sgwt_sure", n_probes=1)


@functools.cache
def prepared_today() -> Path:
    """Return a small graph that this version prepared, with checksums in its marks; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="hushgraph-prepared-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    hg.distributed.prepare(hg.datasets.grid(6, 6), Path(folder) / "work", partitions=2, degree=4, most_ghosts=36)
    return Path(folder) / "work"


def read_mark(path: Path) -> None:
    """Denoise in a prepared folder with a damaged mark of a task: marks-zone.json is that of the last partition, marks-owner.json that of the graph."""
    folder = path.parent / "marks"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared_today(), folder)
    name = path.name.removeprefix("found-").removeprefix("marks-").split("-")[0].removesuffix(".json") + ".json"
    sorted(folder.rglob(name))[-1].write_bytes(path.read_bytes())
    _known.clear()  # the files of the folder before may have had the same numbers on the disk
    hg.distributed.denoise(folder, np.arange(36.0), sigma=1.0, method="let" if name == "owner.json" else "sgwt_sure")


def denoise_old(folder: Path, *, method: str = "sgwt_sure") -> hg.distributed.DenoisedFiles:
    """Return the result of a run on a graph that an earlier version prepared."""
    return hg.distributed.denoise(folder, PREPARED / "noisy.npy", sigma=1.0, method=method, n_probes=1)


def read_array(path: Path) -> None:
    """Denoise on a graph of an earlier version, whose files have no checksums, with a damaged array; of several partitions it is the last one."""
    folder = path.parent / "arrays"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PREPARED / "work", folder)
    name = path.name.removeprefix("found-").removeprefix("array-").split("-")[0].removesuffix(".npy") + ".npy"
    sorted(folder.rglob(name))[-1].write_bytes(path.read_bytes())
    _known.clear()
    denoise_old(folder, method="let" if name.startswith(("owner", "rows")) else "sgwt_scaled").read()


@functools.cache
def finished_run() -> hg.distributed.DenoisedFiles:
    """Return a finished run on a graph that an earlier version prepared; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="hushgraph-finished-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(PREPARED / "work", Path(folder) / "work")
    return denoise_old(Path(folder) / "work")


def read_run(path: Path) -> None:
    """Go on with a finished run whose settings, result or mark is damaged."""
    folder = path.parent / "finished"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(finished_run().folder.parents[1], folder)
    name = path.name.removeprefix("found-").removeprefix("run-").split("-")[0].removesuffix(".json") + ".json"
    sorted((folder / "runs").rglob(name))[-1].write_bytes(path.read_bytes())
    _known.clear()
    hg.distributed.resume(folder).read()


def read_part(path: Path) -> None:
    """Read a result whose one part is damaged."""
    folder = path.parent / "parts"
    folder.mkdir(exist_ok=True)
    (folder / "part-00000.parquet").write_bytes(path.read_bytes())
    replace(finished_run(), address=str(folder), folder=Path(PART_RUN), n=4, partitions=1).read()


def read_edges(path: Path) -> None:
    """Prepare a graph from a file of edges."""
    work = path.parent / "from-edges"
    shutil.rmtree(work, ignore_errors=True)
    hg.distributed.prepare(path, work, partitions=1, degree=2, duplicates="sum", most_ghosts=36)


def read_cab(path: Path) -> None:
    """Read the records of a cab."""
    folder = path.parent / "cabs"
    folder.mkdir(exist_ok=True)
    (folder / "new_cab.txt").write_bytes(path.read_bytes())
    hg.datasets.read_cabspotting(folder)


def read_draw(path: Path) -> None:
    """Ask for a release by name whose stored values are damaged."""
    for source in CORPUS.glob("draws.db*"):
        shutil.copy(source, path.parent)
    ledger = hg.privacy.Ledger.open(path.parent / "draws.db")
    charge = ledger.charge_named("first")
    folder = path.parent / "draws.db.releases"
    folder.mkdir(exist_ok=True)
    (folder / f"{charge.state.head}.npy").write_bytes(path.read_bytes())
    hg.privacy.release(counts(), ledger=ledger, name="first", **DRAW)


@functools.cache
def counts() -> hg.privacy.CountMap:
    """Return the counts of two events."""
    events = {"person": ["p1", "p2"], "node": ["a", "b"]}
    return hg.privacy.count_events(NODES, pd.DataFrame(events), **EVENTS)


def read_memory(path: Path) -> None:
    """Open a ledger on a machine whose memory of it is damaged: memory.db, or the text files of earlier versions."""
    ledger, memory = path.parent / "ledger.db", Path(os.environ["HUSHGRAPH_STATE"]) / "ledgers"
    ledger.write_bytes((CORPUS / "ledger.db").read_bytes())
    shutil.rmtree(memory, ignore_errors=True)
    identity = hg.privacy.Ledger.open(ledger).identity
    (memory / "memory.db").unlink()
    names = {".db": "memory.db", ".heads": f"{identity}.heads", ".ledgers": f"{path_key(ledger)}.ledgers"}
    if path.suffix == ".ledgers":  # it counts for ledgers with a charge that this machine has seen
        (memory / names[".heads"]).write_bytes((CORPUS / "memory-charged.heads").read_bytes())
    (memory / names[path.suffix]).write_bytes(path.read_bytes())
    hg.privacy.Ledger.open(ledger).entries()


def read_request(path: Path) -> None:
    """Read the body of a request to the explorer as each kind of request."""
    fields = parse_body(path.read_bytes())
    for parse in (parse_view_request, parse_region_request, parse_draw_request):
        with contextlib.suppress(RequestRefused):
            parse(dict(fields))


@functools.cache
def denoised() -> hg.Denoised:
    """Return a denoised map, for the totals of regions."""
    return hg.denoise(NODES, [1.0, 2, 3, 4], sigma=1)


READERS: dict[str, Callable[[Path], object]] = {  # the beginning of a name in the corpus: what reads such a file
    "graph-streets": lambda path: hg.read_graph(path, covariates=True),
    "graph": hg.read_graph,
    "nodes": lambda path: hg.read_graph(CORPUS / "graph.csv", nodes=path),
    "shapes": read_shapefile,
    "signal": lambda path: hg.read_signal(path, NODES),
    "regions": lambda path: denoised().totals(read_regions(path, NODES)),
    "outlines": lambda path: read_outlines(path, NODES),
    "events": lambda path: hg.privacy.check_events(NODES, path, **EVENTS),
    "pickups": hg.datasets.read_tlc,
    "release": read_release,
    "series": read_series,
    "summary": read_summary,
    "certificate": read_certificate,
    "draws": lambda path: hg.privacy.Ledger.open(path).entries(),
    "draw": read_draw,
    "ledger": lambda path: hg.privacy.Ledger.open(path).entries(),
    "memory": read_memory,
    "prepared": read_prepared,
    "marks": read_mark,
    "array": read_array,
    "run": read_run,
    "part": read_part,
    "edges": read_edges,
    "stored": lambda path: store_signal(path.parent, path, 4, "signal"),
    "zones": hg.read_graph,
    "polygons": read_polygons,
    "matrix": read_matrix,
    "places": lambda path: hg.privacy.check_events(NODES, path, **PLACES),
    "guides": lambda path: read_guide_files(NODES, [path]),
    "cab": read_cab,
    "snap": read_snap,
    "request": read_request,
}


def reader_of(path: Path) -> Callable[[Path], object]:
    """Return what reads a file of the corpus."""
    name = path.name.removeprefix("found-")
    return next(read for beginning, read in READERS.items() if name.startswith(beginning))


# ---- damage ----------------------------------------------------------------------------------------------------------


def damaged(text: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Return a copy with one to six faults."""
    for _ in range(dice.randint(1, 6)):
        at, size = dice.randrange(len(text) + 1), min(dice.choice([1, 1, 2, 4, 8, 64]), len(text))
        part = text[at : at + size]
        match dice.randrange(8):
            case 0:
                text = text[:at] + dice.randbytes(len(part)) + text[at + size :]
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


def damaged_file(content: bytes, dice: random.Random, others: list[bytes], *, is_packed: bool) -> bytes:
    """Return a damaged copy of a file; half of the copies of a packed file are whole outside, and damaged inside."""
    if is_packed and dice.random() < 0.5:
        with contextlib.suppress(OSError, EOFError, zlib.error):  # of a copy that is damaged outside
            return gzip.compress(damaged(gzip.decompress(content), dice, others), compresslevel=1, mtime=0)
    return damaged(content, dice, others)


# ---- one file --------------------------------------------------------------------------------------------------------


class TooLong(BaseException):
    """Reading takes too long. It is no Exception, so that no reader takes it for a fault of the file."""


class Outcome(NamedTuple):
    """What came of reading a file: "read", "refused" or "fault", and the sentence of the error."""

    kind: str
    reason: str


def outcome(path: Path, read: Callable[[Path], object]) -> Outcome:
    """Read a file and return what came of it."""

    def too_long(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except (HushgraphError, RequestRefused) as error:
        return Outcome("refused", str(error))
    except (Exception, TooLong) as error:
        return Outcome("fault", f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1200:]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Outcome("read", "")


def sentence(reason: str, path: Path) -> str:
    """Return the words of a reason, without what depends on the file."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|[^ a-zA-Z]", "", reason.replace(str(path), "").replace(str(path.parent), ""))[:80]


# ---- many files ------------------------------------------------------------------------------------------------------


KINDS = ("read", "refused", "fault")


@dataclass
class Subject:
    """A file of the corpus: what its damaged copies came to, those from which further ones are made, and the sentences met so far.

    `others` are files of the same format, pieces of which get into its copies; `hashes` are those of the distinct copies, 64 bits each, in order.
    """

    path: Path
    parents: list[bytes]
    others: list[bytes]
    counts: Counter = field(default_factory=Counter)
    sentences: set[str] = field(default_factory=lambda: {""})  # that of a file that is read is empty
    faults: set[str] = field(default_factory=set)
    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, kind: str, words: str, copy: bytes) -> bool:
        """Return whether a copy came to a sentence that is new; further copies are made of it then, unless it is a fault."""
        if words in self.sentences:
            return False
        self.sentences.add(words)
        if kind != "fault" and len(self.parents) < MOST_PARENTS:
            self.parents.append(copy)
        return True


class Batch:
    """At most `most` damaged copies of one file, read in a process of their own for two seconds; `current` is the copy that is being read.

    The random numbers of a copy follow from the seed, the file and the number of the copy, however many of them a process gets done.
    """

    def __init__(self, subject: Subject, most: int, seed: int, folder: Path) -> None:
        self.subject, self.most, self.seed, self.folder = subject, most, seed, Path(tempfile.mkdtemp(dir=folder))
        self.current = self.folder / subject.path.name
        self.counts = multiprocessing.RawArray("q", len(KINDS))  # also those of a process that crashed
        self.connection, answers = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.get_context("fork").Process(target=self._run, args=(answers,))
        self.process.start()
        answers.close()

    def _run(self, answers: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        os.environ["HUSHGRAPH_STATE"] = str(self.folder / "state")
        os.fsync = lambda _: None  # nothing here is about a loss of power
        subject, hashes, end = self.subject, array("Q"), time.monotonic() + BATCH_SECONDS
        read, before, is_packed = reader_of(subject.path), subject.counts.total(), subject.path.suffix == ".gz"
        while sum(self.counts) < self.most and time.monotonic() < end:
            faulthandler.dump_traceback_later(LONGEST, exit=True)  # compiled code does not hear the timer
            dice = random.Random(f"{self.seed} {before + sum(self.counts)} {subject.path.name}")
            copy = damaged_file(dice.choice(subject.parents), dice, subject.others, is_packed=is_packed)
            self.current.write_bytes(copy)
            hashes.append(int.from_bytes(hashlib.blake2b(copy, digest_size=8).digest(), "little"))
            kind, reason = outcome(self.current, read)
            self.counts[KINDS.index(kind)] += 1
            words = sentence(reason, self.current)
            if subject.add(kind, words, copy):
                answers.send((kind, words, reason, copy))
        faulthandler.cancel_dump_traceback_later()
        answers.send(hashes.tobytes())

    def finish(self) -> list[str]:
        """Add what was found to the subject, store the files that are faults, and return what to print of them."""
        faults = []
        with contextlib.suppress(EOFError):
            while not isinstance(answer := self.connection.recv(), bytes):
                kind, words, reason, copy = answer
                self.subject.add(kind, words, copy)
                faults += self._store(copy, reason) if kind == "fault" else []
            self.subject.hashes = np.union1d(self.subject.hashes, np.frombuffer(answer, np.uint64))
        self.process.join()
        self.subject.counts.update(dict(zip(KINDS, self.counts, strict=True)))
        if self.process.exitcode:
            self.subject.counts["fault"] += 1
            copy = self.current.read_bytes() if self.current.exists() else b""
            faults += self._store(copy, f"the process ended with {self.process.exitcode}")
        shutil.rmtree(self.folder)
        return faults

    def _store(self, copy: bytes, reason: str) -> list[str]:
        """Store the first file with a fault of its kind, and return what to print of it."""
        kind = "".join(re.findall(r'^\w+(?=:)|File "[^"]+", line \d+', reason))[-200:] or reason
        if kind in self.subject.faults:
            return []
        self.subject.faults.add(kind)
        return [store(self.subject.path, copy, reason)]


def store(path: Path, copy: bytes, reason: str) -> str:
    """Write a file that is a fault to the corpus, and return its name and the reason."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    stem = path.name.removesuffix(ending).removeprefix("found-")
    name = f"found-{stem}-{hashlib.sha256(copy).hexdigest()[:8]}{ending}"
    (CORPUS / name).write_bytes(copy)
    return f"{name}: {reason}"


def fuzz(subjects: list[Subject], *, count: int, minutes: float | None, jobs: int, seed: int) -> None:
    """Read damaged copies of all files in turn, in `jobs` processes; print what is a fault, and the number of files each five minutes."""
    began = said = time.monotonic()
    running: list[Batch] = []
    waiting = list(subjects)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            while running or (waiting if minutes is None else time.monotonic() - began < 60 * minutes):
                if waiting and len(running) < jobs and (minutes is None or time.monotonic() - began < 60 * minutes):
                    subject = waiting.pop(0)
                    most = sys.maxsize if minutes is not None else count - subject.counts.total()
                    running.append(Batch(subject, most, seed, Path(folder)))
                    continue
                batch = running.pop(0)
                for line in batch.finish():
                    print(line, flush=True)
                if minutes is not None or batch.subject.counts.total() < count:
                    waiting.append(batch.subject)
                if time.monotonic() - said > 300:
                    said = time.monotonic()
                    print(f"{said - began:.0f} s: {total_of(subjects).total():,} files", flush=True)
        except KeyboardInterrupt:  # it ends with the counts so far
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for batch in running:
                batch.process.terminate()
                batch.process.join()


def subjects_of(paths: list[Path]) -> list[Subject]:
    """Return what is to be fuzzed: these files, each with those of the corpus that have its format."""
    contents = {path: path.read_bytes() for path in sorted(CORPUS.iterdir())}
    return [
        Subject(path, [contents[path]], [content for other, content in contents.items() if other.suffix == path.suffix])
        for path in paths
    ]


def total_of(subjects: list[Subject]) -> Counter:
    """Return the counts of all subjects together."""
    return sum((subject.counts for subject in subjects), Counter())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**6)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    paths = [path for path in sorted(CORPUS.iterdir()) if any(word in path.name for word in arguments.only.split(","))]
    if not paths:
        parser.error(f"no file of the corpus has {arguments.only} in its name")
    print(f"seed {arguments.seed}", flush=True)
    subjects = subjects_of(paths)
    for package in PACKAGES:
        importlib.import_module(package)
    prepared_today(), finished_run()
    began = time.monotonic()
    fuzz(subjects, count=arguments.count, minutes=arguments.minutes, jobs=arguments.jobs, seed=arguments.seed)
    for subject in subjects:
        counts = subject.counts
        print(
            f"{subject.path.name}: {counts['read']:,} read, {counts['refused']:,} refused in {len(subject.sentences) - 1:,} ways, {counts['fault']:,} faults"
        )
    total, distinct = total_of(subjects), sum(len(subject.hashes) for subject in subjects)
    readers = len({reader_of(path) for path in paths})
    print(
        f"seed {arguments.seed}: {total.total():,} damaged files, {distinct:,} of them distinct, of {len(paths)} files for {readers} readers, in "
        f"{time.monotonic() - began:.0f} seconds and {arguments.jobs} processes: {total['read']:,} read, {total['refused']:,} refused, {total['fault']:,} faults"
    )
    return int(total["fault"] > 0)


if __name__ == "__main__":
    sys.exit(main())
