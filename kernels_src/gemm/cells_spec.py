"""Specs of recurrent cells.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

GATES = {"rnn_tanh_cell": 1, "rnn_relu_cell": 1, "lstm_cell": 4, "gru_cell": 3}
# Samples, elements of input and elements of the hidden state.
SIZES = [(1, 1, 1), (5, 7, 13), (3, 65, 130), (2, 0, 5), (0, 4, 5), (9, 33, 300)]


def layers(input: Tensor, hx: Tensor, weights: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    w_ih, w_hh, b_ih, b_hh = (*weights, None, None)[:4]
    return F.linear(input, w_ih, b_ih), F.linear(hx, w_hh, b_hh)


def rnn_tanh_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    a, b = layers(input, hx, weights)
    return torch.tanh(a + b)


def rnn_relu_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    a, b = layers(input, hx, weights)
    return torch.relu(a + b)


def lstm_cell(input: Tensor, hx: Tensor, cx: Tensor, *weights: Any) -> tuple[Tensor, Tensor]:
    a, b = layers(input, hx, weights)
    i, f, g, o = (a + b).chunk(4, -1)
    cy = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * cy.tanh(), cy


def gru_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    a, b = (t.chunk(3, -1) for t in layers(input, hx, weights))
    r, z = (a[0] + b[0]).sigmoid(), (a[1] + b[1]).sigmoid()
    n = (a[2] + r * b[2]).tanh()
    return n + z * (hx - n)


def size_of_gates(input: Tensor, hx: Tensor, weights: tuple[Any, ...]) -> Tensor:
    """Returns the sum of the terms of all gates of a state element. No gate is steeper than 1."""
    sizes = tuple(None if w is None else w.abs() for w in weights)
    a, b = layers(input.abs(), hx.abs(), sizes)
    return (a + b).unflatten(-1, (-1, hx.shape[-1])).sum(-2)


def magnitude(input: Tensor, hx: Tensor, *weights: Any) -> Tensor:
    return (1 + hx.abs()) * (1 + size_of_gates(input, hx, weights))


def lstm_magnitude(input: Tensor, hx: Tensor, cx: Tensor, *weights: Any) -> tuple[Tensor, Tensor]:
    size = (1 + cx.abs()) * (1 + size_of_gates(input, hx, weights))
    return size, size


def make(
    name: str, n: int | None, i: int, h: int, dtype: torch.dtype, generator: torch.Generator, bias: str = "both"
) -> Sample:
    """Returns a sample of one step for n rows. If n is None, it has no batch dimension."""
    rows = () if n is None else (n,)
    states = [normal((*rows, h), dtype, generator) for _ in range(2 if name == "lstm_cell" else 1)]
    lines = GATES[name] * h
    w_ih = normal((lines, i), dtype, generator, max(i, 1) ** -0.5)
    w_hh = normal((lines, h), dtype, generator, max(h, 1) ** -0.5)
    b_ih = normal((lines,), dtype, generator) if bias in ("both", "first") else None
    b_hh = normal((lines,), dtype, generator) if bias in ("both", "second") else None
    return Sample((normal((*rows, i), dtype, generator), *states, w_ih, w_hh, b_ih, b_hh), label=f"{n} {i} {h} {bias}")


def samples_of(name: str) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for n, i, h in SIZES:
            yield make(name, n, i, h, dtype, generator)
        yield make(name, None, 7, 20, dtype, generator)
        for bias in ("none", "first", "second"):
            yield make(name, 4, 6, 11, dtype, generator, bias)
        sample = make(name, 6, 5, 9, dtype, generator)
        turned = sample.map(lambda t: t.mT.contiguous().mT if t.dim() == 2 else torch.stack([t, t], 1)[:, 0])
        yield Sample(turned.args, label="transposed")
        apart = sample.map(lambda t: torch.cat([t, t])[: t.shape[0]].repeat_interleave(2, 0)[::2])
        yield Sample(apart.args, label="rows apart")

    return samples


def benchmarks_of(name: str) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"{n}x{h}": make(name, n, h, h, torch.float32, generator) for n, h in [(1, 64), (64, 256), (32, 512)]
    }


def eager_lstm(input: Tensor, hx: Tensor, cx: Tensor, *weights: Any) -> Any:
    return torch.lstm_cell(input, [hx, cx], *weights)


SPECS = [
    OpSpec(
        f"kpkg::{name}",
        reference,
        samples_of(name),
        magnitude=lstm_magnitude if name == "lstm_cell" else magnitude,
        rounds_between=True,
        benchmarks=benchmarks_of(name),
        eager=eager,
    )
    for name, reference, eager in (
        ("rnn_tanh_cell", rnn_tanh_cell, torch.rnn_tanh_cell),
        ("rnn_relu_cell", rnn_relu_cell, torch.rnn_relu_cell),
        ("lstm_cell", lstm_cell, eager_lstm),
        ("gru_cell", gru_cell, torch.gru_cell),
    )
]
