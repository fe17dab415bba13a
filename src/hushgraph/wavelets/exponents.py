"""Choice of the exponent of the thresholding rule by SURE, scale by scale (paper, conclusion).

For the rules x (1 - |t / x|^beta)_+ SURE at given t and beta is
sum_{|x| <= t} (x^2 - sigma^2 g) + sum_{|x| > t} (x^2 r^2 + sigma^2 g (1 + 2 (beta - 1) r)), r = |t / x|^beta, g the weights.
`sure_thresholds` finds its exact minimum over t for each beta; the least of these minima over a few betas is taken.
`apply_thresholds` takes one beta per scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hushgraph._deprecation import renamed
from hushgraph._errors import InputError
from hushgraph._validation import checked_sigma, refuse_device, shown
from hushgraph.core import _loops
from hushgraph.wavelets.shrinkage import checked_beta
from hushgraph.wavelets.thresholds import sure_thresholds
from hushgraph.wavelets.unbiased_risk import ThresholdScale, checked_pair, threshold_multiplier

BETAS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)  # from soft towards hard


@renamed(removed_in="0.3", scaled="threshold_scale")
def sure_betas(
    F: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    sigma: float,
    betas: Sequence[float] = BETAS,
    threshold_scale: ThresholdScale = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponents of rule="power" and the thresholds with the least SURE.

    Parameters
    ----------
    F : array_like, shape (n_scales, n) or (n_scales, n, m)
        Wavelet coefficients of one signal or of m signals.
    weights : array_like, shape (n_scales, n)
        Raw Monte-Carlo weights or exact ones.
    sigma : float
        Standard deviation of the noise; 1 if the weights hold the variance of each node.
    betas : sequence of float
        Exponents to choose from, finite and at least 1; of equally good ones the first is taken.
    threshold_scale : bool or array_like, shape (n_scales, n)
        Multiplier of the thresholds, as in `sure_thresholds`.

    Returns
    -------
    betas : numpy.ndarray
        Exponents, shape (n_scales,) or (n_scales, m).
    t : numpy.ndarray
        Thresholds of the same shape.
    """
    if np.ndim(betas) != 1 or len(betas) == 0:
        raise InputError.about(
            argument="betas", expected="a sequence of at least one exponent, such as (1, 2, 4)", got=shown(betas)
        )
    exponents = [checked_beta(beta) for beta in betas]
    refuse_device(F=F, weights=weights, threshold_scale=threshold_scale)
    F, weights = checked_pair(F, weights)
    scale = threshold_multiplier(weights, threshold_scale)
    planes = F[None] if F.ndim == 2 else np.moveaxis(F, 2, 0)
    best = np.stack([_best_betas(plane, weights, scale, sigma, exponents) for plane in planes], axis=2)
    chosen, t = best[:, :, 0] if F.ndim == 2 else best
    return chosen, t


def _best_betas(F: np.ndarray, weights: np.ndarray, scale: np.ndarray | None, sigma: float, betas: list[float]) -> np.ndarray:
    """Return exponents and thresholds of one signal, (2, n_scales)."""
    x, g = (np.ascontiguousarray(part, np.float64) for part in (F, weights))
    s = None if scale is None else np.ascontiguousarray(scale, np.float64)
    least, best = np.full(len(F), np.inf), np.zeros((2, len(F)))
    for beta in betas:
        t = sure_thresholds(x, g, sigma=sigma, rule="power", beta=beta, threshold_scale=s)
        values = _loops.sure_of_rows(x, g, s, t, checked_sigma(sigma) ** 2, beta)
        better = values < least
        best[0, better], best[1, better], least[better] = beta, t[better], values[better]
    return best
