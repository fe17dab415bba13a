"""Each file of the corpus is read, or refused with an error of hushgraph: small valid files, and those that fuzzing found."""

import pytest
from fuzz_files import CORPUS, outcome, reader_of

FILES = sorted(CORPUS.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_read_or_refused(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    kind, reason = outcome(copy, reader_of(path))
    assert kind in (("read", "refused") if path.name.startswith("found-") else ("read",)), reason


def test_every_reader_has_a_file():
    kinds = {path.name.split(".")[0] + path.suffix for path in FILES if not path.name.startswith("found-")}
    assert kinds >= {
        "graph.graphml",
        "graph.gml",
        "graph.mtx",
        "graph.txt",
        "graph.csv",
        "graph.parquet",
        "graph.npz",
        "graph.geojson",
    }
    assert kinds >= {"signal.csv", "signal.parquet", "signal.npy", "regions.csv", "regions.geojson", "events.csv", "events.parquet"}
    assert kinds >= {"release-map.csv", "release-certificate.json", "ledger.db"}


def test_another_error_is_a_fault(tmp_path):
    def wrong(path):
        raise KeyError(path)

    assert outcome(tmp_path, wrong)[0] == "fault"
