"""Specs of cross_entropy and its gradient.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor


class Options(NamedTuple):
    """The op's arguments behind the target."""

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0


def eager(x: Tensor, target: Tensor, *options: Any, **named: Any) -> Tensor:
    return F.cross_entropy(x, target, **Options(*options, **named)._asdict())


def no_class(x: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Where the target is one that PyTorch refuses."""
    classes = x.shape[0] if x.dim() == 1 else x.shape[1]
    return ((target < 0) | (target >= classes)) & (target != ignore_index)


def reference(x: Tensor, target: Tensor, *args: Any, **named: Any) -> Tensor:
    """PyTorch's, and NaN for a target that is no class."""
    options = Options(*args, **named)
    wrong = no_class(x, target, options.ignore_index)
    if not bool(wrong.any()):
        return eager(x, target, *options)
    known = target.masked_fill(wrong, options.ignore_index)
    losses = eager(x, known, *options._replace(reduction="none")).masked_fill(wrong, math.nan)
    return losses if options.reduction == "none" else losses.sum()  # NaN either way


def backward_reference(grad: Tensor, x: Tensor, target: Tensor, *args: Any, **named: Any) -> Tensor:
    """PyTorch's, and NaN for a sample whose target is no class; such a sample has weight 1 in the mean."""
    options = Options(*args, **named)
    weight, ignore_index, reduction, _ = options
    wrong = no_class(x, target, ignore_index)
    target = target.masked_fill(wrong, ignore_index)
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        losses = eager(leaf, target, *options._replace(reduction="sum" if reduction == "mean" else reduction))
        result = torch.autograd.grad(losses, leaf, grad)[0]
    if reduction == "mean":
        known = target[target != ignore_index]
        result = result / ((known.numel() if weight is None else weight[known].sum()) + wrong.sum())
    while wrong.dim() < x.dim():
        wrong = wrong.unsqueeze(min(1, wrong.dim()))
    ignored = (target == ignore_index).view(wrong.shape) & ~wrong
    return result.masked_fill(wrong, math.nan).masked_fill(ignored, 0.0)


def size_of(x: Tensor, weight: Tensor | None) -> Tensor:
    """The size of a loss's terms: the largest score, the logarithm of their number, times the largest weight."""
    finite = x[torch.isfinite(x)].abs()
    size = (2 * finite.max() if finite.numel() else torch.tensor(0.0)) + math.log(max(2, x.numel())) + 1
    return size if weight is None else size * weight.abs().max()


def magnitude(x: Tensor, target: Tensor, *args: Any, **named: Any) -> Tensor:
    options = Options(*args, **named)
    return size_of(x, options.weight) * (target.numel() if options.reduction == "sum" else 1)


def backward_magnitude(grad: Tensor, x: Tensor, target: Tensor, *args: Any, **named: Any) -> Tensor:
    """exp(x - max) is as wrong as x is large."""
    return size_of(x, Options(*args, **named).weight) * (grad.abs().max() if grad.numel() else grad.sum())


def all_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator, 3.0)

    def classes(n: int, *shape: int) -> Tensor:
        return torch.randint(0, n, shape, generator=generator)

    for m, n in [
        (1, 1),
        (1, 7),
        (5, 33),
        (4, 129),
        (2, 1000),
        (3, 1024),
        (3, 1025),
        (1, 16385),
        (2, 40000),
        (5000, 3),
        (70, 50),
        (33, 64),
        (2, 151936),
        (1, 262145),
    ]:
        yield Sample((make(m, n), classes(n, m)), label=f"{m}x{n}")
    weight = make(33).abs()
    for reduction in ("none", "mean", "sum"):
        yield Sample((make(9, 33), classes(33, 9), None, -100, reduction, 0.0), label=reduction)
        yield Sample((make(9, 33), classes(33, 9), weight, -100, reduction, 0.0), label=f"{reduction}, weights")
        yield Sample(
            (make(9, 33), classes(33, 9), weight, 4, reduction, 0.1),
            label=f"{reduction}, weights, smoothing, ignored class",
        )
        ignored = torch.tensor([3, -100, 5, -100, 0])
        yield Sample((make(5, 33), ignored, None, -100, reduction, 0.2), label=f"{reduction}, ignored")
        yield Sample(
            (make(5, 33), torch.tensor([3, 33, -1, 2**40, -(2**40)]), None, -100, reduction, 0.1),
            label=f"{reduction}, targets that are no class",
        )
    yield Sample(
        (make(2, 20000), classes(20000, 2), make(20000).abs(), -100, "mean", 0.1), label="long, weights, smoothing"
    )
    yield Sample((make(2, 5), torch.tensor([-100, -100])), label="all ignored")
    yield Sample((make(0, 5), classes(5, 0), None, -100, "sum"), label="no samples")
    yield Sample((make(7), classes(7)), label="one sample")
    yield Sample((make(2, 5, 3, 4), classes(5, 2, 3, 4)), label="images")
    yield Sample((make(2, 5, 3, 4), classes(5, 2, 3, 4), None, -100, "none"), label="images, none")
    for label, x in strided_forms(lambda shape: make(*shape)):
        yield Sample((x, classes(x.shape[1], x.shape[0]), make(2 * x.shape[1]).abs()[::2], -100, "none"), label=label)
    rows = torch.tensor(
        [[-math.inf, 1.0, 2.0], [-math.inf] * 3, [math.inf, 0.0, 1.0], [math.nan, 0.0, 1.0]], dtype=torch.float64
    ).to(dtype)
    yield Sample((rows, torch.tensor([0, 0, 1, 1]), None, -100, "none"), label="extreme")
    huge = 6e4 if dtype == torch.float16 else 1e30
    yield Sample(
        (
            (make(5, 1000).sign() * huge).abs_() * torch.tensor([1, -1, 1, -1, 0.5], dtype=dtype).unsqueeze(1),
            classes(1000, 5),
            None,
            -100,
            "none",
        ),
        label="huge",
    )


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """Targets that are no class are an error on CPUs, which the tests of errors look at."""
    return (sample for sample in all_samples(dtype, generator) if "no class" not in sample.label)


def backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in all_samples(dtype, generator):
        x, target = sample.args[:2]
        none = len(sample.args) > 4 and sample.args[4] == "none"
        if sample.label == "extreme":
            x = x.nan_to_num(posinf=math.inf, neginf=-math.inf)
        yield Sample((normal(tuple(target.shape) if none else (), dtype, generator), *sample.args), label=sample.label)


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    target = torch.randint(0, n, (m,), generator=generator, device=generator.device)
    return Sample((normal((m, n), dtype, generator, 3.0), target))


def backward_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((normal((), dtype, generator), *rows(m, n, dtype, generator).args))


def eager_backward(grad: Tensor, x: Tensor, target: Tensor) -> Tensor:
    """What PyTorch runs for it, and the logarithm of softmax, which kpkg computes again instead of keeping it."""
    log_softmax = torch.log_softmax(x, 1)
    total = torch.full((), x.shape[0], dtype=x.dtype, device=x.device)
    inner = torch.ops.aten.nll_loss_backward(grad, log_softmax, target, None, 1, -100, total)
    return torch._log_softmax_backward_data(inner, log_softmax, 1, x.dtype)


SPECS = [
    OpSpec("kpkg::cross_entropy", reference, samples, magnitude=magnitude, eager=eager, rows=rows),
    OpSpec(
        "kpkg::cross_entropy_backward",
        backward_reference,
        backward_samples,
        magnitude=backward_magnitude,
        eager=eager_backward,
        rows=backward_rows,
    ),
]
