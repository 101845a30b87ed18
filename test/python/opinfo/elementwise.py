"""Elementwise ops, reductions and scans with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from opinfo.libraries import LeftToPyTorch, library

ACTIVATIONS = (
    "relu",
    "leaky_relu",
    "gelu",
    "silu",
    "elu",
    "selu",
    "softplus",
    "hardtanh",
    "hardsigmoid",
    "hardswish",
    "mish",
    "softsign",
)


def activation(op: str) -> Any:
    def call(input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        result: Tensor = getattr(library("elementwise"), op)(input, *args, **kwargs)
        return result

    return call


def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    result: Tensor = library("elementwise").add(input, other, alpha)
    return result


def sub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    result: Tensor = library("elementwise").sub(input, other, alpha)
    return result


def mul(input: Tensor, other: Any) -> Tensor:
    result: Tensor = library("elementwise").mul(input, other)
    return result


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is not None:
        raise LeftToPyTorch("quotients are not rounded")
    result: Tensor = library("elementwise").div(input, other)
    return result


def comparison(op: str) -> Any:
    def call(input: Any, other: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError("PyTorch compares tensors with numbers, not numbers with tensors")
        result: Tensor = getattr(library("comparison"), op)(input, other)
        return result

    return call


def where(input: Tensor, condition: Tensor, other: Any) -> Tensor:
    if not isinstance(other, Tensor) or other.dtype != input.dtype:
        raise LeftToPyTorch("operands have one dtype")
    result: Tensor = library("comparison").where(condition, input, other)
    return result


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor) or input.dtype.is_complex:
        raise LeftToPyTorch("values are numbers")
    if torch.broadcast_shapes(input.shape, mask.shape) != input.shape:
        raise LeftToPyTorch("the result has the shape of the input")
    result: Tensor = library("comparison").masked_fill(input, mask, float(value))
    return result


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    if min is None and max is None:
        raise LeftToPyTorch("one bound is there")
    result: Tensor = library("comparison").clamp(input, min, max)
    return result


def _dimensions(dim: Any) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def reduction(op: str) -> Any:
    def call(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
        chosen = {} if dtype is None else {"dtype": dtype}
        result: Tensor = getattr(library("reduction"), op)(input, _dimensions(dim), keepdim, **chosen)
        return result

    return call


def spread(op: str) -> Any:
    def call(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Any:
        if isinstance(dim, bool):  # the overload var(input, unbiased)
            dim, unbiased = None, dim
        count = float(unbiased) if unbiased is not None else 1.0 if correction is None else float(correction)
        return getattr(library("variance"), op)(input, _dimensions(dim), count, keepdim)

    return call


def vector_norm(
    input: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    result: Tensor = library("reduction").vector_norm(input, float(ord), _dimensions(dim), keepdim, dtype)
    return result


def scan(op: str) -> Any:
    def call(input: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        result: Tensor = getattr(library("scan"), op)(input, dim, dtype)
        return result

    return call
