"""What plans say against what preparing and denoising take, and what they refuse."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.core import _loops
from hushgraph.distributed import denoise, plan, prepare
from hushgraph.distributed.cost_model import START, Shape, parse_memory
from hushgraph.distributed.ghosts import TooManyGhostsError, too_many_ghosts

from .cases import noisy_on, scale_free, write_edges

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def town():
    return hg.datasets.roads(300_000)


# ---- ghosts --------------------------------------------------------------------------------------------------------


def test_ghosts_of_all_partitions_are_those_that_preparing_finds(tmp_path):
    graph = hg.datasets.roads(20_000)
    found = plan(graph, partitions=12, degree=10)
    done = prepare(graph, tmp_path / "work", partitions=12, degree=10)
    assert found.growth == pytest.approx(done.growth, rel=0.02)  # partitions differ by a node
    assert found.counted == "counted"
    assert plan(graph, partitions=40, degree=10, most_ghosts=99).counted == "counted for 16 partitions"


def test_inner_partitions_are_looked_at(town, tmp_path):
    """Boxes at the border have 1.4 ghosts per node here, and those inside more than 3."""
    with pytest.raises(TooManyGhostsError, match="3 are allowed"):
        plan(town, partitions=12)
    write_edges(tmp_path / "edges", hg.datasets.grid(120, 120), 1)
    settings = {"coords": hg.datasets.grid(120, 120).coords, "partitions": 9, "degree": 30, "most_ghosts": 2.5}
    with pytest.raises(TooManyGhostsError, match="or more after"):
        prepare(tmp_path / "edges", tmp_path / "work", **settings)
    assert not (tmp_path / "work").exists()


def test_ghosts_of_a_path():
    rows, owner = hg.datasets.path(100).adjacency, np.repeat(np.arange(4, dtype=np.uint16), 25)
    seen = np.full(100, -1, np.int32)
    counts = [_loops.count_ghosts(rows.indptr, rows.indices, owner, part, seen, 10, 99) for part in (0, 1, 2, 3)]
    assert counts == [(10, 10), (20, 10), (20, 10), (10, 10)]


def test_the_reason_of_a_refusal(town):
    with pytest.raises(TooManyGhostsError, match=r"distances in this graph are too short.*give coords="):
        plan(scale_free(20_000), partitions=8)
    with pytest.raises(TooManyGhostsError, match=r"too small for ghosts within 100 hops.*more memory") as small:
        plan(town, memory="202MB")
    assert "too short" not in str(small.value)
    assert "coords=" not in str(small.value)
    assert "coords=" in too_many_ghosts(1000, 4000, 50, 100, 3.0, has_places=False)


# ---- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "memory"), [("sgwt_scaled", "220MB"), ("sgwt_sure", "220MB"), ("let", "230MB")])
@pytest.mark.parametrize("weights", [False, True])
def test_plan_and_prepare_cut_alike(tmp_path, method, memory, weights):
    graph = hg.datasets.grid(400, 500)
    if weights:
        i, j = graph.adjacency.nonzero()
        pairs = np.stack([i, j], axis=1)[i < j]
        sizes = np.random.default_rng(0).uniform(0.1, 3.0, len(pairs))
        graph = hg.Graph.from_edges(pairs, n=graph.n, weights=sizes, coords=graph.coords)
    settings = {"method": method, "memory": memory, "degree": 10}
    found, done = plan(graph, **settings), prepare(graph, tmp_path / "work", **settings)
    assert found.partitions == done.partitions > 1


def test_a_plan_says_that_tasks_take_more_memory_than_asked_for():
    graph = hg.datasets.grid(800, 800)
    found = plan(graph, memory="600MB", partitions=1, method="let")
    assert found.memory_per_task > 600e6
    assert "GB, more than the 0.60 GB asked for: ask for more, or choose more partitions" in str(found)
    assert "more than the" not in str(plan(graph, memory="4GB", partitions=1, method="let"))


def test_more_probes_take_more_memory():
    """All of them are drawn at once: 24 bytes per row and probe were measured."""
    for method in ("sgwt_sure", "sgwt_scaled", "let"):
        sizes = [Shape(4.0, 6, False, method, probes) for probes in (1, 4, 16, 300)]
        assert sizes[0] == Shape(4.0, 6, False, method)
        rows = [shape.per_row for shape in sizes]
        assert rows == sorted(rows)
        assert rows[-1] >= 24 * 300
        assert sizes[-1].forward - sizes[-2].forward == 8 * 284


def test_memory_texts():
    texts = {"3G": 3e9, "900M": 9e8, "1e9": 1e9, "1.5e+3 MB": 1.5e9, "2 gib": 2.0**31, "1t": 1e12, ".9GB": 9e8}
    assert {text: parse_memory(text) for text in texts} == pytest.approx(texts)
    assert parse_memory(10**9) == 1e9
    for wrong in ("3 X", "e9", "1e", "1..5GB", "-3GB", ""):
        with pytest.raises(ValueError, match="memory must be a number of bytes, or a text like '3GB'"):
            parse_memory(wrong)
    for small in ("100M", 1e8, "1e999", np.nan):
        with pytest.raises(ValueError, match=r"memory must be above 0.20 GB, a number of bytes or a text like '3GB'; got"):
            parse_memory(small)


# ---- files, time, partitions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sgwt_sure", "sgwt_scaled", "let", "auto"])
def test_files_of_weighted_graphs(tmp_path, method):
    """To 15 %."""
    graph = hg.datasets.roads(280_000)
    i, j = graph.adjacency.nonzero()
    pairs = np.stack([i, j], axis=1)[i < j]
    graph = hg.Graph.from_edges(
        pairs, n=graph.n, weights=np.random.default_rng(0).uniform(0.1, 3.0, len(pairs)), coords=graph.coords
    )
    found = plan(graph, partitions=2, degree=15, method=method)
    prepare(graph, tmp_path / "work", partitions=2, degree=15)
    denoise(tmp_path / "work", noisy_on(graph), sigma=1.0, method=method, keep=True)
    size = sum(path.stat().st_size for path in (tmp_path / "work").rglob("*") if path.is_file())
    assert found.disk == pytest.approx(size, rel=0.15)


def test_processes_that_start_are_counted():
    graph = hg.datasets.grid(60, 60)
    settings = {"partitions": 2, "degree": 5}
    one, twice = plan(graph, **settings), plan(graph, starts=2, **settings)
    both = plan(graph, starts=2, workers=2, **settings)
    assert twice.cpu_seconds - one.cpu_seconds == pytest.approx(START)
    assert twice.seconds - one.seconds == pytest.approx(START)
    assert both.cpu_seconds - one.cpu_seconds == pytest.approx(5 * START)
    with pytest.raises(ValueError, match="starts must be an integer of at least 1; got 0"):
        plan(graph, starts=0)


def test_no_partitions_are_refused():
    with pytest.raises(ValueError, match="partitions must be an integer from 1 to 3600; got 0"):
        plan(hg.datasets.grid(60, 60), partitions=0)
    with pytest.raises(ValueError, match="the graph has no nodes"):
        plan(hg.Graph.from_edges(np.empty((0, 2), int), n=0))
