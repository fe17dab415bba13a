"""Frames are tight: exact ones to rounding, polynomial ones by the defect they state, which vanishes at the known rates."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

import hushgraph as hg
from hushgraph.graphs.graph import Graph

from ..support.strategies import LAPLACIANS, PLATEAUS, SYMMETRIC, graphs, signal_on

DEGREES = (25, 35, 50, 71, 100, 141, 200, 283, 400)


def rebuilt(frame, x):
    return hg.synthesize(frame, hg.analyze(frame, x))


def operator_norm_of_the_error(frame):
    """Largest ||W*W x - x|| / ||x||, for a symmetric Laplacian."""
    identity = np.eye(frame.graph.n)
    return np.linalg.norm(rebuilt(frame, identity) - identity, 2)


def spectrum_points(upper, count=60_001):
    """Dense on [0, upper] as Chebyshev points are, with the breakpoints of the bands of base 2."""
    breakpoints = 2.0 ** np.arange(-1, np.ceil(np.log2(upper)))
    return np.sort(np.concatenate([upper / 2 * (1 - np.cos(np.linspace(0, np.pi, count))), breakpoints]))


def true_defect(frame):
    total = np.sum(frame.filters(spectrum_points(frame.lambda_upper)) ** 2, axis=0)
    return max(1 - total.min(), total.max() - 1)


@pytest.fixture(scope="module")
def city():
    return hg.datasets.city(2000)


# ---- exact frames -------------------------------------------------------------------------------------------------


@given(graph=graphs(), laplacian=st.sampled_from(LAPLACIANS), plateau=st.sampled_from(PLATEAUS), low_scales=st.integers(0, 3))
def test_exact_frame_reconstructs(graph, laplacian, plateau, low_scales):
    frame = hg.exact_frame(graph, laplacian=laplacian, plateau=plateau, low_scales=low_scales)
    x = signal_on(graph)
    assert np.linalg.norm(rebuilt(frame, x) - x) <= 1e-12 * np.linalg.norm(x)


@given(graph=graphs(), laplacian=st.sampled_from(SYMMETRIC), base=st.sampled_from([1.5, 2.0, 3.0]))
def test_exact_frame_keeps_the_energy(graph, laplacian, base):
    frame = hg.exact_frame(graph, laplacian=laplacian, base=base)
    x = signal_on(graph)
    assert np.sum(hg.analyze(frame, x) ** 2) == pytest.approx(np.sum(x**2), rel=1e-12)
    assert max(abs(bound - 1) for bound in frame.bounds) <= 1e-13
    assert abs(frame.tightness_defect) <= 1e-13


@given(graph=graphs())
def test_exact_frame_keeps_the_null_space_in_the_lowest_band(graph):
    """An eigenvalue computed as -1e-15 must not lose the constants of a component."""
    frame = hg.exact_frame(graph)
    bands = hg.analyze(frame, graph.components + 1.0)
    np.testing.assert_allclose(bands[0], graph.components + 1.0, rtol=1e-7)  # sqrt(psi) turns rounding 1e-15 into 3e-8
    np.testing.assert_allclose(hg.synthesize(frame, bands), graph.components + 1.0, rtol=1e-12)


# ---- the stated defect --------------------------------------------------------------------------------------------


@given(
    graph=graphs(max_nodes=40),
    laplacian=st.sampled_from(SYMMETRIC),
    plateau=st.sampled_from(PLATEAUS),
    damping=st.sampled_from([None, "jackson"]),
    degree=st.integers(1, 120),
)
def test_reconstruction_error_is_at_most_the_stated_defect(graph, laplacian, plateau, damping, degree):
    frame = hg.chebyshev_frame(graph, degree=degree, damping=damping, plateau=plateau, laplacian=laplacian)
    assert operator_norm_of_the_error(frame) <= frame.tightness_defect + 1e-12


@given(graph=graphs(max_nodes=40), damping=st.sampled_from([None, "jackson"]), degree=st.integers(1, 120))
def test_energy_stays_within_the_stated_bounds(graph, damping, degree):
    frame = hg.chebyshev_frame(graph, degree=degree, damping=damping)
    gram = rebuilt(frame, np.eye(graph.n))
    eigenvalues = np.linalg.eigvalsh((gram + gram.T) / 2)
    assert frame.bounds[0] - 1e-12 <= eigenvalues[0]
    assert eigenvalues[-1] <= frame.bounds[1] + 1e-12
    assert frame.tightness_defect == max(1 - frame.bounds[0], frame.bounds[1] - 1)


@given(graph=graphs(max_nodes=40), degree=st.integers(1, 120))
def test_random_walk_error_is_at_most_the_stated_defect_in_the_norm_of_the_degrees(graph, degree):
    frame = hg.chebyshev_frame(graph, degree=degree, laplacian="random_walk")
    root, x = graph.root_degrees, signal_on(graph)
    assert np.linalg.norm(root * (rebuilt(frame, x) - x)) <= (frame.tightness_defect + 1e-12) * np.linalg.norm(root * x)


def frame_with_the_worst_eigenvalue(**options):
    """One edge sets the interval, another has its eigenvalue 2 w where the polynomials miss most."""
    heavy = hg.chebyshev_frame(Graph.from_edges([(0, 1), (2, 3)], weights=[4.2, 1.0]), rescale=False, **options)
    x = spectrum_points(heavy.lambda_upper)
    worst = x[np.argmax(np.abs(np.sum(heavy.filters(x) ** 2, axis=0) - 1))]
    return hg.chebyshev_frame(Graph.from_edges([(0, 1), (2, 3)], weights=[4.2, worst / 2]), rescale=False, **options)


def test_reconstruction_error_at_the_worst_eigenvalue_is_at_most_the_stated_defect():
    excess = {}
    for plateau, damping, degree in itertools.product(PLATEAUS, [None, "jackson"], [5, 12, 20, 60]):
        frame = frame_with_the_worst_eigenvalue(plateau=plateau, damping=damping, degree=degree)
        excess[plateau, damping, degree] = operator_norm_of_the_error(frame) / frame.tightness_defect - 1
    worst = max(excess, key=excess.get)
    assert excess[worst] <= 1e-12, f"the defect is exceeded by {excess[worst]:.2%} for {worst}"


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("damping", [None, "jackson"])
@pytest.mark.parametrize("degree", [30, 100, 300])
def test_stated_defect_is_not_exaggerated(city, plateau, damping, degree):
    frame = hg.chebyshev_frame(city, degree=degree, plateau=plateau, damping=damping)
    assert frame.tightness_defect <= 1.05 * true_defect(frame)


def test_without_edges_the_frame_is_the_identity():
    graph = Graph.from_edges([], n=4)
    x = signal_on(graph)
    for frame in (hg.chebyshev_frame(graph), hg.exact_frame(graph)):
        assert frame.n_scales == 1
        np.testing.assert_allclose(hg.analyze(frame, x), x[None], rtol=0, atol=1e-14)
        assert frame.tightness_defect <= 1e-13


# ---- the degree ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plateau", PLATEAUS)
@pytest.mark.parametrize("damping", [None, "jackson"])
def test_automatic_degree_reaches_its_goal_and_is_not_much_larger_than_needed(city, plateau, damping):
    frame = hg.chebyshev_frame(city, degree="auto", plateau=plateau, damping=damping)
    assert true_defect(frame) <= 1.02 * 1e-2
    assert frame.tightness_defect <= 1e-2
    shorter = range(frame.degree - max(1, frame.degree // 10), frame.degree)
    defects = [hg.chebyshev_frame(city, degree=k, plateau=plateau, damping=damping).tightness_defect for k in shorter[:3]]
    assert max(defects) > 1e-2


@pytest.mark.parametrize("tightness", [0.1, 1e-4, 1e-6])
def test_automatic_degree_follows_the_tightness_asked_for(city, tightness):
    frame = hg.chebyshev_frame(city, degree="auto", damping=None, plateau="meyer", tightness=tightness)
    assert tightness / 30 < frame.tightness_defect <= tightness


def test_impossible_tightness_names_smoother_plateaus(city):
    with pytest.raises(ValueError, match=r"no degree up to 2000 reaches tightness 1e-09 .* smoother plateau \('c3' or 'meyer'\)"):
        hg.chebyshev_frame(city, degree="auto", damping=None, plateau="linear", tightness=1e-9)


def test_impossible_tightness_of_the_smoothest_plateau_names_no_rougher_one(city):
    with pytest.raises(ValueError, match="damping=None") as error:
        hg.chebyshev_frame(city, degree="auto", damping="jackson", plateau="meyer", tightness=1e-6)
    assert "c3" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"degree": 0}, "degree must be an integer"),
        ({"degree": 10.0}, "degree must be an integer"),
        ({"degree": "auto", "tightness": 0.0}, "tightness must be between 0 and 1"),
        ({"damping": "lanczos"}, "damping must be one of None, 'jackson'"),
        ({"plateau": "flat"}, "plateau must be one of"),
        ({"low_scales": -1}, "low_scales must be an integer"),
        ({"n_scales": 99}, "n_scales must be an integer from 1 to"),
        ({"n_scales": 0}, "n_scales must be an integer from 1 to"),
        ({"base": 1.0}, "base must be a finite number above 1"),
        ({"laplacian": "signless"}, "laplacian must be one of"),
    ],
)
def test_bad_frames_are_refused_with_a_reason(city, options, text):
    with pytest.raises(ValueError, match=text):
        hg.chebyshev_frame(city, **options)


@given(graph=graphs(), n_scales=st.integers(1, 3), laplacian=st.sampled_from(SYMMETRIC))
def test_fewer_scales_are_as_tight(graph, n_scales, laplacian):
    n_scales = min(n_scales, hg.exact_frame(graph, laplacian=laplacian).n_scales)
    frame = hg.exact_frame(graph, laplacian=laplacian, n_scales=n_scales)
    x = signal_on(graph)
    assert hg.analyze(frame, x).shape == (n_scales, graph.n)
    assert np.linalg.norm(rebuilt(frame, x) - x) <= 1e-12 * np.linalg.norm(x)


# ---- the unit of the weights --------------------------------------------------------------------------------------


@given(graph=graphs(), power=st.integers(-30, 30))
def test_unit_of_the_weights_does_not_matter(graph, power):
    if graph.is_unweighted:
        return
    scaled = Graph.from_scipy(graph.adjacency * 2.0**power)
    if scaled.is_unweighted:
        return
    x = signal_on(graph)
    one, other = hg.analyze(hg.chebyshev_frame(graph), x), hg.analyze(hg.chebyshev_frame(scaled), x)
    assert one.shape == other.shape
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-11 * np.abs(one).max())


@given(graph=graphs())
def test_rescaling_brings_weighted_graphs_to_mean_degree_three(graph):
    frame, plain = hg.chebyshev_frame(graph), hg.chebyshev_frame(graph, rescale=False)
    assert plain.unit == 1
    if graph.is_unweighted:
        assert frame.unit == 1
    else:
        assert frame.unit * graph.degrees.mean() == pytest.approx(3.0, rel=1e-12)
    assert frame.lambda_max == pytest.approx(frame.unit * graph.lambda_max, rel=1e-12)


# ---- convergence to the exact frame -------------------------------------------------------------------------------


@functools.cache
def filter_errors(plateau, damping):
    """Largest |rho_j^K - sqrt(psi_j)| over the interval, and the tightness defect, for each of DEGREES."""
    graph = hg.datasets.city(2000)
    frames = [hg.chebyshev_frame(graph, degree=k, plateau=plateau, damping=damping) for k in DEGREES]
    x = spectrum_points(frames[0].lambda_upper, 20_001)
    exact = frames[0].bands.filters(x)
    return [np.abs(frame.filters(x) - exact).max() for frame in frames], [frame.tightness_defect for frame in frames]


def order_of(errors):
    """p of the least-squares fit errors = C K^-p."""
    return -np.polyfit(np.log(DEGREES), np.log(errors), 1)[0]


@pytest.mark.parametrize("damping", [None, "jackson"])
def test_polynomials_of_the_linear_plateau_converge_with_order_one_half(damping):
    """sqrt(psi_j) leaves 0 like a square root, and damping does not change that."""
    assert order_of(filter_errors("linear", damping)[0]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("plateau", "order"), [("c3", 2), ("meyer", 4)])
def test_polynomials_of_smoother_plateaus_converge_with_higher_order(plateau, order):
    """sqrt(psi_j) leaves 0 like u^2 (c3) and u^4 (meyer)."""
    assert order_of(filter_errors(plateau, None)[0]) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize(("plateau", "order"), [("linear", 1), ("c3", 3), ("meyer", 5)])
def test_defect_vanishes_one_or_half_an_order_faster_than_the_error(plateau, order):
    assert order_of(filter_errors(plateau, None)[1]) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("plateau", PLATEAUS)
def test_jackson_damping_limits_the_order_to_two(plateau):
    assert order_of(filter_errors(plateau, "jackson")[0]) < 2


def test_jackson_is_less_tight_than_plain_chebyshev():
    at_100 = DEGREES.index(100)
    plain, damped = filter_errors("linear", None)[1][at_100], filter_errors("linear", "jackson")[1][at_100]
    assert 0.05 < damped < 0.11
    assert 0.01 < plain < 0.03
    assert damped > 2 * plain


@pytest.mark.parametrize(("plateau", "defect"), [("linear", 8.6e-3), ("c3", 1.4e-4), ("meyer", 1e-5)])
def test_defect_of_degree_200(plateau, defect):
    """To half an order of magnitude: it depends on the interval."""
    assert abs(np.log10(filter_errors(plateau, None)[1][DEGREES.index(200)] / defect)) < 0.5


@given(graph=graphs(max_nodes=40), plateau=st.sampled_from(["c3", "meyer"]), laplacian=st.sampled_from(SYMMETRIC))
def test_transforms_converge_to_those_of_the_exact_frame(graph, plateau, laplacian):
    """No further apart than the filters are, and that gets small."""
    exact = hg.exact_frame(graph, plateau=plateau, laplacian=laplacian)
    x = signal_on(graph)
    distances = []
    for degree in (50, 400):
        frame = hg.chebyshev_frame(graph, plateau=plateau, laplacian=laplacian, degree=degree, damping=None)
        assert frame.bands == exact.bands
        difference = frame.filters(exact.eigenvalues) - exact.filters(exact.eigenvalues)
        distances.append(np.linalg.norm(hg.analyze(frame, x) - hg.analyze(exact, x)))
        assert distances[-1] <= (np.sqrt(np.sum(difference**2, axis=0)).max() + 1e-12) * np.linalg.norm(x)
    assert distances[1] <= 0.1 * distances[0] + 1e-12 * np.linalg.norm(x)
