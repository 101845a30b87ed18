"""Softmax and norms of `kpkg.nn`: drop-in for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Softmax(Layer, nn.Softmax):
    """Softmax along `dim`. Input: any shape, a float dtype; output: the same. ``dim=None`` is PyTorch's (deprecated) choice."""

    kpkg_ops, torch_layer = ("kpkg::softmax",), nn.Softmax

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, _dimension(self.dim, input)


class LogSoftmax(Layer, nn.LogSoftmax):
    """Logarithm of softmax along `dim`. Input: any shape, a float dtype; output: the same."""

    kpkg_ops, torch_layer = ("kpkg::log_softmax",), nn.LogSoftmax

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, _dimension(self.dim, input)


def _dimension(dim: int | None, input: Tensor) -> int:
    return dim if dim is not None else 0 if input.dim() in (0, 1, 3) else 1


class LayerNorm(Layer, nn.LayerNorm):
    """Norm over the last dimensions. Input: (..., *normalized_shape); output: the same shape and dtype."""

    kpkg_ops, torch_layer = ("kpkg::layer_norm",), nn.LayerNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.normalized_shape, self.weight, self.bias, self.eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, *self.normalized_shape, device="meta")


class RMSNorm(Layer, nn.RMSNorm):
    """Division by the root of the mean square over the last dimensions. Input: (..., *normalized_shape); output: the same."""

    kpkg_ops, torch_layer = ("kpkg::rms_norm",), nn.RMSNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        eps = self.eps if self.eps is not None else torch.finfo(input.dtype).eps
        return input, self.normalized_shape, self.weight, eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, *self.normalized_shape, device="meta")


class GroupNorm(Layer, nn.GroupNorm):
    """Norm over groups of channels. Input: (N, C, ...); output: the same."""

    kpkg_ops, torch_layer = ("kpkg::group_norm",), nn.GroupNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.num_groups, self.weight, self.bias, self.eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_channels, 4, device="meta")


class _BatchNorm(Layer):
    """Norm of each channel by running statistics. In training, where the batch's own are used and tracked, PyTorch runs."""

    kpkg_ops = ("kpkg::batch_norm",)

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.running_mean, self.running_var, self.weight, self.bias, self.eps

    def _stands_back(self) -> bool:
        return self.training or self.running_mean is None

    @property
    def use_kpkg(self) -> bool:
        """As for every layer; False also in training and without running statistics."""
        return not self._stands_back() and Layer.use_kpkg.fget(self)  # type: ignore[attr-defined, no-any-return]

    @use_kpkg.setter
    def use_kpkg(self, wanted: bool) -> None:
        self._kpkg_wanted = bool(wanted)


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """Input: (N, C) or (N, C, L); output: the same. kpkg runs in eval mode only."""

    torch_layer = nn.BatchNorm1d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, device="meta")


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Input: (N, C, H, W); output: the same. kpkg runs in eval mode only."""

    torch_layer = nn.BatchNorm2d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, 4, device="meta")


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Input: (N, C, D, H, W); output: the same. kpkg runs in eval mode only."""

    torch_layer = nn.BatchNorm3d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 2, 4, 4, device="meta")


class _InstanceNorm(Layer):
    """Norm of each channel of each sample. With tracked statistics PyTorch runs."""

    kpkg_ops = ("kpkg::instance_norm",)

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.weight, self.bias, self.eps

    def _stands_back(self) -> bool:
        return bool(self.track_running_stats)

    def _run(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if input.dim() == self._get_no_batch_dim():
            return super()._run(input.unsqueeze(0)).squeeze(0)
        return super()._run(input)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Input: (N, C, L) or (C, L); output: the same."""

    torch_layer = nn.InstanceNorm1d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, device="meta")


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Input: (N, C, H, W) or (C, H, W); output: the same."""

    torch_layer = nn.InstanceNorm2d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, 4, device="meta")


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Input: (N, C, D, H, W) or (C, D, H, W); output: the same."""

    torch_layer = nn.InstanceNorm3d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 2, 4, 4, device="meta")
