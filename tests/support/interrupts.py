"""Ctrl-C in tests: a process that a shell starts in the background ignores it, and so do its children."""

import signal


def hears_interrupts() -> None:
    """Switch the interrupt signal on again; for `preexec_fn` of a child process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
