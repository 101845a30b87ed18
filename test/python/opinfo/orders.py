"""Sorting, maxima, losses, tables and functions of elements with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from opinfo.libraries import LeftToPyTorch, library


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if not stable:
        raise LeftToPyTorch("places of equal elements are PyTorch's")
    return library("sorting").sort(input, dim, descending)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if not stable:
        raise LeftToPyTorch("places of equal elements are PyTorch's")
    return library("sorting").argsort(input, dim, descending)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not sorted:
        raise LeftToPyTorch("the order is PyTorch's")
    if input.unique().numel() < input.numel():
        raise LeftToPyTorch("places of equal elements are PyTorch's")
    return library("sorting").topk(input, k, dim, largest, sorted)


def cummax(input: Tensor, dim: int) -> Any:
    return library("scan").cummax(input, dim)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    if not isinstance(dim, int):
        if len(dim) != 1:
            raise LeftToPyTorch("sums run over one dimension")
        dim = dim[0]
    if not input.is_floating_point():
        raise LeftToPyTorch("integers are PyTorch's")
    return library("softmax").logsumexp(input, dim, keepdim)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    if size_average is not None or reduce is not None:
        raise LeftToPyTorch("size_average and reduce are PyTorch's")
    return library("kl_div").kl_div(input, target, reduction, log_target)


def embedding(weight: Tensor, input: Tensor, padding_idx: int | None = None, **options: Any) -> Any:
    if any(value not in (None, False, 2.0) for value in options.values()):
        raise LeftToPyTorch("norms of rows are PyTorch's")
    return library("embedding").embedding(weight, input, -1 if padding_idx is None else padding_idx % weight.shape[0])


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None
) -> Any:  # fmt: skip
    if max_norm is not None:
        raise LeftToPyTorch("norms of rows are PyTorch's")
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return library("embedding").embedding_bag(
        weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding
    )


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if training and 0.0 < p < 1.0:
        raise LeftToPyTorch("other random numbers set other elements to 0")
    return library("dropout").dropout(input, p if training else 0.0)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    if dim is not None:
        raise LeftToPyTorch("slices are PyTorch's")
    if not sorted:
        raise LeftToPyTorch("the order is PyTorch's")
    values, inverse, counts, number = library("sorting").unique_padded(input)
    found = [values[:number], *([inverse] if return_inverse else []), *([counts[:number]] if return_counts else [])]
    return found[0] if len(found) == 1 else tuple(found)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    return library("sorting").histc(input, bins, min, max)


def function(op: str, family: str = "elementwise") -> Any:
    def call(input: Tensor) -> Any:
        return getattr(library(family), op)(input)

    return call


def of_numbers(family: str, op: str) -> Any:
    def call(input: Any, other: Any) -> Any:
        if op == "fmod" and not isinstance(input, Tensor):
            raise TypeError("PyTorch takes a number second, not first")
        return getattr(library(family), op)(input, other)

    return call


def pair(op: str, family: str = "elementwise") -> Any:
    def call(input: Any, other: Any) -> Any:
        if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
            raise TypeError("PyTorch takes tensors, not numbers")
        return getattr(library(family), op)(input, other)

    return call
