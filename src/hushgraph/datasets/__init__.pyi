from .generated import (
    city as city,
    grid as grid,
    path as path,
    random_geometric as random_geometric,
    roads as roads,
    zones as zones,
)
from .graph_files import (
    read_matrix_market as read_matrix_market,
    read_snap as read_snap,
)
from .maps import (
    Map as Map,
    manhattan as manhattan,
    road_network as road_network,
    san_francisco as san_francisco,
)
from .pickup_files import (
    read_cabspotting as read_cabspotting,
    read_tlc as read_tlc,
)
from .sample_files import (
    SAMPLE_FILES as SAMPLE_FILES,
    SAMPLE_SIGMA as SAMPLE_SIGMA,
    draw_sample as draw_sample,
    write_sample as write_sample,
)
from .signals import (
    bernoulli_signal as bernoulli_signal,
    hotspot_counts as hotspot_counts,
    piecewise_constant_signal as piecewise_constant_signal,
    smooth_signal as smooth_signal,
)
from .sources import (
    DataUnavailable as DataUnavailable,
)
from .trip_events import (
    trips as trips,
)

__all__ = [
    "city",
    "roads",
    "grid",
    "path",
    "random_geometric",
    "zones",
    "trips",
    "bernoulli_signal",
    "hotspot_counts",
    "smooth_signal",
    "piecewise_constant_signal",
    "Map",
    "manhattan",
    "san_francisco",
    "road_network",
    "read_snap",
    "read_matrix_market",
    "read_tlc",
    "read_cabspotting",
    "DataUnavailable",
]
