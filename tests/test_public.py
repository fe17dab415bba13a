"""A change of what is public is noticed: `public.txt` lists all public names, parameters, defaults, commands and options.

If the list changes, users notice: docs/contributing/public.md says which changes are allowed. `python tests/test_public.py` writes the list again.
"""

import inspect
from pathlib import Path

import pytest

import hushgraph

LIST = Path(__file__).with_name("public.txt")
PACKAGES = ["graphs", "files", "wavelets", "baselines", "privacy", "datasets", "distributed", "plotting", "explorer"]


def parameters_of(function) -> str:
    """Return parameters and defaults as in a definition, without types."""
    if inspect.isclass(function) and issubclass(function, BaseException):
        return ""  # Python's own
    signature = inspect.signature(function)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def members_of(cls) -> list[str]:
    """Return the public attributes and methods that a class of hushgraph defines, with the parameters of the methods."""
    lines = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("hushgraph"):
            continue
        fields = set(getattr(base, "__annotations__", {})) if hasattr(base, "__dataclass_fields__") else set()
        for name in sorted({*vars(base), *fields}):
            member = inspect.getattr_static(cls, name, None)
            function = getattr(member, "__func__", member)
            if not name.startswith("_"):
                lines.add(f".{name}{parameters_of(function) if inspect.isfunction(function) else ''}")
    return sorted(lines)


def names_of(module, label: str, described: set) -> list[str]:
    """Return a line for each public name of a module, and for each member of a class that was not described before."""
    lines = []
    for name in sorted(one for one in module.__all__ if not one.startswith("_")):
        value, full = getattr(module, name), f"{label}.{name}"
        if inspect.isclass(value) and value not in described:
            described.add(value)
            lines += [full + parameters_of(value), *(full + member for member in members_of(value))]
        elif not inspect.ismodule(value):
            lines.append(full + (parameters_of(value) if inspect.isfunction(value) else ""))
    return lines


def options_of(command, name: str) -> list[str]:
    """Return a line for each command, with its arguments and options."""
    parts = [one.name.upper() if one.param_type_name == "argument" else "/".join(one.opts) for one in command.params]
    lines = [name, *(f"{name} {part}" for part in sorted(parts) if "--help" not in part)]
    for inner, group in sorted(getattr(command, "commands", {}).items()):
        lines += options_of(group, f"{name} {inner}")
    return lines


def public_lines() -> list[str]:
    """Return the whole list."""
    from typer.main import get_command

    from hushgraph.cli import app

    described: set = set()
    lines = names_of(hushgraph, "hushgraph", described)
    for name in PACKAGES:
        lines += names_of(getattr(hushgraph, name), f"hushgraph.{name}", described)
    return [*lines, *options_of(get_command(app), "hushgraph")]


def test_what_is_public_is_what_the_list_says():
    pytest.importorskip("sklearn")  # the estimators that hushgraph.WaveletDenoiser belongs to
    before, now = set(LIST.read_text(encoding="utf-8").splitlines()), set(public_lines())
    change = [f"- {line}" for line in sorted(before - now)] + [f"+ {line}" for line in sorted(now - before)]
    assert not change, "\n".join(["public names changed; if that is meant, run python tests/test_public.py:", *change])


def test_a_change_would_be_noticed():
    def before(graph, *, sigma=None):
        pass

    def after(graph, *, sigma=1.0):
        pass

    assert parameters_of(before) == "(graph, *, sigma=None)"
    assert parameters_of(before) != parameters_of(after)


if __name__ == "__main__":
    LIST.write_text("\n".join(public_lines()) + "\n", encoding="utf-8")
