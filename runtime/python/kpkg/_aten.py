"""PyTorch implementations of the ops that kpkg ships: what runs when a package has no kernel for a call.

Each takes the op's arguments and gives results of the same shapes and dtypes as the op.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def vector_add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    return torch.softmax(input, dim)


def log_softmax(input: Tensor, dim: int = -1) -> Tensor:
    return torch.log_softmax(input, dim)


def layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def native_layer_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, rstd = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
    statistics = torch.float64 if input.dtype == torch.float64 else torch.float32
    return out, mean.to(statistics), rstd.to(statistics)


def rms_norm(input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(input, normalized_shape, weight, eps)


def gemm(
    a: Tensor,
    b: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    c: Tensor | None = None,
) -> Tensor:
    return _product(torch.mm, a.t() if transpose_a else a, b.t() if transpose_b else b, alpha, beta, c)


def gemm_batched(a: Tensor, b: Tensor, alpha: float = 1.0, beta: float = 1.0, c: Tensor | None = None) -> Tensor:
    return _product(torch.matmul, a, b, alpha, beta, c)


def _product(
    multiply: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, alpha: float, beta: float, c: Tensor | None
) -> Tensor:
    product = multiply(a, b)
    if alpha != 1.0:
        product = product * alpha
    if c is not None and beta != 0.0:
        product = product + (c if beta == 1.0 else c * beta)
    return product.to(a.dtype)


FALLBACKS: dict[str, Callable[..., Any]] = {
    "kpkg::vector_add": vector_add,
    "kpkg::softmax": softmax,
    "kpkg::log_softmax": log_softmax,
    "kpkg::layer_norm": layer_norm,
    "kpkg::native_layer_norm": native_layer_norm,
    "kpkg::rms_norm": rms_norm,
    "kpkg::gemm": gemm,
    "kpkg::gemm_batched": gemm_batched,
}
