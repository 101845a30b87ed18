"""Spec of attention_fp8: attention of the numbers that 8-bit floats and their scales represent.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor


def spread(scale: Tensor | None, x: Tensor) -> Tensor:
    """Returns `x` times its scale, in float64."""
    wide = x.double()
    if scale is None:
        return wide
    return (
        wide
        * (scale.double().reshape(1, 1) if scale.numel() == 1 else scale.double()).expand(x.shape[:2])[..., None, None]
    )


def scores(query: Tensor, key: Tensor, is_causal: bool, scale: float | None, window: int) -> Tensor:
    key = key.repeat_interleave(query.shape[1] // max(key.shape[1], 1), 1)
    s = query @ key.mT * (query.shape[3] ** -0.5 if scale is None else scale)
    ahead = torch.arange(key.shape[2], device=s.device) - torch.arange(query.shape[2], device=s.device)[:, None]
    if is_causal:
        s = s.masked_fill(ahead > 0, -math.inf)
    return s.masked_fill(ahead.abs() >= window, -math.inf) if window else s


def attended(
    query: Tensor, key: Tensor, value: Tensor, scales: tuple[Tensor | None, ...], is_causal: bool, scale: float | None,
    window: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    query, key, value = (spread(s, x) for s, x in zip(scales, (query, key, value)))
    s = scores(query, key, is_causal, scale, window)
    lse = torch.logsumexp(s, -1) if s.shape[3] else s.new_full(s.shape[:3], -math.inf)
    weights = torch.exp(s - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1))
    return weights @ value.repeat_interleave(query.shape[1] // max(key.shape[1], 1), 1), lse


def attention_fp8(
    query: Tensor, key: Tensor, value: Tensor, out_dtype: torch.dtype, scale_q: Tensor | None = None,
    scale_k: Tensor | None = None,
    scale_v: Tensor | None = None, is_causal: bool = False, scale: float | None = None, window: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return attended(query, key, value, (scale_q, scale_k, scale_v), is_causal, scale, window)


def magnitude(
    query: Tensor, key: Tensor, value: Tensor, out_dtype: torch.dtype, *rest: Any, **options: Any
) -> tuple[Tensor, Tensor]:
    """Returns the magnitude, in round-offs of `out_dtype`: probabilities are rounded to three bits after the leading
    bit."""
    out, lse = attention_fp8(query, key, value.double().abs(), out_dtype, *rest, **options)
    rounding = 2.0**-4 / (2.0**-8 if out_dtype == torch.bfloat16 else 2.0**-11)
    largest = torch.ones_like(lse)
    if key.shape[2]:
        scales = [*rest, None, None, None][:3]
        q, k = (spread(s, x).abs() for s, x in zip(scales, (query, key)))
        largest += (
            scores(q, k, options.get("is_causal", False), options.get("scale"), options.get("window", 0))
            .amax(-1)
            .clamp(min=0)
        )
    return out * rounding + out * largest.unsqueeze(-1), largest


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, torch.float32, generator).to(torch.float8_e4m3fn)

    def qkv(
        batch: int, heads: int, kv_heads: int, queries: int, keys: int, size: int, v_size: int = 0
    ) -> tuple[Any, ...]:
        return (
            make(batch, heads, queries, size),
            make(batch, kv_heads, keys, size),
            make(batch, kv_heads, keys, v_size or size),
            dtype,
        )

    def scale(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=generator.device) + 0.5

    yield Sample(qkv(1, 1, 1, 1, 1, 16), label="one key")
    yield Sample(qkv(1, 2, 1, 70, 130, 64), {"is_causal": True}, label="64, causal")
    yield Sample((*qkv(2, 4, 2, 131, 259, 128), scale(1), scale(1), scale(1)), label="scales for all")
    yield Sample(
        (*qkv(2, 4, 2, 300, 300, 128), scale(2, 4), scale(2, 2), scale(2, 2)),
        {"is_causal": True},
        label="scales for heads, causal",
    )
    yield Sample(qkv(1, 2, 2, 256, 384, 128), {"window": 70, "scale": 0.05}, label="window")
    yield Sample(qkv(1, 1, 1, 65, 63, 256, 200), label="large heads")
    yield Sample(qkv(1, 2, 1, 130, 1030, 100), label="many keys")
    yield Sample((*qkv(1, 2, 1, 200, 4100, 64), scale(1)), {"is_causal": True}, label="many keys, causal")
    yield Sample(qkv(1, 2, 1, 20, 0, 128), label="no keys")
    yield Sample(qkv(1, 2, 1, 0, 20, 128), label="no queries")
    packed = make(2, 150, 3, 4, 32).permute(2, 0, 3, 1, 4)
    yield Sample((packed[0], packed[1], packed[2], dtype), label="interleaved")


SPECS = [
    OpSpec(
        "kpkg::attention_fp8",
        attention_fp8,
        samples,
        dtypes=(torch.bfloat16, torch.float16),
        magnitude=magnitude,
        numpy=False,
        rounds_between=True,
        gpu_accumulation=2.0**11,  # 2^-13 of the magnitude: precision of tensor-core sums of 128 FP8 products
    )
]
