"""Computes with indices while JAX traces a kernel: known ones as Python's integers, others with what is known of them.

Tiles of a TPU's memory begin at multiples of its tiling. So an index that depends on the block keeps the number that
divides it, and its bounds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

_LEAST, _MOST = -(1 << 62), 1 << 62
_FAR = 1 << 30


@dataclasses.dataclass(frozen=True)
class Index:
    """An index that is known when the kernel runs: an int32 scalar, a divisor of it, and inclusive bounds."""

    value: Any
    divisor: int = 1
    low: int = _LEAST
    high: int = _MOST


#: An index. Integers are known when JAX traces the kernel.
AnyIndex = int | Index


def divisor(index: AnyIndex) -> int:
    """Returns a number that divides the index; 0 for 0, which every number divides."""
    return abs(index) if isinstance(index, int) else index.divisor


def bounds(index: AnyIndex) -> tuple[int, int]:
    """Returns the least and the largest value."""
    return (index, index) if isinstance(index, int) else (index.low, index.high)


def value(index: AnyIndex) -> Any:
    """Returns the index as an int32 scalar of JAX. Tensors have less than 2^30 elements. An index beyond them becomes
    2^30 or -2^30: it stays beyond them, and sums with it do not overflow."""
    return jnp.int32(min(max(index, -_FAR), _FAR)) if isinstance(index, int) else index.value


def add(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    if b == 0:
        return a
    (low, high), (low_b, high_b) = bounds(a), bounds(b)
    return _made(value(a) + value(b), math.gcd(divisor(a), divisor(b)), low + low_b, high + high_b)


def subtract(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    return add(a, multiply(b, -1)) if b != 0 else a


def multiply(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    if b == 1:
        return a
    ends = [x * y for x in bounds(a) for y in bounds(b)]
    return _made(value(a) * value(b), divisor(a) * divisor(b), min(ends), max(ends))


def floor_divide(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    if isinstance(b, int) and b != 0:
        if isinstance(a, int):
            return a // b
        if b == 1:
            return a
        low, high = sorted((a.low // b, a.high // b))
        known = a.divisor // abs(b) if a.divisor % abs(b) == 0 else 1
        return _made(_floor_divide(a.value, jnp.int32(b)), known, low, high)
    return _made(_floor_divide(value(a), value(b)), 1, _LEAST, _MOST)


def _floor_divide(a: Any, b: Any) -> Any:
    quotient = jax.lax.div(a, b)
    rest = a - quotient * b
    return jnp.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)


def minimum(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    return _extreme(a, b, jnp.minimum, min)


def maximum(a: AnyIndex, b: AnyIndex) -> AnyIndex:
    return _extreme(a, b, jnp.maximum, max)


def _extreme(a: AnyIndex, b: AnyIndex, of_arrays: Any, of_numbers: Any) -> AnyIndex:
    (low, high), (low_b, high_b) = bounds(a), bounds(b)
    if isinstance(a, int) and isinstance(b, int):
        return int(of_numbers(a, b))
    if high <= low_b:  # one of them is the result, whatever the block
        return a if of_numbers is min else b
    if high_b <= low:
        return b if of_numbers is min else a
    known = math.gcd(divisor(a), divisor(b))
    return _made(of_arrays(value(a), value(b)), known, of_numbers(low, low_b), of_numbers(high, high_b))


def counted(number: Any, count: int | None, first: AnyIndex = 0, step: AnyIndex = 1) -> AnyIndex:
    """Returns `first + number * step` for a number from 0 to `count` - 1; None if the count is not known."""
    most = _MOST if count is None else max(count - 1, 0)
    return add(first, multiply(_made(number, 1, 0, most), step))


def _made(value: Any, divisor: int, low: int, high: int) -> AnyIndex:
    if low == high:
        return low
    if low >= _FAR or high <= -_FAR:
        value = jnp.int32(_FAR if low >= _FAR else -_FAR)
    return Index(value, divisor, max(low, _LEAST), min(high, _MOST))
