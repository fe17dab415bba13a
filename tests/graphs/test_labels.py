"""Values that have labels go by label, whatever package they are from, and come back in their own form; the rest is refused in a sentence."""

import types
from collections import ChainMap, UserDict

import numpy as np
import pytest

import hushgraph as hg

LABELS = [f"n{i}" for i in range(36)]
SHUFFLED = np.random.default_rng(1).permutation(36)
Y = np.repeat([0.0, 9.0], 18) + np.random.default_rng(0).normal(0, 1, 36)
NAMES = [LABELS[i] for i in SHUFFLED]


@pytest.fixture(scope="module")
def graph():
    return hg.Graph.from_scipy(hg.datasets.grid(6, 6).adjacency, labels=LABELS)


@pytest.fixture(scope="module")
def expected(graph):
    return hg.denoise(graph, Y, sigma=1.0, method="sgwt_sure")


def denoised(graph, noisy):
    return hg.denoise(graph, noisy, sigma=1.0, method="sgwt_sure")


# ---- mappings and pandas --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [dict, types.MappingProxyType, ChainMap, UserDict])
def test_a_mapping_in_a_dict_out(graph, expected, form):
    noisy = form(dict(zip(NAMES, Y[SHUFFLED], strict=True)))
    result = denoised(graph, noisy)
    assert type(result.signal) is dict
    assert list(result.signal) == list(noisy)
    assert result.signal == dict(zip(noisy, expected.signal[[LABELS.index(name) for name in noisy]], strict=True))
    assert list(result.expected_error()) == list(noisy)
    assert hg.to_networkx(graph, signals=noisy).nodes["n7"]["signal"] == Y[7]
    assert hg.to_networkx(graph, signals=form({"f": noisy})).nodes["n7"]["f"] == Y[7]


def test_sigma_goes_by_label_too(graph):
    sigma = np.linspace(0.5, 2, 36)
    noisy, levels = (types.MappingProxyType(dict(zip(NAMES, part[SHUFFLED], strict=True))) for part in (Y, sigma))
    result = hg.denoise(graph, noisy, sigma=levels, method="sgwt_sure").signal
    np.testing.assert_array_equal([result[name] for name in LABELS], hg.denoise(graph, Y, sigma=sigma, method="sgwt_sure").signal)


def test_pandas_goes_by_its_index(graph, expected):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": Y[SHUFFLED], "b": 2 * Y[SHUFFLED]}, index=NAMES)
    result = denoised(graph, frame).signal
    assert (result.index.tolist(), result.columns.tolist()) == (NAMES, ["a", "b"])
    np.testing.assert_array_equal(result.loc[LABELS, "a"], expected.signal)
    series = denoised(graph, frame["a"].rename("map")).signal
    assert series.name == "map"
    np.testing.assert_array_equal(series[LABELS], expected.signal)


@pytest.mark.parametrize("labels", [None, LABELS])
def test_a_column_of_nodes_is_no_signal(graph, labels):
    pandas = pytest.importorskip("pandas")
    graph = hg.Graph.from_scipy(graph.adjacency, labels=labels)
    frame = pandas.DataFrame({"node": hg.graphs.node_names(graph), "value": Y})
    with pytest.raises(ValueError, match=r"matched by its index, .* pass signal\.set_index\('node'\)"):
        graph.align(frame)
    np.testing.assert_array_equal(graph.align(frame.set_index("node"))[:, 0], Y)


# ---- polars ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [True, False])
def test_polars_goes_by_its_column_of_nodes(graph, expected, numbers):
    polars = pytest.importorskip("polars")
    graph = hg.Graph.from_scipy(graph.adjacency, labels=None if numbers else LABELS)
    frame = polars.DataFrame({"node": SHUFFLED if numbers else NAMES, "value": Y[SHUFFLED]})
    result = denoised(graph, frame)
    assert isinstance(result.signal, polars.DataFrame)
    assert result.signal["node"].to_list() == frame["node"].to_list()
    np.testing.assert_array_equal(result.signal["value"].to_numpy(), expected.signal[SHUFFLED])
    assert result.expected_error().columns == ["node", "value"]
    assert result.to_series().index.tolist() == frame["node"].to_list()


def test_polars_without_nodes(graph):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"osmid": range(36), "value": Y})
    for wrong in (frame, frame.select("value")):
        with pytest.raises(ValueError, match=r"is a DataFrame with . columns; expected one that is called 'node'"):
            graph.align(wrong)
    with pytest.raises(TypeError, match=r"pass signal\.collect\(\)"):
        graph.align(frame.lazy())
    np.testing.assert_array_equal(graph.align(frame["value"]), Y)
    result = hg.denoise(graph, frame["value"], sigma=1.0)
    assert isinstance(result.signal, polars.Series)
    assert result.signal.name == "value"
    np.testing.assert_array_equal(result.signal.to_numpy(), hg.denoise(graph, Y, sigma=1.0).signal)
    gaps = polars.Series([None, *Y[1:].tolist()])
    assert np.isnan(graph.align(gaps, missing_ok=True)).tolist() == [True] + [False] * 35


def test_a_table_of_one_column_is_one_signal(graph):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    levels = np.linspace(0.5, 2, 36)
    expected = hg.denoise(graph, Y, sigma=levels, method="sgwt_sure").signal
    placed = hg.Graph.from_scipy(graph.adjacency, labels=LABELS, coords=hg.datasets.grid(6, 6).coords)
    frame = polars.DataFrame({"node": NAMES, "value": levels[SHUFFLED]})
    for sigma in (frame, frame.to_arrow(), pandas.DataFrame({"value": levels[SHUFFLED]}, index=NAMES)):
        np.testing.assert_array_equal(hg.denoise(graph, Y, sigma=sigma, method="sgwt_sure").signal, expected)
        assert hg.to_networkx(graph, signals={"f": sigma}).nodes["n7"]["f"] == levels[7]
        figure = hg.plot_maps(placed, {"noisy": sigma})
        assert figure.axes[0].get_title(loc="left") == "noisy" or figure.axes[0].get_title() == "noisy"


def test_two_columns_that_may_name_the_nodes_are_refused(graph):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"node": NAMES, "id": range(36), "value": Y})
    with pytest.raises(ValueError, match="several columns that may name the nodes: 'node', 'id'; drop all but one"):
        graph.align(frame)
    with pytest.raises(ValueError, match="one that is called 'node' or 'id' or 'label' or '__index_level_0__'"):
        graph.align(frame.select("value"))


# ---- pyarrow --------------------------------------------------------------------------------------------------------


def test_pyarrow_arrays_go_by_position(graph, expected):
    arrow = pytest.importorskip("pyarrow")
    for values in (arrow.array(Y), arrow.chunked_array([Y[:5], Y[5:]])):
        np.testing.assert_array_equal(denoised(graph, values).signal, expected.signal)
    gaps = arrow.array([None, *Y[1:].tolist()])
    assert np.isnan(graph.align(gaps, missing_ok=True)).tolist() == [True] + [False] * 35
    with pytest.raises(ValueError, match="NaN or infinite"):
        graph.align(gaps)
    with pytest.raises(TypeError, match="signal must hold real numbers"):
        graph.align(arrow.array(LABELS))


def test_pyarrow_tables_go_by_their_column_of_nodes(graph, expected):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"value": Y[SHUFFLED], "node": NAMES})
    result = denoised(graph, table).signal
    assert isinstance(result, arrow.Table)
    assert result["node"].to_pylist() == NAMES
    np.testing.assert_array_equal(result["value"].to_numpy(), expected.signal[SHUFFLED])
    with pytest.raises(ValueError, match="is a Table with 1 columns; expected one that is called 'node'"):
        graph.align(table.select(["value"]))


def test_tables_that_pandas_made_for_pyarrow(graph):
    arrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    table = arrow.Table.from_pandas(pandas.DataFrame({"value": Y[SHUFFLED]}, index=NAMES))
    np.testing.assert_array_equal(graph.align(table)[:, 0], Y)


# ---- xarray ---------------------------------------------------------------------------------------------------------


def test_data_arrays_go_by_label(graph, expected):
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(Y[SHUFFLED], dims="junction", coords={"junction": NAMES}, name="map")
    result = denoised(graph, array).signal
    assert isinstance(result, xarray.DataArray)
    assert (result.dims, result.name, result.junction.values.tolist()) == (("junction",), "map", NAMES)
    np.testing.assert_array_equal(result.sel(junction=LABELS), expected.signal)
    with pytest.raises(ValueError, match="labels of signal and graph differ"):
        graph.align(array.assign_coords(junction=[f"x{i}" for i in range(36)]))


def test_the_dimension_of_nodes_may_be_any(graph, expected):
    xarray = pytest.importorskip("xarray")
    both = np.stack([Y[SHUFFLED], 2 * Y[SHUFFLED]])
    array = xarray.DataArray(both, dims=("hour", "node"), coords={"node": NAMES, "hour": [7, 8]})
    result = denoised(graph, array)
    assert result.signal.dims == ("hour", "node")
    np.testing.assert_array_equal(result.signal.sel(node=LABELS, hour=7), expected.signal)
    assert result.expected_error().dims == ("hour", "node")
    assert result.to_series().shape == (36, 2)


def test_a_coordinate_called_node_names_the_nodes(graph, expected):
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(Y[SHUFFLED], dims="i", coords={"node": ("i", NAMES)})
    result = denoised(graph, array).signal
    np.testing.assert_array_equal(result.set_index(i="node").sel(i=LABELS), expected.signal)
    both = xarray.DataArray(np.stack([Y[SHUFFLED]] * 2), dims=("hour", "i"), coords={"node": ("i", NAMES), "i": range(36)})
    np.testing.assert_array_equal(graph.align(both)[:, 1], Y)
    assert graph.align(xarray.DataArray(Y, dims="i", coords={"node": 7})).tolist() == Y.tolist()  # of the whole array, no label


def test_data_arrays_without_labels_go_by_position(graph, expected):
    xarray = pytest.importorskip("xarray")
    result = denoised(graph, xarray.DataArray(Y, dims="node"))
    np.testing.assert_array_equal(result.signal.values, expected.signal)
    np.testing.assert_array_equal(result.to_series()[LABELS], expected.signal)


def test_pandas_to_xarray(graph, expected):
    pytest.importorskip("xarray")
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(Y[SHUFFLED], index=NAMES)
    np.testing.assert_array_equal(denoised(graph, series.to_xarray()).signal.sel(index=LABELS), expected.signal)
    with pytest.raises(TypeError, match=r"Dataset of 1 variables; pass one of them"):
        graph.align(series.rename("map").to_frame().to_xarray())


# ---- everywhere -----------------------------------------------------------------------------------------------------


def test_truth_and_estimate_are_compared_by_label():
    ordered, shuffled = dict(zip(LABELS, Y, strict=True)), dict(zip(NAMES, Y[SHUFFLED], strict=True))
    assert hg.mse(ordered, types.MappingProxyType(ordered)) == 0
    with pytest.raises(ValueError, match="different labels"):
        hg.mse(ordered, shuffled)


def test_other_entrances(graph):
    noisy = UserDict(zip(NAMES, Y[SHUFFLED], strict=True))
    frame = hg.chebyshev_frame(graph, degree=20)
    np.testing.assert_array_equal(hg.analyze(frame, noisy), hg.analyze(frame, Y))
    smooth = hg.graph_tv(graph, noisy, penalty=1.0).signal
    assert list(smooth) == list(noisy)
