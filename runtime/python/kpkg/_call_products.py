"""Replaces PyTorch's matrix products and attention by ops of kpkg.

Each function takes the arguments of PyTorch's function of the same name. It returns NotImplemented for a call that no
op computes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kpkg._call_forms import alike, op


def matmul(input: Tensor, other: Tensor) -> Any:
    """Computes torch.matmul and `@` of vectors, matrices and batches of matrices."""
    if not alike(input, other) or not input.dim() or not other.dim() or input.dim() == other.dim() == 1:
        return NotImplemented
    if input.dim() == 1:
        return matmul(input.unsqueeze(0), other).squeeze(-2)
    if other.dim() == 1:
        return matmul(input, other.unsqueeze(1)).squeeze(-1)
    if other.dim() > 2:
        return op("gemm_batched")(input, other)
    if input.dim() == 2:
        return op("gemm")(input, other)
    flat = op("gemm")(input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), other)
    return flat.view(*input.shape[:-1], other.shape[1])


def mm(input: Tensor, mat2: Tensor) -> Any:
    return op("gemm")(input, mat2) if alike(input, mat2) else NotImplemented


def bmm(input: Tensor, mat2: Tensor) -> Any:
    return op("gemm_batched")(input, mat2) if alike(input, mat2) else NotImplemented


def _are_factors(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    """Computes torch.addmm; an `input` with one number for each column is the bias of the product."""
    if not alike(input, mat1, mat2) or not _are_factors(beta, alpha):
        return NotImplemented
    if input.dim() == 1 and beta == 1 and input.shape[0] == mat2.shape[-1]:
        return op("gemm")(mat1, mat2, float(alpha), bias=input)
    return op("gemm")(mat1, mat2, float(alpha), float(beta), c=input)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    if not alike(input, batch1, batch2) or not _are_factors(beta, alpha):
        return NotImplemented
    return op("gemm_batched")(batch1, batch2, float(alpha), float(beta), input)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    if not alike(input, weight, bias) or weight.dim() != 2 or not input.dim():
        return NotImplemented
    return op("linear")(input, weight, bias)


@dataclass(frozen=True)
class _Plan:
    """Describes an einsum of two operands as a batch of matrix products.

    `first`, `second` and `result` permute the dimensions of the operands and of the result. The numbers count
    dimensions: of the batch, of rows, of sums and of columns.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    result: tuple[int, ...]
    batch: int
    rows: int
    sums: int
    columns: int


@functools.lru_cache(512)
def _plan(equation: str, ranks: tuple[int, int]) -> _Plan | None:
    """Plans an einsum; None for a trace, a sum over one operand alone, or a product without a sum."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != 2:
        return None
    names: list[list[str]] = []
    for part, rank in zip(parts, ranks):
        before, dots, after = part.partition("...")
        more = rank - len(before) - len(after)
        if "." in before + after or more < 0 or (more and not dots):
            return None
        names.append([*before, *(f".{i}" for i in reversed(range(more))), *after])
    dotted = sorted({n for each in names for n in each if n[0] == "."}, key=lambda n: -int(n[1:]))
    if arrow:
        before, dots, after = right.partition("...")
        out = [*before, *(dotted if dots else ()), *after]
    else:
        each = [n for part in names for n in part if n[0] != "."]
        out = [*dotted, *sorted(n for n in each if each.count(n) == 1)]
    first, second = names
    if any(len(set(each)) != len(each) for each in (first, second, out)) or not set(out) <= {*first, *second}:
        return None
    batch = [n for n in out if n in first and n in second]
    sums = [n for n in first if n in second and n not in out]
    rows, columns = [n for n in out if n not in second], [n for n in out if n not in first]
    if (
        not sums
        or len(batch) + len(rows) + len(sums) != len(first)
        or len(batch) + len(columns) + len(sums) != len(second)
    ):
        return None
    given = [*batch, *rows, *columns]
    return _Plan(
        tuple(first.index(n) for n in (*batch, *rows, *sums)),
        tuple(second.index(n) for n in (*batch, *sums, *columns)),
        tuple(given.index(n) for n in out),
        len(batch), len(rows), len(sums), len(columns),
    )  # fmt: skip


def einsum(equation: Any, *operands: Any) -> Any:
    """Computes torch.einsum of two operands where it is a matrix product or a batch of matrix products."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) != 2 or not alike(*operands):
        return NotImplemented
    plan = _plan(equation, (operands[0].dim(), operands[1].dim()))
    if plan is None:
        return NotImplemented
    a, b = operands[0].permute(plan.first), operands[1].permute(plan.second)
    batch, rows, columns = a.shape[: plan.batch], a.shape[plan.batch :][: plan.rows], b.shape[plan.batch + plan.sums :]
    sums = a.shape[plan.batch + plan.rows :]
    if b.shape[: plan.batch] != batch or b.shape[plan.batch :][: plan.sums] != sums:  # PyTorch broadcasts extents of 1
        return NotImplemented
    m, k, n = math.prod(rows), math.prod(sums), math.prod(columns)
    product = op("gemm_batched" if batch else "gemm")(a.reshape(*batch, m, k), b.reshape(*batch, k, n))
    return product.view(*batch, *rows, *columns).permute(plan.result)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Computes torch.nn.functional.scaled_dot_product_attention by kpkg::attention.

    Takes queries [..., H, L, E], keys [..., S, E] and values [..., S, V], and returns [..., L, V].

    No op computes calls with dropout, heads above 256 elements, ranks other than 3 and 4, or gradients of the mask. The
    same holds for calls that PyTorch would refuse.
    """
    tensors = (query, key, value)
    suits = (
        alike(*tensors)
        and not dropout_p
        and query.dim() in (3, 4)
        and all(t.dim() == query.dim() and 0 < t.shape[-1] <= 256 and t.shape[:-3] == query.shape[:-3] for t in tensors)
        and key.shape[:-1] == value.shape[:-1]
        and (query.shape[-3] == key.shape[-3] or (enable_gqa and query.dim() == 4))
        and (
            attn_mask is None
            or not (is_causal or attn_mask.requires_grad)
            and attn_mask.dtype in (torch.bool, query.dtype)
        )
    )
    if not suits:
        return NotImplemented
    q, k, v = (t if t.dim() == 4 else t.unsqueeze(0) for t in tensors)
    out: Tensor = op("attention")(q, k, v, attn_mask, is_causal, scale)[0]
    return out if query.dim() == 4 else out.squeeze(0)
