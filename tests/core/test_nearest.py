"""The nearest of many points: the distances equal those of SciPy, the points too unless there is a tie, and ties are reported."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from hushgraph.core import _loops

RANDOM = np.random.RandomState(0)
GRID = np.stack(np.meshgrid(np.arange(30.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
POINTS = {
    "one": np.array([[1.0, 2.0]]),
    "few": RANDOM.rand(11, 2),
    "a part and one more": RANDOM.rand(13, 2),
    "many": RANDOM.rand(5000, 2),
    "clusters": np.concatenate([RANDOM.rand(3000, 2) * 1e-6, RANDOM.rand(200, 2), RANDOM.rand(300, 2) * 1e3]),
    "a line": np.stack([RANDOM.rand(999), np.zeros(999)], axis=1),
    "the same": np.full((100, 2), 3.5),
    "grid": GRID,
    "twice": np.concatenate([GRID, GRID[::-1]]),
    "far apart": RANDOM.normal(size=(500, 2)) * 10.0 ** RANDOM.randint(-300, 150, size=(500, 2)),
}


@pytest.mark.parametrize("name", POINTS)
def test_nearest_as_in_scipy(name):
    points = POINTS[name]
    near = points[RANDOM.randint(0, len(points), 20_000)]
    places = np.concatenate(
        [near, near + RANDOM.normal(size=near.shape) * np.ptp(points, axis=0) / 50, np.round(near * 2) / 2 + 0.5, near * 1e3]
    )
    distance, number, ties = _loops.PointTree(points).nearest(places)
    expected, nearest = cKDTree(points).query(places)
    np.testing.assert_array_equal(distance, expected)
    untied = np.setdiff1d(np.arange(len(places)), ties)
    np.testing.assert_array_equal(number[untied], nearest[untied])
    if len(points) > 1:
        second = cKDTree(points).query(places, k=2)[0][:, 1]
        assert np.isin(np.flatnonzero(second == expected), ties).all()
        assert (second[ties] <= expected[ties] * (1 + 1e-8)).all()


def test_places_without_a_nearest_point():
    points, places = np.array([[-1e308, 0.0], [0.0, 0.0]]), np.array([[1e308, 0.0], [1.0, 1.0]])
    distance, number, ties = _loops.PointTree(points).nearest(places)
    assert distance.tolist() == [np.inf, np.sqrt(2.0)]
    assert number.tolist() == [-1, 1]
    assert ties.tolist() == []
    assert _loops.PointTree(points[:0]).nearest(places)[1].tolist() == [-1, -1]
    assert len(_loops.PointTree(points).nearest(places[:0])[0]) == 0


@pytest.mark.parametrize("bad", [np.zeros((3, 3)), np.zeros((3, 0))])
def test_points_of_a_plane_only(bad):
    with pytest.raises(ValueError, match="two coordinates"):
        _loops.PointTree(bad)
    with pytest.raises(ValueError, match="two coordinates"):
        _loops.PointTree(np.zeros((1, 2))).nearest(bad)
