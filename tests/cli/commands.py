"""Running commands in the process of the tests."""

import json

from typer.testing import CliRunner

from hushgraph.cli import app


def run(*arguments):
    """Return what a command did; no traceback, whatever happened."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def good(*arguments):
    """Return what a command did that must succeed."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done


def answer(*arguments):
    """Return the JSON object, which is all there is on stdout."""
    return json.loads(good(*arguments, "--json").stdout)
