"""The section of the report on guides: what each was made from, and how much of the squared error it removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from hushgraph.estimators import Denoised
from hushgraph.plotting.report.charts import bar

SMALLEST_SHOWN = 0.005  # a share that is not rounded to 0 %
_MOST_DIGESTS = 4  # of one guide, in the table of numbers
_AVERAGED = {
    "alone": "without guides",
    "joint": "all maps at once",
    "linear": "a weighted sum of the guides, corrected",
    "bent": "a sum of the guides with bends, corrected",
    "counts": "counts whose level follows the guides",
}


@dataclass(frozen=True)
class GuideSummary:
    """One guide over all signals that it guided."""

    name: str
    shares: tuple[float, ...]  # of the squared error that it removed, one per signal
    made_from: str
    effect: str  # in words, where it removed nothing that shows
    digests: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share on average over the signals."""
        return float(np.mean(self.shares))


def guide_summaries(result: Denoised) -> list[GuideSummary]:
    """Return every guide of a result, the most helpful first."""
    accounts = result.guide_accounts
    summaries = []
    for name in dict.fromkeys(name for account in accounts for name in account):
        parts = [account[name] for account in accounts if name in account]
        origins = Counter(part.get("made_from", "a public map") for part in parts)
        usual = origins.most_common(1)[0][0]
        summaries.append(
            GuideSummary(
                name=name,
                shares=tuple(float(part.get("risk_removed", 0.0)) for part in parts),
                made_from=usual if len(origins) == 1 else f"mostly {usual}",
                effect=Counter(part.get("in_words", "") for part in parts).most_common(1)[0][0],
                digests=tuple(dict.fromkeys(digest for part in parts for digest in part.get("sha256", []))),
            )
        )
    return sorted(summaries, key=lambda summary: -summary.share)


def has_outside_guides(result: Denoised) -> bool:
    """Return whether a guide came from outside of the signals themselves; maps of a series that guide each other have no digests."""
    return any(summary.digests for summary in guide_summaries(result))


def guides_section(result: Denoised, columns: str) -> str:
    """Return the section on guides; empty if there were none. `columns` is what several signals are called: "time windows"."""
    summaries, totals = (
        guide_summaries(result),
        [sum(part["risk_removed"] for part in one.values()) for one in result.guide_accounts if one],
    )
    if not summaries:
        return ""
    helpful = [summary for summary in summaries if summary.share >= SMALLEST_SHOWN]
    words = [_origin(result, columns), _whole(totals, columns)]
    body = _rest(summaries, len(totals), columns)
    if helpful:
        several = len(totals) > 1
        parts = [_guide_table(helpful, several=several) + body, _average_table(result.details.get("experts"), several=several)]
        body = f'<div class="halves">{"".join(f"<div>{part}</div>" for part in parts)}</div>'
    return f"<section><h2>Guides</h2><p>{escape(' '.join(words))}</p>{body}</section>"


def guide_digests(result: Denoised) -> str:
    """Return the names of guides with the beginnings of their SHA-256, for whoever wants to denoise the same again; empty without any."""
    lines = []
    for summary in guide_summaries(result):
        first = ", ".join(digest[:16] for digest in summary.digests[:_MOST_DIGESTS])
        rest = len(summary.digests) - _MOST_DIGESTS
        lines += [f"{summary.name}: {first}" + (f" and {rest} more" if rest > 0 else "")] if summary.digests else []
    return "; ".join(lines)


def _origin(result: Denoised, columns: str) -> str:
    """Return a sentence that says what guides are, here."""
    own = any(not summary.digests for summary in guide_summaries(result))
    if not has_outside_guides(result):
        return f"Each of the {columns} was guided by the others: they show similar things, and their noise is independent."
    more = f" Each of the {columns} was guided by the others, too." if own else ""
    return f"A guide is a public map of something similar that does not hold the noise of this one.{more}"


def _whole(totals: Sequence[float], columns: str) -> str:
    """Return a sentence on what all guides removed together."""
    mean = float(np.mean(totals))
    if mean < SMALLEST_SHOWN:
        return "The guides hardly changed anything: they say nothing that the noisy values do not say themselves."
    sentence = f"The guides removed {mean:.0%} of the squared error that was left without them"
    if len(totals) == 1:
        return f"{sentence}."
    return f"{sentence}, on average over {len(totals):,} {columns} (from {min(totals):.0%} to {max(totals):.0%})."


def _guide_table(summaries: Sequence[GuideSummary], *, several: bool) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(summary.name)}<br><span class="quiet">{escape(summary.made_from)}</span></th>'
        f'<td class="number">{_share(summary, several=several)}</td><td>{bar(summary.share)}</td></tr>'
        for summary in summaries
    )
    head = f'<thead><tr><th scope="col">Guide</th><th scope="col" class="number">removed{", mean" * several}</th><td></td></tr></thead>'
    return f'<table class="guides"><caption>Share of the squared error that each guide removed</caption>{head}{rows}</table>'


def _share(summary: GuideSummary, *, several: bool) -> str:
    if not several:
        return f"{summary.share:.0%}"
    return f'{summary.share:.0%}<br><span class="quiet">{min(summary.shares):.0%} to {max(summary.shares):.0%}</span>'


def _averaged_shares(experts: Any) -> dict[str, float]:
    """Return the weights of the averaged estimates, on average over several signals; those without any weight are left out."""
    parts = [part for part in ([experts] if isinstance(experts, dict) else experts or []) if part]
    names = dict.fromkeys(name for part in parts for name in part)
    shares = {name: float(np.mean([part.get(name, 0.0) for part in parts])) for name in names}
    return {name: share for name, share in sorted(shares.items(), key=lambda item: -item[1]) if share >= SMALLEST_SHOWN}


def _average_table(experts: Any, *, several: bool) -> str:
    """Return the table of the averaged estimates; empty if nothing is known of them."""
    shares = _averaged_shares(experts)
    if not shares:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(_AVERAGED.get(name, name))}</th><td class="number">{share:.0%}</td><td>{bar(share)}</td></tr>'
        for name, share in shares.items()
    )
    head = f'<thead><tr><th scope="col">Estimate</th><th scope="col" class="number">share{", mean" * several}</th><td></td></tr></thead>'
    return f"<table><caption>The result is the average of these estimates, weighted by their risks</caption>{head}{rows}</table>"


def _rest(summaries: Sequence[GuideSummary], count: int, columns: str) -> str:
    """Return sentences on the guides that removed nothing that shows, those with the same effect in one."""
    effects: dict[str, list[str]] = {}
    for summary in summaries:
        if summary.share < SMALLEST_SHOWN:
            effect = summary.effect if max(summary.shares) < SMALLEST_SHOWN else "hardly helped"
            effects.setdefault(effect, []).append(summary.name)
    where = f" in most of the {columns}" if count > 1 else ""
    sentences = [
        f"{escape(effect[:1].upper() + effect[1:])}{where}: {escape(', '.join(names))}." for effect, names in effects.items()
    ]
    return "".join(f'<p class="quiet">{sentence}</p>' for sentence in sentences)
