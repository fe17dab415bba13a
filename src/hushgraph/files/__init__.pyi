from .features import (
    check_feature_file as check_feature_file,
    is_feature_file as is_feature_file,
    write_features as write_features,
)
from .graphs import (
    looks_like_graph as looks_like_graph,
    read_edge_table as read_edge_table,
    read_graph as read_graph,
    write_graph as write_graph,
)
from .npy import (
    ArrayHeader as ArrayHeader,
    array_of as array_of,
    read_array_header as read_array_header,
)
from .npz import read_arrays as read_arrays
from .parquet import (
    end_columns as end_columns,
    parquet_faults as parquet_faults,
)
from .regions import (
    check_region_file as check_region_file,
    read_regions as read_regions,
)
from .signals import (
    read_named_signal as read_named_signal,
    read_signal as read_signal,
    signal_format as signal_format,
    write_rows as write_rows,
    write_signal as write_signal,
)
from .text import (
    BYTE_ORDER_MARK as BYTE_ORDER_MARK,
    existing_file as existing_file,
    numbered_lines as numbered_lines,
)

__all__ = [
    "read_graph",
    "write_graph",
    "read_signal",
    "write_signal",
]
