from .fitted_filter import (
    plot_filter as plot_filter,
)
from .frames import (
    plot_frame as plot_frame,
    plot_partition as plot_partition,
    plot_scales as plot_scales,
    plot_sure as plot_sure,
)
from .maps import (
    plot_error as plot_error,
    plot_graph_signal as plot_graph_signal,
    plot_maps as plot_maps,
)
from .report.inline import (
    InlineReport as InlineReport,
    inline_report as inline_report,
)
from .report.packing import (
    INTERVAL_HALF_WIDTH as INTERVAL_HALF_WIDTH,
    MAP_FOLDER as MAP_FOLDER,
    MAP_SCRIPTS as MAP_SCRIPTS,
    checked_metres as checked_metres,
    drawing_order as drawing_order,
    pack_graph as pack_graph,
    pack_interval as pack_interval,
    pack_values as pack_values,
    planar_places as planar_places,
)
from .report.page import (
    write_report as write_report,
)
from .report.text import (
    window_texts as window_texts,
)
from .style import (
    COLOURS as COLOURS,
    INK as INK,
    QUIET as QUIET,
    figure_style as figure_style,
    pyplot as pyplot,
)

__all__ = [
    "plot_graph_signal",
    "plot_maps",
    "plot_error",
    "plot_partition",
    "plot_frame",
    "plot_scales",
    "plot_sure",
    "plot_filter",
    "write_report",
]
