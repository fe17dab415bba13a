"""The three-term recurrence with public functions of SciPy and NumPy, for comparison in benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from hushgraph.wavelets import ChebyshevFrame


class ScipyRecurrence:
    """Forward and inverse transform with an int32 CSR matrix; all arrays are updated in place."""

    def __init__(self, frame: ChebyshevFrame):
        self.n, self.theta, self.buffer = frame.graph.n, frame.coefficients, np.empty(frame.graph.n)
        laplacian = (4 * frame.unit / frame.lambda_upper) * frame.graph.laplacian()
        self.matrix = sparse.csr_array(laplacian - 2 * sparse.eye_array(self.n))
        self.matrix.indptr, self.matrix.indices = self.matrix.indptr.astype(np.int32), self.matrix.indices.astype(np.int32)

    def step(self, now: np.ndarray, before: np.ndarray) -> None:
        """Write 2 (scale L - I) now - before into `before`."""
        np.subtract(self.matrix @ now, before, out=before)

    def add(self, now: np.ndarray, factor: float, band: np.ndarray) -> None:
        """Add factor * now to `band`."""
        np.multiply(now, factor, out=self.buffer)
        band += self.buffer

    def terms(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """Yield T_1 x, T_2 x, ...; each is valid until the next."""
        now, before = x.copy(), np.zeros(self.n)
        self.step(now, before)
        before *= 0.5
        for _ in range(self.theta.shape[1] - 1):
            now, before = before, now
            yield now
            self.step(now, before)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return the coefficients of all scales, (n_scales, n)."""
        bands = self.theta[:, :1] * x
        for k, term in enumerate(self.terms(x), start=1):
            for j, band in enumerate(bands):
                self.add(term, self.theta[j, k], band)
        return bands

    def inverse(self, bands: np.ndarray) -> np.ndarray:
        """Return the inverse transform by one recurrence per scale, as it is defined."""
        total = np.zeros(self.n)
        for j, band in enumerate(bands):
            self.add(band, self.theta[j, 0], total)
            for k, term in enumerate(self.terms(band), start=1):
                self.add(term, self.theta[j, k], total)
        return total
