"""Specs of sampling, resizing and rearranging images.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, channels_last, normal
from torch import Tensor

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def points(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns points in and around images of 8 and 16 pixels. All dtypes represent their places.

    None lies in the middle between two pixels.
    """
    return ((torch.randint(-24, 24, (*shape, 2), generator=generator, device=generator.device) + 0.5) / 16).to(dtype)


def sample_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for mode in MODES:
        for padding in PADDINGS:
            for corners in (False, True) if mode != "nearest" else (False,):
                x = normal((2, 3, 8, 16), dtype, generator)
                grid = points((2, 5, 60), dtype, generator)
                yield Sample((x, grid, mode, padding, corners), label=f"{mode}, {padding}, {corners}")
    x = normal((1, 2, 4, 8), dtype, generator)
    yield Sample((channels_last(x), points((1, 1, 1), dtype, generator)), label="channels last")
    yield Sample((x.transpose(2, 3), points((1, 7, 9), dtype, generator).transpose(1, 2)), label="transposed")
    yield Sample((x, points((1, 0, 3), dtype, generator)), label="no points")
    yield Sample((x[:, :0], points((1, 2, 3), dtype, generator)), label="no channels")
    yield Sample((x[:, :, :1, :1], points((1, 2, 3), dtype, generator), "bilinear", "reflection"), label="one pixel")


def resize(
    input: Tensor, size: list[int], mode: str = "nearest", corners: bool = False, smooth: bool = False
) -> Tensor:
    if mode.startswith("nearest"):
        return F.interpolate(input, size, mode=mode)
    return F.interpolate(input, size, mode=mode, align_corners=corners, antialias=smooth)


def resize_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for size in ([7, 10], [14, 20], [3, 4], [1, 1], [20, 5], [2, 31]):
        x = normal((2, 3, 7, 10), dtype, generator)
        for mode in ("nearest", "nearest-exact"):
            yield Sample((x, size, mode), label=f"{mode} to {size}")
        for mode in ("bilinear", "bicubic"):
            for corners in (False, True):
                for smooth in (False, True):
                    yield Sample((x, size, mode, corners, smooth), label=f"{mode} to {size}, {corners}, {smooth}")
    x = normal((1, 2, 40, 60), dtype, generator)
    yield Sample((x, [11, 9], "bicubic", False, True), label="smoothed")
    yield Sample((channels_last(x), [20, 30], "bilinear"), label="channels last")
    yield Sample((x.transpose(2, 3)[:, :, ::2], [33, 12], "bilinear", False, True), label="transposed, step 2")


def align(
    input: Tensor,
    boxes: Tensor,
    size: list[int],
    scale: float = 1.0,
    ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Averages samples, one after the other."""
    y = input.new_zeros(len(boxes), input.shape[1], *size)
    height, width = input.shape[2:]
    for b, box in enumerate(boxes.tolist()):
        left, top, right, bottom = (v * scale - (0.5 if aligned else 0.0) for v in box[1:])
        w, h = right - left, bottom - top
        if not aligned:
            w, h = max(w, 1.0), max(h, 1.0)
        rows = ratio if ratio > 0 else math.ceil(h / size[0])
        columns = ratio if ratio > 0 else math.ceil(w / size[1])
        for row, column, i, j in (
            (a, b, i, j) for a in range(size[0]) for b in range(size[1]) for i in range(rows) for j in range(columns)
        ):
            at_h = top + (row + (i + 0.5) / rows) * h / size[0]
            at_w = left + (column + (j + 0.5) / columns) * w / size[1]
            if not (-1 <= at_h <= height and -1 <= at_w <= width):
                continue
            at_h, at_w = min(max(at_h, 0), height - 1), min(max(at_w, 0), width - 1)
            h0, w0 = int(at_h), int(at_w)
            h1, w1 = min(h0 + 1, height - 1), min(w0 + 1, width - 1)
            image = input[int(box[0])]
            above = image[:, h0, w0] * (1 - at_w + w0) + image[:, h0, w1] * (at_w - w0)
            below = image[:, h1, w0] * (1 - at_w + w0) + image[:, h1, w1] * (at_w - w0)
            y[b, :, row, column] += (above * (1 - at_h + h0) + below * (at_h - h0)) / (rows * columns)
    return y


def drawn_boxes(count: int, images: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns boxes whose sides all dtypes represent: odd numbers of 16ths, so that no sample is at a border."""

    def drawn(low: int, high: int, columns: int) -> Tensor:
        numbers = torch.randint(low, high, (count, columns), generator=generator, device=generator.device)
        return (numbers * 2 + 1) / 16

    corner = drawn(-12, 60, 2)
    number = torch.randint(0, images, (count, 1), generator=generator, device=generator.device)
    return torch.cat([number, corner, corner + drawn(0, 56, 2)], 1).to(dtype)


def align_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    x = normal((2, 3, 9, 12), dtype, generator)
    for size in ([1, 1], [2, 3], [7, 7]):
        for aligned in (False, True):
            for ratio in (-1, 2):
                boxes = drawn_boxes(9, 2, dtype, generator)
                label = f"{size}, {ratio} samples, {'aligned' if aligned else 'not aligned'}"
                yield Sample((x, boxes, size, 1.0, ratio, aligned), label=label)
    yield Sample((channels_last(x), drawn_boxes(3, 2, dtype, generator), [2, 2], 0.5), label="channels last, scaled")
    yield Sample((x, drawn_boxes(0, 2, dtype, generator), [2, 2]), label="no boxes")
    yield Sample((x.transpose(2, 3), drawn_boxes(5, 2, dtype, generator), [3, 2], 2.0, 1), label="transposed")


def shuffle_samples(channels: int) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for r in (1, 2, 3):
            c, s = (channels * r * r, 1) if channels else (3, r)
            yield Sample((normal((2, c, 4 * s, 5 * s), dtype, generator), r), label=f"{r}, two images")
            yield Sample((normal((c, 3 * s, 7 * s), dtype, generator), r), label=f"{r}, one image")
            yield Sample((normal((2, c, 6 * s, 4 * s), dtype, generator).transpose(2, 3), r), label=f"{r}, transposed")
        if channels:  # of no images PyTorch's pixel_unshuffle keeps the shape
            yield Sample((normal((0, 4, 6, 6), dtype, generator), 2), label="no images")

    return samples


SPECS = [
    OpSpec(
        "kpkg::grid_sample",
        lambda x, grid, mode="bilinear", padding="zeros", corners=False: F.grid_sample(x, grid, mode, padding, corners),
        sample_samples,
        magnitude=lambda x, *_: 16 * x.abs().amax() if x.numel() else torch.tensor(0.0),
        benchmarks=lambda generator: {
            "8x16x64x64": Sample(
                (normal((8, 16, 64, 64), torch.float32, generator), points((8, 64, 64), torch.float32, generator))
            )
        },
        eager=lambda x, grid: F.grid_sample(x, grid, align_corners=False),
    ),
    OpSpec(
        "kpkg::interpolate",
        resize,
        resize_samples,
        magnitude=lambda x, *_: 16 * x.abs().amax() if x.numel() else torch.tensor(0.0),
        benchmarks=lambda generator: {
            "8x16x64x64": Sample((normal((8, 16, 64, 64), torch.float32, generator), [128, 128], "bilinear"))
        },
        eager=resize,
    ),
    OpSpec(
        "kpkg::roi_align",
        align,
        align_samples,
        magnitude=lambda x, *_: 16 * x.abs().amax() if x.numel() else torch.tensor(0.0),
        benchmarks=lambda generator: {
            "50 boxes": Sample(
                (
                    normal((2, 64, 32, 32), torch.float32, generator),
                    drawn_boxes(50, 2, torch.float32, generator),
                    [7, 7],
                    1.0,
                    2,
                )
            )
        },
    ),
    OpSpec(
        "kpkg::pixel_shuffle",
        F.pixel_shuffle,
        shuffle_samples(2),
        accumulation=0.0,
        benchmarks=lambda generator: {"8x64x64x64": Sample((normal((8, 64, 64, 64), torch.float32, generator), 2))},
        eager=F.pixel_shuffle,
    ),
    OpSpec(
        "kpkg::pixel_unshuffle",
        F.pixel_unshuffle,
        shuffle_samples(0),
        accumulation=0.0,
        benchmarks=lambda generator: {"8x16x64x64": Sample((normal((8, 16, 64, 64), torch.float32, generator), 2))},
        eager=F.pixel_unshuffle,
    ),
]
