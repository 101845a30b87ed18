"""Spec of scaled_gemm.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor


def spread(scale: Tensor, rows: int, columns: int) -> Tensor:
    """Returns a scale for every element from one number, or from scales for rows, columns or blocks of 128."""
    if scale.numel() == 1:
        return scale.reshape(1, 1).expand(rows, columns)
    for dim, extent in ((0, rows), (1, columns)):
        if scale.shape[dim] not in (1, extent):
            scale = scale.repeat_interleave(128, dim)[
                tuple(slice(extent) if d == dim else slice(None) for d in range(2))
            ]
    return scale.expand(rows, columns)


def scaled(
    mat_a: Tensor, mat_b: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: torch.dtype, bias: Tensor | None = None
) -> Tensor:
    product = (mat_a.double() * spread(scale_a, *mat_a.shape)) @ (mat_b.double() * spread(scale_b, *mat_b.shape))
    return product if bias is None else product + bias


def magnitude(
    mat_a: Tensor, mat_b: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: torch.dtype, bias: Tensor | None = None
) -> Tensor:
    return scaled(
        mat_a.double().abs(),
        mat_b.double().abs(),
        scale_a.abs(),
        scale_b.abs(),
        out_dtype,
        None if bias is None else bias.abs(),
    )


SIZES = [(1, 5, 7), (3, 64, 33), (17, 33, 65), (64, 64, 64), (129, 257, 130), (128, 256, 384), (0, 4, 5), (4, 5, 0)]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def bytes_of(kind: torch.dtype, *shape: int) -> Tensor:
        if kind == torch.int8:
            return torch.randint(-128, 128, shape, generator=generator, device=generator.device, dtype=torch.int8)
        return normal(shape, torch.float32, generator).to(kind)

    def scale(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=generator.device) + 0.5

    for i, (m, n, k) in enumerate(SIZES):
        kind = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)[
            i % 3
        ]  # the first is for checks that PyTorch has for few dtypes
        a, b = bytes_of(kind, m, k), bytes_of(kind, n, k).t()
        yield Sample((a, b, scale(), scale(1, 1), dtype), label=f"{m}x{n}x{k} {kind}")
        bias = normal((n,), dtype, generator)
        yield Sample((a, b, scale(m, 1), scale(1, n), dtype, bias), label=f"{m}x{n}x{k} {kind} by rows, bias")
        strided = bytes_of(kind, k, 2 * n)[:, ::2]
        if kind != torch.int8:
            rows, depth, columns = -(-m // 128), -(-k // 128), -(-n // 128)
            yield Sample(
                (a, b, scale(m, depth), scale(depth, columns), dtype, bias),
                label=f"{m}x{n}x{k} {kind} blocks of 128 along k",
            )
            yield Sample(
                (a, b, scale(rows, depth), scale(depth, columns), dtype),
                label=f"{m}x{n}x{k} {kind} blocks of 128 x 128",
            )
        yield Sample(
            (bytes_of(kind, k, m).t(), strided, scale(m, 1), scale(1), dtype), label=f"{m}x{n}x{k} {kind} strided"
        )
    a, b = bytes_of(torch.float8_e4m3fn, 520, 512).t(), bytes_of(torch.float8_e4m3fn, 520, 520)
    yield Sample((a, b, scale(), scale(), dtype), label="large ones in the order that GPUs copy first")


SPECS = [
    OpSpec(
        "kpkg::scaled_gemm",
        scaled,
        samples,
        dtypes=(torch.float32, torch.float16, torch.bfloat16),
        magnitude=magnitude,
        numpy=False,
        gpu_accumulation=2.0**11,  # 2^-13 of the magnitude: precision of tensor-core sums of 128 FP8 products
    )
]
