"""Ctrl-C in tests: a process that was started in the background ignores it, and so would its children."""

import signal


def heard() -> None:
    """For `preexec_fn`: the child hears an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
