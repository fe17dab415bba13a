"""The figures of Monte-Carlo weights and of SURE, on a generated city.

Probes are functions of their seeds, so every run of these tests gives the same numbers. Bounds on statistical fields are those of
two-sided z-tests with the false-alarm rate stated where they stand, had the seeds been drawn.
"""

import csv
import json

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph.experiments import fig_sure, fig_weights
from hushgraph.experiments.cells import Cells
from hushgraph.experiments.stage import Stage
from hushgraph.wavelets.monte_carlo import probes
from hushgraph.wavelets.shrinkage import james_stein
from hushgraph.wavelets.transform import forward

pytest.importorskip("matplotlib")

FALSE_ALARM = 1e-6
FIELDS = {
    fig_weights: ["panel", "law", "n_probes", "base", "plateau", "mse", "mse_se", "predicted", "floor"],
    fig_sure: [
        *("law", "n_probes", "mean", "low", "high", "exact", "predicted_low", "predicted_high"),
        *("blackbox_mean", "blackbox_low", "blackbox_high", "true_error_coefficients", "true_error_signal"),
    ],
}
N_ROWS = {fig_weights: 2 * 3 + 2 * 12, fig_sure: 2 * 3}
EXPERIMENTS = pytest.mark.parametrize("experiment", [fig_weights, fig_sure], ids=lambda module: module.NAME)


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    return Stage(folder, Cells(folder / "cells"), smoke=True)


@pytest.fixture(scope="module")
def rows(stage):
    return {experiment: experiment.run(stage) for experiment in FIELDS}


def is_rejected(z):
    return 2 * stats.norm.sf(abs(z)) < FALSE_ALARM


# ---- both -------------------------------------------------------------------------------------------------------


@EXPERIMENTS
def test_rows_are_complete_and_finite(rows, experiment):
    assert len(rows[experiment]) == N_ROWS[experiment]
    for row in rows[experiment]:
        assert set(FIELDS[experiment]) <= set(row)
        assert all(np.isfinite(value) for value in row.values() if not isinstance(value, str))
    assert json.loads(json.dumps(rows[experiment])) == rows[experiment]


@EXPERIMENTS
def test_a_second_run_computes_nothing(stage, rows, experiment):
    again = Stage(stage.folder, Cells(stage.folder / "cells"), smoke=True)
    assert experiment.run(again) == rows[experiment]
    assert again.cells.computed == 0


@EXPERIMENTS
def test_a_lost_cell_comes_back_the_same(stage, rows, experiment):
    """Negative control of the counter, and of cells that would depend on one another."""
    lost = next((stage.folder / "cells").glob(f"{experiment.NAME}*gaussian*.json"))
    lost.unlink()
    again = Stage(stage.folder, Cells(stage.folder / "cells"), smoke=True)
    assert experiment.run(again) == rows[experiment]
    assert again.cells.computed == 1


@EXPERIMENTS
def test_render_writes_its_files(rows, experiment, tmp_path):
    paths = experiment.render(rows[experiment], tmp_path)
    assert [path.name for path in paths] == [experiment.NAME + ending for ending in (".csv", ".md", ".png", ".pdf")]
    table, text, png, pdf = paths
    with table.open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows[experiment])
    assert text.read_text(encoding="utf-8").startswith(f"## {experiment.TITLE}\n\nData: ")
    assert "nan" not in text.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert pdf.read_bytes().startswith(b"%PDF")


# ---- weights ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(stage):
    return hg.chebyshev_frame(stage.manhattan.graph)


def paired(rows, **wanted):
    """Rademacher's and Gaussian's rows of the same setting."""
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return zip(*([row for row in rows if row["law"] == law] for law in fig_weights.LAWS), strict=True)


def test_predicted_error_is_proposition_1_of_the_dense_transform(stage, rows, frame):
    """V = 0 and 2 from the fourth and second powers of all entries, without the shortcuts of the experiment."""
    W = hg.as_linear_operator(frame) @ np.eye(frame.graph.n)
    own, fourth = np.sum(W**2, axis=1), np.sum(W**4, axis=1)
    floor = np.mean((own - hg.exact_weights(hg.exact_frame(frame.graph)).ravel()) ** 2)
    single = {"rademacher": np.mean(2 * own**2 - 2 * fourth), "gaussian": np.mean(2 * own**2)}
    for row in rows[fig_weights]:
        if row["panel"] == "probes":
            assert row["floor"] == pytest.approx(floor, rel=1e-9)
            assert row["predicted"] == pytest.approx(single[row["law"]] / row["n_probes"] + floor, rel=1e-9)


def test_rademacher_is_below_gaussian_by_the_predicted_ratio(rows):
    for one, other in paired(rows[fig_weights]):
        assert one["mse"] < other["mse"]
        assert one["predicted"] < other["predicted"]
    ratios = [other["variance"] / one["variance"] for one, other in paired(rows[fig_weights], panel="probes")]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-12), "without the floor it is the same for every N"


@pytest.mark.statistics
def test_measured_errors_are_the_predicted_ones(stage, rows, frame):
    """200 repetitions of N = 5: z-tests of rate 1e-6 each. Negative control: the other law's prediction is rejected."""
    known = fig_weights._moments(stage, frame)
    predicted = {row["law"]: row["predicted"] for row in rows[fig_weights] if row["panel"] == "probes" and row["n_probes"] == 5}
    for law, other in (fig_weights.LAWS, fig_weights.LAWS[::-1]):
        errors = np.ravel(fig_weights._errors(frame, known, law, (5,), 200)["exact"])
        assert not is_rejected((errors.mean() - predicted[law]) / stats.sem(errors))
        assert is_rejected((errors.mean() - predicted[other]) / stats.sem(errors))


def test_weights_of_n_probes_are_those_of_the_library(frame, stage):
    known = fig_weights._moments(stage, frame)
    errors = fig_weights._errors(frame, known, "gaussian", (2, 7), 2)["exact"]
    for seed in range(2):
        for position, size in enumerate((2, 7)):
            weights = hg.monte_carlo_weights(frame, n_probes=size, law="gaussian", seed=seed)
            assert errors[seed][position] == pytest.approx(np.mean((weights - known["exact"]) ** 2), rel=1e-12)


# ---- SURE -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy(stage):
    return stage.manhattan.signal + np.random.default_rng(fig_sure.NOISE_SEED).standard_normal(stage.manhattan.graph.n)


def test_the_threshold_is_the_best_for_the_signal(stage, rows, frame, noisy):
    F, truth, t = hg.analyze(frame, noisy), stage.manhattan.signal, rows[fig_sure][0]["threshold"]
    errors = [np.sum((hg.synthesize(frame, james_stein(F, u)[0]) - truth) ** 2) for u in [t, *np.linspace(0, 5, 401)]]
    assert errors[0] == pytest.approx(rows[fig_sure][0]["true_error_signal"], rel=1e-12)
    assert errors[0] <= min(errors) * (1 + 1e-6)


def test_exact_values_are_those_of_the_library(rows, frame, noisy):
    row, F = rows[fig_sure][0], hg.analyze(frame, noisy)
    weights = hg.exact_weights(frame)
    assert row["exact"] == pytest.approx(hg.sure(F, row["threshold"], weights=weights, sigma=1.0), rel=1e-10)
    value, slope = james_stein(F, row["threshold"])
    signal = hg.signal_sure(noisy, hg.synthesize(frame, value), divergence=np.sum(weights * slope), sigma=1.0)
    assert row["blackbox_exact"] == pytest.approx(signal, rel=1e-10)


def test_predicted_band_is_proposition_2(rows, frame, noisy):
    F = hg.analyze(frame, noisy)
    for row in rows[fig_sure]:
        variance = hg.sure_variance(frame, F, row["threshold"], sigma=1.0, n_probes=row["n_probes"], law=row["law"])
        width = 2 * stats.norm.ppf(0.975) * np.sqrt(variance)
        assert row["predicted_high"] - row["predicted_low"] == pytest.approx(width, rel=1e-9)
        assert row["predicted_high"] + row["predicted_low"] == pytest.approx(2 * row["exact"], rel=1e-12)
    one, other = next(paired(rows[fig_sure]))
    assert other["predicted_deviation"] > 1.5 * one["predicted_deviation"]


@pytest.mark.statistics
def test_single_probes_have_the_predicted_mean_and_variance(rows, frame, noisy):
    """2,000 probes: z-tests of rate 1e-6. Negative controls: the other law's variance, and a mean 5 % off."""
    row = rows[fig_sure][0]
    slope = james_stein(hg.analyze(frame, noisy), row["threshold"])[1]
    divergence = np.sum(hg.exact_weights(frame) * slope)
    deviation = {law: next(row for row in rows[fig_sure] if row["law"] == law)["single_predicted"] for law in fig_sure.LAWS}
    for law, other in (fig_sure.LAWS, fig_sure.LAWS[::-1]):
        draws = 2 * np.sum(slope * forward(frame, probes(frame.graph.n, 2000, law=law, seed=9)) ** 2, axis=(1, 2))
        squares = (draws - draws.mean()) ** 2
        assert not is_rejected((draws.mean() - 2 * divergence) / stats.sem(draws))
        assert is_rejected((draws.mean() - 2.1 * divergence) / stats.sem(draws))
        assert not is_rejected((squares.mean() - deviation[law] ** 2) / stats.sem(squares))
        assert is_rejected((squares.mean() - deviation[other] ** 2) / stats.sem(squares))


def test_divergences_are_those_of_the_library(rows, frame, noisy):
    """Weights times slopes, and the black box; the two differ by the few thresholds that lie within a step."""
    t = rows[fig_sure][0]["threshold"]
    slope = james_stein(hg.analyze(frame, noisy), t)[1]
    found = fig_sure._divergences(frame, noisy, t, "rademacher", (3, 5), 2)

    def estimate(signal):
        return hg.synthesize(frame, james_stein(hg.analyze(frame, signal), t)[0])

    for seed in range(2):
        for position, size in enumerate((3, 5)):
            by_weights = np.sum(hg.monte_carlo_weights(frame, n_probes=size, seed=seed) * slope)
            assert found["weights"][seed][position] == pytest.approx(by_weights, rel=1e-12)
            by_box = hg.monte_carlo_divergence(estimate, noisy, n_probes=size, sigma=1.0, seed=seed)[0]
            assert found["black_box"][seed][position] == pytest.approx(by_box, rel=1e-9)
            assert by_box == pytest.approx(by_weights, rel=0.02)


def test_the_signal_s_error_is_the_smaller_one(rows):
    """What the paper calls the error of the signal is that of its coefficients."""
    assert rows[fig_sure][0]["true_error_signal"] < rows[fig_sure][0]["true_error_coefficients"]
    assert rows[fig_sure][0]["blackbox_exact"] < rows[fig_sure][0]["exact"]
