"""Where an error comes from: what this package raised is for people to read as it is."""

from __future__ import annotations

import dis
from types import TracebackType

_RAISE = dis.opmap["RAISE_VARARGS"]


def raised_here(trace: TracebackType | None) -> bool:
    """Whether a raise statement in hushgraph's own code is where an error comes from; int("...") in it is not."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    frame = trace.tb_frame
    return frame.f_globals.get("__name__", "").startswith("hushgraph.") and frame.f_code.co_code[trace.tb_lasti] == _RAISE
