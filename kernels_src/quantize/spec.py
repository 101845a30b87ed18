"""Specs of quantization of rows, alone and after an RMS norm.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

GROUP = 128
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
SHAPES = [(1, 1), (3, 0), (0, 5), (24,), (5, 33), (3, 128), (4, 129), (2, 1025), (2, 3, 4, 300), (3, 4097), (2, 40000)]


def quantized(x: Tensor, dtype: torch.dtype, group: int) -> tuple[Tensor, Tensor]:
    """Quantizes x. Scales and quotients are rounded to float32, because integers have to be equal."""
    n = x.shape[-1]
    parts = -(-n // group) if group else 1
    length = group or n
    padded = torch.nn.functional.pad(x, (0, parts * length - n)).unflatten(-1, (parts, length))
    top = padded.abs().amax(-1) if length else padded.new_zeros(padded.shape[:-1])
    scale = (top.float() / LARGEST[dtype]).clamp(min=2.0**-126)
    y = (padded.float() / scale.unsqueeze(-1)).flatten(-2)[..., :n]
    return (y.round() if dtype == torch.int8 else y).double(), scale.double()


def quantize_per_token(input: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return quantized(input, dtype, 0)


def quantize_per_group(input: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return quantized(input, dtype, GROUP)


def rms_norm_quantize(
    input: Tensor, weight: Tensor | None, dtype: torch.dtype, eps: float = 1e-6, group: int = 0
) -> tuple[Tensor, Tensor]:
    y = input * torch.rsqrt(input.square().mean(-1, keepdim=True) + eps)
    return quantized(y if weight is None else y * weight, dtype, group)


def residual_rms_norm_quantize(
    x: Tensor, residual: Tensor, weight: Tensor | None, dtype: torch.dtype, eps: float = 1e-6, group: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    return *rms_norm_quantize(x + residual, weight, dtype, eps, group), x + residual


def inputs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in SHAPES:
        yield str(shape), make(shape)
    yield from strided_forms(make)
    yield "inner dimensions apart", make((4, 6, 40)).transpose(0, 1)


def plain_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for label, x in inputs(dtype, generator):
        for narrow in LARGEST:
            yield Sample((x, narrow), label=f"{label} {narrow}")
    x = torch.tensor([[0.0, 0.0, 0.0], [1e-7, -2e-7, 0.0], [6e4, -1.0, 2.0]], dtype=torch.float64).to(dtype)
    for narrow in LARGEST:
        yield Sample((x, narrow), label=f"zeros, small and large {narrow}")


def norm_samples(tensors: int) -> Callable[..., Iterator[Sample]]:
    """Yields samples with float results. Integers near a half may be either neighbour if the norm is summed in another
    order."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for index, (label, x) in enumerate(inputs(dtype, generator)):
            others = [normal(tuple(x.shape), dtype, generator) for _ in range(tensors - 1)]
            weight = normal(tuple(x.shape[-1:]), dtype, generator) if index % 3 else None
            for group in (0, GROUP):
                given = (x, *others, weight, torch.float8_e4m3fn, 1e-5, group)
                yield Sample(given, label=f"{label} group {group}")

    return make


def rows(norm: int) -> Callable[..., Sample]:
    def make(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
        given = [normal((m, n), dtype, generator) for _ in range(max(norm, 1))]
        weight = [normal((n,), dtype, generator)] if norm else []
        return Sample((*given, *weight, torch.float8_e4m3fn))

    return make


def spec(function: Callable[..., Any], samples: Any, norm: int) -> OpSpec:
    return OpSpec(
        f"kpkg::{function.__name__}",
        function,
        samples,
        dtypes=(torch.float32, torch.float16, torch.bfloat16),
        numpy=False,
        benchmarks=lambda generator: {"1024x4096": rows(norm)(1024, 4096, torch.float32, generator)},
        eager=function,
        rows=rows(norm),
    )


SPECS = [
    spec(quantize_per_token, plain_samples, 0),
    spec(quantize_per_group, plain_samples, 0),
    spec(rms_norm_quantize, norm_samples(1), 1),
    spec(residual_rms_norm_quantize, norm_samples(2), 2),
]
