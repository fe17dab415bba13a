"""The build of hushgraph: scikit-build-core, with the C++ compiler of the `ziglang` package where the machine has none.

pip asks what the build needs, and installs it for the time of the build. On a machine without a compiler that includes `ziglang`, whose
`zig c++` is Clang; small scripts then stand for the compiler and its tools. CXX says which compiler to take; CXX=zig takes that of `ziglang`.
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

COMPILERS = ("c++", "g++", "clang++")  # as CMake looks for them
ZIG_TOOLS = ("c++", "ar", "ranlib")
ZIG = "ziglang>=0.13"
DEBIAN = "-idirafter /usr/include"  # where headers of Debian's Python find the rest of themselves, after zig's own headers

get_requires_for_build_sdist, build_sdist = scikit.get_requires_for_build_sdist, scikit.build_sdist
prepare_metadata_for_build_wheel = scikit.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = scikit.prepare_metadata_for_build_editable


def needs_zig() -> bool:
    """Whether no C++ compiler is named or found, or zig is asked for."""
    named = os.environ.get("CXX")
    return named == "zig" if named else not any(map(shutil.which, COMPILERS))


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    return [*scikit.get_requires_for_build_wheel(config_settings), *([ZIG] if needs_zig() else [])]


def get_requires_for_build_editable(config_settings=None) -> list[str]:
    return [*scikit.get_requires_for_build_editable(config_settings), *([ZIG] if needs_zig() else [])]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    with compiler(config_settings) as settings:
        return scikit.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    with compiler(config_settings) as settings:
        return scikit.build_editable(wheel_directory, settings, metadata_directory)


@contextmanager
def compiler(config_settings: dict | None) -> Iterator[dict]:
    """The settings of a build, with the tools of zig if the machine has no compiler."""
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
    paths = {tool: zig_script(folder, tool, f" -target {target} {DEBIAN}" if target else "") for tool in ZIG_TOOLS}
    yield settings | {
        "cmake.define.CMAKE_CXX_COMPILER": paths["c++"],
        "cmake.define.CMAKE_AR": paths["ar"],
        "cmake.define.CMAKE_RANLIB": paths["ranlib"],
        "build-dir": settings.get("build-dir", "build/{wheel_tag}") + f"-{name}",
    }


def main() -> None:
    """Print what a build in an environment of one's own needs besides scikit-build-core and nanobind."""
    print(*get_requires_for_build_editable())


def zig_script(folder: Path, tool: str, target: str) -> str:
    """A program that runs one tool of zig."""
    path = folder / f"zig-{tool}"
    flags = target if tool == "c++" else ""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {tool}{flags} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


if __name__ == "__main__":
    main()
