"""
What auto combines
==================

``denoise`` makes many simple estimates, lets Stein's risk estimate weigh them, and averages several such combinations. The result
says what it took.
"""

import matplotlib.pyplot as plt
import numpy as np

import hushgraph as hg
from hushgraph.plotting import COLOURS, style

streets = hg.datasets.city(1500)
trips = hg.hotspot_counts(streets, total=6_000)
sigma = 6.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, streets.n)

result = hg.denoise(streets, noisy, sigma=sigma)
print(result.details["why"])
print(f"squared error: {result.risk:,.0f} estimated, {np.sum((result.signal - trips) ** 2):,.0f} in truth")

# %%
# Left: the risk of each set of candidates combined, of two methods by themselves, and of the average of the sets after a second look.
# All of it is estimated without the truth. Right: the candidates with the largest weights in the average.

risks = {f"set: {name}": found["risk"] for name, found in result.details["sets"].items() if name != "constant"}
risks |= {name: hg.denoise(streets, noisy, sigma=sigma, method=name).risk for name in ("sgwt_sure", "sgwt_deep")}
risks["auto"] = result.risk
weights = dict(list(result.details["weights"].items())[:10])

with style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
    shares = [risk / (sigma**2 * streets.n) for risk in risks.values()]
    left.barh(list(risks), shares, color=[COLOURS[1] if name == "auto" else COLOURS[0] for name in risks], height=0.65)
    left.invert_yaxis()
    left.set(title="Estimated squared error", xlabel="as a share of the noise's")
    right.barh(list(weights), list(weights.values()), color=COLOURS[0], height=0.65)
    right.invert_yaxis()
    right.set(title="Largest weights", xlabel="weight")

# %%
# The result beside two methods that are among what it combines.

maps = {
    f"{title}, {hg.snr(trips, values):.1f} dB": values
    for title, values in {
        "noisy": noisy,
        "wavelets": hg.denoise(streets, noisy, sigma=sigma, method="sgwt_sure").signal,
        "auto": result.signal,
    }.items()
}
figure = hg.plot_maps(streets, maps, label="trips")
