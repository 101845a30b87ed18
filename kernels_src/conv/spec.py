"""Specs of convolutions: shapes, strides, paddings, dilations, groups and memory formats.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, channels_last, normal
from torch import Tensor

CONV: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
#: Images, groups, channels of a group, results of a group, extents, taps, stride, padding, dilation.
CASES: dict[int, list[tuple]] = {
    1: [
        (2, 1, 3, 5, (37,), (3,), (1,), (1,), (1,)),
        (1, 2, 70, 20, (300,), (5,), (3,), (2,), (2,)),
        (3, 4, 1, 2, (9,), (4,), (2,), (0,), (1,)),
    ],
    2: [
        (2, 1, 3, 16, (19, 23), (7, 7), (2, 2), (3, 3), (1, 1)),
        (1, 1, 65, 130, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 1, 64, 64, (7, 9), (1, 1), (1, 1), (0, 0), (1, 1)),
        (2, 1, 40, 24, (9, 8), (1, 1), (2, 2), (0, 0), (1, 1)),
        (1, 3, 4, 7, (12, 11), (2, 3), (3, 1), (0, 2), (2, 1)),
        (2, 16, 1, 1, (10, 9), (3, 3), (1, 1), (1, 1), (1, 1)),
        # Many depthwise channels, with strides and dilation.
        (2, 24, 1, 1, (10, 36), (3, 3), (2, 2), (1, 1), (1, 1)),
        # Blocks of depthwise windows: many pixels, few channels, few pixels.
        (2, 40, 1, 1, (13, 35), (5, 5), (1, 1), (2, 2), (1, 1)),
        (2, 24, 1, 1, (20, 18), (5, 5), (2, 2), (2, 2), (1, 1)),
        (1, 12, 1, 1, (9, 150), (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 72, 1, 1, (8, 14), (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 5, 1, 3, (9, 10), (3, 5), (2, 1), (1, 2), (1, 2)),
        (1, 1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
        (1, 1, 2, 3, (2, 2), (3, 3), (4, 5), (3, 4), (2, 3)),
        (0, 1, 2, 3, (5, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
        # TMA tiles begin in the middle of an image and end after the last image.
        (3, 1, 72, 136, (9, 15), (3, 2), (2, 1), (1, 1), (1, 2)),
        (2, 1, 64, 24, (45, 61), (1, 1), (1, 1), (0, 0), (1, 1)),  # many tiles of single pixels
        # Gradients with TMA: phases of different extents.
        (2, 1, 16, 24, (9, 12), (3, 3), (2, 2), (1, 1), (1, 1)),
        (1, 1, 328, 72, (7, 6), (3, 3), (1, 1), (1, 1), (1, 1)),  # few pixels and many channels: split-K
        # Few channels: a row of a window as one row of channels, and phases without taps.
        (2, 1, 4, 8, (10, 7), (5, 2), (3, 2), (2, 0), (1, 1)),
        # Phases of the input gradient in one launch; rows of the last phase have no pixels.
        (2, 1, 72, 40, (9, 12), (3, 3), (2, 2), (1, 1), (1, 1)),
        (2, 1, 136, 72, (7, 9), (3, 2), (2, 2), (1, 0), (1, 1)),  # phases in separate launches
        # Merged rows as channels of one image; whole windows as rows of channels.
        (2, 1, 3, 16, (18, 20), (7, 7), (2, 2), (3, 3), (1, 1)),
        (2, 1, 72, 48, (8, 6), (1, 1), (2, 3), (1, 0), (1, 1)),  # all phases but one are zeros
        # All taps of a row in one tile of the weight gradient.
        (2, 1, 40, 24, (9, 11), (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 72, 1, 1, (9, 18), (3, 3), (2, 2), (1, 3), (1, 1)),  # squares of pixels that share their windows
        (2, 1, 16, 24, (60, 48), (5, 5), (1, 1), (2, 2), (1, 1)),  # adjacent pixels as one pixel of more channels
        (3, 1, 32, 8, (50, 66), (5, 5), (1, 1), (2, 1), (1, 1)),
        # Strips of depthwise windows: dilation, rows in several blocks.
        (2, 40, 1, 1, (13, 19), (3, 3), (1, 1), (2, 3), (2, 3)),
        # An odd number of pixels with stride 2.
        (3, 72, 1, 1, (33, 15), (3, 3), (2, 2), (1, 1), (1, 1)),
    ],
    3: [
        (2, 1, 3, 8, (5, 6, 7), (3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2)),
        (1, 2, 5, 3, (4, 5, 6), (1, 3, 3), (2, 1, 3), (0, 1, 1), (1, 2, 1)),
        (2, 1, 8, 16, (1, 12, 9), (1, 3, 3), (3, 1, 1), (1, 1, 1), (1, 1, 1)),  # windows before the only image
        (1, 24, 1, 1, (5, 9, 9), (3, 2, 2), (3, 1, 2), (1, 0, 1), (2, 3, 2)),  # phases of depth without a window
    ],
}


def samples(dims: int) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for i, (n, groups, c, k, extents, taps, stride, padding, dilation) in enumerate(CASES[dims]):
            x = normal((n, groups * c, *extents), dtype, generator)
            w = normal((groups * k, c, *taps), dtype, generator)
            b = normal((groups * k,), dtype, generator)
            rest = (list(stride), list(padding), list(dilation), groups)
            label = str(CASES[dims][i])
            yield Sample((x, w, b if i % 2 else None, *rest), label=label)
            yield Sample((channels_last(x), channels_last(w) if i % 2 else w, b, *rest), label=f"{label} channels last")
        x = normal((2, 6, *(8, 9, 7)[:dims]), dtype, generator)
        w = normal((9, 6, *(3, 3, 1)[:dims]), dtype, generator)
        b = normal((9,), dtype, generator)
        yield Sample((x[0], w, b), label="no batch")
        yield Sample((x[:1].expand(2, *x.shape[1:]), w, b), label="expanded")
        yield Sample((x.mT if dims > 1 else x, w), label="transposed image")
        yield Sample((x, w, b), {"auto_pad": "same", "dilation": [2]}, label="same")
        yield Sample((x, w, b), {"auto_pad": "valid"}, label="valid")

    return make


def fused_samples(dims: int) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        x = normal((2, 6, *(8, 9, 7)[:dims]), dtype, generator)
        w = normal((9, 6, *(3, 1, 3)[:dims]), dtype, generator)
        z = normal((2, 9, *x.shape[2:]), dtype, generator)
        for activation in ("none", "relu", "gelu", "silu", "hardswish", "sigmoid", "hardsigmoid", "relu6"):
            for form in (x, channels_last(x)):
                yield Sample(
                    (form, w, normal((9,), dtype, generator)),
                    {"auto_pad": "same", "residual": z, "activation": activation},
                    label=f"residual, {activation}",
                )
        yield Sample((x, w), {"activation": "silu", "stride": [2]}, label="silu")
        yield Sample((x, w, None, channels_last(z)), {"auto_pad": "same"}, label="residual channels last")
        yield Sample((x[1], w, None, z[1, :, :1]), {"auto_pad": "same"}, label="residual expanded")
        for form in (x, channels_last(x), x[0]):
            yield Sample(
                (form, w, normal((9,), dtype, generator)),
                {"auto_pad": "same", "activation": "relu", "pool": "mean"},
                label="means",
                rounds_between=True,
            )
        yield Sample(
            (x, w, None, channels_last(z)),
            {"auto_pad": "same", "pool": "mean"},
            label="means of a sum",
            rounds_between=True,
        )
        for n, c, k, extent in (
            (5, 16, 24, 9),
            (3, 72, 136, 12),
            (1, 8, 8, 1),
        ):  # tiles with pixels of several images, and images of several tiles
            image, weight = (
                channels_last(normal((n, c, *[extent] * dims), dtype, generator)),
                normal((k, c, *[1] * dims), dtype, generator),
            )
            yield Sample(
                (image, weight, normal((k,), dtype, generator)),
                {"activation": "silu", "pool": "mean"},
                label=f"means, {n} of {extent}",
                rounds_between=True,
            )

    return make


#: Images, groups, channels of a group, results of a group, extents, taps, stride, padding, output_padding, dilation.
TRANSPOSED: dict[int, list[tuple]] = {
    1: [(2, 1, 3, 5, (17,), (3,), (2,), (1,), (1,), (1,)), (1, 2, 33, 9, (40,), (4,), (3,), (0,), (2,), (2,))],
    2: [
        (2, 1, 17, 8, (7, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
        (1, 2, 3, 5, (6, 5), (2, 3), (3, 1), (1, 2), (2, 0), (1, 2)),
        (1, 1, 70, 66, (8, 8), (3, 3), (1, 1), (1, 1), (0, 0), (1, 1)),
        (2, 4, 1, 1, (5, 6), (1, 2), (2, 3), (0, 0), (1, 1), (1, 1)),
    ],
    3: [(2, 1, 3, 4, (3, 4, 5), (3, 2, 3), (1, 2, 2), (1, 0, 1), (0, 1, 1), (1, 1, 2))],
}


def transposed_samples(dims: int) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for n, groups, k, c, extents, taps, stride, padding, more, dilation in TRANSPOSED[dims]:
            x = normal((n, groups * k, *extents), dtype, generator)
            w = normal((groups * k, c, *taps), dtype, generator)
            b = normal((groups * c,), dtype, generator)
            rest = (list(stride), list(padding), list(more), groups, list(dilation))
            yield Sample((x, w, None, *rest), label=f"{extents} by {taps}")
            yield Sample((channels_last(x), w, b, *rest), label=f"{extents} by {taps} channels last")
            yield Sample((x[0], channels_last(w), b, *rest), label=f"{extents} by {taps} without batch")
            yield Sample((x, w, b, [1], [0], [0], groups), label=f"{extents} by {taps} plain")
            yield Sample(
                (x.transpose(0, 1).contiguous().transpose(0, 1), w, b, [2], [0], [0], groups),
                label=f"{extents} by {taps}, images inside",
            )
            yield Sample((x[:0], w, b, [1], [0], [0], groups), label=f"{extents} by {taps} without images")

    return make


def reference(dims: int) -> Callable[..., Tensor]:
    def compute(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride=(1,),
        padding=(0,),
        dilation=(1,),
        groups: int = 1,
        auto_pad: str = "",
    ) -> Tensor:
        return CONV[dims](input, weight, bias, tuple(stride), auto_pad or tuple(padding), tuple(dilation), groups)

    return compute


def fused_reference(dims: int) -> Callable[..., Tensor]:
    def compute(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        residual: Tensor | None = None,
        stride=(1,),
        padding=(0,),
        dilation=(1,),
        groups: int = 1,
        auto_pad: str = "",
        activation: str = "none",
        pool: str = "none",
    ) -> Tensor:
        result = reference(dims)(input, weight, bias, stride, padding, dilation, groups, auto_pad)
        result = result if residual is None else result + residual
        result = result if activation == "none" else getattr(F, activation)(result)
        return result.mean(tuple(range(-dims, 0)), keepdim=True) if pool == "mean" else result

    return compute


def magnitude(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the sum of absolute values. No activation is steeper than 1.5."""

    def compute(*args, **kwargs) -> Tensor:
        kwargs = {k: v.abs() if isinstance(v, Tensor) else v for k, v in kwargs.items() if k != "activation"}
        return 1.5 * function(*(v.abs() if isinstance(v, Tensor) else v for v in args), **kwargs)

    return compute


def transposed(dims: int) -> Callable[..., Tensor]:
    return {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[dims]


#: n, c, size, k, taps, stride: layers of ResNet-50.
LAYERS = [
    (1, 3, 224, 64, 7, 2),
    (1, 64, 56, 64, 3, 1),
    (1, 128, 28, 128, 3, 1),
    (1, 256, 14, 256, 3, 1),
    (1, 512, 7, 512, 3, 1),
    (1, 256, 56, 64, 1, 1),
    (1, 1024, 14, 256, 1, 1),
]


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    found = {}
    for n, c, size, k, taps, stride in LAYERS:
        x = normal((n, c, size, size), torch.float32, generator)
        w = normal((k, c, taps, taps), torch.float32, generator)
        found[f"{n}x{c}x{size}x{size} to {k} by {taps}x{taps}"] = Sample((x, w, None, [stride], [taps // 2]))
    return found


SPECS = [
    spec
    for dims in (1, 2, 3)
    for spec in (
        OpSpec(
            f"kpkg::conv{dims}d",
            reference(dims),
            samples(dims),
            magnitude=magnitude(reference(dims)),
            benchmarks=benchmarks if dims == 2 else None,
            eager=F.conv2d if dims == 2 else None,
        ),
        OpSpec(
            f"kpkg::conv{dims}d_fused",
            fused_reference(dims),
            fused_samples(dims),
            magnitude=magnitude(fused_reference(dims)),
        ),
        OpSpec(
            f"kpkg::conv_transpose{dims}d",
            transposed(dims),
            transposed_samples(dims),
            magnitude=magnitude(transposed(dims)),
        ),
    )
]
