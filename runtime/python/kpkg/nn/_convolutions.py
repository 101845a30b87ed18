"""Defines the convolution layers of `kpkg.nn`: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class _Convolution(Layer):
    def _example_input(self) -> Tensor:
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel_size, self.dilation)]
        return torch.empty(1, self.in_channels, *reach, device="meta")

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
    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.weight, self.bias, *self._settings(input)

    def _settings(self, input: Tensor) -> tuple[Any, ...]:
        """Returns the op's arguments behind weight and bias."""
        named = isinstance(self.padding, str)
        padding = [0] if named else list(self.padding)
        return (
            list(self.stride),
            padding,
            list(self.dilation),
            self.groups,
            self.padding if named else "",
            _allows_tf32(input),
        )


class _ConvTranspose(_Convolution):
    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return self._with_padding(input, list(self.output_padding))

    def _with_padding(self, input: Tensor, output_padding: list[int]) -> tuple[Any, ...]:
        return (
            input,
            self.weight,
            self.bias,
            list(self.stride),
            list(self.padding),
            output_padding,
            self.groups,
            list(self.dilation),
        )

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Computes the layer as torch.nn does: `output_size` decides between the results that the stride allows."""
        if output_size is None:
            return super().forward(input)
        if not self._kpkg_wanted or self._stands_back() or not self._kpkg_op.is_available:
            return cast(Tensor, self.torch_layer.forward(self, input, output_size))
        more = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, len(self.kernel_size), self.dilation
        )
        return cast(Tensor, self._kpkg_op(*self._with_padding(input, list(more))))


class Conv1d(_Conv, nn.Conv1d):
    """Convolves (N, C, L) or (C, L). With a padding_mode other than zeros, PyTorch runs."""

    kpkg_ops, torch_layer = ("kpkg::conv1d",), nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """Convolves (N, C, H, W) or (C, H, W). With a padding_mode other than zeros, PyTorch runs."""

    kpkg_ops, torch_layer = ("kpkg::conv2d",), nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """Convolves (N, C, D, H, W) or (C, D, H, W). With a padding_mode other than zeros, PyTorch runs."""

    kpkg_ops, torch_layer = ("kpkg::conv3d",), nn.Conv3d


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d):
    """Computes the transposed convolution of (N, C, L) or (C, L)."""

    kpkg_ops, torch_layer = ("kpkg::conv_transpose1d",), nn.ConvTranspose1d


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d):
    """Computes the transposed convolution of (N, C, H, W) or (C, H, W)."""

    kpkg_ops, torch_layer = ("kpkg::conv_transpose2d",), nn.ConvTranspose2d


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d):
    """Computes the transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    kpkg_ops, torch_layer = ("kpkg::conv_transpose3d",), nn.ConvTranspose3d
