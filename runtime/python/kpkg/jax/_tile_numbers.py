"""Computes the ops of tile programs on numbers and tiles, in jax.numpy.

Scalars that are known when JAX traces the kernel are Python's numbers, other ones and tiles are arrays. TPUs compute in
32 bits: narrow floats are widened for each op and rounded once, as the tile dialect allows, and indices are int32.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import kpkg.jax._tile_index as _tile_index
from kpkg._errors import KernelError
from kpkg.jax._tile_index import Index
from kpkg.jax._tile_program import Type

_DTYPES = {
    "f32": jnp.float32,
    "bf16": jnp.bfloat16,
    "index": jnp.int32,
    "i1": jnp.bool_,
    "i8": jnp.int8,
    "i16": jnp.int16,
    "i32": jnp.int32,
    "i64": jnp.int32,  # the compiler takes no kernel whose 64-bit integers may need more
}
_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def dtype_of(element: str) -> Any:
    """Returns the dtype of arrays of this element. Raises KernelError for f64, which TPUs do not compute with."""
    if element not in _DTYPES:
        raise KernelError(f"a kernel computes with {element} from memory, which TPUs do not have")
    return _DTYPES[element]


def is_known(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def as_array(value: Any, kind: Type) -> Any:
    """Returns a value as an array of its type."""
    if isinstance(value, Index) or (kind.element == "index" and is_known(value)):
        value = _tile_index.value(value)
    if kind.element == "i64" and is_known(value) and rounded(value, "i32") != value:
        raise KernelError(f"a kernel computes with the number {value}, which needs more than 32 bits")
    array = jnp.asarray(value, dtype_of(kind.element))
    return jnp.broadcast_to(array, kind.shape) if kind.kind == "tile" and array.shape != kind.shape else array


def rounded(value: Any, element: str) -> Any:
    """Returns a known number as one of this element."""
    if element == "f32":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    if element == "bf16":
        return float(np.asarray(value, jnp.bfloat16).astype(np.float32))
    if element == "f64":
        return float(value)
    if element == "i1":
        return bool(value)
    bits = _BITS[element]
    return (int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def constant(attributes: dict[str, Any], kind: Type) -> Any:
    given = attributes["value"]
    value: Any = float.fromhex(given) if isinstance(given, str) else given
    value = bool(value) if kind.element == "i1" else value
    if kind.kind == "tile" and kind.element == "index":
        value = _tile_index.value(value)
    return jnp.full(kind.shape, value, dtype_of(kind.element)) if kind.kind == "tile" else rounded(value, kind.element)


def compute(name: str, attributes: dict[str, Any], operands: list[Any], kinds: list[Type], kind: Type) -> Any:
    """Returns the result of an op element by element, of type `kind`, from operands of types `kinds`."""
    if any(isinstance(operand, Index) for operand in operands) and name in _OF_INDICES and kind.element == "index":
        return _OF_INDICES[name](*operands)
    if all(is_known(operand) for operand in operands):
        return rounded(_known(name, attributes, operands, kinds), kind.element)
    arrays = [_widened(as_array(operand, each)) for operand, each in zip(operands, kinds)]
    if name in _UNSIGNED and kinds[0].element in ("i8", "i16"):
        arrays = [arrays[0] & ((1 << _BITS[kinds[0].element]) - 1)]
    if name in ("arith.cmpi", "arith.cmpf"):
        result = _COMPARED[name](attributes["predicate"], *arrays)
    else:
        result = _OF_ARRAYS[name](*arrays)
    result = _narrowed(name, result, kind.element)
    return Index(result) if kind.kind == "scalar" and kind.element == "index" else result


def _widened(array: Any) -> Any:
    if array.dtype == jnp.bfloat16:
        return array.astype(jnp.float32)
    return array.astype(jnp.int32) if array.dtype in (jnp.int8, jnp.int16) else array


def _narrowed(name: str, result: Any, element: str) -> Any:
    dtype = dtype_of(element)
    if result.dtype == jnp.bool_ and name in ("arith.extsi",):
        return -result.astype(dtype)
    if element == "i1" and result.dtype != jnp.bool_:
        return (result & 1) != 0
    if result.dtype == jnp.float32 and element in ("i8", "i16"):
        result = result.astype(jnp.int32)
    return result.astype(dtype)


def _known(name: str, attributes: dict[str, Any], operands: list[Any], kinds: list[Type]) -> Any:
    """Computes with numbers of the call in float64, or in NumPy's rules where Python raises."""
    if name in ("arith.cmpi", "arith.cmpf"):
        return _COMPARED[name](attributes["predicate"], *(np.asarray(operand)[()] for operand in operands))
    if name in ("arith.floordivsi", "arith.divsi", "arith.remsi", "arith.ceildivsi") and operands[1] == 0:
        raise KernelError("a kernel divides an index by 0")
    if name in _KNOWN:
        return _KNOWN[name](*operands)
    arrays = [jnp.asarray(operand, dtype_of(each.element)) for operand, each in zip(operands, kinds)]
    with jax.ensure_compile_time_eval():
        return _OF_ARRAYS[name](*map(_widened, arrays)).item()


def _divided(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


_KNOWN: dict[str, Callable[..., Any]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": _divided,
    "arith.negf": lambda a: -a,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "arith.remsi": lambda a, b: int(math.fmod(a, b)) if abs(a) < 1 << 53 else a - b * int(a / b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
    "arith.select": lambda condition, a, b: a if condition else b,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
    "arith.extsi": lambda a: -int(a) if isinstance(a, bool) else a,
    "arith.extui": lambda a: int(a) if isinstance(a, bool) or a >= 0 else a & 0xFFFFFFFF,
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: -int(a) if isinstance(a, bool) else a,
    "arith.index_castui": lambda a: int(a) if isinstance(a, bool) or a >= 0 else a & 0xFFFFFFFF,
    "arith.sitofp": lambda a: -float(a) if isinstance(a, bool) else float(a),
    "arith.uitofp": lambda a: float(a if isinstance(a, bool) or a >= 0 else a & 0xFFFFFFFF),
    "arith.fptosi": int,
    "math.sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
}


def _unsigned(array: Any) -> Any:
    """Returns int32 whose signed order is the unsigned order of `array`."""
    return array ^ np.int32(-(1 << 31))


def _compared_integers(predicate: int, a: Any, b: Any) -> Any:
    if predicate >= 6:
        a, b, predicate = _unsigned(a), _unsigned(b), predicate - 4
    if a.dtype == bool and predicate >= 2:
        a, b = a.astype(np.int32), b.astype(np.int32)
    return (
        lambda: a == b,
        lambda: a != b,
        lambda: a < b,
        lambda: a <= b,
        lambda: a > b,
        lambda: a >= b,
    )[predicate]()


def _compared_floats(predicate: int, a: Any, b: Any) -> Any:
    ordered = (a == a) & (b == b)
    truth = (
        lambda: ordered & ~ordered,
        lambda: a == b,
        lambda: a > b,
        lambda: a >= b,
        lambda: a < b,
        lambda: a <= b,
        lambda: (a != b) & ordered,
        lambda: ordered,
        lambda: (a == b) | ~ordered,
        lambda: ~(a <= b),
        lambda: ~(a < b),
        lambda: ~(a >= b),
        lambda: ~(a > b),
        lambda: a != b,
        lambda: ~ordered,
        lambda: ordered | ~ordered,
    )
    return truth[predicate]()


#: Ops that read their operand without a sign.
_UNSIGNED = ("arith.extui", "arith.uitofp", "arith.index_castui")

_COMPARED: dict[str, Callable[..., Any]] = {"arith.cmpi": _compared_integers, "arith.cmpf": _compared_floats}


def _as_float(array: Any) -> Any:
    if array.dtype == jnp.bool_:  # signed: -1
        return -array.astype(jnp.int32).astype(jnp.float32)
    return array.astype(jnp.float32)


def _from_unsigned(array: Any) -> Any:
    if array.dtype == jnp.bool_:
        return array.astype(jnp.int32).astype(jnp.float32)
    return _as_float(array) + jnp.where(array < 0, np.float32(1 << 32), np.float32(0))


_OF_INDICES: dict[str, Callable[..., Any]] = {
    "arith.addi": _tile_index.add,
    "arith.subi": _tile_index.subtract,
    "arith.muli": _tile_index.multiply,
    "arith.floordivsi": _tile_index.floor_divide,
    "arith.ceildivsi": lambda a, b: _tile_index.multiply(_tile_index.floor_divide(_tile_index.multiply(a, -1), b), -1),
    "arith.minsi": _tile_index.minimum,
    "arith.maxsi": _tile_index.maximum,
}

_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "arith.select": lambda condition, a, b: jnp.where(condition, a, b),
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.negf": lambda a: -a,
    "arith.maximumf": jnp.maximum,
    "arith.minimumf": jnp.minimum,
    "arith.maxnumf": lambda a, b: jnp.where(a != a, b, jnp.where(b != b, a, jnp.maximum(a, b))),
    "arith.minnumf": lambda a, b: jnp.where(a != a, b, jnp.where(b != b, a, jnp.minimum(a, b))),
    "arith.addi": lambda a, b: a + b if a.dtype != jnp.bool_ else a ^ b,
    "arith.subi": lambda a, b: a - b if a.dtype != jnp.bool_ else a ^ b,
    "arith.muli": lambda a, b: a * b if a.dtype != jnp.bool_ else a & b,
    "arith.divsi": jax.lax.div,
    "arith.remsi": jax.lax.rem,
    "arith.floordivsi": _tile_index._floor_divide,
    "arith.ceildivsi": lambda a, b: -_tile_index._floor_divide(-a, b),
    "arith.maxsi": jnp.maximum,
    "arith.minsi": jnp.minimum,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": jax.lax.shift_left,
    "arith.shrsi": jax.lax.shift_right_arithmetic,
    "arith.extf": _as_float,
    "arith.truncf": _as_float,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a.astype(jnp.int32),
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: a,
    "arith.index_castui": lambda a: a.astype(jnp.int32),
    "arith.sitofp": _as_float,
    "arith.uitofp": _from_unsigned,
    "arith.fptosi": lambda a: a.astype(jnp.int32),
    "math.absf": jnp.abs,
    "math.ceil": jnp.ceil,
    "math.cos": jnp.cos,
    "math.erf": jax.lax.erf,
    "math.exp": jnp.exp,
    "math.exp2": lambda a: jnp.exp(a * np.float32(math.log(2))),
    "math.floor": jnp.floor,
    "math.fma": lambda a, b, c: a * b + c,
    "math.log": jnp.log,
    "math.log2": lambda a: jnp.log(a) * np.float32(1 / math.log(2)),
    "math.powf": jnp.power,
    "math.rsqrt": jax.lax.rsqrt,
    "math.sin": jnp.sin,
    "math.sqrt": jnp.sqrt,
    "math.tanh": jnp.tanh,
}

#: The ops that `compute` computes.
NAMES = frozenset([*_OF_ARRAYS, *_COMPARED])
