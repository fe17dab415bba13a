from .blocks import (
    SIZES as SIZES,
    BlockMixture as BlockMixture,
    apply_block_thresholds as apply_block_thresholds,
    block_jacobian as block_jacobian,
    block_mixture as block_mixture,
    block_thresholds as block_thresholds,
)
from .chebyshev import (
    chebyshev_coefficients as chebyshev_coefficients,
    chebyshev_points as chebyshev_points,
    jackson_damping as jackson_damping,
)
from .exponents import (
    sure_betas as sure_betas,
)
from .frame import (
    MEAN_DEGREE as MEAN_DEGREE,
    Bands as Bands,
    ChebyshevFrame as ChebyshevFrame,
    Damping as Damping,
    ExactFrame as ExactFrame,
    Frame as Frame,
    KernelBands as KernelBands,
    chebyshev_frame as chebyshev_frame,
    check_exact_size as check_exact_size,
    custom_frame as custom_frame,
    eigenpairs as eigenpairs,
    exact_frame as exact_frame,
    frame_of as frame_of,
    has_eigenpairs as has_eigenpairs,
    keep_eigenpairs as keep_eigenpairs,
    unit_of as unit_of,
)
from .monte_carlo import (
    Law as Law,
    checked_coefficient_weights as checked_coefficient_weights,
    default_probes as default_probes,
    exact_weights as exact_weights,
    mean_weights as mean_weights,
    monte_carlo_weights as monte_carlo_weights,
    probes as probes,
    weights_of as weights_of,
)
from .noise import (
    Noise as Noise,
)
from .noise_level import (
    NoiseLevel as NoiseLevel,
    estimate_sigma as estimate_sigma,
    noise_level_of as noise_level_of,
)
from .partition_of_unity import (
    Plateau as Plateau,
    c3_plateau as c3_plateau,
    checked_base as checked_base,
    count_scales as count_scales,
    last_step_below as last_step_below,
    linear_plateau as linear_plateau,
    meyer_plateau as meyer_plateau,
    partition as partition,
    plateau_function as plateau_function,
    smooth_plateau as smooth_plateau,
)
from .risk_curves import (
    TOP as TOP,
    RiskCurve as RiskCurve,
    SureCurve as SureCurve,
    paper_risk_curves as paper_risk_curves,
    scale_risk_curves as scale_risk_curves,
    sure_curves as sure_curves,
)
from .shrinkage import (
    Rule as Rule,
    hard as hard,
    james_stein as james_stein,
    power as power,
    shrink as shrink,
    soft as soft,
    sure_exponent as sure_exponent,
)
from .spectral_energy import (
    SpectralBins as SpectralBins,
    climb as climb,
    moments_of_products as moments_of_products,
    rowwise_spectral_moments as rowwise_spectral_moments,
    spectral_moments as spectral_moments,
)
from .threshold_search import (
    BINS as BINS,
    FINER as FINER,
    TINY as TINY,
    WORDS as WORDS,
)
from .thresholds import (
    Level as Level,
    ThresholdChoice as ThresholdChoice,
    apply_thresholds as apply_thresholds,
    least_thresholds as least_thresholds,
    oracle_thresholds as oracle_thresholds,
    raised_thresholds as raised_thresholds,
    sure_curve as sure_curve,
    sure_thresholds as sure_thresholds,
)
from .transform import (
    analyze as analyze,
    as_linear_operator as as_linear_operator,
    checked_frame as checked_frame,
    checked_frame_of as checked_frame_of,
    engine as engine,
    forward as forward,
    inverse as inverse,
    synthesize as synthesize,
)
from .unbiased_risk import (
    monte_carlo_divergence as monte_carlo_divergence,
    signal_sure as signal_sure,
    sure as sure,
    sure_variance as sure_variance,
)
from .weight_smoothing import (
    Usual as Usual,
    degree_features as degree_features,
    fit_of_products as fit_of_products,
    fitted_weights as fitted_weights,
    largest_columns as largest_columns,
    n_columns as n_columns,
    products_in_units as products_in_units,
    smooth_weights as smooth_weights,
)

__all__ = [
    "linear_plateau",
    "smooth_plateau",
    "c3_plateau",
    "meyer_plateau",
    "partition",
    "count_scales",
    "chebyshev_coefficients",
    "jackson_damping",
    "chebyshev_frame",
    "exact_frame",
    "custom_frame",
    "ChebyshevFrame",
    "ExactFrame",
    "analyze",
    "synthesize",
    "as_linear_operator",
    "soft",
    "james_stein",
    "power",
    "hard",
    "shrink",
    "smooth_weights",
    "default_probes",
    "monte_carlo_weights",
    "exact_weights",
    "sure",
    "sure_variance",
    "signal_sure",
    "monte_carlo_divergence",
    "estimate_sigma",
    "NoiseLevel",
    "sure_thresholds",
    "sure_curve",
    "oracle_thresholds",
    "block_thresholds",
    "apply_block_thresholds",
    "sure_betas",
]
