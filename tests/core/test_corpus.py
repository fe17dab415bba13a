"""The loops give the bits that they gave when they were written, on random and extreme input."""

from __future__ import annotations

import pytest
from corpus import cases_of, digest_of, known_digests, subjects

from hushgraph.core import _loops

KNOWN = known_digests()


@pytest.mark.parametrize("subject", subjects())
def test_same_bits(subject):
    found = {case.label: digest_of(getattr(_loops, case.function), case.arguments) for case in cases_of(subject)}
    assert found.keys() == KNOWN[subject].keys()
    assert {label for label in found if found[label] != KNOWN[subject][label]} == set()
