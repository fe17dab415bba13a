"""How a command ends: Ctrl-C in each of its disguises, and errors that are no Ctrl-C."""

import contextlib
import signal

import pytest
import typer

from hushgraph._errors import InputError, MissingPackageError
from hushgraph.cli.failures import BAD_INPUT, INTERRUPTED, UNEXPECTED
from hushgraph.cli.terminal import open_terminal

HIDING = [
    ImportError("numpy.core.multiarray failed to import"),
    SystemError("an exception was set"),
    AttributeError("half a module"),
]


@pytest.fixture(autouse=True)
def _hears_interrupts():
    """Switch Ctrl-C on, which a shell may have switched off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def command(error, *, after_interrupt):
    """Run a command in which an error takes the place of Ctrl-C, or comes without it."""
    with open_terminal("info", as_json=False, quiet=False):
        if after_interrupt:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
                pytest.fail("Ctrl-C was not heard")
        raise error


def ends(error, *, after_interrupt):
    """Return the exit code of such a command."""
    with pytest.raises(typer.Exit) as end:
        command(error, after_interrupt=after_interrupt)
    return end.value.exit_code


@pytest.mark.parametrize(
    "error", [*HIDING, MissingPackageError("plots need matplotlib"), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_an_error_that_took_the_place_of_control_c_is_control_c(error, capsys):
    assert ends(error, after_interrupt=True) == INTERRUPTED
    assert "stopped; nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize("error", HIDING, ids=lambda error: type(error).__name__)
def test_the_same_error_without_control_c_is_an_error(error, capsys):
    assert ends(error, after_interrupt=False) == (BAD_INPUT if isinstance(error, ImportError) else UNEXPECTED)
    said = capsys.readouterr().err
    assert "stopped" not in said
    assert "None" not in said


def test_an_error_of_our_own_after_control_c_says_what_is_wrong(capsys):
    assert ends(InputError("sigma must be positive"), after_interrupt=True) == BAD_INPUT
    assert "sigma must be positive" in capsys.readouterr().err


def test_a_command_that_ignores_control_c_goes_on_ignoring_it():
    """A shell switches Ctrl-C off for a command in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open_terminal("info", as_json=False, quiet=True):
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
