"""The threshold of least SURE without a full sort: sums over bins bound SURE on each bin from below, and only the few bins that may
hold the minimum are looked into, in finer bins and then value by value. `threshold` says what SURE is.

Sums are whole numbers of units, so they do not depend on the order of their terms: threads, a GPU (`device_thresholds`) and the parts
of a graph on many machines add up to the same, and so does the threshold, to the bit.

All of it is one call, `_loops.least_sure`, for rows in memory. Its steps (`core/thresholds.cpp`) are there one by one for rows in parts:

    scaled_sizes, extremes, lowest_bin, units_of     what bins and units are made of
    add_to_bins, open_bins, is_cut, places_in_bins   sums over bins, and the bins that may hold the minimum
    add_to_finer, open_cells, cell_numbers           sums over finer bins, and the cells that may hold it
    places_in_cells, least_of_cells                  the values of cells, one by one
"""

from __future__ import annotations

from hushgraph.core import _loops

TINY: float = _loops.TINY  # the least threshold that is not 0: it takes exact zeros and nothing else
BINS: int = _loops.BINS  # 64 per factor of 2 below the largest value; the lowest bin takes the rest
FINER: int = _loops.FINER  # into which a bin is cut
WORDS: int = _loops.WORDS  # of a bin: x^2, g, x^2 (edge / z)^2beta, g (edge / z)^beta, each in high and low units; number of values
