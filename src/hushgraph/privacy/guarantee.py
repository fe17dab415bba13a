"""What an epsilon and a delta protect, in words that fit the numbers, and which of them are refused.

All words about a guarantee are here: commands, reports, certificates and the explorer say the same. With epsilon the
chance of every result changes by a factor of exp(epsilon) at most, and so do the odds of whoever sees the result.
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
        question="whether one of them is in the data",
        change="adding or removing all data of one {unit}",
        secret="whether their data are there or not",
    ),
    "change-one": _Wording(
        case="whatever the data of any one {unit} are",
        question="which of two records one of them has",
        change="replacing all data of one {unit} by other data",
        secret="whether their data are these or others",
    ),
}


def guarantee_in_words(
    epsilon: float, *, delta: float | None = None, unit: str | None = None, adjacency: str | None = None, maps: str = "map"
) -> str:
    """Return what epsilon protects as sentences: strong words up to 1, weaker ones above, "hardly protects" above 3.

    Factors are rounded up.

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
        One sentence.

    Examples
    --------
    >>> print(guarantee_in_words(0.5, delta=1e-6, unit="passenger", adjacency="add-remove"))
    With or without all data of any one passenger, nearly the same map would come out: the chance of any result changes by a factor of 1.65 at most (epsilon 0.5), but for a chance of 1 in 1,000,000 (delta).
    >>> print(guarantee_in_words(5, unit="passenger"))
    This hardly protects any passenger: even odds on whether one of them is in the data may become 149 to 1 once the map is seen (epsilon 5).
    """
    unit, wording = unit or "person", _WORDINGS.get(adjacency or "", _WORDINGS["add-remove"])
    case, question = wording.case.format(unit=unit), wording.question
    factor = _factor(epsilon)
    numbers = f"(epsilon {epsilon:.6g})" + ("" if delta is None else f", but for a chance of {_chance(delta)} (delta)")
    if epsilon <= STRONG:
        return f"{case[0].upper()}{case[1:]}, nearly the same {maps} would come out: the chance of any result changes by a factor of {factor} at most {numbers}."
    if epsilon <= MODERATE:
        verdict = f"protects each {unit}, but not strongly"
    else:
        verdict = f"hardly protects any {unit}" if epsilon <= LARGEST_EPSILON else f"protects no {unit} in practice"
    return f"This {verdict}: even odds on {question} may become {factor} to 1 once the {maps} {'is' if maps == 'map' else 'are'} seen {numbers}."


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
