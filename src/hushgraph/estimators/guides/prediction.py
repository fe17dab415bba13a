"""What the guides say about a signal: least squares on the guides, and on kinks of them, one term after the other.

The terms of a guide g, scaled to mean 0 and standard deviation 1, are g itself and (g - q)_+ at some of its quantiles q: a line with
kinks fits any relation that rises and falls a few times. A term is taken as long as it lowers the sum of squares by more than
`PENALTY` log(number of terms) times the variance of what is left, so that guides which say nothing are left out. A prediction
depends on the noise through its few coefficients alone; `cost` is what they and the choice of the terms add to the squared error.

With a sigma per node, rows are divided by it: weighted least squares, X (X'WX)^-1 X'W with W = Sigma^-1, which adds tr((X'WX)^-1 X'X).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from hushgraph.core import block_products_of
from hushgraph.wavelets import Noise

KINKS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99)  # quantiles of a guide
PENALTY = 2.0
TERM_FREEDOM = 1.5  # degrees of freedom that a chosen term costs, or more where there are many terms to choose from
COLLINEAR = 1e-8  # terms with less of their square left by the terms before them


@dataclass(frozen=True, eq=False)
class Relation:
    """A line with kinks from the guides to the signal, and how many squares each guide takes off the residual, in their order.

    Squares are in units of the noise variance, `cost` is in those of the signal. `coefficients` are those of the constant and of the
    terms. Without any term the prediction is the mean.
    """

    terms: tuple[_Term, ...]
    coefficients: np.ndarray
    gains: np.ndarray
    cost: float

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return len(self.terms)

    @property
    def chosen(self) -> list[int]:
        """Numbers of the guides in use, the most useful first."""
        return [int(k) for k in np.argsort(-self.gains, kind="stable") if self.gains[k] > 0]

    @property
    def explained(self) -> float:
        """The squares that all guides take off the residual."""
        return float(self.gains.sum())

    def values(self, guides: Sequence[np.ndarray], nodes: slice) -> np.ndarray:
        """Return the prediction at some nodes."""
        signal = np.full(len(guides[0][nodes]), self.coefficients[0])
        for term, coefficient in zip(self.terms, self.coefficients[1:], strict=True):
            signal += coefficient * term.values(guides, nodes)
        return signal


@dataclass(frozen=True, eq=False)
class Prediction:
    """A prediction of the signal (n,), and the relation to the guides that it follows from."""

    signal: np.ndarray = field(repr=False)
    relation: Relation

    @property
    def gains(self) -> np.ndarray:
        """The squares that each guide takes off the residual."""
        return self.relation.gains

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return self.relation.n_terms

    @property
    def cost(self) -> float:
        """What the coefficients and the choice of the terms add to the squared error."""
        return self.relation.cost

    @property
    def chosen(self) -> list[int]:
        """Numbers of the guides in use, the most useful first."""
        return self.relation.chosen


def predict(y: np.ndarray, guides: Sequence[np.ndarray], noise: Noise, *, kinks: bool) -> Prediction:
    """Return the prediction of the noisy signal y from guides (n,) without gaps.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> guide, other = rng.normal(size=(2, 1000))
    >>> prediction = predict(np.abs(guide) + 0.1 * rng.normal(size=1000), [guide, other], Noise.of(0.1), kinks=True)
    >>> prediction.chosen, bool(np.corrcoef(prediction.signal, np.abs(guide))[0, 1] > 0.99)
    ([0], True)
    """
    relation = fit_relation(y, guides, noise, kinks=kinks)
    return Prediction(relation.values(guides, slice(None)), relation)


def fit_relation(y: np.ndarray, guides: Sequence[np.ndarray], noise: Noise, *, kinks: bool) -> Relation:
    """Return the relation of the noisy signal y to the guides. All of them may be mapped files: a few nodes are read at a time, one guide as a whole."""
    terms = [term for number, guide in enumerate(guides) for term in _terms_of(number, np.asarray(guide), kinks=kinks)]
    n = len(y)

    def rows(nodes: slice) -> tuple[np.ndarray, None]:
        there = noise if noise.per_node is None else Noise(noise.variance, noise.per_node[nodes])
        ones = np.ones(len(y[nodes]))
        return np.stack([ones, *(term.values(guides, nodes) for term in terms), y[nodes]]) / np.sqrt(there.weigh(ones)), None

    products = block_products_of(n, rows)
    chosen, gains = _chosen_terms(products, n)
    members, taken = [0, *chosen], tuple(terms[place - 1] for place in chosen)
    inverse = linalg.inv(products[np.ix_(members, members)])
    of_guide = np.zeros(len(guides))
    for place, term in zip(chosen, taken, strict=True):
        of_guide[term.guide] += gains[place]

    def columns(nodes: slice) -> tuple[np.ndarray, None]:
        return np.stack([np.ones(len(y[nodes])), *(term.values(guides, nodes) for term in taken)]), None

    square = block_products_of(n, columns)
    added = float(np.sum(inverse * square) - n / products[0, 0])  # the constant belongs to the rest
    factor = max(TERM_FREEDOM, float(np.log(max(len(terms), 1))))
    return Relation(taken, inverse @ products[members, -1], of_guide, max(added, 0.0) * factor if chosen else 0.0)


@dataclass(frozen=True)
class _Term:
    """One guide, shifted, scaled, and cut at 0 where it is a kink."""

    guide: int
    shift: float
    scale: float
    is_kink: bool

    def values(self, guides: Sequence[np.ndarray], nodes: slice) -> np.ndarray:
        """Return the term at the nodes."""
        scaled = (guides[self.guide][nodes] - self.shift) * self.scale
        return np.maximum(scaled, 0.0) if self.is_kink else scaled


def _terms_of(number: int, guide: np.ndarray, *, kinks: bool) -> list[_Term]:
    """Return the terms of one guide; a constant guide has none."""
    mean, spread = float(guide.mean()), float(guide.std())
    if not spread > 1e-12 * max(abs(mean), 1e-300):
        return []
    places = np.unique(np.quantile(guide, KINKS)).tolist() if kinks else []
    return [_Term(number, mean, 1 / spread, False), *(_Term(number, place, 1 / spread, True) for place in places)]


def _chosen_terms(products: np.ndarray, n: int) -> tuple[list[int], np.ndarray]:
    """Return the terms that are taken, in order, and the squares that each takes off the residual; the noise has variance 1.

    Row 0 of the products is the constant, which is always in; the last row is y.
    """
    left = products.copy()
    size, gains = np.diag(products).copy(), np.zeros(len(products))
    chosen: list[int] = []
    _eliminate(left, 0)
    while True:
        rest = np.diag(left)[:-1]
        usable = rest > COLLINEAR * size[:-1]
        usable[[0, *chosen]] = False
        if not usable.any():
            return chosen, gains
        lowered = np.where(usable, left[:-1, -1] ** 2 / np.where(usable, rest, 1.0), 0.0)
        best = int(np.argmax(lowered))
        if lowered[best] <= PENALTY * np.log(max(int(usable.sum()), 3)) * max(1.0, left[-1, -1] / n):
            return chosen, gains
        gains[best] = lowered[best]
        chosen.append(best)
        _eliminate(left, best)


def _eliminate(products: np.ndarray, row: int) -> None:
    """Take out of all vectors what they share with one of them, in place."""
    products -= np.outer(products[:, row], products[row]) / products[row, row]
