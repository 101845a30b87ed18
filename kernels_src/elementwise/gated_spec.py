"""Specs of gates of one tensor, and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

SHAPES = [(2,), (0, 6), (3, 0), (1, 14), (5, 66), (33, 258), (3, 2050), (2, 3, 4, 130), (1, 8192), (35, 2048)]


def halves(input: Tensor) -> tuple[Tensor, Tensor]:
    d = input.shape[-1] // 2
    return input[..., :d], input[..., d:]


def silu_and_mul(input: Tensor) -> Tensor:
    a, b = halves(input)
    return F.silu(a) * b


def gelu_and_mul(input: Tensor, approximate: str = "none") -> Tensor:
    a, b = halves(input)
    return F.gelu(a, approximate=approximate) * b


def clamped_swiglu(input: Tensor, alpha: float = 1.702, limit: float = 7.0, interleaved: bool = True) -> Tensor:
    a, b = (input[..., ::2], input[..., 1::2]) if interleaved else halves(input)
    x = a.clamp(max=limit)
    return x * torch.sigmoid(alpha * x) * (b.clamp(-limit, limit) + 1)


def inputs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    for shape in SHAPES:
        yield str(shape), make(*shape)
    yield "transposed", make(34, 6).t()[:, :6]
    yield "step 2", make(8, 132)[:, ::2]
    yield "part", make(7, 51)[2:, 3:]
    yield "rows apart", make(12, 32)[::3]
    yield "inner dimensions apart", make(4, 6, 40).transpose(0, 1)


def samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters:
            for label, x in inputs(dtype, generator):
                yield Sample((x, *given), label=f"{label} {given}")
            x = torch.tensor([[0.0, -0.0, 8.0, -8.0, 100.0, -100.0, 1e-4, 7.0]], dtype=torch.float64).to(dtype)
            yield Sample((x, *given), label=f"extremes {given}")

    return make


def gradient_samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters:
            for label, x in inputs(dtype, generator):
                grad = normal((*x.shape[:-1], x.shape[-1] // 2), dtype, generator)
                yield Sample((grad, x, *given), label=f"{label} {given}")

    return make


def gradient_of(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reference(grad: Tensor, input: Tensor, *parameters: Any) -> Tensor:
        x = input.detach().clone().requires_grad_()
        return torch.autograd.grad(function(x, *parameters), x, grad)[0]

    return reference


def size(input: Tensor, *parameters: Any) -> Tensor:
    """Returns the magnitude: the gate's factors cancel where x is far below 0."""
    a, b = (input[..., ::2], input[..., 1::2]) if parameters[2:] == (True,) else halves(input)
    return (1 + a.abs()) * (1 + b.abs())


def gradient_size(grad: Tensor, input: Tensor, *parameters: Any) -> Tensor:
    """Returns a bound for either half: the gradient times both."""
    pairs = size(input, *parameters) * grad.abs()
    if parameters[2:] == (True,):
        return pairs.repeat_interleave(2, -1)
    return torch.cat([pairs, pairs], -1)


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, 2 * n), dtype, generator),))


def gradient_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((m, n), dtype, generator), normal((m, 2 * n), dtype, generator)))


def timed(make: Callable[..., Sample]) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {f"{m}x{n}": make(m, n, torch.float32, generator) for m, n in [(1024, 4096), (1, 14336)]}


GATES: list[tuple[Callable[..., Tensor], tuple[tuple[Any, ...], ...]]] = [
    (silu_and_mul, ((),)),
    (gelu_and_mul, (("none",), ("tanh",))),
    (clamped_swiglu, ((1.702, 7.0, True), (1.5, 2.0, False), (1.0, 0.5, True))),
]
SPECS = [
    *(
        OpSpec(
            f"kpkg::{gate.__name__}",
            gate,
            samples(*given),
            magnitude=size,
            benchmarks=timed(rows),
            eager=gate,
            rows=rows,
        )
        for gate, given in GATES
    ),
    *(
        OpSpec(
            f"kpkg::{gate.__name__}_backward",
            gradient_of(gate),
            gradient_samples(*given),
            magnitude=gradient_size,
            benchmarks=timed(gradient_rows),
            eager=gradient_of(gate),
            rows=gradient_rows,
        )
        for gate, given in GATES
    ),
]
