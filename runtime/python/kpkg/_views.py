"""Computes views for the shape plan with PyTorch's tensors without memory, whose sizes may be symbolic.

The runtime has a view algebra of its own with the same rules.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from kpkg import _native

MAX_RANK = 16

# Names by number, as in kpkg.h.
DTYPES = tuple(name for name, _, _ in _native.dtypes())


class ViewError(Exception):
    """Reports a view that the tensor does not allow; the message completes "<operation> of <tensor>: ..."."""


class View(NamedTuple):
    """Describes a tensor by PyTorch's tensor without memory.

    With `is_argument`, its memory is that of an argument, so that a result needs memory of its own.
    """

    tensor: torch.Tensor
    dtype: str
    is_argument: bool

    @staticmethod
    def of(shape: Sequence[Any], strides: Sequence[Any], dtype: str, is_argument: bool) -> View:
        return View(torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device="meta"), dtype, is_argument)

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.tensor.shape)

    @property
    def strides(self) -> tuple[Any, ...]:
        return self.tensor.stride()

    def describe(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def _dense_strides(shape: Sequence[Any]) -> tuple[Any, ...]:
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
    return View.of(shape, _dense_strides(shape), dtype, False)


def as_result(value: Any) -> Any:
    """Returns a value as the op does: views of arguments become fresh dense tensors."""
    return empty(value.shape, value.dtype) if isinstance(value, View) and value.is_argument else value


def wrap(dim: int, rank: int) -> int:
    """Returns `dim`, counted from the end where negative."""
    if not -rank <= dim < rank:
        expected = f"expected {-rank} to {rank - 1}" if rank else "it has no dimension"
        raise ViewError(f"dimension {dim} is out of range, {expected}")
    return int(dim % rank)  # a symbolic dimension becomes a fixed one


def view_by(name: str) -> Callable[..., View]:
    """Returns PyTorch's method of the name for views."""

    def run(t: View, *arguments: Any) -> View:
        with refusing():
            made = getattr(t.tensor, name)(*arguments)
        if made.dim() > MAX_RANK:
            raise ViewError(f"rank {made.dim()}, more than {MAX_RANK}")
        return t._replace(tensor=made)

    return run


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Reports errors of PyTorch's functions as those of views."""
    try:
        yield
    except (RuntimeError, IndexError, ValueError) as error:
        raise ViewError(str(error).partition("\n")[0]) from None


def cut(t: View, dim: int, start: Any, stop: Any, step: Any) -> View:
    """Slices a dimension as Python does, also backwards."""
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
    shape, strides = list(t.shape), list(t.strides)
    shape[d], strides[d] = count, strides[d] * step if bool(count > 1) else strides[d]
    return t._replace(tensor=View.of(shape, strides, t.dtype, True).tensor)


def squeeze(t: View, dim: int) -> View:
    d = wrap(dim, len(t.shape))
    if bool(t.shape[d] != 1):
        raise ViewError(f"dimension {d} has extent {t.shape[d]}, expected 1")
    return view_by("select")(t, d, 0)


def unfold(t: View, dim: int, size: Any, step: Any) -> View:
    if bool(size < 1):
        raise ViewError(f"windows of {size} have no elements")
    return view_by("unfold")(t, dim, size, step)


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
    if is_contiguous(t):  # also for symbolic extents, without a guard on how they factor
        return View.of(extents, _dense_strides(extents), t.dtype, t.is_argument)
    try:
        return t._replace(tensor=t.tensor.view(extents))
    except (RuntimeError, ValueError):  # of symbolic extents PyTorch raises the latter
        return empty(extents, t.dtype)


def is_contiguous(t: View) -> bool:
    return t.tensor.is_contiguous()


def broadcast_shapes(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    with refusing():
        return list(torch.broadcast_shapes(a, b))
