"""Comparison of methods: the same bits as the methods themselves, the table, its forms, and what cannot be compared."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import hushgraph as hg
from hushgraph.estimators.comparison import DEFAULT_METHODS, LARGEST_BY_DEFAULT, ComparedMethod, _ranked
from hushgraph.estimators.methods import BASELINES, METHODS
from hushgraph.privacy import simulate

SIGMA = 6.0
QUICK = ["let", "sgwt_sure", "dfs_fused_lasso"]


@pytest.fixture(scope="module")
def town():
    return hg.datasets.city(300, seed=3)


@pytest.fixture(scope="module")
def counts(town):
    return hg.hotspot_counts(town, total=10 * town.n, seed=1)


@pytest.fixture(scope="module")
def noisy(counts):
    return counts + SIGMA * np.random.default_rng(0).normal(size=len(counts))


@pytest.fixture(scope="module")
def default(town, counts, noisy):
    return hg.compare(town, noisy, sigma=SIGMA, truth=counts, nonnegative=True)


def row_of(comparison, method):
    return next(row for row in comparison.rows if row.method == method)


# ---- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "let", "counts", "filter", "sgwt_sure", "sgwt_deep"])
def test_a_result_is_that_of_denoise(default, town, noisy, method):
    result = hg.denoise(town, noisy, sigma=SIGMA, method=method, nonnegative=True)
    assert np.array_equal(default.results[method].signal, result.signal)
    row = row_of(default, method)
    assert (row.risk, row.risk_se) == (result.risk, result.risk_se)
    assert (row.typical_error, row.is_bound) == result.typical_error
    assert default.results[method].draws == result.draws
    np.testing.assert_array_equal(default.results[method].expected_error(), result.expected_error())


@pytest.mark.parametrize("method", list(BASELINES))
def test_a_baseline_is_that_of_its_function(default, town, noisy, method):
    result = getattr(hg, method)(town, noisy, sigma=SIGMA)
    assert np.array_equal(default.results[method].signal, np.maximum(result.signal, 0))
    assert row_of(default, method).risk == result.risk


def test_the_columns_of_the_truth(default, counts):
    for row in default.rows:
        estimate = default.results[row.method].signal
        assert row.squared_error == pytest.approx(np.sum((estimate - counts) ** 2))
        assert row.snr == pytest.approx(hg.snr(counts, estimate))


def test_rows_are_sorted_and_the_least_risk_is_marked(default):
    risks = [row.risk for row in default.rows]
    assert risks == sorted(risks)
    assert [row.is_least for row in default.rows] == [True] + [False] * (len(risks) - 1)
    assert default.best == default.rows[0].method == next(iter(default.results))
    least = default.rows[0]
    for row in default.rows[1:]:
        assert row.is_close == (row.risk <= least.risk + max(row.risk_se, least.risk_se))


def test_a_risk_that_is_not_credible_is_never_the_least():
    rows = [
        ComparedMethod(method="unusable", note="why"),
        ComparedMethod(method="impossible", risk=-100.0, risk_se=1.0),
        ComparedMethod(method="far", risk=30.0, risk_se=2.0),
        ComparedMethod(method="close", risk=11.0, risk_se=2.0),
        ComparedMethod(method="least", risk=10.0, risk_se=0.5),
    ]
    ranked = _ranked(rows, is_too_large=False)
    assert [row.method for row in ranked] == ["least", "close", "far", "impossible", "unusable"]
    assert [row.method for row in ranked if row.is_least] == ["least"]
    assert [row.method for row in ranked if row.is_close] == ["close"]
    assert not any(row.is_least or row.is_close for row in _ranked(rows, is_too_large=True))


def test_equal_input_gives_equal_bits_and_the_seed_counts(town, noisy):
    one, two, other = (hg.compare(town, noisy, sigma=SIGMA, methods=["let"], seed=seed, n_probes=2) for seed in (0, 0, 1))
    assert one.rows[0].risk == two.rows[0].risk != other.rows[0].risk
    assert one.results["let"].details["n_probes"] == 2


# ---- sigma -------------------------------------------------------------------------------------------------------------


def test_sigma_is_estimated_once_for_all(town, noisy, monkeypatch):
    from hushgraph.estimators import denoising

    calls = []
    estimate = denoising.noise_level_of
    monkeypatch.setattr(denoising, "noise_level_of", lambda *given: calls.append(given) or estimate(*given))
    with pytest.warns(UserWarning, match="sigma was not given") as told:
        comparison = hg.compare(town, noisy, methods=QUICK)
    assert len(calls) == len(told) == 1
    for result in comparison.results.values():
        assert result.sigma == comparison.sigma == estimate(town, noisy)
        assert result.details["sigma_estimated"]
        assert "sigma was not given" in result.details["notes"][0]


def test_sigma_per_node(town, noisy):
    levels = np.linspace(SIGMA / 2, SIGMA, town.n)
    comparison = hg.compare(town, noisy, sigma=levels, methods=["let", "graph_tv"])
    assert comparison.noise_risk == pytest.approx(np.sum(levels**2))
    assert "one number for all nodes" in row_of(comparison, "graph_tv").note
    assert comparison.results["let"].risk == hg.denoise(town, noisy, sigma=levels, method="let").risk
    assert "sigma 3 to 6" in str(comparison)


def test_a_sigma_that_is_too_large_makes_no_risk_credible(town, noisy):
    with pytest.warns(UserWarning, match="sigma is too large") as told:
        comparison = hg.compare(town, noisy, sigma=1000.0, methods=QUICK)
    assert len(told) == 1
    assert comparison.best is None
    assert all(np.isnan(row.typical_error) and "worth nothing" in row.note for row in comparison.rows)
    assert "unknown" in str(comparison)


# ---- forms of the input ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled():
    graph = hg.datasets.grid(8, 8)
    names = np.array([f"n{i:02d}" for i in range(graph.n)])
    rows, columns = graph.adjacency.nonzero()
    edges = np.stack([rows, columns], axis=1)[rows < columns]
    return hg.Graph.from_edges(edges, n=graph.n, labels=names)


def test_values_and_truth_go_by_label(labelled):
    truth = pd.Series(np.repeat([0.0, 10.0], 32), index=labelled.labels)
    values = truth + np.random.default_rng(0).normal(size=64)
    plain = hg.compare(labelled, values.to_numpy(), sigma=1.0, methods=["let", "graph_tv"], truth=truth.to_numpy())
    shuffled = hg.compare(
        labelled, values[::-1], sigma=1.0, methods=["let", "graph_tv"], truth=truth.sample(frac=1, random_state=0)
    )
    mapping = hg.compare(labelled, dict(values[::-1]), sigma=1.0, methods=["let", "graph_tv"], truth=dict(truth))
    for method, result in plain.results.items():
        assert list(shuffled.results[method].signal.index) == list(values.index[::-1])
        np.testing.assert_array_equal(shuffled.results[method].signal[labelled.labels], result.signal)
        assert mapping.results[method].signal["n05"] == result.signal[5]
        assert (
            row_of(plain, method).squared_error == row_of(shuffled, method).squared_error == row_of(mapping, method).squared_error
        )


def test_sigma_travels_with_noisy_values_and_releases(town, noisy, counts):
    measured = hg.Noisy(noisy, sigma=SIGMA, kind="measurement", graph_hash=town.hash)
    comparison = hg.compare(town, measured, methods=QUICK, truth=counts)
    assert [row.risk for row in comparison.rows] == [row.risk for row in hg.compare(town, noisy, sigma=SIGMA, methods=QUICK).rows]
    with pytest.raises(ValueError, match="sigma travels"):
        hg.compare(town, measured, sigma=2.0, methods=QUICK)
    simulated = simulate(town, counts, epsilon=1.0, delta=1e-6, sensitivity=1.0, seed=0)
    assert hg.compare(town, simulated, methods=["let"], truth=counts).sigma == simulated.noise_level


def test_a_release_is_not_compared_with_the_truth(town, noisy, counts):
    release = hg.Noisy(noisy, sigma=SIGMA, kind="release", graph_hash=town.hash)
    assert hg.compare(town, release, methods=["let"]).best == "let"
    for given, truth in ((release, counts), (noisy, release)):
        with pytest.raises(TypeError, match="private release"):
            hg.compare(town, given, sigma=None if given is release else SIGMA, methods=["let"], truth=truth)


def test_guides(town, noisy, counts):
    guide = counts + np.random.default_rng(7).normal(0, 1, town.n)
    comparison = hg.compare(town, noisy, sigma=SIGMA, guides=guide, nonnegative=True)
    assert set(comparison.results) == {"auto", "let", "counts"}
    result = hg.denoise(town, noisy, sigma=SIGMA, guides=guide, nonnegative=True, method="let")
    assert np.array_equal(comparison.results["let"].signal, result.signal)
    mixed = hg.compare(town, noisy, sigma=SIGMA, guides=guide, methods=["let", "filter", "graph_tv"])
    assert all("guides=" in row_of(mixed, name).note for name in ("filter", "graph_tv"))
    with pytest.raises(ValueError, match="guide"):
        hg.compare(town, noisy, sigma=SIGMA, guides=noisy, methods=["let"])


# ---- what cannot be used -----------------------------------------------------------------------------------------------


def test_a_method_that_cannot_be_used_has_a_row_that_says_why():
    graph = hg.datasets.grid(7, 7)
    values = np.random.default_rng(0).normal(5, 1, graph.n)
    comparison = hg.compare(graph, values, sigma=1.0, methods=["counts", "let"], nonnegative=True, truth=np.full(graph.n, 5.0))
    last = comparison.rows[-1]
    assert last.method == "counts"
    assert "49 nodes" in last.note
    assert np.isnan(last.risk)
    assert list(comparison.results) == ["let"]
    assert "49 nodes" in str(comparison)
    alone = hg.compare(graph, values, sigma=1.0, methods=["counts"])
    assert (alone.best, alone.results) == (None, {})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"methods": ["magic"]}, "one of 'auto'"),
        ({"methods": "auto"}, "a list of names"),
        ({"methods": []}, "a list of names"),
        ({"sigma": -1.0}, "standard deviation"),
        ({"seed": -1}, "seed"),
        ({"n_probes": 0}, "n_probes"),
        ({"nonnegative": 2}, "nonnegative"),
        ({"progress": 3}, "progress"),
    ],
)
def test_arguments_that_no_method_can_use_are_refused(town, noisy, given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        hg.compare(town, noisy, **{"sigma": SIGMA, "methods": ["let"], **given})


def test_several_columns_and_gaps_are_refused(town, noisy):
    with pytest.raises(ValueError, match=r"noisy must be one signal; got shape .* compare each column by itself"):
        hg.compare(town, np.stack([noisy, noisy], axis=1), sigma=SIGMA)
    gap = noisy.copy()
    gap[3] = np.nan
    with pytest.raises(ValueError, match="a value for every node; got 1 nodes without one"):
        hg.compare(town, gap, sigma=SIGMA)


def test_a_truth_with_several_columns_is_refused(town, noisy):
    with pytest.raises(ValueError, match="truth must be one signal"):
        hg.compare(town, noisy, sigma=SIGMA, methods=["let"], truth=np.zeros((town.n, 2)))


def test_a_truth_of_zeros_has_no_snr(town):
    noise = np.random.default_rng(0).normal(size=town.n)
    row = hg.compare(town, noise, sigma=1.0, methods=["let"], truth=np.zeros(town.n)).rows[0]
    assert np.isnan(row.snr)
    assert row.squared_error > 0


# ---- default methods, progress -----------------------------------------------------------------------------------------


def test_default_methods(default, town, noisy):
    assert set(default.results) == set(DEFAULT_METHODS)
    assert set(DEFAULT_METHODS) <= {*METHODS, *BASELINES}
    assert set(LARGEST_BY_DEFAULT) <= set(DEFAULT_METHODS)


def test_slow_methods_are_left_out_on_large_graphs(town, noisy, monkeypatch):
    monkeypatch.setattr("hushgraph.estimators.comparison.LARGEST_BY_DEFAULT", dict.fromkeys(DEFAULT_METHODS[2:], 10))
    assert {row.method for row in hg.compare(town, noisy, sigma=SIGMA).rows} == {"auto", "let"}


def test_progress_names_the_methods_and_rises(town, noisy):
    steps = []
    hg.compare(town, noisy, sigma=SIGMA, methods=QUICK, progress=lambda share, what: steps.append((share, what)))
    shares = [share for share, _ in steps]
    assert shares == sorted(shares)
    assert [what for _, what in steps if what in QUICK] == QUICK

    def stop(share, what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hg.compare(town, noisy, sigma=SIGMA, methods=QUICK, progress=stop)


# ---- the table ---------------------------------------------------------------------------------------------------------


def test_the_table_as_text(default):
    head, *lines, legend = str(default).splitlines()
    assert re.split(r"  +", head) == ["method", "risk", "risk_se", "typical error", "seconds", "squared error", "SNR, dB"]
    assert [line.split()[0] for line in lines] == [row.method for row in default.rows]
    assert lines[0].split()[1] == "*"
    assert legend.startswith("sigma 6, risk of the noisy signal")
    assert repr(default) == str(default)


def test_the_table_without_truth_has_no_columns_for_it(town, noisy):
    comparison = hg.compare(town, noisy, sigma=SIGMA, methods=QUICK)
    assert "SNR" not in str(comparison)
    assert not {"snr", "squared_error"} & set(comparison.to_frame().columns)


def test_the_table_as_a_frame(default):
    frame = default.to_frame()
    assert list(frame.index) == [row.method for row in default.rows]
    assert frame.loc[default.best, "is_least"]
    assert frame["risk"].is_monotonic_increasing
    assert {"risk_se", "typical_error", "seconds", "squared_error", "snr", "is_close", "note"} <= set(frame.columns)


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_table_as_html_is_escaped(default):
    reader = Cells()
    reader.feed(default._repr_html_())
    assert reader.open == []
    assert {row.method for row in default.rows} <= {text.split()[0] for text in reader.texts}
    evil = hg.Comparison({}, (ComparedMethod(method="let", note="<script>1 & 2</script>"),), 1.0, 1.0)
    assert "<script>" not in evil._repr_html_()
    assert "&lt;script&gt;1 &amp; 2" in evil._repr_html_()


def test_the_table_needs_no_pandas_and_the_frame_names_its_extra():
    code = (
        "import json, sys; sys.modules['pandas'] = None\n"
        "import numpy as np, hushgraph as hg\n"
        "found = hg.compare(hg.datasets.grid(5, 5), np.arange(25.0), sigma=1.0, methods=['let'])\n"
        "text = str(found) + found._repr_html_()\n"
        "try: found.to_frame()\n"
        "except ImportError as error: print(json.dumps([str(error), 'let' in text]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    message, has_text = json.loads(done.stdout)
    assert "hushgraph[pandas]" in message
    assert has_text
