"""Nobody edits what a certificate says unnoticed: not the counts before it, not the folder, not the ledger behind it."""

import contextlib
import copy
import csv
import dataclasses
import hashlib
import json
import pickle
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hushgraph as hg
from hushgraph._errors import InputError
from hushgraph.cli import app
from hushgraph.privacy import release
from hushgraph.privacy.calibration import analytic_sigma
from hushgraph.privacy.certificate import remarks_of
from hushgraph.privacy.counting import CountMap, count_events, declare_counts
from hushgraph.privacy.lattice import lattice_step
from hushgraph.privacy.ledger import budget as ledger_module
from hushgraph.privacy.ledger.budget import Ledger
from hushgraph.privacy.ledger.chain import LedgerError, LedgerTampered, next_entry
from hushgraph.privacy.releases import read_release
from hushgraph.privacy.verification import verify_release

from .ledgers import KEY

PREVIOUS = Path(__file__).parent / "previous"  # a ledger and a folder that the version before this one wrote
GRAPH = hg.Graph.from_edges([(0, 1), (1, 2), (2, 3)], labels=["a", "=b", "c", "d"], coords=[(0, 0), (1, 0), (2, 0), (3, 0)])
EVENTS = {"person": ["p", "p", "q", "r"], "node": ["a", "=b", "c", "c"], "hour": [1, 2, 9, 11]}
NAMES = {"dataset": "trips", "unit": "person", "adjacency": "add-remove"}
BOUND = {"unit": "person", "adjacency": "add-remove", "time": "hour", "windows": [0, 8, 16], "max_cells": 2, "max_per_cell": 1}
ASKED = {"epsilon": 0.5, "delta": 1e-6, "public_graph": True, "not_protected": "drivers", "attribution": "the city"}


def counted(**changes):
    return count_events(GRAPH, EVENTS, **{**BOUND, **changes})


def new_ledger(path, **changes):
    return Ledger.create(path, **{**NAMES, "epsilon": 5, "delta": 1e-6, "period": "May", **changes})


def folder_of(ledger, folder, *, report=False, **changes):
    return release(counted(dataset="trips"), ledger=ledger, **ASKED).export(folder, method="sgwt_deep", report=report, **changes)


@pytest.fixture
def ledger(path):
    return new_ledger(path)


def certificate_in(folder) -> dict:
    return json.loads((folder / "certificate.json").read_text())


def write_certificate(folder, known) -> None:
    (folder / "certificate.json").write_text(json.dumps(known))


# ---- counts ---------------------------------------------------------------------------------------------------------


def test_only_the_counting_functions_make_a_count_map():
    counts = counted()
    with pytest.raises(TypeError, match=r"made by count_events\(\) and declare_counts\(\) only"):
        dataclasses.replace(counts, sensitivity_squared=1)
    fields = {field.name: getattr(counts, field.name) for field in dataclasses.fields(counts)}
    with pytest.raises(TypeError, match=r"made by count_events\(\) and declare_counts\(\) only"):
        CountMap(**{**fields, "sensitivity_squared": 1})


def test_nothing_in_a_count_map_can_be_changed():
    counts = counted()
    for values in (counts.caps, counts.rules):
        name = next(iter(values))
        for change in (
            lambda v=values, n=name: v.__setitem__(n, 1),
            lambda v=values, n=name: v.__delitem__(n),
            lambda v=values: v.update(max_cells=1),
            lambda v=values: v.__ior__({"max_cells": 1}),
            lambda v=values: v.clear(),
            lambda v=values, n=name: v.pop(n),
            lambda v=values: v.popitem(),
            lambda v=values: v.setdefault("more", 1),
        ):
            with pytest.raises(TypeError, match="cannot be changed"):
                change()
    assert counts.caps == {"max_cells": 2, "max_per_cell": 1}
    with pytest.raises(ValueError, match="WRITEABLE"):
        counts.counts.flags.writeable = True
    with pytest.raises(dataclasses.FrozenInstanceError):
        counts.counts = np.zeros(4, dtype=np.int64)
    with pytest.raises(TypeError):
        vars(counts)


def test_declared_counts_do_not_follow_their_source():
    source = np.array([1, 2, 3, 4])
    counts = declare_counts(GRAPH, source, unit="person", adjacency="add-remove", sensitivity=1)
    source[0] = 99
    assert counts.counts.tolist() == [1, 2, 3, 4]


def test_a_subclass_of_counts_or_ledger_is_not_released(ledger):
    class Mine(CountMap):
        def __post_init__(self, creator):
            pass

    class Free(Ledger):
        pass

    fields = {field.name: getattr(counted(), field.name) for field in dataclasses.fields(CountMap)}
    with pytest.raises(TypeError, match="release takes a CountMap"):
        release(Mine(**{**fields, "sensitivity_squared": 1}), ledger=ledger, **ASKED)
    with pytest.raises(TypeError, match=r"ledger must be a privacy\.Ledger"):
        release(counted(), ledger=Free.open(ledger.path), **ASKED)
    assert len(ledger) == 1


@pytest.mark.parametrize("change", [{"sensitivity_squared": 1}, {"caps": {}}, {"adjacency": "change-one"}, {"windows": None}])
def test_release_works_the_sensitivity_out_again(path, change):
    ledger = new_ledger(path, adjacency=change.get("adjacency", "add-remove"))
    counts = counted()
    for name, value in change.items():
        object.__setattr__(counts, name, value)
    with pytest.raises(ValueError, match=r"not the one that their caps and adjacency enforce|caps must be"):
        release(counts, ledger=ledger, **ASKED)
    assert len(ledger) == 1


def test_the_parts_of_a_release_cannot_be_changed(ledger):
    public = release(counted(), ledger=ledger, **ASKED)
    for values in (public.caps, public.rules, public.ledger, public.ledger["budget"]):
        with pytest.raises(TypeError, match="cannot be changed"):
            values["spent"] = 0
    for one in (public, copy.copy(public), copy.deepcopy(public), pickle.loads(pickle.dumps(public))):
        assert np.array_equal(one.values, public.values)
        with pytest.raises(ValueError, match="WRITEABLE"):
            one.values.setflags(write=True)
    public.certificate["caps"]["max_cells"] = 1  # a copy
    assert public.caps == {"max_cells": 2, "max_per_cell": 1}


def test_read_release_works_the_sensitivity_out_again(ledger, tmp_path):
    """Sensitivity and noise were edited so that they fit each other: they do not fit the caps."""
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    sigma = analytic_sigma(epsilon=0.5, delta=1e-6, sensitivity_squared=1)
    edited = {
        "sensitivity_squared": 1,
        "sigma": sigma,
        "lattice": lattice_step(sigma),
        "largest_count": int(2.0**52 * lattice_step(sigma)),
    }
    write_certificate(folder, {**known, **edited})
    with pytest.raises(ValueError, match=r"its sensitivity squared is 1, and 2 follows from its caps and adjacency"):
        read_release(folder, GRAPH)
    for change in ({"caps": {}}, {"caps": {"max_nodes": 2, "max_per_node": 1}}, {"caps": {"max_cells": -2, "max_per_cell": 1}}):
        write_certificate(folder, {**known, **change})
        with pytest.raises(ValueError, match="it should hold a whole certificate"):
            read_release(folder, GRAPH)
    write_certificate(folder, {**known, "bound": "proven"})
    with pytest.raises(ValueError, match="must be 'enforced' or 'assumed'"):
        read_release(folder, GRAPH)


# ---- certificates and the chain -------------------------------------------------------------------------------------

UNCHECKED = {"versions", "denoised", "files", "spreadsheet_safe"}  # of the software, of the map's other columns, of the folder


def leaves(value, path=()):
    """The places of all values in a certificate."""
    if isinstance(value, dict) and value:
        for name in value:
            yield from leaves(value[name], (*path, name))
    elif isinstance(value, list) and value:
        for k in range(len(value)):
            yield from leaves(value[k], (*path, k))
    else:
        yield path


def edited(known, place, *, remove=False):
    """The certificate with another value at the place, of the same kind where that is possible."""
    known = copy.deepcopy(known)
    *parents, last = place
    holder = known
    for name in parents:
        holder = holder[name]
    if remove:
        del holder[last]
        return known
    value = holder[last]
    other = {
        bool: lambda: not value,
        int: lambda: value + 1,
        float: lambda: value * 2,
        str: lambda: value[:-1] + ("x" if value[-1] != "x" else "y"),
    }
    holder[last] = other.get(type(value), lambda: "something")()
    return known


@pytest.mark.parametrize("key", [None, KEY], ids=["no key", "key"])
def test_every_claim_of_a_certificate_is_compared_with_the_chain(path, tmp_path, key):
    """Each value of a certificate is changed and removed, one by one: the ledger notices every one of them."""
    ledger = new_ledger(path, key=key)
    ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    ledger.verify(known)
    missed = []
    places = [place for place in leaves(known) if place[0] not in UNCHECKED]
    assert len(places) > 40
    for place in places:
        for remove in (False, True):
            try:
                ledger.verify(edited(known, place, remove=remove))
            except (LedgerError, ValueError):
                continue
            missed.append((place, remove))
    assert missed == [(("format",), True)]  # without its format it is a part of one, and the rest is compared


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("unit",), "driver", "unit = 'driver', but"),
        (("adjacency",), "change-one", "adjacency = 'change-one', but"),
        (("bound",), "assumed", "bound = 'assumed', but"),
        (("caps", "max_cells"), 1, "the certificate says caps = "),
        (("rules",), {}, "the certificate says rules = "),
        (("unit_column",), "id", "unit_column = 'id', but"),
        (("dataset",), None, "dataset = None, but"),
        (("windows",), [0, 12, 16], "the certificate says windows = "),
        (("graph", "hash"), "0" * 64, "the certificate says graph = "),
        (("not_protected",), "nobody", "not_protected = 'nobody', but"),
        (("ledger", "dataset"), "other trips", "dataset = 'other trips', but"),
        (("ledger", "budget", "epsilon"), 1.0, "the certificate says budget = "),
        (("ledger", "budget", "spent"), 0.1, "the certificate says budget = "),
        (("statement",), "Everything is safe.", "its statement is not what follows from its fields"),
        (("created",), "2020-01-01T00:00:00+00:00", "created = '2020-01-01T00:00:00"),
        (("values_sha256",), "0" * 64, "values_sha256 = '0000"),
        (("ledger", "entry"), 1, "a certificate has seen entry 1"),
    ],
)
def test_an_edited_claim_is_named(ledger, tmp_path, place, value, words):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    holder = known
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    with pytest.raises(LedgerTampered, match=words):
        ledger.verify(known)
    write_certificate(folder, known)
    with pytest.raises(LedgerTampered, match=words):
        ledger.verify(folder / "certificate.json")
    found = verify_release(folder, GRAPH, ledger)
    assert not found.ok
    assert (
        any(check.subject == "ledger" and words.split(" = ")[0] in check.detail for check in found.faults) or "statement" in place
    )


def test_a_certificate_of_another_entry(ledger, tmp_path):
    """The stamp of another charge, creation or draw does not make a certificate true."""
    known = certificate_in(folder_of(ledger, tmp_path / "out"))
    release(counted(max_cells=1), ledger=ledger, **ASKED)
    for entry in ledger.entries():
        stamp = {**known["ledger"], "entry": entry["entry"], "head": entry["head"]}
        if entry["entry"] != known["ledger"]["entry"]:
            with pytest.raises(LedgerTampered):
                ledger.verify({**known, "ledger": stamp})


def other_map(folder):
    """Other values on the same lattice in map.csv; its SHA-256 is made to fit."""
    with (folder / "map.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    column = rows[0].index("noisy")
    for row in rows[1:]:
        row[column] = str(float(row[column]) + 1.0)
    with (folder / "map.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    known = certificate_in(folder)
    known["files"]["map.csv"] = hashlib.sha256((folder / "map.csv").read_bytes()).hexdigest()
    write_certificate(folder, known)
    return np.array([float(row[column]) for row in rows[1:]]).reshape(4, 2)


def test_another_map_under_a_true_entry_is_noticed(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    values = other_map(folder)
    with pytest.raises(ValueError, match=r"the noisy values of map\.csv are not those of the certificate"):
        read_release(folder, GRAPH)
    known = certificate_in(folder)
    known["values_sha256"] = hashlib.sha256(
        b"4x2\n" + values.astype("<f8").tobytes()
    ).hexdigest()  # the form that docs/privacy.md states
    write_certificate(folder, known)
    assert np.array_equal(read_release(folder, GRAPH).values, values)  # nothing in the folder contradicts it
    with pytest.raises(LedgerTampered, match="the certificate says values_sha256"):
        ledger.verify(known)
    with pytest.raises(ValueError, match="the certificate says values_sha256"):
        read_release(folder, GRAPH, ledger=ledger)


def test_a_release_that_was_never_finished_has_no_map(ledger, tmp_path, monkeypatch):
    """The charge stands, and nobody can show a map for it."""
    honest = certificate_in(folder_of(ledger, tmp_path / "out"))

    def crash(*_):
        raise LedgerError("the power failed")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "bind", crash)
        with pytest.warns(UserWarning, match="the power failed"):
            release(counted(dataset="trips"), ledger=ledger, **ASKED)
    assert [entry["kind"] for entry in ledger.entries()] == ["create", "charge", "draw", "charge"]
    last = ledger.entries()[-1]
    stamp = {
        "identity": ledger.identity,
        "dataset": "trips",
        "entry": 4,
        "head": last["head"],
        "replaces": None,
        "budget": ledger.budget(),
    }
    with pytest.raises(LedgerTampered, match="no map is bound to entry 4"):
        ledger.verify({**honest, "ledger": stamp, "created": last["time"]})


@pytest.mark.parametrize(
    "change", [{"interval": 0.999}, {"interval": "0.9"}, {"method": {}}, {"method": "x"}, {"nonnegative": 1}, {"integer": None}]
)
def test_a_certificate_says_of_its_map_what_a_release_can_say(ledger, tmp_path, change):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    assert verify_release(folder, ledger=ledger).ok
    known["denoised"] |= change
    if isinstance(known["denoised"]["interval"], float):
        known["remarks"] = remarks_of(known)
    (folder / "certificate.json").write_text(json.dumps(known))
    assert not verify_release(folder, ledger=ledger).ok


def test_a_certificate_that_nobody_could_read_is_not_charged_for(ledger):
    windows = tuple(range(60_001))
    counts = declare_counts(
        hg.datasets.grid(2, 1), np.zeros((2, 60_000)), unit="person", adjacency="add-remove", sensitivity=1, windows=windows
    )
    with pytest.raises(InputError, match="nothing was charged: the certificate would have"):
        release(counts, ledger=ledger, **ASKED)
    assert [entry["kind"] for entry in ledger.entries()] == ["create"]


def test_one_charge_one_map(ledger):
    charge = ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    with pytest.raises(LedgerError, match="one charge, one map"):
        ledger.bind(charge, [1.0])
    charge.spend()
    ledger.bind(charge, [1.0])
    with pytest.raises(LedgerError, match="one charge, one map"):
        ledger.bind(charge, [2.0])
    assert [entry["kind"] for entry in ledger.entries()] == ["create", "charge", "draw"]


def test_a_second_map_for_a_charge_is_noticed(ledger, tmp_path):
    """Whoever can write a ledger without a key can append a draw for a map of their own."""
    known = certificate_in(folder_of(ledger, tmp_path / "out"))
    text, chain = next_entry(ledger.snapshot(), None, kind="draw", period="May", note=None, of=2, values_sha256="0" * 64)
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (chain.entry, text, chain.head))
    for digest in (known["values_sha256"], "0" * 64):
        with pytest.raises(LedgerTampered, match="several maps for entry 2"):
            ledger.verify({**known, "values_sha256": digest})


@pytest.mark.parametrize("fields", [{"of": 9}, {"of": 1}, {"of": None}, {"values_sha256": "short"}, {"period": "June"}])
def test_a_draw_that_makes_no_sense_is_noticed(ledger, fields):
    ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    entry = {"kind": "draw", "period": "May", "note": None, "of": 2, "values_sha256": "0" * 64}
    next_entry(ledger.snapshot(), None, **entry)
    with pytest.raises((ValueError, TypeError)):
        next_entry(ledger.snapshot(), None, **{**entry, **fields})


def test_what_others_write_between_charge_and_draw_is_kept(ledger):
    charge = ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    charge.spend()
    other = Ledger.open(ledger.path)
    other.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    ledger.bind(charge, [1.0])
    assert [(entry["kind"], entry["of"]) for entry in other.entries()] == [
        ("create", None),
        ("charge", None),
        ("charge", None),
        ("draw", 2),
    ]
    saved = ledger.path.read_bytes()
    again = ledger.charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)
    again.spend()
    ledger.path.write_bytes(saved)
    with pytest.raises(LedgerTampered, match="this process has seen entry 5"):
        ledger.bind(again, [1.0])


def test_values_are_bound_by_their_shape_too():
    from hushgraph.privacy.certificate import values_digest

    assert values_digest([1.0, 2.0]) == hashlib.sha256(b"2\n" + np.array([1, 2], dtype="<f8").tobytes()).hexdigest()
    assert len({values_digest(np.ones(shape)) for shape in ((4,), (2, 2), (1, 4), (4, 1))}) == 4


# ---- what is said of it ---------------------------------------------------------------------------------------------


def outcomes(found):
    return {check.claim: check.holds for check in found.checks}


def test_verification_says_what_was_checked_and_what_was_not(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    alone, with_graph, whole = verify_release(folder), verify_release(folder, GRAPH), verify_release(folder, GRAPH, ledger)
    assert alone.ok
    assert whole.ok
    assert outcomes(alone)["The graph is the one it was made on"] is None
    assert outcomes(with_graph)["The graph is the one it was made on"] is True
    assert outcomes(alone)["The ledger was charged for it"] is None
    assert "The ledger was charged for it: not checked: no ledger was given" in str(alone)
    assert outcomes(whole)["Its noisy values are those drawn for the charge"] is True
    never = {
        "Nobody rewrote the ledger",
        "The owner's word is true",
        "The denoised column is that of the method",
        "Coordinates and versions are right",
    }
    assert {claim for claim, holds in outcomes(whole).items() if holds is None} == never
    assert [check.detail for check in verify_release(tmp_path).faults] == [
        "it should hold a whole certificate.json and map.csv, and does not (FileNotFoundError)"
    ]


def test_a_ledger_with_a_key_is_trusted_more(tmp_path, path):
    ledger = new_ledger(path, key=KEY)
    found = verify_release(folder_of(ledger, tmp_path / "out"), GRAPH, ledger)
    assert found.ok
    assert outcomes(found)["Nobody without the key rewrote the ledger"] is True


def command(*arguments):
    done = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    return done.exit_code, done.output


def test_the_command_says_it_in_words_and_by_its_exit_code(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    hg.write_graph(tmp_path / "streets.graphml", GRAPH)
    code, said = command(folder)
    assert code == 0
    assert "map.csv is the file that the certificate describes: yes" in said
    assert "The ledger was charged for it: not checked: no ledger was given" in said
    code, said = command(folder, tmp_path / "streets.graphml", "--ledger", ledger.path)
    assert code == 0
    assert "Its noisy values are those drawn for the charge: yes" in said
    assert "not checked: no ledger" not in said
    assert "not checked: no graph" not in said
    known = certificate_in(folder)
    write_certificate(folder, {**known, "not_protected": "nobody"})
    assert command(folder)[0] == 0  # nothing but the ledger can tell
    code, said = command(folder, "--ledger", ledger.path)
    assert code == 4
    assert "the certificate says not_protected = 'nobody', but budget.db has drivers; one was edited" in said
    write_certificate(folder, {**known, "epsilon": 0.1})
    code, said = command(folder)
    assert code == 2
    assert "its noise is not that of its epsilon and delta" in said
    done = CliRunner().invoke(app, ["verify", str(folder), "--json"])
    facts = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])[
        0
    ]  # older versions of click mix in what goes to stderr
    assert (done.exit_code, facts["exit_code"], facts["no_faults"], facts["charge_checked"]) == (2, 2, False, False)
    assert {"claim", "holds", "detail", "subject"} == set(facts["checks"][0])
    write_certificate(folder, known)
    facts = json.loads(command(folder, "--json")[1])
    assert (facts["no_faults"], facts["charge_checked"]) == (True, False)
    facts = json.loads(command(folder, "--ledger", ledger.path, "--json")[1])
    assert (facts["no_faults"], facts["charge_checked"]) == (True, True)
    assert "verified" not in facts
    assert command(tmp_path / "nowhere")[0] == 2
    assert command(folder, "--ledger", tmp_path / "nowhere.db")[0] == 4


@pytest.mark.parametrize("text", ["[]", "3", "null", '"x"', "{}", '{"format": []}', '{"ledger": {}}', "{", "\x00"])
def test_what_is_no_certificate_is_refused_in_words(ledger, tmp_path, text):
    folder = folder_of(ledger, tmp_path / "out")
    (folder / "certificate.json").write_text(text)
    for found in (verify_release(folder), verify_release(folder, GRAPH, ledger)):
        assert not found.ok
    with pytest.raises(ValueError, match=r"is not a release on this graph: (it should hold a whole|the) certificate"):
        read_release(folder, GRAPH)


def test_a_file_must_be_a_whole_certificate_and_a_part_is_compared_in_all_it_says(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    ledger.verify(folder / "certificate.json", {"ledger": known["ledger"], "epsilon": 0.5})
    part = {name: value for name, value in known.items() if name != "format"}
    ledger.verify(part)
    for name, value in (("statement", "perfect"), ("in_words", "nobody learns anything"), ("remarks", [])):
        with pytest.raises(LedgerTampered, match=f"its {name} is not what follows"):
            ledger.verify({**part, name: value})
    write_certificate(folder, {**part, "statement": "perfect"})
    with pytest.raises(ValueError, match="with format and each field once"):
        ledger.verify(folder / "certificate.json")
    shown = CliRunner().invoke(app, ["budget", "show", str(ledger.path), "--certificate", str(folder / "certificate.json")])
    assert shown.exit_code == 2


def test_a_field_that_is_there_twice_is_refused(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    text = (folder / "certificate.json").read_text()
    for place in ("{", '"ledger": {', '"budget": {'):
        (folder / "certificate.json").write_text(text.replace(place, f'{place} "epsilon": 0.001, "epsilon": 0.5,', 1))
        assert not verify_release(folder).ok
        with pytest.raises(ValueError, match="each field once"):
            ledger.verify(folder / "certificate.json")
    (folder / "certificate.json").write_text(text.replace('"epsilon": 0.5', '"epsilon": 0.001, "epsilon": 0.5', 1))
    assert not verify_release(folder, GRAPH, ledger).ok


@pytest.mark.parametrize(
    "place",
    ["audited", "ledger.audited", "ledger.budget.audited", "denoised.audited", "graph.audited", "versions.audited", "files.audited",
     "rules.audited"],
)  # fmt: skip
def test_a_field_that_the_format_does_not_have_is_a_fault(ledger, tmp_path, place):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    holder = known
    for name in place.split(".")[:-1]:
        holder = holder[name]
    holder["audited"] = "by the state"
    write_certificate(folder, known)
    faults = [check.detail for check in verify_release(folder).faults]
    assert faults == [f"it has 1 field(s) that its format does not have, such as {place!r}"]
    with pytest.raises(LedgerTampered):
        ledger.verify(known)


@pytest.mark.parametrize(
    "change", [{"spreadsheet_safe": "yes"}, {"spreadsheet_safe": 0}, {"format": "hushgraph release 1"}, {"denoised": {}}]
)
def test_what_a_folder_says_of_its_map_is_compared(ledger, tmp_path, change):
    folder = folder_of(ledger, tmp_path / "out")
    write_certificate(folder, {**certificate_in(folder), **change})
    assert not verify_release(folder).ok


def test_the_noise_level_of_the_denoised_map_is_compared(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    known["denoised"]["noise_level"] = 1e-9
    write_certificate(folder, known)
    assert [check.detail for check in verify_release(folder).faults] == [
        "the noise level of its denoised map is not that of sigma and lattice: it was edited"
    ]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, " " * 1_000_000 + "{}"], ids=["lists", "dicts", "long"])
def test_a_hostile_certificate_is_refused_in_words(ledger, tmp_path, text):
    folder = folder_of(ledger, tmp_path / "out")
    (folder / "certificate.json").write_text(text)
    assert not verify_release(folder, GRAPH, ledger).ok
    with pytest.raises(ValueError, match="it should hold a whole certificate"):
        read_release(folder, GRAPH)
    with pytest.raises(ValueError, match="a certificate is a dict"):
        ledger.verify(folder / "certificate.json")


def test_a_map_with_a_field_that_is_too_long_is_refused_in_words(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "out")
    with (folder / "map.csv").open("a") as file:
        file.write("x" * 140_000 + ",1\n")
    assert len(verify_release(folder, GRAPH).faults) == 3
    with pytest.raises(ValueError, match="is not a release on this graph"):
        read_release(folder, GRAPH)


@pytest.mark.parametrize("text", ["1e30000000", "1_0", " 2", "-2", "2.0", "9" * 142, "2/0", "٢"])
def test_a_sensitivity_is_a_short_fraction(ledger, tmp_path, text):
    """The first one would take hours."""
    folder = folder_of(ledger, tmp_path / "out")
    known = {**certificate_in(folder), "sensitivity_squared": text}
    write_certificate(folder, known)
    assert not verify_release(folder, GRAPH, ledger).ok
    write_certificate(folder, {**known, "bound": "assumed", "caps": {}})
    assert not verify_release(folder).ok
    with pytest.raises((ValueError, LedgerError)):
        ledger.verify(known)
    with pytest.raises((ValueError, ArithmeticError)):
        next_entry(ledger.snapshot(), None, kind="charge", period="May", note=None, epsilon=0.1, delta=1e-6, sigma=100.0,
                   sensitivity_squared=text, mu_squared="1")  # fmt: skip


# ---- files of the version before ------------------------------------------------------------------------------------


@pytest.fixture
def previous(path, tmp_path):
    """A ledger and a folder that the version before this one wrote."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript((PREVIOUS / "budget.sql").read_text())
    shutil.copytree(PREVIOUS, tmp_path / "out")
    return Ledger.open(path), tmp_path / "out"


def test_files_of_the_version_before_are_read_charged_and_verified(previous):
    ledger, folder = previous
    back = read_release(folder, GRAPH)
    assert (back.epsilon, back.values.shape, back.unit_column) == (0.5, (4, 2), None)
    ledger.verify(folder / "certificate.json")
    found = verify_release(folder, GRAPH, ledger)
    assert found.ok
    unknown = [check.detail for check in found.checks if check.holds is None]
    assert any("did not record them" in detail for detail in unknown)
    assert any("did not bind maps to charges" in detail for detail in unknown)
    assert any("did not name their SHA-256" in detail for detail in unknown)
    new = release(counted(), ledger=ledger, **ASKED)
    ledger.verify(folder / "certificate.json", new.certificate)
    assert [entry["kind"] for entry in Ledger.open(ledger.path).entries()] == ["create", "charge", "charge", "charge", "draw"]
    assert hg.denoise(GRAPH, back, method="sgwt_deep").signal.shape == (4, 2)


def test_releases_without_intervals_are_read_and_verified(ledger, tmp_path):
    """Earlier releases of this format have no columns lower and upper, no level, and say nothing of intervals."""
    folder = folder_of(ledger, tmp_path / "out")
    with (folder / "map.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][-2:] == ["lower", "upper"]
    with (folder / "map.csv").open("w", newline="") as file:
        csv.writer(file).writerows(row[:-2] for row in rows)
    known = certificate_in(folder)
    del known["denoised"]["interval"]
    known["remarks"] = [
        "The denoised map and its expected error are computed from the noisy map alone and carry the same guarantee.",
        *known["remarks"][2:],
    ]
    known["files"]["map.csv"] = hashlib.sha256((folder / "map.csv").read_bytes()).hexdigest()
    write_certificate(folder, known)
    assert verify_release(folder, GRAPH, ledger).ok
    assert read_release(folder, GRAPH, ledger=ledger).values.shape == (4, 2)


@pytest.mark.parametrize("level", [0.8, 1, 0, "0.9", None, True, float("nan")])
def test_an_edited_level_is_noticed(ledger, tmp_path, level):
    folder = folder_of(ledger, tmp_path / "out")
    known = certificate_in(folder)
    known["denoised"]["interval"] = level
    write_certificate(folder, known)
    assert not verify_release(folder, GRAPH, ledger).ok


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("unit",), "driver"), (("adjacency",), "change-one"), (("bound",), "assumed"), (("caps", "max_cells"), 1),
        (("ledger", "dataset"), "others"), (("ledger", "budget", "epsilon"), 1.0), (("ledger", "budget", "spent"), 0.1),
        (("created",), "2020-01-01T00:00:00+00:00"), (("statement",), "Everything is safe."), (("epsilon",), 0.4),
        (("format",), "hushgraph release 2"),
    ],
)  # fmt: skip
def test_edits_of_an_old_certificate_are_noticed_as_far_as_the_chain_goes(previous, place, value):
    ledger, folder = previous
    known = certificate_in(folder)
    holder = known
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    if place == ("format",):
        write_certificate(folder, known)
        assert not verify_release(folder).ok
    else:
        with pytest.raises(LedgerTampered):
            ledger.verify(known)


def test_a_new_certificate_cannot_pose_as_an_old_one(ledger, tmp_path):
    known = certificate_in(folder_of(ledger, tmp_path / "out"))
    for name in ("unit_column", "dataset", "values_sha256"):
        del known[name]
    known["format"] = "hushgraph release 1"
    with pytest.raises(LedgerTampered, match="of another format than the charge"):
        ledger.verify(known)


# ---- other ledgers for the same people ------------------------------------------------------------------------------


def elsewhere(path, monkeypatch, state, **changes):
    """A ledger without spending that somebody made on another machine."""
    monkeypatch.setenv("HUSHGRAPH_STATE", str(state.parent / "another machine"))
    new_ledger(path, **changes)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(state))


def test_a_ledger_rewritten_under_a_new_identity_is_noticed_where_the_old_one_was_seen(path, state, monkeypatch, ledger):
    release(counted(), ledger=ledger, **ASKED)
    path.unlink()
    elsewhere(path, monkeypatch, state)
    with pytest.raises(LedgerTampered, match=f"this machine has seen ledger {ledger.identity} in use at this path"):
        Ledger.open(path)
    with pytest.raises(LedgerTampered):
        release(counted(), ledger=ledger, **ASKED)
    with pytest.raises(LedgerTampered):
        Ledger.open(path, replaces="0" * 32)
    with pytest.raises(ValueError, match="replaces must be the identity of a ledger"):
        Ledger.open(path, replaces="the old one")
    told = CliRunner().invoke(app, ["budget", "show", str(path)])
    assert told.exit_code == 4
    assert f"--replaces '{ledger.identity}'" in told.output
    assert Ledger.open(path, replaces=ledger.identity).spent == 0  # the owner says that it is right
    Ledger.open(path)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(state.parent / "a machine that never saw it"))
    Ledger.open(path)  # nobody could tell there


def test_the_path_is_the_file_however_it_is_written(path, state, monkeypatch, ledger):
    release(counted(), ledger=ledger, **ASKED)
    path.unlink()
    elsewhere(path, monkeypatch, state)
    link = path.with_name("link.db")
    link.symlink_to(path)
    monkeypatch.chdir(path.parent)
    for name in ("budget.db", link):
        with pytest.raises(LedgerTampered, match="was replaced by another one"):
            Ledger.open(name)


def test_a_ledger_without_spending_may_be_replaced_and_moved(path, tmp_path):
    new_ledger(path)
    path.unlink()
    ledger = new_ledger(path, epsilon=2)  # a slip of the pen, mended
    release(counted(), ledger=ledger, **ASKED)
    moved = path.rename(tmp_path / "moved.db")
    Ledger.open(moved)
    assert Ledger.open(moved).identity == ledger.identity
    shutil.copy(moved, tmp_path / "copy.db")
    Ledger.open(tmp_path / "copy.db").charge(sensitivity_squared=1, sigma=100.0, epsilon=0.1, delta=1e-6)


def test_another_ledger_at_the_path_of_one_that_was_moved_must_be_asked_for(path, tmp_path, ledger):
    release(counted(), ledger=ledger, **ASKED)
    moved = path.rename(tmp_path / "moved.db")
    with pytest.raises(LedgerError, match=f"ledger {ledger.identity} was in use at the path of budget.db on this machine"):
        new_ledger(path, dataset="other people")
    assert not path.exists()
    new_ledger(path, dataset="other people", replaces=ledger.identity)
    assert Ledger.open(path).dataset == "other people"
    assert Ledger.open(moved).identity == ledger.identity


def test_a_replacement_without_spending_does_not_open_the_door_to_a_third_budget(path, tmp_path, ledger):
    release(counted(), ledger=ledger, **ASKED)
    second = new_ledger(tmp_path / "second.db", replaces=ledger.identity)
    for names in ({}, {"dataset": " Trips"}, {"unit": "Person "}):
        with pytest.raises(LedgerError, match=f"has seen ledger {ledger.identity} in use for dataset="):
            new_ledger(tmp_path / "third.db", **names)
    third = new_ledger(tmp_path / "third.db", replaces=ledger.identity)
    Ledger.open(path)
    release(counted(), ledger=Ledger.open(second.path), **ASKED)
    with pytest.raises(LedgerError, match=f"has seen ledger {second.identity} in use for dataset="):
        release(counted(), ledger=third, **ASKED)
    with pytest.raises(LedgerError, match=f"has seen ledger {second.identity} in use for dataset="):
        Ledger.open(third.path)
    assert Ledger.open(path).identity == ledger.identity  # the certificates of the first can still be verified
    with pytest.raises(LedgerError, match=f"has seen ledger {second.identity} in use for dataset="):
        new_ledger(tmp_path / "fourth.db", replaces=ledger.identity)


def test_two_ledgers_without_spending_are_not_both_charged(tmp_path, ledger):
    second = new_ledger(tmp_path / "second.db")
    release(counted(), ledger=ledger, **ASKED)
    with pytest.raises(LedgerError, match=f"has seen ledger {ledger.identity} in use for dataset="):
        release(counted(), ledger=second, **ASKED)
    assert len(second) == 1


def test_a_second_ledger_for_the_same_people_from_elsewhere_is_not_opened(tmp_path, state, monkeypatch, ledger):
    release(counted(), ledger=ledger, **ASKED)
    second = tmp_path / "second.db"
    elsewhere(second, monkeypatch, state, dataset="TRIPS")
    with pytest.raises(LedgerError, match=f"has seen ledger {ledger.identity} in use for dataset='TRIPS'"):
        Ledger.open(second)
    told = CliRunner().invoke(app, ["budget", "show", str(second)])
    assert told.exit_code == 4
    assert f"--replaces '{ledger.identity}'" in told.output
    Ledger.open(second, replaces=ledger.identity)  # said once
    release(counted(), ledger=Ledger.open(second), **ASKED)
    elsewhere(tmp_path / "third.db", monkeypatch, state, replaces=Ledger.open(second).identity)
    Ledger.open(tmp_path / "third.db")  # it says itself what it replaces


def test_a_second_budget_for_the_same_people_must_be_asked_for_and_is_said(path, tmp_path, ledger):
    release(counted(), ledger=ledger, **ASKED)
    path.unlink()
    for place in (path, tmp_path / "other.db"):
        with pytest.raises(LedgerError, match=f"this machine has seen ledger {ledger.identity} in use for dataset='trips'"):
            new_ledger(place)
        with pytest.raises(LedgerError, match="a second ledger would give the same people a second budget"):
            new_ledger(place, replaces="f" * 32)
        assert not place.exists()
    for other in ({"dataset": "buses"}, {"unit": "driver"}, {"adjacency": "change-one"}):
        new_ledger(tmp_path / f"{next(iter(other))}.db", **other)
    second = new_ledger(path, replaces=ledger.identity)
    public = release(counted(), ledger=second, **ASKED)
    assert public.certificate["ledger"]["replaces"] == ledger.identity == second.entries()[0]["replaces"]
    second.verify(public.certificate)
    hidden = {**public.certificate, "ledger": {**public.certificate["ledger"], "replaces": None}}
    with pytest.raises(LedgerTampered, match="the certificate says replaces = None"):
        second.verify(hidden)


def test_a_release_takes_the_ledger_of_its_data_set(path, ledger):
    counts = counted(dataset="buses")
    with pytest.raises(LedgerError, match="the ledger protects dataset 'trips', the counts 'buses'"):
        release(counts, ledger=ledger, **ASKED)
    declared = declare_counts(GRAPH, [1, 2, 3, 4], unit="person", adjacency="add-remove", sensitivity=1, dataset="buses")
    with pytest.raises(LedgerError, match="the ledger protects dataset 'trips', the counts 'buses'"):
        release(declared, ledger=ledger, **ASKED)
    assert len(ledger) == 1
    assert release(counted(dataset="trips"), ledger=ledger, **ASKED).certificate["dataset"] == "trips"
    assert release(counted(), ledger=ledger, **ASKED).certificate["dataset"] is None
    for bad in (3, "", "  "):
        with pytest.raises(TypeError, match="dataset must be the name of the data"):
            counted(dataset=bad)


# ---- how often the file is read -------------------------------------------------------------------------------------


@pytest.fixture
def transactions(monkeypatch):
    """The kinds of transactions on ledgers, in order."""
    begun, real = [], ledger_module.transaction

    def counting(path, begin, *rest):
        begun.append(begin)
        return real(path, begin, *rest)

    monkeypatch.setattr(ledger_module, "transaction", counting)
    return begun


def test_a_release_opens_the_ledger_for_the_charge_and_for_the_draw(ledger, transactions):
    release(counted(), ledger=ledger, **ASKED)
    assert transactions == ["IMMEDIATE", "IMMEDIATE"]


def test_the_release_command_reads_the_ledger_once_more_when_it_opens_it(ledger, transactions, tmp_path):
    hg.write_graph(tmp_path / "streets.graphml", GRAPH)
    (tmp_path / "trips.csv").write_text("person,node\np,a\nq,c\n")
    bound = ["--max-nodes", "1", "--max-per-node", "1", "--node", "node", "--dataset", "trips", "--spreadsheet-safe"]
    asked = [
        "--ledger",
        str(ledger.path),
        "--epsilon",
        "0.5",
        "--public-graph",
        "--method",
        "sgwt_deep",
        "-o",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, ["release", str(tmp_path / "streets.graphml"), str(tmp_path / "trips.csv"), *bound, *asked])
    assert done.exit_code == 0, done.output
    assert transactions == ["DEFERRED", "IMMEDIATE", "IMMEDIATE"]
    assert "epsilon 0.5 of 5 is spent" in done.output
    assert '\n"\'=b",' in (tmp_path / "out" / "map.csv").read_text()
    assert Ledger.open(ledger.path).last_snapshot.spent == pytest.approx(0.5)
    refused = CliRunner().invoke(
        app,
        [
            "release",
            str(tmp_path / "streets.graphml"),
            str(tmp_path / "trips.csv"),
            *bound,
            *asked,
            "-o",
            "x",
            "--dataset",
            "buses",
        ],
    )
    assert refused.exit_code == 4


def test_one_look_at_the_file_tells_everything(ledger, transactions):
    release(counted(), ledger=ledger, **ASKED)
    transactions.clear()
    last = ledger.last_snapshot
    assert transactions == []
    known = ledger.snapshot()
    facts = known.budget(), known.remaining(), known.remaining(1e-7), known.head, known.entry, known.mu_squared
    assert transactions == ["DEFERRED"]
    assert facts == (ledger.budget(), ledger.remaining(), ledger.remaining(1e-7), ledger.head, len(ledger), ledger.mu_squared)
    assert last == known


# ---- spreadsheets ---------------------------------------------------------------------------------------------------

ODD = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'=1",
    "'=1+1",
    "＝1",
    "＋1",
    "－1",
    "＠1",
    "x;=1+1",
    "x\t=1",
    "x\r\n=1",
    "x\n=1",
]
LABELS = [*ODD, "a", "a=1", "a'", "Ünter den Linden"]


def test_labels_that_look_like_formulas_can_be_written_safely(ledger, tmp_path):
    graph = hg.Graph.from_edges([(k, k + 1) for k in range(len(LABELS) - 1)], labels=LABELS)
    counts = declare_counts(graph, np.zeros(len(LABELS), dtype=int), unit="person", adjacency="add-remove", sensitivity=1)
    public = release(counts, ledger=ledger, **ASKED)
    plain, safe = public.export(tmp_path / "plain"), public.export(tmp_path / "safe", spreadsheet_safe=True)
    for folder, spelled in ((plain, LABELS), (safe, [f"'{label}" for label in ODD] + LABELS[len(ODD) :])):
        with (folder / "map.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["node"] for row in rows] == spelled
        assert len(set(spelled)) == len(LABELS)
        assert all(
            float(row["noisy"]) == value for row, value in zip(rows, public.values, strict=True)
        )  # negative numbers stay numbers
        assert certificate_in(folder)["spreadsheet_safe"] is (folder == safe)
        back = read_release(folder, graph, ledger=ledger)
        assert np.array_equal(back.values, public.values)
        assert back.graph.labels.tolist() == LABELS
    with (safe / "map.csv").open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file, delimiter=";")]  # as a spreadsheet reads it where decimals have commas
    assert [cell[: len(f"'{label}")] for cell, label in zip(cells[1:], ODD, strict=False)] == [f"'{label}" for label in ODD]
    write_certificate(safe, {**certificate_in(safe), "spreadsheet_safe": False})
    assert not verify_release(safe, graph).ok
    with pytest.raises(ValueError, match="spreadsheet_safe must be one of True, False"):
        public.export(tmp_path / "more", spreadsheet_safe="yes")


def test_numbers_as_labels_are_no_formulas(ledger, tmp_path):
    graph = hg.Graph.from_edges([(0, 1), (1, 2)], labels=[-1, 5, 7])
    counts = declare_counts(graph, [0, 0, 0], unit="person", adjacency="add-remove", sensitivity=1)
    folder = release(counts, ledger=ledger, **ASKED).export(tmp_path / "out", spreadsheet_safe=True)
    assert [row.split(",")[0] for row in (folder / "map.csv").read_text().splitlines()[1:]] == ["-1", "5", "7"]


# ---- the report -----------------------------------------------------------------------------------------------------


def report_check(folder):
    return next((check for check in verify_release(folder, GRAPH).checks if "report.html" in check.claim), None)


def test_the_report_in_a_folder_is_that_of_the_certificate(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "may", report=True)
    assert report_check(folder).holds is True
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert certificate_in(folder)["files"]["map.csv"] in page  # the page names the map that it was made with
    assert "typical error" in page
    (folder / "report.html").write_text(page.replace("typical error", "error"), encoding="utf-8")
    assert report_check(folder).holds is False
    with pytest.raises(ValueError, match="it was edited or replaced"):
        read_release(folder, GRAPH)
    (folder / "report.html").unlink()
    assert report_check(folder).holds is None
    read_release(folder, GRAPH)


def test_a_folder_has_a_report_unless_there_is_no_map_or_no_wish(ledger, tmp_path):
    public = release(counted(dataset="trips"), ledger=ledger, **ASKED)
    assert (public.export(tmp_path / "with", method="sgwt_deep") / "report.html").is_file()
    assert not (public.export(tmp_path / "without", method="sgwt_deep", report=False) / "report.html").exists()
    with pytest.raises(ValueError, match="report must be one of True, False"):
        public.export(tmp_path / "other", report=hg.write_report)
    plain = hg.Graph.from_edges([(0, 1), (1, 2)])
    counts = declare_counts(plain, [0, 0, 0], unit="person", adjacency="add-remove", sensitivity=1)
    folder = release(counts, ledger=ledger, **ASKED).export(tmp_path / "plain")
    assert {path.name for path in folder.iterdir()} == {"map.csv", "certificate.json"}


def test_a_report_that_the_certificate_does_not_name_is_not_believed(ledger, tmp_path):
    folder = folder_of(ledger, tmp_path / "may")
    assert report_check(folder) is None
    (folder / "report.html").write_text("<p>Nothing is private.</p>")
    assert report_check(folder).holds is None
    assert "may say anything" in report_check(folder).detail


def test_a_report_that_fails_leaves_the_release(ledger, tmp_path, monkeypatch):
    def fails(path, *_, **__):
        path.write_text("half of a page")
        raise MemoryError

    monkeypatch.setattr("hushgraph.plotting.write_report", fails)
    with pytest.warns(UserWarning, match=r"the release is complete, but its report.html could not be written \(MemoryError\)"):
        folder = folder_of(ledger, tmp_path / "may", report=True)
    assert {path.name for path in folder.iterdir()} == {"map.csv", "certificate.json"}
    assert verify_release(folder, GRAPH, ledger).ok
