"""Specs of the Kullback-Leibler divergence and its gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

SHAPES = [(), (1,), (0,), (7,), (4097,), (3, 0, 2), (5, 1000), (2, 3, 5, 7), (20011,)]
REDUCTIONS = ("mean", "sum", "none", "batchmean")


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def magnitude(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    each = (
        target.exp() * (target.abs() + input.abs())
        if log_target
        else target.xlogy(target).abs() + (target * input).abs()
    )
    if reduction == "none":
        return each
    return each.sum() / (each.numel() if reduction == "mean" else input.shape[0] if reduction == "batchmean" else 1)


def backward(grad: Tensor, input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Any:
    leaves = [t.detach().clone().requires_grad_() for t in (input, target)]
    return torch.autograd.grad(kl_div(*leaves, reduction, log_target), leaves, grad)


def backward_magnitude(
    grad: Tensor, input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Any:
    count = {"mean": input.numel(), "batchmean": input.shape[0] if input.dim() else 1}.get(reduction, 1)
    g = grad.abs() / max(count, 1)
    if log_target:
        return (g * target.exp()).expand_as(input), g * target.exp() * (1 + target.abs() + input.abs())
    return (g * target).expand_as(input), g * (1 + target.log().abs() + input.abs())


def pairs(dtype: torch.dtype, generator: torch.Generator, log_target: bool) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yields log probabilities with probabilities, or with log probabilities."""

    def make(shape: tuple[int, ...]) -> Tensor:
        return -normal(shape, torch.float64, generator).abs().to(dtype)

    def target(shape: tuple[int, ...]) -> Tensor:
        return make(shape) if log_target else make(shape).double().exp().to(dtype)

    for shape in SHAPES:
        yield str(shape), make(shape), target(shape)
    for label, x in strided_forms(make):
        yield label, x, target(tuple(x.shape))
        yield f"{label} target", target(tuple(x.shape)).neg(), x if log_target else x.neg()
    yield "permuted", make((4, 5, 6)).permute(2, 0, 1), target((4, 5, 6)).permute(2, 0, 1)


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for log_target in (False, True):
        for i, (label, x, t) in enumerate(pairs(dtype, generator, log_target)):
            reduction = REDUCTIONS[i % 4] if x.dim() else REDUCTIONS[i % 3]
            yield Sample((x, t, reduction, log_target), label=f"{label} {reduction}")
        x, t = next((x, t) for label, x, t in pairs(dtype, generator, log_target) if label == "(5, 1000)")
        yield Sample((x, t[:1], "sum", log_target), label="broadcast target")
        yield Sample((x[:, :1], t, "none", log_target), label="broadcast input")
    x = normal((5,), dtype, generator)
    yield Sample((x, torch.tensor([0.0, 0.0, 1.0, 0.5, 0.0], dtype=dtype), "none"), label="targets of 0")


def backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for log_target in (False, True):
        for i, (label, x, t) in enumerate(pairs(dtype, generator, log_target)):
            reduction = REDUCTIONS[i % 4] if x.dim() else REDUCTIONS[i % 3]
            grad = normal(tuple(x.shape) if reduction == "none" else (), dtype, generator)
            yield Sample((grad, x, t, reduction, log_target), label=f"{label} {reduction}")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    x = -normal((m, n), dtype, generator).abs()
    return Sample((x, x.exp()))


SPECS = [
    OpSpec(
        "kpkg::kl_div",
        kl_div,
        samples,
        magnitude=magnitude,
        benchmarks=lambda generator: {"4096x1024": rows(4096, 1024, torch.float32, generator)},
        eager=kl_div,
        rows=rows,
    ),
    OpSpec("kpkg::kl_div_backward", backward, backward_samples, magnitude=backward_magnitude),
]
