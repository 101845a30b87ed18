"""Defines the embedding layers of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Embedding(Layer, nn.Embedding, op="embedding"):
    """Returns rows of a table by index.

    Input: (...) of int64 or int32; output: (..., embedding_dim) of the weight's dtype. With ``max_norm``,
    ``scale_grad_by_freq`` or ``sparse``, PyTorch runs.
    """

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        return self.weight, input, -1 if self.padding_idx is None else self.padding_idx

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, dtype=torch.int64, device="meta"),)

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        return super()._example(device, dtype if dtype.is_floating_point else self.weight.dtype)

    def _stands_back(self) -> bool:
        return self.max_norm is not None or self.scale_grad_by_freq or self.sparse


class EmbeddingBag(Layer, nn.EmbeddingBag, op="embedding_bag"):
    """Returns sums, means or maxima of rows of a table over bags of indices.

    Input: (bags, length), or a vector with offsets, of int64 or int32; output: (bags, embedding_dim). With
    ``max_norm``, ``scale_grad_by_freq`` or ``sparse``, PyTorch runs.
    """

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Any:
        """Returns a row for each bag.

        Args:
            input: Indices.
            offsets: Where each bag of a vector begins.
            per_sample_weights: Factors of the rows, for sums.
        """
        return super().forward(input, offsets, per_sample_weights)

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        offsets, per_sample_weights = more if more else (None, None)
        padding = -1 if self.padding_idx is None else self.padding_idx
        return self.weight, input, offsets, self.mode, per_sample_weights, self.include_last_offset, padding

    def _example_inputs(self) -> tuple[Tensor, ...]:
        indices = torch.empty(2, dtype=torch.int64, device="meta")
        offsets: Any = indices if self.include_last_offset else indices[:1]
        return indices, offsets, None

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        return super()._example(device, dtype if dtype.is_floating_point else self.weight.dtype)

    def _stands_back(self) -> bool:
        return self.max_norm is not None or self.scale_grad_by_freq or self.sparse
