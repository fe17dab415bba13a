"""What an epsilon and a delta protect, in words that fit the numbers, and which of them are refused.

Commands, reports, certificates and the explorer take their sentence from here, so that all of them say the same. With epsilon the
chance of every result changes by a factor of exp(epsilon) at most, and so do the odds of whoever sees the result.
"""

from __future__ import annotations

import math

from hushgraph._errors import InputError, Sentence
from hushgraph.checks import checked_number, choose, shown

STRONG, MODERATE, LARGEST_EPSILON = 1.0, 3.0, 10.0  # up to here: strong words, moderate words, any words without weak_guarantee
LARGEST_DELTA = 1e-3
_CASES = {
    "add-remove": "with or without all data of any one {unit}",
    "change-one": "whatever the data of any one {unit} are",
}
_QUESTIONS = {"add-remove": "whether one of them is in the data", "change-one": "which of two records one of them has"}


def guarantee_in_words(
    epsilon: float, *, delta: float | None = None, unit: str | None = None, adjacency: str | None = None, maps: str = "map"
) -> str:
    """Return what epsilon protects as sentences: strong words up to 1, weaker ones above, "hardly protects" above 3.

    Factors are rounded up. `maps` names what is published: "map", or "maps" for all releases of a budget.

    Examples
    --------
    >>> print(guarantee_in_words(0.5, delta=1e-6, unit="passenger", adjacency="add-remove"))
    With or without all data of any one passenger, nearly the same map would come out: the chance of any result changes by a factor of 1.65 at most (epsilon 0.5), but for a chance of 1 in 1,000,000 (delta).
    >>> print(guarantee_in_words(5, unit="passenger"))
    This hardly protects any passenger: even odds on whether one of them is in the data may become 149 to 1 once the map is seen (epsilon 5).
    """
    unit, adjacency = unit or "person", adjacency if adjacency in _CASES else "add-remove"
    case, question = _CASES[adjacency].format(unit=unit), _QUESTIONS[adjacency]
    factor = _factor(epsilon)
    numbers = f"(epsilon {epsilon:.6g})" + ("" if delta is None else f", but for a chance of {_chance(delta)} (delta)")
    if epsilon <= STRONG:
        return f"{case[0].upper()}{case[1:]}, nearly the same {maps} would come out: the chance of any result changes by a factor of {factor} at most {numbers}."
    if epsilon <= MODERATE:
        verdict = f"protects each {unit}, but not strongly"
    else:
        verdict = f"hardly protects any {unit}" if epsilon <= LARGEST_EPSILON else f"protects no {unit} in practice"
    return f"This {verdict}: even odds on {question} may become {factor} to 1 once the {maps} {'is' if maps == 'map' else 'are'} seen {numbers}."


def checked_guarantee(epsilon, delta, *, weak_guarantee: bool = False, most: float = math.inf) -> tuple[float, float]:
    """Return epsilon and delta as floats if they are fit for a release or a budget; an error otherwise.

    epsilon must be above 0, at most `most`, and above 10 only with `weak_guarantee`; delta at most 1/1000.

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
