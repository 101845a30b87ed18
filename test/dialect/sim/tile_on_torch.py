"""Computes the ops of a tile kernel with PyTorch: an implementation that shares no code with the interpreter.

Values are tensors; scalars have rank 0; `index` is int64. Attribute numbers are those of the dialect's enums.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import torch

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
}


def scalar(value: int) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.int64)


def tiles(*counts: torch.Tensor):
    for coordinates in itertools.product(*(range(max(0, int(count))) for count in counts)):
        yield tuple(scalar(c) for c in coordinates)


class View:
    """A part of a one-dimensional buffer, with bounds. The first write to scratch memory makes its buffer."""

    def __init__(
        self, buffer: torch.Tensor | None, offset: int, shape: list[int], strides: list[int], exists: bool = True
    ):
        self.buffer, self.offset, self.shape, self.strides, self.exists = buffer, offset, shape, strides, exists

    def drop(self, dims: list[int], indices: list[int]) -> View:
        exists, offset = self.exists, self.offset
        for dim, index in zip(dims, indices, strict=True):
            exists = exists and 0 <= index < self.shape[dim]
            offset += index * self.strides[dim]
        kept = [d for d in range(len(self.shape)) if d not in dims]
        return View(self.buffer, offset, [self.shape[d] for d in kept], [self.strides[d] for d in kept], exists)

    def slice(self, dim: int, begin: int, end: int) -> View:
        begin = min(max(begin, 0), self.shape[dim])
        end = min(max(end, begin), self.shape[dim])
        shape = [end - begin if d == dim else extent for d, extent in enumerate(self.shape)]
        return View(self.buffer, self.offset + begin * self.strides[dim], shape, self.strides, self.exists)

    def places(self, coordinates: list[torch.Tensor], shape: list[int], mask: torch.Tensor | None = None):
        """Returns positions in the buffer, and which of them exist."""
        position = torch.full(shape, self.offset, dtype=torch.int64)
        inside = torch.full(shape, self.exists, dtype=torch.bool)
        for coordinate, extent, stride in zip(coordinates, self.shape, self.strides, strict=True):
            position = position + coordinate * stride
            inside = inside & (coordinate >= 0) & (coordinate < extent)
        if mask is not None:
            inside = inside & mask
        return position, inside

    def window(self, offsets: list[torch.Tensor], shape: list[int]):
        axes = []
        for d, offset in enumerate(offsets):
            line = [1] * len(shape)
            line[d] = shape[d]
            axes.append((torch.arange(shape[d]) + offset).reshape(line))
        return self.places(axes, shape)

    def read(self, places, fill: torch.Tensor) -> torch.Tensor:
        position, inside = places
        # float8 has no indexing on the CPU, so bytes are moved.
        wide = self.buffer.float() if self.buffer.dtype in (torch.float8_e4m3fn, torch.float8_e5m2) else self.buffer
        value = wide[torch.where(inside, position, 0)]
        return torch.where(inside, value, fill.to(wide.dtype)).to(self.buffer.dtype)

    def write(self, places, value: torch.Tensor) -> None:
        position, inside = places
        if self.buffer is None:
            self.buffer = torch.zeros(math.prod(self.shape), dtype=value.dtype)
        if self.buffer.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            self.buffer.view(torch.uint8)[position[inside]] = value.contiguous().view(torch.uint8)[inside]
        else:
            self.buffer[position[inside]] = value[inside]


UNSIGNED = {torch.int8: np.uint8, torch.int16: np.uint16, torch.int32: np.uint32, torch.int64: np.uint64}


def unsigned(function, *operands: torch.Tensor) -> torch.Tensor:
    """Applies a numpy function to the operands read as unsigned."""
    arrays = [np.asarray(x.numpy()).view(UNSIGNED[x.dtype]) for x in operands]
    result = np.asarray(function(*arrays))
    if result.dtype == np.bool_:
        return torch.from_numpy(result)
    return torch.from_numpy(result.astype(arrays[0].dtype).view(operands[0].numpy().dtype))


def fma(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    if a.dtype == torch.float64:

        def exact(x, y, z):
            if not np.isfinite([x, y, z]).all():
                return x * y + z
            total = Fraction(x) * Fraction(y) + Fraction(z)
            return float(total) if total else x * y + z

        return torch.from_numpy(np.asarray(np.vectorize(exact, otypes=["f8"])(a.numpy(), b.numpy(), c.numpy())))
    wide = [np.asarray(x.float().numpy()).astype(np.longdouble) for x in (a, b, c)]
    return torch.from_numpy(np.asarray((wide[0] * wide[1] + wide[2]).astype(np.float32))).to(a.dtype)


def round_away(x: torch.Tensor) -> torch.Tensor:
    whole = torch.trunc(x)
    return torch.where((x - whole).abs() >= 0.5, whole + torch.sign(x), whole)


def in_f32(function):
    """Computes narrow floats in f32 and rounds them once."""
    return lambda x: function(x if x.dtype == torch.float64 else x.float()).to(x.dtype)


def sqrt(x: torch.Tensor) -> torch.Tensor:
    """Replaces PyTorch's function, which is up to 1 ulp off where it calls MKL."""
    return torch.from_numpy(np.asarray(np.sqrt(x.numpy())))


def to_unsigned_float(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype == torch.bool:
        return x.to(dtype)
    array = np.asarray(x.numpy()).view(UNSIGNED[x.dtype])
    return torch.from_numpy(np.asarray(array.astype(np.float64 if dtype == torch.float64 else np.float32))).to(dtype)


def to_unsigned_integer(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    array = np.asarray(x.double().numpy())
    return torch.from_numpy(np.asarray(array.astype(UNSIGNED[dtype]))).view(dtype) if array.ndim else x.to(dtype)


def extend_unsigned(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if x.dtype == torch.bool:
        return x.to(dtype)
    return torch.from_numpy(np.asarray(np.asarray(x.numpy()).view(UNSIGNED[x.dtype]).astype(np.int64))).to(dtype)


def narrow(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Converts values beyond the largest float8_e4m3fn to NaN, where PyTorch saturates."""
    result = x.to(dtype)
    if dtype == torch.float8_e4m3fn:
        result = torch.where(x.double().abs() > 464, torch.nan, result.float()).to(dtype)
    return result


# A signed i1 is 0 or -1; the generator does not use it.
COMPARE_FLOAT = [
    lambda a, b: torch.zeros_like(a, dtype=torch.bool), torch.eq, torch.gt, torch.ge, torch.lt, torch.le,
    lambda a, b: (a != b) & ~torch.isnan(a) & ~torch.isnan(b), lambda a, b: ~(torch.isnan(a) | torch.isnan(b)),
    lambda a, b: (a == b) | torch.isnan(a) | torch.isnan(b), lambda a, b: ~(a <= b), lambda a, b: ~(a < b),
    lambda a, b: ~(a >= b), lambda a, b: ~(a > b), torch.ne, lambda a, b: torch.isnan(a) | torch.isnan(b),
    lambda a, b: torch.ones_like(a, dtype=torch.bool),
]  # fmt: skip
COMPARE_INTEGER = [
    torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge,
    *(lambda a, b, f=f: unsigned(f, a, b) for f in (np.less, np.less_equal, np.greater, np.greater_equal)),
]  # fmt: skip


def sequential(x: torch.Tensor, axis: int, function) -> torch.Tensor:
    parts = x.split(1, axis)
    total = parts[0]
    for part in parts[1:]:
        total = function(total, part)
    return total


def reduce(x: torch.Tensor, kind: int, axis: int) -> torch.Tensor:
    if kind in (0, 1) and x.is_floating_point():
        wide = x if x.dtype == torch.float64 else x.float()
        return (wide.sum if kind == 0 else wide.prod)(axis, keepdim=True).to(x.dtype)
    functions = [
        torch.add, torch.mul, torch.maximum, torch.minimum, lambda a, b: unsigned(np.maximum, a, b),
        lambda a, b: unsigned(np.minimum, a, b), torch.bitwise_and, torch.bitwise_or,
    ]  # fmt: skip
    return sequential(x, axis, functions[kind])


def arg_reduce(x: torch.Tensor, kind: int, axis: int) -> torch.Tensor:
    array = x.float().numpy() if x.dtype in (torch.bfloat16, torch.float16) else x.numpy()
    if kind >= 2:
        array = array.view(UNSIGNED[x.dtype])
    # numpy returns the first extreme, and the first NaN before any other value.
    index = (np.argmax if kind % 2 == 0 else np.argmin)(array, axis=axis)
    return torch.from_numpy(np.expand_dims(index, axis).astype(np.int64))


def dot(lhs: torch.Tensor, rhs: torch.Tensor, accumulator: torch.Tensor) -> torch.Tensor:
    return accumulator + lhs.to(accumulator.dtype) @ rhs.to(accumulator.dtype)


def combine(operands, axis: int, function, outputs):
    inputs, inits = operands[: len(outputs)], operands[len(outputs) :]
    total = tuple(init.expand_as(x.select(axis, 0)) for x, init in zip(inputs, inits, strict=True))
    for k in range(inputs[0].shape[axis]):
        total = function(*total, *(x.select(axis, k) for x in inputs))
    return [value.unsqueeze(axis) for value in total]


def scan(inputs, axis: int, function):
    total = tuple(x.select(axis, 0) for x in inputs)
    lines = [total]
    for k in range(1, inputs[0].shape[axis]):
        total = function(*total, *(x.select(axis, k) for x in inputs))
        lines.append(total)
    return [torch.stack(line, axis) for line in zip(*lines, strict=True)]


ELEMENTWISE = {
    "arith.addi": torch.add, "arith.subi": torch.sub, "arith.muli": torch.mul, "arith.andi": torch.bitwise_and,
    "arith.ori": torch.bitwise_or, "arith.xori": torch.bitwise_xor, "arith.maxsi": torch.maximum,
    "arith.minsi": torch.minimum, "arith.maxui": lambda a, b: unsigned(np.maximum, a, b),
    "arith.minui": lambda a, b: unsigned(np.minimum, a, b),
    "arith.divsi": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "arith.floordivsi": lambda a, b: torch.div(a, b, rounding_mode="floor"), "arith.remsi": torch.fmod,
    "arith.divui": lambda a, b: unsigned(np.floor_divide, a, b), "arith.remui": lambda a,
    b: unsigned(np.remainder, a, b),
    "arith.shli": torch.bitwise_left_shift, "arith.shrsi": torch.bitwise_right_shift,
    "arith.shrui": lambda a, b: unsigned(np.right_shift, a, b),
    "arith.addf": torch.add, "arith.subf": torch.sub, "arith.mulf": torch.mul, "arith.divf": torch.div,
    "arith.maximumf": torch.maximum, "arith.minimumf": torch.minimum, "arith.negf": torch.neg,
    "arith.select": torch.where, "math.fma": fma, "math.absf": torch.abs, "math.exp": in_f32(torch.exp),
    "math.exp2": in_f32(torch.exp2), "math.log": in_f32(torch.log), "math.log2": in_f32(torch.log2),
    "math.sqrt": in_f32(sqrt), "math.rsqrt": in_f32(torch.rsqrt), "math.tanh": in_f32(torch.tanh),
    "math.erf": in_f32(torch.erf), "math.sin": in_f32(torch.sin), "math.cos": in_f32(torch.cos),
    "math.floor": torch.floor, "math.ceil": torch.ceil, "math.trunc": torch.trunc, "math.roundeven": torch.round,
    "math.round": round_away,
}  # fmt: skip
CONVERT = {
    "arith.extf": torch.Tensor.to, "arith.truncf": narrow, "arith.sitofp": torch.Tensor.to,
    "arith.fptosi": torch.Tensor.to, "arith.extsi": torch.Tensor.to, "arith.trunci": torch.Tensor.to,
    "arith.index_cast": torch.Tensor.to, "arith.uitofp": to_unsigned_float, "arith.fptoui": to_unsigned_integer,
    "arith.extui": extend_unsigned,
}  # fmt: skip


FLOATS_OF_4_BITS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def unpack(words, attributes, dtype):
    """Returns the fields of words, the lowest bits first."""
    bits = attributes["bits"]
    sign = 1 << bits - 1
    fields = (words.long().unsqueeze(-1) >> torch.arange(0, 8 * words.element_size(), bits)) & ((1 << bits) - 1)
    if "isFloat" in attributes:
        return FLOATS_OF_4_BITS[fields].to(dtype)
    return ((fields ^ sign) - sign if "isSigned" in attributes else fields).to(torch.int8)


def run(name, operands, results, attributes, extra=None):
    """Runs one op and returns a tuple of its results."""
    if function := ELEMENTWISE.get(name):
        return (function(*operands),)
    dtype, shape = (DTYPES[results[0][0]], results[0][1]) if results and results[0] else (None, None)
    if function := CONVERT.get(name):
        return (function(operands[0], dtype),)
    first = operands[0] if operands else None
    axis = attributes.get("axis")
    match name:
        case "arith.constant":
            value = attributes["value"]
            if dtype == torch.bool:
                value = [bool(v) for v in value] if isinstance(value, list) else bool(value)
            tile = torch.tensor(value, dtype=dtype)
            return (tile.expand(shape) if shape and tile.numel() == 1 else tile.reshape(shape or []),)
        case "arith.cmpf":
            return (COMPARE_FLOAT[attributes["predicate"]](*operands),)
        case "arith.cmpi":
            return (COMPARE_INTEGER[attributes["predicate"]](*operands),)
        case "tile.block_id" | "tile.grid_dim":
            return (scalar(extra[axis]),)
        case "tile.dim":
            return (scalar(first.shape[attributes["dimension"]]),)
        case "tile.stride":
            return (scalar(first.strides[attributes["dimension"]]),)
        case "tile.scratch":
            extents = list(attributes["shape"])
            strides = [math.prod(extents[d + 1 :]) for d in range(len(extents))]
            return (View(None, 0, extents, strides),)
        case "tile.slice":
            return (first.slice(attributes["dimension"], int(operands[1]), int(operands[2])),)
        case "tile.drop":
            return (first.drop(attributes["dims"], [int(i) for i in operands[1:]]),)
        case "tile.load":
            return (first.read(first.window(operands[1:-1], shape or []), operands[-1]),)
        case "tile.store":
            value, view = operands[:2]
            view.write(view.window(operands[2:], list(value.shape)), value)
            return ()
        case "tile.gather":
            rank = len(first.shape)
            mask = operands[rank + 2] if len(operands) > rank + 2 else None
            return (first.read(first.places(operands[1 : rank + 1], shape, mask), operands[rank + 1]),)
        case "tile.scatter":
            value, view = operands[:2]
            rank = len(view.shape)
            mask = operands[rank + 2] if len(operands) > rank + 2 else None
            view.write(view.places(operands[2 : rank + 2], list(value.shape), mask), value)
            return ()
        case "tile.splat" | "tile.broadcast":
            return (first.expand(shape),)
        case "tile.iota":
            return (torch.arange(shape[0]),)
        case "tile.reshape":
            return (first.reshape(shape),)
        case "tile.scalar":
            return (first.reshape(()),)
        case "tile.permute":
            return (first.permute(attributes["permutation"]),)
        case "tile.extract":
            for d, (offset, step, size) in enumerate(
                zip(attributes["offsets"], attributes["steps"], shape, strict=True)
            ):
                first = first.index_select(d, offset + step * torch.arange(size))
            return (first,)
        case "tile.join":
            return (torch.cat(operands, axis),)
        case "tile.unpack":
            return (unpack(first, attributes, dtype).reshape(shape),)
        case "tile.reduce":
            return (reduce(first, attributes["kind"], axis),)
        case "tile.arg_reduce":
            return (arg_reduce(first, attributes["kind"], axis),)
        case "tile.dot":
            return (dot(*operands),)
        case "tile.combine":
            return combine(operands, axis, extra, results)
        case "tile.scan":
            return scan(operands, axis, extra)
    raise NotImplementedError(name)
