"""Guides of a published map: public maps that made the denoised one better, checked before a charge and listed in the certificate.

Denoising with guides is post-processing of the noisy map and of public maps, so it costs no budget. That the guides are public is the
owner's word, as it is for the graph. Whoever publishes them lets others make the denoised map again; the SHA-256 of each is listed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from hushgraph._errors import InputError, InputTypeError, Sentence
from hushgraph.estimators import Denoised, guided_methods, read_guides, without_gaps
from hushgraph.privacy.counting import CountMap

if TYPE_CHECKING:
    from hushgraph.graphs import Graph

LARGEST_LIST = 300_000  # bytes of a certificate's list of guides; a certificate must stay below 1,000,000
GUIDE_FIELDS = {"name", "made_from", "sha256", "risk_removed"}
_SHA256 = re.compile("[0-9a-f]{64}", re.ASCII)


def check_guides(graph: Graph, guides: Any, *, method: str) -> None:
    """Refuse guides that `denoise` would refuse for a new release, or that a certificate cannot list; nothing is denoised.

    Parameters
    ----------
    graph : Graph
        The public graph.
    guides : array, table, mapping, Noisy, Denoised, or a list of these
        As in `denoise`.
    method : str
        The method that shall use them.

    Raises
    ------
    InputError
        If the guides cannot be used.
    InputTypeError
        If one of them is a CountMap, which is private.
    """
    _refuse_counts(guides)
    if method not in guided_methods():
        able = " or ".join(map(repr, guided_methods()))
        raise InputError(
            Sentence("{guides=} belongs to {method=}{}; got {!r}; leave the guides out, or say another method", able, method)
        )
    listed = read_guides(graph, guides)
    for number, guide in enumerate(listed, 1):
        if not guide.name.isprintable():  # a name that no file can hold would be noticed after the charge
            msg = (
                f"the name of guide number {number} must be text in one line, without control characters; rename its column or file"
            )
            raise InputError(msg)
        without_gaps(graph, guide.values, guide.name)
    entries = [{"name": guide.name, "made_from": guide.made_from, "sha256": guide.digests} for guide in listed]
    if len(json.dumps(entries, indent=6)) > LARGEST_LIST:
        count = sum(len(guide.digests) for guide in listed)
        msg = f"a certificate lists the guides in at most {LARGEST_LIST:,} bytes, and {count:,} maps need more; pass fewer, or their means"
        raise InputError(msg)


def _refuse_counts(guides: Any) -> None:
    """Refuse private counts, also inside lists and dicts."""
    if isinstance(guides, CountMap):
        msg = "guides must be public, and a CountMap holds private counts; release them first, and pass the release"
        raise InputTypeError(msg)
    if isinstance(guides, dict):
        guides = list(guides.values())
    if isinstance(guides, list | tuple):
        for one in guides:
            _refuse_counts(one)


def public_guides(denoised: Denoised) -> list[dict[str, Any]]:
    """Return what a certificate says of the guides of a denoised map, ready for JSON; none for a map without guides.

    Parameters
    ----------
    denoised : Denoised
        The result of `denoise`. The windows of one release guide each other too; these guides are parts of the noisy map and not listed.

    Returns
    -------
    list of dict
        Name, origin, SHA-256 of the maps that were given, and the share of the squared error that it removed, a mean over windows.
    """
    windows = denoised.guide_accounts
    entries: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for one in windows for name, facts in one.items() if facts["sha256"]):
        facts = [one[name] for one in windows if name in one]
        share = float(np.mean([part["risk_removed"] for part in facts]))
        first = facts[0]
        entries[name] = {"name": name, "made_from": first["made_from"], "sha256": list(first["sha256"]), "risk_removed": share}
    return list(entries.values())


def is_guide_list(entries: Any) -> bool:
    """Return whether the guides of a certificate are a list as `public_guides` makes it."""
    return isinstance(entries, list) and bool(entries) and all(map(_is_entry, entries)) and _all_different(entries)


def _all_different(entries: list[dict[str, Any]]) -> bool:
    return len({entry["name"] for entry in entries}) == len(entries)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not entry.keys() >= GUIDE_FIELDS:
        return False
    texts = all(isinstance(entry[name], str) and entry[name] for name in ("name", "made_from"))
    digests, share = entry["sha256"], entry["risk_removed"]
    known = isinstance(digests, list) and bool(digests) and all(isinstance(one, str) and _SHA256.fullmatch(one) for one in digests)
    return texts and known and isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
