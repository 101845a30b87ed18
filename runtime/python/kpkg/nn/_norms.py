"""Defines softmax and the norms of `kpkg.nn`: drop-in layers for those of `torch.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg.nn._layer import Layer


class _Softmax(Layer):
    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return input, self.dim if self.dim is not None else 0 if input.dim() in (0, 1, 3) else 1


class Softmax(_Softmax, nn.Softmax, op="softmax"):
    """Computes softmax along `dim`. Input: any shape, a float dtype; output: the same.

    ``dim=None`` is PyTorch's (deprecated) choice.
    """


class LogSoftmax(_Softmax, nn.LogSoftmax, op="log_softmax"):
    """Computes the logarithm of softmax along `dim`. Input: any shape, a float dtype; output: the same."""


class _RowNorm(Layer):
    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, *self.normalized_shape, device="meta"),)


class LayerNorm(_RowNorm, nn.LayerNorm, op="layer_norm", options="normalized_shape weight bias eps"):
    """Normalizes over the last dimensions. Input: (..., *normalized_shape); output: the same shape and dtype."""


class RMSNorm(_RowNorm, nn.RMSNorm, op="rms_norm"):
    """Divides by the root of the mean square over the last dimensions.

    Input: (..., *normalized_shape); output: the same.
    """

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        eps = self.eps if self.eps is not None else torch.finfo(input.dtype).eps
        return input, self.normalized_shape, self.weight, eps


class GroupNorm(Layer, nn.GroupNorm, op="group_norm", options="num_groups weight bias eps"):
    """Normalizes over groups of channels. Input: (N, C, ...); output: the same."""

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, self.num_channels, 4, device="meta"),)


class _ChannelNorm(Layer, options="weight bias eps"):
    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, self.num_features, *[4] * self.rank, device="meta"),)


class _BatchNorm(_ChannelNorm, op="batch_norm"):
    """Normalizes each channel.

    Training uses the batch's own statistics, and moves the running ones by them. Evaluation uses the running
    statistics, or the batch's if there are none.
    """

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return super()._arguments(input, *(() if self._takes_statistics() else (self.running_mean, self.running_var)))

    def _takes_statistics(self) -> bool:
        return self.training or self.running_mean is None

    def _current_op(self) -> _default.DefaultOp:
        return _default.ops["kpkg::batch_norm_training"] if self._takes_statistics() else super()._current_op()

    def _run(self, input: Tensor, *more: Any) -> Any:
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


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Normalizes each channel. Input: (N, C, H, W); output: the same."""


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Normalizes each channel. Input: (N, C, D, H, W); output: the same."""


class _InstanceNorm(_ChannelNorm, op="instance_norm"):
    """Normalizes each channel of each sample. With tracked statistics, PyTorch runs."""

    def _stands_back(self) -> bool:
        return bool(self.track_running_stats)

    def _run(self, input: Tensor, *more: Any) -> Any:
        self._check_input_dim(input)
        if input.dim() == self.rank + 1:
            return super()._run(input.unsqueeze(0)).squeeze(0)
        return super()._run(input)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Normalizes each channel of each sample. Input: (N, C, L) or (C, L); output: the same."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Normalizes each channel of each sample. Input: (N, C, H, W) or (C, H, W); output: the same."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Normalizes each channel of each sample. Input: (N, C, D, H, W) or (C, D, H, W); output: the same."""
