"""release: one charge, one draw; the certificate; totals; post-processing; what is refused."""

import copy
import csv
import dataclasses
import errno
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import hushgraph as hg
from hushgraph._errors import InputTypeError
from hushgraph.files import read_signal
from hushgraph.privacy import publication, release, releases
from hushgraph.privacy.calibration import analytic_sigma, classical_sigma
from hushgraph.privacy.counting import count_events, declare_counts
from hushgraph.privacy.lattice import lattice_step
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import BudgetExceeded, LedgerError
from hushgraph.privacy.planning import plan_release
from hushgraph.privacy.releases import read_release, simulate


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.city(400)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", dataset="trips", unit="person", adjacency="add-remove", epsilon=5, delta=1e-6)


@pytest.fixture
def counts(graph):
    values = np.random.default_rng(0).poisson(8, graph.n)
    return declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity_squared=2)


@pytest.fixture
def day(graph):
    values = np.random.default_rng(0).poisson(8, (graph.n, 3))
    return declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity_squared=2, windows=(0, 8, 16, 24))


@pytest.fixture
def draws(monkeypatch):
    """How many entries were drawn, block by block: bytes of entropy that any code takes for noise, over 8."""
    calls = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: (calls.append(size // 8) if size > 64 else None) or real(size))
    return calls


# ---- what comes out -----------------------------------------------------------------------------------------------------


@pytest.mark.statistics
def test_a_release_is_the_counts_plus_lattice_noise(counts, ledger):
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    assert public.sigma == analytic_sigma(epsilon=1, delta=1e-6, sensitivity_squared=2)
    assert public.lattice == lattice_step(public.sigma)
    steps = (public.values - counts.counts) / public.lattice
    assert np.array_equal(steps, np.rint(steps))
    chi = np.sum((public.values - counts.counts) ** 2) / public.noise_level**2
    assert 1e-6 < stats.chi2.cdf(chi, counts.graph.n) < 1 - 1e-6
    assert public.noise_level == pytest.approx(np.sqrt(public.sigma**2 + public.lattice**2 / 12), rel=1e-15)
    assert (public.kind, public.exportable, public.graph_hash) == ("release", True, counts.graph.hash)


def test_classical_mechanism(counts, ledger):
    public = release(counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True, mechanism="classical")
    assert public.sigma == classical_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=2)
    assert public.certificate["mechanism"].startswith("classical")


def test_huge_counts_stay_exact_or_are_clamped(graph, ledger):
    """Counts of 2^40 keep their lattice noise; beyond 2^52 g they are clamped, which moves no two of them apart."""
    values = np.zeros(graph.n, dtype=np.int64)
    values[:3] = 2**40, 2**52, -(2**52)
    counts = declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity=1)
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    assert np.array_equal(public.values / public.lattice, np.rint(public.values / public.lattice))
    assert abs(public.values[0] - 2**40) < 50 * public.sigma
    assert abs(public.values[1] - 2**52 * public.lattice) < 50 * public.sigma
    assert abs(public.values[2] + 2**52 * public.lattice) < 50 * public.sigma


def test_denoise_takes_sigma_from_the_release(graph, counts, ledger):
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    result = hg.denoise(graph, public)
    assert result.sigma == public.noise_level
    assert np.array_equal(result.signal, hg.denoise(graph, public, sigma=public.sigma).signal)
    assert np.array_equal(result.signal, hg.denoise(graph, public.values, sigma=public.noise_level).signal)
    with pytest.raises(ValueError, match="sigma travels with the noisy signal"):
        hg.denoise(graph, public, sigma=1.1 * public.sigma)
    with pytest.raises(ValueError, match="belong to another graph"):
        hg.denoise(hg.datasets.city(300), public)


def test_nonnegative_and_integer(graph, counts, ledger):
    public = release(counts, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
    plain, clipped, whole = (
        hg.denoise(graph, public, method="sgwt_deep", **flags)
        for flags in ({}, {"nonnegative": True}, {"nonnegative": True, "integer": True})
    )
    assert np.array_equal(clipped.signal, np.maximum(plain.signal, 0))
    assert np.array_equal(whole.signal, np.rint(clipped.signal))
    assert plain.risk == clipped.risk == whole.risk
    for name in ("nonnegative", "integer"):
        with pytest.raises(ValueError, match=f"{name} must be one of True, False"):
            hg.denoise(graph, public, **{name: "yes"})


def test_assumed_counts_take_the_ledgers_unit(graph, ledger):
    events = {"node": np.arange(graph.n)}
    with pytest.warns(UserWarning, match="assumed to hold, not enforced"):
        counts = count_events(graph, events, adjacency="add-remove", max_nodes=1, max_per_node=1)
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    assert (public.unit, public.bound) == ("person", "assumed")
    assert "ASSUMED" in public.certificate["statement"]


# ---- totals -------------------------------------------------------------------------------------------------------------


@pytest.mark.statistics
def test_totals_are_unbiased_with_their_standard_error(graph, tmp_path):
    """z-test of 300 releases, false-alarm rate 1e-6; a denoised map's total is biased (negative control)."""
    truth = hg.hotspot_counts(graph, total=3000).astype(int)
    region = np.flatnonzero(truth > np.quantile(truth, 0.9))  # chosen on generated truth, not on the release
    counts = declare_counts(graph, truth, unit="person", adjacency="add-remove", sensitivity=1)
    ledger = Ledger.create(
        tmp_path / "b.db", dataset="x", unit="person", adjacency="add-remove", epsilon=1000, delta=1e-6, weak_guarantee=True
    )
    public = [release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True) for _ in range(300)]
    totals = [one.total(region) for one in public]
    miss = np.array([total.estimate - truth[region].sum() for total in totals])
    assert totals[0].standard_error == pytest.approx(public[0].noise_level * np.sqrt(len(region)))
    assert 2 * stats.norm.sf(abs(miss.mean()) / (totals[0].standard_error / np.sqrt(300))) > 1e-6
    assert 1e-6 < stats.chi2.cdf(np.sum(miss**2) / totals[0].standard_error ** 2, 300) < 1 - 1e-6
    shrunk = np.array([hg.denoise(graph, one).signal[region].sum() for one in public[:40]]) - truth[region].sum()
    assert 2 * stats.norm.sf(abs(shrunk.mean()) / (totals[0].standard_error / np.sqrt(40))) < 1e-6


def test_totals_of_masks_numbers_and_windows(graph, day, ledger):
    public = release(day, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    mask = np.zeros(graph.n, dtype=bool)
    mask[[3, 5]] = True
    assert public.total(mask) == public.total([3, 5])
    assert public.total([3, 5]).estimate == public.values[[3, 5]].sum()
    assert public.total([3, 5], windows=[0, 2]).n_values == 4
    assert public.total([3], windows=1).estimate == public.values[3, 1]
    assert public.total().n_values == 3 * graph.n
    assert "±" in str(public.total())
    with pytest.raises(ValueError, match="unique"):
        public.total([3, 3])
    with pytest.raises(ValueError, match="windows must be an integer from 0 to 2"):
        public.total([3], windows=3)
    with pytest.raises(ValueError, match="names a window twice"):
        public.total([3], windows=[1, 1])


def test_better_totals_hold_the_noisy_ones(counts, day, ledger):
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    regions = {"some": [3, 5, 7], "others": range(10)}
    totals = public.totals(regions)
    for name, nodes in regions.items():
        noisy = public.total(list(nodes))
        assert totals[name].noisy == pytest.approx(noisy.estimate)
        assert totals[name].noisy_se == pytest.approx(noisy.standard_error)
    assert (totals.interval()[0] >= 0).all()
    windows = release(day, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True).totals(regions, method="let")
    assert windows.names == ("some",) * 3 + ("others",) * 3
    assert windows.columns == (0, 1, 2) * 2


def test_no_windows_no_windows_argument(counts, ledger):
    public = release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    with pytest.raises(ValueError, match="no time windows"):
        public.total([3], windows=0)


# ---- one charge, one draw -----------------------------------------------------------------------------------------------


def test_every_entry_is_drawn_once(graph, counts, day, ledger, draws, tmp_path):
    """Release, denoise, totals, export, reading back, repr, plan and simulation: the draws are exactly those of the charges."""
    plan_release(graph, epsilon=1, n_draws=1, adjacency="add-remove", max_nodes=1, max_per_node=1)
    simulate(graph, np.ones(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    for number, source in enumerate((counts, day)):
        public = release(source, epsilon=0.5, delta=1e-6, ledger=ledger, public_graph=True)
        hg.denoise(graph, public)
        public.total([1])
        public.totals({"one": [1]})
        public.export(tmp_path / str(number))
        read_release(tmp_path / str(number), graph)
        repr(public), public.certificate
        pickle.loads(pickle.dumps(public))
    assert [entry["kind"] for entry in ledger.entries()] == ["create", "charge", "draw", "charge", "draw"]
    assert draws == [graph.n, 3 * graph.n]


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": -1},
        {"delta": 0},
        {"public_graph": False},
        {"ledger": None},
        {"seed": 1},
        {"mechanism": "laplace"},
        {"epsilon": 400},
    ],
)
def test_refused_releases_neither_charge_nor_draw(counts, ledger, draws, bad):
    before = len(ledger)
    with pytest.raises((ValueError, TypeError, LedgerError)):
        release(counts, **{"epsilon": 1, "delta": 1e-6, "ledger": ledger, "public_graph": True, **bad})
    assert len(ledger) == before
    assert draws == []


def test_a_charge_pays_for_one_draw(counts, ledger, draws):
    charge = ledger.charge(sensitivity_squared=2, sigma=10.0, epsilon=1.0, delta=1e-6)
    releases._draw(counts, charge)
    with pytest.raises(LedgerError, match="one charge, one draw"):
        releases._draw(counts, charge)
    assert len(draws) == 1


def test_the_budget_ends(counts, tmp_path, draws):
    ledger = Ledger.create(tmp_path / "b.db", dataset="x", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6)
    release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)  # exactly all of it
    with pytest.raises(BudgetExceeded, match="renew"):
        release(counts, epsilon=0.01, delta=1e-6, ledger=ledger, public_graph=True)
    assert len(draws) == 1


def test_a_crash_after_the_charge_costs_budget_and_releases_nothing(tmp_path):
    """kill -9 between charge and draw."""
    script = textwrap.dedent(
        """
        import os, signal, sys
        import numpy as np, hushgraph as hg
        from hushgraph.privacy.ledger.budget import Ledger; from hushgraph.privacy.counting import declare_counts; from hushgraph.privacy import release
        from hushgraph.privacy import releases
        releases._draw = lambda counts, charge: os.kill(os.getpid(), signal.SIGKILL)
        graph = hg.Graph.from_edges([(0, 1)], n=3)
        counts = declare_counts(graph, np.array([1, 2, 3]), unit="person", adjacency="add-remove", sensitivity=1)
        ledger = Ledger.create(sys.argv[1], dataset="x", unit="person", adjacency="add-remove", epsilon=1, delta=1e-6)
        release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True).export(sys.argv[2])
        """
    )
    path, folder = tmp_path / "b.db", tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", script, str(path), str(folder)], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()
    ledger = Ledger.open(path)
    assert len(ledger) == 2
    assert ledger.spent == pytest.approx(1, abs=1e-12)


def test_the_ledger_must_protect_the_same_unit(graph, counts, ledger, tmp_path):
    other = Ledger.create(tmp_path / "o.db", dataset="trips", unit="driver", adjacency="add-remove", epsilon=5, delta=1e-6)
    with pytest.raises(LedgerError, match="the ledger protects unit 'driver', the counts 'person'"):
        release(counts, epsilon=1, delta=1e-6, ledger=other, public_graph=True)
    changed = declare_counts(graph, np.zeros(graph.n, dtype=int), unit="person", adjacency="change-one", sensitivity=1)
    with pytest.raises(LedgerError, match="adjacency 'add-remove', the counts 'change-one'"):
        release(changed, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)


# ---- what is refused ------------------------------------------------------------------------------------------------------


def _release(counts, ledger, **changes):
    return release(counts, **{"epsilon": 0.5, "delta": 1e-6, "ledger": ledger, "public_graph": True, **changes})


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), -1, True, "1", None, 0])
def test_refuses_epsilon(counts, ledger, epsilon):
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        _release(counts, ledger, epsilon=epsilon)


@pytest.mark.parametrize("delta", [float("nan"), float("inf"), -1, True, "1", None, 0, 1, 1.5, 0.0011])
def test_refuses_delta(counts, ledger, delta):
    with pytest.raises(ValueError, match=r"delta must be above 0 and at most 0\.001"):
        _release(counts, ledger, delta=delta)


@pytest.mark.parametrize("epsilon", [1, 1.0, 2])
def test_refuses_classical_at_one(counts, ledger, epsilon):
    with pytest.raises(ValueError, match="epsilon < 1 only"):
        _release(counts, ledger, epsilon=epsilon, mechanism="classical")


@pytest.mark.parametrize(
    "extra", [{"seed": 0}, {"rng": np.random.default_rng(0)}, {"noise": np.random.default_rng(0)}, {"random_state": 1}]
)
def test_refuses_a_seed(counts, ledger, extra):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(extra))}'"):
        _release(counts, ledger, **extra)


def test_refuses_unknown_arguments(counts, ledger):
    with pytest.raises(TypeError, match="unexpected keyword argument 'sigma'"):
        _release(counts, ledger, sigma=0)


@pytest.mark.parametrize("name", ["epsilon", "delta", "ledger"])
def test_guarantee_and_ledger_have_no_default(counts, ledger, name):
    given = {"epsilon": 0.5, "delta": 1e-6, "ledger": ledger, "public_graph": True}
    del given[name]
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{name}'"):
        release(counts, **given)


@pytest.mark.parametrize("given", [False, None, 1, "yes"])
def test_refuses_a_graph_that_is_not_attested(counts, ledger, given):
    with pytest.raises(ValueError, match="public_graph=True is needed"):
        _release(counts, ledger, public_graph=given)


@pytest.mark.parametrize("given", [None, "budget.db", 3])
def test_refuses_without_a_ledger(counts, given):
    with pytest.raises(InputTypeError, match=r"ledger must be a privacy.Ledger.*Ledger.create"):
        _release(counts, given)


def test_refuses_an_edited_ledger(counts, ledger):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        table = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0]
        column = connection.execute(f"PRAGMA table_info({table})").fetchall()[-1][1]
        connection.execute(f"UPDATE {table} SET {column} = 'x' || {column}")
    with pytest.raises(LedgerError, match=r"was edited|rolled back or rewritten"):
        _release(counts, ledger)


def test_refuses_a_missing_ledger(counts, ledger):
    ledger.path.unlink()
    with pytest.raises(LedgerError, match=r"nothing was charged and nothing may be released: there is no ledger"):
        _release(counts, ledger)


@pytest.mark.parametrize("given", [np.arange(5), [1, 2], {"a": 1}, None])
def test_refuses_counts_without_a_sensitivity(ledger, given):
    with pytest.raises(TypeError, match=r"release takes a CountMap.*declare_counts"):
        _release(given, ledger)


@pytest.mark.parametrize("name", ["not_protected", "attribution", "note"])
def test_refuses_remarks_that_are_no_text(counts, ledger, name):
    with pytest.raises(TypeError, match=f"{name} must be text"):
        _release(counts, ledger, **{name: 3})


def test_refuses_noise_that_does_not_fit(graph, tmp_path):
    counts = declare_counts(graph, np.zeros(graph.n, dtype=int), unit="person", adjacency="add-remove", sensitivity=1)
    ledger = Ledger.create(
        tmp_path / "b.db", dataset="x", unit="person", adjacency="add-remove", epsilon=1e6, delta=1e-3, weak_guarantee=True
    )
    with pytest.raises(ValueError, match="sigma must be between"):
        release(counts, epsilon=1e6, delta=1e-6, ledger=ledger, public_graph=True, weak_guarantee=True)


def test_oracles_refuse_a_release(graph, counts, ledger):
    public = _release(counts, ledger)
    frame = hg.chebyshev_frame(graph)
    F = hg.analyze(frame, public.values)
    for attempt in (
        lambda: hg.snr(counts.counts, public),
        lambda: hg.mse(public, counts.counts),
        lambda: hg.oracle_thresholds(F, public),
        lambda: hg.oracle_thresholds(public, F),
    ):
        with pytest.raises(TypeError, match="a private release; comparing it with the truth"):
            attempt()
    for act in (lambda: hg.analyze(frame, public), lambda: hg.estimate_sigma(graph, public)):
        with pytest.raises(TypeError, match=r"must be plain numbers; got a Release; pass its .values"):
            act()
    with pytest.raises(TypeError, match="exact counts are private"):
        hg.denoise(graph, counts, sigma=1.0)
    noisy = simulate(graph, np.ones(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    with pytest.raises(TypeError, match=r"pass its .values"):
        hg.snr(np.ones(graph.n), noisy)


# ---- simulations ------------------------------------------------------------------------------------------------------------


def test_simulations_repeat_and_cannot_be_exported(graph):
    values = hg.hotspot_counts(graph, total=3000)
    one, two, other = (simulate(graph, values, epsilon=1, delta=1e-6, sensitivity=1, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.values, two.values)
    assert not np.array_equal(one.values, other.values)
    assert (one.kind, one.exportable, hasattr(one, "export")) == ("simulation", False, False)
    steps = (one.values - values) / one.lattice
    assert np.array_equal(steps, np.rint(steps))
    assert hg.denoise(graph, one).sigma == one.noise_level
    with pytest.raises(ValueError, match="a simulation is not exportable"):
        hg.Noisy(one.values, sigma=1, kind="simulation", graph_hash=graph.hash, exportable=True)


@pytest.mark.statistics
def test_simulations_have_the_noise_they_state(graph):
    """Chi-square over 400 draws, false-alarm rate 2e-6; sigma 10 % off is caught."""
    chi = sum(
        np.sum(simulate(graph, np.zeros(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=k).values ** 2) for k in range(400)
    )
    level = analytic_sigma(epsilon=1, delta=1e-6, sensitivity=1)
    assert 1e-6 < stats.chi2.cdf(chi / level**2, 400 * graph.n) < 1 - 1e-6
    assert not 1e-6 < stats.chi2.cdf(chi / (1.1 * level) ** 2, 400 * graph.n) < 1 - 1e-6


def test_simulate_refuses_private_counts_and_bad_seeds(graph, counts):
    with pytest.raises(TypeError, match="noise on them is drawn once, by release"):
        simulate(graph, counts, epsilon=1, delta=1e-6, sensitivity=1, seed=0)
    with pytest.raises(ValueError, match="seed must be an integer"):
        simulate(graph, np.ones(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=-1)
    assert simulate(graph, np.ones(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=0, mechanism="classical", paper_compat=True)
    with pytest.raises(ValueError, match="epsilon < 1 only"):
        simulate(graph, np.ones(graph.n), epsilon=1, delta=1e-6, sensitivity=1, seed=0, mechanism="classical")


# ---- the folder -------------------------------------------------------------------------------------------------------------


def test_the_certificate_says_what_it_must(graph, counts, ledger, tmp_path):
    public = _release(counts, ledger, not_protected="drivers", attribution="© OpenStreetMap contributors")
    folder = public.export(tmp_path / "out")
    text = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert text["epsilon"] == 0.5
    assert text["delta"] == 1e-6
    assert text["sensitivity_squared"] == 2
    assert (text["unit"], text["adjacency"], text["bound"], text["public_graph"]) == ("person", "add-remove", "assumed", True)
    assert (text["not_protected"], text["attribution"]) == ("drivers", "© OpenStreetMap contributors")
    assert (text["sigma"], text["lattice"]) == (public.sigma, public.lattice)
    assert text["graph"] == {"hash": graph.hash, "nodes": graph.n, "edges": graph.n_edges, "places": graph.places_hash}
    head, budget = ledger.entries()[1]["head"], {"epsilon": 5.0, "delta": 1e-6, "period": None, "spent": pytest.approx(0.5)}
    stamp = {"identity": ledger.identity, "dataset": "trips", "entry": 2, "head": head, "replaces": None, "budget": budget}
    assert text["ledger"] == stamp
    assert text["largest_count"] == 2**52 * public.lattice
    assert text["versions"]["hushgraph"] == hg.__version__
    assert "timing" in " ".join(text["remarks"]) or "time the computation" in " ".join(text["remarks"])
    ledger.verify(text)
    ledger.verify(folder / "certificate.json")


def test_the_map_holds_noisy_denoised_and_error(graph, counts, ledger, tmp_path):
    public = _release(counts, ledger)
    folder = public.export(tmp_path / "out", integer=True)
    result = hg.denoise(graph, public, nonnegative=True, integer=True)
    with (folder / "map.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["node", "x", "y", "noisy", "denoised", "expected_error", "lower", "upper"]
    lower, upper = (np.maximum(end, 0) for end in result.interval(0.9))
    expected = {
        "noisy": public.values,
        "denoised": result.signal,
        "expected_error": result.expected_error(),
        "lower": lower,
        "upper": upper,
    }
    for name, values in expected.items():
        assert np.array_equal([float(row[name]) for row in rows], values)
    assert read_signal(folder / "map.csv", graph).shape == (graph.n, 2)  # noisy and denoised; what goes with them is left out


@pytest.mark.parametrize("nonnegative", [True, False])
def test_no_interval_of_counts_reaches_below_zero(graph, counts, ledger, tmp_path, nonnegative):
    folder = _release(counts, ledger).export(tmp_path / "out", nonnegative=nonnegative)
    lower, upper = read_signal(folder / "map.csv", graph, columns=["lower", "upper"]).T
    assert lower.min() >= 0
    assert (lower <= upper).all()


def test_ends_below_zero_are_cut(graph):
    values = np.linspace(-30, 10, graph.n)
    noisy = {kind: hg.Noisy(values, sigma=1.0, kind=kind, graph_hash=graph.hash) for kind in ("measurement", "simulation")}
    (lower, upper), cut = (hg.denoise(graph, one, method="sgwt_sure").interval(0.9) for one in noisy.values())
    assert upper.min() < 0
    assert np.array_equal(cut, np.maximum([lower, upper], 0))


def test_the_certificate_says_what_the_interval_is(graph, counts, ledger, tmp_path):
    certificate = json.loads((_release(counts, ledger).export(tmp_path / "out") / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["denoised"]["interval"] == 0.9
    assert "about 90 % of the true counts are expected between them" in certificate["remarks"][1]
    assert "not a guarantee" in certificate["remarks"][1]


def test_reading_back(graph, counts, day, ledger, tmp_path):
    for number, source in enumerate((counts, day)):
        public = _release(source, ledger, not_protected="drivers")
        back = read_release(public.export(tmp_path / str(number)), graph)
        assert np.array_equal(back.values, public.values)
        assert back.certificate == json.loads(json.dumps(public.certificate))
        assert back.total([1, 2]) == public.total([1, 2])
        assert np.array_equal(hg.denoise(graph, back).signal, hg.denoise(graph, public).signal)


def test_a_changed_folder_is_noticed(graph, counts, ledger, tmp_path):
    folder = _release(counts, ledger).export(tmp_path / "out")
    with pytest.raises(ValueError, match="belongs to another graph"):
        read_release(folder, hg.datasets.city(300))
    with pytest.raises(ValueError, match=r"it should hold a whole certificate.json and map.csv"):
        read_release(tmp_path, graph)
    with (folder / "map.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(ValueError, match="not the file that the certificate describes"):
        read_release(folder, graph)


def test_export_needs_a_new_folder(counts, ledger, tmp_path):
    public = _release(counts, ledger)
    public.export(tmp_path / "out")
    with pytest.raises(FileExistsError, match="choose another name"):
        public.export(tmp_path / "out")


@pytest.mark.parametrize("when", ["write_map", "_write_text", "file_digest"])
def test_a_full_disk_leaves_nothing_and_loses_nothing(counts, ledger, tmp_path, monkeypatch, when):
    public = _release(counts, ledger)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(publication, when, full)
        with pytest.raises(OSError, match="no part of it was left behind; if you have the release in a variable"):
            public.export(tmp_path / "deep" / "out")
    assert list((tmp_path / "deep").iterdir()) == []
    assert public.export(tmp_path / "deep" / "out").is_dir()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_really_full(counts, ledger, tmp_path, monkeypatch):
    public = _release(counts, ledger)
    real = publication.write_map
    monkeypatch.setattr(
        publication, "write_map", lambda path, *rest, **options: (path.symlink_to("/dev/full"), real(path, *rest, **options))
    )
    with pytest.raises(OSError, match=r"No space left on device.*no part of it was left behind"):
        public.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- nothing private anywhere ---------------------------------------------------------------------------------------------

SECRET = 987_654_321  # a count that no noise and no other number here comes near


def test_planted_counts_appear_nowhere(graph, ledger, tmp_path, caplog, capsys, recwarn):
    """Released with little noise, a planted count shows only in the released value itself, never exactly elsewhere."""
    caplog.set_level(logging.DEBUG)
    values = np.zeros(graph.n, dtype=np.int64)
    values[7] = SECRET
    counts = declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity=1)
    texts = [repr(counts), str(counts), f"{counts!r:>10}", repr(vars(type(counts)))]
    for attempt in (
        lambda: pickle.dumps(counts),
        lambda: copy.deepcopy(counts),
        lambda: copy.copy(counts),
        lambda: np.asarray(counts) + 1,
    ):
        with pytest.raises(TypeError) as caught:
            attempt()
        texts.append(str(caught.value))
    for wrong in (
        {"epsilon": "x"},
        {"delta": 2},
        {"seed": 1},
        {"public_graph": False},
        {"ledger": None},
        {"mechanism": "x"},
        {"epsilon": 400},
    ):
        with pytest.raises((ValueError, TypeError, LedgerError)) as refused:
            _release(counts, ledger, **wrong)
        texts.append(str(refused.value) + repr(refused.value.__cause__) + repr(refused.value.__context__))
    public = _release(counts, ledger)
    assert not any(vars(public)[name] is counts for name in vars(public))
    result = hg.denoise(graph, public)
    folder = public.export(tmp_path / "out")
    texts += [repr(public), str(public), repr(result), json.dumps(public.certificate), repr(ledger), str(ledger.entries())]
    texts += [caplog.text, "".join(capsys.readouterr()), *(str(warning.message) for warning in recwarn)]
    files = [path.read_bytes() for path in (*folder.iterdir(), ledger.path, *(tmp_path / "state").rglob("*.db"))]
    blobs = [pickle.dumps(public), pickle.dumps(result), *files]
    spelled = [f"{SECRET}", f"{SECRET:,}", f"{SECRET}.0", "9.87654321e+08", "9.87654e+08"]
    if public.values[7] == SECRET:  # one chance in thousands: the noise is zero there
        return
    for text in texts:
        assert not any(word in text for word in spelled)
    encoded = [np.int64(SECRET).tobytes(), np.float64(SECRET).tobytes(), np.int64(SECRET * round(1 / public.lattice)).tobytes()]
    for blob in blobs:
        assert not any(re.search(re.escape(word.encode()) + rb"(?![.0-9])", blob) for word in spelled)
        assert not any(code in blob for code in encoded)


def test_the_search_above_can_find(tmp_path):
    """Negative control: a leaked array is found in a pickle, a leaked number in a text."""
    leaked = pickle.dumps(np.array([0, SECRET]))
    assert np.int64(SECRET).tobytes() in leaked
    assert re.search(re.escape(str(SECRET).encode()) + rb"(?![.0-9])", json.dumps({"n": SECRET}).encode())


def test_fractions_are_written_exactly(graph, ledger, tmp_path):
    counts = declare_counts(
        graph, np.zeros(graph.n, dtype=int), unit="person", adjacency="add-remove", sensitivity_squared=Fraction(1, 3)
    )
    public = _release(counts, ledger)
    assert public.certificate["sensitivity_squared"] == "1/3"
    assert read_release(public.export(tmp_path / "out"), graph).certificate["sensitivity_squared"] == "1/3"


# ---- what nobody but release() makes ------------------------------------------------------------------------------------------


def test_a_release_cannot_be_put_together_by_hand(counts, ledger):
    public = _release(counts, ledger)
    with pytest.raises(TypeError, match="made by release"):
        dataclasses.replace(public, values=counts.counts)
    fields = {field.name: getattr(public, field.name) for field in dataclasses.fields(public)}
    with pytest.raises(TypeError, match="made by release"):
        type(public)(**fields)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"sigma": 0.1}, "its noise is not that of its epsilon and delta"),
        ({"epsilon": 0.01}, "its noise is not that of its epsilon and delta"),
        ({"lattice": 0.5}, "its noise is not that"),
        ({"epsilon": "tiny"}, "it should hold a whole certificate"),
        ({"adjacency": "whatever"}, "the certificate is not one of"),
        ({"public_graph": False}, "the certificate is not one of"),
        ({"format": "other"}, "the certificate is not one of"),
        ({"windows": [0, 1, 2]}, "it should hold a whole certificate"),
        ({"sensitivity_squared": None}, "it should hold a whole certificate"),
    ],
)
def test_edited_certificates_are_noticed(graph, counts, ledger, tmp_path, change, fault):
    folder = _release(counts, ledger).export(tmp_path / "out")
    known = json.loads((folder / "certificate.json").read_text())
    (folder / "certificate.json").write_text(json.dumps({**known, **change}))
    with pytest.raises(ValueError, match=fault):
        read_release(folder, graph)


@pytest.mark.parametrize(
    "spoil", [lambda rows: rows[:-3], lambda rows: [rows[0], *rows[:0:-1]], lambda rows: [r.replace(".", ".1") for r in rows]]
)
def test_maps_that_are_not_those_of_the_graph_are_noticed(graph, counts, ledger, tmp_path, spoil):
    """Also when the check sum was made to fit."""
    folder = _release(counts, ledger).export(tmp_path / "out")
    lines = (folder / "map.csv").read_text().splitlines(keepends=True)
    (folder / "map.csv").write_text("".join(spoil(lines)))
    known = json.loads((folder / "certificate.json").read_text())
    known["files"]["map.csv"] = publication.file_digest(folder / "map.csv")
    (folder / "certificate.json").write_text(json.dumps(known))
    with pytest.raises(ValueError, match=r"it should hold a whole certificate|the noisy values of map\.csv are not those"):
        read_release(folder, graph)


def test_the_statement_never_understates(graph, counts, ledger):
    public = _release(counts, ledger, epsilon=0.50000049, delta=1.0000004e-6)
    assert "exp(0.50000049) P[S] + 1.0000004e-06" in public.certificate["statement"]


def test_totals_by_label(ledger):
    named = hg.Graph.from_edges([(0, 1), (1, 2)], labels=["a", "b", "c"])
    counts = declare_counts(named, [4, 0, 7], unit="person", adjacency="add-remove", sensitivity=1)
    public = _release(counts, ledger)
    assert public.total(labels=["a", "c"]) == public.total([0, 2])
    with pytest.raises(ValueError, match="1 of the 2 labels are no nodes"):
        public.total(labels=["a", "x"])
    with pytest.raises(ValueError, match="not both"):
        public.total([0], labels=["a"])


def test_labels_need_a_graph_with_labels(counts, ledger):
    with pytest.raises(ValueError, match="this graph has no labels"):
        _release(counts, ledger).total(labels=["a"])


def test_a_simulated_day_is_denoised_like_a_released_one(graph):
    truth = np.random.default_rng(0).poisson(3, (graph.n, 3)).astype(float)
    noisy = simulate(graph, truth, epsilon=1, delta=1e-6, sensitivity=1, seed=0, windows=(0, 8, 16, 24))
    assert np.array_equal(hg.denoise(graph, noisy).signal, hg.denoise(graph, noisy, columns="path").signal)


@pytest.mark.parametrize("text", ["a\nb", "\udcff", "x\x00"])
def test_texts_that_no_file_can_hold_are_refused_before_the_charge(counts, ledger, text):
    before = len(ledger)
    with pytest.raises(TypeError, match="not_protected must be text in one line"):
        _release(counts, ledger, not_protected=text)
    assert len(ledger) == before


def test_the_command_line_shows_no_locals():
    """A traceback with local variables would print private data."""
    from hushgraph.cli import app

    assert app.pretty_exceptions_show_locals is False
