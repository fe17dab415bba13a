"""The spectrum of the whole graph from facts of its partitions: a proven bound, and an eigenvalue that decides the number of scales."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hushgraph._validation import checked_number
from hushgraph.distributed.ghosts import TOLERANCE, ZoneSettings
from hushgraph.graphs import PRODUCTS, Spectrum, proven_bound
from hushgraph.wavelets import count_scales


class FrameSettings(Protocol):
    """The settings of a frame that the spectrum is checked against."""

    @property
    def base(self) -> float: ...

    @property
    def n_scales(self) -> int | None: ...

    @property
    def lambda_max(self) -> float | None: ...


def spectrum_of(
    rows: list[dict[str, Any]], zones: list[dict[str, Any]], zone: ZoneSettings, settings: FrameSettings, entries: int, unit: float
) -> tuple[Spectrum, list[str]]:
    """Return the spectrum, and notes for the user.

    The proven bound has the bits of that of the whole graph; the largest eigenvalue is as exact as the number of scales requires.
    """
    if entries == 0:
        return Spectrum(0.0, 0.0, "no edges", "no edges"), []
    if zone.normalized:
        upper, upper_from = 2.0, "theorem: spectrum in [0, 2] (proven)"
    else:
        quotients = np.zeros((len(zones), PRODUCTS))
        for k, one in enumerate(zones):
            quotients[k, : len(one["quotients"])] = one["quotients"]
        linked, longest, heaviest = (
            sum(row["linked"] for row in rows),
            *(max(row[k] for row in rows) for k in ("longest", "heaviest")),
        )
        upper, upper_from = proven_bound(quotients.max(axis=0), linked=linked, heaviest=heaviest, longest_row=longest)
    if settings.lambda_max is not None:
        top = checked_number(
            "lambda_max", settings.lambda_max, f"above 0 and at most {upper:g}, the proven bound", above=0, most=upper
        )
        return Spectrum(top, upper, "given", upper_from), []
    top = min(max(one["eigenvalue"] for one in zones), upper)
    until = "until the number of scales was certain" if top > zone.enough else f"to a relative tolerance of {TOLERANCE:g}"
    top_from = f"a lower bound: the largest of {len(zones)} partitions with their ghosts, each by Lanczos {until}"
    fewest, most = (count_scales(unit * value, base=settings.base) for value in (top, min(top * (1 + 2 * TOLERANCE), upper)))
    notes = []
    if fewest != most and settings.n_scales is None:
        notes.append(
            f"lambda_max is at least {unit * top:.6g}, so close to a power of base={settings.base:g} that the number of scales may be {fewest} or "
            f"{most}; {fewest} were taken; pass lambda_max= or n_scales= to say which"
        )
    return Spectrum(top, upper, top_from, upper_from), notes
