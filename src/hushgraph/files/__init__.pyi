from .graphs import (
    read_edge_table as read_edge_table,
    read_graph as read_graph,
    write_graph as write_graph,
)
from .parquet import (
    end_columns as end_columns,
)
from .signals import (
    read_named_signal as read_named_signal,
    read_signal as read_signal,
    signal_format as signal_format,
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
