"""PyTorch implementations of the ops of language models: rotary embedding, gates, quantization, lookup, AdamW.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def _factors(table: Tensor, query: Tensor, positions: Tensor | None, sections: list[int]) -> Tensor:
    """The part of a table for each pair of each token: [..., tokens, 1, pairs]."""
    if positions is None:
        rows = table[: query.shape[-3]].expand(*query.shape[:-2], -1)
    elif sections:
        parts = torch.arange(table.shape[1], device=table.device).split(list(sections))
        rows = torch.cat([table[p][..., columns] for p, columns in zip(positions, parts)], -1)
    else:
        rows = table[positions]
    return rows.unsqueeze(-2)


def _rotate(x: Tensor, c: Tensor, s: Tensor, interleaved: bool) -> Tensor:
    pairs = c.shape[-1]
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :pairs], turned[..., pairs:])
    found = [a * c - b * s, b * c + a * s]
    joined = torch.stack(found, -1).flatten(-2) if interleaved else torch.cat(found, -1)
    return torch.cat([joined.to(x.dtype), rest], -1)


def rotary_embedding(
    query: Tensor,
    key: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    interleaved: bool = False,
    sections: list[int] = [],
) -> tuple[Tensor, Tensor]:
    c, s = (_factors(table, query, positions, sections) for table in (cos, sin))
    return _rotate(query, c, s, interleaved), _rotate(key, c, s, interleaved)


def rotary_embedding_(query: Tensor, key: Tensor, *rest: Any) -> None:
    for held, rotated in zip((query, key), rotary_embedding(query, key, *rest)):
        held.copy_(rotated)


def rotary_embedding_backward(
    grad_query: Tensor,
    grad_key: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor | None = None,
    interleaved: bool = False,
    sections: list[int] = [],
) -> tuple[Tensor, Tensor]:
    return rotary_embedding(grad_query, grad_key, cos, -sin, positions, interleaved, sections)


def silu_and_mul(input: Tensor) -> Tensor:
    a, b = input.chunk(2, -1)
    return F.silu(a) * b


def gelu_and_mul(input: Tensor, approximate: str = "none") -> Tensor:
    a, b = input.chunk(2, -1)
    return F.gelu(a, approximate=approximate) * b


def clamped_swiglu(input: Tensor, alpha: float = 1.702, limit: float = 7.0, interleaved: bool = True) -> Tensor:
    a, b = (input[..., ::2], input[..., 1::2]) if interleaved else input.chunk(2, -1)
    x = a.clamp(max=limit)
    return x * torch.sigmoid(alpha * x) * (b.clamp(-limit, limit) + 1)


_LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
_GROUP = 128


def _quantized(x: Tensor, dtype: torch.dtype, group: int) -> tuple[Tensor, Tensor]:
    """x in `dtype`, with scales of its last dimension or of groups of it."""
    n = x.shape[-1]
    parts = -(-n // group) if group else 1
    length = group or n
    padded = F.pad(x.float(), (0, parts * length - n)).unflatten(-1, (parts, length))
    top = padded.abs().amax(-1) if length else padded.new_zeros(padded.shape[:-1])
    scale = (top / _LARGEST[dtype]).clamp(min=2.0**-126)
    y = (padded / scale.unsqueeze(-1)).flatten(-2)[..., :n]
    y = y.nan_to_num(nan=0.0).round() if dtype == torch.int8 else y
    return y.clamp(-_LARGEST[dtype], _LARGEST[dtype]).to(dtype), scale


def quantize_per_token(input: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return _quantized(input, dtype, 0)


def quantize_per_group(input: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return _quantized(input, dtype, _GROUP)


def rms_norm_quantize(
    input: Tensor, weight: Tensor | None, dtype: torch.dtype, eps: float = 1e-6, group: int = 0
) -> tuple[Tensor, Tensor]:
    x = input.float()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return _quantized(y if weight is None else y * weight.float(), dtype, group)


def residual_rms_norm_quantize(
    x: Tensor, residual: Tensor, weight: Tensor | None, dtype: torch.dtype, eps: float = 1e-6, group: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    sum = x.float() + residual.float()
    return *rms_norm_quantize(sum, weight, dtype, eps, group), sum.to(x.dtype)


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    if not indices.numel():  # PyTorch has no second derivative of its embedding for none
        return weight[indices]
    return torch.nn.functional.embedding(indices, weight, padding_idx if padding_idx >= 0 else None)


def embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1) -> Tensor:
    if not grad.numel():  # PyTorch does not know how many rows these are
        return grad.new_zeros(num_weights, grad.shape[-1])
    return torch.ops.aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, False)


def adamw_(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    lr: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> None:
    exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    root = (exp_avg_sq / (1 - beta2**step)).sqrt_()
    param.mul_(1 - lr * weight_decay).addcdiv_(exp_avg, root.add_(eps), value=-lr / (1 - beta1**step))


def adamw_master_(
    param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, master: Tensor, step: int, *rates: float
) -> None:
    adamw_(master, grad.float(), exp_avg, exp_avg_sq, step, *rates)
    param.copy_(master)


FALLBACKS: dict[str, Callable[..., Any]] = {
    f"kpkg::{function.__name__}": function
    for function in (
        rotary_embedding,
        rotary_embedding_,
        rotary_embedding_backward,
        silu_and_mul,
        gelu_and_mul,
        clamped_swiglu,
        adamw_,
        adamw_master_,
        embedding,
        embedding_backward,
        quantize_per_token,
        quantize_per_group,
        rms_norm_quantize,
        residual_rms_norm_quantize,
    )
}
