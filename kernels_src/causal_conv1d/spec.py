"""Spec of causal depthwise convolutions. test/python/test_causal_conv1d.py tests steps, which write to states.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor


def windows_summed(joined: Tensor, weight: Tensor, bias: Tensor | None, length: int, activation: str) -> Tensor:
    """Returns the results for the last `length` positions."""
    first = joined.shape[2] - length - weight.shape[1] + 1
    y = sum(joined[:, :, first + i : first + i + length] * weight[:, i : i + 1] for i in range(weight.shape[1]))
    y = y if bias is None else y + bias[:, None]
    return F.silu(y) if activation == "silu" else y


def causal_conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, initial_state: Tensor | None = None, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    before = x.new_zeros(*x.shape[:2], weight.shape[1] - 1) if initial_state is None else initial_state
    joined = torch.cat([before, x], -1)
    return windows_summed(joined, weight, bias, x.shape[2], activation), joined[:, :, x.shape[2] :]


def magnitude(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, initial_state: Tensor | None = None, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    """Returns the sums of absolute values, which the slope of the activation, at most 1.1, hardly increases."""
    positive = [None if t is None else t.abs() for t in (x, weight, bias, initial_state)]
    y, last = causal_conv1d(*positive)
    return y * 2, last


#: Batch, channels, length, width.
SIZES = [
    (1, 1, 1, 2),
    (2, 3, 0, 4),
    (0, 3, 5, 3),
    (2, 0, 5, 4),
    (2, 5, 2, 4),
    (1, 65, 63, 3),
    (2, 64, 64, 4),
    (1, 7, 257, 2),
    (1, 3, 1000, 4),
    (1, 513, 17, 4),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for batch, channels, length, width in SIZES:
        label = f"{batch}x{channels}x{length}, width {width}"
        x, weight, bias = make(batch, channels, length), make(channels, width), make(channels)
        yield Sample((x, weight), label=label)
        last = make(batch, length, channels).transpose(1, 2)
        yield Sample((last, weight, bias, make(batch, channels, width - 1), "silu"), label=f"{label}, channels last")
    x = make(2, 9, 140)[:, ::2, ::3]
    yield Sample((x, make(4, 5).t()[:, :3], make(10)[::2], None, "silu"), label="every other element")
    yield Sample((make(1, 6, 1).expand(3, 6, 33), make(6, 4), None, make(3, 3, 6).mT), label="expanded")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((1, n, m), dtype, generator), normal((n, 4), dtype, generator), None, None, "silu"))


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    return {"4096 of 1024 channels": rows(4096, 1024, torch.float32, generator)}


def eager(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, initial_state: Tensor | None = None, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    y = F.conv1d(x, weight.unsqueeze(1), bias, padding=weight.shape[1] - 1, groups=x.shape[1])[..., : x.shape[2]]
    return F.silu(y) if activation == "silu" else y, F.pad(x, (weight.shape[1] - 1, 0))[..., x.shape[2] :]


SPECS = [
    OpSpec(
        "kpkg::causal_conv1d",
        causal_conv1d,
        samples,
        magnitude=magnitude,
        benchmarks=benchmarks,
        eager=eager,
        rows=rows,
    ),
]
