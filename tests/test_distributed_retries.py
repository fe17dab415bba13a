"""Tasks that fail: what would fail again is not tried again."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import prepare
from hushgraph.distributed.ghosts import TooManyGhostsError
from hushgraph.distributed.runner import RETRIES, Runner

distributed = pytest.importorskip("distributed")
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
        Runner(client, {"stage": 1.0}, error.__name__).run("stage", failing, [(tmp_path, error, 99)])
    assert len(list(tmp_path.iterdir())) == tries


def test_a_task_that_fails_once_is_done(client, tmp_path):
    jobs = [(tmp_path, OSError, 1)]
    assert Runner(client, {"stage": 1.0}, "once").run("stage", failing, jobs) == [{"tried": 2}]


def test_a_refusal_reads_as_on_one_machine(client, tmp_path):
    rng = np.random.default_rng(0)
    small_world = hg.Graph.from_edges(rng.integers(0, 600, (2000, 2)), n=600)
    with pytest.raises(TooManyGhostsError, match="GPU"):
        prepare(small_world, tmp_path / "work", partitions=4, client=client)
    assert prepare(small_world, tmp_path / "work", partitions=1, client=client).partitions == 1
