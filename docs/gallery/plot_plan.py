"""
What an epsilon buys
====================

Noise and expected error for each epsilon, computed from generated counts on your own graph, before anything is charged and without using the
data. Denoising reduces the error of a junction; the relative error of a total falls with the size of the region.
"""

import matplotlib.pyplot as plt

import hushgraph as hg

streets = hg.datasets.city(1000)
plan = hg.privacy.plan_release(
    streets, epsilon=(0.1, 0.2, 0.5, 1.0, 2.0), adjacency="add-remove", max_nodes=2, max_per_node=1, expected_total=8000, n_draws=1
)
print(plan)

# %%
# The noise that must be added, and the error that remains after denoising.

epsilon = [row.epsilon for row in plan.rows]
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.loglog(epsilon, [row.error_noisy for row in plan.rows], marker="s", color="#6d8cab", label="as released")
ax.loglog(epsilon, [row.error_denoised for row in plan.rows], marker="^", color="#7d1150", label="denoised")
ax.set(xlabel="epsilon", ylabel="error of a junction, in events", xticks=epsilon, xticklabels=[f"{one:g}" for one in epsilon])
ax.minorticks_off()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# The price of a larger bound: keeping more places of each person keeps more events and needs more noise.

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for mechanism, style in ((hg.privacy.analytic_sigma, "-"), (hg.privacy.classical_sigma, ":")):
    caps = range(1, 11)
    sigmas = [mechanism(epsilon=0.5, delta=1e-6, sensitivity_squared=cap) for cap in caps]
    ax.plot(caps, sigmas, style, color="#de5238", marker="o", label=mechanism.__name__.replace("_sigma", " mechanism"))
ax.set(xlabel="max_nodes, with max_per_node = 1", ylabel="sigma at epsilon 0.5", ylim=(0, None))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
