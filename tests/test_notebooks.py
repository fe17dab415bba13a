"""What notebooks show: tables that are well formed, escaped and hold nothing private; figures once; a report in a frame."""

import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

import hushgraph as hg


class Cells(HTMLParser):
    """The texts of a table, and the tags that were not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def texts_of(thing):
    """The texts of what a notebook shows for `thing`."""
    page = thing._repr_html_()
    reader = Cells()
    reader.feed(page)
    assert reader.open == []
    assert "color:#" not in page, "colours are those of the notebook"
    return reader.texts


@pytest.fixture(scope="module")
def town():
    return hg.datasets.city(300)


@pytest.fixture(scope="module")
def noisy(town):
    return hg.hotspot_counts(town, total=3000) + np.random.default_rng(0).normal(0, 5, town.n)


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHGRAPH_STATE", str(tmp_path / "state"))
    return hg.privacy.Ledger.create(
        tmp_path / "budget.db", dataset="<b>trips</b>", unit="person", adjacency="add-remove", epsilon=4, delta=1e-6
    )


def counts_of(graph, value=7):
    return hg.privacy.declare_counts(graph, [value] * graph.n, unit="person", adjacency="add-remove", sensitivity=1)


def test_a_graph_shows_its_size(town):
    assert {"Graph", "300", "2 coordinates"} <= set(texts_of(town))
    assert "0" in texts_of(hg.Graph.from_edges([], n=0))
    assert "one for each node" in texts_of(hg.Graph.from_edges([(0, 1)], labels=["a", "b"]))


def test_a_result_shows_its_method_and_its_error(town, noisy):
    texts = texts_of(hg.denoise(town, noisy, sigma=5, method="let"))
    assert {"let", "5", "300"} <= set(texts)
    texts = texts_of(hg.denoise(town, np.stack([noisy, noisy + 1], axis=1), sigma=np.linspace(4, 5, town.n), method="let"))
    assert {"4 to 5", "300, in each of 2 signals"} <= set(texts)


def test_a_plan_shows_what_it_prints(town):
    plan = hg.privacy.plan_release(town, epsilon=[0.5, 20], adjacency="add-remove", max_nodes=2, max_per_node=1, n_draws=1, after=2)
    texts, printed = texts_of(plan), str(plan)
    rows = [text for text in texts[1:] if text[0].isdigit() or text[0] == "-"]
    assert len(rows) == 2 * 9
    assert all(text in printed for text in rows)
    assert any("2 earlier maps" in text for text in texts)


def test_a_release_shows_its_guarantee_and_escapes_names(town, ledger):
    public = hg.privacy.release(
        counts_of(town), epsilon=1, delta=1e-6, ledger=ledger, public_graph=True, not_protected="<script>drivers</script>"
    )
    texts = texts_of(public)
    assert "<script>drivers</script>" in texts
    assert "<script>" not in public._repr_html_()
    assert "<b>" not in public._repr_html_()


def test_counts_show_nothing(town):
    assert not hasattr(counts_of(town), "_repr_html_")
    assert "7" not in repr(counts_of(town)).replace(town.hash, "")


# ---- figures ------------------------------------------------------------------------------------------------------------


def figures_of(town, noisy):
    """A figure of each function that returns one."""
    frame = hg.chebyshev_frame(town)
    yield hg.plot_maps(town, {"Noisy": noisy})
    yield hg.plot_frame(frame)
    yield hg.plot_scales(frame, noisy)
    yield hg.plot_sure(frame, noisy, sigma=5)
    yield hg.plot_filter(hg.denoise(town, noisy, sigma=5, method="filter"))


def test_pyplot_lets_go_of_a_figure_that_ipython_shows_inline(town, noisy, no_figures, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    for figure in figures_of(town, noisy):
        assert plt.fignum_exists(figure.number), "scripts and the gallery find it in pyplot"
        with pytest.raises(NotImplementedError):
            figure._ipython_display_()
        assert plt.fignum_exists(figure.number), "windows and widgets stay"
        with monkeypatch.context() as patch:
            patch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
            with pytest.raises(NotImplementedError):
                figure._ipython_display_()
        assert not plt.fignum_exists(figure.number)


def test_a_figure_can_still_be_pickled(town, no_figures):
    figure = hg.plot_frame(hg.chebyshev_frame(town))
    assert len(pickle.loads(pickle.dumps(figure)).axes) == len(figure.axes)


def test_a_cell_shows_a_figure_once(tmp_path):
    """In a real kernel: the figure as the value of the cell, and assigned."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    setup = "%matplotlib inline\nimport hushgraph as hg\ngraph = hg.datasets.city(100)\nmaps = {'x': graph.coords[:, 0]}"
    cells = [
        setup,
        "hg.plot_maps(graph, maps)",
        "figure = hg.plot_maps(graph, maps)",
        "figure",
        "hg.plot_graph_signal(graph, maps['x']);",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(notebook, timeout=120).execute(cwd=str(tmp_path))
    pictures = [sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in notebook.cells]
    assert pictures == [0, 1, 1, 1, 1]


# ---- explore ------------------------------------------------------------------------------------------------------------


class Frame(HTMLParser):
    """The attributes of the frame."""

    def handle_starttag(self, tag, attrs):
        assert tag == "iframe"
        self.attributes = dict(attrs)


def page_of(shown):
    reader = Frame()
    reader.feed(shown._repr_html_())
    assert reader.attributes["sandbox"] == "allow-scripts"
    return reader.attributes["srcdoc"]


def test_explore_shows_the_report(town, noisy, tmp_path):
    result = hg.denoise(town, noisy, sigma=5, method="let")
    hg.write_report(tmp_path / "report.html", town, noisy, result, title="A & <B>")
    assert page_of(result.explore(title="A & <B>")) == (tmp_path / "report.html").read_text("utf-8")
    assert "height:200px" in result.explore(height=200)._repr_html_()
    assert repr(result.explore()) == "InlineReport(height=640)"


def test_explore_keeps_columns_labels_and_certificates(town, noisy, ledger):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"mon": noisy, "tue": noisy[::-1]}, index=range(town.n))
    page = page_of(hg.denoise(town, table, sigma=5, method="let").explore())
    assert '"name":"mon"' in page
    public = hg.privacy.release(counts_of(town), epsilon=1, delta=1e-6, ledger=ledger, public_graph=True)
    assert public.certificate["ledger"]["head"] in page_of(hg.denoise(town, public, method="let").explore())
    gaps = noisy.copy()
    gaps[3] = np.nan
    assert "<main>" in page_of(hg.denoise(town, gaps, sigma=5, method="let", missing="drop").explore())


def test_a_result_without_its_signal_cannot_be_explored(town, noisy):
    results = hg.denoise_series(town, [noisy, noisy[::-1]], sigma=5, method="let")
    with pytest.raises(ValueError, match="use write_report"):
        results[0].explore()
