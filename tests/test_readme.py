"""README.md runs as printed: its commands and its Python, from top to bottom, in one folder that is empty at the beginning."""

import contextlib
import csv
import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import hushgraph as hg

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = {
    "make demo": "installs packages from a network; test_demo.py runs the demo",
    "make test": "installs packages from a network, and runs this test",
    "hushgraph reproduce all": "needs real data, or a network to get them, and hours",
}
HUSHGRAPH = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from hushgraph.__main__ import main; main()"
LIMIT = 120  # seconds after which a command hangs


class Step(NamedTuple):
    """Python code, or one command, and the line of the page where it begins."""

    language: str
    text: str
    line: int


class Page(NamedTuple):
    """What is there after all steps: the folder, the memory of ledgers, the names in Python, and what each command printed."""

    folder: Path
    state: str
    names: dict
    printed: dict[str, str]


def steps(text):
    """Return the blocks of Python and the commands of a page in order; other blocks are lines of commands with comments."""
    found = []
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 2
        if match[1]:
            found.append(Step(match[1], match[2], line))
            continue
        commands = [shlex.join(shlex.split(row, comments=True)) for row in match[2].splitlines()]
        found += [Step("", command, line + k) for k, command in enumerate(commands) if command]
    return found


STEPS = steps(README.read_text(encoding="utf-8"))
COMMANDS = [step.text for step in STEPS if not step.language]


def run_python(step, folder, names):
    code = compile("\n" * (step.line - 1) + step.text, str(README), "exec")  # errors name the line of the page
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(code, names)


def started(command, folder, **options):
    """Return the process of a command; `hushgraph` is the package that is tested, whatever is installed."""
    name, *words = shlex.split(command)
    assert name == "hushgraph", f"say in NOT_RUN why {command!r} is not run"
    environment = {**os.environ, "BROWSER": "true"}  # the command true takes the address of a page and does nothing
    return subprocess.Popen([sys.executable, "-c", HUSHGRAPH, *words], cwd=folder, env=environment, text=True, **options)


def run_command(step, folder):
    with started(step.text, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            printed, faults = process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert process.returncode == 0, f"line {step.line} of README.md, {step.text}: {faults}"
    return printed


def ask_explorer(step, folder):
    """Start the explorer, which never ends, ask for its page once, and stop it as Ctrl-C does."""
    with started(step.text, folder, stdout=subprocess.PIPE) as process:
        try:
            said = process.stdout.readline()
            assert "http://" in said, f"line {step.line} of README.md, {step.text}: {said or 'no address'}"
            with urllib.request.urlopen(said.split()[-1].partition("#")[0], timeout=LIMIT) as page:
                text = page.read().decode()
            process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGINT)
            process.communicate(timeout=LIMIT)
        finally:
            process.kill()
    assert process.returncode == 0 or os.name == "nt", f"line {step.line} of README.md, {step.text}"
    return text


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Everything that the page says, done."""
    plt = importlib.import_module("matplotlib.pyplot")  # not skipped without it: the page installs hushgraph[all]
    folder, names, printed = tmp_path_factory.mktemp("readme"), {"__name__": "__main__"}, {}
    state = str(tmp_path_factory.mktemp("state"))  # other tests have ledgers of a dataset "trips" too
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "agg")
        patch.setenv("HUSHGRAPH_STATE", state)
        for step in STEPS:
            if step.language == "python":
                run_python(step, folder, names)
            elif step.text == "hushgraph explore":
                printed[step.text] = ask_explorer(step, folder)
            elif step.text not in NOT_RUN:
                printed[step.text] = run_command(step, folder)
        plt.close("all")
    return Page(folder, state, names, printed)


def output_of(page, beginning):
    return next(text for command, text in page.printed.items() if command.startswith(beginning))


def columns_of(path):
    with path.open(newline="") as file:
        return next(csv.reader(file))


def test_every_block_is_python_or_commands():
    assert {step.language for step in STEPS} == {"", "python"}
    assert len(COMMANDS) > 12
    assert sum(step.language == "python" for step in STEPS) == 4


def test_what_is_not_run_is_on_the_page():
    assert not set(NOT_RUN) - set(COMMANDS)


def test_the_first_command_of_hushgraph_writes_the_files_of_the_others():
    assert next(command for command in COMMANDS if command.startswith("hushgraph ")) == "hushgraph sample ."


def test_everything_runs_as_printed(page):
    assert set(page.printed) == set(COMMANDS) - set(NOT_RUN)
    assert "<html" in page.printed["hushgraph explore"]
    written = {path.name for path in page.folder.iterdir()}
    assert written >= {"maps.png", "published", "denoised.csv", "report.html", "march", "april", "spring", "out"}


def test_comments_about_python_are_true(page):
    names = page.names
    assert names["F"].shape == (names["frame"].n_scales, names["graph"].n)
    same = hg.denoise(names["graph"], names["noisy"], sigma=2, method="sgwt_sure", n_probes=10)
    np.testing.assert_allclose(names["denoised"], same.signal, rtol=1e-9, atol=1e-9)
    assert names["public"].sigma == pytest.approx(names["release"].sigma, rel=1e-6)  # the lattice adds a little
    assert hasattr(names["frame"], "tightness_defect")
    assert hasattr(names["frame"], "bounds")
    folder = page.folder / "published"
    assert {path.name for path in folder.iterdir()} == {"map.csv", "certificate.json", "report.html"}
    assert {"noisy", "denoised", "expected_error", "lower", "upper"} <= set(columns_of(folder / "map.csv"))


def test_comments_about_commands_are_true(page):
    assert columns_of(page.folder / "denoised.csv") == ["node", "denoised", "expected_error", "lower", "upper"]
    assert 'src="http' not in (page.folder / "report.html").read_text(encoding="utf-8")
    compared = output_of(page, "hushgraph compare")
    assert all(word in compared for word in ("auto", "sgwt_sure", "risk", "seconds"))
    assert "not for publication" in output_of(page, "hushgraph check").lower()
    assert "nothing was charged" in output_of(page, "hushgraph series")
    assert "Nothing was charged, nothing was written" in output_of(page, "hushgraph check")
    assert "Guides:" in next(text for command, text in page.printed.items() if "--guide march" in command)
    assert "map.csv is the file that the certificate describes: yes" in output_of(page, "hushgraph verify")
    assert hg.privacy.Ledger.open(page.folder / "budget.db").spent < 2


def test_a_second_budget_is_refused_until_the_state_is_new(page, tmp_path, monkeypatch):
    command = next(step for step in STEPS if step.text.startswith("hushgraph budget create"))
    monkeypatch.setenv("HUSHGRAPH_STATE", page.state)
    with pytest.raises(AssertionError, match="a second ledger would give the same people a second budget"):
        run_command(command, tmp_path)
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    run_command(command, tmp_path)


def test_a_fault_of_the_page_is_noticed(tmp_path):
    text = "# A\n```\nhushgraph info streets.graphml  # no such file\n```\n```python\n1 / 0\n```\n"
    command, code = steps(text)
    with pytest.raises(AssertionError, match=r"line 3 of README\.md, hushgraph info streets\.graphml: .*streets\.graphml"):
        run_command(command, tmp_path)
    with pytest.raises(ZeroDivisionError):
        run_python(code, tmp_path, {})
    with pytest.raises(AssertionError, match="say in NOT_RUN why"):
        started("curl example.org", tmp_path)
