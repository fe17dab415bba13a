"""Several preparations and runs at once, in one folder, one output or one cluster: none mixes with another."""

import threading
from pathlib import Path

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, preparing, resume
from hushgraph.distributed.ghosts import TooManyGhostsError
from hushgraph.distributed.store import read_json

from .cases import ANY, assert_equal, noisy_on, write_edges

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Two workers in threads of this process, and no default client."""
    cluster = distributed.LocalCluster(
        processes=False,
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        local_directory=str(tmp_path_factory.mktemp("dask")),
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def test_a_preparation_that_began_meanwhile_is_not_mixed(tmp_path, monkeypatch):
    """Another call takes the folder while this one looks at the edges."""
    write_edges(tmp_path / "edges", hg.datasets.grid(20, 20), 2)
    settings = {"most_ghosts": ANY, "degree": 5}

    def look(*_):
        monkeypatch.setattr(preparing, "refuse_small_worlds", lambda *_: None)
        prepare(tmp_path / "edges", tmp_path / "work", partitions=4, **settings)

    monkeypatch.setattr(preparing, "refuse_small_worlds", look)
    with pytest.raises(ValueError, match="holds another preparation: partitions differ"):
        prepare(tmp_path / "edges", tmp_path / "work", partitions=2, **settings)
    assert read_json(tmp_path / "work" / "preparing.json")["partitions"] == 4
    assert prepare(tmp_path / "edges", tmp_path / "work", partitions=4, **settings).partitions == 4


def test_a_task_of_a_refused_preparation_writes_elsewhere(tmp_path, monkeypatch):
    """It may still run when the same folder is prepared otherwise."""
    graph, late, work = hg.datasets.grid(30, 30), [], tmp_path / "work"
    noisy, settings = noisy_on(graph), {"partitions": 4, "degree": 5, "most_ghosts": ANY}

    def refusing(*job):
        late.append(job)
        msg = "too many"
        raise TooManyGhostsError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "grow_zone", refusing)
        with pytest.raises(TooManyGhostsError):
            prepare(graph, work, laplacian="normalized", **settings)
    prepare(graph, work, **settings)
    assert late[0][0].parent == work
    assert late[0][0] not in list(work.glob("graph-*"))
    one = hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure", frame=hg.chebyshev_frame(graph, degree=5))
    assert_equal(denoise(work, noisy, sigma=1.0, method="sgwt_sure"), one)


def test_other_places_make_another_preparation(tmp_path):
    """Nodes in a bad order are refused; the same folder then takes their places."""
    graph = hg.datasets.grid(60, 60)
    bad = np.random.default_rng(0).permutation(graph.coords)
    with pytest.raises(TooManyGhostsError):
        prepare(graph, tmp_path, coords=bad, partitions=4, degree=3)
    assert prepare(graph, tmp_path, coords=graph.coords, partitions=4, degree=3).growth < 3


def test_two_folders_of_the_same_edges_on_one_cluster(client, tmp_path):
    """Tasks of one are not taken for those of the other."""
    write_edges(tmp_path / "edges", hg.datasets.grid(40, 40), 2)
    settings = {"partitions": 3, "degree": 5, "most_ghosts": ANY, "client": client}
    calls = [threading.Thread(target=prepare, args=(tmp_path / "edges", tmp_path / name), kwargs=settings) for name in "ab"]
    for call in calls:
        call.start()
    for call in calls:
        call.join(120)
    for name in "ab":
        assert len(list((tmp_path / name).glob("graph-*/parts/*/zone.json"))) == 3


def test_two_runs_do_not_write_the_same_output(tmp_path):
    graph = hg.datasets.grid(20, 20)
    noisy = noisy_on(graph)
    prepare(graph, tmp_path / "work", partitions=2, degree=5, most_ghosts=ANY)
    settings, other = {"sigma": 1.0, "method": "sgwt_sure", "output": tmp_path / "out"}, []

    def meanwhile(share, stage):
        if stage == "write" and not other:
            other.append(None)
            other[0] = denoise(tmp_path / "work", noisy, seed=1, **settings)

    with pytest.raises(ValueError, match=r"holds part-00000.parquet, which is not of this run"):
        denoise(tmp_path / "work", noisy, progress=meanwhile, **settings)
    assert np.isfinite(other[0].read()).all(), "the files of the other run are whole"


def test_a_refused_output_leaves_no_run_behind(tmp_path):
    graph = hg.datasets.grid(20, 20)
    noisy = noisy_on(graph)
    prepare(graph, tmp_path / "work", partitions=2, degree=5, most_ghosts=ANY)
    first = denoise(tmp_path / "work", noisy, sigma=1.0, output=tmp_path / "out")
    with pytest.raises(ValueError, match="not of this run"):
        denoise(tmp_path / "work", noisy, sigma=1.0, seed=5, output=tmp_path / "out")
    assert resume(tmp_path / "work").folder == first.folder


def test_a_second_call_leaves_drafts_of_a_run_at_work(tmp_path):
    graph = hg.datasets.grid(20, 20)
    noisy = noisy_on(graph)
    prepare(graph, tmp_path / "work", partitions=2, degree=5, most_ghosts=ANY)
    met = []

    def meanwhile(share, stage):
        if stage == "write" and not met:
            met.append(Path(next((tmp_path / "work" / "runs").glob("*")), "denoised"))
            met[0].mkdir()
            draft = met[0] / ".part-00000.0a.tmp"
            draft.write_bytes(b"half")
            with pytest.raises(RuntimeError, match="another run works in"):
                resume(tmp_path / "work")
            assert draft.exists()

    denoise(tmp_path / "work", noisy, sigma=1.0, progress=meanwhile)
    assert met


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base": 1.0}, "base must be a finite number above 1"),
        ({"damping": "lanczos"}, "damping must be one of"),
        ({"plateau": "steep"}, "plateau must be one of"),
        ({"n_scales": 0}, "n_scales must be an integer of at least 1"),
        ({"lambda_max": -1}, "lambda_max must be a number above 0"),
        ({"method": "magic"}, "method must be one of"),
    ],
)
def test_settings_are_checked_before_anything_is_written(tmp_path, settings, said):
    with pytest.raises(ValueError, match=said):
        prepare(hg.datasets.grid(10, 10), tmp_path / "work", partitions=2, **settings)
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("content", [b"", b"PAR1 and more", np.array([None, 1])])
def test_places_that_are_no_numbers(tmp_path, content):
    path = tmp_path / "places.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    with pytest.raises(ValueError, match=r"coords must be a .npy file .*places.npy is none"):
        prepare(hg.datasets.grid(5, 5), tmp_path / "work", coords=path)


def test_numbers_with_gaps(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nodes = np.arange(100)
    for factor in (2, 1000):
        pq.write_table(pa.table({"source": factor * nodes[:-1], "target": factor * nodes[1:]}), tmp_path / f"{factor}.parquet")
    with pytest.raises(ValueError, match=r"name node 99000, but they are only 99.*or say n=99001 if that is meant"):
        prepare(tmp_path / "1000.parquet", tmp_path / "many")
    found = prepare(tmp_path / "2.parquet", tmp_path / "few", partitions=2, degree=3)
    assert any("99 of 199 nodes have no edges" in note for note in found.notes)


def test_probes_that_do_not_fit_are_refused(tmp_path):
    graph = hg.datasets.grid(300, 300)
    prepare(graph, tmp_path, memory="900MB", degree=5)
    with pytest.raises(ValueError, match=r"n_probes=4000 takes about \d+\.\d\d GB per task.*take fewer probes"):
        denoise(tmp_path, noisy_on(graph), sigma=1.0, n_probes=4000)
