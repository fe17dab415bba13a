"""Generate the pages of the reference, of the command line and of the benchmark results when the documentation is built.

Nothing is listed by hand: names come from `__all__` of each package in their order, commands from the command line,
results from the files in benchmarks/results. New ones are in the documentation after the next build.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

# The public packages. Each heading stands before the name given here.
HEADINGS = {
    "hushgraph": {
        "Graphs and files": "Graph",
        "Denoising": "denoise",
        "The paper's method, step by step": "chebyshev_frame",
        "How good an estimate is, and pictures": "snr",
    },
    "hushgraph.graphs": {},
    "hushgraph.files": {},
    "hushgraph.wavelets": {
        "Partition of unity and polynomials": "linear_plateau",
        "Frames and the transform": "chebyshev_frame",
        "Thresholding rules": "soft",
        "Weights and risk": "smooth_weights",
        "Thresholds": "sure_thresholds",
    },
    "hushgraph.estimators.baselines": {},
    "hushgraph.privacy": {
        "How much noise": "classical_sigma",
        "Counting with a bound": "count_events",
        "The budget": "Ledger",
        "The release": "release",
        "Before anything is charged": "plan_release",
    },
    "hushgraph.datasets": {"Generated": "city", "Real": "Map", "Files": "read_snap"},
    "hushgraph.distributed": {},
    "hushgraph.plotting": {},
    "hushgraph.explorer": {},
}


def packages() -> dict[str, ModuleType]:
    """Return the public packages by name."""
    return {name: import_module(name) for name in HEADINGS}


def public_names(package: ModuleType) -> list[str]:
    """Return the public names of a package in the order of its `__all__`, without subpackages, and without classes that `hushgraph` has.

    A class has one page: Sphinx knows it by the module that defines it.
    """
    top = [] if package.__name__ == "hushgraph" else import_module("hushgraph").__all__
    found = ((name, getattr(package, name)) for name in package.__all__)
    return [name for name, value in found if not isinstance(value, ModuleType) and not (inspect.isclass(value) and name in top)]


def write(docs: Path) -> dict[str, str]:
    """Write all generated pages; return file names for those public names that differ in case only."""
    pages = docs / "reference" / "generated"
    for name, package in packages().items():
        if name == "hushgraph":
            _write(pages / "hushgraph.rst", contents_page(name, package, "From graph to result", "names"))
        else:
            _write(pages / "packages" / f"{name.rpartition('.')[2]}.rst", contents_page(name, package, name, "../names"))
    _write(pages / "command_line.rst", command_page())
    results = docs.parent / "benchmarks" / "results"
    for path in sorted(results.rglob("*.md")):
        _write(docs / "results" / path.relative_to(results), result_page(path, docs))
    names = [f"{name}.{public}" for name, package in packages().items() for public in public_names(package)]
    apart = _apart(names)
    _delete_old_pages(pages / "names", {apart.get(name, name) for name in names})
    return apart


def contents_page(name: str, package: ModuleType, title: str, folder: str) -> str:
    """Return the page of a package with all public names in order; each name gets its own page in `folder`."""
    lines = [title, "=" * len(title), "", _plain(inspect.getdoc(package)), "", f".. currentmodule:: {name}", ""]
    first = {public: heading for heading, public in HEADINGS[name].items()}
    current: str | None = None
    names: list[str] = []
    for public in public_names(package):
        if public in first and names:
            lines += _table(current, names, folder)
            names = []
        current, names = first.get(public, current), [*names, public]
    return "\n".join([*lines, *_table(current, names, folder)])


def _table(stage: str | None, names: list[str], folder: str) -> list[str]:
    head = [stage, "-" * len(stage), ""] if stage else []
    return [*head, ".. autosummary::", f"   :toctree: {folder}", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]


def _plain(text: str | None) -> str:
    """Return a docstring, which is plain text, with its bars and stars escaped."""
    return (text or "").replace("|", "\\|").replace("*", "\\*")


def _delete_old_pages(folder: Path, names: set[str]) -> None:
    """Delete pages of an earlier build whose names no longer exist."""
    for path in folder.glob("*.rst"):
        if path.stem not in names:
            path.unlink()


def _apart(names: list[str]) -> dict[str, str]:
    """Return other file names for names that differ only in case: `release` and `Release` would be the same file on some systems."""
    taken: dict[str, str] = {}
    apart = {}
    for name in sorted(names, reverse=True):  # lower case first
        if taken.setdefault(name.lower(), name) != name:
            apart[name] = f"{name}-class"
    return apart


def command_page() -> str:
    """Return the page of all commands with their help, arguments and options."""
    from typer import Context
    from typer.main import get_command

    from hushgraph.cli import app

    lines = ["The command line", "================", "", "``hushgraph COMMAND --help`` says the same in a terminal.", ""]
    for name, command in _commands("hushgraph", get_command(app)):
        context = Context(command, info_name=name)
        lines += [name, "-" * len(name), "", *_paragraphs(inspect.cleandoc(command.help or ""))]
        lines += ["::", "", f"   {command.get_usage(context).removeprefix('Usage: ')}", ""]
        for parameter in command.params:
            lines += _entry(parameter.get_help_record(context))
    return "\n".join(lines)


def _commands(name: str, command) -> Iterator[tuple]:
    """Yield all commands with their full names, in order; a group is replaced by its commands."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, below in command.commands.items():
        if not below.hidden:
            yield from _commands(f"{name} {part}", below)


def _paragraphs(text: str) -> list[str]:
    """Return the lines of a help text; paragraphs that are commands become literal blocks."""
    lines: list[str] = []
    for paragraph in text.replace("\b", "").replace("\f", "").split("\n\n"):
        rows = [row.strip() for row in paragraph.strip("\n").split("\n")]
        if rows[0].startswith(("hushgraph ", "$ ")) or paragraph.startswith("    "):
            lines += ["::", "", *(f"   {row}" for row in rows), ""]
        else:
            lines += [_plain(" ".join(rows)).replace("`", "``"), ""]
    return lines


def _entry(record: tuple[str, str] | None) -> list[str]:
    """Return the lines for an argument or option; hidden ones have no record."""
    if record is None:
        return []
    return [f"``{record[0]}``", f"   {_plain(' '.join(record[1].split())).replace('`', '``') or 'See above.'}", ""]


def result_page(path: Path, docs: Path) -> str:
    """Return a page that includes a file of benchmarks/results, below the heading of the file or its name."""
    text = path.read_text(encoding="utf-8")
    has_heading = text.startswith(("# ", "## "))
    heading, name = text.split("\n", 1)[0], path.stem.replace("-", ", ", 1).replace("_", " ").capitalize()
    title = heading.lstrip("#").strip().removesuffix(".") if has_heading else name
    depth = len(path.relative_to(docs.parent / "benchmarks" / "results").parts)
    source = "../" * (depth + 1) + path.relative_to(docs.parent).as_posix()
    start = ":start-line: 1\n" * has_heading
    return f"---\norphan: true\n---\n\n# {title}\n\n```{{include}} {source}\n{start}:relative-images:\n```\n"


def _write(path: Path, text: str) -> None:
    """Write the file only if its text changed, so that the next build is fast."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = text.rstrip("\n") + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
