"""
A release in a notebook
=======================

What a notebook shows: graphs, plans, releases and results as tables, a report to explore in the output of a cell, a bar while it computes; and
a cell that releases can be run again without being charged again. Download this page as a notebook below.
"""

import tempfile
import warnings
from pathlib import Path

import hushgraph as hg

streets = hg.datasets.city(700)  # public
streets

# %%
# What an epsilon buys, before any data is looked at.

hg.privacy.plan_release(
    streets,
    epsilon=[0.5, 1, 2],
    adjacency="add-remove",
    max_nodes=4,
    max_per_node=1,
    expected_total=6000,
)

# %%
# Counting. ``progress=True`` shows a bar. The counts themselves are private, and a notebook shows nothing of them.

events = hg.datasets.trips(streets, n_people=6_000)  # private
counts = hg.privacy.count_events(
    streets,
    events,
    unit="person",
    adjacency="add-remove",
    max_nodes=4,
    max_per_node=1,
    max_distance=200,
    progress=True,
)
counts

# %%
# The budget is charged for a release. With a name, the release is kept beside the ledger.

folder = tempfile.TemporaryDirectory()  # in place of a folder of yours
ledger = hg.privacy.Ledger.create(
    Path(folder.name) / "budget.db",
    dataset="a generated day",
    unit="person",
    adjacency="add-remove",
    epsilon=2.0,
    delta=1e-6,
)
terms = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger, "public_graph": True}
release = hg.privacy.release(counts, **terms, name="2 March")
release

# %%
# The same cell again: the same release, and nothing is charged. It says so in a warning.

with warnings.catch_warnings(record=True) as messages:
    warnings.simplefilter("always")
    again = hg.privacy.release(counts, **terms, name="2 March")
print((again.values == release.values).all(), f"{ledger.spent:.3g} of {ledger.epsilon:g} spent")
print(*str(messages[0].message).split(": "), sep="\n")

# %%
# A result is a table, too.

result = hg.denoise(streets, release, nonnegative=True, progress=True)
result

# %%
# ``explore`` shows the report of a result: maps to pan and zoom, expected errors, and the certificate of the release.

result.explore(title="Trips of a generated day", height=700)

# %%
# Figures are shown once, as the value of a cell or assigned to a name.

hg.plot_maps(streets, {"Released": release.values, "Denoised": result.signal}, label="trips")

# %%
folder.cleanup()
