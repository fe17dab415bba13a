"""One projection for all: a city across the antimeridian is as large, and is treated as, the same city elsewhere."""

import numpy as np
import pytest

import hushgraph as hg
from hushgraph._geodesy import EARTH_RADIUS, METRES_PER_DEGREE, LocalPlane, great_circle, middle_of, planar_coords
from hushgraph.estimators.counts.surroundings import plane
from hushgraph.plotting.maps import _aspect, places
from hushgraph.plotting.report.packing import drawing_order, planar_places


def town_at(longitude: float, latitude: float = -16.8) -> hg.Graph:
    """A town of 4 km, with longitudes from -180 to 180."""
    city = hg.datasets.city(300, seed=3)
    metres = (city.coords - city.coords.mean(axis=0)) * (4000 / np.ptp(city.coords, axis=0).max())
    degrees = LocalPlane(longitude, latitude).degrees(metres)
    degrees[:, 0] = (degrees[:, 0] + 180) % 360 - 180
    return hg.Graph.from_scipy(city.adjacency, coords=degrees, crs="lonlat")


@pytest.fixture(scope="module")
def towns():
    """(across the antimeridian, the same town elsewhere)"""
    across, elsewhere = town_at(180.0), town_at(20.0)
    assert np.ptp(across.coords[:, 0]) > 359
    return across, elsewhere


def test_pages_draw_a_small_town(towns):
    across, elsewhere = (planar_places(town)[0] for town in towns)
    assert np.ptp(across, axis=0).max() == pytest.approx(4000, rel=1e-3)
    np.testing.assert_allclose(across, elsewhere, atol=1e-4)
    np.testing.assert_array_equal(drawing_order(towns[0]), drawing_order(towns[1]))


def test_counts_sees_the_same_surroundings(towns):
    np.testing.assert_allclose(plane(towns[0]), plane(towns[1]), atol=1e-6)


def test_plots_have_no_line_across_the_world(towns):
    across, elsewhere = map(places, towns)
    np.testing.assert_allclose(np.ptp(across, axis=0), np.ptp(elsewhere, axis=0), rtol=1e-9)
    assert _aspect(towns[0]) == pytest.approx(_aspect(towns[1]))


def test_generated_signals_are_those_of_the_same_town(towns):
    for make in (hg.smooth_signal, hg.piecewise_constant_signal):
        np.testing.assert_allclose(*(make(town, seed=5) for town in towns), atol=1e-6)


def test_trips_start_in_town(towns):
    across, elsewhere = (hg.datasets.trips(town, n_people=200) for town in towns)
    assert np.abs(across["lon"]).max() <= 180
    np.testing.assert_allclose((across["lon"] - elsewhere["lon"] - 160 + 180) % 360 - 180, 0, atol=1e-9)
    np.testing.assert_allclose(across["lat"], elsewhere["lat"], atol=1e-9)


@pytest.mark.parametrize(("lon", "lat"), [(-74.0, 40.7), (180.0, -17.0), (-180.0, 65.0), (359.9, 51.0), (0.0, 0.0)])
def test_small_distances_are_those_of_the_globe(lon, lat):
    ends = np.array([lon, lat]) + np.random.default_rng(0).normal(0, 0.01, (50, 2))
    flat = planar_coords(ends, "lonlat")
    unit = np.stack(
        [np.cos(np.radians(ends[:, 1])) * f(np.radians(ends[:, 0])) for f in (np.cos, np.sin)] + [np.sin(np.radians(ends[:, 1]))]
    )
    chord = EARTH_RADIUS * np.linalg.norm(unit[:, :, None] - unit[:, None, :], axis=0)
    np.testing.assert_allclose(np.linalg.norm(flat[:, None] - flat[None], axis=2), chord, rtol=2e-3, atol=1e-6)


def test_the_plane_and_back():
    rng = np.random.default_rng(0)
    coords = np.stack([rng.uniform(170, 190, 40), rng.uniform(-80, 80, 40)], axis=1)
    local = LocalPlane.around(coords)
    np.testing.assert_allclose(local.degrees(local.metres(*coords.T)) - coords, [[-360, 0]] * 40, atol=1e-9)
    assert local.turn == pytest.approx(360 * METRES_PER_DEGREE * np.cos(np.radians(coords[:, 1].mean())))
    planar = rng.random((5, 3))
    assert planar_coords(planar, None) is planar
    assert planar_coords(np.empty((0, 2)), "lonlat").shape == (0, 2)
    np.testing.assert_array_equal(planar_coords(np.array([[1.0, 2.0, 30.0], [1.1, 2.0, 40.0]]), "lonlat")[:, 2], [30, 40])


@pytest.mark.parametrize("longitude", [0.0, 100.0, 180.0])
def test_distances_on_the_globe_are_those_of_the_plane(longitude):
    town = town_at(longitude)
    metres = planar_coords(town.coords, "lonlat")
    expected = np.sqrt(((metres[0] - metres) ** 2).sum(axis=1))
    assert great_circle(np.broadcast_to(town.coords[0], town.coords.shape), town.coords) == pytest.approx(expected, rel=1e-3)
    to_middle = np.sqrt(((metres - metres.mean(axis=0)) ** 2).sum(axis=1))
    assert town.covariates()["distance_to_middle"] == pytest.approx(to_middle, abs=5)


def test_distances_between_far_places():
    poles = np.array([[0.0, 90.0], [10.0, -90.0], [0.0, 0.0], [180.0, 0.0]])
    assert great_circle(poles[[0, 2, 0]], poles[[1, 3, 2]]) == pytest.approx(np.pi * EARTH_RADIUS * np.array([1, 1, 0.5]))
    assert middle_of(np.array([[170.0, 10.0], [-170.0, 10.0]]))[0] == pytest.approx([180, 10.15], abs=0.01)
