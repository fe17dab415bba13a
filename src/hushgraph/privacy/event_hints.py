"""What is probably wrong with events, guessed from what became of their rows. Private, as all that `check_events` tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushgraph._geodesy import planar_coords
from hushgraph.core import PADDING
from hushgraph.graphs import Graph
from hushgraph.privacy.event_rows import EventReader
from hushgraph.privacy.events import Chunk
from hushgraph.privacy.locating import NO_PLACE, NO_TIME, OUTSIDE_WINDOWS, node_finder
from hushgraph.privacy.text_lines import NO_TICKS, Texts
from hushgraph.privacy.typed_columns import Column, Objects, numbers, times

NO_ID = "id"  # why a row does not count, beside the reasons of `locating`
_MANY, _SOME = 0.5, 0.05  # shares of the rows from which on a hint is given
_FEW_IDS = 10  # so few ids may well be people who are numbered in the order of how often they come


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one pass over the events showed.

    Attributes
    ----------
    reader : EventReader
        The rules of the reading, and the ids so far.
    n_rows, unreadable, with_id, counted : int
        Rows in all, those that cannot be split, those with an id, those that count.
    reasons : dict
        How many rows do not count, by reason.
    events_per_unit : int64 array
        Number of rows of each unit, by code.
    sample : dict
        Values of some rows, by column.
    sampled : int
        Number of those rows.
    """

    reader: EventReader
    n_rows: int
    unreadable: int
    with_id: int
    counted: int
    reasons: dict[Any, int]
    events_per_unit: np.ndarray
    sample: dict[str, list]
    sampled: int

    @property
    def units(self) -> int | None:
        """Number of different ids; None if the events have none."""
        return None if self.reader.codes is None else len(self.reader.codes)

    def column(self, name: str) -> Texts | Objects:
        """Return the sampled values of a column, with the format of the text file that they come from."""
        values = self.sample[name]
        return (
            Texts.of(values, form=self.reader.source.form) if all(isinstance(value, bytes) for value in values) else Objects(values)
        )

    @property
    def every_id_once(self) -> bool:
        """Whether no id occurs twice."""
        return self.units is not None and self.units == self.with_id > 1

    def share(self, reason: Any) -> float:
        """Return the share of rows that do not count for this reason."""
        return self.reasons[reason] / self.n_rows


def hints_from(evidence: Evidence) -> list[str]:
    """Return what is probably wrong, in sentences; nothing if nothing looks odd."""
    if not evidence.n_rows:
        return ["the file has no rows after its header"]
    reader, hints = evidence.reader, _id_hints(evidence)
    if evidence.unreadable > _SOME * evidence.n_rows:
        hints.append(
            "the file has another delimiter than the declared one (a comma, unless --delimiter or CsvFormat says otherwise), or its quotation "
            "marks do not match: many lines cannot be split into fields"
        )
    if reader.crs is None and (share := evidence.share(NO_PLACE)) > _SOME:
        hints.append(f"nodes have other names in the events than in the graph: {share:.0%} of the rows are at no node of it")
    if reader.crs is not None and evidence.sampled:
        hints += _place_hints(evidence)
    if reader.time is not None and evidence.sampled:
        hints += _time_hints(evidence)
    return hints or ([] if evidence.counted else ["nothing would be counted, and the release would be noise alone"])


# ---- ids --------------------------------------------------------------------------------------------------------------


def _id_hints(evidence: Evidence) -> list[str]:
    """Return hints about the column of ids."""
    hints, codes = [], evidence.reader.codes
    if evidence.every_id_once:
        hints.append(
            "the column of ids numbers the rows, since every id occurs once; then the bound binds nobody, and one person may count "
            "any number of times"
        )
    elif _are_row_numbers(evidence):
        hints.append(
            "the column of ids numbers the rows of several files that were joined, since the ids are the whole numbers from 0 or 1 on and "
            "none occurs more often than the one before it; then the bound binds nobody, and one person may count any number of times"
        )
    if codes is not None and len(codes.tables) > 1:
        kinds = ", ".join(sorted(codes.tables))
        hints.append(
            f"the ids of one person are written in several ways, since they are of several kinds ({kinds}), and ids of different kinds "
            "are different people; turn them all into text, or pass the path of the file"
        )
    if evidence.units == 1 and evidence.with_id > 1:
        hints.append("the column of ids is not one, since all rows have the same")
    if (share := evidence.share(NO_ID)) > _SOME:
        hints.append(f"the column of ids is incomplete or the wrong one: {share:.0%} of the rows have none and do not count")
    return hints


def _are_row_numbers(evidence: Evidence) -> bool:
    """Return whether the ids are 0, 1, ..., n - 1 or 1, ..., n, each met at most as often as the one before it."""
    tables = {} if evidence.reader.codes is None else evidence.reader.codes.tables
    if list(tables) != ["text"] or len(tables["text"]) < _FEW_IDS:
        return False
    content, starts, lengths = tables["text"].places()
    buffer = np.concatenate([content, np.frombuffer(PADDING, dtype=np.uint8)])
    ids = Texts(buffer, starts.astype(np.int64) << 32 | (starts + lengths).astype(np.int64)).numbers()
    order = np.argsort(ids)
    first = ids[order[0]]
    numbered = first in (0, 1) and np.array_equal(ids[order], first + np.arange(len(ids)))
    return bool(numbered and (np.diff(evidence.events_per_unit[order]) <= 0).all())


# ---- places -----------------------------------------------------------------------------------------------------------


def _place_hints(evidence: Evidence) -> list[str]:
    """Return hints from a sample of the coordinates."""
    reader, (first, second) = evidence.reader, evidence.reader.places
    a, b = (numbers(evidence.column(name), name) for name in (first, second))
    known = np.isfinite(a) & np.isfinite(b)
    hints, without_place = [], evidence.share(NO_PLACE)
    if without_place > _SOME and np.mean(~known) > _SOME:
        hints.append(f"coordinates are missing, or no numbers: {without_place:.0%} of the rows do not count for that")
        if _have_commas(evidence, first, second):
            hints.append("the coordinates have decimal commas; declare it: CsvFormat(decimal=',') (--decimal ,)")
    if (zero := np.mean((a == 0) & (b == 0))) > _SOME:
        hints.append(f"an unknown place is written as {first} 0, {second} 0: {zero:.0%} of the rows are there")
    if not known.any() or (near := _near(evidence, first, second)[known].mean()) > _MANY:
        return hints
    if (swapped := _near(evidence, second, first)[known].mean()) > max(_MANY, near):
        hints.append(
            f"{first} and {second} are swapped: {near:.0%} of the rows with coordinates are near the graph, and {swapped:.0%} would be "
            "with the two exchanged; name the columns the other way round"
        )
    elif reader.crs == "lonlat" and np.median(np.abs(a[known])) > 180:
        hints.append("the coordinates are metres or feet of a plane, not degrees; name them as x and y with their crs")
    else:
        hints.append(f"the coordinates belong to another place or another crs than the graph: {near:.0%} of the rows are near it")
    return hints


def _have_commas(evidence: Evidence, *names: str) -> bool:
    """Return whether most coordinates of the sample are numbers with a decimal comma where a point is declared."""
    texts = [_plain(value) for name in names for value in evidence.sample[name]]
    matches = sum(re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text) is not None for text in texts)
    return evidence.reader.source.form.decimal == "." and matches > _MANY * len(texts)


def _near(evidence: Evidence, first: str, second: str) -> np.ndarray:
    """Return which rows of the sample are near the graph if these are the names of its columns."""
    graph, crs = evidence.reader.graph, evidence.reader.crs
    reach = evidence.reader.max_distance or _width(graph)
    columns: dict[str, Column] = {name: evidence.column(name) for name in evidence.sample}
    chunk = Chunk(columns, np.arange(evidence.sampled), np.empty(0, dtype=np.int64))
    return node_finder(graph, (first, second), crs, reach)(chunk) >= 0


def _width(graph: Graph) -> float:
    """Return about how wide the graph is: metres, or units of its plane."""
    assert graph.coords is not None
    if not graph.n:
        return 1.0
    return max(float(np.ptp(planar_coords(graph.coords, graph.crs), axis=0).max()), 1e-9)


# ---- times ------------------------------------------------------------------------------------------------------------


def _time_hints(evidence: Evidence) -> list[str]:
    """Return hints from a sample of the times."""
    windows, name = evidence.reader.windows, evidence.reader.time
    assert windows is not None
    assert name is not None
    if evidence.share(NO_TIME) > _SOME:
        if windows.kind == "number":
            return [f"{evidence.share(NO_TIME):.0%} of the rows have a time that is not a number, and the windows are numbers"]
        kind = _kind_of_times(evidence.column(name), evidence.sample[name], windows.kind == "aware")
        return [f"{kind}; {evidence.share(NO_TIME):.0%} of the rows do not count for that"]
    if evidence.share(OUTSIDE_WINDOWS) > _MANY:
        return [
            f"the windows are of another time than the events: {evidence.share(OUTSIDE_WINDOWS):.0%} of the rows are in none of them"
        ]
    return []


_DAY_FIRST = "the times begin with day or month (31/12/2026, say)"
_FORMS = {
    r"(19|20)\d\d-\d\d-\d\d": "the times have a part that ISO 8601 does not have",
    r"\d{1,2}[/.-]\d{1,2}[/.-](\d{4}|\d\d)\b": _DAY_FIRST,
    r"[2-7]\d{4}([.,]\d+)?$": "the times are serial numbers of a spreadsheet (46000.5, say)",
    r"\d{10}([.,]\d+)?$": "the times are seconds since 1970",
    r"\d{13}$": "the times are milliseconds since 1970",
}


def _kind_of_times(column: Texts | Objects, values: list, with_offset: bool) -> str:
    """Return what most of the times that cannot be used look like."""
    ticks, aware = times(column)
    read = ticks != NO_TICKS
    if np.mean(read & (aware != with_offset)) > _SOME:
        have, lack = ("windows", "times") if with_offset else ("times", "windows")
        return f"the {have} have an offset from UTC (Z or +01:00) and the {lack} have none; give both one, or neither"
    texts = [_plain(value) for value, usable in zip(values, read.tolist(), strict=True) if not usable]
    matches = {text_form: sum(re.match(form, text) is not None for text in texts) for form, text_form in _FORMS.items()}
    most = max(matches, key=matches.__getitem__)
    if texts and matches[most] > _MANY * len(texts):
        declared = (
            "; or declare how a .csv file has them, --time-format '%d/%m/%Y %H:%M', say (CsvFormat)" if most == _DAY_FIRST else ""
        )
        return f"{most}; write them as 2026-12-31T16:05:00{declared}"
    if texts and sum(text in ("", "None", "nan", "NaT", "<NA>") for text in texts) > _MANY * len(texts):
        return "times are missing"
    return "the times are not written as 2026-12-31T16:05:00 (ISO 8601)"


def _plain(value: Any) -> str:
    """Return a value as text; nothing if it has none."""
    try:
        return value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value).strip()
    except Exception:  # an object without a text is no reason to stop, and its error may quote it
        return ""
