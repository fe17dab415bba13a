"""Releases by name: a cell that is run again is not charged again, whatever happens in between. By attack."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._arrays import values_digest
from hushgraph.privacy import named_draws, releases
from hushgraph.privacy.certificate import Terms
from hushgraph.privacy.counting import declare_counts
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import BudgetExceeded, LedgerError

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys, time
    import numpy as np, hushgraph as hg
    from hushgraph.privacy import named_draws, releases
    from hushgraph.privacy.ledger.budget import Ledger
    def die(*args, **kwargs): os.kill(os.getpid(), signal.SIGKILL)
    graph = hg.datasets.grid(20, 20)
    counts = hg.privacy.declare_counts(graph, np.full(400, 3), unit="person", adjacency="add-remove", sensitivity=1)
    ledger = Ledger.open(sys.argv[1])
    def run(): return releases.release(counts, epsilon=1, delta=1e-6, ledger=ledger, public_graph=True, name="march")
    """
)


@pytest.fixture(scope="module")
def graph():
    return hg.datasets.grid(20, 20)


@pytest.fixture
def ledger(path):
    return Ledger.create(path, dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6)


def counts_of(graph, value=3, **changes):
    terms = {"unit": "person", "adjacency": "add-remove", "sensitivity": 1, **changes}
    return declare_counts(graph, np.full(graph.n, value), **terms)


def released(counts, ledger, **changes):
    terms = {"epsilon": 1, "delta": 1e-6, "public_graph": True, "name": "march", **changes}
    return releases.release(counts, ledger=ledger, **terms)


def again(counts, ledger, **changes):
    with pytest.warns(
        UserWarning, match="already released on .* under the name 'march': that release is returned, and nothing was charged"
    ):
        return released(counts, ledger, **changes)


def processes(path, code, number=1):
    """Start Python processes at once, and return their exit codes and what they printed."""
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + textwrap.dedent(code), str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(number)]
    printed = [process.communicate(timeout=120)[0] for process in running]
    return [(process.returncode, text) for process, text in zip(running, printed, strict=True)]


def kinds(ledger):
    return [entry["kind"] for entry in ledger.entries()]


# ---- again --------------------------------------------------------------------------------------------------------------


def test_the_same_name_returns_the_same_draw_and_costs_nothing(graph, ledger):
    first = released(counts_of(graph), ledger)
    spent = ledger.spent
    second = again(counts_of(graph), ledger)
    assert np.array_equal(first.values, second.values)
    assert first.certificate == second.certificate
    assert (ledger.spent, kinds(ledger)) == (spent, ["create", "charge", "draw"])
    ledger.verify(second.certificate)
    reopened = again(counts_of(graph), Ledger.open(ledger.path))
    assert np.array_equal(first.values, reopened.values)
    assert ledger.entries()[1]["name"] == "march"


def test_it_is_returned_when_the_budget_is_spent_and_in_a_later_period(graph, ledger):
    first = released(counts_of(graph), ledger, epsilon=2)
    with pytest.raises(BudgetExceeded):
        released(counts_of(graph), ledger, name="april")
    assert np.array_equal(again(counts_of(graph), ledger, epsilon=2).values, first.values)
    ledger.renew(epsilon=2, delta=1e-6, period="next", reason="a new year")
    assert np.array_equal(again(counts_of(graph), ledger, epsilon=2).values, first.values)
    assert not np.array_equal(released(counts_of(graph), ledger, name="april").values, first.values)


def test_windows_and_exports_come_back(graph, ledger, tmp_path):
    counts = declare_counts(
        graph, np.full((graph.n, 3), 2), unit="person", adjacency="add-remove", sensitivity=1, windows=(0, 8, 16, 24)
    )
    first, second = released(counts, ledger), again(counts, ledger)
    assert first.windows == second.windows
    second.export(tmp_path / "out", method="let")
    assert not hg.privacy.verify_release(tmp_path / "out", graph, ledger).faults


def test_without_a_name_nothing_is_kept_and_every_call_is_charged(graph, ledger):
    first, second = (released(counts_of(graph), ledger, name=None, epsilon=0.5) for _ in range(2))
    assert not np.array_equal(first.values, second.values)
    assert kinds(ledger).count("charge") == 2
    assert not ledger.path.with_name("budget.db.releases").exists()


# ---- other counts, other terms --------------------------------------------------------------------------------------------


def test_other_counts_return_the_first_draw_and_are_not_looked_at(graph, ledger, monkeypatch):
    first = released(counts_of(graph, 3), ledger)
    monkeypatch.setattr(releases, "_draw", lambda *args: pytest.fail("a second draw"))
    assert np.array_equal(again(counts_of(graph, 9_000), ledger).values, first.values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.5}, "epsilon was 1.0, now 0.5"),
        ({"delta": 1e-7}, "delta was 1e-06, now 1e-07"),
        ({"not_protected": "drivers"}, "not_protected was 'not stated', now 'drivers'"),
        ({"mechanism": "classical", "epsilon": 0.9}, "mechanism was"),
    ],
)
def test_a_name_with_other_terms_is_taken(graph, ledger, changes, words):
    released(counts_of(graph), ledger)
    with pytest.raises(LedgerError, match="the name 'march' is taken") as failure:
        released(counts_of(graph), ledger, **changes)
    assert words in str(failure.value)
    assert "sigma" not in str(failure.value)
    assert kinds(ledger).count("charge") == 1


def test_another_graph_or_bound_is_another_release(graph, ledger):
    released(counts_of(graph), ledger)
    with pytest.raises(LedgerError, match="graph was another one"):
        released(counts_of(hg.datasets.grid(20, 21)), ledger)
    with pytest.raises(LedgerError, match="sensitivity_squared was 1, now 4"):
        released(counts_of(graph, sensitivity=2), ledger)
    events = {"person": ["ann"], "node": [0]}
    caps = {"unit": "person", "adjacency": "add-remove", "max_nodes": 1, "max_per_node": 1}
    with pytest.raises(LedgerError, match="bound was 'assumed', now 'enforced'; caps was another one"):
        released(hg.privacy.count_events(graph, events, **caps), ledger)
    assert kinds(ledger).count("charge") == 1


@pytest.mark.parametrize("name", ["", " ", 3, "two\nlines", b"march"])
def test_refuses_names(graph, ledger, name):
    with pytest.raises((ValueError, TypeError), match="name must be"):
        released(counts_of(graph), ledger, name=name)
    assert kinds(ledger) == ["create"]


def test_names_are_no_paths(graph, ledger, tmp_path):
    name = "../../etc/march\N{SNOWMAN}"
    first = released(counts_of(graph), ledger, name=name)
    with pytest.warns(UserWarning, match="already released"):
        assert np.array_equal(released(counts_of(graph), ledger, name=name).values, first.values)
    (file,) = tmp_path.joinpath("budget.db.releases").iterdir()
    assert file.name == f"{first.ledger['head']}.npy"


# ---- crashes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["releases._draw", "releases.keep_draw"])
def test_a_crash_after_the_charge_keeps_the_name_charged(graph, ledger, where):
    """kill -9 before the draw, and before the values are written."""
    ((code, _),) = processes(ledger.path, f"{where} = die\nrun()")
    assert code == -signal.SIGKILL
    assert kinds(ledger) == ["create", "charge"]
    for _ in range(2):
        with pytest.raises(
            LedgerError, match=r"the name 'march' was charged on .* \(entry 2\), and the ledger has no map for it"
        ) as failure:
            released(counts_of(graph), ledger)
        assert "nothing was charged now" in str(failure.value)
    assert kinds(ledger) == ["create", "charge"]
    spent = ledger.spent
    released(counts_of(graph), ledger, name="march, second draw", epsilon=0.5)
    assert ledger.spent > spent, "a new draw is charged"


def drawn_and_not_bound(ledger):
    """Release in a process that is killed between keeping the values and binding them; return the file of the values."""
    ((code, _),) = processes(ledger.path, "Ledger.bind = die\nrun()")
    assert code == -signal.SIGKILL
    assert kinds(ledger) == ["create", "charge"]
    (file,) = ledger.path.with_name("budget.db.releases").iterdir()
    return file


def test_a_crash_before_the_values_are_bound_loses_nothing(graph, ledger, tmp_path):
    values = np.load(drawn_and_not_bound(ledger))
    spent = ledger.spent
    for _ in range(2):
        found = again(counts_of(graph), ledger)
        assert np.array_equal(found.values, values)
        assert (ledger.spent, kinds(ledger)) == (spent, ["create", "charge", "draw"])
    found.export(tmp_path / "out", method="let")
    assert hg.privacy.verify_release(tmp_path / "out", graph, ledger).ok


def test_only_a_possible_map_is_bound_after_a_crash(graph, ledger):
    file = drawn_and_not_bound(ledger)
    values = np.load(file)
    nan = np.where(np.arange(graph.n) == 3, np.nan, values)
    infinite = np.where(np.arange(graph.n) == 3, np.inf, values)
    kinds_of_numbers = [values.astype(kind) for kind in (str, int, np.float32)]
    for impossible in (values[:-1], values + 1e-9, nan, infinite, values[:, None], *kinds_of_numbers):
        np.save(file, impossible)
        with pytest.raises(LedgerError, match="the ledger has no map for it"):
            released(counts_of(graph), ledger)
    assert kinds(ledger) == ["create", "charge"]
    np.save(file, values)
    assert np.array_equal(again(counts_of(graph), ledger).values, values)


def test_a_name_asked_for_while_its_map_is_being_recorded_is_recorded_once(graph, ledger, monkeypatch):
    """Another process asks for the name after the values were kept, and binds them first."""
    real, other = Ledger.bind, []

    def slow(self, charge, values):
        monkeypatch.setattr(Ledger, "bind", real)
        other.append(again(counts_of(graph), Ledger.open(ledger.path)))
        real(self, charge, values)

    monkeypatch.setattr(Ledger, "bind", slow)
    first = released(counts_of(graph), ledger)
    assert np.array_equal(first.values, other[0].values)
    assert kinds(ledger) == ["create", "charge", "draw"]


def test_a_second_map_for_one_charge_is_refused(graph, ledger):
    first = released(counts_of(graph), ledger)
    charge = ledger.charge_named("march")
    with pytest.raises(LedgerError, match=r"entry 2 of budget\.db has another map already; one charge pays for one map"):
        ledger.bind(charge, first.values + first.lattice)
    assert kinds(ledger) == ["create", "charge", "draw"]


def test_a_ledger_with_a_key_binds_no_file_that_nobody_bound(graph, path, monkeypatch):
    """Whoever can write the file, and has no key, must not choose the map. The release itself is returned, with a warning."""
    ledger = Ledger.create(
        path, dataset="trips", unit="person", adjacency="add-remove", epsilon=2, delta=1e-6, key=b"0123456789abcdef"
    )
    for error in (KeyboardInterrupt, LedgerError("database is locked")):

        def stopped(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "bind", stopped)
            with pytest.warns(UserWarning, match="export it now; verify may say that no map is bound to entry .$"):
                assert released(counts_of(graph), ledger, name=str(error), epsilon=0.5).values.shape == (graph.n,)
        with pytest.raises(LedgerError, match="the ledger has no map for it"):
            released(counts_of(graph), ledger, name=str(error), epsilon=0.5)
    assert kinds(ledger) == ["create", "charge", "charge"]


def test_a_map_that_another_one_replaced_meanwhile_is_not_returned(graph, ledger, monkeypatch):
    """Somebody changes the file, and a second process binds it, before the first one can: the ledger has one map, so no other is returned."""
    real, other = Ledger.bind, []

    def slow(self, charge, values):
        monkeypatch.setattr(Ledger, "bind", real)
        (file,) = ledger.path.with_name("budget.db.releases").iterdir()
        np.save(file, values + 8)
        other.append(again(counts_of(graph), Ledger.open(ledger.path)))
        real(self, charge, values)

    monkeypatch.setattr(Ledger, "bind", slow)
    with pytest.raises(LedgerError, match="has another map already; one charge pays for one map"):
        released(counts_of(graph), ledger)
    assert np.array_equal(again(counts_of(graph), ledger).values, other[0].values)


@pytest.mark.parametrize("name", ["march", None])
def test_control_c_while_the_map_is_recorded_loses_nothing(graph, ledger, monkeypatch, name):
    """It ends the call if the name returns the map later."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "bind", interrupted)
        if name is None:
            with pytest.warns(UserWarning, match="its map could not be recorded in the ledger .KeyboardInterrupt.: export it now"):
                assert released(counts_of(graph), ledger, name=name).values.shape == (graph.n,)
            return
        with pytest.raises(KeyboardInterrupt):
            released(counts_of(graph), ledger, name=name)
    assert again(counts_of(graph), ledger).values.shape == (graph.n,)
    assert kinds(ledger) == ["create", "charge", "draw"]


def test_a_ledger_that_cannot_record_the_map_loses_nothing(graph, ledger, monkeypatch):
    """The values are returned with a warning, and recorded when the name is asked for again."""

    def locked(*_):
        raise LedgerError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "bind", locked)
        with pytest.warns(UserWarning, match="charged and is returned, but its map could not be recorded .*database is locked"):
            first = released(counts_of(graph), ledger)
    assert kinds(ledger) == ["create", "charge"]
    assert np.array_equal(again(counts_of(graph), ledger).values, first.values)
    assert kinds(ledger) == ["create", "charge", "draw"]


def test_a_name_belongs_to_its_places(ledger):
    """Zones with the same borders at other places are other terms."""

    def zones(x):
        square = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) + [x, 0]
        shapes = [{"type": "Polygon", "coordinates": [(square + [k, 0]).tolist()]} for k in range(3)]
        features = [{"type": "Feature", "properties": {}, "geometry": shape, "id": k} for k, shape in enumerate(shapes, 10)]
        return hg.Graph.from_polygons({"type": "FeatureCollection", "features": features}, crs="planar")

    here, there = zones(0), zones(100)
    assert here.hash == there.hash
    assert here.places_hash != there.places_hash
    released(counts_of(here), ledger)
    again(counts_of(zones(0)), ledger)
    with pytest.raises(LedgerError, match=r"on other terms .*graph was another one"):
        released(counts_of(there), ledger)


def test_a_name_of_a_version_that_did_not_record_places_is_still_known(graph, ledger, tmp_path, monkeypatch):
    real = Terms.claims

    def without_places(self):
        claims = real(self)
        return {**claims, "graph": {name: value for name, value in claims["graph"].items() if name != "places"}}

    with monkeypatch.context() as patch:
        patch.setattr(Terms, "claims", without_places)
        first = released(counts_of(graph), ledger)
    found = again(counts_of(graph), ledger)
    assert np.array_equal(found.values, first.values)
    found.export(tmp_path / "out", method="let")
    assert hg.privacy.verify_release(tmp_path / "out", graph=graph, ledger=ledger).ok


@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 no zip",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000000,), }\n",
    ],
)
def test_a_damaged_file_of_values_is_lost_and_no_crash(graph, ledger, tmp_path, content):
    released(counts_of(graph), ledger)
    (file,) = tmp_path.joinpath("budget.db.releases").iterdir()
    file.write_bytes(content)
    with pytest.raises(LedgerError, match="the file was removed or changed"):
        released(counts_of(graph), ledger)


def test_many_processes_at_once_are_charged_once(graph, ledger):
    code = """
    while True:
        try:
            print(run().values.tobytes().hex())
            break
        except Exception as error:
            assert "run this again" in str(error), error
            time.sleep(0.05)
    """
    done = processes(ledger.path, code, number=4)
    assert [code for code, _ in done] == [0] * 4
    assert len({text for _, text in done}) == 1
    assert kinds(ledger) == ["create", "charge", "draw"]


def test_a_name_taken_between_look_and_charge_is_not_charged_twice(graph, ledger, monkeypatch):
    """The other process is charged after this one has seen that the name is free."""
    real = named_draws.drawn_before

    def slow(*args):
        found = real(*args)
        monkeypatch.setattr(releases, "drawn_before", real)
        released(counts_of(graph), ledger)
        return found

    monkeypatch.setattr(releases, "drawn_before", slow)
    with pytest.raises(
        LedgerError, match="another process was charged for the name 'march' a moment ago; nothing was charged here"
    ):
        released(counts_of(graph), ledger)
    assert kinds(ledger) == ["create", "charge", "draw"]


# ---- the file -----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_the_draw_is_never_returned(graph, ledger, tmp_path):
    first = released(counts_of(graph), ledger)
    other = released(counts_of(graph), ledger, name="april", epsilon=0.5)
    folder = tmp_path / "budget.db.releases"
    file = folder / f"{first.ledger['head']}.npy"
    good = file.read_bytes()
    forged = first.values.copy()
    forged[0] += first.lattice
    np.save(tmp_path / "forged.npy", forged)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    bad = [(tmp_path / "forged.npy").read_bytes(), (tmp_path / "text.npy").read_bytes(), good[:-8], good[:20], b"", b"\x80\x04N."]
    for content in [*bad, (folder / f"{other.ledger['head']}.npy").read_bytes()]:
        file.write_bytes(content)
        with pytest.raises(LedgerError, match="the file was removed or changed"):
            released(counts_of(graph), ledger)
    file.unlink()
    with pytest.raises(LedgerError, match="put the file back"):
        released(counts_of(graph), ledger)
    file.write_bytes(good)
    assert np.array_equal(again(counts_of(graph), ledger).values, first.values)
    assert kinds(ledger).count("charge") == 2


def test_a_folder_that_cannot_be_made_costs_nothing(graph, ledger, tmp_path):
    (tmp_path / "budget.db.releases").write_text("a file")
    with pytest.raises(OSError, match="nothing was charged"):
        released(counts_of(graph), ledger)
    assert kinds(ledger) == ["create"]


def test_a_full_disk_after_the_charge_returns_the_release_with_a_warning(graph, ledger, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(named_draws.np, "save", full)
    with pytest.warns(UserWarning, match="cannot be kept under its name"):
        public = released(counts_of(graph), ledger)
    ledger.verify(public.certificate)


def test_nothing_about_the_counts_is_stored(graph, ledger, tmp_path):
    """Neither the counts nor a fingerprint of them is in any file."""
    values = np.random.default_rng(5).integers(1000, 9999, graph.n)
    counts = declare_counts(graph, values, unit="person", adjacency="add-remove", sensitivity=1)
    released(counts, ledger)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        released(counts, ledger)
    texts = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()] + [str(one.message).encode() for one in caught]
    arrays = [values.astype(kind) for kind in ("<i8", "<f8", "<i4")]
    prints = [hashlib.sha256(array.tobytes()).hexdigest().encode() for array in arrays] + [values_digest(values).encode()]
    needles = prints + [array.tobytes()[:64] for array in arrays] + [json.dumps(values.tolist()[:3]).encode()[1:-1]]
    assert not any(needle in text for text in texts for needle in needles)
