"""Defines the linear layers of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg.nn._layer import Layer


class Linear(Layer, nn.Linear, op="linear gemm"):
    """Computes x @ weight.T + bias. Input: (..., in_features); output: (..., out_features) of the same dtype.

    The op is ``linear`` where a package has it, else ``gemm``.
    """

    def _takes_batches(self) -> bool:
        """Returns whether the op is declared to take any leading dimensions; a product of matrices does not."""
        op = self._kpkg_op.op
        return op is not None and op.rules.dimensions == "linear"

    def _arguments(self, input: Tensor, *more: Any) -> tuple[Any, ...]:
        if input.dim() == 0 or input.shape[-1] != self.in_features:
            raise RuntimeError(f"its last dimension must have {self.in_features} elements, in_features")
        if self._takes_batches():
            return input, self.weight, self.bias
        return input.reshape(-1, self.in_features), self.weight, 1.0, 1.0, False, True, self.bias

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, self.in_features, device="meta"),)

    def _run(self, input: Tensor, *more: Any) -> Any:
        result = super()._run(input)
        return result if self._takes_batches() else result.reshape(*input.shape[:-1], self.out_features)


class GEMM(Linear, op="gemm"):
    """Computes the linear layer by one call of ``gemm``.

    ``GEMM(in_features, out_features, bias=True)``, as ``torch.nn.Linear``.

        from kpkg.nn import GEMM
        print(f"kpkg enabled: {GEMM(10, 10).use_kpkg}")
    """
