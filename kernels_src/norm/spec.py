"""Specs of layer_norm, native_layer_norm, rms_norm and their gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor


def layer_norm_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    short = [(1, 1), (0, 5), (1, 7), (5, 33), (4, 129), (2, 1000), (3, 1024), (3, 1025), (2, 8191)]
    for m, n in [*short, (3, 12288), (1, 16385), (2, 40000), (2, 65544), (1, 131072), (1, 140001)]:
        yield Sample((make(m, n), [n], make(n), make(n), 1e-5), label=f"{m}x{n}")
    yield Sample((make(2, 3, 4, 8), [4, 8], make(4, 8), make(4, 8), 1e-5), label="two dimensions")
    yield Sample((make(6, 8), [6, 8], make(6, 8), None, 1e-3), label="everything, no bias")
    yield Sample((make(5, 96), [96]), label="no affine")
    yield Sample((make(5, 96), [96], None, make(96)), label="no weight")
    yield Sample((make(3, 96, 5).transpose(1, 2), [96], make(96), make(96)), label="transposed inside")
    yield Sample((make(5, 64), [64], make(128)[::2], make(64).flip(0)), label="strided weight")
    for label, x in strided_forms(lambda shape: make(*shape)):
        yield Sample((x, [x.shape[1]], make(x.shape[1])), label=label)
    yield Sample((make(3, 64) + 1000, [64]), label="far from zero")
    yield Sample((torch.full((2, 8), 3.0, dtype=dtype), [8]), label="constant")


def rms_norm_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in layer_norm_samples(dtype, generator):
        x, shape = sample.args[:2]
        weight = sample.args[2] if len(sample.args) > 2 else None
        yield Sample((x, shape, weight, 1e-6), label=sample.label)


def native_layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Any:
    return torch.native_layer_norm(x, shape, weight, bias, eps)


def magnitudes(
    x: Tensor, shape: list[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Any:
    """The size of the terms that cancel.

    x - mean loses as much as |x| exceeds the spread by, and the mean is as wrong as its sum of |x| makes it. 1/sqrt(var
    + eps) amplifies the rest.
    """
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    mean = x.mean(dims, keepdim=True)
    scale = ((x - mean).square().mean(dims, keepdim=True) + eps).rsqrt()
    centred = ((x - mean) * scale).abs()
    size = (x.abs() + x.abs().mean(dims, keepdim=True)) * scale * (1 + centred)
    if weight is not None:
        size = size * weight.abs()
    if bias is not None:
        size = size + bias.abs()
    largest = x.abs().amax(dims, keepdim=True) if x.numel() else mean
    return size, x.abs().mean(dims, keepdim=True) + mean.abs(), scale * (1 + largest * scale)


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    def sample(m: int, n: int) -> Sample:
        x, weight, bias = (normal(shape, torch.float32, generator) for shape in ((m, n), (n,), (n,)))
        return Sample((x, [n], weight, bias, 1e-5))

    return {f"{m}x{n}": sample(m, n) for m, n in [(4096, 1024), (512, 16384), (4, 128)]}


def rms_benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    return {label: Sample((*s.args[:3], 1e-6)) for label, s in benchmarks(generator).items()}


def rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    x, weight, bias = (normal(shape, dtype, generator) for shape in ((m, n), (n,), (n,)))
    return Sample((x, [n], weight, bias, 1e-5))


def rms_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((*rows(m, n, dtype, generator).args[:3], 1e-6))


def layer_norm_backward(
    grad: Tensor, x: Tensor, shape: list[int], mean: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, ...]:
    """From the formulas.

    PyTorch gives no gradient of an absent weight, and none of statistics of another dtype.
    """
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    outer = tuple(range(x.dim() - len(shape)))
    normed = (x - mean) * rstd
    g = grad if weight is None else grad * weight
    grad_input = (g - g.mean(dims, keepdim=True) - normed * (g * normed).mean(dims, keepdim=True)) * rstd
    return grad_input, summed(grad * normed, outer), summed(grad, outer)


def rms_norm_backward(
    grad: Tensor, x: Tensor, shape: list[int], weight: Tensor | None = None, eps: float = 1e-6
) -> tuple[Tensor, ...]:
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    rstd = (x.square().mean(dims, keepdim=True) + eps).rsqrt()
    g = grad if weight is None else grad * weight
    grad_input = (g - x * rstd.square() * (g * x).mean(dims, keepdim=True)) * rstd
    return grad_input, summed(grad * x * rstd, tuple(range(x.dim() - len(shape))))


def summed(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x.sum(dims) if dims else x


def layer_norm_backward_magnitudes(
    grad: Tensor, x: Tensor, shape: list[int], mean: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, ...]:
    """The sums of the sizes of all terms."""
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    outer = tuple(range(x.dim() - len(shape)))
    normed = ((x - mean) * rstd).abs()
    g = (grad if weight is None else grad * weight).abs()
    size = (g + g.mean(dims, keepdim=True) + normed * (g * normed).mean(dims, keepdim=True)) * rstd
    return size, summed(grad.abs() * normed, outer), summed(grad.abs(), outer)


def rms_norm_backward_magnitudes(
    grad: Tensor, x: Tensor, shape: list[int], weight: Tensor | None = None, eps: float = 1e-6
) -> tuple[Tensor, ...]:
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    rstd = (x.square().mean(dims, keepdim=True) + eps).rsqrt()
    sizes = layer_norm_backward_magnitudes(grad, x, shape, torch.zeros_like(rstd), rstd, weight)
    return sizes[:2]


def backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """grad, input, normalized_shape, mean, rstd, weight"""
    accumulator = torch.float64 if dtype == torch.float64 else torch.float32
    sizes = [(300, 64), (513, 40), (3000, 5), (70, 12288), (70, 16384), (35, 20000)]
    more = [
        Sample((normal((m, n), dtype, generator), [n], normal((n,), dtype, generator)), label=f"{m}x{n}")
        for m, n in sizes
    ]
    for index, sample in enumerate([*layer_norm_samples(dtype, generator), *more]):
        x, shape = sample.args[:2]
        weight = sample.args[2] if len(sample.args) > 2 else None
        grad = normal(tuple(x.shape), dtype, generator)
        if index % 2 and x.dim() > 1:
            grad = grad.transpose(0, 1).contiguous().transpose(0, 1)
        _, mean, rstd = torch.native_layer_norm(x.double(), shape, None, None, 1e-5)
        yield Sample((grad, x, shape, mean.to(accumulator), rstd.to(accumulator), weight), label=sample.label)
    # As a sum over everything leaves it, and as a transposed product does, with more elements than one may copy one by
    # one.
    x = normal((700, 130), dtype, generator)
    _, mean, rstd = torch.native_layer_norm(x.double(), [130], None, None, 1e-5)
    for label, grad in [
        ("expanded", normal((1, 1), dtype, generator).expand(700, 130)),
        ("transposed", normal((130, 700), dtype, generator).t()),
    ]:
        yield Sample(
            (grad, x, [130], mean.to(accumulator), rstd.to(accumulator), normal((130,), dtype, generator)), label=label
        )


def rms_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in backward_samples(dtype, generator):
        grad, x, shape, _, _, weight = sample.args
        yield Sample((grad, x, shape, weight, 1e-6), label=sample.label)


def backward_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    grad, x = (normal((m, n), dtype, generator) for _ in range(2))
    _, mean, rstd = torch.native_layer_norm(x.float(), [n], None, None, 1e-5)
    return Sample((grad, x, [n], mean, rstd, normal((n,), dtype, generator)))


def rms_backward_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    grad, x, shape, _, _, weight = backward_rows(m, n, dtype, generator).args
    return Sample((grad, x, shape, weight, 1e-6))


def at_sizes(make: Callable[..., Sample]) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"{m}x{n}": make(m, n, torch.float32, generator) for m, n in [(4096, 1024), (512, 16384), (4, 128)]
    }


def eager_layer_norm_backward(
    grad: Tensor, x: Tensor, shape: list[int], mean: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, ...]:
    return torch.ops.aten.native_layer_norm_backward(grad, x, shape, mean, rstd, weight, weight, [True, True, True])


SPECS = [
    OpSpec(
        "kpkg::layer_norm",
        F.layer_norm,
        layer_norm_samples,
        magnitude=lambda *args, **kwargs: magnitudes(*args, **kwargs)[0],
        benchmarks=benchmarks,
        eager=F.layer_norm,
        rows=rows,
    ),
    OpSpec(
        "kpkg::native_layer_norm",
        native_layer_norm,
        layer_norm_samples,
        magnitude=magnitudes,
        benchmarks=benchmarks,
        eager=native_layer_norm,
    ),
    OpSpec("kpkg::rms_norm", F.rms_norm, rms_norm_samples, benchmarks=rms_benchmarks, eager=F.rms_norm, rows=rms_rows),
    OpSpec(
        "kpkg::layer_norm_backward",
        layer_norm_backward,
        backward_samples,
        magnitude=layer_norm_backward_magnitudes,
        benchmarks=at_sizes(backward_rows),
        eager=eager_layer_norm_backward,
        rows=backward_rows,
    ),
    OpSpec(
        "kpkg::rms_norm_backward",
        rms_norm_backward,
        rms_backward_samples,
        magnitude=rms_norm_backward_magnitudes,
        benchmarks=at_sizes(rms_backward_rows),
        eager=rms_norm_backward,
        rows=rms_backward_rows,
    ),
]
