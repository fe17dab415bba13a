"""The build backend of hushgraph: scikit-build-core, plus the C++ compiler of the `ziglang` package if the machine has no compiler.

pip calls the functions `get_requires_...` and installs the packages they return for the time of the build. On a machine without a compiler
these include `ziglang`; its `zig c++` is Clang, and small scripts run it under the names that CMake needs. The environment variable CXX
selects a compiler; CXX=zig selects `ziglang`.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scikit_build_core import build as scikit

COMPILERS = ("c++", "g++", "clang++")  # the names that CMake tries
ZIG_TOOLS = ("c++", "ar", "ranlib")
ZIG = "ziglang>=0.13"
# The Python headers of Debian include headers from this folder; the headers of zig must come first.
DEBIAN_HEADERS = "-idirafter /usr/include"

get_requires_for_build_sdist, build_sdist = scikit.get_requires_for_build_sdist, scikit.build_sdist
prepare_metadata_for_build_wheel = scikit.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = scikit.prepare_metadata_for_build_editable


def needs_zig() -> bool:
    """Return whether the build needs zig: CXX is "zig", or CXX is not set and the machine has no C++ compiler. On Windows CMake finds Clang."""
    cxx = os.environ.get("CXX")
    if sys.platform == "win32":
        return False
    return cxx == "zig" if cxx else not any(map(shutil.which, COMPILERS))


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """Return the packages that building a wheel needs."""
    return [*scikit.get_requires_for_build_wheel(config_settings), *([ZIG] if needs_zig() else [])]


def get_requires_for_build_editable(config_settings=None) -> list[str]:
    """Return the packages that an editable installation needs."""
    return [*scikit.get_requires_for_build_editable(config_settings), *([ZIG] if needs_zig() else [])]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Build a wheel and return its file name."""
    with compiler_settings(config_settings) as settings:
        return scikit.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Build the wheel of an editable installation and return its file name."""
    with compiler_settings(config_settings) as settings:
        return scikit.build_editable(wheel_directory, settings, metadata_directory)


@contextmanager
def compiler_settings(config_settings: dict | None) -> Iterator[dict]:
    """Yield the settings of a build, with zig as the compiler if `needs_zig`."""
    settings = dict(config_settings or {})
    if not needs_zig():
        yield settings
        return
    reason = "" if os.environ.get("CXX") else "no C++ compiler was found: "
    print(f"{reason}building with the compiler of the ziglang package (a few minutes the first time)", file=sys.stderr, flush=True)
    target = os.environ.get("ZIG_TARGET")
    name = f"zig-{target}" if target else "zig"
    folder = Path.cwd() / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    flags = f" -target {target} {DEBIAN_HEADERS}" if target else ""
    paths = {tool: zig_script(folder, tool, flags) for tool in ZIG_TOOLS}
    yield settings | {
        "cmake.define.CMAKE_CXX_COMPILER": paths["c++"],
        "cmake.define.CMAKE_AR": paths["ar"],
        "cmake.define.CMAKE_RANLIB": paths["ranlib"],
        "build-dir": settings.get("build-dir", "build/{wheel_tag}") + f"-{name}",
    }


def main() -> None:
    """Print the packages that a build without isolation needs besides scikit-build-core and nanobind."""
    print(*get_requires_for_build_editable())


def zig_script(folder: Path, tool: str, compiler_flags: str) -> str:
    """Write a script that runs a tool of zig, and return its path."""
    path = folder / f"zig-{tool}"
    flags = compiler_flags if tool == "c++" else ""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {tool}{flags} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


if __name__ == "__main__":
    main()
