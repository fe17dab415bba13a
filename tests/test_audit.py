"""`.ci/audit.py` reports known weaknesses from both of its sources, says what it could not check, and does not pass when it is broken."""

import doctest
import io
import json
import runpy
import ssl
import subprocess
import urllib.error
from pathlib import Path

import pytest

AUDIT = Path(__file__).parents[1] / ".ci" / "audit.py"
WEAK = {"id": "PYSEC-2026-1", "withdrawn": None}
NO_NETWORK = urllib.error.URLError(OSError(101, "Network is unreachable"))
PACKAGES = [{"name": "first", "version": "1.0", "vulns": []}, {"name": "Second_Part", "skip_reason": "unknown"}]


@pytest.fixture
def audit(monkeypatch):
    """Return a function that audits two packages.

    `known` is the answer of pip-audit about the first, `newest` that of PyPI about the second; `pip_audit` is a function instead of the program.
    An exception as `newest` is what each question to PyPI ends with.
    """
    main = runpy.run_path(str(AUDIT))["main"]

    def run(*words, known=(), newest=None, pip_audit=None, accepted=(), is_installed=True):
        def answer(address, timeout):
            if isinstance(newest, Exception):
                raise newest
            return io.BytesIO(json.dumps(newest).encode())

        def program(words, **options):
            assert options["timeout"] > 0
            if pip_audit is not None:
                return pip_audit()
            packages = [PACKAGES[0] | {"vulns": list(known)}, PACKAGES[1]]
            return subprocess.CompletedProcess(words, int(bool(known)), json.dumps({"dependencies": packages}), "")

        monkeypatch.setitem(main.__globals__, "ACCEPTED", dict(accepted))
        monkeypatch.setitem(main.__globals__, "installed_versions", lambda: {"first": "1.0", "second-part": "2.0"})
        monkeypatch.setattr("importlib.util.find_spec", lambda name: is_installed or None)
        monkeypatch.setattr("subprocess.run", program)
        monkeypatch.setattr("urllib.request.urlopen", answer)
        return main(list(words))

    return run


def newest(version="2.0", weaknesses=()):
    return {"info": {"version": version}, "vulnerabilities": list(weaknesses)}


def ended(status, out="", err=""):
    """Return a program that ends so."""
    return lambda: subprocess.CompletedProcess([], status, out, err)


def too_slow():
    raise subprocess.TimeoutExpired("pip-audit", 1)


def test_packages_without_weaknesses_pass(audit, capsys):
    assert audit("--strict", newest=newest()) == 0
    assert capsys.readouterr().out == "2 of 2 packages were checked, 0 with known weaknesses\n"


@pytest.mark.parametrize("where", [{"known": [WEAK], "newest": newest()}, {"newest": newest(weaknesses=[WEAK])}])
def test_a_weakness_fails(audit, capsys, where):
    assert audit(**where) == 1
    assert "PYSEC-2026-1" in capsys.readouterr().out


def test_a_withdrawn_weakness_is_none(audit):
    assert audit(newest=newest(weaknesses=[WEAK | {"withdrawn": "2026-11-01T00:00:00Z"}])) == 0


@pytest.mark.parametrize(("last_day", "status"), [("2999-12-31", 0), ("2026-01-01", 1)])
def test_an_acceptance_ends(audit, capsys, last_day, status):
    assert audit(known=[WEAK], newest=newest(), accepted={"PYSEC-2026-1": ("only in its server", last_day)}) == status
    assert ("was accepted until 2026-01-01: only in its server" in capsys.readouterr().out) == bool(status)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(NO_NETWORK, "no answer"), (newest(version="2.1"), "the answer is about 2.1 only")],
    ids=["none", "another version"],
)
def test_what_was_not_checked_is_named(audit, capsys, answer, reason):
    assert audit(newest=answer) == 0
    assert f"not checked: second-part 2.0 ({reason}" in capsys.readouterr().out
    assert audit("--strict", newest=answer) == 1


@pytest.mark.parametrize("program", [ended(1, err="ConnectionError"), too_slow])
def test_without_a_network_it_says_so_and_passes(audit, capsys, program):
    assert audit(newest=NO_NETWORK, pip_audit=program) == 0
    assert capsys.readouterr().out.startswith(
        "nothing was checked, because there is no network: PyPI cannot be reached ([Errno 101]"
    )
    assert audit("--strict", newest=NO_NETWORK, pip_audit=program) == 1


@pytest.mark.parametrize("program", [ended(1, err="ImportError: requests"), ended(0, out="{}"), ended(-9), too_slow])
@pytest.mark.parametrize(
    "answer",
    [
        newest(),
        urllib.error.URLError(ssl.SSLCertVerificationError("untrusted")),
        urllib.error.HTTPError("", 503, "busy", None, None),
    ],
    ids=["PyPI answers", "certificate", "server"],
)
def test_another_failure_of_pip_audit_fails(audit, capsys, program, answer):
    assert audit(newest=answer, pip_audit=program) == 1
    assert "pip-audit failed, although there is a network" in capsys.readouterr().out


def test_a_missing_pip_audit_fails_with_and_without_a_network(audit, capsys):
    assert audit(newest=newest(), is_installed=False) == 1
    assert audit(newest=NO_NETWORK, is_installed=False) == 1
    assert "pip-audit is not installed" in capsys.readouterr().out


def test_no_answer_about_any_package_fails(audit, capsys):
    nothing = ended(0, out=json.dumps({"dependencies": []}))
    assert audit(newest=newest(version="3.0"), pip_audit=nothing) == 1
    assert "0 of 2 packages were checked" in capsys.readouterr().out


def test_examples():
    names = runpy.run_path(str(AUDIT))
    tests = doctest.DocTestFinder().find(names["not_accepted"], "not_accepted", globs=names)
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).failed for test in tests) == 0
    assert runner.tries > 0
