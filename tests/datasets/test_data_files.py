"""Files as their publishers write them are read whole or refused with the number of the line."""

import gzip

import numpy as np
import pytest

from hushgraph import datasets

from ..support.samples import TRIPS_2014


def written(tmp_path, name, text):
    path = tmp_path / name
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") and not isinstance(text, bytes) else content)
    return path


# ---- edge lists -----------------------------------------------------------------------------------------------------

EDGES = "# Undirected graph\n# Nodes: 4 Edges: 7\n# From\tTo\n10\t3\n3\t10\n3\t7\n7 3\n7\t10\n\n25\t10\n7\t7\n"


@pytest.mark.parametrize("name", ["roads.txt", "roads.txt.gz"])
def test_snap_unites_directions_and_drops_loops(tmp_path, name):
    graph = datasets.read_snap(written(tmp_path, name, EDGES))
    assert (graph.n, graph.n_edges, graph.is_unweighted, graph.labels) == (4, 4, True, None)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]


def test_snap_keeps_ids_as_labels(tmp_path):
    graph = datasets.read_snap(written(tmp_path, "a.txt", EDGES), labels=True)
    assert graph.labels.tolist() == [3, 7, 10, 25]
    assert graph.align({25: 4.0, 3: 1.0, 7: 2.0, 10: 3.0}).tolist() == [1, 2, 3, 4]


def test_snap_node_with_only_a_loop_stays(tmp_path):
    graph = datasets.read_snap(written(tmp_path, "a.txt", "5 5\n-2 9 # the only edge\r\n"))
    assert graph.degrees.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2\n2 3\n4\n", "line 3 .*two integer node ids; got '4'"),
        ("# c\n\n1 2\n2 x\n", "line 4 .*got '2 x'"),
        ("1 2 0.5\n2 3 0.5\n", "line 1 "),
        ("1 2\n1 2 3\n", "line 2 "),
        ("1 2\n1.5 2\n", "line 2 "),
        ("1 2\n99999999999999999999 2\n", "line 2 "),
        ("# Nodes: 3 Edges: 3\n1 2\n2 3\n", "says it has 3 edges, but has 2"),
        ("", "no edges"),
        ("# nothing\n\n", "no edges"),
        (b"1 2\n\xff\xfe\n", "cannot be read after line"),
    ],
)
def test_snap_refuses_what_is_not_whole(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        datasets.read_snap(written(tmp_path, "a.txt", text))


def test_snap_refuses_truncated_and_false_gzip(tmp_path):
    whole = gzip.compress("\n".join(f"{i} {i + 1}" for i in range(50_000)).encode())
    with pytest.raises(ValueError, match=r"after line \d\d+: it is truncated"):
        datasets.read_snap(written(tmp_path, "a.txt.gz", whole[: len(whole) // 2]))
    with pytest.raises(ValueError, match="after line 0"):
        datasets.read_snap(written(tmp_path, "b.txt.gz", b"1 2\n"))


def test_files_that_are_not_there(tmp_path):
    for read in (datasets.read_snap, datasets.read_matrix_market, datasets.read_tlc, datasets.read_cabspotting):
        with pytest.raises(FileNotFoundError, match=r"check the path|no files new_"):
            read(tmp_path / "absent.csv")


# ---- Matrix Market --------------------------------------------------------------------------------------------------

BANNER = "%%MatrixMarket matrix coordinate {}\n% comment\n"


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_matrix_market_pattern(tmp_path, name):
    graph = datasets.read_matrix_market(written(tmp_path, name, BANNER.format("pattern symmetric") + "4 4 4\n2 1\n3 2\n3 3\n4 1\n"))
    assert (graph.n, graph.n_edges, graph.is_unweighted) == (4, 3, True)


def test_matrix_market_weights(tmp_path):
    path = written(tmp_path, "a.mtx", BANNER.format("real general") + "3 3 3\n2 1 0.5\n1 2 0.5\n3 2 2\n")
    assert datasets.read_matrix_market(path).adjacency.toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]
    assert datasets.read_matrix_market(path, weighted=False).is_unweighted


def test_matrix_market_directions_that_differ(tmp_path):
    path = written(tmp_path, "a.mtx", BANNER.format("integer general") + "2 2 2\n2 1 3\n1 2 4\n")
    with pytest.raises(ValueError, match="different weights"):
        datasets.read_matrix_market(path)
    assert datasets.read_matrix_market(path, duplicates="max").adjacency[0, 1] == 4
    with pytest.raises(ValueError, match="duplicates"):
        datasets.read_matrix_market(path, duplicates="sum")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Line 1"),
        ("1 2\n", "Line 1"),
        (BANNER.format("real general") + "3 3 2\n2 1 0.5\n", "Truncated file"),
        (BANNER.format("real general") + "3 3 2\n2 1 0.5\n1 x 1\n", "Line 5"),
        (BANNER.format("real general") + "3 3 1\n2 9 0.5\n", "Line 4"),
        (BANNER.format("pattern general") + "3 4 1\n2 1\n", "square"),
        (BANNER.format("complex general") + "3 3 1\n2 1 1 1\n", "real numbers"),
        (BANNER.format("real skew-symmetric") + "3 3 1\n2 1 1\n", "negative"),
    ],
)
def test_matrix_market_refuses_what_is_not_whole(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        datasets.read_matrix_market(written(tmp_path, "a.mtx", text))


def test_matrix_market_refuses_truncated_gzip(tmp_path):
    content = gzip.compress((BANNER.format("pattern symmetric") + "3 3 2\n2 1\n3 2\n").encode())[:-9]
    with pytest.raises(ValueError, match="truncated"):
        datasets.read_matrix_market(written(tmp_path, "a.mtx.gz", content))


# ---- taxi records ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trips.csv", "trips.csv.gz"])
def test_tlc_rows_without_a_place_stay_without_one(tmp_path, name):
    path = written(tmp_path, name, TRIPS_2014)
    assert len(datasets.read_tlc(path)["time"]) == 6
    pickups = datasets.read_tlc(path, start="2014-09-24T00", end="2014-09-24T01")
    np.testing.assert_array_equal(pickups["lon"], [-73.98, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(pickups["lat"], [40.74, np.nan, np.nan, np.nan])
    assert pickups["time"][0] == np.datetime64("2014-09-24T00:00:00")


@pytest.mark.parametrize(
    "header",
    [
        "vendor_name,Trip_Pickup_DateTime,Start_Lon,Start_Lat",
        "\ufeffVendorID,tpep_pickup_datetime,pickup_longitude,pickup_latitude",
        "VendorID,lpep_pickup_datetime,Pickup_longitude,Pickup_latitude",
        "cab,time, pickup_lon ,pickup_lat",
    ],
)
def test_tlc_spellings(tmp_path, header):
    pickups = datasets.read_tlc(written(tmp_path, "a.csv", header + "\nVTS,2009-01-04 02:52:00,-73.99,40.72\n"))
    assert [part.tolist() for part in pickups.values()][:2] == [[-73.99], [40.72]]


HEADER = "id,pickup_datetime,pickup_longitude,pickup_latitude\n"
GOOD = "1,2013-01-01 00:00:00,-73.9,40.7\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + GOOD + "2,2013-01-01 00:0", "line 3 .*has 2 fields, the header 4"),
        (HEADER + GOOD + "\n2,2013-01-01 00:00:00,-73.9,4o.7\n", "line 4 .*has a latitude that is none"),
        (HEADER + GOOD + "2,01/02/2013,-73.9,40.7\n", "line 3 "),
        (HEADER + "2,,-73.9,40.7\n", "line 2 "),
        (HEADER + GOOD[:-1] + ",extra\n", "line 2 .*5 fields"),
        (HEADER + GOOD + '2,"2013-01-01 00:00:00,-73.9,40.7\n', "line 3 .*no CSV"),
        ("", "is empty"),
        ("id,PULocationID,tpep_pickup_datetime\n", "taxi zones"),
        ("a,b\n1,2\n", "one column each"),
        (HEADER.replace("id", "Start_Lon") + GOOD, "one column each"),
        (b"id,pickup_datetime\n\xff\xff", "cannot be read after line"),
    ],
)
def test_tlc_refuses_what_is_not_whole(tmp_path, text, said):
    with pytest.raises(ValueError, match=said) as caught:
        datasets.read_tlc(written(tmp_path, "a.csv", text))
    assert "4o.7" not in str(caught.value)  # where people were is private


def test_tlc_header_alone_is_no_trips(tmp_path):
    assert {key: len(part) for key, part in datasets.read_tlc(written(tmp_path, "a.csv", HEADER)).items()} == {
        "lon": 0,
        "lat": 0,
        "time": 0,
    }


def test_tlc_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="must end in"):
        datasets.read_tlc(written(tmp_path, "a.zip", "x"))
    with pytest.raises(ValueError, match="start must be a time"):
        datasets.read_tlc(written(tmp_path, "a.csv", HEADER), start="noon")


@pytest.mark.parametrize("as_text", [False, True])
def test_tlc_parquet(tmp_path, as_text):
    pandas = pytest.importorskip("pandas")
    times = ["2009-01-04 02:52:00", "2009-01-04 03:31:00"]
    table = pandas.DataFrame({"Trip_Pickup_DateTime": times, "Start_Lon": [-73.99, None], "Start_Lat": [40.72, 40.7]})
    if not as_text:
        table["Trip_Pickup_DateTime"] = pandas.to_datetime(table["Trip_Pickup_DateTime"])
    table.to_parquet(tmp_path / "a.parquet")
    pickups = datasets.read_tlc(tmp_path / "a.parquet")
    np.testing.assert_array_equal(pickups["lon"], [-73.99, np.nan])
    assert pickups["time"].tolist() == np.array(times, dtype="datetime64[s]").tolist()
    assert len(datasets.read_tlc(tmp_path / "a.parquet", start="2009-01-04T03")["lon"]) == 1
    content = (tmp_path / "a.parquet").read_bytes()
    for wrong in (content[: len(content) // 2], b"", b"PAR1 but not PAR1"):
        with pytest.raises(ValueError, match="truncated"):
            datasets.read_tlc(written(tmp_path, "b.parquet", wrong))
    table.assign(Trip_Pickup_DateTime=None).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"row 0 .*no time|something else"):
        datasets.read_tlc(tmp_path / "c.parquet")
    table.assign(Start_Lon="east").to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="something else than numbers") as caught:
        datasets.read_tlc(tmp_path / "d.parquet")
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)  # they would quote the file


# ---- cab traces -----------------------------------------------------------------------------------------------------


def test_cabspotting_pickups_by_hand(tmp_path):
    written(
        tmp_path,
        "new_zoe.txt",
        "37.5 -122.5 1 1211731500\n"  # still occupied
        "37.4 -122.4 1 1211731440\n"  # pickup: free one minute before
        "37.3 -122.3 0 1211731380\n"
        "37.2 -122.2 1 1211731320\n"  # pickup
        "37.1 -122.1 0 1211731260\n"
        "37.0 -122.0 1 1211731200\n",  # occupied when the trace begins: where from is unknown
    )
    written(tmp_path, "new_abe.txt", "37.7 -122.7 0 1211731300\n37.8 -122.8 1 1211731400\n")  # oldest first: time decides
    written(tmp_path, "new_nil.txt", "")
    written(tmp_path, "_cabs.txt", "not a trace")
    pickups = datasets.read_cabspotting(tmp_path)
    assert pickups["cab"].tolist() == ["abe", "zoe", "zoe"]
    assert pickups["lat"].tolist() == [37.8, 37.2, 37.4]
    assert pickups["lon"].tolist() == [-122.8, -122.2, -122.4]
    assert pickups["time"].astype(str).tolist() == ["2008-05-25T09:03:20", "2008-05-25T09:02:00", "2008-05-25T09:04:00"]  # 16 h UTC


def test_cabspotting_same_second_keeps_the_order_of_the_file(tmp_path):
    written(tmp_path, "new_a.txt", "37.2 -122.2 1 1211731320\n37.1 -122.1 0 1211731320\n")  # newest first: 0, then 1
    assert datasets.read_cabspotting(tmp_path)["lat"].tolist() == [37.2]
    written(tmp_path, "new_a.txt", "37.1 -122.1 0 1211731320\n37.2 -122.2 1 1211731320\n")
    assert len(datasets.read_cabspotting(tmp_path)["lat"]) == 0


@pytest.mark.parametrize(
    "bad", ["37.1 -122.1 0", "37.1 -122.1 2 1211731200", "-122.1 37.1 0 1211731200", "a b c d", "37.1 -122.1 0 nan"]
)
def test_cabspotting_refuses_garbled_records(tmp_path, bad):
    written(tmp_path, "new_a.txt", f"37.1 -122.1 1 1211731320\n{bad}\n")
    with pytest.raises(ValueError, match=r"line 2 of .*new_a\.txt must be latitude"):
        datasets.read_cabspotting(tmp_path)
