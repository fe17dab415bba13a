"""The budget holds: whatever runs at once, dies in between, or is done to the file, releases never cost more than was granted."""

import contextlib
import copy
import dataclasses
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from hushgraph.privacy.calibration import analytic_sigma, composed_delta, composed_epsilon
from hushgraph.privacy.ledger.budget import Charge, Ledger
from hushgraph.privacy.ledger.chain import BudgetExceeded, LedgerError

from .ledgers import KEY, NAMES, SMALL

nan, inf = np.nan, np.inf


def create(path, **options):
    return Ledger.create(path, **{**NAMES, "epsilon": 1.0, "delta": 1e-6, "weak_guarantee": True, **options})


def python(program, *arguments, **options):
    """A second process."""
    start = "import os, signal, sys\nfrom hushgraph.privacy.ledger.budget import *\n"
    small = f"SMALL = {SMALL!r}\n"
    command = [sys.executable, "-c", start + small + program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def start(processes):
    """All at once: each waits for a line."""
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


# ---- the budget -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1, 7.5, 1000])
@pytest.mark.parametrize(("delta", "squared"), [(1e-6, 1), (1e-12, 3), (1e-3, Fraction(8, 3))])
def test_one_release_may_spend_exactly_everything_and_nothing_fits_after_it(path, epsilon, delta, squared):
    ledger = create(path, epsilon=epsilon, delta=delta)
    assert ledger.spent == 0
    assert ledger.remaining() == epsilon
    sigma = analytic_sigma(epsilon=epsilon, delta=delta, sensitivity_squared=squared)
    with pytest.raises(ValueError, match="too small"):
        ledger.charge(sensitivity_squared=squared, sigma=sigma * (1 - 1e-14), epsilon=epsilon, delta=delta)
    ledger.charge(sensitivity_squared=squared, sigma=sigma, epsilon=epsilon, delta=delta)
    assert ledger.spent == pytest.approx(epsilon, rel=1e-12)
    assert ledger.spent <= epsilon
    assert ledger.remaining() == pytest.approx(0, abs=1e-6 * epsilon)
    before = path.read_bytes()
    with pytest.raises(BudgetExceeded, match=re.escape(f"is epsilon = {float(epsilon)} at delta = {delta}; ")):
        ledger.charge(sensitivity_squared=1, sigma=1e6 * sigma, epsilon=epsilon, delta=delta)
    assert path.read_bytes() == before


def test_refusal_says_budget_spent_what_it_would_be_and_what_to_do(path):
    ledger = create(path, epsilon=0.5)
    ledger.charge(sensitivity_squared=1, sigma=16.2, epsilon=0.25, delta=1e-6)
    with pytest.raises(BudgetExceeded) as error:
        ledger.charge(sensitivity_squared=1, sigma=8.1, epsilon=0.5, delta=1e-6)
    would = composed_epsilon(1 / Fraction(16.2) ** 2 + 1 / Fraction(8.1) ** 2, 1e-6)
    for text in (
        "epsilon = 0.5 at delta = 1e-06",
        f"{ledger.spent:.6g} of it is spent",
        f"{would:.6g}",
        "smaller epsilon",
        "ledger.renew",
    ):
        assert text in str(error.value)


def test_releases_compose_exactly(path):
    ledger, squared, sigma = create(path), Fraction(8, 3), 97.3
    for k in range(1, 8):
        ledger.charge(sensitivity_squared=squared, sigma=sigma, epsilon=0.1, delta=1e-6)
        exact = k * squared / Fraction(sigma) ** 2
        assert 0 <= Fraction(ledger.mu_squared) - exact <= exact * Fraction(1, 10**58)
        assert ledger.spent == composed_epsilon(exact, 1e-6)
        assert len(ledger.mu_squared.as_tuple().digits) <= 60


@pytest.mark.parametrize("delta", [None, 1e-6, 1e-9, 1e-3])
@pytest.mark.parametrize("n_before", [0, 1, 3])
def test_what_remains_can_be_charged_and_a_little_more_cannot(path, delta, n_before):
    ledger = create(path, epsilon=2)
    for _ in range(n_before):
        ledger.charge(sensitivity_squared=5, sigma=20.0, epsilon=1, delta=1e-6)
    epsilon, delta = ledger.remaining(delta), delta or 1e-6

    def release(epsilon):
        sigma = analytic_sigma(epsilon=epsilon, delta=delta, sensitivity_squared=3)
        return ledger.charge(sensitivity_squared=3, sigma=sigma, epsilon=epsilon, delta=delta)

    with pytest.raises(BudgetExceeded):
        release(epsilon * (1 + 1e-12))
    release(epsilon)
    assert ledger.remaining() < 1e-6


def test_nothing_remains_at_a_delta_that_even_epsilon_zero_cannot_have(path):
    ledger = create(path, epsilon=0.1)
    assert ledger.remaining(0.5) == 0


def test_a_new_period_is_an_entry_with_a_budget_of_its_own(path):
    ledger = create(path, period="May")
    sigma = analytic_sigma(epsilon=1, delta=1e-6, sensitivity_squared=1)
    ledger.charge(sensitivity_squared=1, sigma=sigma, epsilon=1, delta=1e-6)
    other = Ledger.open(path)
    ledger.renew(epsilon=0.5, delta=1e-7, period="June", reason="new trips only")
    assert (other.period, other.epsilon, other.delta, other.spent) == ("June", 0.5, 1e-7, 0.0)
    with pytest.raises(BudgetExceeded):
        other.charge(sensitivity_squared=1, sigma=sigma, epsilon=1, delta=1e-6)
    other.charge(**SMALL, note="a map")
    for period in ("May", "June"):
        with pytest.raises(LedgerError, match="name of its own"):
            ledger.renew(epsilon=1, delta=1e-6, period=period, reason="again")
    kinds = [(entry["kind"], entry["period"], entry["epsilon"], entry["note"]) for entry in ledger.entries()]
    assert kinds == [
        ("create", "May", 1.0, None),
        ("charge", "May", 1.0, None),
        ("renew", "June", 0.5, "new trips only"),
        ("charge", "June", 0.1, "a map"),
    ]


def test_attributes_entries_and_repr(path, monkeypatch):
    ledger = create(path, period="2024", key=KEY)
    charge = ledger.charge(**{**SMALL, "sensitivity_squared": Fraction(8, 3)}, note="Ä \ud800")
    monkeypatch.chdir("/")
    assert (ledger.path, ledger.dataset, ledger.unit, ledger.adjacency) == (path, *NAMES.values())
    assert (ledger.epsilon, ledger.delta, ledger.period, len(ledger)) == (1.0, 1e-6, "2024", 2)
    assert re.fullmatch("[0-9a-f]{32}", ledger.identity)
    assert isinstance(ledger.mu_squared, Decimal)
    last = ledger.entries()[-1]
    expected = {
        "entry": 2,
        "kind": "charge",
        "period": "2024",
        "sensitivity_squared": Fraction(8, 3),
        "sigma": 100.0,
        "epsilon": 0.1,
    }
    assert {name: last[name] for name in expected} == expected
    assert (last["delta"], last["note"], last["head"]) == (1e-6, "Ä \ud800", charge.head)
    assert last["head"] == ledger.head == Ledger.open(path, key=KEY, **NAMES).head
    spent = f"{ledger.spent:.6g}"
    assert repr(ledger) == (
        f"Ledger('budget.db', dataset='taxis', unit='passenger', adjacency='add-remove', spent={spent}, budget=(1.0, 1e-06))"
    )
    assert KEY not in path.read_bytes()


# ---- one charge, one draw -------------------------------------------------------------------------------------------


def test_a_charge_is_spent_once_whoever_comes_first(path):
    ledger = create(path)
    for _ in range(20):
        charge, start, spent = ledger.charge(**SMALL), threading.Barrier(8), []

        def spend(charge=charge, start=start, spent=spent):
            start.wait()
            with contextlib.suppress(LedgerError):
                spent.append(charge.spend())

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert spent == [None]
        with pytest.raises(LedgerError, match="one charge, one draw"):
            charge.spend()


@pytest.mark.parametrize("double", [copy.copy, copy.deepcopy, pickle.dumps, lambda charge: copy.deepcopy([charge])])
def test_a_charge_cannot_be_doubled(path, double):
    charge = create(path).charge(**SMALL)
    with pytest.raises(LedgerError, match="one charge, one draw"):
        double(charge)
    with pytest.raises(ValueError):
        dataclasses.replace(charge)
    with pytest.raises(dataclasses.FrozenInstanceError):
        charge.sigma = 1.0
    with pytest.raises(LedgerError, match=r"made by ledger\.charge"):
        Charge(charge.state, Fraction(1), 1.0, 1.0, 1e-6, creator=None)
    assert charge.spend() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_charge_does_not_survive_a_fork_and_a_ledger_does(path):
    create(path)
    program = """
ledger = Ledger.open(sys.argv[1])
charge = ledger.charge(**SMALL)
child = os.fork()
if not child:
    try:
        charge.spend()
    except LedgerError:
        ledger.charge(**SMALL).spend()
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
charge.spend()
ledger.charge(**SMALL).spend()
"""
    process = python(program, path)
    process.communicate(timeout=300)
    assert process.returncode == 0
    assert len(Ledger.open(path)) == 4


# ---- many at once, and crashes --------------------------------------------------------------------------------------


def largest_number(sigma, epsilon, delta):
    """How many releases with this sigma (and sensitivity 1) the budget allows."""
    k = 1
    while composed_delta((k + 1) / Fraction(sigma) ** 2, epsilon) <= delta:
        k += 1
    return k


def test_two_processes_of_two_threads_and_hundreds_of_attempts_spend_the_budget_and_no_more(path):
    sigma = 40.0
    most = largest_number(sigma, 1.0, 1e-6)
    assert 70 < most < 130
    create(path)
    program = """
import threading
ledger, accepted = Ledger.open(sys.argv[1]), []
def attempt():
    for _ in range(75):
        try:
            accepted.append(ledger.charge(sensitivity_squared=1, sigma=float(sys.argv[2]), epsilon=1, delta=1e-6).head)
        except BudgetExceeded:
            pass
threads = [threading.Thread(target=attempt) for _ in range(2)]
print("ready", flush=True)
sys.stdin.readline()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*accepted)
"""
    processes = [python(program, path, sigma, stdin=subprocess.PIPE) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    start(processes)
    heads = [process.communicate(timeout=300)[0].split() for process in processes]
    ledger = Ledger.open(path)
    assert sorted(heads[0] + heads[1]) == sorted(entry["head"] for entry in ledger.entries()[1:])
    assert len(ledger) - 1 == most
    assert ledger.spent <= 1


def test_two_processes_create_one_ledger(path):
    program = """
sys.stdin.readline()
try:
    Ledger.create(sys.argv[1], dataset="d", unit=sys.argv[2], adjacency="change-one", epsilon=1, delta=1e-6)
    print("made")
except LedgerError as error:
    print("exists already" in str(error))
"""
    processes = [python(program, path, name, stdin=subprocess.PIPE) for name in ("a", "b")]
    start(processes)
    said = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert sorted(said) == ["True", "made"]
    assert Ledger.open(path).unit == ("a", "b")[said.index("made")]


@pytest.mark.parametrize("n_seen", [1, 9, 40])
def test_a_killed_process_loses_nothing_that_it_was_told(path, n_seen):
    create(path, epsilon=1000)
    program = """
ledger = Ledger.open(sys.argv[1])
while True:
    charge = ledger.charge(**SMALL)
    print(charge.entry, charge.head, flush=True)
"""
    process = python(program, path)
    told = [process.stdout.readline() for _ in range(n_seen)]
    process.kill()
    told += process.communicate(timeout=300)[0].splitlines(keepends=True)
    ledger = Ledger.open(path)
    ledger.verify()
    there = {f"{entry['entry']} {entry['head']}\n" for entry in ledger.entries()}
    assert {line for line in told if line.endswith("\n")} <= there
    assert len(ledger) - 1 - len(told) in (-1, 0, 1)
    assert ledger.mu_squared == sum([Decimal("0.0001")] * (len(ledger) - 1), Decimal(0))
    ledger.charge(**SMALL)


def test_death_right_after_the_charge_leaves_it_charged(path):
    create(path)
    process = python("Ledger.open(sys.argv[1]).charge(**SMALL)\nos.kill(os.getpid(), signal.SIGKILL)", path)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert len(ledger) == 2
    assert ledger.spent == composed_epsilon(Fraction(1, 10**4), 1e-6)


def test_death_before_the_commit_charges_nothing(path):
    create(path, epsilon=1000)
    program = """
from hushgraph.privacy.ledger import budget as module
insert = module._insert
def dies(connection, *arguments, **fields):
    insert(connection, *arguments, **fields)
    os.kill(os.getpid(), signal.SIGKILL)
ledger = Ledger.open(sys.argv[1])
ledger.charge(**SMALL)
module._insert = dies
ledger.charge(**SMALL)
"""
    process = python(program, path)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert len(Ledger.open(path)) == 2


# ---- bad input ------------------------------------------------------------------------------------------------------

NUMBERS = [nan, inf, -1, True, "1", None, 1j, [1.0], 1e300]


@pytest.mark.parametrize(
    ("argument", "values", "words"),
    [
        ("dataset", ["", "  ", None, 3, b"taxis"], "dataset must be a text"),
        ("unit", ["", None, 3], "unit must be a text"),
        ("adjacency", ["", None, "add/remove", ["add-remove"]], "adjacency must be declared: 'add-remove'"),
        ("epsilon", [*NUMBERS, 0], "epsilon must be a positive number"),
        ("delta", [*NUMBERS, 0, 1, 0.0011], "delta must be above 0 and at most 0.001"),
        ("period", ["", 2024, b"May"], "period must be a text"),
        ("key", ["a text of more than 16 letters", b"", bytes(15), 16, bytearray(32)], "key must be at least 16"),
    ],
)
def test_create_refuses(path, argument, values, words):
    for value in values:
        with pytest.raises(ValueError, match=words):
            create(path, **{argument: value})
    assert not path.exists()


@pytest.mark.parametrize(
    ("argument", "values", "words"),
    [
        (
            "sensitivity_squared",
            [0, -1, 1.0, nan, True, "1", Fraction(-1, 2), Fraction(0)],
            "sensitivity_squared must be a positive",
        ),
        ("sensitivity_squared", [10**141, Fraction(1, 10**141), Fraction(10**5000 + 1, 10**5000)], "at most 10.140"),
        ("sigma", [0, -1.0, nan, inf, True, "1", 1j, [1.0, 2.0], 1e200], "sigma"),
        ("epsilon", NUMBERS, "epsilon must be from 0 to 1e6"),
        ("delta", [*NUMBERS, 0, 1], "delta must be strictly between 0 and 1"),
        ("note", ["", 3, b"note"], "note must be a text"),
    ],
)
def test_charge_refuses(path, argument, values, words):
    ledger = create(path)
    for value in values:
        with pytest.raises(ValueError, match=words):
            ledger.charge(**{**SMALL, argument: value})
    with pytest.raises(TypeError, match="required keyword-only"):
        ledger.charge(**{name: SMALL[name] for name in SMALL if name != argument} if argument in SMALL else {})
    assert len(ledger) == 1


@pytest.mark.parametrize(
    ("argument", "values"),
    [("epsilon", [*NUMBERS, 0]), ("delta", [*NUMBERS, 0, 1]), ("period", ["", None, 6]), ("reason", ["", " ", None, 6])],
)
def test_renew_refuses(path, argument, values):
    ledger = create(path)
    for value in values:
        with pytest.raises(ValueError, match=f"{argument} must be"):
            ledger.renew(**{"epsilon": 1, "delta": 1e-6, "period": "June", "reason": "new data", argument: value})
    assert len(ledger) == 1


@pytest.mark.parametrize("bad", [None, 3, "", b"budget.db"])
def test_paths_are_paths(bad):
    for make in (create, Ledger.open):
        with pytest.raises(ValueError, match="path must be the path"):
            make(bad)


def test_extreme_numbers_are_charged_or_refused_and_never_crash(path):
    ledger = create(path)
    huge = {"sensitivity_squared": 10**140, "sigma": 1e70, "epsilon": 1e6, "delta": 1e-6}
    with pytest.raises(BudgetExceeded):
        ledger.charge(**huge)
    with pytest.raises(ValueError, match="at least a millionth of the sensitivity"):
        ledger.charge(**{**huge, "sigma": 1e-70})
    ledger.charge(**{**SMALL, "sensitivity_squared": Fraction(1, 10**140), "sigma": 1e70, "epsilon": 0})
    assert ledger.mu_squared > 0
    assert ledger.spent == 0
    with pytest.raises(ValueError, match="delta must be"):
        ledger.remaining(0)


def test_old_names_of_the_snapshot_still_work(path):
    ledger = create(path)
    with pytest.deprecated_call(match=r"Ledger\.snapshot\(\)"):
        assert ledger.read() == ledger.snapshot()
    with pytest.deprecated_call(match=r"Ledger\.last_snapshot"):
        assert ledger.seen == ledger.last_snapshot
