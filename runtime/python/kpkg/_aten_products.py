"""PyTorch implementations of products of matrices: what runs when a package has no kernel for a call.

How PyTorch multiplies float32 in them its own switches decide: an argument `precision` is not looked at.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def finished(result: Tensor, activation: str, residual: Tensor | None = None) -> Tensor:
    """What fused ops do behind their products: add the residual, then apply PyTorch's function of this name."""
    result = result if residual is None else result + residual
    return result if activation == "none" else getattr(F, activation)(result)


def gemm(
    a: Tensor,
    b: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str = "none",
    precision: str = "",
) -> Tensor:
    product = _product(torch.mm, a.t() if transpose_a else a, b.t() if transpose_b else b, alpha, beta, c)
    if bias is not None:
        product = product + bias
    return finished(product, activation)


def gemm_batched(
    a: Tensor, b: Tensor, alpha: float = 1.0, beta: float = 1.0, c: Tensor | None = None, precision: str = ""
) -> Tensor:
    return _product(torch.matmul, a, b, alpha, beta, c)


def gemv(
    a: Tensor,
    x: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    c: Tensor | None = None,
) -> Tensor:
    return _product(torch.mv, a.t() if transpose_a else a, x, alpha, beta, c)


def bmm(input: Tensor, mat2: Tensor, precision: str = "") -> Tensor:
    return torch.bmm(input, mat2)


def matmul(input: Tensor, other: Tensor, precision: str = "") -> Tensor:
    return torch.matmul(input, other)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, precision: str = "") -> Tensor:
    return F.linear(input, weight, bias)


def grouped_gemm(mat_a: Tensor, mat_b: Tensor, offs: Tensor) -> Tensor:
    ends = [0, *offs.tolist()]
    parts = [mat_a[first:last] @ matrix for first, last, matrix in zip(ends, ends[1:], mat_b)]
    return torch.cat([*parts, mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[2])])


def scaled_gemm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    out_dtype: torch.dtype,
    bias: Tensor | None = None,
) -> Tensor:
    factors = [scale if scale.numel() != 1 else scale.reshape(()) for scale in (scale_a, scale_b)]
    product = (mat_a.float() @ mat_b.float()) * factors[0] * factors[1]
    return (product if bias is None else product + bias).to(out_dtype)


def _product(
    multiply: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, alpha: float, beta: float, c: Tensor | None
) -> Tensor:
    product = multiply(a, b)
    if alpha != 1.0:
        product = product * alpha
    if c is not None and beta != 0.0:
        product = product + (c if beta == 1.0 else c * beta)
    return product.to(a.dtype)


def linear_fused(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    activation: str = "none",
    precision: str = "",
) -> Any:
    return finished(F.linear(input, weight, bias), activation, residual)


FALLBACKS: dict[str, Callable[..., Any]] = {
    f"kpkg::{function.__name__}": function
    for function in (gemm, gemm_batched, gemv, bmm, matmul, linear, linear_fused, grouped_gemm, scaled_gemm)
}
