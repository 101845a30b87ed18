"""Sampling, resizing and rearranging of images with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from opinfo.libraries import LeftToPyTorch, library


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    return library("images").pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    return library("images").pixel_unshuffle(input, downscale_factor)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    if input.dim() != 4:
        raise LeftToPyTorch("volumes are PyTorch's")
    return library("images").grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    if input.dim() != 4 or size is None or mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise LeftToPyTorch("images have a size")
    size = [size, size] if isinstance(size, int) else list(size)
    return library("images").interpolate(input, size, mode, bool(align_corners), antialias)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Any:
    return interpolate(input, size, scale_factor, "bilinear", True)
