"""
What auto combines
==================

``denoise`` computes many simple estimates, weights them by Stein's risk estimate, and averages several such combinations. The details of
the result list the weights.
"""

import matplotlib.pyplot as plt
import numpy as np

import hushgraph as hg

streets = hg.datasets.city(1500)
trips = hg.hotspot_counts(streets, total=6_000)
sigma = 6.0
noisy = trips + np.random.default_rng(0).normal(0, sigma, streets.n)

result = hg.denoise(streets, noisy, sigma=sigma)
print(result.details["why"])
print(f"squared error: {result.risk:,.0f} estimated, {np.sum((result.signal - trips) ** 2):,.0f} in truth")

# %%
# Left: the risk of the combination of each set of candidates, of two single methods, and of the average of the sets after the second stage.
# All risks are estimated without the truth. Right: the candidates with the largest weights in the average.

risks = {f"set: {name}": entry["risk"] for name, entry in result.details["sets"].items() if name != "constant"}
risks |= {name: hg.denoise(streets, noisy, sigma=sigma, method=name).risk for name in ("sgwt_sure", "sgwt_deep")}
risks["auto"] = result.risk
weights = dict(list(result.details["weights"].items())[:10])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
shares = [risk / (sigma**2 * streets.n) for risk in risks.values()]
left.barh(list(risks), shares, color=["#7d1150" if name == "auto" else "#6d8cab" for name in risks], height=0.65)
left.set(title="Estimated squared error", xlabel="share of the squared error of the noise")
right.barh(list(weights), list(weights.values()), color="#6d8cab", height=0.65)
right.set(title="Largest weights", xlabel="weight")
for ax in (left, right):
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The result next to the noisy map and the paper's method.

maps = {
    f"{title}, {hg.snr(trips, values):.1f} dB": values
    for title, values in {
        "noisy": noisy,
        "wavelets": hg.denoise(streets, noisy, sigma=sigma, method="sgwt_sure").signal,
        "auto": result.signal,
    }.items()
}
figure = hg.plot_maps(streets, maps, label="trips")
