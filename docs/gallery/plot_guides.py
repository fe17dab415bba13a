"""
A map that guides another
=========================

A private release is denoised alone, with the releases of five earlier months as guides, and with a public map of another kind.
Everything here is generated, so the true counts can be shown too.
"""

import matplotlib.pyplot as plt
import numpy as np

import hushgraph as hg

streets = hg.datasets.city(1500)
rng = np.random.default_rng(0)
usual = hg.hotspot_counts(streets, total=10_000)
months = [rng.poisson(usual) for month in range(6)]
released = [
    hg.privacy.simulate(streets, counts, epsilon=0.2, delta=1e-6, sensitivity=1, seed=seed) for seed, counts in enumerate(months)
]
latest, truth = released[-1], months[-1]

# %%
# The public map counts shops. It has another unit than the trips, does not grow in proportion to them, and has its own random errors.

shops = rng.poisson(np.sqrt(usual))
guides = {
    "alone": None,
    "guided by shops": shops,
    "guided by earlier months": released[:-1],
    "guided by both": {"shops": shops, "earlier months": released[:-1]},
}
results = {name: hg.denoise(streets, latest, nonnegative=True, guides=guide) for name, guide in guides.items()}
for name, guide in results["guided by both"].details["guides"].items():
    print(f"{name}: {guide['in_words']}")

# %%
# The middle of the town: what the guides add is mostly detail, corner by corner.

middle = np.hypot(*(streets.coords - streets.coords.mean(axis=0)).T) < 1000
maps = {"Released": latest.values, "Denoised alone": results["alone"].signal}
maps |= {"Guided by both": results["guided by both"].signal, "True counts": truth}
figure = hg.plot_maps(streets.subgraph(middle), {title: values[middle] for title, values in maps.items()}, label="trips")

# %%
# The errors, and what the risk estimate expects without the truth.

errors = {name: np.sqrt(np.mean((result.signal - truth) ** 2)) for name, result in results.items()}
expected = [np.sqrt(max(result.risk, 0) / result.n_values) for result in results.values()]
figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
colours = ["#6d8cab"] + ["#7d1150"] * (len(errors) - 1)
ax.barh(list(errors), list(errors.values()), color=colours, height=0.6)
ax.plot(expected, range(len(errors)), "d", color="#f2914a", label="expected")
ax.invert_yaxis()
ax.set(xlabel="root mean square error per junction")
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
