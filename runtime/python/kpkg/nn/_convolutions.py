"""Defines the convolution layers of `kpkg.nn`: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class _Convolution(Layer):
    def _example_inputs(self) -> tuple[Tensor, ...]:
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation)]
        return (torch.empty(1, self.in_channels, *reach, device="meta"),)

    def _stands_back(self) -> bool:
        return bool(self.padding_mode != "zeros")


def _settings_allow_tf32() -> bool:
    settings = torch.backends.cudnn
    return bool(settings.conv.fp32_precision == "tf32" if hasattr(settings, "conv") else settings.allow_tf32)


# As torch.compiler.assume_constant_result does, but without its import of the compiler, which takes seconds.
_settings_allow_tf32._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _allows_tf32(input: Tensor) -> bool:
    """Returns whether PyTorch may round float32 to 10 bits of mantissa in convolutions.

    On GPUs it does so unless told otherwise.
    """
    return input.dtype == torch.float32 and input.device.type == "cuda" and _settings_allow_tf32()


class _Conv(_Convolution):
    """Convolves images. With a padding_mode other than zeros, PyTorch runs."""

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return input, self.weight, self.bias, *self._settings(input)

    def _settings(self, input: Tensor) -> tuple[Any, ...]:
        """Returns the op's arguments behind weight and bias."""
        padding, named = ((0,), self.padding) if isinstance(self.padding, str) else (self.padding, "")
        return self.stride, padding, self.dilation, self.groups, named, _allows_tf32(input)


class _ConvTranspose(_Convolution, options="weight bias stride padding output_padding groups dilation"):
    """Computes the transposed convolution of images."""

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Any:
        """Computes the layer as torch.nn does: `output_size` decides between the results that the stride allows."""
        return super().forward(input, *(() if output_size is None else (output_size,)))

    def _arguments(self, input: Tensor, output_size: list[int] | None = None) -> tuple[Any, ...]:
        if output_size is None:
            return super()._arguments(input)
        given = self.stride, self.padding, self.kernel_size, self.rank, self.dilation
        more = self._output_padding(input, output_size, *given)
        return input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation


class Conv1d(_Conv, nn.Conv1d, op="conv1d"):
    """Convolves (N, C, L) or (C, L). With a padding_mode other than zeros, PyTorch runs."""


class Conv2d(_Conv, nn.Conv2d, op="conv2d"):
    """Convolves (N, C, H, W) or (C, H, W). With a padding_mode other than zeros, PyTorch runs."""


class Conv3d(_Conv, nn.Conv3d, op="conv3d"):
    """Convolves (N, C, D, H, W) or (C, D, H, W). With a padding_mode other than zeros, PyTorch runs."""


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d, op="conv_transpose1d"):
    """Computes the transposed convolution of (N, C, L) or (C, L)."""


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d, op="conv_transpose2d"):
    """Computes the transposed convolution of (N, C, H, W) or (C, H, W)."""


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d, op="conv_transpose3d"):
    """Computes the transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""
