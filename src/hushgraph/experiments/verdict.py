"""What matches the paper and what does not, in words, from the rows of its tables."""

from __future__ import annotations

from hushgraph.experiments import table_nyc, table_sf
from hushgraph.experiments.snr_table import ORACLES, Table, summary


def verdict(found: dict[str, list[dict]]) -> str:
    """The page's first paragraphs; empty without the tables of real data."""
    parts = []
    for module, place in ((table_nyc, "Manhattan"), (table_sf, "San Francisco")):
        rows = found.get(module.NAME)
        if rows and not rows[0]["data"].startswith("a generated"):
            parts.append(_ranking(rows, module.TABLE, place))
    return "\n\n".join(parts)


def _ranking(rows: list[dict], table: Table, place: str) -> str:
    means = {key: value[0] for key, value in summary(rows).items()}
    columns = list(dict.fromkeys((row["mechanism"], row["epsilon"], row["sigma"]) for row in rows))
    methods = [method for method in dict.fromkeys(row["method"] for row in rows) if method != "SNR_in"]
    here = [key for key in columns if means["DFS_MSE", *key] > means["SGWT_MSE", *key]]
    there = [columns[k] for k in range(len(columns)) if table.paper["DFS_MSE"][k] > table.paper["SGWT_MSE"][k]]
    averaged = [key for key in columns if means["DFS_MEAN_SURE", *key] > means["SGWT_MSE", *key]]
    deep = [key for key in columns if means["sgwt_deep", *key] > means["SGWT_MSE", *key]]
    best = {key: max((means[method, *key], method) for method in methods if method not in ORACLES)[1] for key in columns}
    winners = ", ".join(f"`{name}` {list(best.values()).count(name)}" for name in dict.fromkeys(best.values()))
    gap = max(abs(means["SGWT_SURE_MC", *key] - means["SGWT_SURE", *key]) for key in columns)
    miss = {
        method: max(abs(means[method, *key] - value) for key, value in zip(columns, values, strict=True))
        for method, values in table.paper.items()
        if method != "SNR_in"
    }
    off = ", ".join(f"{method} {value:.2f}" for method, value in miss.items())
    total = len(columns)
    return (
        f"**{place}.** The ranking against the DFS fused lasso {'reproduces' if here == there else 'does not fully reproduce'}: its oracle beats the "
        f"oracle of the wavelets {_where(here)}, in the paper {_where(there)}. The mean of 16 depth-first orders, tuned without the truth, beats the "
        f"wavelet oracle in {len(averaged)} of {total} columns, `sgwt_deep` in {len(deep)}. Best without the truth, by columns: {winners}. "
        f"What the paper is about does hold: Monte-Carlo weights and polynomials cost at most {gap:.2f} dB against exact ones. Largest distance "
        f"from the paper's numbers, in dB: {off}; data and streets differ."
    )


def _where(columns: list[tuple]) -> str:
    return (
        "nowhere"
        if not columns
        else "at sigma " + ", ".join(f"{sigma:.2f}" for *_, sigma in sorted(columns, key=lambda key: -key[2]))
    )
