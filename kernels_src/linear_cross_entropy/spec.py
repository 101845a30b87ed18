"""Spec of linear_cross_entropy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

#: Rows, features, classes: around the tiles of both kinds of devices.
SIZES: list[tuple[tuple[int, ...], int, int]] = [
    ((), 3, 5),
    ((1,), 1, 2),
    ((7,), 33, 129),
    ((2, 3), 64, 256),
    ((129,), 8, 257),
    ((128,), 65, 300),
]


def logits(input: Tensor, weight: Tensor, bias: Tensor | None, softcap: float) -> Tensor:
    z = F.linear(input, weight, bias)
    return torch.tanh(z / softcap) * softcap if softcap else z


def eager(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float = 0.0,
    input_gradient: bool = False,
) -> Tensor:
    z = logits(input, weight, bias, softcap).reshape(-1, weight.shape[0])
    each = F.cross_entropy(
        z, target.reshape(-1), ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )
    return each.reshape(target.shape) if reduction == "none" else each


def linear_cross_entropy(
    input: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None, *options: object
) -> tuple[Tensor, Tensor, Tensor]:
    softcap = float(options[3]) if len(options) > 3 else 0.0
    with torch.enable_grad():
        x = input.detach().requires_grad_()
        loss = eager(x, weight, target, bias, *options)  # type: ignore[arg-type]
        wanted = len(options) > 4 and bool(options[4])
        dx = torch.autograd.grad(loss.sum(), x)[0] if wanted else input.new_empty(0)
    return loss.detach(), logits(input, weight, bias, softcap).logsumexp(-1), dx


def magnitude(
    input: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None, *options: object
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits are sums of these terms. Those that are kept for the gradient are rounded, and so are their gradients."""
    terms = F.linear(input.abs(), weight.abs(), None if bias is None else bias.abs())
    size = 1 + terms.amax() if terms.numel() else terms.new_ones(())
    count = target.numel() if options and options[0] == "sum" else 1
    slope = 2 * weight.abs().amax() * size
    return size * count, size, slope


def draw(shape: tuple[int, ...], k: int, classes: int, dtype: torch.dtype, generator: torch.Generator) -> list[Tensor]:
    return [
        normal((*shape, k), dtype, generator),
        normal((classes, k), dtype, generator, k**-0.5),
        torch.randint(0, classes, shape, generator=generator, device=generator.device),
    ]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for number, (shape, k, classes) in enumerate(SIZES):
        given = draw(shape, k, classes, dtype, generator)
        label = f"{shape}x{k} to {classes}"
        yield Sample(tuple(given), label=label)
        reduction = ("mean", "sum", "none")[number % 3]
        yield Sample((*given, None, reduction, -100, 0.0, 0.0, True), label=f"{label}, gradient")
        bias = normal((classes,), dtype, generator)
        yield Sample((*given, bias, reduction, 1, 0.1, 3.0, True), label=f"{label}, all options")
    x, weight, target = draw((40,), 66, 150, dtype, generator)
    target[::3] = -100
    yield Sample((x[:, ::2], weight[:, ::2], target, None, "mean", -100, 0.0, 0.0, True), label="strided, ignored")
    yield Sample((x.t().contiguous().t(), weight.t().contiguous().t(), target, None, "none"), label="transposed")
    yield Sample((x[:0], weight, target[:0], None, "sum", -100, 0.0, 0.0, True), label="no rows")


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample(tuple(draw((m,), n, 32000, dtype, generator)))


SPECS = [
    OpSpec(
        "kpkg::linear_cross_entropy",
        linear_cross_entropy,
        samples,
        magnitude=magnitude,
        rounds_between=True,
        benchmarks=lambda generator: {
            "512x256 to 8000": Sample(tuple(draw((512,), 256, 8000, torch.float32, generator)))
        },
        eager=eager,
        rows=rows,
    ),
]
