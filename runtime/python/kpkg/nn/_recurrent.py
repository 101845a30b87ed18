"""Defines the recurrent layers of `kpkg.nn`, which run an op for each layer and direction.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from kpkg import _default
from kpkg.nn._layer import Layer

#: The most steps of a call of an op.
LONGEST = 2048


class _Sequences(Layer):
    """Implements the forward of all recurrent layers; their classes of torch.nn have the weights."""

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """Returns the hidden states of all steps of the last layer, and the last states of all layers.

        Args:
            input: [steps, N, input_size], [N, steps, input_size] with batch_first, or [steps, input_size]; or a
                PackedSequence, for which the hidden states are one, too.
            hx: The first state, zeros where it is None.

        Raises:
            KernelError: The op refuses the call.
            RuntimeError: Shapes do not fit the weights.
            ValueError: The input has another dtype than the weights, or not 2 or 3 dimensions.
        """
        return super().forward(input, hx)

    def _stands_back(self) -> bool:
        return self.proj_size > 0

    def _why_it_stands_back(self) -> str:
        return "PyTorch computes layers with proj_size"

    def _example_inputs(self) -> tuple[Tensor, ...]:
        return (torch.empty(2, 2, self.input_size, device="meta"),)

    def _arguments(self, input: Tensor, hx: Any = None) -> tuple[Any, ...]:
        states = [input.new_zeros(input.shape[1], self.hidden_size) for _ in range(self._count())]
        return (input, *states, *self._weights(0), False)

    def _count(self) -> int:
        """Returns how many states a layer has."""
        return 2 if self.mode == "LSTM" else 1

    def _weights(self, place: int) -> list[Tensor | None]:
        """Returns the arguments of the op for a layer and direction."""
        weights = self.all_weights[place]
        return [*weights, None, None] if len(weights) == 2 else weights

    def _run(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"expected an input of 2 or 3 dimensions, got {input.dim()}")
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        given = input if is_batched else input.unsqueeze(batch_dim)
        states = self._first_states(given, given.shape[batch_dim], hx, is_batched)
        self.check_forward_args(given, tuple(states) if self.mode == "LSTM" else states[0], None)
        x = given.transpose(0, 1) if self.batch_first else given
        x, results = self._layers(x, states, self._direction)
        out = x.transpose(0, 1) if self.batch_first else x
        if not is_batched:
            out, results = out.squeeze(batch_dim), [result.squeeze(1) for result in results]
        return out, tuple(results) if self.mode == "LSTM" else results[0]

    def _run_packed(self, input: PackedSequence, hx: Any = None) -> Any:
        """Runs all steps with equally many sequences in one call of the op."""
        sizes = input.batch_sizes
        if hx is not None:
            hx = self.permute_hidden(hx, input.sorted_indices)
        states = self._first_states(input.data, int(sizes[0]), hx, True)
        self.check_forward_args(input.data, tuple(states) if self.mode == "LSTM" else states[0], sizes)
        counts, steps = torch.unique_consecutive(sizes, return_counts=True)
        groups = list(zip(steps.tolist(), counts.tolist()))

        def run(x: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
            return self._packed_direction(groups, x, *arguments)

        x, results = self._layers(input.data, states, run)
        hidden = tuple(results) if self.mode == "LSTM" else results[0]
        return (
            PackedSequence(x, sizes, input.sorted_indices, input.unsorted_indices),
            self.permute_hidden(hidden, input.unsorted_indices),
        )

    def _first_states(self, input: Tensor, samples: int, hx: Any, is_batched: bool) -> list[Tensor]:
        """Returns the first states of all layers and directions, with a batch dimension; zeros without `hx`."""
        if hx is not None:
            return self._states(hx, is_batched)
        places = self.num_layers * (2 if self.bidirectional else 1)
        return [input.new_zeros(places, samples, self.hidden_size)] * self._count()

    def _layers(
        self, x: Tensor, states: list[Tensor], run: Callable[..., tuple[Tensor, ...]]
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the hidden states of the last layer and the last states of all. `run` computes a direction."""
        places = self.num_layers * (2 if self.bidirectional else 1)
        last: list[tuple[Tensor, ...]] = []
        while len(last) < places:
            if last and self.training and self.dropout > 0:
                x = F.dropout(x, self.dropout)
            outs = []
            for reverse in (False, True) if self.bidirectional else (False,):
                place = len(last)
                out, *ends = run(x, [state[place] for state in states], self._weights(place), reverse)
                outs.append(out)
                last.append(tuple(ends))
            x = torch.cat(outs, -1) if self.bidirectional else outs[0]
        return x, [torch.stack(ends) for ends in zip(*last)]

    def _states(self, hx: Any, is_batched: bool) -> list[Tensor]:
        """Returns the first states of all layers, with a batch dimension."""
        states = list(hx) if self.mode == "LSTM" else [hx]
        wanted = 3 if is_batched else 2
        if any(state.dim() != wanted for state in states):
            raise RuntimeError(f"expected states of {wanted} dimensions, got {[state.dim() for state in states]}")
        return states if is_batched else [state.unsqueeze(1) for state in states]

    def _direction(
        self, x: Tensor, states: list[Tensor], weights: list[Tensor | None], reverse: bool
    ) -> tuple[Tensor, ...]:
        """Returns the op's results for one layer in one direction, in parts if there are many steps."""
        if x.shape[0] <= LONGEST:
            return tuple(self._call(x, *states, *weights, reverse))
        outs = []
        for part in reversed(x.split(LONGEST)) if reverse else x.split(LONGEST):
            out, *states = self._call(part, *states, *weights, reverse)
            outs.append(out)
        return (torch.cat(outs[::-1] if reverse else outs), *states)

    def _packed_direction(
        self,
        groups: list[tuple[int, int]],
        x: Tensor,
        states: list[Tensor],
        weights: list[Tensor | None],
        reverse: bool,
    ) -> tuple[Tensor, ...]:
        """Returns the same for packed steps.

        Args:
            groups: The numbers of steps and of sequences, for steps with equally many.
            x: The elements of all steps, one step after the other.
            states: The first states of the sequences, the longest one first.
            weights: The arguments of the op.
            reverse: Whether sequences run from their ends. Then they begin in later groups, else they end there.
        """
        parts = x.split([steps * count for steps, count in groups])
        current = [state[: groups[-1][1]] if reverse else state for state in states]
        outs, ended = [], []
        for (steps, count), part in reversed(list(zip(groups, parts))) if reverse else zip(groups, parts):
            before = current[0].shape[0]
            if count > before:
                current = [torch.cat([now, state[before:count]]) for now, state in zip(current, states)]
            elif count < before:
                ended.append([now[count:] for now in current])
                current = [now[:count] for now in current]
            out, *current = self._direction(part.reshape(steps, count, x.shape[1]), current, weights, reverse)
            outs.append(out.reshape(steps * count, self.hidden_size))
        ends = (torch.cat([now, *reversed(rest)]) for now, *rest in zip(current, *ended)) if ended else current
        return (torch.cat(outs[::-1] if reverse else outs), *ends)

    def __getstate__(self) -> dict[str, Any]:
        state = nn.RNNBase.__getstate__(self)  # without weak references, which cannot be saved
        return {k: v for k, v in state.items() if not k.startswith("_kpkg")}


class RNN(_Sequences, nn.RNN, op="rnn_tanh"):
    """Applies tanh or relu to the sum of two linear layers, of input and state, at each step of sequences.

    Input: [steps, N, input_size], [N, steps, input_size] with batch_first, or [steps, input_size]. Results: the hidden
    states in the same form, and the last ones, [layers * directions, N, hidden_size].
    """

    def _prepare(self) -> None:
        super()._prepare()
        if self.mode == "RNN_RELU":
            self._kpkg_op = _default.ops["kpkg::rnn_relu"]


class LSTM(_Sequences, nn.LSTM, op="lstm"):
    """Computes long short-term memory over sequences.

    Input: [steps, N, input_size], [N, steps, input_size] with batch_first, or [steps, input_size]. Results: the hidden
    states in the same form, and a pair of the last hidden and cell states, [layers * directions, N, hidden_size].
    """


class GRU(_Sequences, nn.GRU, op="gru"):
    """Computes gated recurrent units over sequences.

    Input: [steps, N, input_size], [N, steps, input_size] with batch_first, or [steps, input_size]. Results: the hidden
    states in the same form, and the last ones, [layers * directions, N, hidden_size].
    """
