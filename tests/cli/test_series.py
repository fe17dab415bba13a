"""hushgraph series: earlier releases denoised again, each with the help of the others."""

import csv
import json

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.files.signals import read_signal
from hushgraph.privacy import read_release

from .commands import answer, good, run

MONTHS = ("jan", "feb", "mar", "apr")


def series(folder, out, *more, names=MONTHS):
    return ("series", folder / "streets.npz", *(folder / name for name in names), "--method", "let", "-o", out, *more)


def test_each_release_is_guided_by_the_others(months, tmp_path):
    folder, graph = months
    out = tmp_path / "new" / "months"
    found = answer(*series(folder, out, names=("mar", "jan", "apr", "feb")))
    assert {path.name for path in out.iterdir()} == {"summary.csv", "summary.json", *(f"{name}.csv" for name in MONTHS)}
    assert [path.name for path in out.parent.iterdir()] == ["months"]
    assert [one["release"] for one in found["releases"]] == list(MONTHS)  # by the time when they were made
    releases = {name: read_release(folder / name, graph) for name in MONTHS}
    expected = hg.denoise_series(graph, releases, method="let", nonnegative=True)
    for name, one in zip(MONTHS, found["releases"], strict=True):
        columns = read_signal(out / f"{name}.csv", graph, columns=["noisy", "denoised", "expected_error", "lower", "upper"])
        assert np.array_equal(columns[:, 0], releases[name].values)
        np.testing.assert_allclose(columns[:, 1], expected[name].signal, rtol=1e-12)
        np.testing.assert_allclose(columns[:, 2], expected[name].expected_error(), rtol=1e-12)
        np.testing.assert_allclose(columns[:, 3:].T, expected[name].interval(0.9), rtol=1e-12)
        before = read_signal(folder / name / "map.csv", graph, columns="expected_error")
        assert one["typical_error_before"] == pytest.approx(np.sqrt(np.mean(before**2)))
        assert one["typical_error"] < one["typical_error_before"]
        assert one["values_sha256"] == releases[name].certificate["values_sha256"]
    assert (out / "jan.csv").read_text().startswith("node,x,y,noisy,denoised,expected_error,lower,upper\n")
    kept = json.loads((out / "summary.json").read_text())
    assert kept["releases"] == found["releases"]
    assert (kept["direction"], kept["interval"], kept["graph"]["hash"]) == ("all", 0.9, graph.hash)
    with (out / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"{name}.csv" for name in MONTHS]
    assert list(rows[0]) == ["release", "created", "sigma", "typical_error_before", "typical_error", "file"]


def test_with_the_past_alone_earlier_maps_stay_as_they_are(months, tmp_path):
    folder, _ = months
    good(*series(folder, tmp_path / "three", "--direction", "past", names=MONTHS[:3]))
    good(*series(folder, tmp_path / "four", "--direction", "past"))
    for name in MONTHS[:3]:
        assert (tmp_path / "three" / f"{name}.csv").read_bytes() == (tmp_path / "four" / f"{name}.csv").read_bytes()


def test_words(months, tmp_path):
    folder, _ = months
    text = good(*series(folder, tmp_path / "out", names=MONTHS[:2])).stdout
    for word in (
        "error before",
        "error now",
        "jan",
        "nothing was charged",
        "order of the time when they were made",
        "summary.json",
    ):
        assert word in text
    assert good(*series(folder, tmp_path / "quiet", "--quiet", names=MONTHS[:2])).output == ""


def test_only_an_earlier_series_is_replaced(months, tmp_path):
    folder, _ = months
    out = tmp_path / "out"
    good(*series(folder, out, names=MONTHS[:2]))
    refused = run(*series(folder, out, names=MONTHS[2:]))
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    good(*series(folder, out, "--force", names=MONTHS[2:]))
    assert {path.name for path in out.iterdir()} == {"summary.csv", "summary.json", "mar.csv", "apr.csv"}
    (out / "thesis.txt").write_text("years of work")
    assert run(*series(folder, out, "--force", names=MONTHS[:2])).exit_code == 2
    assert (out / "thesis.txt").exists()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "data.csv").write_text("years of work")
    assert run(*series(folder, tmp_path / "tables", "--force", names=MONTHS[:2])).exit_code == 2
    assert run(*series(folder, folder / "jan", "--force", names=MONTHS[:2])).exit_code == 2
    assert (folder / "jan" / "certificate.json").exists()


@pytest.mark.parametrize("summary", ["[" * 100_000, "{", '{"releases": 3}', '{"releases": [3]}', "null"])
def test_a_folder_with_a_damaged_summary_is_not_replaced(months, tmp_path, summary):
    folder, _ = months
    out = tmp_path / "out"
    good(*series(folder, out, names=MONTHS[:2]))
    (out / "summary.json").write_text(summary)
    refused = run(*series(folder, out, "--force", names=MONTHS[2:]))
    assert refused.exit_code == 2
    assert "is not the folder of an earlier series alone" in " ".join(refused.stderr.split())
    assert (out / "jan.csv").exists()


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        (["jan"], [], "a series has two releases or more"),
        (["jan", "jan"], [], "two folders are called jan"),
        (["jan", "day"], [], "is a release over time windows; hushgraph denoise GRAPH"),
        (["jan", "nowhere"], [], "'nowhere' is not a release on this graph"),
        (["jan", "copies/july"], [], "jan and july hold the same map"),
        (["jan", "copies/summary"], [], "summary is the name of a table"),
        (["jan", "feb"], ["--method", "sgwt_sure"], "a series goes with these methods: auto, let, counts; got --method sgwt_sure"),
        (["jan", "feb"], ["--direction", "future"], ""),
    ],
)
def test_what_is_refused_writes_nothing(months, tmp_path, names, more, said):
    folder, _ = months
    if not (folder / "copies").exists():
        (folder / "copies").mkdir()
        for copy in ("july", "summary"):
            (folder / "copies" / copy).symlink_to(folder / "jan")
    refused = run(*series(folder, tmp_path / "out", *more, names=names))
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert said in refused.stderr
    assert list(tmp_path.iterdir()) == [] or not (tmp_path / "out").exists()
