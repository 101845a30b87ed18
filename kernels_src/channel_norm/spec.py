"""Specs of group norm, instance norm, batch norm of inference and of training, and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, channels_last, normal
from torch import Tensor

Groups = tuple[tuple[int, ...], int]
SHAPES: list[Groups] = [
    ((2, 6, 5), 3),
    ((3, 4), 2),
    ((1, 1, 1), 1),
    ((0, 4, 3), 2),
    ((2, 8, 7, 9), 4),
    ((2, 8, 7, 9), 8),
    ((2, 8, 7, 9), 1),
    ((2, 6, 16, 33), 2),
    ((1, 12, 40, 41), 3),
    ((2, 4, 70, 71), 2),
    ((1, 2048, 3), 1),
    ((5, 130), 13),
    ((2, 3, 2, 3, 4), 3),
]


def by_group(x: Tensor, groups: int) -> Tensor:
    return x.reshape(x.shape[0], groups, x.shape[1:].numel() // groups)


def to_channels(parameter: Tensor | None, x: Tensor, otherwise: float) -> Tensor:
    if parameter is None:
        return torch.full((), otherwise, dtype=x.dtype)
    return parameter.view(-1, *[1] * (x.dim() - 2))


def group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return native_group_norm(x, groups, weight, bias, eps)[0]


def native_group_norm(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """From the formula: PyTorch refuses groups of one element and tensors without samples."""
    rows = by_group(x, groups)
    mean = rows.mean(-1)
    rstd = ((rows - mean[..., None]).square().mean(-1) + eps).rsqrt()
    normed = ((rows - mean[..., None]) * rstd[..., None]).view(x.shape)
    return normed * to_channels(weight, x, 1.0) + to_channels(bias, x, 0.0), mean, rstd


def magnitudes(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """x - mean loses what |x| exceeds the spread by, and 1/sqrt(var + eps) amplifies that."""
    _, mean, rstd = native_group_norm(x, groups, None, None, eps)
    rows = by_group(x, groups)
    largest = rows.abs().amax(-1)
    size = (
        (rows.abs() + rows.abs().mean(-1, keepdim=True))
        * rstd[..., None]
        * (1 + ((rows - mean[..., None]) * rstd[..., None]).abs())
    )
    return (
        size.view(x.shape) * to_channels(weight, x, 1.0).abs() + to_channels(bias, x, 0.0).abs(),
        rows.abs().mean(-1),
        rstd * (1 + largest * rstd),
    )


def group_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for shape, groups in SHAPES:
        yield Sample((make(*shape), groups, make(shape[1]), make(shape[1]), 1e-5), label=f"{shape} in {groups}")
    yield Sample((make(2, 6, 40), 3), label="no affine")
    yield Sample((make(2, 6, 40), 3, None, make(6)), label="no weight")
    yield Sample((make(2, 6, 40), 3, make(12)[::2], None), label="strided weight, no bias")
    yield Sample((make(2, 7, 5, 6).permute(0, 3, 1, 2), 2, make(6), make(6)), label="channels last")
    yield Sample((make(1, 6, 40).expand(3, 6, 40), 3, make(6), make(6)), label="expanded")
    yield Sample((make(3, 4, 64) + 100, 2), label="far from zero")


def instance_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    return group_norm(x, x.shape[1], weight, bias, eps)


def instance_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in group_samples(dtype, generator):
        if sample.args[0].dim() > 2:
            yield Sample((sample.args[0], *sample.args[2:]), label=sample.label)


def group_norm_backward(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, groups: int, weight: Tensor | None = None, size: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """From the formulas; with `size`, the sums of the sizes of all terms instead."""

    def of(t: Tensor) -> Tensor:
        return t.abs() if size else t

    def spread(t: Tensor) -> Tensor:
        return t[..., None].expand_as(by_group(x, groups)).reshape(x.shape)

    normed = of((x - spread(mean)) * spread(rstd))
    gw = of(grad * to_channels(weight, x, 1.0))
    total, product = spread(by_group(gw, groups).mean(-1)), normed * spread(by_group(gw * normed, groups).mean(-1))
    dx = (gw + (total + product) * (1 if size else -1)) * spread(rstd)
    dims = [d for d in range(x.dim()) if d != 1]
    return dx, (of(grad) * normed).sum(dims), of(grad).sum(dims)


def group_backward_magnitudes(*args: object, **kwargs: object) -> tuple[Tensor, Tensor, Tensor]:
    return group_norm_backward(*args, **kwargs, size=True)  # type: ignore[arg-type]


def group_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    accumulator = torch.float64 if dtype == torch.float64 else torch.float32
    for sample in group_samples(dtype, generator):
        x, groups = sample.args[:2]
        weight = sample.args[2] if len(sample.args) > 2 else None
        _, mean, rstd = native_group_norm(x.double(), groups)
        yield Sample(
            (normal(tuple(x.shape), dtype, generator), x, mean.to(accumulator), rstd.to(accumulator), groups, weight),
            label=sample.label,
        )


def batch_norm(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """From the formula: PyTorch's x * a + b is not 0 where x is the mean."""
    scale = (var + eps).rsqrt() * (1 if weight is None else weight)
    return (x - to_channels(mean, x, 0.0)) * to_channels(scale, x, 1.0) + to_channels(bias, x, 0.0)


def eager_batch_norm(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


def batch_magnitude(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    scale = (var + eps).rsqrt() * (1 if weight is None else weight.abs())
    return (x - to_channels(mean, x, 0.0)).abs() * to_channels(scale, x, 1.0) + to_channels(bias, x, 0.0).abs()


def batch_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """input, running_mean, running_var, weight, bias, eps"""
    for sample in group_samples(dtype, generator):
        x = sample.args[0]
        mean, var = normal((x.shape[1],), dtype, generator), normal((x.shape[1],), dtype, generator).abs() + 0.5
        yield Sample((x, mean, var, *sample.args[2:]), label=sample.label)
        if x.dim() in (4, 5):
            yield Sample((channels_last(x), mean, var, *sample.args[2:]), label=f"{sample.label} channels last")


def batch_norm_backward(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-5,
    size: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    def of(t: Tensor) -> Tensor:
        return t.abs() if size else t

    rstd = (var + eps).rsqrt()
    normed = of((x - to_channels(mean, x, 0.0)) * to_channels(rstd, x, 1.0))
    dims = [d for d in range(x.dim()) if d != 1]
    dx = grad * to_channels(rstd if weight is None else rstd * weight, x, 1.0)
    return of(dx), (of(grad) * normed).sum(dims), of(grad).sum(dims)


def batch_backward_magnitudes(*args: object, **kwargs: object) -> tuple[Tensor, Tensor, Tensor]:
    return batch_norm_backward(*args, **kwargs, size=True)  # type: ignore[arg-type]


def batch_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in batch_samples(dtype, generator):
        weight = sample.args[3] if len(sample.args) > 3 else None
        yield Sample(
            (normal(tuple(sample.args[0].shape), dtype, generator), *sample.args[:3], weight), label=sample.label
        )


def batch_norm_training(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """From the formula: PyTorch refuses one element a channel."""
    dims = [d for d in range(x.dim()) if d != 1]
    mean, var = x.mean(dims), x.var(dims, correction=0)
    return batch_norm(x, mean, var, weight, bias, eps), mean, var


def training_magnitudes(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """x - mean loses what |x| exceeds the spread by, and 1 / sqrt(var + eps) amplifies that."""
    dims = [d for d in range(x.dim()) if d != 1]
    mean, var, size = x.mean(dims), x.var(dims, correction=0), x.abs().mean(dims)
    scale = to_channels((var + eps).rsqrt(), x, 1.0)
    normed = (x - to_channels(mean, x, 0.0)).abs() * scale
    out = (x.abs() + to_channels(size, x, 0.0)) * scale * (1 + normed) * to_channels(weight, x, 1.0).abs()
    return out + to_channels(bias, x, 0.0).abs(), size, var + size.square()


def training_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """input, weight, bias, eps"""
    for sample in group_samples(dtype, generator):
        x = sample.args[0]
        if x.numel():
            yield Sample((x, *sample.args[2:]), label=sample.label)
            if x.dim() in (4, 5):
                yield Sample((channels_last(x), *sample.args[2:]), label=f"{sample.label} channels last")
    x, weight = normal((5000, 7), dtype, generator), normal((7,), dtype, generator)
    yield Sample((x + 3, weight), label="many samples")
    if dtype in (torch.float16, torch.bfloat16):
        yield Sample((x.reshape(50, 100, 7).mT, weight.float(), weight.float()), label="parameters of float32")


def training_backward(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-5,
    size: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """From the formulas; with `size`, the sums of the sizes of all terms instead."""

    def of(t: Tensor) -> Tensor:
        return t.abs() if size else t

    dims = [d for d in range(x.dim()) if d != 1]
    rstd = (var + eps).rsqrt()
    count = x.numel() // x.shape[1]
    centred = of(x) + to_channels(mean.abs(), x, 0.0) if size else x - to_channels(mean, x, 0.0)
    normed = centred * to_channels(rstd, x, 1.0)
    dweight, dbias = (of(grad) * normed).sum(dims), of(grad).sum(dims)
    away = (to_channels(dbias, x, 0.0) + normed * to_channels(dweight, x, 0.0)) / count
    dx = of(grad) + away if size else grad - away
    return dx * to_channels(rstd if weight is None else rstd * of(weight), x, 1.0), dweight, dbias


def training_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in training_samples(dtype, generator):
        x, weight = sample.args[0], sample.args[1] if len(sample.args) > 1 else None
        _, mean, var = batch_norm_training(x.double())
        kind = torch.float64 if dtype == torch.float64 else torch.float32
        grad = normal(tuple(x.shape), dtype, generator)
        yield Sample((grad, x, mean.to(kind), var.to(kind), weight), label=sample.label)


def moved_statistics(
    running_mean: Tensor, running_var: Tensor, mean: Tensor, variance: Tensor, count: int, momentum: float = 0.1
) -> tuple[Tensor, Tensor]:
    unbiased = variance * (count / (count - 1))
    return running_mean * (1 - momentum) + mean * momentum, running_var * (1 - momentum) + unbiased * momentum


def moved_magnitudes(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    return moved_statistics(*(a.abs() if isinstance(a, Tensor) else a for a in args), **kwargs)


def moved_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    for channels, count, momentum in [
        (1, 2, 0.1),
        (7, 40, 0.1),
        (1024, 3, 0.5),
        (1025, 9, 0.0),
        (0, 5, 0.1),
        (33, 5, 1.0),
    ]:
        running = normal((channels,), dtype, generator), normal((channels,), dtype, generator).abs()
        batch = normal((channels,), wide, generator), normal((channels,), wide, generator).abs()
        yield Sample((*running, *batch, count, momentum), label=f"{channels} channels, momentum {momentum}")


def training_arguments(shape: tuple[int, ...], generator: torch.Generator) -> tuple[object, ...]:
    weight, bias = (normal((shape[1],), torch.float32, generator) for _ in range(2))
    return normal(shape, torch.float32, generator), weight, bias


def eager_training(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    return torch.native_batch_norm(x, weight, bias, None, None, True, 0.0, 1e-5)


def benchmarks(
    make: Callable[[tuple[int, ...], torch.Generator], tuple[object, ...]],
) -> Callable[[torch.Generator], dict[str, Sample]]:
    shapes = [(8, 64, 32, 32), (2, 320, 64, 64)]
    return lambda generator: {"x".join(map(str, shape)): Sample(make(shape, generator)) for shape in shapes}


def group_arguments(shape: tuple[int, ...], generator: torch.Generator) -> tuple[object, ...]:
    return (
        normal(shape, torch.float32, generator),
        32,
        *(normal((shape[1],), torch.float32, generator) for _ in range(2)),
    )


def batch_arguments(shape: tuple[int, ...], generator: torch.Generator) -> tuple[object, ...]:
    mean, var, weight, bias = (normal((shape[1],), torch.float32, generator) for _ in range(4))
    return normal(shape, torch.float32, generator), mean, var.abs() + 0.5, weight, bias


def eager_instance_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias, eps=eps)


def instance_arguments(shape: tuple[int, ...], generator: torch.Generator) -> tuple[object, ...]:
    x, _, weight, bias = group_arguments(shape, generator)
    return x, weight, bias


SPECS = [
    OpSpec(
        "kpkg::group_norm",
        group_norm,
        group_samples,
        magnitude=lambda *args, **kwargs: magnitudes(*args, **kwargs)[0],
        benchmarks=benchmarks(group_arguments),
        eager=F.group_norm,
    ),
    OpSpec("kpkg::native_group_norm", native_group_norm, group_samples, magnitude=magnitudes),
    OpSpec(
        "kpkg::instance_norm",
        instance_norm,
        instance_samples,
        magnitude=lambda x, *args, **kwargs: magnitudes(x, x.shape[1], *args, **kwargs)[0],
        benchmarks=benchmarks(instance_arguments),
        eager=eager_instance_norm,
    ),
    OpSpec(
        "kpkg::group_norm_backward", group_norm_backward, group_backward_samples, magnitude=group_backward_magnitudes
    ),
    OpSpec(
        "kpkg::batch_norm",
        batch_norm,
        batch_samples,
        magnitude=batch_magnitude,
        benchmarks=benchmarks(batch_arguments),
        eager=eager_batch_norm,
    ),
    OpSpec(
        "kpkg::batch_norm_backward", batch_norm_backward, batch_backward_samples, magnitude=batch_backward_magnitudes
    ),
    OpSpec(
        "kpkg::batch_norm_training",
        batch_norm_training,
        training_samples,
        magnitude=training_magnitudes,
        benchmarks=benchmarks(training_arguments),
        eager=eager_training,
    ),
    OpSpec(
        "kpkg::batch_norm_training_backward",
        training_backward,
        training_backward_samples,
        magnitude=lambda *args, **kwargs: training_backward(*args, **kwargs, size=True),
    ),
    OpSpec("kpkg::moved_statistics", moved_statistics, moved_samples, magnitude=moved_magnitudes),
]
