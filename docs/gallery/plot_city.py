"""
A city
======

Trips counted at street corners, seen through noise: the map before and after, and where the result can be trusted. The city is
generated; a graph of real streets is drawn in the same way, with ``attribution=`` for those who mapped them.
"""

import numpy as np

import hushgraph as hg

streets = hg.datasets.city(2500)
trips = hg.hotspot_counts(streets, total=12_000)
sigma = 5.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, streets.n)

# %%
# Counts are never negative, so pass ``nonnegative=True``. All maps have the same colour scale: blue is below zero.

result = hg.denoise(streets, noisy, sigma=sigma, nonnegative=True)
names = {
    "Trips": trips,
    f"Noisy, {hg.snr(trips, noisy):.1f} dB": noisy,
    f"Denoised, {hg.snr(trips, result.signal):.1f} dB": result.signal,
}
figure = hg.plot_maps(streets, names, label="trips", attribution="a generated city")

# %%
# The expected error of each corner is that of its posterior distribution. It needs no truth. It is large downtown, where
# the counts are large, and small outside, far below the sigma of 5 of the noise.

ax = hg.plotting.plot_error(streets, result, title="Expected error")

# %%
# For a table or a text, take intervals: about 90 % of the true counts lie between the two ends.

lower, upper = result.interval(0.9)
busiest = result.signal.argmax()
print(f"{result.signal[busiest]:.0f} trips, between {lower[busiest]:.0f} and {upper[busiest]:.0f}; in truth {trips[busiest]:.0f}")
