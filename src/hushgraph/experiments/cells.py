"""Finished parts of an experiment, stored as files, so that a new run does not compute them again.

A cell is a JSON value (or arrays) under a name and settings. The digest of the package's code is one of the settings: other settings
or other code make another cell. The experiments themselves are left out of the digest, since they state their settings. The name of
the file holds a digest of the settings, and a JSON file also holds the settings themselves. Files are written completely or not at
all: a killed run leaves no partial file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import hushgraph
from hushgraph._atomic import atomic_open


@cache
def package_digest() -> str:
    """Return a digest of the package's code: Python files other than the experiments, and the compiled loops.

    Python files count as `code_without_texts`: a new comment, docstring or line break does not make hours of results stale. Any other
    change does, also one that does not change a number: nobody can tell which code a result depends on.
    """
    home = Path(hushgraph.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        if "experiments" not in path.relative_to(home).parts:
            digest.update(code_without_texts(path.read_text(encoding="utf-8")).encode())
    loops = find_spec("hushgraph.core._loops")
    if loops is not None and loops.origin is not None:
        digest.update(Path(loops.origin).read_bytes())
    return digest.hexdigest()[:16]


def code_without_texts(source: str) -> str:
    """Return the syntax tree of Python source as text, without comments, docstrings and line numbers.

    Examples
    --------
    >>> code_without_texts('x = 1  # one') == code_without_texts('x = (1)')
    True
    >>> code_without_texts('x = 1') == code_without_texts('x = 2')
    False
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            del node.body[0]
    return ast.dump(tree)


class Cells:
    """The finished cells in a folder; `computed` counts the cells that this run computed.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> cells = Cells(Path(folder.name))
    >>> [cells.value("square", {"x": 3}, lambda: 9) for _ in range(2)], cells.computed
    ([9, 9], 1)
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, *, on_cell: Callable[[str], Any] | None = None):
        self.folder, self.computed, self._on_cell = Path(folder), 0, on_cell

    def value(self, name: str, settings: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the JSON value of a cell, computed if there is no file of it; numbers have all their digits."""
        settings = json.loads(json.dumps({**settings, "code": package_digest()}))
        path = self._path(name, settings, "json")
        cell = _read_json(path)
        if cell is None or cell["settings"] != settings:
            cell = {"settings": settings, "value": compute()}
            _write(path, lambda file: file.write(json.dumps(cell).encode()))
            self.computed += 1
        if self._on_cell is not None:
            self._on_cell(name)
        return json.loads(json.dumps(cell["value"]))

    def arrays(
        self, name: str, settings: dict[str, Any], compute: Callable[[], dict[str, np.ndarray]], *, any_code: bool = False
    ) -> dict[str, np.ndarray]:
        """Return the arrays of a cell, computed if there is no file of them; with `any_code` (eigenvectors) also those of other code."""
        path = self._path(name, settings if any_code else {**settings, "code": package_digest()}, "npz")
        try:
            with path.open("rb") as file, np.load(file) as data:
                return dict(data)
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):  # no file, or an incomplete one
            arrays = compute()
            _write(path, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
            self.computed += 1
            return arrays
        finally:
            if self._on_cell is not None:
                self._on_cell(name)

    def _path(self, name: str, settings: dict[str, Any], ending: str) -> Path:
        text = json.dumps(settings, sort_keys=True)
        plain = re.sub(r"[^A-Za-z0-9._=-]+", "-", name)
        return self.folder / f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{ending}"


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        cell = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return cell if isinstance(cell, dict) and {"value", "settings"} <= set(cell) else None


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_open(path) as file:
        write(file)
