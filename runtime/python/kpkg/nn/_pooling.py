"""Defines the pooling layers of `kpkg.nn`: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class _Pool(Layer):
    #: Options that are numbers for each dimension of an image, or one number for all.
    _EACH = frozenset({"kernel_size", "stride", "padding", "dilation"})

    def _each(self, value: int | Sequence[int] | None) -> list[int]:
        """Returns one number for each dimension, and an empty list for None."""
        return [] if value is None else [value] * self.rank if isinstance(value, int) else list(value)

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        given = ((name, getattr(self, name)) for name in self.options)
        return (input, *(self._each(value) if name in self._EACH else value for name, value in given))

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, 2, *(max(n, 1) + 1 for n in self._each(self.kernel_size)), device="meta"),)


class _MaxPool(_Pool, options="kernel_size stride padding dilation ceil_mode"):
    """Returns the greatest of each window. With return_indices, PyTorch runs."""

    def _stands_back(self) -> bool:
        return bool(self.return_indices)


class _AvgPool(_Pool, options="kernel_size stride padding ceil_mode count_include_pad"):
    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return *super()._arguments(input), getattr(self, "divisor_override", None) or 0


class _AdaptiveAvgPool(_Pool, op="mean"):
    """Computes one mean for each channel; PyTorch computes other output sizes."""

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return input, list(range(-self.rank, 0)), True

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, 2, *[3] * self.rank, device="meta"),)

    def _stands_back(self) -> bool:
        return self._each(self.output_size) != [1] * self.rank


class MaxPool1d(_MaxPool, nn.MaxPool1d, op="max_pool1d"):
    """Returns the greatest of each window. Input: (N, C, L) or (C, L). Indices are PyTorch's."""


class MaxPool2d(_MaxPool, nn.MaxPool2d, op="max_pool2d"):
    """Returns the greatest of each window. Input: (N, C, H, W) or (C, H, W). Indices are PyTorch's."""


class MaxPool3d(_MaxPool, nn.MaxPool3d, op="max_pool3d"):
    """Returns the greatest of each window. Input: (N, C, D, H, W) or (C, D, H, W). Indices are PyTorch's."""


class AvgPool1d(_AvgPool, nn.AvgPool1d, op="avg_pool1d"):
    """Returns the mean of each window. Input: (N, C, L) or (C, L)."""


class AvgPool2d(_AvgPool, nn.AvgPool2d, op="avg_pool2d"):
    """Returns the mean of each window. Input: (N, C, H, W) or (C, H, W)."""


class AvgPool3d(_AvgPool, nn.AvgPool3d, op="avg_pool3d"):
    """Returns the mean of each window. Input: (N, C, D, H, W) or (C, D, H, W)."""


class AdaptiveAvgPool1d(_AdaptiveAvgPool, nn.AdaptiveAvgPool1d):
    """Returns the mean of each channel. Input: (N, C, L) or (C, L). Sizes other than 1 are PyTorch's."""


class AdaptiveAvgPool2d(_AdaptiveAvgPool, nn.AdaptiveAvgPool2d):
    """Returns the mean of each channel. Input: (N, C, H, W) or (C, H, W). Sizes other than 1 are PyTorch's."""


class AdaptiveAvgPool3d(_AdaptiveAvgPool, nn.AdaptiveAvgPool3d):
    """Returns the mean of each channel. Input: (N, C, D, H, W) or (C, D, H, W). Sizes other than 1 are PyTorch's."""
