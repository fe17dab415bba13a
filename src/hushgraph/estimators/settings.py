"""The settings of one call of `denoise`: everything but the data, with the checks of what goes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from hushgraph._errors import InputError, Sentence
from hushgraph._validation import checked_count, checked_seed, choose
from hushgraph.estimators.methods import METHODS, Method, MethodName
from hushgraph.wavelets import Frame, Law, Level, Rule, ThresholdChoice, sure_exponent


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """Which method, how to threshold, which probes to use; see `denoise` for the parameters.

    `groups` is set for columns that are denoised together: the number of each node's column, which has thresholds of its own.
    """

    method: MethodName = "auto"
    frame: Frame | None = None
    weights: np.ndarray | None = None
    rule: Rule = "james_stein"
    beta: float | None = None
    level: Level = "scale"
    candidates: ThresholdChoice = "all"
    n_probes: int | None = None
    law: Law = "rademacher"
    seed: int = 0
    nonnegative: bool = False
    refine: bool | None = None
    groups: np.ndarray | None = None

    @property
    def about(self) -> Method:
        """The row of the table of methods."""
        return METHODS[self.method]

    @property
    def has_frame(self) -> bool:
        """Whether the caller brings a frame or weights."""
        return self.frame is not None or self.weights is not None

    def check(self) -> None:
        """Raise an InputError for settings that are wrong or do not go together, before any work is done."""
        choose("method", self.method, tuple(METHODS))
        sure_exponent(self.rule, self.beta)
        choose("level", self.level, get_args(Level))
        choose("candidates", self.candidates, get_args(ThresholdChoice))
        choose("law", self.law, get_args(Law))
        if self.n_probes is not None:
            checked_count("n_probes", self.n_probes, 1)
        checked_seed(self.seed)
        choose("nonnegative", self.nonnegative, (True, False))
        choose("refine", self.refine, (True, False, None))
        self._check_fit()

    def _check_fit(self) -> None:
        """Refuse arguments that the method would ignore."""
        about = self.about
        if self.has_frame and not about.takes_frame:
            msg = "{method=}{!r} builds its own frames; with frame= or weights= say {method='sgwt_sure'}"
            raise InputError(Sentence(msg, self.method))
        if self.method == "sgwt_deep" and self.level == "global":
            msg = "{method='sgwt_deep'} thresholds each scale by itself; with level='global' say {method='sgwt_scaled'} or 'sgwt_sure'"
            raise InputError(Sentence(msg))
        is_plain = (self.rule, self.beta, self.level, self.candidates) == ("james_stein", None, "scale", "all")
        if not is_plain and not about.takes_rule:
            msg = f"rule=, beta=, level= and candidates= belong to methods that threshold wavelets: add method='sgwt_deep' or 'sgwt_sure'; method={self.method!r} has none of them"
            raise InputError(msg)
        if self.refine is not None and not about.takes_refine:
            msg = f"refine= belongs to method='auto' and 'let'; got method={self.method!r}"
            raise InputError(msg)
