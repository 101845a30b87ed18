"""Defines the recurrent cells of `kpkg.nn`: one step for a batch of samples, or for one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg.nn._layer import Layer


class _Cell(Layer, options="weight_ih weight_hh bias_ih bias_hh"):
    """Implements the forward of all cells; their classes of torch.nn have the weights."""

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Returns the next state.

        Args:
            input: [N, input_size] or [input_size].
            hx: The state, zeros where it is None.

        Raises:
            KernelError: Shapes or dtypes do not fit the weights.
        """
        return super().forward(input, hx)

    def _arguments(self, input: Tensor, hx: Any = None) -> tuple[Any, ...]:
        state = self._zeros(input) if hx is None else hx
        return super()._arguments(input, *(state if isinstance(state, tuple) else (state,)))

    def _zeros(self, input: Tensor) -> Any:
        return input.new_zeros((*input.shape[:-1], self.hidden_size))

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, self.input_size, device="meta"),)


class RNNCell(_Cell, nn.RNNCell, op="rnn_tanh_cell"):
    """Applies tanh or relu to the sum of two linear layers, of input and state.

    Input: [N, input_size] or [input_size]. Result and state: [N, hidden_size] or [hidden_size] of the same dtype.
    """

    def _prepare(self) -> None:
        super()._prepare()
        if self.nonlinearity == "relu":
            self._kpkg_op = _default.ops["kpkg::rnn_relu_cell"]

    def _stands_back(self) -> bool:
        return self.nonlinearity not in ("tanh", "relu")  # PyTorch raises the error for others


class LSTMCell(_Cell, nn.LSTMCell, op="lstm_cell"):
    """Computes one step of long short-term memory.

    Input: [N, input_size] or [input_size]. Result and state: a pair of [N, hidden_size] or [hidden_size], hidden and
    cell state.
    """

    def _zeros(self, input: Tensor) -> Any:
        zeros = super()._zeros(input)
        return zeros, zeros


class GRUCell(_Cell, nn.GRUCell, op="gru_cell"):
    """Computes one step of a gated recurrent unit.

    Input: [N, input_size] or [input_size]. Result and state: [N, hidden_size] or [hidden_size] of the same dtype.
    """
