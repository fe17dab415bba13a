"""Packages that are extras: imported where they are used, with an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from hushgraph._errors import MissingPackageError


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
