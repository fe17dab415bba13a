"""What is loaded late: the names of a package when they are first used, and packages that are extras where they are used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import lazy_loader

from hushgraph._errors import MissingPackageError


def face(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package: its stub says where each name lives, and which names are public.

    Examples
    --------
    >>> from hushgraph import files
    >>> load, names, public = face("hushgraph.files", files.__file__)
    >>> load("read_graph").__module__, public
    ('hushgraph.files.graphs', ['read_graph', 'write_graph', 'read_signal', 'write_signal'])
    """
    load, names, every = lazy_loader.attach_stub(package, file)
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return load, names, ast.literal_eval(node.value)
    return load, names, every


def extra(module: str, *, name: str, purpose: str) -> ModuleType:
    """Return an optional package; without it raise an error that says what it is for and which extra of hushgraph installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == module.partition(".")[0]:
            msg = f"{purpose} needs {module}: pip install 'hushgraph[{name}]'"
            raise MissingPackageError(msg) from None
        msg = f"{purpose} needs {module}, which is installed but cannot be imported ({error}); mend it, or install it again: pip install 'hushgraph[{name}]'"
        raise MissingPackageError(msg) from error


def optional(module: str) -> ModuleType | None:
    """Return a package that makes things faster where it is installed, None where it is not."""
    try:
        return import_module(module)
    except ImportError:
        return None
