"""
SURE and the threshold
======================

How large should the threshold of each scale be? The best threshold depends on the true signal, which is not known. Stein's unbiased risk
estimate (SURE) needs only the noisy signal, and hushgraph computes its minimum exactly.
"""

import numpy as np

import hushgraph as hg

streets = hg.datasets.city(3000)
trips = hg.hotspot_counts(streets, total=12_000)
sigma = 6.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, streets.n)
frame = hg.chebyshev_frame(streets)

# %%
# A panel for each scale. A height of 1 is the risk of the noisy coefficients themselves; the dot is the threshold that
# ``denoise(..., method="sgwt_sure")`` uses. The dashed line is the true error. It is within the band of two standard errors most of
# the time. The highest scale contains very little of this graph, so SURE is unreliable there.

figure = hg.plotting.plot_sure(frame, noisy, sigma=sigma, truth=trips)

# %%
# With less noise the thresholds are smaller, and every scale keeps more detail.

weaker = trips + np.random.default_rng(0).normal(0, 2.0, streets.n)
figure = hg.plotting.plot_sure(frame, weaker, sigma=2.0, truth=trips)

# %%
# The rule matters: soft thresholding subtracts the whole threshold from every coefficient that it keeps, so its best thresholds are small.

figure = hg.plotting.plot_sure(frame, noisy, sigma=sigma, rule="soft", truth=trips)
