"""Tasks that fail: what would fail again is not tried again."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import prepare, runner
from hushgraph.distributed.ghosts import TooManyGhostsError
from hushgraph.distributed.runner import RETRIES, Runner

distributed = pytest.importorskip("distributed")
dask_pickle = pytest.importorskip("distributed.protocol.pickle")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A worker in a thread of this process."""
    settings = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(**settings, local_directory=str(tmp_path_factory.mktemp("dask"))) as client:
        yield client


def failing(folder, error, times):
    """Leaves a file each time it is run; fails so many times."""
    tried = len(list(folder.iterdir()))
    (folder / str(tried)).touch()
    if tried < times:
        raise error("as said")
    return {"tried": tried + 1}


@pytest.mark.parametrize(("error", "tries"), [(ValueError, 1), (TooManyGhostsError, 1), (IndexError, 1), (OSError, 1 + RETRIES)])
def test_only_reading_and_writing_is_tried_again(client, tmp_path, error, tries):
    with pytest.raises(error, match="as said"):
        Runner(client, {"stage": 1.0}, tmp_path).run("stage", failing, [(tmp_path, error, 99)])
    assert len(list(tmp_path.iterdir())) == tries


def test_a_task_that_fails_once_is_done(client, tmp_path):
    jobs = [(tmp_path, OSError, 1)]
    assert Runner(client, {"stage": 1.0}, tmp_path).run("stage", failing, jobs) == [{"tried": 2}]


def test_a_refusal_reads_as_on_one_machine(client, tmp_path):
    rng = np.random.default_rng(0)
    small_world = hg.Graph.from_edges(rng.integers(0, 600, (2000, 2)), n=600)
    with pytest.raises(TooManyGhostsError, match="GPU"):
        prepare(small_world, tmp_path / "work", partitions=4, client=client)
    assert prepare(small_world, tmp_path / "work", partitions=1, client=client).partitions == 1


def test_workers_that_do_not_see_the_folder_are_refused(client, tmp_path):
    with pytest.raises(
        RuntimeError, match=r"all workers must see the work folder.* does not see .*elsewhere; put it on a file system"
    ):
        Runner(client, {"stage": 1.0}, tmp_path / "elsewhere").run("stage", failing, [])


@pytest.mark.parametrize(("version", "said"), [("0.0.1", "has hushgraph 0.0.1"), (None, "has no hushgraph")])
def test_workers_with_another_hushgraph_are_refused(tmp_path, version, said):
    found = {"tcp://there": (version, None), "tcp://gone": OSError("closed")}
    client = SimpleNamespace(wait_for_workers=lambda *_, **__: None, run=lambda *_, **__: found)
    with pytest.raises(RuntimeError, match=rf"as this process; tcp://there {said}; install it there"):
        runner._check_workers(client, tmp_path)


def test_a_worker_without_hushgraph_can_say_so(monkeypatch):
    """The code of the check is sent, not its name; the name of a task is not understood there (control)."""
    check, task = (dask_pickle.dumps(function) for function in (runner._fitness_check(), runner.run_task))
    for name in [name for name in sys.modules if name.split(".")[0] == "hushgraph"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert pickle.loads(check)("/") == (None, "")
    with pytest.raises(ImportError):
        pickle.loads(task)


def test_a_cluster_without_workers_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "PATIENCE", 0.2)
    settings = {"processes": False, "n_workers": 0, "dashboard_address": None}
    with distributed.Client(**settings) as client, pytest.raises(RuntimeError, match=r"no worker for 0.2 seconds; start some"):
        Runner(client, {"stage": 1.0}, tmp_path).run("stage", failing, [])
