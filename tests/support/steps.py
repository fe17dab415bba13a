"""How much work a call does, as a number of steps: the same on every machine, unlike seconds."""

import sys
from contextlib import contextmanager


@contextmanager
def steps_at_most(most):
    """Count the calls that the package's functions receive and make; fail at once where they are more than `most`, so nothing hangs."""
    count, before = 0, sys.getprofile()

    def on_event(frame, event, _):
        nonlocal count
        if event in ("call", "c_call") and frame.f_globals.get("__name__", "").startswith("hushgraph"):
            count += 1
            assert count <= most, f"more than {most:,} steps, in {frame.f_code.co_qualname}"

    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert count <= most, "the reader swallowed the failure"
