"""
Graphs and filters from other packages
======================================

A graph of networkx, igraph, PyGSP, SciPy or GeoPandas can be passed wherever hushgraph wants a graph; and a filter bank of your own becomes a frame.
"""

import networkx as nx
import numpy as np

import hushgraph as hg

G = nx.random_geometric_graph(900, 0.065, seed=2)
G = G.subgraph(max(nx.connected_components(G), key=len))
places = nx.get_node_attributes(G, "pos")
truth = {node: 10.0 * (np.hypot(x - 0.4, y - 0.5) < 0.3) for node, (x, y) in places.items()}
rng = np.random.default_rng(0)
noisy = {node: value + rng.normal(0, 4) for node, value in truth.items()}

# %%
# A dict is matched by the names of the nodes, and the result is a dict. Arrays would be in the order of ``list(G.nodes)``.

result = hg.denoise(G, noisy, sigma=4)
result

# %%
# For several calls, make the graph once: it remembers what is computed for it. Places that are one attribute of a node, as here, are given as an array.

graph = hg.Graph.from_scipy(
    nx.to_scipy_sparse_array(G, weight=None), labels=list(G.nodes), coords=[places[node] for node in G.nodes]
)
graph

# %%
# The Mexican hat of PyGSP and GSPBox as functions of the eigenvalues. As it is, the frame is not tight: ``synthesize(analyze(f))`` is not f. ``tight=True`` divides by the
# root of the sum of the squares.

lowest = graph.lambda_max / 20
scales = np.geomspace(2 / lowest, 1 / graph.lambda_max, 5)
kernels = [lambda x: 1.2 * np.exp(-1 - (x / (0.6 * lowest)) ** 4)]
kernels += [lambda x, s=s: s * x * np.exp(-s * x) for s in scales]
loose = hg.custom_frame(graph, kernels)
frame = hg.custom_frame(graph, kernels, degree=200, tight=True)
print(f"tightness defect {loose.tightness_defect:.2f}, tight {frame.tightness_defect:.1g}")
hg.plot_frame(frame, title="A Mexican hat, made tight")

# %%
# Thresholds on this frame, and the default method.

hat = hg.denoise(graph, noisy, sigma=4, method="sgwt_sure", frame=frame)
maps = {"Noisy": noisy, "Mexican hat, SURE": hat.signal, "auto": result.signal}
ratios = {name: hg.snr(graph.align(truth), graph.align(signal)) for name, signal in maps.items()}
hg.plot_maps(graph, {f"{name}: {ratios[name]:.1f} dB": signal for name, signal in maps.items()})
