"""Guides of a release: public maps that the denoised map may use, listed in the certificate; they cost no budget."""

import json

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._arrays import values_digest
from hushgraph._errors import InputTypeError
from hushgraph.privacy import export, read_release, release, verify_release
from hushgraph.privacy.counting import declare_counts
from hushgraph.privacy.guides import LARGEST_LIST, check_guides, is_guide_list, public_guides
from hushgraph.privacy.lattice import steps_from
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerTampered

ALONE = "The denoised map, its expected error and its intervals are computed from the noisy map alone and carry the same guarantee."
GUIDED = (
    "The denoised map, its expected error and its intervals are computed from the noisy map and from the public guides listed under "
    "denoised.guides; they carry the same guarantee."
)


@pytest.fixture(autouse=True)
def _the_same_noise_in_each_run(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr("hushgraph.privacy.releases.lattice_noise", lambda size, *, sigma: steps_from(rng.bytes, size, sigma))


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(150)


@pytest.fixture(scope="module")
def intensity(graph):
    return 0.5 + hg.hotspot_counts(graph, total=3000)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=9, delta=1e-6)


def released(graph, intensity, ledger, seed, *, windows=None):
    shape = graph.n if windows is None else (graph.n, len(windows) - 1)
    mean = intensity if windows is None else intensity[:, None]
    values = np.random.default_rng(seed).poisson(mean, shape)
    counts = declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity=1, windows=windows)
    return release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)


def certificate_in(folder):
    return json.loads((folder / "certificate.json").read_text(encoding="utf-8"))


# ---- what the certificate says ----------------------------------------------------------------------------------------


def test_a_certificate_lists_the_guides_and_says_so(graph, intensity, ledger, tmp_path):
    april, may, june = (released(graph, intensity, ledger, seed) for seed in range(3))
    spent = ledger.spent
    folder = june.export(tmp_path / "june", guides=[april, may, {"intensity": intensity}])
    assert ledger.spent == spent  # post-processing
    known = certificate_in(folder)
    earlier, other = known["denoised"]["guides"]
    assert earlier["name"] == "2 earlier releases"
    assert earlier["sha256"] == [april.certificate["values_sha256"], may.certificate["values_sha256"]]
    assert "2 noisy maps, combined" in earlier["made_from"]
    assert (other["name"], other["made_from"], other["sha256"]) == ("intensity", "a public map", [values_digest(intensity)])
    assert 0 < earlier["risk_removed"] + other["risk_removed"] <= 1 + 1e-9
    assert known["remarks"][0] == GUIDED
    found = verify_release(folder, graph, ledger)
    assert found.ok
    assert "nor that the guides are public" in str(found)
    assert "hushgraph denoise GRAPH FOLDER --guide ... makes them again" in str(found)
    ledger.verify(folder / "certificate.json")
    back = read_release(folder, graph)
    assert np.array_equal(back.values, june.values)
    expected = hg.denoise(graph, june, nonnegative=True, guides=[april, may, {"intensity": intensity}])
    column = np.loadtxt(folder / "map.csv", delimiter=",", skiprows=1)[:, -4]
    assert np.array_equal(column, expected.signal)


def test_a_certificate_without_guides_is_as_before(graph, intensity, ledger, tmp_path):
    folder = released(graph, intensity, ledger, 0).export(tmp_path / "june")
    known = certificate_in(folder)
    assert set(known["denoised"]) == {"method", "nonnegative", "integer", "noise_level", "interval"}
    assert known["remarks"][0] == ALONE
    assert "guides" not in str(verify_release(folder))


def test_windows_list_each_guide_once_and_not_themselves(graph, intensity, ledger, tmp_path):
    day = released(graph, intensity, ledger, 1, windows=(0, 8, 16, 24))
    alone = certificate_in(day.export(tmp_path / "alone"))
    assert "guides" not in alone["denoised"]  # the windows guide each other, from the noisy map alone
    assert alone["remarks"][0] == ALONE
    known = certificate_in(day.export(tmp_path / "guided", guides={"intensity": intensity}))
    (guide,) = known["denoised"]["guides"]
    assert (guide["name"], guide["sha256"]) == ("intensity", [values_digest(intensity)])
    assert 0 <= guide["risk_removed"] <= 1
    assert verify_release(tmp_path / "guided", graph, ledger).ok
    assert read_release(tmp_path / "guided", graph).windows == (0, 8, 16, 24)


def test_no_value_of_a_guide_is_written(graph, intensity, ledger, tmp_path):
    secret = intensity + 77.123456
    folder = released(graph, intensity, ledger, 0).export(tmp_path / "june", guides={"other": secret})
    assert "77.1" not in (folder / "certificate.json").read_text()
    assert set(certificate_in(folder)["denoised"]["guides"][0]) == {"name", "made_from", "sha256", "risk_removed"}


# ---- what is refused --------------------------------------------------------------------------------------------------


def test_guides_that_cannot_be_used_write_nothing(graph, intensity, ledger, tmp_path):
    june = released(graph, intensity, ledger, 0)
    counts = declare_counts(graph, np.ones(graph.n, dtype=int), unit="person", adjacency="add-remove", sensitivity=1)
    for private in (counts, [counts], {"counts": counts}, [{"counts": [counts]}]):
        with pytest.raises(InputTypeError, match="a CountMap holds private counts"):
            june.export(tmp_path / "june", guides=private)
    for guides, message in (
        (june, "holds the noise of the values"),
        (hg.denoise(graph, june), "holds the noise of the values"),
        (np.ones(3), "guide"),
        (np.full(graph.n, np.nan), "has no value at any node"),
        ({"fine": intensity, "odd \udcff": intensity}, "the name of guide number 2 must be text in one line"),
        ({"odd\nlines": intensity}, "the name of guide number 1 must be text in one line"),
    ):
        with pytest.raises(ValueError, match=message):
            june.export(tmp_path / "june", guides=guides)
    with pytest.raises(ValueError, match="belongs to method='auto' or 'let' or 'counts'; got 'sgwt_sure'"):
        june.export(tmp_path / "june", guides=intensity, method="sgwt_sure")
    with pytest.raises(ValueError, match="guides or denoised, not both"):
        export(june, tmp_path / "june", method="auto", denoised=hg.denoise(graph, june), guides=intensity)
    assert not (tmp_path / "june").exists()


def test_a_list_of_guides_that_no_certificate_can_hold_is_refused(graph, intensity):
    many = np.repeat(intensity[:, None], LARGEST_LIST // 80, axis=1) + np.arange(LARGEST_LIST // 80)
    noisy = hg.graphs.Noisy(many, sigma=1.0, kind="measurement", graph_hash=graph.hash)
    with pytest.raises(ValueError, match=r"at most 300,000 bytes, and 3,750 maps need more"):
        check_guides(graph, noisy, method="auto")
    check_guides(graph, hg.graphs.Noisy(many[:, :2000], sigma=1.0, kind="measurement", graph_hash=graph.hash), method="auto")


# ---- edited lists -------------------------------------------------------------------------------------------------------


def without_guides(known):
    del known["denoised"]["guides"]


def with_remark_of_none(known):
    known["remarks"][0] = ALONE


def without_guides_and_remark(known):
    without_guides(known)
    with_remark_of_none(known)


EDITS = {
    "no list": (without_guides, "its remarks is not what follows from its fields"),
    "another remark": (with_remark_of_none, "its remarks is not what follows from its fields"),
    "an empty list": (lambda known: known["denoised"].update(guides=[]), "its list of guides is not whole"),
    "no list but a number": (lambda known: known["denoised"].update(guides=7), "its list of guides is not whole"),
    "no digest": (lambda known: known["denoised"]["guides"][0].update(sha256=[]), "its list of guides is not whole"),
    "half a digest": (lambda known: known["denoised"]["guides"][0].update(sha256=["ab"]), "its list of guides is not whole"),
    "no name": (lambda known: known["denoised"]["guides"][0].update(name=""), "its list of guides is not whole"),
    "too large a share": (lambda known: known["denoised"]["guides"][0].update(risk_removed=2), "its list of guides is not whole"),
    "a guide twice": (
        lambda known: known["denoised"]["guides"].append(known["denoised"]["guides"][0]),
        "its list of guides is not",
    ),
    "one more field": (lambda known: known["denoised"]["guides"][0].update(audited=1), "such as 'denoised.guides.audited'"),
    "an old format": (lambda known: known.update(format="hushgraph release 1"), "field"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_list_is_noticed(graph, intensity, ledger, tmp_path, name):
    edit, fault = EDITS[name]
    folder = released(graph, intensity, ledger, 0).export(tmp_path / "june", guides={"intensity": intensity})
    known = certificate_in(folder)
    edit(known)
    (folder / "certificate.json").write_text(json.dumps(known))
    faults = verify_release(folder, graph, ledger).faults
    assert any(fault in check.detail for check in faults), faults
    with pytest.raises(ValueError, match="is not a release on this graph"):
        read_release(folder, graph)
    with pytest.raises(LedgerTampered):
        ledger.verify(known)


def test_what_nobody_can_notice_is_said(graph, intensity, ledger, tmp_path):
    """Guides are chosen after the charge, and certificates are not signed: a list that is removed with its remark is not noticed."""
    folder = released(graph, intensity, ledger, 0).export(tmp_path / "june", guides={"intensity": intensity})
    known = certificate_in(folder)
    without_guides_and_remark(known)
    (folder / "certificate.json").write_text(json.dumps(known))
    found = verify_release(folder, graph, ledger)
    assert found.ok
    assert {check.claim: check.holds for check in found.checks}["The denoised column is that of the method"] is None


def test_lists_of_guides():
    entry = {"name": "a", "made_from": "a public map", "sha256": ["0" * 64], "risk_removed": 0}
    assert is_guide_list([entry])
    for change in (
        {"name": 1},
        {"made_from": None},
        {"sha256": "0" * 64},
        {"sha256": [1]},
        {"risk_removed": True},
        {"risk_removed": -1},
    ):
        assert not is_guide_list([{**entry, **change}])
    assert not is_guide_list([{name: value for name, value in entry.items() if name != "sha256"}])
    assert not is_guide_list({"a": entry})


def test_results_without_guides_list_none(graph, intensity):
    assert public_guides(hg.denoise(graph, intensity, sigma=1)) == []
