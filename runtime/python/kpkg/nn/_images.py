"""Defines the layers of `kpkg.nn` that move pixels of images: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class PixelShuffle(Layer, nn.PixelShuffle, op="pixel_shuffle", options="upscale_factor"):
    """Moves channels to pixels. Input: (..., C r r, H, W), output: (..., C, H r, W r) for a factor r."""

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(1, self.upscale_factor**2, 2, 2, device="meta"),)


class PixelUnshuffle(Layer, nn.PixelUnshuffle, op="pixel_unshuffle", options="downscale_factor"):
    """Moves pixels to channels. Input: (..., C, H r, W r), output: (..., C r r, H, W) for a factor r."""

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(1, 1, 2 * self.downscale_factor, 2 * self.downscale_factor, device="meta"),)
