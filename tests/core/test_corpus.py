"""The loops give the same bits as their first version, for random and extreme arguments."""

from __future__ import annotations

import pytest
from corpus import cases_of, digest_of, known_digests, subjects

from hushgraph.core import _loops

KNOWN = known_digests()


@pytest.mark.parametrize("subject", subjects())
def test_same_bits(subject):
    digests = {case.label: digest_of(getattr(_loops, case.function), case.arguments) for case in cases_of(subject)}
    assert digests.keys() == KNOWN[subject].keys()
    assert {label for label in digests if digests[label] != KNOWN[subject][label]} == set()
