"""
An image
========

The pixels of an image are a graph: each is joined to the four beside it. The photograph of Grace Hopper comes with matplotlib (from
Wikimedia Commons, File:Grace_Hopper.jpg), and 200 x 200 pixels of it make 40,000 nodes.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.ndimage import uniform_filter

import hushgraph as hg

with get_sample_data("grace_hopper.jpg") as file:
    colours = plt.imread(file, format="jpg").astype(float)
clean = colours[40:240, 165:365] @ [0.299, 0.587, 0.114]  # grey, from 0 to 255

graph = hg.Graph.from_image(clean.shape, neighbours=4)
sigma = 20.0
noisy = clean + np.random.default_rng(0).normal(0, sigma, clean.shape)

# %%
# ``from_image`` numbers the pixels row by row, so ``ravel`` and ``reshape`` convert between image and signal. The method uses only the noisy image and
# ``sigma``. Here its estimate of the error can be compared with the true error.

result = hg.denoise(graph, noisy.ravel(), sigma=sigma)
denoised = result.signal.reshape(clean.shape)

before, after = (np.sqrt(hg.mse(clean.ravel(), image.ravel())) for image in (noisy, denoised))
print(f"root mean square error: {before:.1f} before, {after:.1f} after")
print(f"estimated without the truth: {np.sqrt(result.risk / graph.n):.1f}")

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.5), layout="constrained")
images = {"Original": clean, "Noisy": noisy, "Denoised": denoised}
for ax, (title, image) in zip(axes, images.items(), strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=255)
    quality = "" if image is clean else f", {hg.snr(clean.ravel(), image.ravel()):.1f} dB"
    ax.set_title(title + quality, loc="left", fontweight="bold")
    ax.set_axis_off()

# %%
# Where can the result be trusted? The expected error is an image too: large where there is fine detail, small in even areas. Next to it is
# the true error, averaged over 9 x 9 pixels.

expected = result.expected_error().reshape(clean.shape)
actual = np.sqrt(uniform_filter((denoised - clean) ** 2, 9))
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.5), layout="constrained")
errors = {"Expected error": expected, "Actual error": actual}
for ax, (title, image) in zip(axes, errors.items(), strict=True):
    shown = ax.imshow(image, cmap="magma_r", vmin=0, vmax=sigma)
    ax.set_title(title, loc="left", fontweight="bold")
    ax.set_axis_off()
bar = figure.colorbar(shown, ax=axes, label="grey levels", shrink=0.8)
