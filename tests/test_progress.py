"""How far the work is, told and used to end it."""

import itertools
import sys
from types import ModuleType

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._progress import watching
from hushgraph.privacy.planning import plan_release


class StoppedError(Exception):
    pass


@pytest.fixture(scope="module")
def noisy(small_city):
    return 3 + np.random.default_rng(0).normal(size=(small_city.n, 2))


@pytest.fixture(scope="module")
def small_city():
    return hg.datasets.city(300)


@pytest.mark.parametrize("method", ["auto", "let", "counts", "filter", "sgwt_sure", "sgwt_deep", "sgwt_block", "sgwt_beta"])
@pytest.mark.parametrize("columns", ["separate", "path"])
def test_shares_grow_from_0_to_1_at_most(small_city, noisy, method, columns):
    if method == "counts" and columns == "path":
        pytest.skip("refused: counts takes each column by itself")
    seen = []
    told = hg.denoise(
        small_city, noisy, sigma=1, method=method, columns=columns, nonnegative=True, progress=lambda *now: seen.append(now)
    )
    shares = [share for share, _ in seen]
    assert len(seen) > 2
    assert min(shares) >= 0
    assert max(shares) <= 1
    assert max(shares) >= 0.5
    assert all(after >= before - 1e-12 for before, after in itertools.pairwise(shares))
    assert all(isinstance(what, str) and what for _, what in seen)
    silent = hg.denoise(small_city, noisy, sigma=1, method=method, columns=columns, nonnegative=True)
    assert np.array_equal(silent.signal, told.signal)


def test_an_exception_ends_the_work(small_city, noisy):
    calls = []

    def stop(share, what):
        calls.append(what)
        if len(calls) == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        hg.denoise(small_city, noisy, sigma=1, progress=stop)
    assert len(calls) == 3
    hg.denoise(small_city, noisy, sigma=1)  # nobody watches any more
    assert len(calls) == 3


def test_a_plan_of_several_epsilons_is_one_work(small_city):
    shares = []
    with watching(lambda share, what: shares.append(share)):
        plan_release(small_city, epsilon=[0.5, 1, 2], adjacency="add-remove", max_nodes=1, max_per_node=1, n_draws=2)
    assert shares == sorted(shares)
    assert shares[-1] > 5 / 6


def test_what_is_no_function_is_refused(small_city, noisy):
    with pytest.raises(TypeError, match="progress must be True, for a bar, or a function"):
        hg.denoise(small_city, noisy, sigma=1, progress="yes")
    events, caps = {"rider": ["ann"], "node": [0]}, {"unit": "rider", "max_nodes": 1, "max_per_node": 1}
    with pytest.raises(TypeError, match="progress must be True, for a bar, or a function of the number of rows"):
        hg.privacy.check_events(small_city, events, **caps, progress=1)


# ---- a bar ------------------------------------------------------------------------------------------------------------


def works(small_city, noisy):
    """Every function with progress=, with a bar."""
    events = {"rider": ["ann", "bob"] * 50, "node": [0, 1] * 50}
    caps = {"unit": "rider", "max_nodes": 1, "max_per_node": 1, "chunk_rows": 10}
    maps = [noisy[:, 0], noisy[:, 1] + np.random.default_rng(1).normal(size=len(noisy))]
    yield lambda **progress: hg.denoise(small_city, noisy, sigma=1, method="let", **progress)
    yield lambda **progress: hg.denoise_series(small_city, maps, sigma=1, method="let", **progress)
    yield lambda **progress: hg.compare(small_city, noisy[:, 0], sigma=1, methods=["let"], **progress)
    yield lambda **progress: hg.privacy.count_events(small_city, events, adjacency="add-remove", **caps, **progress)
    yield lambda **progress: hg.privacy.check_events(small_city, events, **caps, **progress)


def test_true_shows_a_bar_on_a_terminal_only(small_city, noisy, capsys, monkeypatch):
    for work in works(small_city, noisy):
        work(progress=True)
        assert capsys.readouterr() == ("", ""), "a file or pipe gets no bar"
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal then
    monkeypatch.setenv("TERM", "xterm")
    for work in works(small_city, noisy):
        work(progress=True)
        out, err = capsys.readouterr()
        assert not out
        assert "\x1b" in err
        work(progress=False)
        work()
        assert capsys.readouterr() == ("", "")


def test_true_shows_a_bar_in_a_notebook_and_removes_it(small_city, noisy, capsys, monkeypatch):
    pages = []

    class Handle:
        def update(self, page):
            pages.append(page)

    display = ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda page, display_id: (pages.append(page), Handle())[1]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    for k, work in enumerate(works(small_city, noisy)):
        pages.clear()
        work(progress=True)
        assert pages[0].startswith("<div><progress")
        assert pages[-1] == ""
        if k < 3:
            assert any('value="0.' in page for page in pages)
        else:
            assert not any(letter.isdigit() for page in pages for letter in page), "the number of rows is private"
    assert capsys.readouterr() == ("", "")
