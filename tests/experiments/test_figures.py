"""The experiments on frames, on generated data: their rows are whole, come back from their cells, are drawn; corrections hold."""

import csv
import math

import numpy as np
import pytest

from hushgraph.experiments import corrections, fig_decay, fig_partition, fig_plateaus
from hushgraph.experiments.cells import Cells
from hushgraph.experiments.stage import Stage
from hushgraph.wavelets.frame import exact_frame
from hushgraph.wavelets.transform import as_linear_operator

EXPERIMENTS = (fig_plateaus, fig_partition, fig_decay, corrections)
FIGURES = EXPERIMENTS[:3]
SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(scope="module")
def rows(folder):
    """Rows of every experiment, by name."""
    stage = Stage(folder, Cells(folder / "cells"), smoke=True)
    return {experiment.NAME: experiment.run(stage) for experiment in EXPERIMENTS}


def plain(value):
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


# ---- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.NAME)
def test_rows_are_plain_finite_values(rows, experiment):
    assert rows[experiment.NAME]
    bad = [(name, value) for row in rows[experiment.NAME] for name, value in row.items() if not plain(value)]
    assert not bad


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.NAME)
def test_a_second_run_computes_nothing_and_finds_the_same(rows, folder, experiment):
    cells = Cells(folder / "cells")
    assert experiment.run(Stage(folder, cells, smoke=True)) == rows[experiment.NAME]
    assert cells.computed == 0


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.NAME)
def test_files_are_written(rows, tmp_path, experiment):
    endings = [".csv", ".md", *(SIGNATURES if experiment in FIGURES else [])]
    written = experiment.render(rows[experiment.NAME], tmp_path)
    assert written == [tmp_path / f"{experiment.NAME}{ending}" for ending in endings]
    for path in written[2:]:
        assert path.read_bytes().startswith(SIGNATURES[path.suffix])
    with written[0].open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(rows[experiment.NAME])
    text = written[1].read_text(encoding="utf-8")
    assert text.startswith(f"## {experiment.TITLE}\n")
    widths = {line.replace(r"\|", "").count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1, "every line of the table needs the same number of cells"


# ---- each of them -----------------------------------------------------------------------------------------------------


def test_plateaus_sum_to_one_except_with_the_papers_c(rows):
    sums = [row for row in rows["fig-plateaus"] if row["panel"] == "sums"]
    assert len(sums) == 61 == len(rows["fig-plateaus"]) - len(sums)
    assert max(abs(row["c = 1 - 1/b"]) for row in sums) < 1e-14
    assert max(abs(row["c = 1"]) for row in sums) > 0.05


def test_every_plateau_but_the_papers_c_is_one_up_to_half(rows):
    low = [row for row in rows["fig-plateaus"] if row["panel"] == "plateaus" and row["x"] <= 0.5]
    assert all(row[name] == pytest.approx(1, abs=1e-12) for row in low for name in ("linear", "smooth", "c3", "meyer"))
    assert low[-1]["smooth_c1"] == pytest.approx(0.5)


def test_partition_adds_up_and_counts_every_eigenvalue(rows):
    kinds = {kind: [row for row in rows["fig-partition"] if row["kind"] == kind] for kind in ("bands", "density", "defect")}
    assert [len(kinds[kind]) for kind in kinds] == [200, fig_partition.BINS, 4 * len(fig_partition.DEGREES) * 2]
    for row in kinds["bands"]:
        assert sum(value for name, value in row.items() if name.startswith("psi_")) == pytest.approx(1, abs=1e-14)
    assert sum(row["eigenvalues"] for row in kinds["density"]) == kinds["density"][0]["nodes"]
    assert all(row["defect_at_eigenvalues"] <= row["defect"] + 1e-12 for row in kinds["defect"])


def test_wavelets_decay(rows):
    found = rows["fig-decay"]
    assert len(found) % (len(fig_decay.PLATEAUS) * (1 + len(fig_decay.DEGREES))) == 0
    assert all(0 <= row["mean"] <= row["largest"] * (1 + 1e-12) <= 1 + 1e-9 for row in found)
    last = max(row["hops"] for row in found)
    assert all(row["largest"] < 0.02 for row in found if row["hops"] == last and row["frame"] == "exact")


def test_polynomials_end_at_their_degree(folder, monkeypatch):
    monkeypatch.setattr(fig_decay, "DEGREES", (5, 7))
    found = fig_decay.run(Stage(folder, Cells(folder / "cells"), smoke=True))
    for degree in fig_decay.DEGREES:
        sizes = {row["hops"]: row["largest"] for row in found if row["frame"] == f"degree {degree}"}
        assert sizes[degree] > 0, "at its degree a polynomial still reaches"
        assert [size for h, size in sizes.items() if h > degree] == [0.0] * (max(sizes) - degree)
    assert all(row["largest"] > 0 for row in found if row["frame"] == "exact"), "negative control: exact wavelets do not end"


def test_reach_is_the_first_hop_of_the_tail():
    sizes = [1.0, 0.005, 0.02, 0.004, 0.001]  # below the level at 1 already, but not for good
    rows = [{"hops": h, "largest": size} for h, size in enumerate(sizes)]
    assert [fig_decay.reach(rows, level) for level in (0.5, 0.01, 1e-4)] == [1, 3, None]


# ---- corrections ------------------------------------------------------------------------------------------------------

HOLD_AS_PRINTED = {("i = j", "Proposition 1"), ("four indices", "Proposition 2"), ("exact frame", "constant of SURE"),
                   ("c = 0.5", "h_c as a plateau"), ("at epsilon = 1 ", "classical"),
                   ("distinct places", "sensitivity")}  # fmt: skip


def test_every_correction_agrees_with_what_was_measured(rows):
    assert [row["quantity"] for row in rows["corrections"] if not row["agrees"]] == []
    assert len(rows["corrections"]) == 18


def test_what_is_printed_holds_only_where_we_say_so(rows):
    for row in rows["corrections"]:
        expected = any(part in row["quantity"] and row["correction"].startswith(name) for part, name in HOLD_AS_PRINTED)
        assert row["printed_agrees"] == expected, row["quantity"]


def test_a_wrong_formula_does_not_agree(rows):
    """Negative control: each right value 10 % off (where the noise is drawn: 10 standard errors) is rejected."""
    for row in rows["corrections"]:
        wrong = row["right"] + max(0.1 * abs(row["right"]), 10 * row["standard_error"], 1e-3 if row["right"] == 0 else 0)
        assert not corrections.agree(wrong, row["measured"], row["standard_error"], row["tolerance"]), row["quantity"]


def test_agreement_can_be_one_sided():
    assert corrections.agree(1.0, 0.5, claim="at most")
    assert not corrections.agree(1.0, 1.5, claim="at most")
    assert corrections.agree(1.0, 1.5, claim="at least")
    assert not corrections.agree(1.0, 0.5)
    assert corrections.agree(1.0, 0.5, error=0.2)


def test_corrected_variance_holds_for_all_pairs_and_the_printed_one_on_the_diagonal():
    frame = exact_frame(corrections.seven_nodes())
    W, bands = as_linear_operator(frame) @ np.eye(7), corrections.all_transforms(frame)
    measured = np.var(bands[:, :, None] * bands[:, None, :], axis=0)
    np.testing.assert_allclose(corrections.corrected_variance(W), measured, atol=1e-13)
    printed = corrections.printed_variance(W)
    np.testing.assert_allclose(np.diag(printed), np.diag(measured), atol=1e-13)
    assert np.abs(printed - measured).max() > 0.1


def test_four_indices_as_a_plain_loop():
    rng = np.random.default_rng(1)
    W, J = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    total, pairs = 0.0, [(p, q) for p in range(2) for q in range(2) if p != q]
    for i, j, k, m in np.ndindex(3, 3, 3, 3):
        bracket = sum(W[i, p] * W[j, q] * (W[k, p] * W[m, q] + W[k, q] * W[m, p]) for p, q in pairs)
        total += J[i, j] * J[m, k] * bracket
    assert corrections.four_indices(W, J) == pytest.approx(total, rel=1e-12)
