"""Belief propagation equals the same computation in NumPy, and is exact on trees."""

from itertools import product

import numpy as np
import pytest
from shapes import lattice, mirrored, rows_of

from hushgraph.core import _loops


def random_problem(indptr, indices, labels, signals, seed=0):
    rng, back = np.random.default_rng(seed), mirrored(indptr, indices)
    n, arcs = len(indptr) - 1, len(indices)
    apart = rng.uniform(0.05, 0.9, size=arcs)
    apart = np.minimum(apart, apart[back])  # the same in both directions
    return back, apart, rng.uniform(0.01, 1, size=(n, labels, signals))


def passed(indptr, back, apart, evidence, messages):
    """One pass in NumPy."""
    first = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    product_of = np.ones_like(evidence)
    np.multiply.at(product_of, first, messages)
    beliefs = evidence * product_of
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    cavity = beliefs[first] / messages
    cavity /= cavity.sum(axis=1, keepdims=True)
    sent = np.empty_like(messages)
    sent[back] = (1 - apart[:, None, None]) * cavity + apart[:, None, None]
    return beliefs, sent


@pytest.mark.parametrize("labels", [2, 3, 4, 5, 6, 8, 12])
@pytest.mark.parametrize("signals", [1, 4])
def test_a_pass_equals_numpy(labels, signals):
    indptr, indices = lattice(13, 9)
    back, apart, evidence = random_problem(indptr, indices, labels, signals)
    messages = np.random.default_rng(1).uniform(0.1, 1, size=(len(indices), labels, signals))
    beliefs, sent = np.empty_like(evidence), np.empty_like(messages)
    _loops.pass_messages(indptr, back, apart, evidence, messages, beliefs, sent)
    expected = passed(indptr, back, apart, evidence, messages)
    np.testing.assert_allclose(beliefs, expected[0], rtol=1e-12)
    np.testing.assert_allclose(sent, expected[1], rtol=1e-12)


def test_beliefs_are_exact_on_a_tree():
    pairs = [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5), (0, 6)]
    indptr, indices = rows_of(pairs, 7)
    back, apart, evidence = random_problem(indptr, indices, 3, 1)
    messages, sent, beliefs = np.ones((len(indices), 3, 1)), np.empty((len(indices), 3, 1)), np.empty_like(evidence)
    for _ in range(8):
        _loops.pass_messages(indptr, back, apart, evidence, messages, beliefs, sent)
        messages, sent = sent, messages
    exact, first = np.zeros((7, 3)), np.repeat(np.arange(7), np.diff(indptr))
    for labels in product(range(3), repeat=7):
        labels = np.array(labels)
        differ = (labels[first] != labels[indices]) & (first < indices)
        exact[np.arange(7), labels] += np.prod(evidence[np.arange(7), labels, 0]) * np.prod(apart[differ])
    np.testing.assert_allclose(beliefs[:, :, 0], exact / exact.sum(axis=1, keepdims=True), rtol=1e-12)


def test_a_hub_with_many_neighbors_has_finite_beliefs():
    indptr, indices = rows_of([(0, i) for i in range(1, 3000)], 3000)
    back, apart, evidence = mirrored(indptr, indices), np.full(len(indices), 1e-12), np.full((3000, 2, 1), 0.5)
    evidence[1:, 1] = 1e-6
    messages, sent, beliefs = np.ones((len(indices), 2, 1)), np.empty((len(indices), 2, 1)), np.empty_like(evidence)
    for _ in range(4):
        _loops.pass_messages(indptr, back, apart, evidence, messages, beliefs, sent)
        messages, sent = sent, messages
    assert np.isfinite(beliefs).all()
    np.testing.assert_allclose(beliefs.sum(axis=1), 1)


def test_exponents_and_sums_equal_numpy():
    rng = np.random.default_rng(3)
    y, levels, precision = rng.normal(size=(3000, 4)), rng.normal(size=(3, 4)), rng.uniform(0.5, 2, size=3000)
    exponents, beliefs = np.empty((3000, 3, 4)), rng.random((3000, 3, 4))
    _loops.put_exponents(y, levels, precision, exponents)
    square = (y[:, None] - levels) ** 2
    expected = -0.5 * precision[:, None, None] * (square - square.min(axis=1, keepdims=True))
    np.testing.assert_allclose(exponents, expected, rtol=1e-12, atol=1e-14)
    shares = precision[:, None, None] * beliefs
    sums = np.stack([shares.sum(axis=0), (shares * y[:, None]).sum(axis=0)])
    np.testing.assert_allclose(_loops.sum_by_label(y, precision, beliefs), sums, rtol=1e-10)


def test_other_numbers_of_labels_or_signals_are_refused():
    indptr, indices = rows_of([(0, 1)], 2)
    for labels, signals in ((7, 1), (2, 3)):
        back, apart, evidence = random_problem(indptr, indices, labels, signals)
        messages = np.ones((2, labels, signals))
        with pytest.raises(ValueError, match=r"labels|signals"):
            _loops.pass_messages(indptr, back, apart, evidence, messages, np.empty_like(evidence), np.empty_like(messages))
