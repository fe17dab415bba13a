"""Files whose bytes changed after they were written: hushgraph notices it, and says which file it was."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import HushgraphError, InputError
from hushgraph.distributed import denoise, object_store, prepare, resume, store
from hushgraph.distributed.object_store import StoredPath
from hushgraph.distributed.store import Output, read_array, read_json, write_array, write_json, write_rows

from . import damages
from .cases import ANY, write_edges

OLD = Path(__file__).parents[1] / "old_files" / "2026-11-18"
CORPUS = Path(__file__).parents[1] / "files" / "corpus"
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def graph():
    """A small graph with weights: all arrays of a zone exist."""
    roads = hg.datasets.roads(100, seed=3)
    i, j = roads.adjacency.nonzero()
    pairs = np.stack([i, j], axis=1)[i < j]
    return hg.Graph.from_edges(pairs, n=roads.n, weights=np.random.default_rng(1).uniform(0.5, 2.0, len(pairs)))


@pytest.fixture(scope="module")
def noisy(graph):
    return 3 + np.random.default_rng(2).normal(0, 1, graph.n)


@pytest.fixture(scope="module")
def prepared(graph, tmp_path_factory):
    work = tmp_path_factory.mktemp("prepared") / "work"
    prepare(graph, work, partitions=2, degree=6, most_ghosts=ANY)
    return work


@pytest.fixture
def work(prepared, tmp_path):
    return Path(shutil.copytree(prepared, tmp_path / "work"))


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Nothing here is about a loss of power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# ---- prepared graphs ---------------------------------------------------------------------------------------------------


def test_no_damaged_array_of_a_prepared_graph_is_used(work, noisy):
    call = damages.denoised(work, noisy, "sgwt_scaled")
    files, unread = damages.graph_files(work), ("owner.npy", "rows.starts.npy", "rows.columns.npy", "rows.weights.npy")
    assert len(files) == 2 * (4 + 18) + 2
    first, second = ([path for path in files if (path.parent.name == "00001") == k and path.name not in unread] for k in (0, 1))
    expected = call()
    found = damages.outcomes(first, call, expected, names=("header", "middle", "empty"))
    found |= damages.outcomes(second, call, expected, names=("end",))
    assert len(found) == 4 * 19 + 3
    assert set(found.values()) == {"refused"}, found


@pytest.mark.parametrize("name", ["owner.npy", "parts/00000/rows.starts.npy", "parts/00001/rows.columns.npy"])
def test_rows_that_other_methods_read(work, noisy, name, few_probes):
    """`sgwt_scaled` does not read them; the components of `let` do."""
    call, path = damages.denoised(work, noisy, "let"), next(work.glob("graph-*")) / name
    assert set(damages.outcomes([path], call, None, names=("shape", "middle", "shorter")).values()) == {"refused"}


def test_the_error_says_what_to_do(work, noisy):
    path = next(work.glob("graph-*/parts/00001/zone.layout_order.npy"))
    path.write_bytes(damages.flipped(path.read_bytes(), 200))
    with pytest.raises(ValueError, match=r"zone\.layout_order\.npy is damaged: .*; prepare the graph again in another folder"):
        denoise(work, noisy, sigma=1.0)


def test_a_damaged_mark_is_no_other_signal(work, noisy):
    call = damages.denoised(work, noisy, "sgwt_scaled")
    expected, path = call(), next(work.glob("graph-*/parts/00000/zone.json"))
    mark = read_json(path)
    for other in ({}, {**mark, "checksums": 3}, {**mark, "files": None}, {**mark, "facts": []}):
        write_json(path, other)
        assert damages._outcome(call, expected, path.name) in ("refused", "right")


def test_damages_during_a_preparation(graph, tmp_path):
    """Rows that are damaged before the zones are grown are made again, if they are removed."""
    write_edges(tmp_path / "edges", graph, 1)
    settings = {"partitions": 2, "degree": 6, "most_ghosts": ANY}
    prepare(tmp_path / "edges", tmp_path / "work", **settings)
    root = next((tmp_path / "work").glob("graph-*"))
    zone = (root / "parts/00001/zone.columns.npy").read_bytes()
    for path in (root / "manifest.json", tmp_path / "work" / "manifest.json", *root.glob("parts/*/zone.*")):
        path.unlink()
    path = root / "parts/00000/rows.columns.npy"
    path.write_bytes(damages.flipped(path.read_bytes(), -1 % path.stat().st_size))
    with pytest.raises(ValueError, match=r"rows\.columns\.npy is damaged: .*; remove this file and run the same call again"):
        prepare(tmp_path / "edges", tmp_path / "work", **settings)
    path.unlink()
    prepare(tmp_path / "edges", tmp_path / "work", **settings)
    assert (root / "parts/00001/zone.columns.npy").read_bytes() == zone


# ---- folders of earlier versions ---------------------------------------------------------------------------------------


def test_a_folder_without_checksums_does_not_end_the_process(tmp_path):
    """There are no checksums, so some damages change the signal; indices that point outside are refused before compiled loops get them."""
    work = shutil.copytree(OLD / "work", tmp_path / "work")
    command = [sys.executable, damages.__file__, work, OLD / "noisy.npy", "sgwt_scaled"]
    process = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert len(found) > 50
    assert set(found.values()) == {"refused", "right", "other signal"}, found
    names = {name.split("/")[1].split(":")[0] for name, outcome in found.items() if outcome == "other signal"}
    assert names <= {"frame.npy", "zone.layout_indices.npy", "zone.columns.npy", "zone.source_places.npy", "zone.layout_rest.npy"}


def test_an_older_version_reads_the_marks(work):
    """It asks for `files` and `facts` of a mark, and for the version of a folder: what was added does not disturb it."""
    mark = read_json(next(work.glob("graph-*/parts/00000/zone.json")))
    assert mark.keys() == {"files", "checksums", "facts"}
    assert mark["files"].keys() == mark["checksums"].keys()
    assert read_json(work / "manifest.json")["version"] == 1


# ---- runs --------------------------------------------------------------------------------------------------------------


def interrupted(work, noisy):
    """Return a run that was stopped after its transforms, and the signal that it would have given."""
    first = denoise(work, noisy, sigma=1.0, keep=True)
    signal = first.read()
    (first.folder / "result.json").unlink()
    for path in [*first.folder.glob("0*/finish.*"), *first.folder.glob("0*/write.*"), *first.folder.glob("0*/pick.*")]:
        path.unlink()
    return first.folder, signal


def test_a_run_with_a_damaged_file_is_computed_again_when_it_is_removed(work, noisy):
    folder, signal = interrupted(work, noisy)
    path = folder / "00001" / "transform.bands.npy"
    path.write_bytes(damages.flipped(path.read_bytes(), path.stat().st_size - 2))
    store._known.clear()
    with pytest.raises(ValueError, match=rf"{path.name} is damaged: .*; remove this file and run the same call again"):
        resume(work)
    path.unlink()
    np.testing.assert_array_equal(resume(work).read(), signal)


@pytest.mark.parametrize("with_guides", [False, True])
def test_no_damaged_array_between_two_stages_is_used(work, noisy, few_probes, with_guides):
    """The client writes some arrays, and uses them again in a run that goes on."""
    guides = [noisy**2 + np.random.default_rng(5).normal(0, 1, len(noisy))] if with_guides else None
    first = denoise(work, noisy, sigma=1.0, method="auto", guides=guides, keep=True)
    expected, names = first.read(), ("prediction.npy", "rest.npy") if with_guides else ("products0.npy",)
    (first.folder / "result.json").unlink()
    for path in [*first.folder.rglob("finish.*"), *first.folder.rglob("write.*")]:
        path.unlink()
    files = sorted(path for name in names for path in first.folder.rglob(name))
    assert files
    if with_guides:  # what is made of them is made again
        for path in first.folder.rglob("transform.*"):
            path.unlink()
    damages_of_interest = ("shape", "end")

    def call():
        store._known.clear()
        return resume(work, keep=True).read()

    found = damages.outcomes(files, call, expected, names=damages_of_interest)
    assert set(found.values()) == {"refused"}, found
    np.testing.assert_array_equal(call(), expected)


def test_a_missing_file_says_what_to_do(work, noisy):
    folder, signal = interrupted(work, noisy)
    (folder / "00001" / "transform.bands.npy").unlink()
    np.testing.assert_array_equal(resume(work).read(), signal)
    with pytest.raises(FileNotFoundError, match=rf"x\.y\.npy is gone; remove the folder {folder} and call denoise\(\) again"):
        Output(folder / "00001", "x").load("y")
    path = next(work.glob("graph-*/parts/00001/zone.nodes.npy"))
    path.unlink()
    shutil.rmtree(work / "runs")
    with pytest.raises(FileNotFoundError, match=r"zone\.nodes\.npy is gone; prepare the graph again in another folder"):
        denoise(work, noisy, sigma=1.0)


def test_a_work_folder_in_a_folder_called_runs(work, noisy, tmp_path):
    """The advice never names a folder that holds more than the run."""
    (tmp_path / "runs").mkdir()
    moved = work.rename(tmp_path / "runs" / "work")
    path = next(moved.glob("graph-*/parts/00001/zone.nodes.npy"))
    path.unlink()
    with pytest.raises(FileNotFoundError) as raised:
        denoise(moved, noisy, sigma=1.0)
    assert "remove the folder" not in str(raised.value)


def test_a_damaged_manifest_is_written_again(graph, work, noisy):
    expected = denoise(work, noisy, sigma=1.0).read()
    manifest = read_json(work / "manifest.json")
    write_json(work / "manifest.json", {**manifest, "n_scales": 99})
    with pytest.raises(ValueError, match=r"manifest\.json of .* is damaged: .*; remove it and call prepare\(\)"):
        denoise(work, noisy, sigma=1.0)
    (work / "manifest.json").unlink()
    prepare(graph, work, partitions=2, degree=6, most_ghosts=ANY)
    assert {**read_json(work / "manifest.json"), "timings": {}} == {**manifest, "timings": {}}
    np.testing.assert_array_equal(denoise(work, noisy, sigma=1.0).read(), expected)


def test_a_damaged_signal_is_not_denoised(work, noisy):
    """Its name is the digest of what it must hold."""
    denoise(work, noisy, sigma=1.0)
    path = next((work / "signals").glob("*.npy"))
    path.write_bytes(damages.flipped(path.read_bytes(), 300))
    shutil.rmtree(work / "runs")
    hg.distributed.signals.check_stored_signal(hg.distributed.signals.store_signal(work, noisy, len(noisy), "signal"))
    path.write_bytes(damages.flipped(path.read_bytes(), 300))
    with pytest.raises(ValueError, match=r"\.npy is damaged: .*; remove it, and call denoise\(\) with the signal again"):
        hg.distributed.signals.check_stored_signal(path)


def test_a_damaged_result_is_not_read(work, noisy):
    result = denoise(work, noisy, sigma=1.0)
    expected = result.read()
    path = sorted(Path(result.address).glob("*.parquet"))[0]
    whole, read, refused = path.read_bytes(), 0, 0
    for place in range(0, len(whole), 7):
        path.write_bytes(damages.flipped(whole, place))
        try:
            signal = result.read()
        except HushgraphError:
            refused += 1
            continue
        read += 1
        np.testing.assert_array_equal(signal, expected)
    assert read > 0
    assert refused > len(whole) // 14


@pytest.mark.parametrize("name", ["signal", "sigma", "sigma_file", "method", "law", "output", "guides"])
def test_damaged_settings_are_not_used(work, noisy, name):
    """The folder of a run is named after its settings; the same call writes them again."""
    first = denoise(work, noisy, sigma=1.0)
    path = first.folder / "run.json"
    whole = read_json(path)
    for damaged in ({**whole, name: 3}, {key: value for key, value in whole.items() if key != name}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(InputError, match=r"run\.json is damaged: .*; remove the folder .* and call denoise\(\) again"):
            resume(work)
    assert denoise(work, noisy, sigma=1.0).address == first.address
    assert read_json(path) == whole


@pytest.mark.parametrize(
    "damage", [{"keep": None}, {"risk": None}, {"details": None, "thresholds": None}, {"thresholds": [[1.0], 2.0]}, {"x": 1}]
)
def test_a_damaged_summary_of_a_run_is_computed_again(work, noisy, damage):
    """None: the number is missing."""
    first = denoise(work, noisy, sigma=1.0, method="sgwt_sure", n_probes=1)
    path = first.folder / "result.json"
    whole = read_json(path)
    path.write_text(
        json.dumps({key: value for key, value in (whole | damage).items() if key not in damage or damage[key] is not None})
    )
    again = resume(work)
    assert (again.risk, again.thresholds.tolist()) == (first.risk, first.thresholds.tolist())
    assert {key: value for key, value in read_json(path).items() if key != "timings"} == {
        key: value for key, value in whole.items() if key != "timings"
    }
    np.testing.assert_array_equal(again.read(), first.read())


def test_a_changed_number_in_a_file_of_facts_is_no_other_result(work, noisy):
    """Each file has a checksum of its facts; without it the control, a changed risk, is believed."""
    first = denoise(work, noisy, sigma=1.0, method="sgwt_sure", n_probes=1, keep=True)
    risk, signal = first.risk, first.read()
    paths = [first.folder / "result.json", first.folder / "run.json", *sorted(first.folder.glob("00000/*.json"))]
    assert len(paths) > 4
    for path in paths:
        whole = path.read_bytes()
        digits = [place for place in range(len(whole)) if chr(whole[place]).isdigit()]
        for place in digits[:: max(1, len(digits) // 5)]:
            path.write_bytes(whole[:place] + b"%d" % ((int(chr(whole[place])) + 1) % 10) + whole[place + 1 :])
            if path.name == "run.json":
                with pytest.raises(InputError, match=r"run\.json is damaged"):
                    resume(work, keep=True)
            else:
                again = resume(work, keep=True)
                assert again.risk == risk, path
                np.testing.assert_array_equal(again.read(), signal)
            path.write_bytes(whole)
    (first.folder / "result.json").write_text(json.dumps(read_json(first.folder / "result.json") | {"risk": 7.0}))
    assert resume(work, keep=True).risk == 7.0


def test_a_result_with_other_columns_is_not_read(work, noisy):
    """A part as no run writes it: names that are no text, one column, and columns of other types."""
    result = denoise(work, noisy, sigma=1.0)
    path = sorted(Path(result.address).glob("*.parquet"))[0]
    whole, table = path.read_bytes(), pq.read_table(path)
    assert whole.count(b"denoised") > 0
    path.write_bytes(whole.replace(b"denoised", b"denois\xffd"))
    with pytest.raises(InputError, match="is damaged; remove it"):
        result.read()
    texts = pa.array(["a"] * len(table))
    for other in (table.select(["node"]), table.set_column(0, "node", texts), table.set_column(1, "denoised", texts)):
        pq.write_table(other, path)
        with pytest.raises(InputError, match="is damaged; remove it"):
            result.read()
    path.write_bytes(whole)
    assert np.isfinite(result.read()).all()


def test_a_file_is_compared_once(tmp_path, monkeypatch):
    compared, usual = [], store._checksum_of
    monkeypatch.setattr(store, "_checksum_of", lambda *parts: compared.append(parts) or usual(*parts))
    out = Output(tmp_path, "stage")
    out.save("x", np.arange(5))
    out.mark_done({})
    for _ in range(2):
        np.testing.assert_array_equal(Output(tmp_path, "stage").load("x"), np.arange(5))
    assert not compared, "this process wrote it"
    store._known.clear()
    for whole in (True, False, True):
        np.testing.assert_array_equal(Output(tmp_path, "stage").load("x", whole=whole), np.arange(5))
    assert len(compared) == 1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0),
        np.empty((0, 3)),
        np.arange(6).reshape(2, 3).T,
        np.array(2.5),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.zeros((2, 0)),
    ],
)
def test_arrays_are_read_as_numpy_reads_them(tmp_path, array):
    """And their files have the bytes that NumPy writes."""
    checksum = write_array(tmp_path / "x.npy", array)
    np.save(tmp_path / "y.npy", array)
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "y.npy").read_bytes()
    for whole in (True, False):
        store._known.clear()
        found = read_array(tmp_path / "x.npy", whole=whole, checksum=lambda: checksum)
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.flags.f_contiguous == np.load(tmp_path / "y.npy").flags.f_contiguous
    if array.ndim:
        assert write_rows(tmp_path / "z.npy", array.shape, array.dtype, iter(array)) == write_array(
            tmp_path / "z.npy", array.copy("C")
        )


def test_a_damaged_copy_is_fetched_again(tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("HUSHGRAPH_CACHE", str(tmp_path / "cache"))
    object_store._recent.clear()
    out = Output(StoredPath("memory://damaged/00000"), "stage")
    out.save("x", np.arange(50))
    out.mark_done({})
    copy = out.path("x").fetched()
    copy.write_bytes(damages.flipped(copy.read_bytes(), 300))
    np.testing.assert_array_equal(Output(out.folder, "stage").load("x"), np.arange(50))
    content = out.path("x").read_bytes()
    out.path("x").write_bytes(damages.flipped(content, 300))
    object_store._recent.clear()
    with pytest.raises(ValueError, match=r"memory://damaged/00000/stage\.x\.npy is damaged"):
        Output(out.folder, "stage").load("x")
    fsspec.filesystem("memory").store.clear()


# ---- what users give ---------------------------------------------------------------------------------------------------


def test_damaged_edge_files(graph, tmp_path):
    """Parquet files have no checksums: some damages are other edges. They end in a graph or in an error of hushgraph."""
    write_edges(tmp_path / "edges", graph, 1)
    path = tmp_path / "edges" / "0.parquet"
    whole, prepared, refused = path.read_bytes(), 0, 0
    places = [*range(0, len(whole), len(whole) // 40), *range(len(whole) - 400, len(whole), 10)]
    for k, content in enumerate([*(damages.flipped(whole, place) for place in places), whole[: len(whole) // 2], whole[:-1], b""]):
        path.write_bytes(content)
        try:
            prepare(path, tmp_path / f"work{k}", partitions=2, degree=2, most_ghosts=ANY, duplicates="sum")
            prepared += 1
        except HushgraphError:
            refused += 1
    assert refused > 20
    assert prepared > 0


@pytest.mark.parametrize("path", sorted(CORPUS.glob("found-edges-*.parquet")), ids=lambda path: path.name)
def test_damaged_edge_files_at_an_address(path, tmp_path):
    """Their statistics would end the process."""
    system = pytest.importorskip("fsspec").filesystem("memory")
    system.pipe(f"/edges/{path.name}", path.read_bytes())
    with pytest.raises(ValueError, match=r"is not a parquet file, or is damaged"):
        prepare(f"memory://edges/{path.name}", tmp_path / "work", partitions=1, degree=2, most_ghosts=ANY, duplicates="sum")
    system.store.clear()


@pytest.mark.parametrize("name", ["values.npy", "values.parquet"])
def test_damaged_signals(prepared, noisy, tmp_path, name):
    path = tmp_path / name
    if path.suffix == ".npy":
        np.save(path, noisy)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"node": np.arange(len(noisy)), "value": noisy}), path)
    whole, stored, refused = path.read_bytes(), [], 0
    places = [*range(128), *range(128, len(whole), len(whole) // 60)]
    for content in [*(damages.flipped(whole, place) for place in places), whole[: len(whole) // 2], whole[:-1], b""]:
        path.write_bytes(content)
        try:
            stored.append(hg.distributed.signals.store_signal(tmp_path, path, len(noisy), "signal"))
        except HushgraphError:
            refused += 1
    assert refused > 20
    assert len(stored) > 20
    assert all(np.load(file).shape == noisy.shape for file in stored)
