"""Specs of quantization behind gates.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

GROUP = 128
SHAPES = [(2,), (0, 6), (3, 0), (1, 14), (5, 66), (3, 256), (4, 258), (2, 3, 4, 300), (3, 8194), (2, 16640), (2, 40000)]


def quantized(x: Tensor, dtype: torch.dtype, group: int) -> tuple[Tensor, Tensor]:
    """Quantizes x. Scales and quotients are rounded to float32, as in the ops."""
    largest = 127.0 if dtype == torch.int8 else 448.0
    n = x.shape[-1]
    parts = -(-n // group) if group else 1
    length = group or n
    padded = F.pad(x, (0, parts * length - n)).unflatten(-1, (parts, length))
    top = padded.abs().amax(-1) if length else padded.new_zeros(padded.shape[:-1])
    scale = (top.float() / largest).clamp(min=2.0**-126)
    y = (padded.float() / scale.unsqueeze(-1)).flatten(-2)[..., :n]
    return (y.round() if dtype == torch.int8 else y).double(), scale.double()


def silu_and_mul_quantize(input: Tensor, dtype: torch.dtype, group: int = 0) -> tuple[Tensor, Tensor]:
    a, b = input.chunk(2, -1)
    return quantized(F.silu(a) * b, dtype, group)


def gelu_and_mul_quantize(
    input: Tensor, dtype: torch.dtype, approximate: str = "none", group: int = 0
) -> tuple[Tensor, Tensor]:
    a, b = input.chunk(2, -1)
    return quantized(F.gelu(a, approximate=approximate) * b, dtype, group)


def clamped_swiglu_quantize(
    input: Tensor, dtype: torch.dtype, alpha: float = 1.702, limit: float = 7.0, interleaved: bool = True,
    group: int = 0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    a, b = (input[..., ::2], input[..., 1::2]) if interleaved else input.chunk(2, -1)
    x = a.clamp(max=limit)
    return quantized(x * torch.sigmoid(alpha * x) * (b.clamp(-limit, limit) + 1), dtype, group)


def magnitude(input: Tensor, dtype: torch.dtype, group: int = 0, **options: Any) -> tuple[Tensor, Tensor]:
    """Returns magnitudes by products without the gate, whose small factors may cancel: tails of gelu."""
    a, b = input.chunk(2, -1)
    y, scale = gelu_and_mul_quantize(input, dtype, group=group, **options)
    largest = 127.0 if dtype == torch.int8 else 448.0
    size = quantized((a * b).abs(), dtype, group)[1]
    growth = size / scale
    each = growth.repeat_interleave(group, -1)[..., : y.shape[-1]] if group else growth.expand_as(y)
    return each * largest, size


#: Other arguments of each gate; a group of 128 is added to every second call.
FORMS: dict[Callable[..., Any], list[dict[str, Any]]] = {
    silu_and_mul_quantize: [{}],
    gelu_and_mul_quantize: [{}, {"approximate": "tanh"}],
    clamped_swiglu_quantize: [{}, {"interleaved": False, "limit": 2.0}, {"alpha": 1.0}],
}


def inputs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in SHAPES:
        yield str(shape), make(*shape)
    yield "transposed", make(34, 6).t()
    yield "step 2", make(8, 132)[:, ::2]
    yield "part", make(7, 51)[2:, 3:]
    yield "rows apart", make(12, 32)[::3]
    yield "inner dimensions apart", make(4, 6, 40).transpose(0, 1)


def samples(function: Callable[..., Any]) -> Callable[..., Iterator[Sample]]:
    """Yields samples with float results: integers near a half may be either neighbour."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for label, x in inputs(dtype, generator):
            for index, form in enumerate(FORMS[function]):
                for group in (0, GROUP):
                    options = {**form, "group": group}
                    yield Sample((x, torch.float8_e4m3fn), options, f"{label} form {index} group {group}")

    return make


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, 2 * n), dtype, generator), torch.float8_e4m3fn))


SPECS = [
    OpSpec(
        f"kpkg::{function.__name__}",
        function,
        samples(function),
        dtypes=(torch.float32, torch.float16, torch.bfloat16),
        magnitude=magnitude if function is gelu_and_mul_quantize else None,
        numpy=False,
        benchmarks=lambda generator: {"1024x4096": rows(1024, 4096, torch.float32, generator)},
        eager=function,
        rows=rows,
    )
    for function in FORMS
]
