"""`hushgraph --version`: what is installed, in a form that helps in a report of a problem."""

from __future__ import annotations

import platform
import re
from importlib import metadata

_NO_PARTS = ("all", "docs", "demo", "browser", "lint", "dev")  # extras for developers, or several parts in one


def description() -> str:
    """Return the version, the compiler of the loops, the number of threads, and which optional parts are installed."""
    from hushgraph import __version__
    from hushgraph.core import compiler, thread_count

    missing = {name: missing_packages(name) for name in optional_parts()}
    ready, absent = ([name for name in missing if bool(missing[name]) is is_absent] for is_absent in (False, True))
    lines = [
        f"hushgraph {__version__}",
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; loops compiled by {compiler()}; {thread_count()} threads",
        f"optional parts installed: {', '.join(ready) or 'none'}",
    ]
    if absent:
        lines.append(f"not installed: {', '.join(absent)}; for one of them: pip install 'hushgraph[{absent[0]}]'")
    return "\n".join(lines)


def optional_parts() -> list[str]:
    """Return the extras that users install, as the metadata of the package list them; those for tests begin with "test"."""
    extras = metadata.metadata("hushgraph").get_all("Provides-Extra") or []
    return [name for name in extras if name not in _NO_PARTS and not name.startswith("test")]


def missing_packages(part: str) -> list[str]:
    """Return the packages of an optional part that are not installed."""
    form = re.compile(rf"([\w.-]+)[^;]*;.*\bextra == ['\"]{part}['\"]")
    names = [match[1] for line in metadata.requires("hushgraph") or [] if (match := form.match(line))]
    return [name for name in names if name != "hushgraph" and not is_installed(name)]


def is_installed(package: str) -> bool:
    """Return whether a package is installed."""
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False
