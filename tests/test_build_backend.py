"""The build takes the machine's C++ compiler, and asks for the one of the ziglang package where there is none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BACKEND = ROOT / "tools" / "backend.py"


@pytest.fixture
def backend(monkeypatch, tmp_path):
    """tools/backend.py, on a machine without any program."""
    if not BACKEND.exists():
        pytest.skip("tools/ is not here")
    pytest.importorskip("scikit_build_core")
    spec = importlib.util.spec_from_file_location("backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    return module


def asks_for_zig(backend) -> bool:
    answers = [backend.ZIG in ask() for ask in (backend.get_requires_for_build_wheel, backend.get_requires_for_build_editable)]
    assert len(set(answers)) == 1
    return answers[0]


def test_no_compiler(backend):
    assert asks_for_zig(backend)


def test_a_compiler_is_found(backend, tmp_path):
    (tmp_path / "c++").touch(mode=0o755)
    assert not asks_for_zig(backend)


@pytest.mark.parametrize(("named", "zig"), [("zig", True), ("some-compiler", False)])
def test_a_compiler_is_named(backend, monkeypatch, tmp_path, named, zig):
    (tmp_path / "c++").touch(mode=0o755)
    monkeypatch.setenv("CXX", named)
    assert asks_for_zig(backend) == zig


def test_on_windows_cmake_finds_the_compiler(backend, monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    assert not asks_for_zig(backend)
