"""What an epsilon and a delta protect, in words that fit the numbers, and which of them are refused.

All words about a guarantee are here: commands, reports, certificates and the explorer say the same. The chance of every result is at most
exp(epsilon) times as large, plus delta, if one unit is added, removed or changed. Somebody who has to tell two such data sets apart, and without
the result is right half of the time, is therefore right with a probability of (exp(epsilon) + delta) / (1 + exp(epsilon)) at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import checked_number, choose, shown

STRONG, MODERATE, LARGEST_EPSILON = 1.0, 3.0, 10.0  # up to here: strong words, moderate words, any words without weak_guarantee
LARGEST_DELTA = 1e-3


@dataclass(frozen=True)
class _Wording:
    """What an adjacency means, in parts of sentences.

    Attributes
    ----------
    case : str
        The two data sets that are compared.
    question : str
        What an observer would like to know about one of the units.
    change : str
        The step from one data set to its neighbour.
    secret : str
        What is hidden about each unit.
    """

    case: str
    question: str
    change: str
    secret: str


_WORDINGS = {
    "add-remove": _Wording(
        case="with or without all data of any one {unit}",
        question="whether a given {unit} is in the data",
        change="adding or removing all data of one {unit}",
        secret="whether their data are there or not",
    ),
    "change-one": _Wording(
        case="whatever the data of any one {unit} are",
        question="which of two records a given {unit} has",
        change="replacing all data of one {unit} by other data",
        secret="whether their data are these or others",
    ),
}


def guarantee_in_words(
    epsilon: float, *, delta: float | None = None, unit: str | None = None, adjacency: str | None = None, maps: str = "map"
) -> str:
    """Return what epsilon protects as sentences: strong words up to 1, weaker ones above, "hardly protects" above 3.

    Numbers are rounded up.

    Parameters
    ----------
    epsilon : float
        The guarantee.
    delta : float, optional
        The chance that it fails.
    unit : str, optional
        Who is protected; "person" by default.
    adjacency : str, optional
        "add-remove", the default, or "change-one".
    maps : str
        What is published: "map", or "maps" for all releases of a budget.

    Returns
    -------
    str
        One or two sentences.

    Examples
    --------
    >>> print(guarantee_in_words(0.5, delta=1e-6, unit="passenger", adjacency="add-remove"))
    With or without all data of any one passenger, nearly the same map would come out. A guess at whether a given passenger is in the data is right 50 times in 100 by chance; with the map, and all other data known, at most 62.3 times in 100 (epsilon 0.5, delta 1 in 1,000,000).
    >>> print(guarantee_in_words(5, unit="passenger"))
    This hardly protects any passenger: even odds on whether a given passenger is in the data may become 149 to 1 once the map is seen (epsilon 5).
    """
    unit, wording = unit or "person", _WORDINGS.get(adjacency or "", _WORDINGS["add-remove"])
    case, question = wording.case.format(unit=unit), wording.question.format(unit=unit)
    numbers = f"(epsilon {epsilon:.6g}" + ("" if delta is None else f", delta {_chance(delta)}") + ")"
    if epsilon <= STRONG:
        return (
            f"{case[0].upper()}{case[1:]}, nearly the same {maps} would come out. A guess at {question} is right 50 times in 100 by chance; with the "
            f"{maps}, and all other data known, at most {_times_right(epsilon, delta)} times in 100 {numbers}."
        )
    return f"This {_verdict(epsilon, unit)}: even odds on {question} may become {_factor(epsilon)} to 1 once the {maps} {'is' if maps == 'map' else 'are'} seen {numbers}."


def earlier_words(epsilon: float, *, delta: float, unit: str, adjacency: str) -> str:
    """Return what earlier certificates of format 2 say in place of `guarantee_in_words`. They stay valid."""
    case = _WORDINGS[adjacency].case.format(unit=unit)
    question = {"add-remove": "whether one of them is in the data", "change-one": "which of two records one of them has"}[adjacency]
    numbers, factor = f"(epsilon {epsilon:.6g}), but for a chance of {_chance(delta)} (delta)", _factor(epsilon)
    if epsilon > STRONG:
        return f"This {_verdict(epsilon, unit)}: even odds on {question} may become {factor} to 1 once the map is seen {numbers}."
    return (
        f"{case[0].upper()}{case[1:]}, nearly the same map would come out: the chance of any result changes by a factor of {factor} at most "
        f"{numbers}."
    )


def _times_right(epsilon: float, delta: float | None) -> str:
    """Return how often in 100 times somebody is right at most who would be right 50 times by chance, rounded up."""
    factor = math.exp(epsilon)
    return f"{math.ceil(1000 * (factor + (delta or 0.0)) / (1 + factor)) / 10:g}"


def _verdict(epsilon: float, unit: str) -> str:
    """Return how strongly an epsilon above 1 protects."""
    if epsilon <= MODERATE:
        return f"protects each {unit}, but not strongly"
    return f"hardly protects any {unit}" if epsilon <= LARGEST_EPSILON else f"protects no {unit} in practice"


def formal_statement(epsilon: float, delta: float, *, unit: str, adjacency: str, enforced: bool) -> str:
    """Return the inequality that is proven, as one sentence for a certificate, and what it rests on.

    Examples
    --------
    >>> print(formal_statement(0.5, 1e-6, unit="person", adjacency="add-remove", enforced=True))
    (epsilon, delta)-differential privacy: for every set S of possible noisy maps, adding or removing all data of one person changes P[S] to at most exp(0.5) P[S] + 1e-06; the number of values a unit can change was enforced by truncation.
    """
    change = _WORDINGS[adjacency].change.format(unit=unit)
    grounds = "the number of values a unit can change was enforced by truncation" if enforced else (
        "that a unit changes the counts by no more than the stated sensitivity was ASSUMED, not enforced"
    )  # fmt: skip
    return (
        f"(epsilon, delta)-differential privacy: for every set S of possible noisy maps, {change} changes P[S] to at most "
        f"exp({float(epsilon)!r}) P[S] + {float(delta)!r}; {grounds}."
    )


def secret_in_words(adjacency: str) -> str:
    """Return what a budget hides about each of its units.

    Parameters
    ----------
    adjacency : str
        "add-remove" or "change-one".

    Returns
    -------
    str
        "whether their data are there or not", say.
    """
    return _WORDINGS[adjacency].secret


def checked_guarantee(epsilon: Any, delta: Any, *, weak_guarantee: bool = False, most: float = math.inf) -> tuple[float, float]:
    """Return epsilon and delta as floats if they are fit for a release or a budget; an error otherwise.

    Parameters
    ----------
    epsilon : float
        Above 0, and above 10 only with `weak_guarantee`.
    delta : float
        Above 0 and at most 1/1000.
    weak_guarantee : bool
        Whether an epsilon above 10 is wanted.
    most : float
        Largest epsilon of all.

    Returns
    -------
    epsilon, delta : float
        The same numbers.

    Raises
    ------
    ValueError
        If they are not.
    """
    choose("weak_guarantee", weak_guarantee, (True, False))
    expected = "a positive number (0.1 to 2 are usual: smaller is more private)"
    epsilon_given, epsilon = epsilon, checked_number("epsilon", epsilon, expected, above=0, most=most)
    if epsilon > LARGEST_EPSILON and not weak_guarantee:
        msg = (
            "epsilon = {} protects nobody in practice: even odds on whether somebody is in the data may become {} to 1; use at most {:g} "
            "(0.1 to 2 are usual), or say {weak_guarantee=True} if that is what you want"
        )
        raise InputError(Sentence(msg, shown(epsilon_given), _factor(epsilon), LARGEST_EPSILON))
    expected = (
        "above 0 and at most 0.001 (the chance that the guarantee fails; 1e-6, say: well below one over the number of people)"
    )
    return epsilon, checked_number("delta", delta, expected, above=0, most=LARGEST_DELTA)


def _factor(epsilon: float) -> str:
    """Return exp(epsilon), rounded up to three digits, or as a power of ten."""
    if epsilon > 6 * math.log(10):
        return f"10^{math.ceil(epsilon / math.log(10))}"
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    rounded = math.ceil(factor / unit) * unit
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:.3g}"


def _chance(delta: float) -> str:
    """Return delta as "1 in 1,000,000", rounded up; very small ones as a number."""
    return f"1 in {math.floor(1 / delta * (1 + 1e-12)):,}" if delta >= 1e-12 else f"{delta:g}"
