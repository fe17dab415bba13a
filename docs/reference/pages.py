"""Pages that are made from the package itself when the documentation is built: every public name, every command, every result.

Nothing is listed by hand: names come from the tables of contents (`_CONTENTS`) in their order, commands from the command line,
results from the files that benchmarks wrote. What is new there is in the documentation at the next build.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

# A heading begins with the first file that is named under it and holds until the next one.
STAGES = {
    "Graphs and noisy signals": ("graph", "interop", "io"),
    "Partition of unity and polynomials": ("partition", "chebyshev"),
    "Frames and the transform": ("frame", "transform"),
    "Thresholding rules": ("shrink",),
    "Weights and risk": ("local_noise", "risk"),
    "Thresholds": ("threshold", "blocks", "neighbourhoods", "betas"),
    "What a method returns": ("result",),
    "What wavelets are compared with": ("chains", "baselines"),
    "Denoising": ("denoise",),
    "Signals to try, and how good an estimate is": ("signals", "metrics"),
    "Pictures and reports": ("plotting", "figures", "report"),
    "Adapters": ("estimator",),
}
PRIVACY_STAGES = {
    "How much noise": ("calibration", "noise"),
    "Counting with a bound": ("counting",),
    "The budget": ("ledger",),
    "The release": ("release", "certificate"),
    "Before anything is charged": ("check", "plan"),
}
DATASET_STAGES = {
    "Generated": ("generated", "trips"),
    "Real": ("maps",),
    "Files": ("graph_files", "pickup_files", "sources"),
}


def write(docs: Path) -> dict[str, str]:
    """All generated pages; returns file names for those public names that differ in case only."""
    pages = docs / "reference" / "generated"
    package = import_module("hushgraph")
    stages = {"privacy": PRIVACY_STAGES, "datasets": DATASET_STAGES}
    _write(pages / "hushgraph.rst", contents_page(package, "From graph to result", STAGES, "names"))
    for name in package._packages:
        part = getattr(package, name)
        _write(pages / "packages" / f"{name}.rst", contents_page(part, part.__name__, stages.get(name, {}), "../names"))
    _write(pages / "command_line.rst", command_page())
    results = docs.parent / "benchmarks" / "results"
    for path in sorted(results.rglob("*.md")):
        _write(docs / "results" / path.relative_to(results), result_page(path, docs))
    packages = [package, *(getattr(package, name) for name in package._packages)]
    apart = _apart(*packages)
    _forget(pages / "names", {apart.get(name, name) for part in packages for name in _names(part)})
    return apart


def contents_page(package: ModuleType, title: str, stages: dict[str, tuple[str, ...]], folder: str) -> str:
    """Every public name of the package in the order of its table of contents; each gets a page of its own in `folder`."""
    lines = [title, "=" * len(title), "", _plain(inspect.getdoc(package)), "", f".. currentmodule:: {package.__name__}", ""]
    heading = {file: stage for stage, files in stages.items() for file in files}
    current, names = None, []
    for file, listed in [*package._CONTENTS.items(), (None, [])]:
        stage = heading.get(file, current) if file else None
        if names and (stage != current or file is None):
            lines += _table(current, names, folder)
            names = []
        current, names = stage, names + listed
    return "\n".join(lines)


def _table(stage: str | None, names: list[str], folder: str) -> list[str]:
    head = [stage, "-" * len(stage), ""] if stage else []
    return [*head, ".. autosummary::", f"   :toctree: {folder}", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]


def _plain(text: str | None) -> str:
    """Docstrings are plain text: their bars and stars are themselves."""
    return (text or "").replace("|", "\\|").replace("*", "\\*")


def _names(package: ModuleType) -> list[str]:
    return [f"{package.__name__}.{name}" for listed in package._CONTENTS.values() for name in listed]


def _forget(folder: Path, names: set[str]) -> None:
    """Pages of an earlier build whose names are gone."""
    for path in folder.glob("*.rst"):
        if path.stem not in names:
            path.unlink()


def _apart(*packages: ModuleType) -> dict[str, str]:
    """`release` and `Release` would be one file where file names ignore case."""
    names = [name for package in packages for name in _names(package)]
    taken: dict[str, str] = {}
    apart = {}
    for name in sorted(names, reverse=True):  # lower case first
        if taken.setdefault(name.lower(), name) != name:
            apart[name] = f"{name}-class"
    return apart


def command_page() -> str:
    """Every command with its help, arguments and options."""
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
    """Commands with their whole names, in their order; a group stands for those below it."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, below in command.commands.items():
        if not below.hidden:
            yield from _commands(f"{name} {part}", below)


def _paragraphs(text: str) -> list[str]:
    """A help text; paragraphs that are commands are literal."""
    lines: list[str] = []
    for paragraph in text.replace("\b", "").replace("\f", "").split("\n\n"):
        rows = [row.strip() for row in paragraph.strip("\n").split("\n")]
        if rows[0].startswith(("hushgraph ", "$ ")) or paragraph.startswith("    "):
            lines += ["::", "", *(f"   {row}" for row in rows), ""]
        else:
            lines += [_plain(" ".join(rows)).replace("`", "``"), ""]
    return lines


def _entry(record: tuple[str, str] | None) -> list[str]:
    """An argument or option and what it means; hidden ones have no record."""
    if record is None:
        return []
    return [f"``{record[0]}``", f"   {_plain(' '.join(record[1].split())).replace('`', '``') or 'See above.'}", ""]


def result_page(path: Path, docs: Path) -> str:
    """A page that shows a file of benchmarks/results as it is, below its own heading or the name of the file."""
    text = path.read_text(encoding="utf-8")
    own = text.startswith("## ")
    title = text.split("\n", 1)[0][3:] if own else path.stem.replace("-", ", ", 1).replace("_", " ").capitalize()
    depth = len(path.relative_to(docs.parent / "benchmarks" / "results").parts)
    source = "../" * (depth + 1) + path.relative_to(docs.parent).as_posix()
    start = ":start-line: 1\n" * own
    return f"---\norphan: true\n---\n\n# {title}\n\n```{{include}} {source}\n{start}:relative-images:\n```\n"


def _write(path: Path, text: str) -> None:
    """Only what changed, so that the next build is quick."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = text.rstrip("\n") + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
