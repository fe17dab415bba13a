"""Guides on the command line: files and folders of releases in, what they gained out; a broken guide never costs budget."""

import json
import shutil

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.files.signals import read_signal, write_signal
from hushgraph.privacy import read_release, verify_release
from hushgraph.privacy.ledger.budget import Ledger

from .commands import answer, good, run
from .conftest import SIGMA

pytest.importorskip("pandas")


def denoising(folder, out, *more):
    return ("denoise", folder / "streets.npz", folder / "noisy.csv", "--sigma", SIGMA, "--method", "let", "-o", out, *more)


# ---- denoise ------------------------------------------------------------------------------------------------------------


def test_files_and_releases_guide(months, tmp_path):
    folder, graph = months
    alone = answer(*denoising(folder, tmp_path / "a.csv"))
    assert alone["guides"] == []
    words = denoising(
        folder, tmp_path / "b.csv", "--guide", folder / "mean.csv", "--guide", folder / "jan", "--guide", folder / "feb"
    )
    found = answer(*words)
    assert [guide["name"] for guide in found["guides"]] == ["visits", "mean", "nothing"]
    visits, mean, nothing = found["guides"]
    jan, feb = (read_release(folder / name, graph) for name in ("jan", "feb"))
    assert visits["sha256"] == [one.certificate["values_sha256"] for one in (jan, feb)]
    assert visits["made_from"].startswith("2 noisy maps, combined")
    assert mean["risk_removed"][0] + visits["risk_removed"][0] > 0.3
    assert nothing["in_words"][0] in ("hardly helped", "says nothing about this signal, and was left out")
    assert found["typical_error"][0] < alone["typical_error"][0]
    signal, mean_map = read_signal(folder / "noisy.csv", graph), read_signal(folder / "mean.csv", graph)
    guides = {"visits": [jan, feb], "mean": mean_map[:, 0], "nothing": mean_map[:, 1]}
    expected = hg.denoise(graph, signal, sigma=SIGMA, method="let", guides=guides)
    np.testing.assert_allclose(read_signal(tmp_path / "b.csv", graph, columns="denoised"), expected.signal, rtol=1e-9)
    text = good(*denoising(folder, tmp_path / "c.csv", "--guide", folder / "mean.csv")).stdout
    assert "Guides: mean (a public map) removed" in text
    assert "Guides" not in good(*denoising(folder, tmp_path / "d.csv")).stdout


def test_names_of_guides_in_files(months, tmp_path):
    folder, _ = months
    words = denoising(
        folder,
        tmp_path / "a.csv",
        *(part for name in ("mean.csv", "other.csv", "plain.npy") for part in ("--guide", folder / name)),
    )
    names = [guide["name"] for guide in answer(*words)["guides"]]
    assert names == ["mean", "nothing", "other mean", "plain 1", "plain 2"]
    twice = answer(*denoising(folder, tmp_path / "b.csv", "--guide", folder / "mean.csv", "--guide", folder / "mean.csv"))
    assert len({guide["name"] for guide in twice["guides"]}) == 4


def test_streets_guide_and_rows_may_be_missing(months, tmp_path):
    folder, graph = months
    names = [guide["name"] for guide in answer(*denoising(folder, tmp_path / "a.csv", "--street-guides"))["guides"]]
    assert names == list(graph.covariates())
    rows = (folder / "mean.csv").read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join([*rows[:5], *rows[9:]]) + "\n")
    found = answer(*denoising(folder, tmp_path / "b.csv", "--guide", tmp_path / "part.csv"))
    assert found["guides"][0]["risk_removed"][0] > 0.3


def test_several_columns_have_a_share_each(months, tmp_path):
    folder, graph = months
    rng = np.random.default_rng(5)
    mean = read_signal(folder / "mean.csv", graph)[:, 0]
    write_signal(tmp_path / "two.csv", graph, {name: mean + rng.normal(0, SIGMA, graph.n) for name in ("six", "seven")})
    words = (
        "denoise",
        folder / "streets.npz",
        tmp_path / "two.csv",
        "--sigma",
        SIGMA,
        "--method",
        "let",
        "--guide",
        folder / "other.csv",
    )
    found = answer(*words, "-o", tmp_path / "a.csv")
    assert len(found["guides"][0]["risk_removed"]) == 2
    assert ", by column" in good(*words, "-o", tmp_path / "b.csv").stdout
    series = answer(*words, "--in-sequence", "-o", tmp_path / "c.csv")
    assert [guide["name"] for guide in series["guides"]] == ["all other maps", "mean"]
    gaps = answer(*words, "--in-sequence", "--missing", "drop", "-o", tmp_path / "d.csv")
    assert gaps["risk"] == pytest.approx(series["risk"])


def test_windows_of_a_release_guide_each_other(months, tmp_path):
    folder, _ = months
    words = ("denoise", folder / "streets.npz", folder / "day", "--method", "let", "--nonnegative")
    found = answer(*words, "-o", tmp_path / "a.csv")
    assert len(found["risk"]) == len(found["typical_error"]) == 3
    same = answer(*words, "--in-sequence", "-o", tmp_path / "b.csv")
    assert same["risk"] == found["risk"]
    found = answer(*words, "--guide", folder / "jan", "-o", tmp_path / "c.csv")
    assert "visits" in [guide["name"] for guide in found["guides"]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--guide", "nowhere.csv"], "nowhere.csv"),
        (["--guide", "{}/noisy.csv"], "holds the noise of the values that are to be denoised"),
        (["--guide", "{}/jan/map.csv"], "pass the folder"),
        (["--guide", "{}"], "is not a release on this graph"),
        (["--guide", "{}/trips.csv"], ""),
        (
            ["--guide", "{}/mean.csv", "--method", "sgwt_sure"],
            "--guide and --street-guides go with these methods: auto, let, counts",
        ),
        (["--street-guides", "--method", "sgwt_sure"], "got --method sgwt_sure"),
    ],
)
def test_guides_that_cannot_be_used(months, tmp_path, more, said):
    folder, _ = months
    refused = run(*denoising(folder, tmp_path / "a.csv", *(word.format(folder) for word in more)))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert not (tmp_path / "a.csv").exists()


def test_a_release_is_no_guide_for_itself(months, tmp_path):
    folder, _ = months
    words = ("denoise", folder / "streets.npz", folder / "jan", "--method", "let", "--nonnegative", "-o", tmp_path / "a.csv")
    refused = run(*words, "--guide", folder / "jan", "--json")
    assert refused.exit_code == 2
    assert "holds the noise of the values that are to be denoised" in json.loads(refused.stdout)["error"]
    good(*denoising(folder, tmp_path / "b.csv"))
    again = run(*denoising(folder, tmp_path / "c.csv", "--guide", tmp_path / "b.csv"))
    assert again.exit_code == 2
    assert "is the denoised map of these very values" in again.stderr


def test_a_report_of_a_guided_release_says_so(months, tmp_path):
    folder, _ = months
    words = (
        "denoise",
        folder / "streets.npz",
        folder / "feb",
        "--method",
        "let",
        "-o",
        tmp_path / "a.csv",
        "--report",
        tmp_path / "a.html",
    )
    good(*words, "--guide", folder / "jan")
    page = (tmp_path / "a.html").read_text()
    assert "from the noisy map and from the public guides" in page
    assert "computed from the noisy map alone" not in page


# ---- release --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    Ledger.create(path, dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6)
    return path


def releasing(folder, ledger, out, *more):
    return (
        "release", folder / "streets.npz", folder / "trips.csv", "--ledger", ledger, "--epsilon", 0.5, "--max-nodes", 2, "--max-per-node", 1,
        "--max-distance", 200, "--public-graph", "--method", "let", "-o", out, *more,
    )  # fmt: skip


def test_a_release_lists_its_guides(months, ledger, tmp_path):
    folder, graph = months
    more = ("--guide", folder / "jan", "--guide", folder / "mean.csv", "--street-guides")
    text = good(*releasing(folder, ledger, tmp_path / "may", *more, "--report", tmp_path / "may.html")).stdout
    assert "Guides: visits (a noisy map" in text
    assert text.index("Guides: ") < text.index("Files: ") < text.index("Verify: ")
    known = json.loads((tmp_path / "may" / "certificate.json").read_text())
    names = [guide["name"] for guide in known["denoised"]["guides"]]
    assert names == ["visits", "mean", "nothing", *graph.covariates()]
    assert "public guides" in known["remarks"][0]
    assert "public guides listed" in (tmp_path / "may.html").read_text()
    assert "nothing was charged" not in text
    ledger_of = Ledger.open(ledger)
    assert verify_release(tmp_path / "may", graph, ledger_of).ok
    assert ledger_of.spent == pytest.approx(0.5, rel=1e-6)  # guides cost nothing
    assert "guides" in good("verify", tmp_path / "may", folder / "streets.npz", "--ledger", ledger).stdout
    found = answer(*releasing(folder, ledger, tmp_path / "june", "--guide", tmp_path / "may"))
    assert [guide["name"] for guide in found["guides"]] == ["trips"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--guide", "nowhere.csv"], "nowhere.csv"),
        (["--guide", "{}"], "is not a release on this graph"),
        (["--guide", "{}/empty.csv"], "has no value at any node"),
        (["--guide", "{}/jan/map.csv"], "pass the folder"),
        (["--guide", "{}/mean.csv", "--method", "sgwt_deep"], "--guide"),
    ],
)
def test_a_broken_guide_costs_nothing(months, ledger, tmp_path, more, said):
    folder, graph = months
    write_signal(folder / "empty.csv", graph, {"empty": np.full(graph.n, np.nan)})
    refused = run(*releasing(folder, ledger, tmp_path / "may", *(word.format(folder) for word in more)))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert Ledger.open(ledger).spent == 0
    assert not (tmp_path / "may").exists()


def test_an_edited_release_as_a_guide_costs_nothing(months, ledger, tmp_path):
    folder, _ = months
    shutil.copytree(folder / "jan", tmp_path / "jan")
    known = json.loads((tmp_path / "jan" / "certificate.json").read_text())
    (tmp_path / "jan" / "certificate.json").write_text(json.dumps({**known, "epsilon": 0.1}))
    refused = run(*releasing(folder, ledger, tmp_path / "may", "--guide", tmp_path / "jan"))
    assert refused.exit_code == 2
    assert Ledger.open(ledger).spent == 0


@pytest.mark.parametrize("error", [ValueError("secret 77"), MemoryError(), InputError("a sentence")])
def test_a_paid_release_is_not_lost_if_its_guides_fail(months, ledger, tmp_path, monkeypatch, error):
    folder, graph = months
    real = hg.estimators.denoise

    def fails_with_guides(*arguments, guides=None, **settings):
        if guides is not None:
            raise error
        return real(*arguments, **settings)

    monkeypatch.setattr("hushgraph.estimators.denoise", fails_with_guides)
    found = answer(*releasing(folder, ledger, tmp_path / "may", "--guide", folder / "jan"))
    assert any("the release is paid for, so it was denoised without guides" in note for note in found["notes"])
    assert "secret" not in str(found)
    assert found["guides"] == []
    known = json.loads((tmp_path / "may" / "certificate.json").read_text())
    assert "guides" not in known["denoised"]
    assert "from the noisy map alone" in known["remarks"][0]
    assert read_release(tmp_path / "may", graph).epsilon == 0.5


# ---- plan-release -----------------------------------------------------------------------------------------------------------


def test_a_plan_after_earlier_maps(months):
    folder, _ = months
    words = ("plan-release", folder / "streets.npz", "--epsilon", 1, "--max-nodes", 2, "--max-per-node", 1)
    plain = answer(*words)
    assert "after" not in plain
    assert "error_guided" not in plain["rows"][0]
    found = answer(*words, "--after", 6)
    assert found["after"] == 6
    assert found["rows"][0]["error_guided"] < found["rows"][0]["error_denoised"] == plain["rows"][0]["error_denoised"]
    assert "guided: with 6 earlier maps" in good(*words, "--after", 6).stdout
    assert run(*words, "--after", 0).exit_code == 2
    refused = run(*words, "--after", 2, "--method", "sgwt_sure")
    assert refused.exit_code == 2
    assert "--after belongs to --method" in refused.stderr


def test_streets_of_graphml_are_read_with_their_attributes(tmp_path):
    networkx = pytest.importorskip("networkx")
    streets = networkx.MultiDiGraph(crs="epsg:4326")
    rng = np.random.default_rng(0)
    for row in range(8):
        for column in range(8):
            streets.add_node(8 * row + column, x=float(column), y=float(row))
    for one in range(64):
        for other in (one + 1, one + 8):
            if other < 64 and (other % 8 or other - one == 8):
                streets.add_edge(one, other, length=100.0, highway=str(rng.choice(["primary", "residential"])), oneway=False)
    networkx.write_graphml(streets, tmp_path / "streets.graphml")
    (tmp_path / "noisy.csv").write_text("node,value\n" + "".join(f"{k},{rng.normal()}\n" for k in range(64)))
    words = ("denoise", tmp_path / "streets.graphml", tmp_path / "noisy.csv", "--sigma", 1, "--unweighted", "--method", "let")
    names = [guide["name"] for guide in answer(*words, "-o", tmp_path / "a.csv", "--street-guides")["guides"]]
    assert {"degree", "street_class", "major_share"} <= set(names)
