"""The one table of methods: what each is called, what it does, and what it supports.

`denoise`, the commands, the explorer, the report and the distributed runs read this table. A new method is a new row here, and an
estimator of its family. Nothing heavy is imported, so that `hushgraph --help` stays quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MethodName = Literal[
    "auto", "let", "counts", "filter", "sgwt_sure", "sgwt_scaled", "sgwt_deep", "sgwt_exact", "sgwt_block", "sgwt_beta"
]
Family = Literal["wavelet", "combined", "counts"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of `denoise`.

    Parameters
    ----------
    name : str
        The value of `method=`.
    family : {"wavelet", "combined", "counts"}
        Which estimator computes it: thresholds on one frame, a combination of candidates, or empirical Bayes.
    title : str
        A few words for a list to choose from.
    sentence : str
        What was done, for the reader of a report.
    is_scaled : bool
        Whether thresholds follow the local noise level of the coefficients.
    takes_frame, takes_rule, takes_refine, takes_guides : bool
        Whether the arguments `frame` and `weights`; `rule`, `beta`, `level` and `candidates`; `refine`; `guides` have a meaning.
    refines_by_default : bool
        Whether there is a second stage unless `refine=False`.
    is_for_gpu, is_distributed : bool
        Whether it runs on a GPU, and in partitions.
    is_slow : bool
        Whether the explorer shows a quicker method while a slider moves.
    is_for_large_graphs : bool
        Whether it needs no eigenvectors; the explorer offers only such methods.
    """

    name: MethodName
    family: Family
    title: str
    sentence: str
    is_scaled: bool = False
    takes_frame: bool = False
    takes_rule: bool = False
    takes_refine: bool = False
    takes_guides: bool = False
    refines_by_default: bool = False
    is_for_gpu: bool = True
    is_distributed: bool = False
    is_slow: bool = False
    is_for_large_graphs: bool = True


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="auto",
            family="combined",
            title="Combined, best of all (default)",
            sentence="Many simple estimates were made (smoothing at several widths, wavelets, spikes, pieces) and combined so that the estimated error is smallest.",
            takes_refine=True,
            takes_guides=True,
            refines_by_default=True,
            is_distributed=True,
            is_slow=True,
        ),
        Method(
            name="let",
            family="combined",
            title="Combined, quick (SURE-LET)",
            sentence="Simple estimates (smoothing at several widths, wavelets, spikes) were combined so that the estimated error is smallest.",
            takes_refine=True,
            takes_guides=True,
            is_distributed=True,
        ),
        Method(
            name="counts",
            family="counts",
            title="Empirical Bayes for counts",
            sentence="Each node was estimated from what the nodes around it say about counts like its own (empirical Bayes).",
            takes_guides=True,
            is_slow=True,
            is_distributed=True,
        ),
        Method(
            name="filter",
            family="combined",
            title="One fitted filter (Gaussian process)",
            sentence="The signal was smoothed by one filter, whose shape was fitted to it by maximum likelihood: the estimate of a Gaussian process on the graph.",
        ),
        Method(
            name="sgwt_sure",
            family="wavelet",
            title="Wavelets, the paper's method",
            sentence="The signal was split into wavelet scales. In each scale coefficients below a threshold were set to zero and larger ones shrunk; the thresholds are those with the smallest estimated error.",
            takes_frame=True,
            takes_rule=True,
            is_distributed=True,
        ),
        Method(
            name="sgwt_scaled",
            family="wavelet",
            title="Wavelets, local thresholds",
            sentence="The signal was split into wavelet scales, and small coefficients were removed by thresholds that follow the noise level of each coefficient.",
            is_scaled=True,
            takes_frame=True,
            takes_rule=True,
            is_distributed=True,
        ),
        Method(
            name="sgwt_deep",
            family="wavelet",
            title="Wavelets, deeper bands",
            sentence="The signal was split into wavelet scales, with as many coarse ones as the estimated error found useful, and small coefficients were removed in each.",
            is_scaled=True,
            takes_rule=True,
            is_slow=True,
        ),
        Method(
            name="sgwt_exact",
            family="wavelet",
            title="Wavelets by eigenvectors",
            sentence="The signal was split into wavelet scales with the graph's eigenvectors, and small coefficients were removed in each.",
            takes_frame=True,
            takes_rule=True,
            is_for_large_graphs=False,
        ),
        Method(
            name="sgwt_block",
            family="combined",
            title="Wavelets in blocks",
            sentence="The signal was split into wavelet scales, and coefficients of neighbouring nodes were kept or removed together.",
            is_for_gpu=False,
            is_slow=True,
        ),
        Method(
            name="sgwt_beta",
            family="combined",
            title="Wavelets, chosen exponents",
            sentence="The signal was split into wavelet scales, each with its own threshold and its own way of shrinking.",
            is_for_gpu=False,
        ),
    )
}

BASELINES = {
    "dfs_fused_lasso": "The nodes were lined up by a walk through the graph, and the signal along the line became pieces of constant value.",
    "graph_tv": "The signal became pieces of nearly constant value, with as few jumps along edges as the data allow.",
}


def sentence_of(name: str) -> str:
    """Return what a method of `denoise` or a baseline does, in one sentence."""
    if name in METHODS:
        return METHODS[name].sentence
    return BASELINES.get(name, f"The method was {name}.")


def guided_methods() -> tuple[MethodName, ...]:
    """Return the names of the methods that take guides."""
    return tuple(method.name for method in METHODS.values() if method.takes_guides)


def distributed_methods() -> tuple[MethodName, ...]:
    """Return the names of the methods that run in partitions."""
    return tuple(method.name for method in METHODS.values() if method.is_distributed)
