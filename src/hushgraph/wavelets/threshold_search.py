"""The search for the threshold of least SURE without a full sort: how it works, its steps and its constants; `thresholds` says what SURE is.

Sums over bins bound SURE on each bin from below. Only the few bins that may hold the minimum are divided, first into finer bins and then
into single values. Sums are whole numbers of units, so they do not depend on the order of their terms: threads, a GPU
(`threshold_search_gpu`) and the parts of a graph on many machines give the same sums, and the same threshold, to the bit.

`_loops.least_sure` does all of it for rows in memory. Its steps (`core/thresholds.cpp`) can also be called one by one, for rows in parts:

    scaled_sizes, extremes, lowest_bin, units_of     the sizes that bins and units depend on
    add_to_bins, open_bins, is_cut, places_in_bins   sums over bins, and the bins that may hold the minimum
    add_to_finer, open_cells, cell_numbers           sums over finer bins, and the cells that may hold the minimum
    places_in_cells, least_of_cells                  the values of cells, one by one
"""

from __future__ import annotations

from hushgraph.core import _loops

TINY: float = _loops.TINY  # the least threshold that is not 0: it sets exact zeros to 0 and nothing else
BINS: int = _loops.BINS  # 64 per factor of 2 below the largest value; the lowest bin takes the rest
FINER: int = _loops.FINER  # parts of a bin
WORDS: int = _loops.WORDS
# numbers of a bin: x^2, g, x^2 (edge / z)^2beta, g (edge / z)^beta, each in high and low units; number of values
