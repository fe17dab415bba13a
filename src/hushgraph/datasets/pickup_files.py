"""Pickups as their publishers write them: NYC taxi records and San Francisco cab traces.

A file that is truncated or garbled is an error that names the line, but quotes nothing: where people were is private. What a
reader passes over it says in its documentation.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hushgraph._errors import InputError, NoFileError
from hushgraph._extras import extra
from hushgraph._validation import checked_time
from hushgraph.files import existing_file, numbered_lines, parquet_faults

_LON = ("pickup_longitude", "start_lon", "pickup_lon")
_LAT = ("pickup_latitude", "start_lat", "pickup_lat")
_TIME = ("pickup_datetime", "tpep_pickup_datetime", "lpep_pickup_datetime", "trip_pickup_datetime", "time")
_CHUNK = 200_000  # rows
Pickups = dict[str, np.ndarray]


def read_tlc(path: str | Path, *, start: Any = None, end: Any = None) -> Pickups:
    """Return pickups from trip records of the NYC Taxi and Limousine Commission that have coordinates: .csv, .csv.gz or .parquet.

    Columns are known by any spelling of the years 2009 to 2016 (pickup_longitude, Start_Lon, ...), whatever their case and the
    spaces around them. Blank lines are passed over, and trips outside [start, end). No other row is: pickups without a place on
    the globe, or at (0, 0), as meters without a fix write it, stay with NaN as longitude and latitude.

    Parameters
    ----------
    path : str or Path
        The file. It is read in chunks; only the rows between `start` and `end` stay in memory.
    start, end : datetime64 or ISO 8601 text, optional
        First time to keep, and first time to leave out again, in local time as in the file.

    Returns
    -------
    dict of arrays
        "lon", "lat" (degrees) and "time" (datetime64[s], local), in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trips.csv"
    ...     header = "vendor_id, pickup_datetime, pickup_longitude, pickup_latitude\\n"
    ...     _ = path.write_text(header + "CMT,2014-09-24 00:01:02,-73.99,40.73\\n")
    ...     read_tlc(path)["lon"]
    array([-73.99])
    """
    path = existing_file(path, "the trip records")
    ending = path.name.lower()
    if not ending.endswith((".csv", ".csv.gz", ".parquet")):
        msg = f"trip records must end in .csv, .csv.gz or .parquet; got {path.name}; unpack or convert them"
        raise InputError(msg)
    expected = "a time without a time zone, '2014-09-24T00:00', say"
    window = [None if edge is None else checked_time(name, edge, "s", expected) for name, edge in (("start", start), ("end", end))]
    parts: list[Pickups] = [{"lon": np.empty(0), "lat": np.empty(0), "time": np.empty(0, dtype="datetime64[s]")}]
    for part in _parquet_chunks(path) if ending.endswith(".parquet") else _csv_chunks(path):
        keep = np.ones(len(part["time"]), dtype=bool)
        keep &= True if window[0] is None else part["time"] >= window[0]
        keep &= True if window[1] is None else part["time"] < window[1]
        parts.append({key: values[keep] for key, values in part.items()})
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _wanted_columns(path: Path, columns: list[str]) -> list[int]:
    """Return the numbers of the columns with longitude, latitude and time of the pickup."""
    plain = [name.strip().strip("\ufeff").lower() for name in columns]
    found = [[i for i, name in enumerate(plain) if name in names] for names in (_LON, _LAT, _TIME)]
    if all(len(places) == 1 for places in found):
        return [places[0] for places in found]
    if "pulocationid" in plain and not found[0]:
        fault = "has taxi zones instead of coordinates, as most records offered today"
    else:
        fault = f"must have one column each for longitude, latitude and time of the pickup; it has {plain}"
    msg = f"{path} {fault}; find the records as first published, or rename the columns to {_LON[0]}, {_LAT[0]} and {_TIME[0]}"
    raise InputError(msg)


def _csv_chunks(path: Path) -> Iterator[Pickups]:
    rows = csv.reader((line for _, line in numbered_lines(path)), strict=True)
    header = next(_tried(rows, path), None)
    if header is None:
        msg = f"{path} is empty; expected a header and one line per trip"
        raise InputError(msg)
    places, kept, lines = _wanted_columns(path, header), [], []
    for row in _tried(rows, path):
        if len(row) != len(header) and (len(row) < len(header) or any(row[len(header) :])):
            if not any(field.strip() for field in row) and len(row) <= 1:
                continue  # a blank line
            msg = (
                f"line {rows.line_num} of {path} has {len(row)} fields, the header {len(header)}; the file is truncated or garbled"
            )
            raise InputError(msg)
        kept.append([row[i] for i in places])
        lines.append(rows.line_num)
        if len(kept) == _CHUNK:
            yield _from_text(path, kept, lines)
            kept, lines = [], []
    if kept:
        yield _from_text(path, kept, lines)


def _tried(rows: Any, path: Path) -> Iterator[list[str]]:
    try:
        yield from rows
    except csv.Error as fault:
        msg = f"line {rows.line_num} of {path} is no CSV ({fault}); the file is truncated or garbled"
        raise InputError(msg) from fault


def _from_text(path: Path, rows: list[list[str]], lines: list[int]) -> Pickups:
    lon, lat, time = (list(column) for column in zip(*rows, strict=True))
    try:
        east, north = (np.array([text.strip() or "nan" for text in column], dtype=np.float64) for column in (lon, lat))
        times = np.array([text.strip() for text in time], dtype="datetime64[s]")
    except ValueError:
        times = None
    if times is None or np.isnat(times).any():
        raise InputError(_first_bad_row(path, rows, lines))
    return _pickups(east, north, times)


def _first_bad_row(path: Path, rows: list[list[str]], lines: list[int]) -> str:
    for row, line in zip(rows, lines, strict=True):
        for text, what in zip(row, ("longitude", "latitude", "time"), strict=True):
            if not (_is_time(text) if what == "time" else _is_number(text.strip() or "nan")):
                expected = "2014-09-24 00:00:00, say" if what == "time" else "degrees, or nothing"
                return f"line {line} of {path} has a {what} that is none: expected {expected}; the file is garbled"
    return f"{path} cannot be read between lines {lines[0]} and {lines[-1]}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        return not np.isnat(np.datetime64(text.strip(), "s"))
    except ValueError:
        return False


def _parquet_chunks(path: Path) -> Iterator[Pickups]:
    parquet, pyarrow = (extra(module, name="events", purpose="reading parquet") for module in ("pyarrow.parquet", "pyarrow"))
    row, whole = 0, True
    try:
        with parquet.ParquetFile(path) as file:
            names = [file.schema_arrow.names[i] for i in _wanted_columns(path, file.schema_arrow.names)]
            for batch in file.iter_batches(batch_size=_CHUNK, columns=names):
                lon, lat, time = (batch.column(name) for name in names)
                east, north = (column.cast("float64").to_numpy(zero_copy_only=False) for column in (lon, lat))
                times = time.cast(pyarrow.timestamp("us")).to_numpy(zero_copy_only=False).astype("datetime64[s]")
                if np.isnat(times).any():
                    msg = f"row {row + int(np.isnat(times).argmax())} of {path} has no time; expected one for every trip"
                    raise InputError(msg)
                row += batch.num_rows
                yield _pickups(east, north, times)
    except parquet_faults():
        whole = False
    if not whole:  # raised out here since Arrow's own error quotes the file
        msg = f"{path} cannot be read after row {row}: it is truncated, damaged, or holds something else than numbers and times"
        raise InputError(msg)


def _pickups(lon: np.ndarray, lat: np.ndarray, time: np.ndarray) -> Pickups:
    with np.errstate(invalid="ignore"):
        nowhere = ~((np.abs(lon) <= 180) & (np.abs(lat) <= 90)) | ((lon == 0) & (lat == 0))
    return {"lon": np.where(nowhere, np.nan, lon), "lat": np.where(nowhere, np.nan, lat), "time": time}


# ---- cab traces -------------------------------------------------------------------------------------------------------

_PACIFIC_DAYLIGHT = -7 * 3600  # seconds; the traces, of May and June 2008, lie all within summer time


def read_cabspotting(folder: str | Path) -> Pickups:
    """Return pickups from a copy of the CRAWDAD data set epfl/mobility ("cabspotting"): a folder of new_<cab>.txt.

    Each line is a record of a cab: latitude, longitude, occupied (0 or 1), Unix time, newest first. A pickup is where occupied goes
    from 0 to 1 between consecutive records in time, at the place and time of the first occupied record (paper, Sec. V-C2).
    A cab that is occupied in its first record was picked up at an unknown place: no pickup.

    Parameters
    ----------
    folder : str or Path
        Your own copy; CRAWDAD asks users to register. Nothing but new_*.txt is read.

    Returns
    -------
    dict of arrays
        "cab" (text, from the names of the files), "lon", "lat" (degrees) and "time" (datetime64[s], Pacific daylight time), by cab
        and time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "new_abc.txt").write_text("37.75 -122.39 1 1211731320\\n37.76 -122.40 0 1211731260\\n")
    ...     pickups = read_cabspotting(folder)
    >>> pickups["cab"].tolist(), pickups["lat"], pickups["time"]
    (['abc'], array([37.75]), array(['2008-05-25T09:02:00'], dtype='datetime64[s]'))
    """
    files = sorted(Path(folder).glob("new_*.txt"))
    if not files:
        msg = f"{folder} has no files new_*.txt; expected the unpacked folder of the data set epfl/mobility (cabspottingdata)"
        raise NoFileError(msg)
    cabs, found = [], []
    for path in files:
        records = _trace(path)[::-1]  # oldest first, so that records of the same second keep their order
        records = records[np.argsort(records[:, 3], kind="stable")]
        pickup = np.flatnonzero((records[1:, 2] == 1) & (records[:-1, 2] == 0)) + 1
        cabs += [path.stem.removeprefix("new_")] * len(pickup)
        found.append(records[pickup])
    lat, lon, _, seconds = np.concatenate(found).T
    time = (seconds.astype(np.int64) + _PACIFIC_DAYLIGHT).astype("datetime64[s]")
    return {"cab": np.array(cabs, dtype=str), "lon": lon, "lat": lat, "time": time}


def _trace(path: Path) -> np.ndarray:
    """Return the (records, 4) of one cab in the order of the file."""
    records = _number_table(path)
    if records is not None and not records.size:
        return np.empty((0, 4))
    if records is None or records.shape[1] != 4 or not _possible(records).all():
        raise InputError(_first_bad_record(path))
    return records


def _number_table(path: Path) -> np.ndarray | None:
    """Return a table of numbers, with comments after #; None for a file that holds anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".*input contained no data")
            return np.loadtxt((line for _, line in numbered_lines(path)), dtype=np.float64, comments="#", ndmin=2)
    except (ValueError, OverflowError, Warning):
        return None


def _possible(records: np.ndarray) -> np.ndarray:
    lat, lon, occupied, seconds = records.T
    return (np.abs(lat) <= 90) & (np.abs(lon) <= 180) & ((occupied == 0) | (occupied == 1)) & (seconds > 0) & (seconds < 2**40)


def _first_bad_record(path: Path) -> str:
    for number, line in numbered_lines(path):
        fields = line.split()
        values = [float(field) if _is_number(field) else np.nan for field in fields]
        if fields and not (len(fields) == 4 and _possible(np.array([values])).all()):
            got = f"{len(fields)} fields" if len(fields) != 4 else "something else"
            expected = "latitude, longitude, 0 or 1, Unix time"
            return f"line {number} of {path} must be {expected}; got {got}; the file is truncated or garbled"
    return f"{path} cannot be read as the trace of a cab"
