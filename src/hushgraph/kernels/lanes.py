"""Four numbers at once inside Numba: LLVM vectors as a Numba type, for kernels that run several signals side by side.

`get` and `put` read and write row i of an array that holds `len(lanes)` signals interleaved: plain numbers for one lane,
vectors for WIDTH lanes, which must lie next to each other. Vectors add, subtract, and multiply with a number or each other, lane by
lane and with the same rounding, so the same code serves both and gives the same bits.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 4
ONE, ALL = (0,), (0,) * WIDTH  # lanes are told apart by the length of a tuple, which the compiler knows


class Lanes(types.Type):
    """WIDTH numbers of one dtype."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.dtype).get_value_type(), WIDTH))


def get(array, row, lanes):
    """Row `row` of the array: a number, or WIDTH of them."""
    raise NotImplementedError


def put(array, row, value, lanes):
    """Write what `get` reads."""
    raise NotImplementedError


def part(array, start, stop):
    """array[start:stop], or None if there is no array."""
    raise NotImplementedError


@overload(part)
def _part(array, start, stop):
    if isinstance(array, types.NoneType):
        return lambda array, start, stop: None
    return lambda array, start, stop: array[start:stop]


@overload(get, inline="always")
def _get(array, row, lanes):
    if len(lanes) == 1:
        return lambda array, row, lanes: array[row]
    return lambda array, row, lanes: _load(array, row * WIDTH)


@overload(put, inline="always")
def _put(array, row, value, lanes):
    if len(lanes) == 1:

        def put_number(array, row, value, lanes):
            array[row] = value

        return put_number
    return lambda array, row, value, lanes: _store(array, row * WIDTH, value)


def _pointer(context, builder, array_type, array, position):
    data = context.make_array(array_type)(context, builder, array).data
    vector = ir.VectorType(context.get_value_type(array_type.dtype), WIDTH)
    return builder.bitcast(builder.gep(data, [position]), vector.as_pointer()), array_type.dtype.bitwidth // 8


@intrinsic
def _load(typingctx, array, position):
    def code(context, builder, signature, args):
        pointer, align = _pointer(context, builder, signature.args[0], *args)
        value = builder.load(pointer)
        value.align = align
        return value

    return Lanes(array.dtype)(array, types.uint64), code


@intrinsic
def _store(typingctx, array, position, value):
    def code(context, builder, signature, args):
        pointer, align = _pointer(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], pointer).align = align
        return context.get_dummy_value()

    return types.void(array, types.uint64, value), code


@intrinsic
def total(typingctx, value):
    """(a + b) + (c + d) of the four numbers."""

    def code(context, builder, signature, args):
        a, b, c, d = (builder.extract_element(args[0], ir.Constant(ir.IntType(32), lane)) for lane in range(WIDTH))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return value.dtype(value), code


@intrinsic
def _spread(typingctx, number):
    """The same number in every lane."""

    def code(context, builder, signature, args):
        index = ir.IntType(32)
        nothing = ir.Constant(ir.VectorType(args[0].type, WIDTH), ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(index, 0))
        return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(index, WIDTH), [0] * WIDTH))

    return Lanes(number)(number), code


def _lane_by_lane(instruction):
    @intrinsic
    def operation(typingctx, a, b):
        return a(a, b), lambda context, builder, signature, args: getattr(builder, instruction)(*args)

    return operation


_add, _subtract, _multiply = (_lane_by_lane(instruction) for instruction in ("fadd", "fsub", "fmul"))


@overload(operator.add)
def _plus(a, b):
    if isinstance(a, Lanes) and a == b:
        return lambda a, b: _add(a, b)
    return None


@overload(operator.sub)
def _minus(a, b):
    if isinstance(a, Lanes) and a == b:
        return lambda a, b: _subtract(a, b)
    return None


@overload(operator.mul)
def _times(a, b):
    if isinstance(b, Lanes) and a == b.dtype:
        return lambda a, b: _multiply(_spread(a), b)
    if isinstance(a, Lanes) and a == b:
        return lambda a, b: _multiply(a, b)
    return None
