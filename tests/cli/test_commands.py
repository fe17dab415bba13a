"""The command line: every command good and bad, one JSON object, exit codes, Ctrl-C, and nothing private in any word."""

import contextlib
import csv
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hushgraph as hg
from hushgraph.cli import graph_options as graph_reading, options
from hushgraph.cli.event_options import window_edges
from hushgraph.cli.failures import sentence_of
from hushgraph.cli.version import optional_parts
from hushgraph.estimators.methods import METHODS, MethodName
from hushgraph.files.graphs import write_graph
from hushgraph.files.signals import read_signal, write_signal
from hushgraph.graphs import node_names
from hushgraph.graphs.construction import Duplicates
from hushgraph.privacy import read_release
from hushgraph.privacy.calibration import Mechanism
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.sensitivity import Adjacency

from .commands import answer, good, run

pytest.importorskip("pandas")
SIGMA = 2.0


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A small city with files of everything a command reads."""
    folder = tmp_path_factory.mktemp("town")
    graph = hg.datasets.city(120)
    clean = hg.hotspot_counts(graph, total=1200)
    noisy = clean + np.random.default_rng(0).normal(0, SIGMA, graph.n)
    write_graph(folder / "streets.npz", graph)
    write_signal(folder / "noisy.csv", graph, noisy)
    write_signal(folder / "hours.csv", graph, {"six": noisy, "seven": noisy[::-1]})
    trips = hg.datasets.trips(graph, n_people=100)
    with (folder / "trips.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(trips)
        writer.writerows(zip(*trips.values(), strict=True))
    return SimpleNamespace(
        folder=folder, graph=graph, noisy=noisy, streets=folder / "streets.npz", signal=folder / "noisy.csv",
        hours=folder / "hours.csv", trips=folder / "trips.csv",
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6)
    return path


def releasing(town, ledger, out, *more, events=None, epsilon=0.5):
    return (
        "release", town.streets, events or town.trips, "--ledger", ledger, "--epsilon", epsilon, "--max-nodes", 2, "--max-per-node", 1,
        "--max-distance", 200, "--public-graph", "--method", "sgwt_sure", "-o", out, *more,
    )  # fmt: skip


# ---- the whole ---------------------------------------------------------------------------------------------------------

COMMANDS = [
    ["denoise"], ["info"], ["plan-release"], ["release"], ["budget", "create"], ["budget", "show"], ["budget", "renew"], ["explore"],
    ["demo"], ["sample"], ["reproduce"], ["bench"], ["series"], ["compare"], ["export"], ["check"], ["verify"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_json_and_quiet(command):
    text = good(*command, "--help").stdout
    for word in ("Example: hushgraph", "--json", *(["--quiet"] if command != ["check"] else [])):
        assert word in " ".join(text.split())
    assert "<bool>" not in text
    assert not re.search(r"--\S+\s+<list\[(Path|float|str)\]>", text)
    assert good(*command, "-h").stdout == text


def test_version_and_exit_codes_are_told():
    first, second, *parts = good("--version").stdout.splitlines()
    assert first == f"hushgraph {hg.__version__}"
    assert re.search(r"loops compiled by (GCC|Clang) \d+.*; \d+ threads$", second)
    assert "optional parts installed: plot" in parts[0]
    assert "3 the privacy budget refuses" in " ".join(good("--help").stdout.split())


def test_the_parts_of_the_version_are_all_extras_but_those_for_developers():
    """An extra is no part if it only joins others or needs a tool of developers; a new extra of this kind is noticed here."""
    tools = {"sphinx", "pytest", "moto", "playwright", "ruff"}
    lines = metadata.requires("hushgraph")
    for extra in metadata.metadata("hushgraph").get_all("Provides-Extra"):
        packages = {re.match(r"[\w-]+", line)[0] for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)} - {
            "hushgraph"
        }
        assert (extra in optional_parts()) == bool(packages and not packages & tools), extra


def test_unknown_words_are_usage_errors():
    for wrong in (["dance"], ["info"], ["denoise", "a", "b"], ["info", "a", "--colour"], ["bench", "--nodes", "many"]):
        assert run(*wrong).exit_code == 2


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        (["denoze"], "denoise"),
        (["budget", "shwo"], "show"),
        (["info", "a", "--wieght", "b"], "--weight"),
        (["bench", "--nods", 9], "--nodes"),
    ],
)
def test_typing_errors_are_answered_with_near_names(wrong, near):
    failed = run(*wrong)
    assert failed.exit_code == 2
    assert near in failed.stderr


def test_usage_errors_are_json_too():
    failed = run("info", "a", "--colour", "--json")
    assert json.loads(failed.stdout) == {"command": "info", "error": "No such option: --colour", "exit_code": 2}
    assert failed.exit_code == 2
    assert run("info", "a", "--colour").stdout == ""


def test_help_imports_nothing_heavy():
    code = (
        "import sys, json, hushgraph.cli; print(json.dumps([m for m in ('numpy', 'scipy', 'pandas', 'rich') if m in sys.modules]))"
    )
    assert json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) == []


def test_choices_are_those_of_the_library():
    pairs = (
        (options.Method, MethodName),
        (options.Adjacency, Adjacency),
        (options.Mechanism, Mechanism),
        (graph_reading.Duplicates, Duplicates),
    )
    for ours, theirs in pairs:
        assert [choice.value for choice in ours] == list(get_args(theirs))
    assert list(METHODS) == list(get_args(MethodName))


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hushgraph re", ["release", "reproduce"]),
        ("hushgraph denoise a b --method sgwt_s", ["sgwt_sure", "sgwt_scaled"]),
        ("hushgraph denoise a b --missing d", ["drop"]),
        ("hushgraph reproduce table-nyc table-s", ["table-sf", "table-sf-dpw"]),
        ("hushgraph denoise st", []),  # the shell offers names of files then
        ("hushgraph denoise a b -o st", []),
    ],
)
def test_shells_complete(typed, offered):
    number = str(len(typed.split()) - 1)
    environment = {**os.environ, "_HUSHGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": number}
    code = "from hushgraph.cli import app; app(prog_name='hushgraph')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == offered


def test_the_shell_offers_files_where_nothing_else_fits():
    from typer.completion import get_completion_script

    assert "complete -o default" in get_completion_script(prog_name="hushgraph", complete_var="_HUSHGRAPH_COMPLETE", shell="bash")


# ---- denoise -----------------------------------------------------------------------------------------------------------


def test_denoise_writes_what_the_library_computes(town, tmp_path):
    out = tmp_path / "new" / "clean.csv"
    done = good("denoise", town.streets, town.signal, "--sigma", SIGMA, "--nonnegative", "-o", out)
    expected = hg.denoise(town.graph, town.noisy, sigma=SIGMA, nonnegative=True)
    found = read_signal(out, town.graph, columns=["denoised", "expected_error"])
    np.testing.assert_allclose(found[:, 0], expected.signal, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], expected.expected_error(), rtol=1e-12)
    assert str(out) in done.stdout
    assert f"{town.graph.n} nodes" in done.stdout
    assert list(out.parent.iterdir()) == [out]


def test_denoise_json_keys_are_stable(town, tmp_path):
    found = answer("denoise", town.streets, town.signal, "--method", "sgwt_sure", "-o", tmp_path / "clean.csv")
    assert list(found) == [
        "command", "output", "report", "picture", "nodes", "edges", "signals", "method", "sigma", "risk", "risk_se", "typical_error",
        "typical_error_is_bound", "typical_error_is_known", "interval", "guides", "seconds", "notes",
    ]  # fmt: skip
    assert any("sigma was not given" in note for note in found["notes"])
    assert found["typical_error"][0] < found["sigma"]


def square_around(graph, share):
    """A GeoJSON polygon around the places in the south-west of a graph."""
    low, high = graph.coords.min(axis=0), graph.coords.max(axis=0)
    (x0, y0), (x1, y1) = low - 1, low + share * (high - low) + 1
    ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]
    return {"type": "Feature", "properties": {"name": f"{share:.0%}"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def test_denoise_writes_totals_of_regions(town, tmp_path):
    zones, table = tmp_path / "zones.geojson", tmp_path / "zones.csv"
    zones.write_text(json.dumps({"type": "FeatureCollection", "features": [square_around(town.graph, s) for s in (0.5, 1.0)]}))
    words = ("denoise", town.streets, town.signal, "--sigma", SIGMA, "--nonnegative", "--method", "let")
    done = good(*words, "--regions", zones, "-o", tmp_path / "a" / "clean.csv")
    assert "90 % interval" in done.stdout
    assert "50%" in done.stdout
    with (tmp_path / "a" / "clean_regions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = hg.denoise(town.graph, town.noisy, sigma=SIGMA, nonnegative=True, method="let").totals({"100%": range(town.graph.n)})
    assert [row["region"] for row in rows] == ["50%", "100%"]
    assert float(rows[1]["total"]) == pytest.approx(expected.value[0], rel=1e-9)
    assert int(rows[1]["nodes"]) == town.graph.n
    labels = node_names(town.graph)
    table.write_text("node,region\n" + "".join(f"{label},{'west' if k % 2 else ''}\n" for k, label in enumerate(labels)))
    found = answer(*words, "--regions", table, "-o", tmp_path / "b" / "clean.csv")
    half = answer(*words, "--regions", table, "--interval", 0.5, "-o", tmp_path / "c" / "clean.csv")
    assert (found["totals_level"], half["totals_level"]) == (0.9, 0.5)
    assert half["totals"]["upper"][0] < found["totals"]["upper"][0]
    assert found["totals"]["region"] == ["west"]
    assert found["totals"]["nodes"] == [town.graph.n // 2]


def test_regions_that_cannot_be_used_are_refused_before_any_work(town, tmp_path):
    words = ("denoise", town.streets, town.signal, "--sigma", SIGMA)
    text = tmp_path / "zones.txt"
    text.write_text("")
    assert ".geojson" in run(*words, "--regions", text, "-o", tmp_path / "a.csv").stderr
    table = tmp_path / "zones.csv"
    table.write_text("node,region\n")
    (tmp_path / "a_regions.csv").write_text("mine")
    assert "exists already" in run(*words, "--regions", table, "-o", tmp_path / "a.csv").stderr
    table.rename(tmp_path / "b_regions.csv")
    assert (
        "also the file of regions"
        in run(*words, "--regions", tmp_path / "b_regions.csv", "-o", tmp_path / "b.csv", "--force").stderr
    )
    assert (tmp_path / "a_regions.csv").read_text() == "mine"
    assert not (tmp_path / "a.csv").exists()


def test_an_error_that_drowns_is_a_bound(town, tmp_path):
    """A smooth signal under strong noise: its risk is smaller than its own standard error, and no error is 0."""
    smooth = hg.smooth_signal(town.graph) + np.random.default_rng(1).normal(0, 50, town.graph.n)
    write_signal(tmp_path / "smooth.csv", town.graph, smooth)
    result = hg.denoise(town.graph, smooth, sigma=50)
    assert result.risk < result.risk_se
    words = ("denoise", town.streets, tmp_path / "smooth.csv", "--sigma", 50)
    found = answer(*words, "-o", tmp_path / "a.csv")
    assert found["typical_error_is_bound"] == [True]
    assert found["typical_error"][0] == pytest.approx(np.sqrt((max(result.risk, 0) + result.risk_se) / town.graph.n))
    told = good(*words, "-o", tmp_path / "b.csv", "--report", tmp_path / "b.html").stdout
    assert "an error below" in told
    page = (tmp_path / "b.html").read_text()
    assert "below ±" in page
    assert "± 0<" not in page
    assert "100%" not in page.partition("What was done")[0].partition("<body")[2]


def test_denoise_several_columns_and_arrays(town, tmp_path):
    both = answer(
        "denoise", town.streets, town.hours, "--column", "six", "--column", "seven", "--sigma", 2, "-o", tmp_path / "a.csv"
    )
    assert both["signals"] == ["six", "seven"]
    all_of_them = (
        "denoise",
        town.streets,
        town.hours,
        "--sigma",
        2,
        "--in-sequence",
        "--method",
        "sgwt_sure",
        "-o",
        tmp_path / "b.csv",
    )
    assert answer(*all_of_them)["signals"] == ["six", "seven"]
    assert (tmp_path / "b.csv").read_text().startswith("node,six,seven,six_expected_error,seven_expected_error\n")
    assert len(both["risk"]) == 2
    answer("denoise", town.streets, town.hours, "--column", "six", "--sigma", 2, "--method", "sgwt_sure", "-o", tmp_path / "a.npy")
    expected = hg.denoise(town.graph, town.noisy, sigma=2, method="sgwt_sure").signal
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), expected, rtol=1e-12)


@pytest.mark.parametrize("missing", ["drop", "fill"])
def test_a_typical_error_is_that_of_values_not_of_nodes(town, tmp_path, missing):
    """Eight hours of a town with gaps, denoised together: the risk is the sum over all values that are there."""
    hours = hg.hotspot_counts(town.graph, total=1200)[:, None] + np.random.default_rng(3).normal(0, SIGMA, (town.graph.n, 8))
    hours[::7, 2] = np.nan
    write_signal(tmp_path / "day.csv", town.graph, {f"h{k}": hour for k, hour in enumerate(hours.T)})
    words = (
        "denoise",
        town.streets,
        tmp_path / "day.csv",
        "--sigma",
        SIGMA,
        "--in-sequence",
        "--missing",
        missing,
        "--method",
        "let",
    )
    found = answer(*words, "-o", tmp_path / "a.csv", "--report", tmp_path / "a.html")
    values = int((~np.isnan(hours)).sum())
    assert found["typical_error_is_known"] == [True]
    assert found["typical_error"][0] == pytest.approx(np.sqrt(found["risk"][0] / values), rel=1e-9)
    assert f"± {found['typical_error'][0]:.3g}" in (tmp_path / "a.html").read_text()


def test_a_gap_in_one_column_takes_the_node_out_of_all(town, tmp_path):
    hours = np.stack([town.noisy] * 3, axis=1)
    hours[::3, 1] = np.nan
    result = hg.denoise(town.graph, hours, sigma=SIGMA, missing="drop", method="sgwt_sure")
    kept = int((~np.isnan(hours[:, 1])).sum())
    assert result.n_values == kept
    assert result.typical_error.size == pytest.approx(np.sqrt(np.sum(result.risk) / (3 * kept)))
    page = hg.write_report(tmp_path / "a.html", town.graph, hours, result).read_text()
    assert f"± {result.typical_error.size:.3g}" in page


def test_a_column_is_not_overwritten_by_an_expected_error(town, tmp_path):
    write_signal(tmp_path / "a.csv", town.graph, {"a": town.noisy, "a_expected_error": town.noisy + 1})
    words = denoising(town, tmp_path / "a.csv", tmp_path / "b.csv", "--column", "a", "--column", "a_expected_error")
    done = run(*words)
    assert done.exit_code != 0
    assert "two columns called a_expected_error" in done.output
    assert not (tmp_path / "b.csv").exists()


def test_intervals_are_written_and_explained(town, tmp_path):
    out = tmp_path / "clean.csv"
    words = ("denoise", town.streets, town.signal, "--sigma", SIGMA, "--interval", 0.8)
    done = good(*words, "-o", out)
    expected = hg.denoise(town.graph, town.noisy, sigma=SIGMA)
    assert out.read_text().startswith("node,denoised,expected_error,lower,upper\n")
    found = read_signal(out, town.graph, columns=["lower", "upper"])
    np.testing.assert_allclose(found.T, expected.interval(0.8), rtol=1e-12)
    assert found.min() < 0
    told = " ".join(done.stdout.split())
    assert "the true value of about 80 % of the nodes lies between lower and upper, that of about 20 % outside." in told
    counts = answer(*words, "--nonnegative", "-o", tmp_path / "counts.csv")
    assert counts["interval"] == 0.8
    lower, upper = read_signal(tmp_path / "counts.csv", town.graph, columns=["lower", "upper"]).T
    assert lower.min() >= 0
    assert (lower <= upper).all()
    assert read_signal(tmp_path / "counts.csv", town.graph).shape == (town.graph.n,)
    image, pixels = tmp_path / "image.npz", tmp_path / "pixels.csv"
    rng = np.random.default_rng(0)
    rough = rng.normal(0, 10, (30, 30))
    smoothed = sum(np.roll(rough, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
    write_graph(image, hg.datasets.grid(30, 30))
    write_signal(pixels, hg.datasets.grid(30, 30), smoothed.ravel() + rng.normal(0, 3, 900))
    guessed = " ".join(good("denoise", image, pixels, "--interval", 0.8, "-o", tmp_path / "e.csv").stdout.split())
    assert "outside, if the estimated noise level is right." in guessed


def test_intervals_of_several_columns_are_named_after_them_and_left_out_again(town, tmp_path):
    first = answer(*denoising(town, town.hours, tmp_path / "a.csv", "--interval", 0.9))
    assert first["signals"] == ["six", "seven"]
    head = "node,six,seven,six_expected_error,seven_expected_error,six_lower,seven_lower,six_upper,seven_upper\n"
    assert (tmp_path / "a.csv").read_text().startswith(head)
    again = answer(*denoising(town, tmp_path / "a.csv", tmp_path / "b.csv"))
    assert again["signals"] == ["six", "seven"]


def test_intervals_that_cannot_be_written_are_refused_before_the_work(town, tmp_path):
    names = {"a": town.noisy, "a_lower": town.noisy + 1}
    write_signal(tmp_path / "a.csv", town.graph, names)
    both = ("--column", "a", "--column", "a_lower")
    assert answer(*denoising(town, tmp_path / "a.csv", tmp_path / "fine.csv", *both))["interval"] is None
    for source, out, more, fault in (
        (
            tmp_path / "a.csv",
            "b.csv",
            (*both, "--interval", 0.9),
            "two columns called a_lower: the signal of that name, and the interval of another",
        ),
        (town.signal, "b.npy", ("--interval", 0.9), "b.npy holds the values alone"),
        (town.signal, "b.csv", ("--interval", 90), "--interval must be a share between 0 and 1; got 90; --interval 0.9 is 90 %"),
        (town.signal, "b.csv", ("--interval", 1), "--interval must be a share between 0 and 1; got 1"),
        (town.signal, "b.csv", ("--interval", "nan"), "--interval must be a share between 0 and 1; got nan"),
    ):
        done = run(*denoising(town, source, tmp_path / out, *more))
        assert done.exit_code != 0
        assert fault in " ".join(done.output.split())
        assert not (tmp_path / out).exists()


def denoising(town, signal, out, *more):
    return ("denoise", town.streets, signal, "--sigma", 2, "--method", "sgwt_sure", "-o", out, *more)


def test_columns_taken_by_default_are_told(town, tmp_path):
    first = answer(*denoising(town, town.hours, tmp_path / "a.csv"))
    assert "Columns denoised: six, seven; say --column for others" in first["notes"]
    again = answer(*denoising(town, tmp_path / "a.csv", tmp_path / "b.csv"))
    assert again["signals"] == ["six", "seven"]
    said = "Columns denoised: six, seven; left out: six_expected_error, seven_expected_error; say --column for others"
    assert said in again["notes"]
    for path, more in ((town.hours, ["--column", "six"]), (town.signal, [])):
        found = answer(*denoising(town, path, tmp_path / "c.csv", "--force", *more))
        assert not any("Columns denoised" in note for note in found["notes"])


def test_the_map_of_a_release_is_refused_without_its_folder(town, ledger, tmp_path):
    good(*releasing(town, ledger, tmp_path / "march"))
    refused = run(*denoising(town, tmp_path / "march" / "map.csv", tmp_path / "a.csv"))
    assert refused.exit_code == 2
    assert f"pass the folder {tmp_path / 'march'}" in refused.stderr
    assert not (tmp_path / "a.csv").exists()


def test_nodes_without_a_row_are_missing_values(town, tmp_path):
    rows = town.signal.read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join([*rows[:5], *rows[7:]]) + "\n")
    refused = run(*denoising(town, tmp_path / "part.csv", tmp_path / "a.csv"))
    assert refused.exit_code == 2
    assert "2 nodes have no row" in refused.stderr
    assert "--missing drop or fill" in refused.stderr
    for policy, count in (("drop", 2), ("fill", 0)):
        good(*denoising(town, tmp_path / "part.csv", tmp_path / f"{policy}.csv", "--missing", policy))
        assert np.isnan(read_signal(tmp_path / f"{policy}.csv", town.graph)).sum() == count
    (tmp_path / "more.csv").write_text("\n".join([*rows, "9999,1"]) + "\n")
    assert run(*denoising(town, tmp_path / "more.csv", tmp_path / "a.csv", "--missing", "drop")).exit_code == 2


@pytest.mark.parametrize(("output", "said"), [("x.xlsx", "x.xlsx must end in .csv"), ("-", "- is no file")])
def test_outputs_are_checked_before_the_graph_is_read(town, tmp_path, monkeypatch, output, said):
    monkeypatch.chdir(tmp_path)
    refused = run("denoise", "nowhere.npz", town.signal, "-o", output)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert "--format" not in refused.stderr


def test_a_report_is_one_more_file(town, tmp_path):
    command = ("denoise", town.streets, town.signal, "--sigma", 2, "--method", "sgwt_sure", "-o", tmp_path / "a.csv")
    assert answer(*command, "--report", tmp_path / "a.html")["report"] == str(tmp_path / "a.html")
    assert "noisy.csv" in (tmp_path / "a.html").read_text()
    assert run(*command, "--report", tmp_path / "a.html", "-o", tmp_path / "b.csv").exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.html"]


def test_nothing_is_replaced_without_force(town, tmp_path):
    out = tmp_path / "clean.csv"
    out.write_text("years of work")
    command = ("denoise", town.streets, town.signal, "--sigma", 2, "--method", "sgwt_sure", "-o", out)
    refused = run(*command)
    assert (refused.exit_code, out.read_text()) == (2, "years of work")
    assert "--force" in refused.stderr
    good(*command, "--force", "--quiet")
    assert out.read_text() != "years of work"


def test_quiet_says_nothing(town, tmp_path):
    assert (
        good("denoise", town.streets, town.signal, "--sigma", 2, "--method", "sgwt_sure", "-q", "-o", tmp_path / "a.csv").output
        == ""
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"graph": "nowhere.npz"}, "nowhere.npz"),
        ({"signal": "nowhere.csv"}, "nowhere.csv"),
        ({"more": ["--column", "mars"]}, "mars"),
        ({"more": ["--sigma", "nan"]}, "sigma"),
        ({"more": ["--sigma", "-1"]}, "sigma"),
        ({"more": ["--method", "magic"]}, "magic"),
        ({"output": "."}, "folder"),
        ({"output": "noisy.csv/below.csv"}, "file"),
        ({"more": ["--weight", "a", "--distance", "b"]}, "distance"),
        ({"more": ["--weight", "a", "--unweighted"]}, "--unweighted"),
        ({"more": ["--format", "mtx"]}, "streets.npz"),
    ],
)
def test_bad_input_is_one_sentence(town, tmp_path, monkeypatch, change, word):
    monkeypatch.chdir(town.folder)
    before = sorted(path.name for path in town.folder.iterdir())
    names = {"graph": "streets.npz", "signal": "noisy.csv", "output": tmp_path / "clean.csv", "more": []} | change
    failed = run("denoise", names["graph"], names["signal"], "-o", names["output"], *names["more"])
    assert failed.exit_code == 2
    assert word in failed.stderr
    assert failed.stdout == ""
    assert sorted(path.name for path in town.folder.iterdir()) == before
    assert list(tmp_path.iterdir()) == []


def test_failures_are_json_too(tmp_path):
    failed = run("info", tmp_path / "nowhere.npz", "--json")
    found = json.loads(failed.stdout)
    assert (list(found), found["exit_code"], failed.exit_code) == (["command", "error", "exit_code"], 2, 2)


# ---- compare -----------------------------------------------------------------------------------------------------------


def test_compare_prints_what_the_library_computes(town):
    words = ("compare", town.streets, town.signal, "--sigma", SIGMA, "--nonnegative", "--method", "let", "--method", "graph_tv")
    found, expected = answer(*words), hg.compare(town.graph, town.noisy, sigma=SIGMA, nonnegative=True, methods=["let", "graph_tv"])
    assert set(found) == {"command", "nodes", "sigma", "best", "methods", "notes"}
    assert found["best"] == expected.best
    assert [row["risk"] for row in found["methods"]] == [row.risk for row in expected.rows]
    text = good(*words).stdout
    assert text.split()[:4] == ["method", "risk", "risk_se", "typical"]
    assert "Differences within risk_se mean nothing" in text


def test_compare_takes_a_release_with_its_sigma(town, ledger, tmp_path):
    good(*releasing(town, ledger, tmp_path / "march"))
    found = answer("compare", town.streets, tmp_path / "march", "--method", "let", "--method", "counts")
    assert found["sigma"] > 0
    assert {row["method"] for row in found["methods"]} == {"let", "counts"}
    assert "whose certificate knows the noise" in run("compare", town.streets, tmp_path / "march" / "map.csv").stderr


def test_compare_takes_one_column(town):
    assert "one signal" in run("compare", town.streets, town.hours, "--sigma", 2).stderr
    found = answer("compare", town.streets, town.hours, "--sigma", 2, "--column", "six", "--method", "let")
    assert [row["method"] for row in found["methods"]] == ["let"]


# ---- info, bench, demo, plan -------------------------------------------------------------------------------------------


def test_info(town):
    found = answer("info", town.streets)
    assert list(found) == [
        "command", "nodes", "edges", "components", "degrees", "weights", "lambda_max", "lambda_max_from", "lambda_upper",
        "lambda_upper_from", "scales", "coordinates", "labels", "label_column", "zones", "names", "bends", "bytes", "hash", "notes",
    ]  # fmt: skip
    assert (found["nodes"], found["edges"], found["hash"]) == (town.graph.n, town.graph.n_edges, town.graph.hash)
    assert found["lambda_max"] <= found["lambda_upper"]
    text = good("info", town.streets).stdout
    for word in (f"{town.graph.n} nodes", "largest eigenvalue", "every edge weighs 1", "a plane", "kB"):
        assert word in text


def test_info_of_odd_graphs(tmp_path):
    graphs = hg.Graph.from_edges(np.empty((0, 2), int), n=3), hg.Graph.from_edges([(0, 1)], weights=[2.5], labels=["a", "b"])
    for k, graph in enumerate(graphs):
        write_graph(tmp_path / f"{k}.npz", graph)
    assert answer("info", tmp_path / "0.npz")["components"] == {"count": 3, "largest": 1}
    found = answer("info", tmp_path / "1.npz")
    assert (found["weights"]["most"], found["labels"], found["coordinates"]) == (2.5, "text", None)
    good("info", tmp_path / "0.npz")


def test_bench():
    found = answer("bench", "--nodes", 2000, "--degree", 20, "--repeats", 1)
    assert list(found) == [
        "command", "nodes", "edges", "scales", "degree", "seconds", "ratios", "threads", "machine", "date", "notes",
    ]  # fmt: skip
    assert list(found["seconds"]) == ["forward", "inverse", "denoise", "scipy_forward", "scipy_inverse"]
    assert min(found["seconds"].values()) > 0
    assert "times faster" in good("bench", "--nodes", 1000, "--degree", 5, "--repeats", 1).stdout


def test_demo_and_reproduce_answer_in_json(tmp_path):
    pytest.importorskip("matplotlib")
    found = answer("demo", "--out", tmp_path / "demo", "--nodes", 100)
    assert {"snr_noisy", "snr_denoised", "noise_energy_left", "pictures"} <= set(found)
    found = answer("reproduce", "fig-plateaus", "--smoke", "--out", tmp_path / "paper")
    assert [one["name"] for one in found["experiments"]] == ["fig-plateaus"]
    assert Path(found["page"]).exists()


def test_plans_come_from_public_inputs(town):
    found = answer("plan-release", town.streets, "--epsilon", 0.5, "--epsilon", 1, "--max-nodes", 4, "--method", "sgwt_sure")
    expected = hg.privacy.plan_release(
        town.graph, epsilon=[0.5, 1], adjacency="add-remove", max_nodes=4, max_per_node=1, method="sgwt_sure"
    )
    assert [row["sigma"] for row in found["rows"]] == [row.sigma for row in expected.rows]
    assert found["rows"][1]["error_denoised"] == expected.rows[1].error_denoised
    assert "epsilon" in good("plan-release", town.streets, "--epsilon", 1, "--n-windows", 2, "--method", "sgwt_sure").stdout
    for wrong in (["--epsilon", "-1"], ["--max-cells", 2], ["--max-nodes", 0], ["--reliable", 2]):
        assert run("plan-release", town.streets, *wrong).exit_code == 2


# ---- budget ------------------------------------------------------------------------------------------------------------


def creating(path, *more):
    return ("budget", "create", path, "--dataset", "trips", "--unit", "person", "--epsilon", 2, *more)


def test_a_budget_is_made_shown_and_renewed(tmp_path):
    path = tmp_path / "budget.db"
    keys = ["command", "ledger", "dataset", "unit", "adjacency", "epsilon", "delta", "period", "spent", "remaining", "identity", "replaces", "head", "entries"]  # fmt: skip
    assert list(answer(*creating(path))) == [*keys, "notes"]
    assert "each person in trips" in good("budget", "show", path).stdout
    good("budget", "renew", path, "--period", "2027", "--reason", "yearly", "--epsilon", 1)
    found = answer("budget", "show", path)
    assert list(found) == [*keys, "certificates", "notes"]
    assert (found["epsilon"], found["period"], [entry["kind"] for entry in found["entries"]]) == (1, "2027", ["create", "renew"])


def test_bad_ledgers(tmp_path):
    path = tmp_path / "budget.db"
    good(*creating(path))
    assert run(*creating(path)).exit_code == 4
    assert run("budget", "show", tmp_path / "nowhere.db").exit_code == 4
    assert run(*creating(tmp_path / "other.db", "--delta", 2)).exit_code == 2
    path.write_bytes(path.read_bytes().replace(b'"trips"', b'"tripe"'))
    failed = run("budget", "show", path)
    assert failed.exit_code == 4
    assert "hushgraph budget create" in failed.stderr


def test_keys_are_read_from_files(tmp_path):
    (tmp_path / "key").write_bytes(b"k" * 32)
    good(*creating(tmp_path / "budget.db", "--key-file", tmp_path / "key"))
    assert run("budget", "show", tmp_path / "budget.db").exit_code == 4
    shown = good("budget", "show", tmp_path / "budget.db", "--key-file", tmp_path / "key")
    assert "kkkk" not in shown.output
    (tmp_path / "key").write_bytes(b"short")
    assert run(*creating(tmp_path / "new.db", "--key-file", tmp_path / "key")).exit_code == 2


def test_names_cannot_steer_the_terminal(tmp_path):
    good("budget", "create", tmp_path / "a.db", "--dataset", "\x1b[2Jtrips [red]", "--unit", "person", "--epsilon", 1)
    text = good("budget", "show", tmp_path / "a.db").output
    assert "\x1b" not in text
    assert "[2Jtrips [red]" in text


# ---- release -----------------------------------------------------------------------------------------------------------


def test_a_release_is_charged_written_and_told(town, ledger, tmp_path):
    out = tmp_path / "march"
    text = good(*releasing(town, ledger, out, "--not-protected", "drivers", "--attribution", "© OpenStreetMap contributors")).stdout
    for word in (
        "With or without all data of any one person", "at most 62.3 times in 100", "at most 2 nodes, once in each; enforced", "drivers",
        "epsilon 0.5 of 2 is spent", "one more release of epsilon", "© OpenStreetMap", "map.csv", "certificate.json",
    ):  # fmt: skip
        assert word in text
    assert {path.name for path in out.iterdir()} == {"map.csv", "certificate.json", "report.html"}
    published = read_release(out, town.graph)
    assert (published.epsilon, published.delta) == (0.5, 1e-6)
    assert "Verified" in good("budget", "show", ledger, "--certificate", out / "certificate.json").stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == ["budget.db", "march"]
    again = answer("denoise", town.streets, out, "--method", "sgwt_sure", "--nonnegative", "-o", tmp_path / "clean.csv")
    assert again["sigma"] == pytest.approx(published.noise_level)


def test_words_of_a_release_fit_its_epsilon(town, tmp_path):
    ledger = tmp_path / "large.db"
    refused = run(*creating(ledger), "--epsilon", 500)
    assert refused.exit_code == 2
    assert "say --weak-guarantee" in refused.stderr
    text = good(*creating(ledger), "--epsilon", 500, "--weak-guarantee").stdout
    assert "protects no person in practice" in text
    assert "hardly protects any person" in good(*releasing(town, ledger, tmp_path / "five", epsilon=5)).stdout
    refused = run(*releasing(town, ledger, tmp_path / "many", events=tmp_path / "nowhere.csv", epsilon=50))
    assert (refused.exit_code, "say --weak-guarantee" in refused.stderr) == (2, True)  # before the events are read
    text = good(*releasing(town, ledger, tmp_path / "many", "--weak-guarantee", epsilon=50)).stdout
    assert "protects no person in practice" in text
    assert "nearly the same" not in text
    assert run(*creating(tmp_path / "b.db"), "--delta", 0.01).exit_code == 2
    assert run("budget", "renew", ledger, "--period", "2", "--reason", "a test", "--epsilon", 11).exit_code == 2
    assert run("plan-release", town.streets, "--epsilon", 0).exit_code == 2
    assert run("plan-release", town.streets, "--delta", 0.01).exit_code == 2


# ---- before anything is charged --------------------------------------------------------------------------------------


BOUNDS = ("--max-nodes", 2, "--max-per-node", 1, "--max-distance", 200)


def test_check_says_what_becomes_of_every_row(town, tmp_path):
    text = good("check", town.streets, town.trips, "--unit", "person", *BOUNDS).stdout
    assert text.startswith("Private, not for publication")
    assert "rows read" in text
    assert "Do not choose the graph, the windows, the bounds or epsilon by it" in text
    found = answer("check", town.streets, town.trips, "--unit", "person", *BOUNDS)
    assert (found["command"], found["private"]) == ("check", "not for publication")
    parts = ("unreadable", "without_id", "without_place", "too_far", "without_time", "outside_windows", "cut", "counted")
    assert sum(found[name] for name in parts) == found["rows"] > 0
    assert list(tmp_path.iterdir()) == []
    over = ("--time", "time", "--windows", "2026-03-02T00:00/2026-03-03T00:00/12h", "--max-cells", 3, "--max-per-cell", 1)
    assert answer("check", town.streets, town.trips, "--unit", "person", *over)["counted"] > 0
    assert answer("check", town.streets, town.trips, "--assume-bound", *BOUNDS)["units"] is None


def test_check_has_the_options_of_release_and_writes_nothing():
    text = " ".join(good("check", "--help").stdout.split())
    assert "Example: hushgraph check" in text
    for absent in ("--output", "--report", "--ledger", "--epsilon", "--quiet"):
        assert absent not in text
    for present in ("--unit-column", "--windows", "--max-distance", "--lon", "--json", "--graph-crs"):
        assert present in text


def test_check_refuses_what_release_would_refuse(town, tmp_path):
    assert "--assume-bound" in run("check", town.streets, town.trips, *BOUNDS).stderr
    for wrong in (["--unit", "nobody"], ["--unit", "person", "--max-cells", 2], ["--unit", "person", "--lon", "x"]):
        assert run("check", town.streets, town.trips, *BOUNDS, *wrong).exit_code == 2


def test_release_says_to_check_first_whatever_the_events(town, ledger, tmp_path):
    """The line is the same for a file that is not understood at all, and the command in it runs as it is."""
    empty = tmp_path / "empty.csv"
    empty.write_text("person,x,y,time\n", encoding="utf-8")
    said = [
        good(*releasing(town, ledger, tmp_path / name, events=events, epsilon=0.1)).stderr
        for name, events in (("a", None), ("b", empty))
    ]
    assert said[0].replace(str(town.trips), str(empty)) == said[1]
    (line,) = [line for line in said[0].splitlines() if "hushgraph check" in line]
    command = shlex.split(line[line.index("hushgraph check") :])
    assert command[4:6] == ["--unit", "person"]
    assert "rows read" in good(*command[1:]).stdout


def test_release_json_keys_are_stable(town, ledger, tmp_path):
    found = answer(*releasing(town, ledger, tmp_path / "march"))
    assert list(found) == [
        "command", "output", "files", "epsilon", "delta", "sigma", "unit", "adjacency", "bound", "sensitivity_squared", "ledger", "budget",
        "attribution", "guides", "notes",
    ]  # fmt: skip
    assert found["budget"]["spent"] == pytest.approx(0.5)
    assert found["budget"]["remaining"] < 2


def test_a_release_over_windows(town, ledger, tmp_path):
    out = tmp_path / "day"
    command = (
        "release", town.streets, town.trips, "--ledger", ledger, "--epsilon", 1, "--max-cells", 3, "--max-per-cell", 1, "--time", "time",
        "--windows", "2026-03-02T00:00/2026-03-03T00:00/12h", "--public-graph", "--method", "sgwt_sure", "-o", out,
    )  # fmt: skip
    assert "pairs of node and window" in good(*command).stdout
    assert read_release(out, town.graph).values.shape == (town.graph.n, 2)


def test_a_release_has_a_report_that_may_also_be_elsewhere(town, ledger, tmp_path):
    found = answer(*releasing(town, ledger, tmp_path / "march", "--report", tmp_path / "copy.html"))
    assert [Path(path).name for path in found["files"]] == ["map.csv", "certificate.json", "report.html", "copy.html"]
    text = (tmp_path / "march" / "report.html").read_text()
    assert (tmp_path / "copy.html").read_text() == text
    assert "trips.csv" not in text
    assert "certificate" in text.lower()
    told = good("verify", tmp_path / "march", town.streets, "--ledger", ledger).stdout
    assert "report.html is the page that the certificate describes: yes" in told
    (tmp_path / "march" / "report.html").write_text(text.replace("typical", "small"))
    failed = run("verify", tmp_path / "march", town.streets, "--ledger", ledger)
    assert failed.exit_code == 2
    assert "report.html is not the page that the certificate describes" in failed.stderr


def test_a_report_is_left_out_or_named(town, ledger, tmp_path):
    found = answer(*releasing(town, ledger, tmp_path / "march", "--no-report"))
    assert {path.name for path in (tmp_path / "march").iterdir()} == {"map.csv", "certificate.json"}
    assert len(found["files"]) == 2
    inside = tmp_path / "april" / "report.html"
    found = answer(*releasing(town, ledger, tmp_path / "april", "--no-report", "--report", inside, epsilon=0.1))
    assert found["files"][2:] == [str(inside)]
    assert "report.html" in json.loads((tmp_path / "april" / "certificate.json").read_text())["files"]


def test_an_assumed_bound_is_said_loudly(town, ledger, tmp_path):
    done = good(*releasing(town, ledger, tmp_path / "march", "--assume-bound"))
    assert "ASSUMED" in done.stdout
    assert "assumed to hold, not enforced" in done.stderr
    assert run(*releasing(town, ledger, tmp_path / "april", "--assume-bound", "--unit-column", "person")).exit_code == 2


def test_a_refused_budget_reads_no_events(town, ledger, tmp_path):
    refused = run(*releasing(town, ledger, tmp_path / "march", events=tmp_path / "nowhere.csv", epsilon=3))
    assert refused.exit_code == 3
    assert "hushgraph budget renew" in refused.stderr
    good(*releasing(town, ledger, tmp_path / "march", epsilon=1.9))
    assert run(*releasing(town, ledger, tmp_path / "april", epsilon=1.9)).exit_code == 3
    assert run(*releasing(town, ledger, tmp_path / "april", "--mechanism", "classical", epsilon=0.99)).exit_code == 3
    assert not (tmp_path / "april").exists()


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        (["--unit", "vehicle"], 4, "person"),
        (["--adjacency", "change-one"], 4, "add-remove"),
        (["--ledger", "nowhere.db"], 4, "hushgraph budget create"),
        (["--unit-column", "who"], 2, "who"),
        (["--node", "corner"], 2, "--max-distance"),
        (["--lon", "x"], 2, "--lon"),
        (["--max-distance", "-5"], 2, "--max-distance"),
        (["--epsilon", "nan"], 2, "epsilon"),
        (["--epsilon", "-1"], 2, "epsilon"),
        (["--delta", "1"], 2, "delta"),
        (["--time", "time"], 2, "windows"),
        (["--time", "time", "--windows", "0/24/5"], 2, "whole number of windows"),
        (["--max-cells", "3"], 2, "--max-cells"),
        (["-o", "."], 2, "exists already"),
        (["--report", "."], 2, ".html"),
    ],
)
def test_refusals_charge_nothing(town, ledger, tmp_path, more, code, word):
    refused = run(*releasing(town, ledger, tmp_path / "march", *more))
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert word in refused.stderr
    assert Ledger.open(ledger).spent == 0
    assert not (tmp_path / "march").exists()


def test_the_graph_must_be_attested(town, ledger, tmp_path):
    command = [part for part in releasing(town, ledger, tmp_path / "march") if part != "--public-graph"]
    refused = run(*command)
    assert refused.exit_code == 2
    assert "--public-graph" in refused.stderr


def test_only_an_earlier_release_is_replaced(town, ledger, tmp_path):
    out = tmp_path / "march"
    good(*releasing(town, ledger, out))
    first = (out / "certificate.json").read_bytes()
    assert run(*releasing(town, ledger, out)).exit_code == 2
    good(*releasing(town, ledger, out, "--force"))
    assert (out / "certificate.json").read_bytes() != first
    (out / "thesis.txt").write_text("years of work")
    assert run(*releasing(town, ledger, out, "--force")).exit_code == 2
    assert (out / "thesis.txt").read_text() == "years of work"
    assert Ledger.open(ledger).spent == pytest.approx(0.5 * 2**0.5, rel=0.1)


def test_a_report_that_fails_after_the_charge_says_where_the_release_is(town, ledger, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise OSError(28, "no room")

    monkeypatch.setattr("hushgraph.plotting.write_report", fails)
    failed = run(*releasing(town, ledger, tmp_path / "march", "--report", tmp_path / "march.html", "--json"))
    assert failed.exit_code == 2
    error = json.loads(failed.stdout)["error"]
    assert "the budget was charged" in error
    assert f"the whole release is in {tmp_path / 'march'}" in error
    read_release(tmp_path / "march", town.graph)


def test_a_report_in_the_folder_that_fails_is_a_note(town, ledger, tmp_path, monkeypatch):
    def fails(path, *_, **__):
        path.write_text("half of a page")
        raise RuntimeError

    monkeypatch.setattr("hushgraph.plotting.write_report", fails)
    found = answer(*releasing(town, ledger, tmp_path / "march"))
    assert any("report.html could not be written (RuntimeError)" in note for note in found["notes"])
    assert {path.name for path in (tmp_path / "march").iterdir()} == {"map.csv", "certificate.json"}
    read_release(tmp_path / "march", town.graph)


def test_a_report_never_takes_the_place_of_the_map(town, ledger, tmp_path):
    out = tmp_path / "march"
    for report in (out / "map.csv", out / "certificate.json", tmp_path / "march"):
        assert run(*releasing(town, ledger, out, "--force", "--report", report)).exit_code == 2
    assert not out.exists()
    assert Ledger.open(ledger).spent == 0
    both = tmp_path / "a.html"
    assert run("denoise", town.streets, town.signal, "-o", both, "--report", both).exit_code == 2


def test_a_method_that_does_not_fit_the_graph_is_refused_before_the_charge(ledger, tmp_path):
    (tmp_path / "small.csv").write_text("source,target\na,b\nb,c\n")
    (tmp_path / "trips.csv").write_text("person,node\n1,a\n2,b\n")
    words = (
        "--ledger",
        ledger,
        "--epsilon",
        0.5,
        "--max-nodes",
        2,
        "--max-per-node",
        1,
        "--public-graph",
        "-o",
        tmp_path / "march",
    )
    failed = run("release", tmp_path / "small.csv", tmp_path / "trips.csv", *words, "--method", "counts")
    assert failed.exit_code == 2
    assert "cannot be used here" in failed.stderr
    assert Ledger.open(ledger).spent == 0


def test_a_method_that_fails_after_the_charge_gives_way_to_a_simpler_one(town, ledger, tmp_path, monkeypatch):
    from hushgraph.estimators import denoise

    def only_the_simplest(*arguments, method, **settings):
        if method != "sgwt_sure":
            raise MemoryError
        return denoise(*arguments, method=method, **settings)

    monkeypatch.setattr("hushgraph.estimators.denoise", only_the_simplest)
    found = answer(*releasing(town, ledger, tmp_path / "march", "--method", "counts"))
    (note,) = [note for note in found["notes"] if "the release is paid for" in note]
    assert "so it was denoised by the method sgwt_sure: counts failed" in note
    assert "auto failed" in note
    assert "let failed" in note
    assert json.loads((tmp_path / "march" / "certificate.json").read_text())["denoised"]["method"] == "sgwt_sure"
    read_release(tmp_path / "march", town.graph)


SLOW = """
import pathlib, sys, time
import hushgraph.estimators
from hushgraph.cli import app
denoise, here = hushgraph.estimators.denoise, pathlib.Path(sys.argv.pop(1))
def slow(*arguments, **settings):
    (here / "denoising").touch()
    while not (here / "go").exists():
        time.sleep(0.01)
    return denoise(*arguments, **settings)
hushgraph.estimators.denoise = slow
app()
"""


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM], [signal.SIGHUP, signal.SIGHUP]])
def test_a_closed_terminal_does_not_lose_a_paid_release(town, ledger, tmp_path, signals):
    """The terminal is closed, or a system shuts down, while the release is denoised: nothing can be printed any more."""
    master, terminal = os.openpty()
    words = [sys.executable, "-c", SLOW, tmp_path, *releasing(town, ledger, tmp_path / "march")]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    with subprocess.Popen([str(word) for word in words], start_new_session=True, **streams) as process:
        os.close(terminal)
        try:
            wait_for(tmp_path / "denoising")
            os.close(master)
            for number in signals:
                process.send_signal(number)
                time.sleep(0.1)
            (tmp_path / "go").touch()
            assert process.wait(60) != 0
        finally:
            process.kill()
    read_release(tmp_path / "march", town.graph)
    assert Ledger.open(ledger).spent > 0


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not appear"
        time.sleep(0.01)


def test_the_noisy_values_are_kept_if_nothing_can_denoise_them(town, ledger, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("hushgraph.estimators.denoise", fails)
        failed = run(*releasing(town, ledger, tmp_path / "march"))
    assert failed.exit_code != 0
    (file,) = tmp_path.glob("hushgraph-release-*/noisy.npy")
    assert str(file) in failed.stderr
    assert np.load(file).shape == (town.graph.n,)
    assert Ledger.open(ledger).spent > 0
    advice = re.search(r"hushgraph denoise GRAPH (\S+ --sigma \S+ --nonnegative -o) FILE", failed.stderr)
    good("denoise", town.streets, *advice[1].split(), tmp_path / "clean.csv")


def test_a_paid_release_that_can_be_saved_nowhere(town, ledger, tmp_path, monkeypatch):
    """It says that the values are lost and that the charge stays, and leaves no empty folders."""

    def full_disk(*_, **__):
        raise OSError(28, "no room")

    monkeypatch.setattr("hushgraph.privacy.export", full_disk)
    monkeypatch.setattr("numpy.save", full_disk)
    failed = run(*releasing(town, ledger, tmp_path / "march"))
    assert failed.exit_code != 0
    assert "the noisy values could not be saved either" in failed.stderr
    assert "the budget was charged for it (entry 2 of budget.db), and the charge stays" in failed.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != "budget.db"] == []


def test_a_paid_release_is_saved_elsewhere_if_need_be(town, ledger, tmp_path, monkeypatch):
    from hushgraph.privacy import export

    out, spare = tmp_path / "month" / "march", tmp_path / "spare"
    spare.mkdir()

    def full_disk(release, folder, **settings):
        if Path(folder).is_relative_to(out.parent):  # beside it there is no room either
            raise OSError(28, "no room")
        return export(release, folder, **settings)

    monkeypatch.setattr("hushgraph.privacy.export", full_disk)
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    done = run(*releasing(town, ledger, out, "--json", "--quiet"))
    assert done.exit_code == 2  # a script must not go on with a folder that is not there
    assert "it was saved in" in done.stderr
    found = json.loads(done.stdout)
    assert Path(found["output"]).is_relative_to(spare)
    assert {path.name for path in Path(found["output"]).iterdir()} == {"map.csv", "certificate.json", "report.html"}
    assert any("No space left" in note for note in found["notes"])


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_link_is_no_place_for_a_release(town, ledger, tmp_path, options):
    link, place = tmp_path / "march", tmp_path / "place"
    link.symlink_to(place)
    if options:
        place.mkdir()
    done = run(*releasing(town, ledger, link, *options))
    assert (done.exit_code, link.is_symlink()) == (2, True)
    assert "is a link" in done.stderr
    assert Ledger.open(ledger).spent == 0


# ---- nothing private ---------------------------------------------------------------------------------------------------


def test_words_do_not_depend_on_the_events(town, tmp_path, monkeypatch):
    """Other people, other places, ten times as many: the same words."""
    texts = []
    for k, n_people in enumerate((20, 200)):
        folder = tmp_path / str(k)
        folder.mkdir()
        monkeypatch.setenv("HUSHGRAPH_STATE", str(folder / "state"))
        trips = hg.datasets.trips(town.graph, n_people=n_people, seed=k)
        rows = [",".join(trips), *(",".join(map(str, row)) for row in zip(*trips.values(), strict=True))]
        (folder / "trips.csv").write_text("\n".join(rows))
        Ledger.create(folder / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6)
        done = good(*releasing(town, folder / "budget.db", folder / "out", events=folder / "trips.csv"))
        texts.append(tuple(text.replace(str(folder), "") for text in (done.stdout, done.stderr)))
    assert texts[0] == texts[1]


SECRET = "zqxj"
CELLS = st.sampled_from(
    [f"{SECRET}1", f'"{SECRET}', f"[red]{SECRET}", f"\x1b]0;{SECRET}\x07", f"{{{SECRET}}}", f"%s{SECRET}", "", "nan", "1e999", "-0", "\x00", "é" * 50]
)  # fmt: skip


@settings(max_examples=15)
@given(
    rows=st.lists(st.lists(CELLS, min_size=0, max_size=6), max_size=6),
    head=st.sampled_from(["person,x,y,time", "person,node", f"{SECRET},x,y", "person", ""]),
    more=st.sampled_from(
        [[], ["--node", "node"], ["--unit-column", "who"], ["--time", "time", "--windows", "0,1"], ["--assume-bound"], ["--json"], ["--x", "x", "--y", "y", "--crs", "planar"]]
    ),
)  # fmt: skip
def test_hostile_events_never_reach_the_screen(town, tmp_path_factory, rows, head, more):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "events.csv").write_bytes("\n".join([head, *map(",".join, rows), "p1,0,0,0"]).encode())
    Ledger.create(folder / "budget.db", dataset=folder.name, unit="person", adjacency="add-remove", epsilon=2, delta=1e-6)
    bounds = [] if "--node" in more or "node" in head else ["--max-distance", 200]
    command = [
        "release", town.streets, folder / "events.csv", "--ledger", folder / "budget.db", "--epsilon", 1, "--max-nodes", 2,
        "--max-per-node", 1, "--public-graph", "--method", "sgwt_sure", "-o", folder / "out", *bounds, *more,
    ]  # fmt: skip
    done = run(*command)
    assert done.exit_code in (0, 2)
    assert SECRET not in done.output
    for path in (folder / "out").glob("*"):
        assert SECRET.encode() not in path.read_bytes()


def failing(line, name="hushgraph.somewhere"):
    """The error that a line of code raises inside a module of that name."""
    space = {"__name__": name}
    exec(f"def fail():\n    {line}\n", space)
    try:
        space["fail"]()
    except Exception as error:
        return sentence_of(error)
    raise AssertionError


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"int('{SECRET}')", "hushgraph.somewhere"),
        (f"{{}}['{SECRET}']", "hushgraph.somewhere"),
        (f"raise ValueError('{SECRET}')", "pandas.somewhere"),
        (f"raise ValueError('{SECRET}')", "hushgraph.somewhere"),
        (f"raise KeyError('{SECRET}')", "hushgraph.somewhere"),
        (f"raise ImportError('{SECRET}')", "pandas.somewhere"),
        (f"raise OSError('{SECRET}')", "pandas.somewhere"),
        (f"raise MemoryError('{SECRET}')", "numpy.somewhere"),
    ],
)
def test_only_own_sentences_are_shown(line, name):
    text, code = failing(line, name)
    assert SECRET not in text
    assert code in (1, 2)
    assert failing("from hushgraph._errors import InputError; raise InputError('say so')") == ("say so", 2)


def test_an_unexpected_error_is_quiet_about_data(town, ledger, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyError(SECRET)

    monkeypatch.setattr("hushgraph.privacy.count_events", broken)
    failed = run(*releasing(town, ledger, tmp_path / "march"))
    assert failed.exit_code == 1
    assert "KeyError" in failed.stderr
    assert SECRET not in failed.output


# ---- Ctrl-C ------------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys
from importlib import import_module
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with it switched off
module, name, times = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
inside = import_module(module)
work = getattr(inside, name)
def interrupted(*given, **named):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
    return work(*given, **named)
setattr(inside, name, interrupted)
from hushgraph.cli import app
app()
"""


def stopped(module, name, times, *arguments):
    command = [sys.executable, "-c", INTERRUPTED, module, name, str(times), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    return done


def test_stopped_before_the_charge(town, ledger, tmp_path):
    done = stopped("hushgraph.privacy.counting", "count_events", 1, *releasing(town, ledger, tmp_path / "march", "--json"))
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (130, 130)
    assert "nothing was charged" in done.stderr
    assert Ledger.open(ledger).spent == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db"]


def test_stopped_while_another_process_uses_the_ledger(town, ledger, tmp_path):
    with contextlib.closing(sqlite3.connect(ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = stopped("hushgraph.privacy.ledger.budget", "checked_sensitivity", 1, *releasing(town, ledger, tmp_path / "march"))
    assert done.returncode == 130
    assert done.stderr.endswith("stopped; nothing was charged, nothing was written\n")
    assert Ledger.open(ledger).spent == 0


def test_stopped_after_the_charge_the_files_are_finished(town, ledger, tmp_path):
    done = stopped("hushgraph.estimators.denoising", "denoise", 1, *releasing(town, ledger, tmp_path / "march"))
    assert done.returncode == 130
    assert "the budget was charged, and the whole release is in" in done.stderr
    certificate = json.loads((tmp_path / "march" / "certificate.json").read_text())
    Ledger.open(ledger).verify(certificate)


def test_stopped_twice_after_the_charge(town, ledger, tmp_path):
    done = stopped("hushgraph.estimators.denoising", "denoise", 2, *releasing(town, ledger, tmp_path / "march"))
    assert done.returncode == 130
    assert "the budget was charged for it (entry 2 of budget.db)" in done.stderr
    assert Ledger.open(ledger).spent == pytest.approx(0.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db"]


def test_stopped_twice_in_the_report_loses_only_the_report(town, ledger, tmp_path):
    done = stopped("hushgraph.plotting.report.page", "_page", 2, *releasing(town, ledger, tmp_path / "march"))
    assert done.returncode == 130
    assert "the report was not finished; the budget was charged, and the whole release is in" in done.stderr
    assert {path.name for path in (tmp_path / "march").iterdir()} == {"map.csv", "certificate.json"}
    read_release(tmp_path / "march", town.graph)


def test_stopped_while_drawing(town, ledger, tmp_path):
    done = stopped("hushgraph.privacy.releases", "_draw", 2, *releasing(town, ledger, tmp_path / "march"))
    assert done.returncode == 130
    assert "the budget was charged for it (entry 2 of budget.db), and the charge stays" in done.stderr


def test_stopped_while_denoising_leaves_nothing(town, tmp_path):
    command = ("denoise", town.streets, town.signal, "--sigma", 2, "-o", tmp_path / "clean.csv")
    done = stopped("hushgraph.files.signals", "write_signal", 1, *command)
    assert (done.returncode, done.stdout) == (130, "")
    assert "nothing was written" in done.stderr
    assert list(tmp_path.iterdir()) == []


# ---- explore -----------------------------------------------------------------------------------------------------------


def test_explore_hands_over_what_was_given(town, ledger, served):
    assert "http://127.0.0.1:1234/#token=abc" in good("explore", "--no-browser").stdout
    command = (
        "explore",
        "--events",
        town.trips,
        "--graph",
        town.streets,
        "--ledger",
        ledger,
        "--max-nodes",
        2,
        "--max-per-node",
        1,
    )
    lines = good(*command, "--max-distance", 200, "--json").stdout.splitlines()
    place = str(Path(ledger).parent / "hushgraph-releases")
    assert [json.loads(line) for line in lines] == [
        {"command": "explore", "address": "http://127.0.0.1:1234/#token=abc", "releases": place}
    ]
    assert str(served[1]["keep"]) == place
    assert (served[0]["open_browser"], served[0]["graph"]) == (False, None)
    assert served[1]["events"].sensitivity_squared == 2
    assert served[1]["ledger"].dataset == "trips"
    assert Ledger.open(ledger).spent == 0


def test_explore_says_where_releases_are(town, ledger, monkeypatch, tmp_path):
    """At the start, as they are drawn and at the end; one that could not be saved is told even under --quiet."""
    from hushgraph.explorer.saved_releases import SavedRelease

    def serve(**given):
        given["on_ready"]("http://127.0.0.1:1234/#token=abc")
        given["on_release"](SavedRelease(1, given["keep"] / "release-1"))
        given["on_release"](SavedRelease(2, None, "No space left on device"))
        raise KeyboardInterrupt

    monkeypatch.setattr("hushgraph.explorer.serve", serve)
    bounds = ["--max-nodes", 2, "--max-per-node", 1, "--max-distance", 200]
    command = ["explore", "--events", town.trips, "--graph", town.streets, "--ledger", ledger, *bounds, "-o", tmp_path / "kept"]
    told = good(*command)
    assert f"Releases that you draw are saved in {tmp_path / 'kept'}." in told.stdout
    assert told.stdout.count(str(tmp_path / "kept" / "release-1")) == 2
    assert "Not saved: release 2 (gone, unless you downloaded it)" in told.stdout
    assert "Release 2 could not be saved (No space left on device): download it" in told.stderr
    quiet = good(*command, "--quiet")
    assert quiet.stdout == "The explorer is at http://127.0.0.1:1234/#token=abc\n"
    assert "Release 2 could not be saved" in quiet.stderr
    lines = [json.loads(line) for line in good(*command, "--json").stdout.splitlines()]
    assert lines[1:] == [
        {"command": "explore", "release": 1, "folder": str(tmp_path / "kept" / "release-1"), "fault": None},
        {"command": "explore", "release": 2, "folder": None, "fault": "No space left on device"},
    ]


def test_explore_starts_and_ends():
    pytest.importorskip("uvicorn")
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from hushgraph.cli import app; app()"
    command = [sys.executable, "-c", code, "explore", "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = json.loads(process.stdout.readline())["address"]
        try:
            with urllib.request.urlopen(address.split("#")[0], timeout=30) as page:
                assert page.status == 200
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=30) == ("", "")
        finally:
            process.kill()
    assert process.returncode == 0


def test_the_old_names_of_explore_still_work(served):
    said = good("explore", "--no-browser", "--name", "Trips", "--label", "pickups")
    assert "--name is called --title now; the old name will go in 0.3" in " ".join(said.stderr.split())
    assert (served[0]["title"], served[0]["label"]) == ("Trips", "pickups")
    good("explore", "--no-browser", "--name", "Trips", "--title", "Rides")
    assert served[1]["title"] == "Rides"
    assert "--name" not in good("explore", "--help").stdout


def test_explore_needs_data_that_go_together(town, ledger, served):
    for wrong in (
        ["--release", "march"],
        ["--events", town.trips],
        ["--events", town.trips, "--graph", town.streets],
        ["--ledger", ledger],
        ["--events", town.trips, "--graph", town.streets, "--ledger", ledger],
        ["--release", "nowhere", "--events", town.trips, "--graph", town.streets],
        ["--port", 70_000],
        ["--out", "kept"],
        ["--events", town.trips, "--graph", town.streets, "--ledger", ledger, "--out", town.trips],
    ):
        assert run("explore", "--no-browser", *wrong).exit_code == 2
    assert "--events, --graph and --ledger go together" in run("explore", "--events", town.trips).stderr
    assert "--out is the folder of these releases; --events is missing" in run("explore", "--out", "kept").stderr
    assert not served


# ---- windows -----------------------------------------------------------------------------------------------------------


def test_windows_are_edges_or_steps():
    assert window_edges("0, 6,24") == [0, 6, 24]
    assert window_edges("0/1/0.25") == [0, 0.25, 0.5, 0.75, 1.0]
    assert window_edges("2026-03-02,2026-03-03") == ["2026-03-02", "2026-03-03"]
    assert len(window_edges("2026-03-02T00:00+01:00/2026-03-03T00:00+01:00/30min")) == 49
    for wrong in (
        "a/b/c",
        "0/24",
        "0/24/0",
        "0/24/-1",
        "0/1e9/1e-9",
        "2026-03-02/2026-03-03/1",
        "2026-03-02T00:00Z/2026-03-03T00:00/1h",
    ):
        with pytest.raises(ValueError, match="windows"):
            window_edges(wrong)


# ---- zones ------------------------------------------------------------------------------------------------------------


def test_zones_are_released_from_ids_to_a_report_in_one_command(tmp_path):
    """263 zones with text ids in a property, as cities publish them, and trips that name the zone only."""
    graph = hg.datasets.zones(263)
    zones = json.loads(hg.write_graph(tmp_path / "zones.geojson", graph).read_text())
    for feature in zones["features"]:
        feature["properties"] = {"LocationID": str(feature.pop("id")), "borough": "North"}
    (tmp_path / "zones.geojson").write_text(json.dumps(zones))
    events = hg.datasets.trips(graph, n_people=3000)
    rows = ["person,PULocationID", *map(",".join, zip(events["person"], events["zone"], strict=True))]
    (tmp_path / "trips.csv").write_text("\n".join(rows) + "\n")
    good("budget", "create", tmp_path / "budget.db", "--dataset", "zones", "--unit", "person", "--epsilon", 2)
    files = tmp_path / "zones.geojson", tmp_path / "trips.csv"
    reading = ("--zone-label", "LocationID")
    counting = ("--node", "PULocationID", "--max-nodes", 3, "--max-per-node", 1)
    assert answer("check", *files, *reading, *counting, "--unit", "person")["counted"] > 3000
    spending = ("--epsilon", 1, "--ledger", tmp_path / "budget.db", "--public-graph")
    outputs = ("-o", tmp_path / "out", "--report", tmp_path / "report.html")
    said = good("release", *files, *reading, *counting, *spending, *outputs)
    assert f"{files[0]} --zone-label LocationID --ledger" in " ".join(said.stdout.split())
    assert "OpenStreetMap" not in said.stdout
    assert len((tmp_path / "out" / "map.csv").read_text().splitlines()) == 264
    assert "<dt>zones</dt><dd>263</dd>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    good("verify", tmp_path / "out", files[0], *reading, "--ledger", tmp_path / "budget.db")
    found = answer("info", files[0], *reading)
    assert (found["nodes"], found["edges"]) == (graph.n, graph.n_edges)
