"""Matrix products and attention with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from opinfo.libraries import LeftToPyTorch, library


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    result: Tensor = library("gemm").gemm(input, mat2)
    return result


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    _need(input.dim() == 3 and mat2.dim() == 3, "bmm takes tensors of rank 3")
    _need(input.shape[0] == mat2.shape[0], "bmm does not broadcast batches")
    result: Tensor = library("gemm").gemm_batched(input, mat2)
    return result


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _need(input.dtype == mat1.dtype, "addmm takes one dtype")
    result: Tensor = library("gemm").gemm(mat1, mat2, alpha, beta, c=input)
    return result


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _need(batch1.dim() == 3 and batch2.dim() == 3, "baddbmm takes tensors of rank 3")
    _need(batch1.shape[0] == batch2.shape[0], "baddbmm does not broadcast batches")
    _need(input.dtype == batch1.dtype, "baddbmm takes one dtype")
    result: Tensor = library("gemm").gemm_batched(batch1, batch2, alpha, beta, input)
    return result


def matmul(input: Tensor, other: Tensor) -> Tensor:
    result: Tensor = library("gemm").matmul(input, other)
    return result


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result: Tensor = library("gemm").linear(input, weight, bias)
    return result


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None
) -> Tensor:  # fmt: skip
    if target.is_floating_point() or linear_weight.dim() != 2:
        raise LeftToPyTorch("targets are class numbers")
    if options is not None and options.acc_dtype is not None:
        raise LeftToPyTorch("dtypes of sums are PyTorch's")
    if weight is not None:
        raise LeftToPyTorch("weights of classes are PyTorch's")
    ignored = -100 if ignore_index is None else ignore_index
    result: Tensor = library("linear_cross_entropy").linear_cross_entropy(
        input, linear_weight, target, linear_bias, reduction, ignored, label_smoothing
    )[0]
    return result


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False
) -> Tensor:  # fmt: skip
    if dropout_p:
        raise LeftToPyTorch("dropout runs in PyTorch")
    op = library("attention").scaled_dot_product_attention
    result: Tensor = op(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return result
