"""
A frame
=======

A wavelet frame splits a signal into bands of the spectrum of the graph. The bands are a partition of unity. The frame applies
polynomials that approximate the square roots of the bands, so that no eigenvector is computed.
"""

import matplotlib.pyplot as plt

import hushgraph as hg

streets = hg.datasets.city(1500)

# %%
# The paper's bands double in width from one to the next, and the lowest band contains everything below 1. ``low_scales`` adds bands there; the
# axis is then logarithmic. Smoother plateaus, such as Meyer's, need polynomials of a smaller degree.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.0), layout="constrained")
frame = hg.chebyshev_frame(streets)
deep = hg.chebyshev_frame(streets, plateau="meyer", low_scales=3)
hg.plotting.plot_partition(frame, ax=left, title="linear plateau")
ax = hg.plotting.plot_partition(deep, ax=right, title="Meyer's, three low scales")

# %%
# The polynomials, and the functions that they approximate (dashed). Below: the difference between the sum of their squares and 1. Jackson
# damping, which the paper uses, removes the ripples and rounds the kinks; at the same degree the frame is less tight.

damped = hg.chebyshev_frame(streets, degree=100, damping="jackson")
figure = hg.plotting.plot_frame(damped)

# %%
# The same degree without damping.

plain = hg.chebyshev_frame(streets, degree=100, damping=None)
figure = hg.plotting.plot_frame(plain)

# %%
# With Meyer's plateau no difference can be seen.

smooth = hg.chebyshev_frame(streets, degree=100, damping=None, plateau="meyer")
figure = hg.plotting.plot_frame(smooth)

# %%
# The scales of a map. Scale 0 is the smooth part; single busy corners are in the middle scales.

trips = hg.hotspot_counts(streets, total=6_000)
figure = hg.plotting.plot_scales(frame, trips, label="coefficient")
