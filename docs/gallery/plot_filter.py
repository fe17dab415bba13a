"""
A Gaussian process on a graph
=============================

Heights, temperatures and levels of pollution vary smoothly from place to place. For such signals one linear filter is
enough, if its shape is right. ``method="filter"`` fits the shape to the noisy signal by maximum likelihood. The result is
the posterior mean of a Gaussian process. No eigenvectors are computed, so it works on large graphs.
"""

import numpy as np

import hushgraph as hg

graph = hg.datasets.city(4600)
truth = 3 * hg.smooth_signal(graph, seed=3)
noisy = truth + np.random.default_rng(10).normal(0, 3, graph.n)
result = hg.denoise(graph, noisy, sigma=3, method="filter")
figure = hg.plot_maps(graph, {"noisy": noisy, "filter": result.signal, "truth": truth})

# %%
# The dots are the energy of the noisy signal at the eigenvalues of the Laplacian: slow variation on the left, fast
# variation on the right, where there is only noise. The line is the fitted spectrum. Below it is the filter that follows
# from it: the share of each eigenvector that is kept.

figure = hg.plot_filter(result)

# %%
# Three families of spectra are fitted, and averaged in proportion to their likelihoods.

for name, fit in result.details["filter"]["families"].items():
    share, place, steepness = (fit[key] for key in ("share", "place", "steepness"))
    print(f"{name:12} share {share:.2f}, place {place:.3g}, steepness {steepness:.2f}")
for method in ("filter", "auto", "sgwt_sure"):
    print(f"{method:12} {hg.snr(truth, hg.denoise(graph, noisy, sigma=3, method=method).signal):5.2f} dB")
