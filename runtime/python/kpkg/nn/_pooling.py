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
    rank: int = 0

    def _each(self, value: int | Sequence[int] | None) -> list[int]:
        """Returns one number for each dimension, and an empty list for None."""
        return [] if value is None else [value] * self.rank if isinstance(value, int) else list(value)

    def _example_input(self) -> Tensor:
        return torch.empty(2, 2, *(max(n, 1) + 1 for n in self._each(self.kernel_size)), device="meta")


class _MaxPool(_Pool):
    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        each = self._each
        return input, each(self.kernel_size), each(self.stride), each(self.padding), each(self.dilation), self.ceil_mode

    def _stands_back(self) -> bool:
        return bool(self.return_indices)


class _AvgPool(_Pool):
    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        each = self._each
        divisor = getattr(self, "divisor_override", None) or 0
        return (
            input,
            each(self.kernel_size),
            each(self.stride),
            each(self.padding),
            self.ceil_mode,
            self.count_include_pad,
            divisor,
        )


class MaxPool1d(_MaxPool, nn.MaxPool1d):
    """Returns the greatest element of each window. Input: (N, C, L) or (C, L). With return_indices, PyTorch runs."""

    kpkg_ops, torch_layer, rank = ("kpkg::max_pool1d",), nn.MaxPool1d, 1


class MaxPool2d(_MaxPool, nn.MaxPool2d):
    """Returns the greatest element of each window. Input: (N, C, H, W) or (C, H, W).

    With return_indices, PyTorch runs.
    """

    kpkg_ops, torch_layer, rank = ("kpkg::max_pool2d",), nn.MaxPool2d, 2


class MaxPool3d(_MaxPool, nn.MaxPool3d):
    """Returns the greatest element of each window. Input: (N, C, D, H, W) or (C, D, H, W).

    With return_indices, PyTorch runs.
    """

    kpkg_ops, torch_layer, rank = ("kpkg::max_pool3d",), nn.MaxPool3d, 3


class AvgPool1d(_AvgPool, nn.AvgPool1d):
    """Returns the mean of each window. Input: (N, C, L) or (C, L)."""

    kpkg_ops, torch_layer, rank = ("kpkg::avg_pool1d",), nn.AvgPool1d, 1


class AvgPool2d(_AvgPool, nn.AvgPool2d):
    """Returns the mean of each window. Input: (N, C, H, W) or (C, H, W)."""

    kpkg_ops, torch_layer, rank = ("kpkg::avg_pool2d",), nn.AvgPool2d, 2


class AvgPool3d(_AvgPool, nn.AvgPool3d):
    """Returns the mean of each window. Input: (N, C, D, H, W) or (C, D, H, W)."""

    kpkg_ops, torch_layer, rank = ("kpkg::avg_pool3d",), nn.AvgPool3d, 3


class _AdaptiveAvgPool(_Pool):
    """Computes one mean for each channel; PyTorch computes other output sizes."""

    kpkg_ops = ("kpkg::mean",)

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, list(range(-self.rank, 0)), True

    def _example_input(self) -> Tensor:
        return torch.empty(2, 2, *[3] * self.rank, device="meta")

    def _stands_back(self) -> bool:
        return self._each(self.output_size) != [1] * self.rank

    @property
    def use_kpkg(self) -> bool:
        """Returns whether forward runs kpkg's op, as for every layer; False also for other output sizes."""
        # mypy takes the property for its setter.
        return not self._stands_back() and Layer.use_kpkg.fget(self)  # type: ignore[attr-defined]

    @use_kpkg.setter
    def use_kpkg(self, wanted: bool) -> None:
        self._kpkg_wanted = bool(wanted)


class AdaptiveAvgPool1d(_AdaptiveAvgPool, nn.AdaptiveAvgPool1d):
    """Returns the mean of each channel. Input: (N, C, L) or (C, L). With an output_size other than 1, PyTorch runs."""

    torch_layer, rank = nn.AdaptiveAvgPool1d, 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool, nn.AdaptiveAvgPool2d):
    """Returns the mean of each channel. Input: (N, C, H, W) or (C, H, W).

    With an output_size other than 1, PyTorch runs.
    """

    torch_layer, rank = nn.AdaptiveAvgPool2d, 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool, nn.AdaptiveAvgPool3d):
    """Returns the mean of each channel. Input: (N, C, D, H, W) or (C, D, H, W).

    With an output_size other than 1, PyTorch runs.
    """

    torch_layer, rank = nn.AdaptiveAvgPool3d, 3
