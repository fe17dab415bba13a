from . import baselines as baselines
from .baselines.penalized import (
    dfs_fused_lasso as dfs_fused_lasso,
    graph_tv as graph_tv,
)
from .combined import (
    AUTO_SETS as AUTO_SETS,
    DOUBT as DOUBT,
    HEDGE as HEDGE,
    Plan as Plan,
    account_of as account_of,
    average_words as average_words,
    counts_verdict as counts_verdict,
    used_weights as used_weights,
)
from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .counts.empirical_bayes import (
    START as START,
    CountsFit as CountsFit,
    Grid as Grid,
    NoisyValues as NoisyValues,
    fit_counts as fit_counts,
    grid_between as grid_between,
    obstacle_by_size as obstacle_by_size,
    obstacle_to_counts as obstacle_to_counts,
    posterior_and_slope as posterior_and_slope,
    sample_of as sample_of,
)
from .counts.method import (
    caution_of_parameters as caution_of_parameters,
    freedom_of_counts as freedom_of_counts,
)
from .counts.surroundings import (
    HOPS_FAR as HOPS_FAR,
    HOPS_NEAR as HOPS_NEAR,
    Surroundings as Surroundings,
    hop_surroundings as hop_surroundings,
    street_counts as street_counts,
)
from .denoising import (
    IMPOSSIBLE_RISK as IMPOSSIBLE_RISK,
    TOO_LARGE as TOO_LARGE,
    check_method as check_method,
    denoise as denoise,
)
from .guides.draws import (
    draw_marks as draw_marks,
)
from .guides.guided import (
    FEW_VALUES as FEW_VALUES,
    IMPOSSIBLE_WORDS as IMPOSSIBLE_WORDS,
    SAME as SAME,
    RemovedRisk as RemovedRisk,
    accounts_of as accounts_of,
    edge_factors as edge_factors,
    is_impossible as is_impossible,
    looks_of as looks_of,
    same_draw_error as same_draw_error,
    trust_in as trust_in,
    weights_of_least_risk as weights_of_least_risk,
)
from .guides.prediction import (
    Relation as Relation,
    fit_relation as fit_relation,
)
from .guides.reading import (
    Guide as Guide,
    Kind as Kind,
    guides_of_maps as guides_of_maps,
    maps_of_noisy as maps_of_noisy,
    read_guides as read_guides,
    without_gaps as without_gaps,
)
from .let.candidates import (
    GATE_THRESHOLDS as GATE_THRESHOLDS,
    HEAT_BAND_NAMES as HEAT_BAND_NAMES,
    SPIKE_NAMES as SPIKE_NAMES,
    SPIKE_THRESHOLDS as SPIKE_THRESHOLDS,
    band_names as band_names,
    constant_names as constant_names,
    gated_names as gated_names,
    make_candidates as make_candidates,
)
from .let.combination import (
    Fits as Fits,
    LetProblem as LetProblem,
    combine as combine,
    fit as fit,
    peakedness_of as peakedness_of,
    shared as shared,
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
from .let.fitted_filter import (
    PARAMETER_FREEDOM as PARAMETER_FREEDOM,
    FilterFit as FilterFit,
    GraphSpectrum as GraphSpectrum,
    described as described,
    filter_degrees as filter_degrees,
    fit_by_moments as fit_by_moments,
    n_trace_probes as n_trace_probes,
)
from .let.gating import (
    Gate as Gate,
    add_shrunken_derivative as add_shrunken_derivative,
    gate_opening as gate_opening,
    inverse_spread as inverse_spread,
    shrunken as shrunken,
)
from .let.local_regression import (
    REGRESSION_NAMES as REGRESSION_NAMES,
    TIMES as TIMES,
    regression_gain as regression_gain,
)
from .let.observation import (
    Observation as Observation,
)
from .let.second_stage import (
    FIRST_ALONE as FIRST_ALONE,
    SECOND as SECOND,
    SECOND_PLACES as SECOND_PLACES,
    WIENER as WIENER,
    divergences as divergences,
    fit_second as fit_second,
    pointwise as pointwise,
    wiener_factors as wiener_factors,
)
from .methods import (
    BASELINES as BASELINES,
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
    INTERVAL_LEVEL as INTERVAL_LEVEL,
    Denoised as Denoised,
    TypicalError as TypicalError,
)
from .risk import (
    EXACT as EXACT,
    IMPOSSIBLE as IMPOSSIBLE,
    NoiseRisk as NoiseRisk,
    ProbeUse as ProbeUse,
    RiskSums as RiskSums,
    average_risk as average_risk,
    freedom_of_thresholds as freedom_of_thresholds,
    sure_of as sure_of,
    within_gain as within_gain,
)
from .series import (
    denoise_series as denoise_series,
)
from .sklearn import (
    WaveletDenoiser as WaveletDenoiser,
)
from .totals import (
    RegionTotal as RegionTotal,
    Totals as Totals,
)
from .wavelet import (
    RISK_PROBES as RISK_PROBES,
    mean_direction as mean_direction,
)

__all__ = [
    "denoise",
    "denoise_series",
    "compare",
    "Denoised",
    "Comparison",
    "Totals",
    "RegionTotal",
    "WaveletDenoiser",
    "snr",
    "mse",
    "baselines",
]
