"""
A frame
=======

A wavelet frame splits a signal into bands of the graph's spectrum. The bands are a partition of unity; the frame applies
polynomials that come close to their square roots, so that no eigenvector is ever computed.
"""

import matplotlib.pyplot as plt

import hushgraph as hg
from hushgraph.figures import plot_frame, plot_partition, plot_scales
from hushgraph.plotting import style

streets = hg.datasets.city(1500)

# %%
# The paper's bands double in width from one to the next, and the lowest takes everything below 1. ``low_scales`` adds bands there; the
# axis is then logarithmic. Smoother plateaus, such as Meyer's, need polynomials of a smaller degree.

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.0), layout="constrained")
frame = hg.chebyshev_frame(streets)
deep = hg.chebyshev_frame(streets, plateau="meyer", low_scales=3)
plot_partition(frame, ax=left, title="linear plateau")
ax = plot_partition(deep, ax=right, title="Meyer's, three low scales")

# %%
# The polynomials as they are, over the functions they stand for (dashes). Below: how far the sum of their squares is from 1. Jackson
# damping, the paper's choice, takes the ripples away and rounds the kinks; at the same degree it is less tight.

damped = hg.chebyshev_frame(streets, degree=100, damping="jackson")
figure = plot_frame(damped)

# %%
# The same degree without damping.

plain = hg.chebyshev_frame(streets, degree=100, damping=None)
figure = plot_frame(plain)

# %%
# And with Meyer's plateau: tight to the eye.

smooth = hg.chebyshev_frame(streets, degree=100, damping=None, plateau="meyer")
figure = plot_frame(smooth)

# %%
# What the scales of a map hold. Scale 0 is the smooth part; single busy corners are in the middle scales.

trips = hg.hotspot_counts(streets, total=6_000)
figure = plot_scales(frame, trips, label="coefficient")
