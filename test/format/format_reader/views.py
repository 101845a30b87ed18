"""Computes views of tensors by the page's rules: shapes, strides, offsets, and whether views share memory.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from format_reader.page import DTYPES, limit

MOST_ELEMENTS = (2**63 - 1) // 16
INT64 = range(-(2**63), 2**63)


class Failed(Exception):
    """A call that its plan refuses. `raised` has the text of a `raise`."""

    def __init__(self, why: str, raised: str | None = None):
        super().__init__(why)
        self.raised = raised


@dataclass(frozen=True)
class View:
    buffer: int
    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def item(self) -> int:
        return DTYPES[self.dtype][1] // 8


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


def check_shape(shape: tuple[int, ...]) -> None:
    count = 1
    for extent in shape:
        count *= max(extent, 1)
        if extent < 0 or count > MOST_ELEMENTS:
            raise Failed(f"shape {shape} is negative or too large")
    if len(shape) > limit("dimensions"):
        raise Failed("too many dimensions")


def reach(view: View) -> tuple[int, int]:
    """Returns the offsets of the first and the last element in memory, of a view that has some."""
    parts = [(extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True)]
    return view.offset + sum(p for p in parts if p < 0), view.offset + sum(p for p in parts if p > 0)


def wrap(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise Failed(f"dimension {dim} is out of range")
    return dim % rank if rank else 0


def is_contiguous(view: View) -> bool:
    if 0 in view.shape:
        return True
    own = zip(view.shape, view.strides, dense(view.shape), strict=True)
    return all(extent == 1 or stride == wanted for extent, stride, wanted in own)


def with_dims(view: View, dims: list[tuple[int, int]], offset: int | None = None) -> View:
    if len(dims) > limit("dimensions"):
        raise Failed("too many dimensions")
    shape, strides = tuple(d[0] for d in dims), tuple(d[1] for d in dims)
    return replace(view, shape=shape, strides=strides, offset=view.offset if offset is None else offset)


def dims_of(view: View) -> list[tuple[int, int]]:
    return list(zip(view.shape, view.strides, strict=True))


def transpose(view: View, first: int, second: int) -> View:
    a, b = wrap(first, view.rank), wrap(second, view.rank)
    dims = dims_of(view)
    dims[a], dims[b] = dims[b], dims[a]
    return with_dims(view, dims)


def permute(view: View, order: tuple[int, ...]) -> View:
    if len(order) != view.rank:
        raise Failed("the order has another rank")
    places = [wrap(dim, view.rank) for dim in order]
    if len(set(places)) != view.rank:
        raise Failed("the order names a dimension twice")
    return with_dims(view, [dims_of(view)[place] for place in places])


def expand(view: View, shape: tuple[int, ...]) -> View:
    added = len(shape) - view.rank
    if added < 0 or len(shape) > limit("dimensions"):
        raise Failed("cannot be expanded to this rank")
    dims = list[tuple[int, int]]()
    for k, wanted in enumerate(shape):
        had, stride = dims_of(view)[k - added] if k >= added else (1, 0)
        wanted = had if wanted == -1 and k >= added else wanted
        if wanted < 0 or (had != 1 and wanted != had):
            raise Failed(f"cannot be expanded to {shape}")
        dims.append((wanted, stride if k >= added and wanted == had else 0))
    check_shape(tuple(d[0] for d in dims))
    return with_dims(view, dims)


def drop(view: View, dim: int, index: int) -> View:
    at = wrap(dim, view.rank)
    extent, stride = dims_of(view)[at]
    if not -extent <= index < extent:
        raise Failed(f"index {index} is out of range")
    dims = dims_of(view)
    del dims[at]
    return with_dims(view, dims, view.offset + index % extent * stride)


def slice_(view: View, dim: int, start: int, stop: int, step: int) -> View:
    at = wrap(dim, view.rank)
    if step == 0:
        raise Failed("step 0 leads nowhere")
    dims, (extent, stride) = dims_of(view), dims_of(view)[at]
    least = -1 if step < 0 else 0

    def cut(bound: int) -> int:
        return min(max(bound + extent if bound < 0 else bound, least), extent + least)

    count = len(range(cut(start), cut(stop), step))
    dims[at] = (count, stride * step if count > 1 else stride)
    return with_dims(view, dims, view.offset + (cut(start) * stride if count else 0))


def unsqueeze(view: View, dim: int) -> View:
    at = wrap(dim, view.rank + 1)
    stride = 1
    if at < view.rank:
        extent, behind = dims_of(view)[at]
        stride = extent * behind if extent > 1 else behind
    dims = dims_of(view)
    dims.insert(at, (1, stride))
    return with_dims(view, dims)


def squeeze(view: View, dim: int) -> View:
    at = wrap(dim, view.rank)
    dims = dims_of(view)
    if dims[at][0] != 1:
        raise Failed(f"dimension {at} has extent {dims[at][0]}, expected 1")
    del dims[at]
    return with_dims(view, dims)


def unfold(view: View, dim: int, size: int, step: int) -> View:
    at = wrap(dim, view.rank)
    dims, (extent, stride) = dims_of(view), dims_of(view)[at]
    if not 1 <= size <= extent or step < 1:
        raise Failed(f"windows of {size} every {step} do not fit")
    count = (extent - size) // step + 1
    dims[at] = (count, stride * step if count > 1 else stride)
    made = with_dims(view, [*dims, (size, stride)])
    check_shape(made.shape)
    return made


def folded(view: View, dim: int) -> tuple[int, ...]:
    if view.rank == 0 and dim in (0, -1):
        return 1, 1, 1
    at = wrap(dim, view.rank)
    return math.prod(view.shape[:at]), view.shape[at], math.prod(view.shape[at + 1 :])


def reshaped(view: View, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape with its open extent, if it has the view's elements."""
    made = list(shape)
    open_ = made.index(-1) if -1 in made else None
    if open_ is not None:
        made[open_] = 1
    check_shape(tuple(made))
    rest = math.prod(made)
    if open_ is not None:
        if not rest or view.elements % rest:
            raise Failed(f"{view.elements} elements cannot take shape {shape}")
        made[open_] = view.elements // rest
    if math.prod(made) != view.elements:
        raise Failed(f"{view.elements} elements cannot take shape {shape}")
    return tuple(made)


def reshape(view: View, shape: tuple[int, ...]) -> View | None:
    """Returns the view with another shape, or nothing where strides do not allow it."""
    if view.elements == 0:
        return replace(view, shape=shape, strides=dense(shape))
    runs = list[tuple[int, int]]()  # elements and stride, the last one first
    for extent, stride in reversed(dims_of(view)):
        if extent == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * extent, runs[-1][1])
        else:
            runs.append((extent, stride))
    if not runs:
        only = view.strides[-1] if view.rank else 1
        return replace(view, shape=shape, strides=(only,) * len(shape))
    strides, done = list[int](), 1
    for extent in reversed(shape):
        if done == runs[0][0] and extent != 1:
            del runs[0]
            done = 1
        strides.append(done * runs[0][1])
        done *= extent
        if runs[0][0] % done:
            return None
    return replace(view, shape=shape, strides=tuple(reversed(strides)))


def broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(first), len(second))
    if rank > limit("dimensions"):
        raise Failed("too many dimensions")
    made = list[int]()
    both = zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)
    for a, b in both:
        if a != b and 1 not in (a, b):
            raise Failed(f"shapes {first} and {second} do not broadcast")
        made.append(b if a == 1 else a)
    return tuple(made)


Lattice = tuple[int, list[tuple[int, int]]]


def lattice(view: View) -> Lattice | None:
    """Returns the start in bytes, and pairs of stride and extent, the largest stride first."""
    if view.elements == 0:
        return None
    start, dims = view.offset * view.item, []
    for extent, stride in dims_of(view):
        if extent > 1 and stride:
            start += min(stride, 0) * view.item * (extent - 1)
            dims.append((abs(stride) * view.item, extent))
    return start, [*sorted(dims, reverse=True), (1, view.item)]


def span(dims: list[tuple[int, int]]) -> int:
    return 1 + sum(stride * (extent - 1) for stride, extent in dims)


def overlaps_itself(view: View) -> bool:
    if any(extent > 1 and stride == 0 for extent, stride in dims_of(view)):
        return view.elements > 0
    made = lattice(view)
    return made is not None and any(span(made[1][k + 1 :]) > made[1][k][0] for k in range(len(made[1]) - 1))


def overlap(first: View, second: View) -> bool:
    """Returns whether two views of one memory count as sharing it."""
    a, b = lattice(first), lattice(second)
    tests = [0]

    def meet(a: list[tuple[int, int]], b: list[tuple[int, int]], distance: int) -> bool:
        tests[0] += 1
        if tests[0] > 256:
            return True
        if distance >= span(a) or -distance >= span(b):
            return False
        if len(a) == len(b) == 1:
            return True
        stride = max(a[0][0], b[0][0])
        (rows_a, rest_a), (rows_b, rest_b) = (
            (dims[0][1], dims[1:]) if dims[0][0] == stride else (1, dims) for dims in (a, b)
        )
        if span(rest_a) > stride or span(rest_b) > stride:
            return True
        row, rest = divmod(distance, stride)
        return any(
            shift < rows_a and -shift < rows_b and meet(rest_a, rest_b, distance - shift * stride)
            for shift in (row, row + 1)
        )

    return bool(a and b and meet(a[1], b[1], b[0] - a[0]))
