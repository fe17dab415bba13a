"""Validate the docstrings of all public names with numpydoc: prints name, code and message of each error, and exits with 1 if there are any.

Public names are those of the reference (docs/reference/pages.py) and the public methods and properties of public classes. The codes to check
are in [tool.numpydoc_validation] of pyproject.toml.
"""

import inspect
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
CHECKS = set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["numpydoc_validation"]["checks"])


def public_objects() -> Iterator[tuple[str, object]]:
    """Yield each public name with its object: functions, classes, and the methods and properties that a class defines itself."""
    pages = runpy.run_path(str(ROOT / "docs" / "reference" / "pages.py"))
    for package, module in pages["packages"]().items():
        for name in pages["public_names"](module):
            public = getattr(module, name)
            yield f"{package}.{name}", public
            if inspect.isclass(public):
                for member, value in vars(public).items():
                    if not member.startswith("_") and (callable(value) or isinstance(value, classmethod | staticmethod | property)):
                        yield f"{package}.{name}.{member}", value


def errors() -> Iterator[tuple[str, str, str]]:
    """Yield name, code and message of each error; an object that has several public names is validated once."""
    validated = set()
    for name, public in public_objects():
        if id(public) not in validated:
            validated.add(id(public))
            yield from ((name, code, message) for code, message in validate(name)["errors"] if code in CHECKS)


def main() -> None:
    """Print all errors and exit."""
    lines = [" ".join(error) for error in errors()]
    print("\n".join([*lines, f"{len(lines)} errors in the docstrings of public names"]))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
