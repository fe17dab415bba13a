"""The driver of what all methods need of the noise: sums over all nodes, and the regression of local noise levels on node features."""

from __future__ import annotations

import numpy as np

from hushgraph.core import count_units, sum_of_units, unit_above
from hushgraph.distributed import wavelet_tasks
from hushgraph.distributed.runner import Runner
from hushgraph.distributed.store import Place, pieces, read_array, sum_arrays
from hushgraph.distributed.wavelet_tasks import Run
from hushgraph.wavelets import fit_of_products, n_columns


def fit_scales(run: Run, runner: Runner, parts: int) -> tuple[list[list[float]], list[float]]:
    """Return the regression of the weights on node features, from sums over partitions, as the task `wavelet_tasks.scales` takes it."""
    surveyed = runner.run_parts("survey", wavelet_tasks.survey, parts, run, _mean_variance(run))
    tops = np.max([part["tops"] for part in surveyed], axis=0)
    runner.run_parts("fit", wavelet_tasks.fit, parts, run, tops.tolist())
    units = sum_arrays((run.output(part, "fit") for part in range(parts)), "units")
    coefficients, usual = fit_of_products(units, tops, n_columns(per_node=run.sigma_file is not None))
    return coefficients.tolist(), usual.tolist()


def noise_sums(run: Run, n: int) -> tuple[float, float]:
    """Return sum_i sigma_i^2 and sum_i sigma_i^4."""
    if run.sigma_file is None:
        return n * run.variance, n * run.variance**2
    return _sum_of_powers(run.sigma_file, 2), _sum_of_powers(run.sigma_file, 4)


def _mean_variance(run: Run) -> float:
    """Return the mean of sigma_i^2, with the bits of `Usual.of`; 1 where all nodes have the same sigma."""
    if run.sigma_file is None:
        return 1.0
    n = len(read_array(run.sigma_file, whole=False))
    return _sum_of_powers(run.sigma_file, 2) / n or 1.0


def _sum_of_powers(path: Place, power: int) -> float:
    """Return the sum of the powers of the values in a file, added in whole units: the same in any order."""
    mapped = read_array(path, whole=False)
    largest = max(float((mapped[nodes].astype(np.float64) ** power).max()) for nodes in pieces(len(mapped)))
    unit = unit_above(largest)
    counts = [count_units(mapped[nodes].astype(np.float64) ** power, unit) for nodes in pieces(len(mapped))]
    return sum_of_units(sum(high for high, _ in counts), sum(low for _, low in counts), unit)
