"""Defines softmax and the norms of `kpkg.nn`: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg.nn._layer import Layer


class Softmax(Layer, nn.Softmax):
    """Computes softmax along `dim`.

    Input: any shape, a float dtype; output: the same. ``dim=None`` is PyTorch's (deprecated) choice.
    """

    kpkg_ops, torch_layer = ("kpkg::softmax",), nn.Softmax

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, _dimension(self.dim, input)


class LogSoftmax(Layer, nn.LogSoftmax):
    """Computes the logarithm of softmax along `dim`. Input: any shape, a float dtype; output: the same."""

    kpkg_ops, torch_layer = ("kpkg::log_softmax",), nn.LogSoftmax

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, _dimension(self.dim, input)


def _dimension(dim: int | None, input: Tensor) -> int:
    return dim if dim is not None else 0 if input.dim() in (0, 1, 3) else 1


class LayerNorm(Layer, nn.LayerNorm):
    """Normalizes over the last dimensions. Input: (..., *normalized_shape); output: the same shape and dtype."""

    kpkg_ops, torch_layer = ("kpkg::layer_norm",), nn.LayerNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.normalized_shape, self.weight, self.bias, self.eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, *self.normalized_shape, device="meta")


class RMSNorm(Layer, nn.RMSNorm):
    """Divides by the root of the mean square over the last dimensions.

    Input: (..., *normalized_shape); output: the same.
    """

    kpkg_ops, torch_layer = ("kpkg::rms_norm",), nn.RMSNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        eps = self.eps if self.eps is not None else torch.finfo(input.dtype).eps
        return input, self.normalized_shape, self.weight, eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, *self.normalized_shape, device="meta")


class GroupNorm(Layer, nn.GroupNorm):
    """Normalizes over groups of channels. Input: (N, C, ...); output: the same."""

    kpkg_ops, torch_layer = ("kpkg::group_norm",), nn.GroupNorm

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, self.num_groups, self.weight, self.bias, self.eps

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_channels, 4, device="meta")


class _BatchNorm(Layer):
    """Normalizes each channel.

    Training uses the batch's own statistics, and moves the running ones by them. Evaluation uses the running
    statistics, or the batch's if there are none.
    """

    kpkg_ops = ("kpkg::batch_norm",)

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        if self._takes_statistics():
            return input, self.weight, self.bias, self.eps
        return input, self.running_mean, self.running_var, self.weight, self.bias, self.eps

    def _takes_statistics(self) -> bool:
        return self.training or self.running_mean is None

    def supports(self, device: torch.device | str, dtype: torch.dtype) -> bool:
        """Returns whether a package has a kernel for inputs of this device and dtype, in the layer's current mode.

        Args:
            device: The device of inputs.
            dtype: The dtype of inputs.

        Raises:
            RuntimeError: PyTorch does not know the device.
        """
        if not self._takes_statistics():
            return super().supports(device, dtype)
        op = _default.ops["kpkg::batch_norm_training"]
        return op.is_available and op.supports(*self._example(torch.device(device), dtype))

    def _run(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if not self._takes_statistics():
            return super()._run(input)
        count = input.numel() // max(input.shape[1], 1)
        if count == 1:
            raise ValueError(
                f"expected more than 1 value per channel in training, got an input of {tuple(input.shape)}"
            )
        out, mean, variance = _default.ops["kpkg::batch_norm_training"](*self._arguments(input))
        if self.training and self.track_running_stats and self.running_mean is not None:
            self._track(mean.detach(), variance.detach(), count)
        return out

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Moves the running statistics as PyTorch does.

        By ``momentum``, or to the mean of all batches where that is None.
        """
        self.num_batches_tracked.add_(1)
        if count == 0:
            return  # an empty batch has no statistics
        momentum = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        running = self.running_mean, self.running_var
        moved = _default.ops["kpkg::moved_statistics"](*running, mean, variance, count, momentum)
        for statistic, new in zip(running, moved):
            statistic.copy_(new)


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """Normalizes each channel. Input: (N, C) or (N, C, L); output: the same."""

    torch_layer = nn.BatchNorm1d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, device="meta")


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Normalizes each channel. Input: (N, C, H, W); output: the same."""

    torch_layer = nn.BatchNorm2d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, 4, device="meta")


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Normalizes each channel. Input: (N, C, D, H, W); output: the same."""

    torch_layer = nn.BatchNorm3d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 2, 4, 4, device="meta")


class _InstanceNorm(Layer):
    """Normalizes each channel of each sample. With tracked statistics, PyTorch runs."""

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
    """Normalizes each channel of each sample. Input: (N, C, L) or (C, L); output: the same."""

    torch_layer = nn.InstanceNorm1d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, device="meta")


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Normalizes each channel of each sample. Input: (N, C, H, W) or (C, H, W); output: the same."""

    torch_layer = nn.InstanceNorm2d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 4, 4, device="meta")


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Normalizes each channel of each sample. Input: (N, C, D, H, W) or (C, D, H, W); output: the same."""

    torch_layer = nn.InstanceNorm3d

    def _example_input(self) -> Tensor:
        return torch.empty(2, self.num_features, 2, 4, 4, device="meta")
