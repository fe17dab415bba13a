"""Search the packages of this environment for known weaknesses, by pip-audit; the exit status is 1 if it finds any, or if the search is broken.

    python .ci/audit.py [--strict]

pip-audit asks PyPI about the installed version of each package. Some mirrors of PyPI answer only about the newest version of a package; for
packages of which the newest version is installed, that is the same answer, and this program asks for it. It prints how many packages were
checked, and names the others with the reason. With --strict it is an error if one was not checked. Without --strict, a machine without a network passes:
that is the case if an address of PyPI cannot be reached. Any other failure of pip-audit is an error.
pip and setuptools come with Python, and hushgraph is this package: they are left out.
"""

from __future__ import annotations

import datetime
import http.client
import importlib.util
import json
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from pip._internal.models.index import PyPI  # only the address

ADDRESS = f"{PyPI.pypi_url}/{{}}/json"
SECONDS = 900  # at most, for pip-audit; 160 packages take less than three minutes on a busy machine
# Weaknesses that cannot harm here, why, and the last day on which they are accepted: "PYSEC-2026-1": ("only in its server", "2027-01-01").
ACCEPTED: dict[str, tuple[str, str]] = {}


class AuditError(Exception):
    """The search is broken; the text says how."""


class NoNetworkError(AuditError):
    """PyPI cannot be reached from here."""


def plain(name: str) -> str:
    """Return the name of a package as PyPI writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def network_fault() -> str:
    """Return why PyPI cannot be reached; an empty text if it answers, or if the connection fails for another reason than the network."""
    try:
        with urllib.request.urlopen(ADDRESS.format("pip"), timeout=30):
            return ""
    except (urllib.error.HTTPError, http.client.HTTPException):  # something answers
        return ""
    except OSError as error:
        reason = getattr(error, "reason", error)
        return "" if isinstance(reason, ssl.SSLError) else str(reason)


def audited() -> list[dict]:
    """Return what pip-audit says of each package: name, version and vulns, or name and skip_reason."""
    if importlib.util.find_spec("pip_audit") is None:
        msg = "pip-audit is not installed; run make lint, or pip install pip-audit"
        raise AuditError(msg)
    words = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner=off", "--format=json"]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        fault = f"no answer after {SECONDS} seconds"
    else:
        try:
            return json.loads(answer.stdout)["dependencies"]
        except (ValueError, KeyError, TypeError):
            fault = f"status {answer.returncode} and no list of packages; the end of its output: {answer.stderr.strip()[-300:] or 'none'}"
    if reason := network_fault():
        msg = f"nothing was checked, because there is no network: PyPI cannot be reached ({reason})"
        raise NoNetworkError(msg)
    msg = f"nothing was checked, because pip-audit failed, although there is a network: {fault}; run it again, or python -m pip_audit alone"
    raise AuditError(msg)


def installed_versions() -> dict[str, str]:
    """Return the version of each installed package."""
    words = [sys.executable, "-m", "pip", "list", "--exclude-editable", "--format=json", "--disable-pip-version-check"]
    packages = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    versions = {plain(package["name"]): package["version"] for package in packages}
    return {name: version for name, version in versions.items() if name not in ("pip", "setuptools", "hushgraph")}


def newest_weaknesses(name: str, version: str) -> list[str] | str:
    """Return the weaknesses that PyPI knows of the newest version of a package; a text says why there is no answer about this version."""
    try:
        with urllib.request.urlopen(ADDRESS.format(name), timeout=30) as answer:
            facts = json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    newest = facts.get("info", {}).get("version")
    if newest != version:
        return f"the answer is about {newest} only"
    if "vulnerabilities" not in facts:
        return "the answer has no list of weaknesses"
    return [one["id"] for one in facts["vulnerabilities"] if not one.get("withdrawn")]


def weaknesses() -> dict[str, list[str] | str]:
    """Return the known weaknesses of each installed package; a text says why it could not be checked."""
    by_name = {plain(one["name"]): one for one in audited()}

    def of_package(package: tuple[str, str]) -> tuple[str, list[str] | str]:
        name, version = package
        known = by_name.get(name, {})
        if "vulns" in known:
            return f"{name} {version}", [one["id"] for one in known["vulns"]]
        return f"{name} {version}", newest_weaknesses(name, version)

    with ThreadPoolExecutor(8) as threads:
        return dict(threads.map(of_package, installed_versions().items()))


def not_accepted(ids: list[str], today: str) -> list[str]:
    """Return the weaknesses that are not accepted today, each with a remark if its acceptance has expired.

    >>> ACCEPTED["PYSEC-2026-1"] = ("only in its server", "2026-12-31")
    >>> not_accepted(["PYSEC-2026-1", "PYSEC-2026-2"], "2026-12-31"), not_accepted(["PYSEC-2026-1"], "2027-01-01")
    (['PYSEC-2026-2'], ['PYSEC-2026-1 (was accepted until 2026-12-31: only in its server)'])
    """
    open_ones = []
    for one in ids:
        why, last_day = ACCEPTED.get(one, ("", ""))
        if not last_day:
            open_ones.append(one)
        elif datetime.date.fromisoformat(last_day).isoformat() < today:
            open_ones.append(f"{one} (was accepted until {last_day}: {why})")
    return open_ones


def main(words: list[str]) -> int:
    """Print what was found, and return the exit status."""
    try:
        answers = weaknesses()
    except AuditError as error:
        print(error)
        return int("--strict" in words or not isinstance(error, NoNetworkError))
    today = datetime.date.today().isoformat()
    checked = {package: answer for package, answer in answers.items() if not isinstance(answer, str)}
    unchecked = [f"{package} ({answer})" for package, answer in answers.items() if isinstance(answer, str)]
    found = {package: left for package, ids in checked.items() if (left := not_accepted(ids, today))}
    for package, ids in found.items():
        print(f"{package}: {', '.join(ids)}")
    if unchecked:
        print(f"not checked: {', '.join(unchecked)}")
    print(f"{len(checked)} of {len(answers)} packages were checked, {len(found)} with known weaknesses")
    return int(bool(found) or not checked or ("--strict" in words and bool(unchecked)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
