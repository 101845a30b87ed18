"""Computes views for the shape plan, over integers that may be symbolic.

The runtime has a view algebra of its own with the same rules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import kpkg._native as _native

MAX_RANK = 16

# Names by number, as in kpkg.h.
DTYPES = tuple(name for name, _, _ in _native.dtypes())


class ViewError(Exception):
    """Reports a view that the tensor does not allow; the message completes "<operation> of <tensor>: ..."."""


class View(NamedTuple):
    """Describes a tensor without memory.

    With `is_argument`, its memory is that of an argument, so that a result needs memory of its own.
    """

    dtype: str
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    is_argument: bool

    def describe(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def dense_strides(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Returns row-major strides; an extent of 0 counts as 1."""
    strides: list[Any] = []
    stride: Any = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride = stride * extent if bool(extent != 0) else stride
    return tuple(reversed(strides))


def empty(shape: Sequence[Any], dtype: str) -> View:
    if len(shape) > MAX_RANK or any(bool(n < 0) for n in shape):
        raise ViewError(f"shape {list(shape)} is negative or of rank above {MAX_RANK}")
    if dtype == "none":
        raise ViewError("it has no dtype")
    return View(dtype, tuple(shape), dense_strides(shape), False)


def as_result(value: Any) -> Any:
    """Returns a value as the op does: views of arguments become fresh dense tensors."""
    return empty(value.shape, value.dtype) if isinstance(value, View) and value.is_argument else value


def wrap(dim: int, rank: int) -> int:
    """Returns `dim`, counted from the end where negative."""
    if not -rank <= dim < rank:
        expected = f"expected {-rank} to {rank - 1}" if rank else "it has no dimension"
        raise ViewError(f"dimension {dim} is out of range, {expected}")
    return int(dim % rank)  # a symbolic dimension becomes a fixed one


def transpose(t: View, a: int, b: int) -> View:
    rank = len(t.shape)
    order = list(range(rank))
    a, b = wrap(a, rank), wrap(b, rank)
    order[a], order[b] = order[b], order[a]
    return permute(t, order)


def permute(t: View, order: Sequence[int]) -> View:
    rank = len(t.shape)
    wrapped = [wrap(d, rank) for d in order]
    if sorted(wrapped) != list(range(rank)):
        raise ViewError(f"order {list(order)} is no permutation of {rank} dimensions")
    return t._replace(shape=tuple(t.shape[d] for d in wrapped), strides=tuple(t.strides[d] for d in wrapped))


def expand(t: View, shape: Sequence[Any]) -> View:
    added = len(shape) - len(t.shape)
    if added < 0 or len(shape) > MAX_RANK:
        raise ViewError(f"shape {list(shape)} has rank {len(shape)}, expected {len(t.shape)} to {MAX_RANK}")
    extents: list[Any] = []
    strides: list[Any] = []
    for i, wanted in enumerate(shape):
        had = 1 if i < added else t.shape[i - added]
        if i >= added and isinstance(wanted, int) and wanted == -1:
            wanted = had
        same = bool(wanted == had)
        if not same and (bool(had != 1) or bool(wanted < 0)):
            raise ViewError(f"cannot be expanded to {list(shape)}: dimension {i} is {had}")
        extents.append(wanted)
        strides.append(t.strides[i - added] if i >= added and same else 0)
    return t._replace(shape=tuple(extents), strides=tuple(strides))


def _without(values: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return values[:index] + values[index + 1 :]


def _with(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return values[:index] + (value,) + values[index:]


def drop(t: View, dim: int, index: Any) -> View:
    d = wrap(dim, len(t.shape))
    extent = t.shape[d]
    if bool(index >= extent) or bool(index < -extent):
        raise ViewError(f"index {index} is out of range for dimension {d} of extent {extent}")
    return t._replace(shape=_without(t.shape, d), strides=_without(t.strides, d))


def cut(t: View, dim: int, start: Any, stop: Any, step: Any) -> View:
    d = wrap(dim, len(t.shape))
    if bool(step == 0):
        raise ViewError("step 0 leads nowhere")
    extent = t.shape[d]
    backwards = bool(step < 0)
    least, most = (-1, extent - 1) if backwards else (0, extent)

    def bound(value: Any) -> Any:
        value = value + extent if bool(value < 0) else value
        return least if bool(value < least) else most if bool(value > most) else value

    first, last = bound(start), bound(stop)
    between, stride = (first - last, -step) if backwards else (last - first, step)
    count = (between - 1) // stride + 1 if bool(between > 0) else 0
    stride = t.strides[d] * step if bool(count > 1) else t.strides[d]
    return t._replace(shape=_with(_without(t.shape, d), d, count), strides=_with(_without(t.strides, d), d, stride))


def unsqueeze(t: View, dim: int) -> View:
    at = wrap(dim, len(t.shape) + 1)
    stride: Any = 1
    if at < len(t.shape):
        stride = t.shape[at] * t.strides[at] if bool(t.shape[at] > 1) else t.strides[at]
    return t._replace(shape=_with(t.shape, at, 1), strides=_with(t.strides, at, stride))


def squeeze(t: View, dim: int) -> View:
    d = wrap(dim, len(t.shape))
    if bool(t.shape[d] != 1):
        raise ViewError(f"dimension {d} has extent {t.shape[d]}, expected 1")
    return t._replace(shape=_without(t.shape, d), strides=_without(t.strides, d))


def unfold(t: View, dim: int, size: Any, step: Any) -> View:
    d = wrap(dim, len(t.shape))
    extent, stride = t.shape[d], t.strides[d]
    if bool(size < 1) or bool(size > extent) or bool(step < 1):
        raise ViewError(f"windows of {size} every {step} do not fit dimension {d} of extent {extent}")
    count = (extent - size) // step + 1
    shape = _with(_without(t.shape, d), d, count)
    strides = _with(_without(t.strides, d), d, stride * step if bool(count > 1) else stride)
    return t._replace(shape=shape + (size,), strides=strides + (stride,))


def fold(t: View, dim: int) -> View:
    """Reshapes to [outer, extent, inner] around `dim`."""
    if not t.shape and dim in (0, -1):
        return reshape(t, (1, 1, 1))
    d = wrap(dim, len(t.shape))
    return reshape(t, (math.prod(t.shape[:d]), t.shape[d], math.prod(t.shape[d + 1 :])))


def reshape(t: View, wanted: Sequence[Any]) -> View:
    """Returns another shape of as many elements.

    Where strides do not allow a view, it is a dense copy with memory of its own.
    """
    total = math.prod(t.shape)
    extents = list(wanted)
    open_dims = [i for i, n in enumerate(extents) if isinstance(n, int) and n == -1]
    if len(open_dims) == 1:
        rest = math.prod(n for i, n in enumerate(extents) if i != open_dims[0])
        if bool(rest == 0) or bool(total % rest != 0):
            raise ViewError(f"{total} elements cannot take shape {list(wanted)}")
        extents[open_dims[0]] = total // rest
    if len(extents) > MAX_RANK or bool(math.prod(extents) != total):
        raise ViewError(f"{total} elements cannot take shape {list(wanted)}")
    strides = _reshaped_strides(t, extents)
    if strides is None:
        return empty(extents, t.dtype)
    return t._replace(shape=tuple(extents), strides=strides)


def _reshaped_strides(t: View, extents: list[Any]) -> tuple[Any, ...] | None:
    if is_contiguous(t):  # also for symbolic extents, without a guard on how they factor
        return dense_strides(extents)
    strides: list[Any] = [1] * len(extents)
    to = len(extents) - 1
    source = len(t.shape) - 1
    while source >= 0:
        run, step = t.shape[source], t.strides[source]
        outer = source - 1
        while outer >= 0 and (bool(t.shape[outer] == 1) or bool(run == 1) or bool(t.strides[outer] == run * step)):
            if bool(t.shape[outer] != 1):
                if bool(run == 1):
                    step = t.strides[outer]
                run = run * t.shape[outer]
            outer -= 1
        done: Any = 1
        while to >= 0 and (bool(done < run) or bool(extents[to] == 1)):
            strides[to] = done * step
            done = done * extents[to]
            to -= 1
        if bool(done != run):
            return None
        source = outer
    return tuple(strides)


def is_contiguous(t: View) -> bool:
    stride: Any = 1
    dense = True
    for extent, own in zip(reversed(t.shape), reversed(t.strides)):
        if bool(extent == 0):
            return True
        if bool(extent == 1):
            continue
        dense = dense and bool(own == stride)
        stride = stride * extent
    return dense


def broadcast_shapes(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    rank = max(len(a), len(b))
    if rank > MAX_RANK:
        raise ViewError(f"rank {rank}, more than {MAX_RANK}")
    left, right = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    shape = []
    for i, (x, y) in enumerate(zip(left, right)):
        if bool(x == 1):
            shape.append(y)
        elif bool(y == 1) or bool(x == y):
            shape.append(x)
        else:
            raise ViewError(f"shapes {list(a)} and {list(b)} do not broadcast: {x} and {y} in dimension {i}")
    return shape
