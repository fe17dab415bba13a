"""
Zones
=====

Trips counted by zone: polygons that share a border are neighbors, and maps are filled. The zones are generated; real ones are read with
``hg.Graph.from_polygons("zones.geojson", label="LocationID")``.
"""

import numpy as np

import hushgraph as hg

zones = hg.datasets.zones(263)
trips = hg.hotspot_counts(zones, total=9_000)
sigma = 12.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, zones.n)

# %%
# Few nodes and large values: denoising helps less than on streets, and most where zones are quiet.

result = hg.denoise(zones, noisy, sigma=sigma, nonnegative=True)
names = {
    "Trips": trips,
    f"Noisy, {hg.snr(trips, noisy):.1f} dB": noisy,
    f"Denoised, {hg.snr(trips, result.signal):.1f} dB": result.signal,
}
figure = hg.plot_maps(zones, names, label="trips", attribution="generated zones")

# %%
# Labels of zones name them in tables and in totals.

quiet = zones.labels[trips < np.median(trips)]
print(result.totals({"quiet zones": quiet}))
