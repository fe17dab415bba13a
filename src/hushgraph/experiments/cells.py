"""Finished pieces of an experiment, kept as files: whoever starts again does not compute them again.

A cell is a JSON value (or arrays) under a name and settings, to which the check sum of the package's own code is added (the experiments
themselves excepted: they state their settings). The file's name holds a check sum of both, so other settings or other code are another
cell, and the settings are written beside the value. Files are written whole or not at all: a killed run leaves nothing half done.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import hushgraph
from hushgraph.text_files import replacing


@cache
def code_of_package() -> str:
    """Check sum of all Python files of the package but the experiments."""
    home = Path(hushgraph.__file__).parent
    files = sorted(path for path in home.rglob("*.py") if "experiments" not in path.relative_to(home).parts)
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Cells:
    """The finished cells in a folder; `computed` counts those that this run had to compute.

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

    def value(self, name: str, settings: dict, compute: Callable[[], Any]):
        """The JSON value of a cell, computed if it is not there; numbers keep all their digits."""
        settings = json.loads(json.dumps({**settings, "code": code_of_package()}))
        path = self._path(name, settings, "json")
        known = _read_json(path)
        if known is None or known["settings"] != settings:
            known = {"settings": settings, "value": compute()}
            _write(path, lambda file: file.write(json.dumps(known).encode()))
            self.computed += 1
        if self._on_cell is not None:
            self._on_cell(name)
        return json.loads(json.dumps(known["value"]))

    def arrays(
        self, name: str, settings: dict, compute: Callable[[], dict[str, np.ndarray]], *, lasting: bool = False
    ) -> dict[str, np.ndarray]:
        """Arrays of a cell, computed if they are not there; `lasting` ones (eigenvectors) whatever the code."""
        path = self._path(name, settings if lasting else {**settings, "code": code_of_package()}, "npz")
        try:
            with path.open("rb") as file, np.load(file) as data:
                return dict(data)
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):  # not there, or not whole
            found = compute()
            _write(path, lambda file: np.savez(file, **found))  # type: ignore[arg-type]
            self.computed += 1
            return found
        finally:
            if self._on_cell is not None:
                self._on_cell(name)

    def _path(self, name: str, settings: dict, ending: str) -> Path:
        text = json.dumps(settings, sort_keys=True)
        plain = re.sub(r"[^A-Za-z0-9._=-]+", "-", name)
        return self.folder / f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{ending}"


def _read_json(path: Path) -> dict | None:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and {"value", "settings"} <= set(known) else None


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        write(file)
