"""Which inputs of the explorer go together; for `serve` and for the command, which checks before it reads any file."""

from __future__ import annotations

from pathlib import Path

from hushgraph._errors import InputError, Sentence


def check_inputs(
    *, graph: object = None, release: object = None, events: object = None, ledger: object = None, keep: object = None, check: object = None,
    guides: object = None,
) -> None:  # fmt: skip
    """Raise InputError if some of the given inputs do not go together; None means not given.

    A release or events that are still in a file need the graph too; objects have their graph with them.
    """
    if release is not None and events is not None:
        msg = "give {release=}, a published map, or {events=}, private events to draw a release from; not both"
        raise InputError(Sentence(msg))
    if _is_path(release) and graph is None:
        raise InputError(Sentence("a release is read from its folder together with {graph=}, the public graph it was made on"))
    if _is_path(events) and (graph is None or ledger is None):
        msg = "{events=}, {graph=} and {ledger=} go together: drawing a release from events is charged to the ledger"
        raise InputError(Sentence(msg))
    if isinstance(guides, list) and any(map(_is_path, guides)) and graph is None:
        raise InputError(Sentence("guides are read from files together with {graph=}, whose nodes they have values for"))
    if events is None and not (ledger is None and keep is None and check is None):
        msg = (
            "{ledger=} is charged for releases of {events=}, and {keep=} is the folder of these releases; {events=} is missing: give the "
            "events, or leave the other arguments out"
        )
        raise InputError(Sentence(msg))


def _is_path(value: object) -> bool:
    return isinstance(value, str | Path)
