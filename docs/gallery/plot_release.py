"""
A day of private releases
=========================

Eight maps of three hours each are one release: a person's trips are bounded over the whole day, so the day is charged once.
Everything here is generated, so the true counts can be shown too.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import hushgraph as hg

streets = hg.datasets.city(900)
events = hg.datasets.trips(streets, n_people=9_000)
windows = np.arange("2026-03-02T00", "2026-03-03T01", 3, dtype="datetime64[h]")

counts = hg.privacy.count_events(
    streets,
    events,
    unit="person",
    adjacency="add-remove",
    max_cells=4,  # pairs of a junction and a window
    max_per_cell=1,
    max_distance=200,
    time="time",
    windows=windows,
)

# %%
# The budget is charged before any noise is drawn. ``release.values`` has a row per junction and a column per window.

with tempfile.TemporaryDirectory() as folder:
    ledger = hg.privacy.Ledger.create(
        Path(folder) / "budget.db",
        dataset="a generated day, by hour",
        unit="person",
        adjacency="add-remove",
        epsilon=2.0,
        delta=1e-6,
    )
    release = hg.privacy.release(counts, epsilon=1.0, delta=1e-6, ledger=ledger, public_graph=True)
print(release.values.shape, f"sigma = {release.sigma:.2f}")

# %%
# By default the windows of a release are denoised together: as one signal on streets and time, and each guided by the others, averaged by the
# estimated risk. ``columns="separate"`` denoises them one by one.

together = hg.denoise(streets, release, nonnegative=True)
apart = hg.denoise(streets, release, nonnegative=True, columns="separate")
morning = 2  # 6:00 to 9:00
figure = hg.plot_maps(
    streets,
    {
        "Counts (never published)": counts.counts[:, morning],
        "Released": release.values[:, morning],
        "Denoised, all windows together": together.signal[:, morning],
    },
    label="trips from 6 to 9",
)

# %%
# Compared with the true counts, both leave a fraction of the noise. Neither is better everywhere. Denoising together is better where a window is similar to
# others, denoising one by one where it is not: the empty night is next to the morning rush.

hours = windows[:-1].astype(int) % 24
lines = {
    "released": (release.values, "#6d8cab", "s"),
    "denoised one by one": (apart.signal, "#f2914a", "o"),
    "denoised together": (together.signal, "#7d1150", "^"),
}
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for name, (estimate, colour, marker) in lines.items():
    error = np.sqrt(np.mean((estimate - counts.counts) ** 2, axis=0))
    ax.plot(hours, error, color=colour, marker=marker, label=name)
ax.set(xlabel="window starts at", ylabel="root mean square error", xticks=hours, ylim=(0, 11))
ax.legend(frameon=False, ncols=3, loc="upper center")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The whole town over the day: sums are computed from the noisy release, which is unbiased, with their standard errors.

totals = [release.total(windows=k) for k in range(len(hours))]
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
errors = [2 * total.standard_error for total in totals]
estimates = [total.estimate for total in totals]
ax.bar(hours, estimates, yerr=errors, width=2.4, color="#f4b45a", ecolor="#1c2530", capsize=3)
ax.set(xlabel="window starts at", ylabel="trips counted (± 2 standard errors)", xticks=hours)
ax.spines[["top", "right"]].set_visible(False)
