"""PyTorch implementations of attention beyond that of dense tensors of one length.

Sequences of different lengths, caches, functions of scores, and 8-bit floats.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import Tensor

from kpkg._aten import attention


def _attend(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, scale: float | None, softcap: float, window: int
) -> tuple[Tensor, Tensor]:
    """[heads, rows, size] each; the last query is at the position of the last key."""
    ahead = torch.arange(k.shape[1], device=q.device) - (
        k.shape[1] - q.shape[1] + torch.arange(q.shape[1], device=q.device)[:, None]
    )
    seen = ahead <= 0 if is_causal else torch.ones_like(ahead, dtype=torch.bool)
    seen = seen & (ahead.abs() < window) if window else seen
    out, lse = attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), seen, False, scale, softcap)
    return out[0], lse[0]


def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
) -> tuple[Tensor, Tensor]:
    ends, key_ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    q, k, v = (t.transpose(0, 1) for t in (query, key, value))
    bounds = zip(ends, ends[1:], key_ends, key_ends[1:])
    parts = [
        _attend(q[:, a:b], k[:, c : max(c, d)], v[:, c : max(c, d)], is_causal, scale, softcap, window)
        for a, b, c, d in bounds
        if a < b
    ]
    rows = sum(b - a for a, b in zip(ends, ends[1:]) if a < b)
    # Rows behind the last sequence belong to none.
    rest = query.shape[0] - rows
    empty = _attend(q[:, :rest], k[:, :0], v[:, :0], False, scale, softcap, 0)
    out, lse = (torch.cat(pieces, 1) for pieces in zip(*parts, empty))
    return out.transpose(0, 1).contiguous(), lse


def attention_decode(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    lengths: Tensor | None = None,
    block_table: Tensor | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
) -> tuple[Tensor, Tensor]:
    parts = []
    for b in range(query.shape[0]):
        if block_table is None:
            k, v = key_cache[b], value_cache[b]
        else:
            k, v = (cache[block_table[b].long()].transpose(0, 1).flatten(1, 2) for cache in (key_cache, value_cache))
        length = k.shape[1] if lengths is None else min(max(int(lengths[b]), 0), k.shape[1])
        parts.append(_attend(query[b], k[:, :length], v[:, :length], True, scale, softcap, window))
    if not parts:
        out = query.new_empty(*query.shape[:3], value_cache.shape[3])
        return out, out.sum(-1, dtype=torch.float64 if out.dtype == torch.float64 else torch.float32)
    out, lse = (torch.stack(pieces) for pieces in zip(*parts))
    return out, lse


def attention_latent(
    query: Tensor,
    cache: Tensor,
    lengths: Tensor | None = None,
    block_table: Tensor | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    window: int = 0,
    value_size: int = 512,
) -> tuple[Tensor, Tensor]:
    return attention_decode(query, cache, cache[..., :value_size], lengths, block_table, scale, softcap, window)


def _ahead(query: Tensor, key: Tensor) -> Tensor:
    return torch.arange(key.shape[2], device=query.device) - torch.arange(query.shape[2], device=query.device)[:, None]


def attention_alibi(
    query: Tensor, key: Tensor, value: Tensor, slopes: Tensor, is_causal: bool = False, scale: float | None = None,
    softcap: float = 0.0, window: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return attention(
        query, key, value, -slopes[:, None, None] * _ahead(query, key).abs(), is_causal, scale, softcap, window
    )


def attention_relative(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, is_causal: bool = False, scale: float | None = None,
    softcap: float = 0.0, window: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    n = bias.shape[1]
    return attention(
        query, key, value, bias[:, (_ahead(query, key) + n // 2).clamp(0, n - 1)], is_causal, scale, softcap, window
    )


def attention_documents(
    query: Tensor, key: Tensor, value: Tensor, documents: Tensor, is_causal: bool = False, scale: float | None = None,
    softcap: float = 0.0, window: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    seen = documents[:, None, : query.shape[2], None] == documents[:, None, None, : key.shape[2]]
    return attention(query, key, value, seen, is_causal, scale, softcap, window)


def _with_scale(x: Tensor, scale: Tensor | None) -> Tensor:
    if scale is None:
        return x.float()
    return x.float() * (scale.reshape(1, 1) if scale.numel() == 1 else scale).expand(x.shape[:2])[..., None, None]


def attention_fp8(
    query: Tensor, key: Tensor, value: Tensor, out_dtype: torch.dtype, scale_q: Tensor | None = None,
    scale_k: Tensor | None = None,
    scale_v: Tensor | None = None, is_causal: bool = False, scale: float | None = None, window: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """In float32: probabilities are not rounded to 8 bits."""
    q, k, v = _with_scale(query, scale_q), _with_scale(key, scale_k), _with_scale(value, scale_v)
    out, lse = attention(q, k, v, None, is_causal, scale, 0.0, window)
    return out.to(out_dtype), lse


FALLBACKS = {
    f"kpkg::{function.__name__}": function
    for function in (
        attention_varlen,
        attention_decode,
        attention_latent,
        attention_alibi,
        attention_relative,
        attention_documents,
        attention_fp8,
    )
}
