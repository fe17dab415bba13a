"""Sentences on what matches the paper and what does not, from the rows of its tables."""

from __future__ import annotations

from hushgraph.experiments import table_nyc, table_sf
from hushgraph.experiments.output import is_generated
from hushgraph.experiments.snr_table import ORDERS, Table, best_methods, paired, summary

CLOSE = 0.15  # dB between Monte-Carlo and exact weights that still count as the same


def verdict(tables: dict[str, list[dict]]) -> str:
    """Return the first paragraphs of the page, one per table of real data."""
    places = ((table_nyc, "Manhattan"), (table_sf, "San Francisco"))
    real = [(module, place) for module, place in places if tables.get(module.NAME) and not is_generated(tables[module.NAME])]
    return "\n\n".join(_ranking(tables[module.NAME], module.TABLE, place) for module, place in real)


def _ranking(rows: list[dict], table: Table, place: str) -> str:
    means = {key: value[0] for key, value in summary(rows).items()}
    columns = list(dict.fromkeys((row["mechanism"], row["epsilon"], row["sigma"]) for row in rows))
    wins_here = _wins(rows, columns, "DFS_MSE", "SGWT_MSE")
    ties = [key for key in columns if key not in wins_here and key not in _wins(rows, columns, "SGWT_MSE", "DFS_MSE")]
    wins_in_paper = [columns[k] for k in range(len(columns)) if table.paper["DFS_MSE"][k] > table.paper["SGWT_MSE"][k]]
    above = {method: len(_wins(rows, columns, method, "SGWT_MSE")) for method in ("DFS_MEAN_SURE", "sgwt_deep")}
    firsts = [best_methods(rows, key)[0] for key in columns]
    winners = ", ".join(f"`{name}` {firsts.count(name)}" for name in dict.fromkeys(firsts))
    gap = max(abs(means["SGWT_SURE_MC", *key] - means["SGWT_SURE", *key]) for key in columns)
    off = ", ".join(
        f"{method} {max(abs(means[method, *key] - value) for key, value in zip(columns, values, strict=True)):.2f}"
        for method, values in table.paper.items()
        if method != "SNR_in"
    )
    tied = f" (no difference beyond two standard errors {_where(ties)})" if ties else ""
    return (
        f"**{place}.** The ranking against the DFS fused lasso {'reproduces' if wins_here == wins_in_paper else 'does not fully reproduce'}: its oracle beats "
        f"that of the wavelets {_where(wins_here)}{tied}; in the paper {_where(wins_in_paper)}. The mean of {ORDERS} depth-first orders, tuned without the truth, "
        f"beats the wavelet oracle in {above['DFS_MEAN_SURE']} of {len(columns)} columns, `sgwt_deep` in {above['sgwt_deep']}. Best without the truth, "
        f"by columns: {winners}. Monte-Carlo weights and polynomials against exact ones, which is what the paper is about: "
        f"{'the same' if gap <= CLOSE else 'different'}, at most {gap:.2f} dB apart. Largest distance from the paper's numbers, in dB: {off}."
    )


def _wins(rows: list[dict], columns: list[tuple], one: str, other: str) -> list[tuple]:
    """Return the columns in which one method is better by more than two standard errors, pair by pair."""
    differences = {key: paired(rows, key, one, other) for key in columns}
    return [key for key, (mean, error) in differences.items() if mean > 2 * error]


def _where(columns: list[tuple]) -> str:
    return (
        "nowhere"
        if not columns
        else "at sigma " + ", ".join(f"{sigma:.2f}" for *_, sigma in sorted(columns, key=lambda key: -key[2]))
    )
