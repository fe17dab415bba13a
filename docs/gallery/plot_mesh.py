"""
A mesh
======

The vertices of a mesh are a graph, and their coordinates are three signals on it: x, y and z. Denoising these signals smooths a scanned surface
without shrinking it.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LightSource

import hushgraph as hg

# %%
# A ring with waves on it, 5,760 vertices and 11,520 triangles.

around, across = 120, 48
u, v = np.meshgrid(np.arange(around) / around, np.arange(across) / across, indexing="ij")
u, v = 2 * np.pi * u.ravel(), 2 * np.pi * v.ravel()
radius = 0.42 + 0.05 * np.cos(6 * u + 2 * v) + 0.03 * np.cos(3 * v)
shape = np.stack([(1 + radius * np.cos(v)) * np.cos(u), (1 + radius * np.cos(v)) * np.sin(u), radius * np.sin(v)], axis=1)

number = np.arange(around * across).reshape(around, across)
right, up, both = np.roll(number, -1, axis=0), np.roll(number, -1, axis=1), np.roll(number, (-1, -1), axis=(0, 1))
faces = np.concatenate([np.stack([part.ravel() for part in half], axis=1) for half in ((number, right, both), (number, both, up))])

sigma = 0.02
scanned = shape + np.random.default_rng(0).normal(0, sigma, shape.shape)

# %%
# The edges come from the faces. All three coordinates are denoised in one call, each a column.

graph = hg.Graph.from_mesh(scanned, faces)
result = hg.denoise(graph, scanned, sigma=sigma, method="let")


def distance(surface):
    """Root mean square distance of the vertices from where they should be."""
    return np.sqrt(np.mean(np.sum((surface - shape) ** 2, axis=1)))


print(graph)
print(f"distance from the true vertices: {distance(scanned):.4f} before, {distance(result.signal):.4f} after")
print(f"estimated without the truth: {np.sqrt(result.risk.sum() / graph.n):.4f}")
print(f"size of the denoised surface: {np.linalg.norm(result.signal) / np.linalg.norm(shape):.4f} of the true one")

figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.0), layout="constrained", subplot_kw={"projection": "3d"})
for ax, (title, surface) in zip(axes, {"True": shape, "Scanned": scanned, "Denoised": result.signal}.items(), strict=True):
    ax.plot_trisurf(*surface.T, triangles=faces, color="#e0c9a0", lightsource=LightSource(300, 50), linewidth=0, antialiased=False)
    ax.set_box_aspect((1, 1, 0.36))
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), zlim=(-0.4, 0.4))
    ax.view_init(48, -60)
    ax.set_axis_off()
    ax.set_title(title, fontweight="bold")
