"""Fixtures that the tests of distributed runs share."""

import pytest

import hushgraph as hg
from hushgraph.estimators import Plan
from hushgraph.estimators.let import fitted_filter


@pytest.fixture
def few_probes(monkeypatch):
    """Few probes fit filters: on small graphs there are 64, and each goes through many rounds of the recurrence."""
    monkeypatch.setattr(fitted_filter, "PROBE_WORK", 2**15)
    monkeypatch.setattr(fitted_filter, "LITTLE_WORK", 0)


@pytest.fixture
def one_machine(monkeypatch, few_probes):
    """`denoise` on one machine, whose `auto` has the candidates that it has in partitions, whatever the size of the graph."""
    plan = classmethod(lambda cls, graph, settings, device=False: cls.in_partitions(graph.n, settings.method, settings.refine))
    monkeypatch.setattr(Plan, "of", plan)
    return hg.denoise
