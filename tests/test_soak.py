"""`tools/soak.py` finds what it is for: releases that charge and leave nothing, commands that fail or do not end, files that are not whole."""

import re
import runpy
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

httpx = pytest.importorskip("httpx")
SOAK = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "soak.py"))
CHARGE = """
import pathlib, sqlite3, sys
connection = sqlite3.connect("budget.db")
connection.execute("INSERT INTO entries VALUES ('{\\"kind\\": \\"charge\\"}')")
connection.commit()
"""
EARLY = """
import os, signal
signal.signal(signal.SIGINT, lambda *_: (os.write(2, b'<frozen site> KeyboardInterrupt'), os._exit(1)))
"""
FOLDER = "pathlib.Path(sys.argv[-1]).mkdir()"


@pytest.fixture
def soak(tmp_path):
    """Return a function that makes a soak with an empty ledger, whose command is this program."""
    with sqlite3.connect(tmp_path / "budget.db") as connection:
        connection.execute("CREATE TABLE entries (fields TEXT)")
    connection.close()
    made = []

    def make(program):
        made.append(SOAK["Soak"](tmp_path, 0, [sys.executable, "-S", "-E", "-c", program]))
        return made[-1]

    yield make
    made[-1].end()


def set_global(monkeypatch, soak, name, value):
    """Set a constant of the program; `runpy` gives its functions names of their own."""
    monkeypatch.setitem(type(soak).do.__globals__, name, value)


@pytest.mark.parametrize(
    ("program", "faults"),
    [
        (CHARGE + FOLDER, []),
        (
            CHARGE + "raise ValueError('broken')",
            ["release ended with 1: .*ValueError: broken", "release 0 made 1 charges, expected 0"],
        ),
        ("import pathlib, sys\n" + FOLDER, ["release 0 made 0 charges, expected 1"]),
    ],
)
def test_a_release_that_fails_is_a_fault(soak, program, faults):
    broken = soak(program)
    broken.do(broken.release)
    check(broken.faults, faults)


@pytest.mark.parametrize(
    ("program", "faults"),
    [
        (CHARGE + FOLDER, []),
        (CHARGE + "raise ValueError('broken')", ["release ended with 1: .*ValueError: broken"]),
        (CHARGE + "raise SystemExit(130)", ["release ended with 130"]),
    ],
)
def test_a_release_that_fails_before_it_is_killed_is_a_fault(soak, monkeypatch, program, faults):
    broken = soak(program)
    monkeypatch.setattr("random.Random.uniform", lambda *_: 60.0)  # the moment of the signal
    broken.do(broken.killed_release)
    check(broken.faults[:1], faults)
    assert (broken.finished == ["killed-0"]) == (not faults)
    assert broken.n_killed == 0


@pytest.mark.parametrize(
    ("number", "program", "faults"),
    [
        (signal.SIGKILL, "", []),
        (signal.SIGTERM, "", ["killed_release 0 made 1 charges, expected 0"]),
        (signal.SIGTERM, FOLDER, []),
        (
            signal.SIGINT,
            "import signal; signal.signal(signal.SIGINT, lambda *_: sys.exit(3))",
            ["release ended with 3 after .*SIGINT"],
        ),
        (signal.SIGINT, EARLY, ["killed_release 0 made 1 charges, expected 0"]),
        (signal.SIGINT, EARLY + FOLDER, []),
    ],
)
def test_only_sigkill_may_leave_a_charge_without_a_folder(soak, monkeypatch, number, program, faults):
    """The command says that it has charged, and waits for the signal."""
    broken = soak(f"{CHARGE}{program}\nimport time\npathlib.Path('charged').touch()\ntime.sleep(60)")
    monkeypatch.setattr("random.Random.choice", lambda *_: number)
    monkeypatch.setattr("random.Random.uniform", lambda *_: 60.0)
    set_global(monkeypatch, broken, "subprocess", Impatient(broken.folder / "charged"))
    broken.do(broken.killed_release)
    check(broken.faults[:1], faults)
    assert broken.n_killed == 1


class Impatient:
    """The module subprocess with processes for which one waits until a file is there, and no longer."""

    def __init__(self, path):
        self.path = path

    def __getattr__(self, name):
        return getattr(subprocess, name)

    def Popen(self, *words, **options):
        process = subprocess.Popen(*words, **options)
        whole_wait, path, timeouts = process.wait, self.path, []

        def wait(timeout=None):
            while not path.exists() and process.poll() is None:
                time.sleep(0.01)
            timeouts.append(timeout)
            if len(timeouts) == 1 and process.poll() is None:
                raise subprocess.TimeoutExpired("", timeout)
            return whole_wait(timeout)

        process.wait = wait
        return process


def test_a_command_that_does_not_end_is_a_fault(soak, monkeypatch):
    endless = soak("import time; time.sleep(600)")
    set_global(monkeypatch, endless, "LIMIT", 0.2)
    endless.do(endless.release)
    assert endless.faults[0] == "release did not end within 0.2 seconds"


def test_a_dead_process_is_a_fault_and_there_is_a_new_one(soak, monkeypatch):
    """The work goes on, so that the end of the soak is checked."""
    one = soak("pass")
    one.folder.joinpath("streets.graphml").touch()
    set_global(monkeypatch, one, "WORKER", "input(); input(); print('done', flush=True); input()")
    one.start_worker()
    first = one.worker
    first.kill()
    first.wait()
    assert not one.worker_made("a")
    assert one.faults == ["the process that makes releases has ended"]
    assert one.worker.pid != first.pid
    one.worker.stdin.write("first line\n")
    assert one.worker_made("b")
    assert len(one.faults) == 1
    one.stop(one.worker)


def test_an_explorer_that_gives_no_answer_is_a_fault_and_there_is_a_new_one(soak, monkeypatch):
    one = soak("pass")
    one.explorer, one.web = (
        one.start([sys.executable, "-c", ""], stdout=subprocess.PIPE),
        httpx.Client(base_url="http://127.0.0.1:9"),
    )
    monkeypatch.setattr(one, "start_explorer", lambda: ("a new explorer", "its client"))
    one.do(one.request)
    assert len(one.faults) == 1
    assert "the explorer gave no answer: ConnectError" in one.faults[0]
    assert (one.explorer, one.web) == ("a new explorer", "its client")


def test_an_explorer_that_does_not_start_leaves_no_timer(soak):
    one = soak("print('no address')")
    with pytest.raises(RuntimeError, match="the explorer did not start: no address"):
        one.start_explorer()
    assert not any(isinstance(thread, threading.Timer) and not thread.finished.is_set() for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("node,denoised,lower\na,1,0.5\nb,2,-0.5\n", True),
        ("node,denoised,lower\na,1,0.5\n", False),
        ("node,denoised,lower\na,1,0.5\nb,nan,1\n", False),
        ("node,denoised,lower\na,1,0.5\nb,2\n", False),
        ("node,noisy\na,1\nb,2\n", False),
        ("", False),
    ],
)
def test_a_file_that_is_not_whole_is_a_fault(soak, text, is_whole):
    checker = soak("")
    checker.n_nodes = 2
    (checker.folder / "denoised.csv").write_text(text)
    checker.check_denoised("denoised.csv")
    assert (checker.faults == []) == is_whole


@pytest.mark.parametrize(
    ("last", "grown"), [((100, 10, 5), []), ((121, 10, 5), ["MB"]), ((100, 21, 5), ["open files"]), ((100, 10, 11), ["threads"])]
)
def test_growth_is_a_fault(soak, last, grown):
    samples = [dict(zip(SOAK["ROOM"], numbers, strict=True)) for numbers in [(100, 10, 5)] * 20 + [last] * 5]
    grower = soak("")
    grower.growth("worker", samples)
    check(grower.faults, [f"worker grew from .* {unit}$" for unit in grown])


def test_files_that_nobody_asked_for(soak):
    finder = soak("")
    finder.counts["explorer_release"] = 1
    for name in (
        "home/mine",
        "temporary/hushgraph-release-abcd1234",
        "temporary/hushgraph-abcd1234",
        "explorer-0/.0123456789ab-release-1",
        "release-0/map.csv",
        "release-0/noisy.npy",
    ):
        (finder.folder / name).parent.mkdir(exist_ok=True)
        (finder.folder / name).touch()
    assert finder.left_files({"release-0"}) == (
        ["home/mine", "release-0/noisy.npy", "temporary/hushgraph-release-abcd1234"],
        ["explorer-0/.0123456789ab-release-1"],
        ["temporary/hushgraph-abcd1234"],
    )


def check(found, expected):
    """Compare faults with patterns of them."""
    assert len(found) == len(expected), found
    for fault, pattern in zip(found, expected, strict=True):
        assert re.search(pattern, fault, re.DOTALL), found
