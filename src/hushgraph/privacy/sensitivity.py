"""How much one unit can change the counts: which data are neighbours, what a unit is cut down to, and the sensitivity that follows."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from typing import Any, Literal, get_args

from hushgraph._errors import InputError, Sentence, argument
from hushgraph._validation import checked_count, checked_number, is_count, shown

Adjacency = Literal["add-remove", "change-one"]  # neighbouring data: one unit present or absent, or with other events
_MAX_CAP = 2**31 - 1


def cap_names(*, windows: bool) -> tuple[str, str]:
    """Return the names of the two caps on one unit.

    Parameters
    ----------
    windows : bool
        Whether the caps are over pairs of node and window, or over nodes.

    Returns
    -------
    tuple of str
        Cap on the number of cells, and on events in each.
    """
    return ("max_cells", "max_per_cell") if windows else ("max_nodes", "max_per_node")


def squared_sensitivity(max_cells: int, max_per_cell: int, adjacency: Adjacency) -> int:
    """Return the square of the L2 sensitivity that the caps on one unit enforce; the proof is in counting.py.

    Parameters
    ----------
    max_cells, max_per_cell : int
        At most so many cells per unit, and so many of its events in each.
    adjacency : {"add-remove", "change-one"}
        Which data are neighbours.

    Returns
    -------
    int
        The exact square.
    """
    return max_cells * max_per_cell**2 * (2 if adjacency == "change-one" else 1)


def caps_sensitivity(caps: Mapping[str, Any], adjacency: Adjacency, *, windows: bool) -> int:
    """Return the squared sensitivity that named caps enforce; they must be the pair that goes with windows, or without."""
    names = cap_names(windows=windows)
    if tuple(caps) != names or not all(is_count(cap, 1) for cap in caps.values()):
        expected = f"{' and '.join(names)}, whole numbers of at least 1"
        raise InputError.about(argument="caps", expected=expected, got=shown(caps))
    most, most_each = caps.values()
    return squared_sensitivity(most, most_each, adjacency)


def checked_neighbouring(adjacency: Any) -> Adjacency:
    """Return the adjacency if it is a known one; it must be declared."""
    if adjacency is None or adjacency not in get_args(Adjacency):
        expected = (
            "declared: 'add-remove' (neighbouring data differ by one unit that is present or absent) or "
            "'change-one' (by one unit whose events change in any way; sqrt(2) times the sensitivity)"
        )
        raise InputError.about(argument="adjacency", expected=expected, got=shown(adjacency))
    return adjacency


def checked_caps(with_windows: bool, **caps: int | None) -> dict[str, int]:
    """Return the two caps that go with windows, or without, by name; both are needed, and no others may be given."""
    names = cap_names(windows=with_windows)
    useless = [name for name, value in caps.items() if value is not None and name not in names]
    scope = "with windows, one unit is bounded over pairs of node and window", "without windows, one unit is bounded over nodes"
    if useless or any(caps[name] is None for name in names):
        named = reduce(lambda before, name: Sentence("{} and {}", before, name), map(argument, useless)) if useless else ""
        got = Sentence("; {} cannot be used here", named) if useless else ""
        msg = "{}: give {} and {}, how many of them it may count in and how often in each{}"
        raise InputError(Sentence(msg, scope[not with_windows], argument(names[0]), argument(names[1]), got))
    return {name: checked_count(name, caps[name], 1, _MAX_CAP) for name in names}


def checked_squared(sensitivity: Any, sensitivity_squared: Any) -> Fraction:
    """Return the square of the sensitivity, exactly, from one of its two forms."""
    if (sensitivity is None) == (sensitivity_squared is None):
        msg = "give sensitivity (a positive number) or sensitivity_squared (a positive integer), one of the two"
        raise InputError(msg)
    if sensitivity is not None:
        return Fraction(checked_number("sensitivity", sensitivity, "a positive finite number", above=0)) ** 2
    if isinstance(sensitivity_squared, Fraction) and sensitivity_squared > 0:
        return sensitivity_squared
    if not is_count(sensitivity_squared, 1):
        raise InputError.about(argument="sensitivity_squared", expected="a positive integer", got=shown(sensitivity_squared))
    return Fraction(int(sensitivity_squared))
