"""The one table of methods, and what is made of it."""

from typing import get_args

import numpy as np
import pytest

import hushgraph as hg
from hushgraph.cli import options
from hushgraph.cli.distributed import Method as DistributedChoice
from hushgraph.distributed.cost_model import DISTRIBUTED, DistributedMethod
from hushgraph.estimators.denoising import FAMILIES
from hushgraph.estimators.methods import METHODS, Family, MethodName, sentence_of
from hushgraph.explorer.views import OFFERED


def test_names_for_type_checkers_are_those_of_the_table():
    assert list(METHODS) == list(get_args(MethodName))
    assert [method.name for method in METHODS.values()] == list(METHODS)
    assert sorted(DISTRIBUTED) == sorted(get_args(DistributedMethod))


def test_every_family_has_a_function():
    assert set(FAMILIES) == set(get_args(Family)) == {method.family for method in METHODS.values()}


def test_commands_explorer_and_partitions_read_the_table():
    assert [choice.value for choice in options.Method] == list(METHODS)
    assert [choice.value for choice in DistributedChoice] == list(DISTRIBUTED)
    assert set(OFFERED) == set(METHODS) - {"sgwt_exact"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_title_and_a_sentence_and_runs(name):
    method = METHODS[name]
    assert method.title
    assert sentence_of(name) == method.sentence
    assert method.sentence.endswith(".")
    graph = hg.datasets.city(300)
    noisy = hg.hotspot_counts(graph, total=900) + np.random.default_rng(0).normal(0, 2, graph.n)
    result = hg.denoise(graph, noisy, sigma=2.0, method=name)
    assert result.method == name
    assert np.isfinite([result.risk, result.risk_se]).all()


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_does_not_take_is_refused(name):
    method, graph = METHODS[name], hg.datasets.grid(20, 20)
    y = np.random.default_rng(0).normal(size=graph.n)
    for takes, options_ in (
        (method.takes_rule, {"rule": "soft"}),
        (method.takes_refine, {"refine": False}),
        (method.takes_frame, {"frame": hg.chebyshev_frame(graph)}),
    ):
        if takes and not (name == "sgwt_exact" and "frame" in options_):
            hg.denoise(graph, y, sigma=1.0, method=name, **options_)
        elif not takes:
            with pytest.raises(ValueError, match=f"{next(iter(options_))}="):
                hg.denoise(graph, y, sigma=1.0, method=name, **options_)


def test_a_method_that_is_not_in_the_table_is_named():
    assert sentence_of("graph_tv").startswith("The signal became pieces")
    assert sentence_of("mine") == "The method was mine."
