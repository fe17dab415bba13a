"""Texts and signals that several test files use."""

import numpy as np

import hushgraph as hg

TRIPS_2014 = (
    "vendor_id, pickup_datetime, dropoff_datetime, pickup_longitude, pickup_latitude, total_amount\r\n\r\n"
    "CMT,2014-09-23 23:59:59,2014-09-24 00:10:00,-73.99,40.73,9.5,,\r\n"
    "CMT,2014-09-24 00:00:00,2014-09-24 00:10:00,-73.98,40.74,9.5,,\r\n"
    "VTS,2014-09-24 00:30:00,2014-09-24 00:40:00,0,0,8\r\n"
    "VTS,2014-09-24 00:31:00,2014-09-24 00:40:00,,,8\r\n"
    "VTS,2014-09-24 00:32:00,2014-09-24 00:40:00,-73.97,404.75,8\r\n"
    "VTS,2014-09-24 01:00:00,2014-09-24 01:10:00,-73.96,40.75,8\r\n"
)


def sixty_nodes():
    """Sixty nodes with random weights, in several components, isolated nodes among them."""
    bare = hg.datasets.random_geometric(60, radius=0.16, seed=1)
    edges = np.array(bare.adjacency.nonzero()).T
    edges = edges[(edges[:, 0] < edges[:, 1]) & (edges[:, 1] != 59)]
    return hg.Graph.from_edges(edges, n=60, weights=np.random.default_rng(2).uniform(0.3, 3, len(edges)))


def waves_and_spikes(n: int):
    signal = 3 * np.sin(np.linspace(0, 4, n))
    signal[::9] += 4
    return signal
