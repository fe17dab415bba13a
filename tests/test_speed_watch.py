"""`benchmarks/speed_watch.py` writes each run to the history and fails when a ratio got worse by more than 15 %."""

import doctest
import json
import runpy
import string
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
WATCH = Path(__file__).parents[1] / "benchmarks" / "speed_watch.py"


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Return a function that adds a run with these seconds of the forward transform to a history; SciPy's are always 1.

    The commits are a, b, c, ...; `rows` are other rows than that one.
    """
    main = runpy.run_path(str(WATCH))["main"]
    names = iter(string.ascii_letters)

    def run(seconds, *more, processor="EPYC", scipy="1.17.1", rows=None, commit=None):
        row = {"graph": "roads", "scipy_forward": 1.0, "forward": seconds}
        report = {"date": "2026-11-18", "machine": {"processor": processor, "threads": 2, "numpy": "2.4.6", "scipy": scipy}}
        report |= {"commit": commit or next(names), "rows": [row] if rows is None else rows}
        (tmp_path / "bench.json").write_text(json.dumps(report))
        words = ["speed_watch.py", "--report", str(tmp_path / "bench.json"), "--history", str(tmp_path / "history.jsonl"), *more]
        monkeypatch.setattr("sys.argv", words)
        return main()

    main.__globals__["draw"] = draw_once(main.__globals__["draw"])
    return run


def draw_once(draw):
    """Return a function that draws a history of four runs, and no other: a drawing takes a second."""
    return lambda history, path: draw(history, path) if len(history) == 4 else None


def statuses(watch, ratios):
    """Return the status of each run of a series of ratios."""
    return [watch(1 / ratio) for ratio in ratios]


def test_a_slower_run_fails_and_names_the_commits(watch, tmp_path, capsys):
    assert [watch(0.10), watch(0.11), watch(0.10)] == [0, 0, 0]
    assert watch(0.13) == 1
    assert "slower: forward on roads: 10.00 -> 7.69 (-23%)" in capsys.readouterr().out
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 4
    assert (tmp_path / "history.svg").stat().st_size > 1000


def test_a_faster_run_is_reported_and_passes(watch, capsys):
    assert [watch(0.10), watch(0.05)] == [0, 0]
    assert "faster: forward on roads" in capsys.readouterr().out


def test_an_accepted_change_is_where_later_runs_begin(watch):
    assert [watch(0.10), watch(0.10), watch(0.13, "--accept", "exact sums"), watch(0.13), watch(0.16)] == [0, 0, 0, 0, 1]


def test_machines_are_not_compared_with_others(watch, capsys):
    assert [watch(0.10), watch(0.30, processor="Xeon")] == [0, 0]
    assert "nothing to compare with: this is the first run on Xeon" in capsys.readouterr().out


def test_versions_of_python_are_the_same_machine(watch):
    assert [watch(0.10, processor="EPYC, Python 3.11.7"), watch(0.30, processor="EPYC, Python 3.11.9")] == [0, 1]


def test_a_run_with_another_scipy_is_compared_with_none(watch):
    """Ratios are those to SciPy; the last digits of versions are not looked at."""
    assert [watch(0.10), watch(0.30, scipy="1.18.0"), watch(0.60, scipy="1.18.1")] == [0, 0, 1]


def test_the_stored_history_names_machines_as_new_entries_do():
    entry = runpy.run_path(str(WATCH))["entry"]
    results = WATCH.parent / "results"
    report = json.loads((results / "bench.json").read_text())
    machines = {json.loads(line)["machine"] for line in (results / "speed_history.jsonl").read_text().splitlines()}
    assert entry(report, "commit")["machine"] in machines


@pytest.mark.parametrize("n_good", [1, 2, 3, 8])
@pytest.mark.parametrize("loss", [0.25, 0.30])
def test_a_regression_fails_until_it_is_accepted(watch, capsys, n_good, loss):
    """Later runs are not compared with runs that failed, however many failed; the commits are those between which the ratio changed."""
    assert statuses(watch, [10.0] * n_good) == [0] * n_good
    capsys.readouterr()
    assert statuses(watch, [10 * (1 - loss)] * 8) == [1] * 8
    commits = f"{string.ascii_letters[n_good - 1]}..{string.ascii_letters[n_good]}"
    assert capsys.readouterr().out.count(f"({-loss:+.0%}), {commits}\n") == 8
    assert watch(1 / (10 * (1 - loss)), "--accept", "exact sums") == 0
    assert statuses(watch, [10 * (1 - loss)] * 3) == [0] * 3


def test_a_regression_that_is_mended_passes(watch):
    assert statuses(watch, [10, 10, 7, 7, 10, 7]) == [0, 0, 1, 1, 0, 1]


def test_small_steps_are_reported_when_their_sum_passes_15_percent(watch, capsys):
    """0.95^3 is a loss of 14.3 %, 0.95^4 one of 18.55 %."""
    assert statuses(watch, [10 * 0.95**k for k in range(5)]) == [0] * 4 + [1]
    assert "slower: forward on roads: 10.00 -> 8.14 (-18%), a..e\n" in capsys.readouterr().out
    assert statuses(watch, [10 * 0.95**k for k in range(5, 9)]) == [1] * 4


def test_small_steps_of_a_ratio_that_is_younger_than_the_first_run_are_reported():
    """Less than 15 % away from the median of the last five runs each time; and the control: the same steps down and up."""

    def runs(factors):
        ratios = [{"forward": 10.0} | ({"inverse": 5.0 * factor} if factor else {}) for factor in factors]
        return [{"date": "d", "commit": str(k), "machine": "m", "ratios": {"roads": one}} for k, one in enumerate(ratios)]

    def reported(history):
        return [k for k in range(1, len(history)) if runpy.run_path(str(WATCH))["changes"](history[:k], history[k])]

    falling = [None, *(0.96**k for k in range(9))]
    assert reported(runs(falling)) == [5, 6, 7, 8, 9]  # 0.96^4 is 0.849
    assert reported(runs([None, *(0.96 ** (k % 3) for k in range(9))])) == []


def test_small_steps_up_are_reported(watch, capsys):
    assert statuses(watch, [10 * 1.05**k for k in range(4)]) == [0] * 4
    assert "faster: forward on roads: 10.00 -> 11.58 (+16%), a..d\n" in capsys.readouterr().out


def test_noise_around_a_baseline_is_no_change(watch, capsys):
    """Two values within 5 % of a ratio are at most 10 % apart: the rule cannot alarm. The control is the same noise around a ratio that fell by 25 %."""
    noise = np.random.default_rng(0).uniform(0.95, 1.05, 40)
    assert not any(statuses(watch, 10 * noise))
    assert capsys.readouterr().out.count("no ratio changed") == 39
    assert all(statuses(watch, 7.5 * noise[:10]))


def test_a_slow_first_run_does_not_hide_a_regression(watch):
    assert statuses(watch, [9, 10, 10, 10, 8]) == [0, 0, 0, 0, 1]


def test_a_ratio_that_is_gone_fails(watch, capsys):
    both = [{"graph": "roads", "scipy_forward": 1.0, "forward": 0.1, "scipy_inverse": 1.0, "inverse": 0.1}]
    one = [{"graph": "roads", "scipy_forward": 1.0, "forward": 0.1}]
    unusable = [both[0] | {"inverse": float("nan")}]
    assert [watch(0, rows=rows) for rows in (both, one, one, unusable, both)] == [0, 1, 1, 1, 0]
    assert capsys.readouterr().out.count("missing: inverse on roads: 10.00 -> not measured, a..b\n") == 3
    assert watch(0, rows=[both[0] | {"graph": "city"}]) == 1
    assert "missing: forward on roads" in capsys.readouterr().out
    assert watch(0, "--accept", "no inverse any more", rows=one) == 0
    assert watch(0, rows=one) == 0


@pytest.mark.parametrize("rows", [[], [{"graph": "roads", "forward": 0.1}]])
def test_a_run_without_ratios_fails_and_is_not_written(watch, tmp_path, capsys, rows):
    assert watch(0, rows=rows) == 1
    assert "which has none; run make bench again" in capsys.readouterr().out
    assert not (tmp_path / "history.jsonl").exists()
    assert watch(0, "--accept", "why not", rows=rows) == 1


def test_two_runs_of_one_commit_are_one_commit(watch, capsys):
    assert [watch(0.10, commit="a"), watch(0.20, commit="a")] == [0, 1]
    assert "(-50%), at a, as before\n" in capsys.readouterr().out


def test_a_truncated_line_is_named_and_kept_until_a_run_is_accepted(watch, tmp_path, capsys):
    history = tmp_path / "history.jsonl"
    assert [watch(0.10), watch(0.10)] == [0, 0]
    lines = history.read_text().splitlines()
    history.write_text(lines[0] + "\n" + lines[1][:60])  # no end of line, too
    assert watch(0.10) == 1
    assert "line 2 of " in capsys.readouterr().out
    assert history.read_text().splitlines()[:2] == [lines[0], lines[1][:60]]
    assert watch(0.15) == 1
    assert "slower: " in capsys.readouterr().out
    assert [watch(0.10, "--accept", "a truncated line"), watch(0.10)] == [0, 0]
    assert len([json.loads(line) for line in history.read_text().splitlines()]) == 5


@pytest.mark.parametrize(
    "line",
    [
        "7",
        "{}",
        '{"date": "2026-01-01", "commit": 1, "machine": "m", "ratios": {}}',
        '{"date": 1, "commit": 2, "machine": 3, "ratios": {"roads": {"forward": null}}}',
        "<<<<<<< HEAD",
    ],
)
def test_a_line_that_is_no_run_is_named(watch, tmp_path, capsys, line):
    (tmp_path / "history.jsonl").write_text(line + "\n")
    assert watch(0.10) == 1
    assert "line 1 of " in capsys.readouterr().out


def test_a_history_whose_last_line_has_no_end_is_read(watch, tmp_path):
    assert watch(0.10) == 0
    history = tmp_path / "history.jsonl"
    history.write_text(history.read_text().rstrip("\n"))
    assert [watch(0.10), watch(0.20)] == [0, 1]
    assert len([json.loads(line) for line in history.read_text().splitlines()]) == 3


def test_a_history_that_cannot_be_replaced_is_as_before(watch, tmp_path, monkeypatch):
    assert watch(0.10) == 0
    before = (tmp_path / "history.jsonl").read_bytes()

    usual = Path.write_text

    def full(self, text, **options):
        if self.suffix != ".jsonl":
            return usual(self, text, **options)
        usual(self, text[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        watch(0.10)
    assert (tmp_path / "history.jsonl").read_bytes() == before


def test_examples():
    names = runpy.run_path(str(WATCH))
    tests = doctest.DocTestFinder().find(names["changes"], "changes", globs=names)
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).failed for test in tests) == 0
    assert runner.tries > 0
