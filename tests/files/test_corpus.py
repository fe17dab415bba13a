"""Each file of the corpus is read, or refused with an error of hushgraph: small valid files, and those that fuzzing found."""

import contextlib
import gzip
import os
import random
import re
import time
import zlib

import pytest
from fuzz_files import CORPUS, KINDS, READERS, Subject, damaged_file, fuzz, outcome, reader_of, store

from hushgraph._errors import InputError
from hushgraph.files import regions
from hushgraph.files.formats import GRAPH_ENDINGS, SIGNAL_ENDINGS, TABLE_ENDINGS
from hushgraph.graphs import polygons

FILES = sorted(CORPUS.iterdir())
SAME_AS_TXT = {".edges", ".edgelist", ".el"}
PLAIN_ONLY = {".gpkg", ".shp"}  # these are not read as .gz


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_read_or_refused(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    kind, reason = outcome(copy, reader_of(path))
    assert kind in (("read", "refused") if path.name.startswith("found-") else ("read",)), reason


def test_every_reader_has_a_file():
    names = [path.name for path in FILES if not path.name.startswith("found-")]
    assert {reader for reader in READERS if not any(reader_of(CORPUS / name) is READERS[reader] for name in names)} == set()


@pytest.mark.parametrize(
    ("kind", "endings"),
    [
        ("graph", {*GRAPH_ENDINGS} - SAME_AS_TXT - {".shp"}),
        ("signal", SIGNAL_ENDINGS),
        ("nodes", TABLE_ENDINGS),
        ("regions", regions.POLYGON_ENDINGS + regions.TABLE_ENDINGS),
        ("polygons", polygons.GEOJSON_ENDINGS + polygons.SHAPE_ENDINGS),
    ],
)
def test_every_format_has_a_file(kind, endings):
    """A Shapefile of streets has several files, which are called shapes."""
    found = {"." + path.name.split(".", 1)[1] for path in FILES if path.name.startswith(kind)}
    packed = {f"{ending}.gz" for ending in {*endings} - PLAIN_ONLY} if kind in ("graph", "signal", "nodes") else set()
    assert {*endings, *packed} - found == set()
    assert any(path.name.startswith("shapes") and path.suffix == ".shp" for path in FILES)


def test_the_readers_of_regions_and_zones_name_all_their_endings():
    """The lists of endings above are those that the readers use: a file with another ending is refused."""
    with pytest.raises(InputError, match="must end in"):
        regions.check_region_file(CORPUS / "regions.gml")
    with pytest.raises(InputError, match="must end in"):
        polygons.polygons_of(CORPUS / "graph.gml", label=None, crs=None)


def test_another_error_is_a_fault(tmp_path):
    def wrong(path):
        raise KeyError(path)

    assert outcome(tmp_path, wrong)[0] == "fault"


def test_a_reader_that_takes_too_long_is_a_fault(tmp_path, monkeypatch):
    """Also if it catches every Exception, as many readers do."""

    def endless(path):
        with contextlib.suppress(Exception):
            while time.process_time() < end:
                pass

    end = time.process_time() + 5
    monkeypatch.setattr("fuzz_files.SECONDS", 0.05)
    assert outcome(tmp_path, endless).reason.startswith("TooLong")


# ---- the program -----------------------------------------------------------------------------------------------------


def subject_of(name):
    return Subject(CORPUS / name, [(CORPUS / name).read_bytes()], [b"1,2"])


def test_a_seed_repeats_a_run(monkeypatch):
    """Also if the batches end at other copies."""
    runs = []
    for seed, seconds in ((1, 60.0), (1, 0.01), (2, 60.0)):
        monkeypatch.setattr("fuzz_files.BATCH_SECONDS", seconds)
        subject = subject_of("regions.csv")
        fuzz([subject], count=12, minutes=None, jobs=1, seed=seed)
        assert subject.counts.total() == 12
        assert 0 < len(subject.hashes) <= 12
        runs.append((subject.counts, subject.hashes.tolist(), subject.parents))
    assert runs[0] == runs[1]
    assert runs[0][1] != runs[2][1]


def test_equal_copies_are_counted_once(monkeypatch):
    monkeypatch.setattr("fuzz_files.damaged_file", lambda *_, **__: b"node,region\n")
    subject = subject_of("regions.csv")
    fuzz([subject], count=20, minutes=None, jobs=1, seed=1)
    assert (subject.counts.total(), len(subject.hashes)) == (20, 1)


def test_a_process_that_ends_is_a_fault_and_its_copies_count(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz_files.store", lambda path, copy, reason: reason)
    monkeypatch.setitem(READERS, "regions", lambda _: os._exit(3))
    subject = subject_of("regions.csv")
    fuzz([subject], count=1, minutes=None, jobs=1, seed=1)
    assert {kind: subject.counts[kind] for kind in KINDS} == {"read": 0, "refused": 0, "fault": 1}


def test_packed_files_are_damaged_inside_too():
    whole, dice = gzip.compress(b"node,region\na,b\n"), random.Random(1)
    copies = [damaged_file(whole, dice, [b"x"], is_packed=True) for _ in range(40)]
    unpacked = []
    for copy in copies:
        with contextlib.suppress(OSError, EOFError, zlib.error):
            unpacked.append(gzip.decompress(copy))
    assert len({*unpacked}) > 10


def test_a_fault_keeps_its_ending(tmp_path, monkeypatch):
    """The ending says the format."""
    monkeypatch.setattr("fuzz_files.CORPUS", tmp_path)
    for name, expected in (
        ("graph.csv.gz", r"found-graph-\w{8}\.csv\.gz"),
        ("array-zone.own.npy", r"found-array-zone\.own-\w{8}\.npy"),
    ):
        store(CORPUS / name, b"1", "reason")
        assert [path.name for path in tmp_path.iterdir() if re.fullmatch(expected, path.name)]
