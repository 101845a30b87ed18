"""Spec of convolutions of 8-bit floats with scales.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, channels_last, normal
from torch import Tensor


def scaled(
    input: Tensor,
    weight: Tensor,
    scale_input: Tensor,
    scale_weight: Tensor,
    out_dtype: torch.dtype,
    bias: Tensor | None = None,
    stride=(1,),
    padding=(0,),
    dilation=(1,),
    groups: int = 1,
    auto_pad: str = "",
    activation: str = "none",
) -> Tensor:
    w = weight.double() * scale_weight.double().reshape(-1, 1, 1, 1)
    x = input.double() * scale_input.double().reshape(())
    result = F.conv2d(
        x,
        w,
        None if bias is None else bias.double(),
        tuple(stride),
        auto_pad or tuple(padding),
        tuple(dilation),
        groups,
    )
    return result if activation == "none" else getattr(F, activation)(result)


def scaled_magnitude(*args, activation: str = "none", **named) -> Tensor:
    """Returns the sum of absolute values. No activation is steeper than 1.13."""

    def size(value: Any) -> Any:
        return value.double().abs() if isinstance(value, Tensor) else value

    return 1.13 * scaled(*map(size, args), **{name: size(value) for name, value in named.items()})


#: Images, groups, channels of a group, results of a group, extents, taps, stride, padding, dilation.
SCALED = [
    (2, 1, 3, 5, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 144, 136, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),  # the last step of channels is partial
    (3, 1, 64, 208, (13, 9), (3, 2), (2, 1), (1, 0), (1, 2)),
    (2, 1, 256, 128, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 4, 33, 7, (8, 6), (2, 3), (1, 2), (0, 2), (2, 1)),
    (0, 1, 4, 4, (3, 3), (1, 1), (1, 1), (0, 0), (1, 1)),
]


def scaled_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def scales(count: int) -> Tensor:
        return torch.rand(count, generator=generator, device=generator.device) + 0.5

    for i, (n, groups, c, k, extents, taps, stride, padding, dilation) in enumerate(SCALED):
        kind = (torch.float8_e4m3fn, torch.float8_e5m2)[i % 2]
        x, w = (
            normal((n, groups * c, *extents), torch.float32, generator).to(kind),
            normal((groups * k, c, *taps), torch.float32, generator).to(kind),
        )
        b = normal((groups * k,), dtype, generator)
        rest = (list(stride), list(padding), list(dilation), groups)
        yield Sample((x, w, scales(1), scales(1), dtype, None, *rest), label=f"{SCALED[i]} {kind}")
        yield Sample(
            (channels_last(x), channels_last(w), scales(1)[0], scales(groups * k), dtype, b, *rest),
            {"activation": ("relu", "silu")[i % 2]},
            label=f"{SCALED[i]} {kind} channels last",
        )
        yield Sample(
            (channels_last(x), w, scales(1), scales(groups * k), dtype, b, [1], [0], [1], groups, "same"),
            label=f"{SCALED[i]} {kind} same",
        )


SPECS = [
    OpSpec(
        "kpkg::scaled_conv2d",
        scaled,
        scaled_samples,
        dtypes=(torch.float32, torch.float16, torch.bfloat16),
        magnitude=scaled_magnitude,
        numpy=False,
        gpu_accumulation=2.0**11,  # 2^-13 of the magnitude: precision of tensor-core sums of 128 FP8 products
    )
]
