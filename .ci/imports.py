"""Import every module, look up every public name and ask every command for help: what a wrong version of a requirement breaks first."""

import importlib
import pkgutil

import typer
from typer.testing import CliRunner

import hushgraph
from hushgraph.cli import app

for _, module, _ in pkgutil.walk_packages(hushgraph.__path__, "hushgraph."):
    if not module.endswith("__main__"):
        importlib.import_module(module)
for name in hushgraph.__all__:
    getattr(hushgraph, name)


def ask(command, words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--help"])
    if done.exit_code:
        msg = f"hushgraph {' '.join(words)} --help: exit {done.exit_code}, {done.exception!r}"
        raise SystemExit(msg)
    for name, inside in getattr(command, "commands", {}).items():
        ask(inside, [*words, name])


ask(typer.main.get_command(app), [])
