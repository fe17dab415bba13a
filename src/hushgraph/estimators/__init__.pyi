from . import baselines as baselines
from .baselines.penalized import (
    dfs_fused_lasso as dfs_fused_lasso,
    graph_tv as graph_tv,
)
from .combined import (
    AUTO_SETS as AUTO_SETS,
    LARGE_GRAPH as LARGE_GRAPH,
    LARGE_SETS as LARGE_SETS,
    LET_SETS as LET_SETS,
)
from .counts.empirical_bayes import (
    obstacle_to_counts as obstacle_to_counts,
)
from .denoising import (
    IMPOSSIBLE_RISK as IMPOSSIBLE_RISK,
    denoise as denoise,
)
from .guides.draws import (
    draw_marks as draw_marks,
)
from .guides.reading import (
    read_guides as read_guides,
    without_gaps as without_gaps,
)
from .let.candidates import (
    GATE_THRESHOLDS as GATE_THRESHOLDS,
    SPIKE_THRESHOLDS as SPIKE_THRESHOLDS,
    make_candidates as make_candidates,
)
from .let.combination import (
    LetProblem as LetProblem,
    combine as combine,
    fit as fit,
)
from .let.component_means import (
    LARGE_COMPONENT as LARGE_COMPONENT,
    MOST_CONSTANTS as MOST_CONSTANTS,
)
from .let.filters import (
    N_OTHER_FILTERS as N_OTHER_FILTERS,
    PILOT_SMOOTHER as PILOT_SMOOTHER,
    PROBES_AT_ONCE as PROBES_AT_ONCE,
    SMOOTHERS as SMOOTHERS,
    Filters as Filters,
    coefficients_of as coefficients_of,
    filtered as filtered,
    n_kept_probes as n_kept_probes,
    synthesized as synthesized,
)
from .let.gating import (
    Gate as Gate,
    add_shrunken_derivative as add_shrunken_derivative,
    gate_opening as gate_opening,
    inverse_spread as inverse_spread,
    shrunken as shrunken,
)
from .let.observation import (
    Observation as Observation,
)
from .methods import (
    METHODS as METHODS,
    MethodName as MethodName,
    distributed_methods as distributed_methods,
    guided_methods as guided_methods,
    sentence_of as sentence_of,
)
from .metrics import (
    mse as mse,
    snr as snr,
)
from .problem import (
    ColumnTies as ColumnTies,
)
from .result import (
    DEFAULT_HOPS as DEFAULT_HOPS,
    Denoised as Denoised,
    TypicalError as TypicalError,
)
from .risk import (
    IMPOSSIBLE as IMPOSSIBLE,
    ProbeUse as ProbeUse,
    RiskSums as RiskSums,
    sure_of as sure_of,
)
from .series import (
    denoise_series as denoise_series,
)
from .sklearn import (
    WaveletDenoiser as WaveletDenoiser,
)
from .wavelet import (
    RISK_PROBES as RISK_PROBES,
    mean_direction as mean_direction,
)

__all__ = [
    "denoise",
    "denoise_series",
    "Denoised",
    "WaveletDenoiser",
    "snr",
    "mse",
    "baselines",
]
