"""Specs of recurrent layers: the recurrences, one step after the other.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}
# Steps, samples, elements of input and of the state.
SIZES = [(1, 1, 1, 1), (5, 2, 7, 13), (3, 5, 9, 66), (4, 1, 3, 130), (2, 17, 4, 20), (2, 65, 5, 9), (3, 0, 4, 5)]
SIZES += [(2, 3, 0, 5), (2, 3, 5, 0)]


def step(name: str, a: Tensor, b: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Returns the states after a step. a and b are the products of input and state, with their biases."""
    if name == "lstm":
        i, f, g, o = (a + b).chunk(4, -1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return [o.sigmoid() * cell.tanh(), cell]
    if name == "gru":
        a, b = a.unflatten(-1, (3, -1)), b.unflatten(-1, (3, -1))
        r, z = (a + b)[..., :2, :].sigmoid().unbind(-2)
        n = (a[..., 2, :] + r * b[..., 2, :]).tanh()
        return [n + z * (state[0] - n)]
    return [(a + b).tanh() if name == "rnn_tanh" else (a + b).relu()]


def run(name: str, args: tuple[Any, ...], sizes: bool) -> tuple[Tensor, ...]:
    """Returns the op's results. With `sizes`, returns the sums of terms of all gates of all steps so far."""
    input, *rest = args
    count = 2 if name == "lstm" else 1
    state, (w_ih, w_hh, b_ih, b_hh, reverse) = rest[:count], (*rest[count:], None, None, False)[:5]
    absolute = [None if w is None else w.abs() for w in (w_ih, w_hh, b_ih, b_hh)]
    size = 1 + sum(s.abs() for s in state)
    out, out_sizes = (torch.empty(*input.shape[:2], w_hh.shape[1], dtype=input.dtype) for _ in range(2))
    for t in reversed(range(len(input))) if reverse else range(len(input)):
        terms = F.linear(input[t].abs(), absolute[0], absolute[2]) + F.linear(state[0].abs(), absolute[1], absolute[3])
        state = step(name, F.linear(input[t], w_ih, b_ih), F.linear(state[0], w_hh, b_hh), state)
        size = size + terms.unflatten(-1, (GATES[name], w_hh.shape[1])).sum(-2) + state[-1].abs()
        out[t], out_sizes[t] = state[0], size
    return (out_sizes, *[size] * count) if sizes else (out, *state)


def make(
    name: str,
    sizes: tuple[int, int, int, int],
    dtype: torch.dtype,
    generator: torch.Generator,
    bias: str = "both",
    reverse: bool = False,
) -> Sample:
    steps, n, i, h = sizes
    states = [normal((n, h), dtype, generator) for _ in range(2 if name == "lstm" else 1)]
    lines = GATES[name] * h
    w_ih = normal((lines, i), dtype, generator, max(i, 1) ** -0.5)
    w_hh = normal((lines, h), dtype, generator, max(h, 1) ** -0.5)
    b_ih = normal((lines,), dtype, generator) if bias in ("both", "first") else None
    b_hh = normal((lines,), dtype, generator) if bias in ("both", "second") else None
    args = (normal((steps, n, i), dtype, generator), *states, w_ih, w_hh, b_ih, b_hh, reverse)
    return Sample(args, label=f"{steps}x{n}x{i}x{h} {bias}{' reverse' if reverse else ''}")


def samples_of(name: str) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for i, sizes in enumerate(SIZES):
            yield make(name, sizes, dtype, generator, reverse=i % 2 == 1)
        for bias in ("none", "first", "second"):
            yield make(name, (3, 4, 6, 11), dtype, generator, bias, bias == "none")
        sample = make(name, (4, 6, 5, 9), dtype, generator)
        turned = sample.map(lambda t: t.mT.contiguous().mT if t.dim() > 1 else torch.stack([t, t], 1)[:, 0])
        yield Sample(turned.args, label="transposed")
        batch_first = (sample.args[0].transpose(0, 1).contiguous().transpose(0, 1), *sample.args[1:])
        yield Sample(batch_first, label="samples first")
        apart = sample.map(lambda t: torch.cat([t, t])[: t.shape[0]].repeat_interleave(2, -1)[..., ::2])
        yield Sample(apart.args, label="elements apart")

    return samples


def benchmarks_of(name: str) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"{t}x{n}x{h}": make(name, (t, n, h, h), torch.float32, generator) for t, n, h in [(32, 1, 64), (16, 32, 256)]
    }


def eager_of(name: str) -> Callable[..., Any]:
    def eager(input: Tensor, *rest: Any) -> Any:
        count = 2 if name == "lstm" else 1
        states = [s.unsqueeze(0) for s in rest[:count]]
        weights = list(rest[count : count + 4])
        state = states if name == "lstm" else states[0]
        return getattr(torch, name)(input, state, weights, True, 1, 0.0, False, False, False)

    return eager


SPECS = [
    OpSpec(
        f"kpkg::{name}",
        lambda *args, name=name: run(name, args, False),
        samples_of(name),
        magnitude=lambda *args, name=name: run(name, args, True),
        rounds_between=True,
        benchmarks=benchmarks_of(name),
        eager=eager_of(name),
    )
    for name in GATES
]
