from ._loops import compiler as compiler
from .gpu import (
    OPTIONS as OPTIONS,
    compiled as compiled,
    cupy as cupy,
    current_device as current_device,
)
from .layout import (
    Layout as Layout,
    prepare as prepare,
)
from .string_table import (
    PADDING as PADDING,
    Names as Names,
)
from .sums import (
    BLOCK as BLOCK,
    along_rows as along_rows,
    block_dots as block_dots,
    block_products as block_products,
    block_products_of as block_products_of,
    block_sum as block_sum,
    block_sum_of as block_sum_of,
    blocks as blocks,
    count_units as count_units,
    offset_of as offset_of,
    offsets_of as offsets_of,
    orderless_sum as orderless_sum,
    rowwise_dots as rowwise_dots,
    rowwise_sums as rowwise_sums,
    rowwise_variances as rowwise_variances,
    shifted as shifted,
    sum_of_rows as sum_of_rows,
    sum_of_units as sum_of_units,
    unit_above as unit_above,
)
from .threads import (
    processors as processors,
    thread_count as thread_count,
    use_threads as use_threads,
)
