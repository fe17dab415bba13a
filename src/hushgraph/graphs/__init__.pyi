from .cache import (
    Cache as Cache,
)
from .clusters import (
    block_partition as block_partition,
)
from .component_means import (
    LARGE_COMPONENT as LARGE_COMPONENT,
    MOST_CONSTANTS as MOST_CONSTANTS,
    ComponentMeans as ComponentMeans,
)
from .construction import (
    MAX_NODES as MAX_NODES,
    MERGING as MERGING,
    Duplicates as Duplicates,
    affinities as affinities,
    check_all_given as check_all_given,
    checked_nodes as checked_nodes,
    checked_weights as checked_weights,
    symmetric_rows as symmetric_rows,
)
from .curves import (
    Curves as Curves,
)
from .edge_table import (
    COORDS_HINT as COORDS_HINT,
    ENDS as ENDS,
    LABELS_HINT as LABELS_HINT,
    PLACES as PLACES,
    WEIGHT_HINT as WEIGHT_HINT,
    EdgeTable as EdgeTable,
    Origin as Origin,
    checked_value as checked_value,
    column_of as column_of,
    is_integer as is_integer,
    label_kind as label_kind,
    labels_of as labels_of,
    numbered as numbered,
    text_labels as text_labels,
)
from .graph import (
    Graph as Graph,
    LaplacianKind as LaplacianKind,
    as_graph as as_graph,
)
from .graph_export import (
    signal_columns as signal_columns,
    signal_frame as signal_frame,
    to_geopandas as to_geopandas,
    to_igraph as to_igraph,
    to_networkx as to_networkx,
    to_pyg as to_pyg,
    to_scipy as to_scipy,
    upper_edges as upper_edges,
)
from .graph_import import (
    geopandas_edges as geopandas_edges,
    pyg_signals as pyg_signals,
)
from .labels import (
    by_label as by_label,
    in_form_of as in_form_of,
    in_node_order as in_node_order,
    is_labelled as is_labelled,
    labels_and_values as labels_and_values,
    node_names as node_names,
    pandas_module as pandas_module,
)
from .lattice import (
    Lattice as Lattice,
    lattice_of as lattice_of,
)
from .noisy import (
    Noisy as Noisy,
    refuse_release as refuse_release,
)
from .notebooks import (
    notebook_table as notebook_table,
)
from .orders import (
    depth_first_order as depth_first_order,
)
from .outlines import (
    Outlines as Outlines,
    ZoneFinder as ZoneFinder,
    nearest_turn as nearest_turn,
    signed_area as signed_area,
)
from .place_names import (
    NodeNames as NodeNames,
    attribution_of as attribution_of,
)
from .polygons import (
    CRS_MEMBER as CRS_MEMBER,
    LONLAT as LONLAT,
    crs_of as crs_of,
    features_of as features_of,
    frame_of as frame_of,
    geojson_of as geojson_of,
    layers_of as layers_of,
)
from .projections import (
    lonlat_lines as lonlat_lines,
    lonlat_of as lonlat_of,
    stated_crs as stated_crs,
)
from .protocols import (
    GraphLike as GraphLike,
)
from .regions import (
    Regions as Regions,
    in_rings as in_rings,
    polygon_regions as polygon_regions,
    region_nodes as region_nodes,
)
from .spectrum import (
    PRODUCTS as PRODUCTS,
    REACH as REACH,
    Spectrum as Spectrum,
    largest_eigenvalue as largest_eigenvalue,
    proven_bound as proven_bound,
    signless_quotients as signless_quotients,
)
from .streets import (
    STREET_ATTRIBUTES as STREET_ATTRIBUTES,
    CodedTexts as CodedTexts,
    Streets as Streets,
)
from .zones import (
    TOLERANCE as TOLERANCE,
    zones_table as zones_table,
)

__all__ = [
    "Graph",
    "Noisy",
    "to_networkx",
    "to_igraph",
    "to_scipy",
    "to_geopandas",
    "to_pyg",
    "pyg_signals",
    "block_partition",
    "depth_first_order",
]
