"""Specs of max and average pooling over one, two and three dimensions, and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor

MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
#: Planes by dimensions: one element, fewer than a block of several planes has, more than one block has; odd ones.
EXTENTS = {1: [(1,), (7,), (300,), (4099,)], 2: [(1, 1), (7, 9), (70, 65)], 3: [(1, 1, 1), (3, 5, 4), (6, 9, 17)]}
#: kernel_size, stride, padding, dilation, ceil_mode. All fit into planes of 3 and more elements on a side.
WINDOWS: list[tuple[int, list[int], int, int, bool]] = [
    (2, [], 0, 1, False),
    (3, [2], 1, 1, False),
    (3, [2], 1, 1, True),
    (2, [3], 1, 1, True),
    (3, [1], 1, 1, False),
    (2, [1], 0, 2, False),
]


def windows(extents: tuple[int, ...]) -> Iterator[tuple[int, list[int], int, int, bool]]:
    if min(extents) >= 3:
        yield from WINDOWS
    yield (1, [], 0, 1, False)
    yield (3, [1], 1, 1, False)


def planes(dims: int, dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    for extents in EXTENTS[dims]:
        yield str((2, 3, *extents)), normal((2, 3, *extents), dtype, generator).mul(4).round()  # with ties
    extents = EXTENTS[dims][1]
    yield "no batch", normal((5, *extents), dtype, generator)
    yield "no planes", torch.empty((0, 3, *extents), dtype=dtype)
    yield "many planes", normal((40, 3, *extents), dtype, generator)
    yield "channels last", normal((2, *extents, 3), dtype, generator).movedim(-1, 1)
    yield "many channels last", normal((2, *(6, 12, 18)[:dims], 70), dtype, generator).mul(4).round().movedim(-1, 1)
    special = normal((2, 3, *extents), dtype, generator)
    special.view(-1)[::5] = -math.inf
    special.view(-1)[::17] = math.inf
    yield "infinities", special
    special = special.clone()
    special.view(-1)[::13] = math.nan
    yield "NaN", special


def whole(dims: int, dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    """Planes that one window covers."""
    for extents in ((7, 7, 7)[:dims], (2, 5, 40)[-dims:]):
        yield f"whole {extents}", normal((2, 37, *extents), dtype, generator)
        yield f"whole {extents}, no batch", normal((5, *extents), dtype, generator)
        yield f"whole {extents}, channels last", normal((2, *extents, 70), dtype, generator).movedim(-1, 1)


def apart(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor, int, int, int]]:
    """Images in rows and with channels last: kernel size, stride, padding.

    Windows also begin three and four elements apart.
    """
    x = normal((2, 70, 17, 29), dtype, generator).mul(4).round()
    for k, s, p in ((5, 3, 2), (9, 4, 4)):
        yield f"apart {k}", x, k, s, p
        yield f"apart {k}, channels last", x.contiguous(memory_format=torch.channels_last), k, s, p


def max_samples(dims: int) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for label, x in planes(dims, dtype, generator):
            for k, s, p, d, ceil in windows(tuple(x.shape[-dims:])):
                yield Sample((x, [k] * dims, s, [p], [d], ceil), label=f"{label} {(k, s, p, d, ceil)}")
        for label, x in whole(dims, dtype, generator):
            yield Sample((x, list(x.shape[-dims:]), [], [0], [1], False), label=label)
        x = normal((2, 3, *(9, 10, 11)[:dims]), dtype, generator)
        yield Sample((x, [3, 4, 2][:dims], [1, 2, 3][:dims], [1, 2, 0][:dims], [2, 1, 3][:dims]), label="all different")
        if dims == 2:
            for label, x, k, stride, padding in apart(dtype, generator):
                yield Sample((x, [k, k], [stride], [padding], [1], False), label=label)

    return samples


def avg_samples(dims: int) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for label, x in planes(dims, dtype, generator):
            for k, s, p, d, ceil in windows(tuple(x.shape[-dims:])):
                for include in (True, False):
                    if d == 1 and k <= min(x.shape[-dims:]):  # PyTorch refuses larger ones in three dimensions
                        yield Sample((x, [k], s, [p], ceil, include), label=f"{label} {(k, s, p, ceil, include)}")
        for label, x in whole(dims, dtype, generator):
            yield Sample((x, list(x.shape[-dims:]), [1], [0]), label=label)
            if dims > 1:
                yield Sample((x, list(x.shape[-dims:]), [1], [0], False, True, 3), label=f"{label}, divisor")
        x = normal((2, 3, *(9, 10, 11)[:dims]), dtype, generator)
        yield Sample((x, [3, 4, 2][:dims], [1, 2, 3][:dims], [1, 2, 0][:dims]), label="all different")
        if dims > 1:
            yield Sample((x, [3], [2], [1], False, True, 7), label="divisor")
        if dims == 2:
            for label, x, k, stride, padding in apart(dtype, generator):
                yield Sample((x, [k], [stride], [padding], False, False), label=label)

    return samples


def max_reference(dims: int, indexed: bool) -> Callable[..., Any]:
    def reference(
        x: Tensor, k: list[int], s: list[int], p: list[int], d: list[int] | int = 1, ceil: bool = False
    ) -> Any:
        return MAX[dims](x, k, s or None, p, d, ceil, indexed)

    return reference


def avg_reference(dims: int) -> Callable[..., Tensor]:
    def reference(
        x: Tensor, k: list[int], s: list[int], p: list[int], ceil: bool = False, include: bool = True, divisor: int = 0
    ) -> Tensor:
        more = (divisor or None,) if dims > 1 else ()
        return AVG[dims](x, k, s or None, p, ceil, include, *more)

    return reference


def finite(samples: Iterator[Sample]) -> Iterator[Sample]:
    return (s for s in samples if bool(torch.isfinite(s.args[0]).all()))


def max_gradient_samples(dims: int) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for sample in finite(max_samples(dims)(dtype, generator)):
            x, k, s, p, d, *ceil = sample.args
            y, indices = max_reference(dims, True)(x, k, s, p, d, *ceil)
            yield Sample((normal(tuple(y.shape), dtype, generator), indices, x, k, s, p, d), label=sample.label)

    return samples


def max_gradient(grad: Tensor, indices: Tensor, x: Tensor, k: list[int], *others: Any) -> Tensor:
    dims = len(k)
    flat = torch.zeros((*x.shape[:-dims], math.prod(x.shape[-dims:])), dtype=x.dtype, device=x.device)
    return flat.scatter_add_(-1, indices.flatten(-dims), grad.flatten(-dims)).view(x.shape)


def max_gradient_size(grad: Tensor, indices: Tensor, x: Tensor, k: list[int], *others: Any) -> Tensor:
    return max_gradient(grad.abs(), indices, x, k)


def avg_gradient_samples(dims: int) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for sample in finite(avg_samples(dims)(dtype, generator)):
            x, k, s, p, *rest = sample.args
            y = avg_reference(dims)(x.double(), *sample.args[1:])
            yield Sample((normal(tuple(y.shape), dtype, generator), x, k, s, p, *rest[1:]), label=sample.label)

    return samples


def avg_gradient(dims: int) -> Callable[..., Tensor]:
    def reference(grad: Tensor, x: Tensor, k: list[int], s: list[int], p: list[int], *rest: Any) -> Tensor:
        x = x.detach().clone().requires_grad_()
        for ceil in (False, True):
            y = avg_reference(dims)(x, k, s, p, ceil, *rest)
            if y.shape == grad.shape:
                return torch.autograd.grad(y, x, grad)[0]
        raise ValueError(f"no pooling of {tuple(x.shape)} has a result of shape {tuple(grad.shape)}")

    return reference


def image(dtype: torch.dtype, generator: torch.Generator, dims: int, n: int) -> Tensor:
    side = round(n ** (1 / dims))
    return normal((8, 16, *([side] * dims)), dtype, generator)


def benchmarks(
    dims: int, arguments: Callable[[Tensor], tuple[Any, ...]]
) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"8x16x{n}": Sample(arguments(image(torch.float32, generator, dims, n))) for n in (1 << 10, 1 << 16)
    }


def of_max(x: Tensor) -> tuple[Any, ...]:
    dims = x.dim() - 2
    return (x, [3] * dims, [2], [1], [1], False)


def of_avg(x: Tensor) -> tuple[Any, ...]:
    return (x, [3] * (x.dim() - 2), [2], [1], False, True)


def of_max_gradient(x: Tensor) -> tuple[Any, ...]:
    y, indices = max_reference(x.dim() - 2, True)(*of_max(x))
    return (torch.ones_like(y), indices, *of_max(x)[:5])


def of_avg_gradient(x: Tensor) -> tuple[Any, ...]:
    return (torch.ones_like(avg_reference(x.dim() - 2)(*of_avg(x))), *of_avg(x)[:4], True)


def specs(dims: int) -> Iterator[OpSpec]:
    def one(
        name: str,
        reference: Callable[..., Any],
        samples: Any,
        arguments: Callable[[Tensor], tuple[Any, ...]],
        **others: Any,
    ) -> OpSpec:
        return OpSpec(
            f"kpkg::{name}", reference, samples, benchmarks=benchmarks(dims, arguments), eager=reference, **others
        )

    averages = {"magnitude": lambda x, *rest: avg_reference(dims)(torch.nan_to_num(x, 0.0, 0.0, 0.0).abs(), *rest)}
    shares = {"magnitude": lambda grad, *rest: avg_gradient(dims)(grad.abs(), *rest)}
    yield one(f"max_pool{dims}d", max_reference(dims, False), max_samples(dims), of_max, accumulation=0.0)
    yield one(f"max_pool{dims}d_with_indices", max_reference(dims, True), max_samples(dims), of_max, accumulation=0.0)
    yield one(
        f"max_pool{dims}d_backward",
        max_gradient,
        max_gradient_samples(dims),
        of_max_gradient,
        magnitude=max_gradient_size,
    )
    yield one(f"avg_pool{dims}d", avg_reference(dims), avg_samples(dims), of_avg, **averages)
    yield one(f"avg_pool{dims}d_backward", avg_gradient(dims), avg_gradient_samples(dims), of_avg_gradient, **shares)


SPECS = [spec for dims in (1, 2, 3) for spec in specs(dims)]
