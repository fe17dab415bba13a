"""Run `hushgraph check` on a file of real taxi pickups, as it is and with three mistakes, and print what its owner sees.

    HUSHGRAPH_DATA=folder python docs/tutorials/real_file.py

prints the block of docs/tutorials/before_you_spend.md. The file is nyc_taxi_pickups_2013-11-18_16h.parquet: pickups of New York's yellow
taxis, published by the city, without any id. Coordinates are cut to two digits, so that the page shows no exact place.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hushgraph as hg

PICKUPS = "nyc_taxi_pickups_2013-11-18_16h.parquet"
PLACES = "--lon lon --lat lat --max-distance 200 --assume-bound --max-nodes 1 --max-per-node 1"
HOURS = (
    "--lon lon --lat lat --max-distance 200 --assume-bound --max-cells 1 --max-per-cell 1 "
    "--time time --windows 2013-11-18T16:00/2013-11-18T17:00/30min"
)
Row = tuple[str, str, str]


def swapped(row: Row, _: int) -> Row:
    """Return the row with longitude and latitude exchanged."""
    return row[1], row[0], row[2]


def spreadsheet(row: Row, _: int) -> Row:
    """Return the row with its time as the serial number of a spreadsheet: days since the end of 1899."""
    days = (np.datetime64(row[2], "s") - np.datetime64("1899-12-30", "s")) / np.timedelta64(1, "D")
    return row[0], row[1], f"{days:.8f}"


def half(row: Row, number: int) -> Row:
    """Return the row, every second one without coordinates."""
    return ("", "", row[2]) if number % 2 else row


CASES: list[tuple[str, Callable[[Row, int], Row] | None, str]] = [
    ("as it is", None, HOURS),
    ("lon and lat swapped", swapped, PLACES),
    ("times from a spreadsheet", spreadsheet, HOURS),
    ("half of the coordinates missing", half, HOURS),
]


def main() -> None:
    """Print the command and the output of each case."""
    from pyarrow import parquet

    table = parquet.read_table(Path(os.environ["HUSHGRAPH_DATA"]) / PICKUPS).to_pydict()
    times = np.array(table["time"], dtype="datetime64[s]").astype(str)
    rows = list(zip(map(str, table["pickup_lon"]), map(str, table["pickup_lat"]), times.tolist(), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        hg.write_graph(Path(folder) / "manhattan.npz", hg.datasets.manhattan(allow_download=False).graph)
        for name, change, options in CASES:
            with (Path(folder) / "pickups.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["lon", "lat", "time"])
                writer.writerows(row if change is None else change(row, number) for number, row in enumerate(rows))
            command = f"hushgraph check manhattan.npz pickups.csv {options}"
            arguments = [sys.executable, "-m", "hushgraph", *command.split()[1:]]
            output = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True).stdout
            shortened = re.sub(r"(-?[0-9]+[.][0-9][0-9])[0-9]+", r"\1…", output)
            sys.stdout.write(f"# {name}\n$ {command}\n{shortened}\n")


if __name__ == "__main__":
    main()
