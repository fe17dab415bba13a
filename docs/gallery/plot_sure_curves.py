"""
SURE and the threshold
======================

How large should the threshold of each scale be? The best one depends on the truth, which nobody has. Stein's unbiased risk
estimate (SURE) needs only the noisy signal, and its minimum is found exactly.
"""

import numpy as np

import hushgraph as hg
from hushgraph.figures import plot_sure

streets = hg.datasets.city(3000)
trips = hg.hotspot_counts(streets, total=12_000)
sigma = 6.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, streets.n)
frame = hg.chebyshev_frame(streets)

# %%
# A panel for each scale. A height of 1 is what the noise alone costs when nothing is done; the dot is the threshold that
# ``denoise(..., method="sgwt_sure")`` takes. The dashed line needs the truth, and stays within the band of two standard errors most of
# the time. The topmost scale holds next to nothing of this graph, and SURE has next to nothing to go by there.

figure = plot_sure(frame, noisy, sigma=sigma, truth=trips)

# %%
# With less noise the thresholds fall, and every scale keeps more of its detail.

weaker = trips + np.random.default_rng(0).normal(0, 2.0, streets.n)
figure = plot_sure(frame, weaker, sigma=2.0, truth=trips)

# %%
# The rule matters: soft thresholding moves what it keeps by the whole threshold, so it can afford only small ones.

figure = plot_sure(frame, noisy, sigma=sigma, rule="soft", truth=trips)
