"""Guides in partitions: the same results and the same words as on one machine, from arrays, files and other runs."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.distributed import denoise, prepare, resume
from hushgraph.graphs import Noisy

from .cases import ANY, assert_close, noisy_on, with_islands

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fsspec")


def clean_on(graph):
    """Pieces and a wave."""
    return noisy_on(graph) - np.random.default_rng(0).normal(0, 1, graph.n) + np.sin(np.arange(graph.n) / 40)


def noisy_map(graph, sigma=1.0, seed=0):
    return clean_on(graph) + sigma * np.random.default_rng(seed).normal(0, 1, graph.n)


def guides_on(graph):
    """A map that bends with the pieces, and one that says nothing."""
    rng = np.random.default_rng(5)
    return {"bent": np.abs(clean_on(graph) - 1) + rng.normal(0, 0.3, graph.n), "nothing": rng.normal(size=graph.n)}


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    graph, folder = hg.datasets.roads(3000), tmp_path_factory.mktemp("guided") / "work"
    prepare(graph, folder, partitions=2, most_ghosts=ANY)
    return graph, folder


def assert_same_words(found, one):
    assert found.details["guides"].keys() == one.details["guides"].keys()
    for name, account in one.details["guides"].items():
        assert {**found.details["guides"][name], "risk_removed": None} == {**account, "risk_removed": None}
        assert found.details["guides"][name]["risk_removed"] == pytest.approx(account["risk_removed"], rel=1e-6)
    assert found.details["experts"] == pytest.approx(one.details["experts"], rel=1e-6)


@pytest.mark.parametrize("parts", [1, 2, 4])
@pytest.mark.parametrize("method", ["auto", "let"])
def test_guided_runs_add_up(method, parts, tmp_path, one_machine):
    graph = hg.datasets.roads(3000) if method == "auto" else with_islands()
    prepare(graph, tmp_path / "work", partitions=parts, most_ghosts=ANY)
    sigma = 1.0 if method == "auto" else np.random.default_rng(2).uniform(0.5, 2.0, graph.n)
    noisy, settings = noisy_map(graph, sigma), {"sigma": sigma, "method": method, "guides": guides_on(graph)}
    one, found = one_machine(graph, noisy, **settings), denoise(tmp_path / "work", noisy, **settings)
    assert_close(found, one)
    assert_same_words(found, one)
    assert found.details["experts"].keys() == {"alone", "linear", "bent"}
    assert found.details["why"] == one.details["why"]


def test_guides_that_say_nothing_change_nothing(roads, few_probes):
    graph, folder = roads
    plain = denoise(folder, noisy_map(graph), sigma=1.0, method="let")
    found = denoise(folder, noisy_map(graph), sigma=1.0, method="let", guides=guides_on(graph)["nothing"])
    np.testing.assert_array_equal(found.read(), plain.read())
    assert (found.risk, found.risk_se, found.probe_se) == (plain.risk, plain.risk_se, plain.probe_se)
    assert found.details["guides"]["guide"]["in_words"] == "says nothing about this signal, and was left out"
    assert "experts" not in found.details


# ---- how guides are given --------------------------------------------------------------------------------------------


def test_guides_in_files(roads, tmp_path):
    graph, folder = roads
    maps = guides_on(graph)
    np.save(tmp_path / "bent.npy", maps["bent"])
    nodes = np.random.default_rng(1).permutation(graph.n)
    pq.write_table(pa.table({"node": nodes, "value": maps["nothing"][nodes]}), tmp_path / "nothing.parquet")
    settings = {"sigma": 1.0, "method": "let"}
    whole = denoise(folder, noisy_map(graph), **settings, guides=maps)
    files = [tmp_path / "bent.npy", str(tmp_path / "nothing.parquet")]
    for given in (files, {"bent": files[0], "nothing": files[1]}):
        found = denoise(folder, noisy_map(graph), **settings, guides=given, resume=False)
        np.testing.assert_array_equal(found.read(), whole.read())
        assert found.details["guides"] == whole.details["guides"]
    both = denoise(folder, noisy_map(graph), **settings, guides=np.stack([*maps.values()], axis=1))
    np.testing.assert_array_equal(both.read(), whole.read())
    assert list(both.details["guides"]) == ["guide 1", "guide 2"]
    half = denoise(folder, noisy_map(graph), **settings, guides=maps["bent"].astype(np.float32))
    one = hg.denoise(graph, noisy_map(graph), **settings, guides=maps["bent"].astype(np.float32))
    assert_close(half, one)


def test_earlier_results_and_releases_as_guides(roads, one_machine):
    graph, folder = roads
    rng = np.random.default_rng(7)
    clean = clean_on(graph)
    earlier = clean + rng.normal(0, 1, graph.n)
    settings = {"sigma": 1.0, "method": "let"}
    first = denoise(folder, earlier, **settings)
    one = hg.denoise(graph, noisy_map(graph), **settings, guides=hg.denoise(graph, earlier, **settings))
    found = denoise(folder, noisy_map(graph), **settings, guides=first)
    assert_close(found, one)
    assert found.details["guides"]["denoised map"]["made_from"] == "a denoised map"
    noisy_maps = [Noisy(clean + rng.normal(0, 2, graph.n), 2.0, "measurement", graph.hash) for _ in range(3)]
    one = hg.denoise(graph, noisy_map(graph), **settings, guides=noisy_maps)
    found = denoise(folder, noisy_map(graph), **settings, guides=noisy_maps)
    assert_close(found, one)
    assert_same_words(found, one)
    with pytest.raises(ValueError, match="holds the noise of the values that are to be denoised"):
        denoise(folder, noisy_map(graph), **settings, guides=denoise(folder, noisy_map(graph), **settings))


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_guides_with_the_noise_of_the_signal(roads):
    graph, folder = roads
    noisy, settings = noisy_map(graph), {"sigma": 1.0, "method": "let"}
    with pytest.raises(ValueError, match="holds the noise of the values that are to be denoised"):
        denoise(folder, noisy, **settings, guides={"same": noisy})
    denoised = denoise(folder, noisy, **settings).read()
    for kind, values in (
        ("noisy", 3 * noisy + 5),
        ("noisy", np.maximum(noisy, 0)),
        ("denoised", denoised),
        ("denoised", 2 - -denoised),
    ):
        with pytest.raises(ValueError, match=f"the guide 'same' is the {kind} map of these very values"):
            denoise(folder, noisy, **settings, guides={"same": values, **guides_on(graph)})
    leak = noisy + np.random.default_rng(3).normal(0, 0.05, graph.n)
    found, one = (call(**settings, guides={"leak": leak}) for call in (
        lambda **more: denoise(folder, noisy, **more), lambda **more: hg.denoise(graph, noisy, **more)))  # fmt: skip
    assert_close(found, one)
    assert found.details["guides"]["leak"]["in_words"] == one.details["guides"]["leak"]["in_words"]
    assert any("a guide was left out" in note for note in found.details["notes"])


def test_guides_that_are_none(roads):
    graph, folder = roads
    gaps = np.where(np.arange(graph.n) == 3, np.nan, 1.0 * np.arange(graph.n))
    with pytest.raises(ValueError, match="gaps must have a value for each of the 3000 nodes; 1 have none or NaN"):
        denoise(folder, noisy_map(graph), sigma=1.0, method="let", guides={"gaps": gaps})
    with pytest.raises(ValueError, match="guides= belongs to method='auto' and 'let'; got method='sgwt_sure'"):
        denoise(folder, noisy_map(graph), sigma=1.0, method="sgwt_sure", guides=gaps)
    assert denoise(folder, noisy_map(graph), sigma=1.0, method="let", guides=[]).details.get("guides") is None


# ---- cut off ---------------------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def test_a_guided_run_goes_on_where_it_was_cut_off(roads, few_probes):
    """Stopped after every few stages, and continued each time."""
    graph, folder = roads
    settings = {"sigma": 1.0, "method": "auto", "guides": guides_on(graph), "seed": 4}
    whole = denoise(folder, noisy_map(graph), **settings, resume=False)
    assert not (whole.folder / "alone").exists(), "the files of the estimates are removed"
    shares = []

    def watch(share, what):
        shares.append(share)
        if share > limit:
            raise StoppedError

    for limit in (0.1, 0.4, 0.6, 0.95):
        with pytest.raises(StoppedError):
            denoise(folder, noisy_map(graph), **settings, resume=limit > 0.1, progress=watch)
        assert shares == sorted(shares)
        shares.clear()
    assert (whole.folder / "bent" / "graph").exists()
    found = resume(folder, keep=True)
    assert (found.folder / "linear").exists()
    np.testing.assert_array_equal(found.read(), whole.read())
    assert (found.risk, found.details) == (whole.risk, whole.details)
