"""WaveletDenoiser is `denoise` with rows for signals, and behaves like any transformer of scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest

import hushgraph as hg

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

N = 48


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.grid(6, 8)


@pytest.fixture(scope="module")
def X():
    clean = np.stack([np.repeat([0.0, 10.0], 24), np.full(N, 5.0), np.tile([0.0, 0.0, 0.0, 8.0], 12)])
    return clean + np.random.default_rng(0).normal(0, 1, clean.shape)


@pytest.fixture(scope="module")
def denoiser(graph):
    return hg.WaveletDenoiser(graph, sigma=1.0)


# ---- the same numbers as denoise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"sigma": 1.0},
        {"sigma": 0.7, "method": "sgwt_sure"},
        {"sigma": 1.0, "method": "sgwt_scaled", "rule": "soft"},
        {"sigma": 1.0, "method": "sgwt_exact"},
        {"sigma": 1.0, "n_probes": 3, "law": "gaussian", "seed": 7},
        {"sigma": np.linspace(0.5, 1.5, N)},
    ],
)
def test_rows_are_signals(graph, X, settings):
    rows = hg.WaveletDenoiser(graph, **settings)
    columns = hg.denoise(graph, X.T, **settings)
    np.testing.assert_array_equal(rows.fit_transform(X), columns.signal.T)
    risk, risk_se = rows.risk(X)
    np.testing.assert_array_equal(risk, columns.risk)
    np.testing.assert_array_equal(risk_se, columns.risk_se)
    assert rows.score(X) == pytest.approx(-np.mean(columns.risk) / N)


@pytest.mark.parametrize(
    "setting",
    [{"method": "sgwt_exact"}, {"method": "sgwt_deep", "rule": "soft"}, {"seed": 5}, {"n_probes": 1}, {"law": "gaussian"}],
)
def test_every_setting_matters(denoiser, X, setting):
    other = clone(denoiser).set_params(**setting)
    assert not np.array_equal(other.fit_transform(X), clone(denoiser).fit_transform(X))


def test_rows_do_not_influence_each_other(denoiser, X):
    fitted = clone(denoiser).fit(X)
    np.testing.assert_array_equal(fitted.transform(X[1:2]), fitted.transform(X)[1:2])


def test_it_denoises(denoiser):
    clean = np.repeat([[0.0, 10.0]], 24, axis=1)
    noisy = clean + np.random.default_rng(1).normal(0, 1, (20, N))
    better = clone(denoiser).fit_transform(noisy)
    assert np.square(better - clean).sum() < 0.9 * np.square(noisy - clean).sum()


# ---- fit and transform ---------------------------------------------------------------------------------------------


def test_fit_returns_itself_and_leaves_settings_alone(graph, X):
    denoiser, before = hg.WaveletDenoiser(graph, sigma=1.0), X.copy()
    settings = denoiser.get_params()
    assert denoiser.fit(X) is denoiser
    assert denoiser.get_params() == settings
    denoiser.transform(X)
    np.testing.assert_array_equal(X, before)


def test_fit_transform_is_fit_then_transform(denoiser, X):
    np.testing.assert_array_equal(clone(denoiser).fit_transform(X), clone(denoiser).fit(X).transform(X))


def test_fit_ignores_targets(denoiser, X):
    np.testing.assert_array_equal(clone(denoiser).fit_transform(X, [0, 1, 0]), clone(denoiser).fit_transform(X))


def test_fitted_attributes(denoiser, X):
    fitted = clone(denoiser).fit(X)
    assert fitted.n_features_in_ == N
    assert fitted.sigma_ == 1.0
    assert fitted.graph_ is fitted.graph
    before = dict(vars(fitted))
    fitted.transform(X[:2]), fitted.score(X), fitted.risk(X)
    assert vars(fitted) == before
    assert [part.shape for part in fitted.risk(X[:2])] == [(2,), (2,)]


def test_sigma_is_estimated_in_fit(graph, X):
    denoiser = hg.WaveletDenoiser(graph)
    rough = np.random.default_rng(2).normal(3, 2, (30, N))
    with pytest.warns(UserWarning, match="sigma was not given; estimated as"):
        denoiser.fit(rough)
    assert denoiser.sigma_ == pytest.approx(2, rel=0.1)
    assert denoiser.sigma_ == pytest.approx(hg.estimate_sigma(graph, rough.T))
    assert denoiser.sigma is None
    expected = hg.denoise(graph, X.T, sigma=denoiser.sigma_).signal.T  # of other rows, with the noise level of fit
    np.testing.assert_array_equal(denoiser.transform(X), expected)


def test_fitting_again_forgets(graph):
    denoiser, rng = hg.WaveletDenoiser(graph), np.random.default_rng(3)
    levels = []
    for sigma in (1.0, 4.0):
        with pytest.warns(UserWarning, match="sigma was"):
            levels.append(denoiser.fit(rng.normal(0, sigma, (20, N))).sigma_)
    assert levels == pytest.approx([1.0, 4.0], rel=0.15)


@pytest.mark.parametrize("integers", [True, False])
def test_lists_and_integers(denoiser, X, integers):
    rows = X.round().astype(int) if integers else X
    np.testing.assert_array_equal(clone(denoiser).fit_transform(rows.tolist()), clone(denoiser).fit_transform(rows.astype(float)))


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_not_fitted(denoiser, X):
    with pytest.raises(NotFittedError, match="not fitted"):
        clone(denoiser).transform(X)


@pytest.mark.parametrize("shape", [(3, N - 1), (N, 3)])
def test_wrong_number_of_columns_in_fit(denoiser, shape):
    with pytest.raises(ValueError, match=rf"expected \(n_signals, {N}\), got .*{shape[0]}, {shape[1]}.*rows are signals here"):
        clone(denoiser).fit(np.ones(shape))


def test_wrong_number_of_columns_in_transform(denoiser, X):
    with pytest.raises(ValueError, match=f"{N - 1} features.*expecting {N}"):
        clone(denoiser).fit(X).transform(X[:, 1:])


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"sigma": -1.0}, "sigma .*positive number"),
        ({"sigma": "loud"}, "sigma .*positive number"),
        ({"sigma": [1.0, 2.0]}, "sigma .*positive number"),
        ({"method": "magic"}, "method must be one of"),
        ({"rule": "magic"}, "rule must be one of"),
        ({"law": "magic"}, "law must be one of"),
        ({"n_probes": 0}, "n_probes must be an integer"),
        ({"seed": -1}, "seed must be an integer"),
    ],
)
def test_settings_are_checked_in_fit(denoiser, X, setting, words):
    with pytest.raises(ValueError, match=words):
        clone(denoiser).set_params(**setting).fit(X)


def test_fit_denoises_nothing(denoiser, X, monkeypatch):
    """Settings are checked, not tried out."""

    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("hushgraph.estimators.sklearn.denoise", never)
    assert clone(denoiser).fit(X).sigma_ == 1.0
    with pytest.raises(AssertionError):
        clone(denoiser).fit(X).transform(X)


def test_constructor_checks_nothing():
    assert hg.WaveletDenoiser("no graph", sigma=-1).sigma == -1


# ---- manners of scikit-learn ---------------------------------------------------------------------------------------


def test_get_and_set_params(graph):
    denoiser = hg.WaveletDenoiser(graph, sigma=2.0, seed=3)
    names = {"graph", "sigma", "method", "rule", "beta", "n_probes", "law", "seed", "nonnegative", "refine"}
    assert set(denoiser.get_params()) == names
    assert denoiser.get_params()["graph"] is graph
    assert denoiser.set_params(sigma=1.5, rule="soft") is denoiser
    assert (denoiser.sigma, denoiser.rule, denoiser.seed) == (1.5, "soft", 3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        denoiser.set_params(depth=3)


def test_clone_is_an_unfitted_twin(denoiser, graph, X):
    fitted = clone(denoiser).set_params(method="sgwt_sure", seed=4).fit(X)
    twin = clone(fitted)
    assert not hasattr(twin, "sigma_")
    assert twin.graph.hash == graph.hash
    assert {**twin.get_params(), "graph": None} == {**fitted.get_params(), "graph": None}
    np.testing.assert_array_equal(twin.fit_transform(X), fitted.transform(X))


def test_pickling(denoiser, X):
    fitted = clone(denoiser).fit(X)
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.transform(X), fitted.transform(X))
    assert twin.sigma_ == fitted.sigma_
    assert twin.graph.hash == fitted.graph.hash


def test_text_form_is_short(denoiser):
    assert "n=48" in repr(denoiser)
    assert len(repr(denoiser)) < 200


def test_pipeline_with_a_scaler(graph, X):
    pipeline = Pipeline([("scale", StandardScaler()), ("denoise", hg.WaveletDenoiser(graph, sigma=0.3))])
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(pipeline.fit_transform(X), hg.denoise(graph, scaled.T, sigma=0.3).signal.T)
    np.testing.assert_array_equal(pipeline.fit(X).transform(X), pipeline.fit_transform(X))
    pipeline.set_params(denoise__sigma=0.6)
    np.testing.assert_array_equal(pipeline.fit_transform(X), hg.denoise(graph, scaled.T, sigma=0.6).signal.T)


def test_pipeline_in_another_unit(denoiser, X):
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows / 10), clone(denoiser).set_params(sigma=0.1))
    np.testing.assert_allclose(10 * pipeline.fit_transform(X), clone(denoiser).fit_transform(X), rtol=1e-9, atol=1e-9)


def test_choosing_a_method_by_its_score(denoiser, X):
    methods = ["sgwt_sure", "sgwt_scaled", "let"]
    rows = np.concatenate([X, X[::-1] + 1])
    search = GridSearchCV(denoiser, {"method": methods}, cv=KFold(2)).fit(rows)
    expected = [
        np.mean([clone(denoiser).set_params(method=method).fit(half).score(half) for half in (rows[:3], rows[3:])])
        for method in methods
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    assert search.best_params_["method"] == methods[int(np.argmax(expected))]
    assert len(set(expected)) == 3


def test_features_in_a_row_without_a_graph(X):
    line = hg.WaveletDenoiser(sigma=1.0, method="sgwt_sure").fit(X)
    assert line.graph is None
    assert line.graph_.hash == hg.datasets.path(N).hash
    expected = hg.denoise(hg.datasets.path(N), X.T, sigma=1.0, method="sgwt_sure").signal.T
    np.testing.assert_array_equal(line.transform(X), expected)


@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_scikit_learn():
    results = check_estimator(hg.WaveletDenoiser(), on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] in ("failed", "xfail")}
    assert failed == {}
    assert sum(result["status"] == "passed" for result in results) >= 40


def test_feature_names(denoiser, X):
    fitted = clone(denoiser).fit(X)
    assert fitted.get_feature_names_out().tolist() == [f"x{i}" for i in range(N)]
    assert fitted.get_feature_names_out([f"node {i}" for i in range(N)])[1] == "node 1"
    with pytest.raises(ValueError, match="input_features should have length equal"):
        fitted.get_feature_names_out(["a"])


# ---- frames of pandas ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(graph):
    return hg.Graph(graph.adjacency, labels=[f"node {i}" for i in range(N)])


def test_names_of_a_data_frame_are_kept(named, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=named.labels, index=["mon", "tue", "wed"])
    denoiser = hg.WaveletDenoiser(named, sigma=1.0).set_output(transform="pandas").fit(frame)
    result = denoiser.transform(frame)
    assert denoiser.get_feature_names_out().tolist() == named.labels.tolist()
    assert result.columns.tolist() == named.labels.tolist()
    assert result.index.tolist() == ["mon", "tue", "wed"]
    np.testing.assert_array_equal(result.to_numpy(), hg.denoise(named, X.T, sigma=1.0).signal.T)
    with pytest.raises(ValueError, match="feature names"):
        denoiser.transform(frame[named.labels[::-1]])


INTEGERS = (np.arange(N)[::-1] * 7 + 1_000_003).tolist()  # as ids of OpenStreetMap are


@pytest.mark.parametrize("labels", [INTEGERS, [f"node {i}" for i in range(N)], [0.5 + i for i in range(N)], None])
def test_columns_of_a_data_frame_are_nodes_in_any_order(graph, X, labels):
    pandas = pytest.importorskip("pandas")
    named, shuffled = hg.Graph(graph.adjacency, labels=labels), np.random.default_rng(0).permutation(N)
    names = np.arange(N) if labels is None else named.labels
    frame = pandas.DataFrame(X[:, shuffled], columns=names[shuffled])
    denoiser = hg.WaveletDenoiser(named, sigma=1.0, method="sgwt_sure").fit(frame)
    expected = hg.denoise(named, X.T, sigma=1.0, method="sgwt_sure")
    np.testing.assert_array_equal(denoiser.transform(frame), expected.signal.T[:, shuffled])
    np.testing.assert_array_equal(denoiser.risk(frame)[0], expected.risk)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sigma was estimated, and that the signal is rough
        assert hg.WaveletDenoiser(named).fit(frame).sigma_ == hg.estimate_sigma(named, X.T)


def test_integer_columns_may_come_in_another_order_after_fit(graph, X):
    pandas = pytest.importorskip("pandas")
    named = hg.Graph(graph.adjacency, labels=INTEGERS)
    frame = pandas.DataFrame(X, columns=INTEGERS)
    denoiser = hg.WaveletDenoiser(named, sigma=1.0, method="sgwt_sure").fit(frame)
    np.testing.assert_array_equal(denoiser.transform(frame[INTEGERS[::-1]]), denoiser.transform(frame)[:, ::-1])


def test_integer_columns_are_text_in_polars(graph, X):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(X, columns=INTEGERS)
    denoiser = hg.WaveletDenoiser(hg.Graph(graph.adjacency, labels=INTEGERS), sigma=1.0, method="sgwt_sure").fit(frame)
    assert denoiser.set_output(transform="polars").transform(frame).columns == list(map(str, INTEGERS))


def test_integer_columns_are_kept(graph, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=INTEGERS, index=["mon", "tue", "wed"])
    denoiser = hg.WaveletDenoiser(hg.Graph(graph.adjacency, labels=INTEGERS), sigma=1.0, method="sgwt_sure").fit(frame)
    expected = pandas.DataFrame(denoiser.transform(frame), columns=INTEGERS, index=frame.index)
    assert denoiser.get_feature_names_out().tolist() == INTEGERS
    denoiser.set_output(transform="pandas")
    for order in (INTEGERS, INTEGERS[::-1]):
        result = denoiser.transform(frame[order])
        assert result.index.tolist() == ["mon", "tue", "wed"]
        np.testing.assert_array_equal(result[INTEGERS], expected)
    np.testing.assert_array_equal(denoiser.fit(frame[INTEGERS[::-1]]).transform(X)[INTEGERS], expected)
    assert denoiser.fit(X).transform(frame[INTEGERS[::-1]]).columns[1] == "x1"
    np.testing.assert_array_equal(denoiser.transform(frame[INTEGERS[::-1]]), expected)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("labels", [INTEGERS, [f"node {i}" for i in range(N)], None])
def test_columns_that_are_no_nodes_are_refused(graph, X, labels):
    pandas = pytest.importorskip("pandas")
    named = hg.Graph(graph.adjacency, labels=labels)
    foreign = [f"elsewhere {i}" for i in range(N)] if labels and isinstance(labels[0], str) else list(range(5, N + 5))
    with pytest.raises(
        ValueError, match=r"labels of the columns of X and graph differ: \d+ nodes have no value .* reindex the columns of X to"
    ):
        hg.WaveletDenoiser(named, sigma=1.0).fit(pandas.DataFrame(X, columns=foreign))
    fitted = hg.WaveletDenoiser(named, sigma=1.0).fit(X)
    with pytest.raises(ValueError, match="labels of the columns of X and graph differ"):
        fitted.transform(pandas.DataFrame(X, columns=foreign))


def test_names_of_columns_where_the_graph_has_none(graph, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(N)])
    for place in (graph, None):
        denoiser = hg.WaveletDenoiser(place, sigma=1.0, method="sgwt_sure")
        np.testing.assert_array_equal(denoiser.fit_transform(frame), denoiser.fit_transform(X))


def test_sigma_by_label(graph, X):
    pandas = pytest.importorskip("pandas")
    named, sigma = hg.Graph(graph.adjacency, labels=INTEGERS), np.linspace(0.5, 1.5, N)
    denoiser = hg.WaveletDenoiser(named, sigma=pandas.Series(sigma, index=INTEGERS)[::-1]).fit(X)
    np.testing.assert_array_equal(denoiser.sigma_, sigma)
