"""Defines the losses of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class CrossEntropyLoss(Layer, nn.CrossEntropyLoss):
    """Computes the cross entropy of scores [C], [N, C] or [N, C, ...] and int64 class indices.

    With class probabilities as target, PyTorch runs.
    """

    kpkg_ops, torch_layer = ("kpkg::cross_entropy",), nn.CrossEntropyLoss

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """Returns the loss, a scalar unless ``reduction="none"``."""
        if not self._kpkg_wanted or target.is_floating_point():
            return nn.CrossEntropyLoss.forward(self, input, target)
        if not self._kpkg_op.is_available:
            self._kpkg_op.note_fallback()
            return nn.CrossEntropyLoss.forward(self, input, target)
        return cast(
            Tensor, self._kpkg_op(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)
        )

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        target = torch.empty(input.shape[0], dtype=torch.int64, device="meta")
        return input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing

    def _example_input(self) -> Tensor:
        return torch.empty(2, 8 if self.weight is None else self.weight.shape[0], device="meta")


class KLDivLoss(Layer, nn.KLDivLoss):
    """Computes the Kullback-Leibler divergence of a target from logarithms of probabilities.

    Both have any shape and a float dtype.
    """

    kpkg_ops, torch_layer = ("kpkg::kl_div",), nn.KLDivLoss

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """Returns the loss, a scalar unless ``reduction="none"``."""
        if not self._kpkg_wanted:
            return nn.KLDivLoss.forward(self, input, target)
        if not self._kpkg_op.is_available:
            self._kpkg_op.note_fallback()
            return nn.KLDivLoss.forward(self, input, target)
        return cast(Tensor, self._kpkg_op(input, target, self.reduction, self.log_target))

    def _arguments(self, input: Tensor) -> tuple[Any, ...]:
        return input, input, self.reduction, self.log_target
