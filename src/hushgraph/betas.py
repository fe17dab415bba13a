"""The exponent of the thresholding rule chosen by SURE, scale by scale (paper, conclusion).

For the rules x (1 - |t / x|^beta)_+ SURE at given t and beta is
sum_{|x| <= t} (x^2 - sigma^2 g) + sum_{|x| > t} (x^2 r^2 + sigma^2 g (1 + 2 (beta - 1) r)), r = |t / x|^beta, g the weights.
`sure_thresholds` finds its exact minimum over t for each beta; the least of these minima over a few betas is taken.
`apply_thresholds` takes one beta per scale.
"""

from __future__ import annotations

import numpy as np

from hushgraph._errors import InputError
from hushgraph.checks import checked_sigma, refuse_device, shown
from hushgraph.core import _loops
from hushgraph.risk import checked_pair, threshold_scale
from hushgraph.shrink import checked_beta
from hushgraph.threshold import sure_thresholds

BETAS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)  # from soft towards hard


def sure_betas(F, weights, *, sigma: float, betas=BETAS, scaled=False) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of rule="power" and thresholds with the least SURE: (n_scales,) each, or (n_scales, m) for m signals.

    Parameters
    ----------
    betas : sequence of float
        Exponents to choose from, finite and at least 1; of equals the first wins.
    scaled : bool or (n_scales, n) array
        As in `sure_thresholds`.
    """
    if np.ndim(betas) != 1 or len(betas) == 0:
        msg = f"betas must be a sequence of at least one exponent, such as (1, 2, 4); got {shown(betas)}"
        raise InputError(msg)
    exponents = [checked_beta(beta) for beta in betas]
    refuse_device(F=F, weights=weights, scaled=scaled)
    F, weights = checked_pair(F, weights)
    scale = threshold_scale(weights, scaled)
    planes = F[None] if F.ndim == 2 else np.moveaxis(F, 2, 0)
    found = np.stack([_best_betas(plane, weights, scale, sigma, exponents) for plane in planes], axis=2)
    chosen, t = found[:, :, 0] if F.ndim == 2 else found
    return chosen, t


def _best_betas(F, weights, scale, sigma, betas) -> np.ndarray:
    """Exponents and thresholds of one signal, (2, n_scales)."""
    x, g = (np.ascontiguousarray(part, np.float64) for part in (F, weights))
    s = None if scale is None else np.ascontiguousarray(scale, np.float64)
    least, found = np.full(len(F), np.inf), np.zeros((2, len(F)))
    for beta in betas:
        t = sure_thresholds(x, g, sigma=sigma, rule="power", beta=beta, scaled=False if s is None else s)
        values = _loops.sure_of_rows(x, g, s, t, checked_sigma(sigma) ** 2, beta)
        better = values < least
        found[0, better], found[1, better], least[better] = beta, t[better], values[better]
    return found
