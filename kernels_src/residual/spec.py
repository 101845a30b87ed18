"""Specs of the residual additions fused with a norm.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor

SHAPES = [
    (1, 1),
    (0, 5),
    (3, 0),
    (1, 7),
    (5, 33),
    (4, 129),
    (2, 1000),
    (3, 1024),
    (3, 1025),
    (2, 8191),
    (1, 16385),
    (2, 40000),
    (2, 3, 4, 65),
    (24,),
]
MANY = (4100, 24)


def eager_gated(x: Tensor, x_res: Tensor, gate: Tensor, eps: float = 1e-6, exact_mode: bool = False) -> Tensor:
    """Computes the expression whose rounding `exact_mode` reproduces."""
    wide = x_res if x_res.dtype == torch.float64 else x_res.float()
    normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)
    return x + normed * torch.tanh(gate)


def gated_magnitude(x: Tensor, x_res: Tensor, gate: Tensor, eps: float = 1e-6, exact_mode: bool = False) -> Tensor:
    return x.abs() + eager_gated(torch.zeros_like(x), x_res, gate, eps).abs()


def gated_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for shape in [*SHAPES, MANY]:
        yield Sample((make(*shape), make(*shape), make(shape[-1])), label=str(shape))
    yield Sample((make(4, 6, 40), make(4, 6, 40), make(4, 1, 40), 1e-5), label="a gate for each of the first dimension")
    yield Sample((make(4, 6, 40), make(4, 6, 40), make(1, 6, 40)), label="a gate for each of the second dimension")
    yield Sample((make(4, 6, 40), make(4, 6, 40), make(4, 6, 40)), label="a gate for each element")
    yield Sample((make(4, 6, 40), make(4, 6, 40), make(1)), label="one gate")
    yield Sample((make(5, 64), make(5, 64), make(128)[::2]), label="strided gate")
    for label, x in strided_forms(lambda shape: make(*shape)):
        yield Sample((x, make(*x.shape), make(x.shape[1])), label=label)
        yield Sample((make(*x.shape), x, make(x.shape[1])), label=f"{label} x_res")
    rows = torch.tensor([[float("inf"), 1.0, 2.0], [float("nan"), 0.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64).to(
        dtype
    )
    yield Sample((make(3, 3), rows, make(3)), label="extreme x_res")
    yield Sample((rows, make(3, 3), make(3)), label="extreme x")


def eager_rms(x: Tensor, residual: Tensor, weight: Tensor | None = None, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    total = x + residual
    return F.rms_norm(total, total.shape[-1:], weight, eps), total


def eager_layer(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    total = x + residual
    return F.layer_norm(total, total.shape[-1:], weight, bias, eps), total


def layer_magnitudes(
    x: Tensor, residual: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    """Returns magnitudes. s - mean loses digits if |s| exceeds the standard deviation, and 1/sqrt(var + eps) amplifies
    that."""
    total = x + residual
    scale = ((total - total.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + eps).rsqrt()
    size = (
        (total.abs() + total.abs().mean(-1, keepdim=True))
        * scale
        * (1 + ((total - total.mean(-1, keepdim=True)) * scale).abs())
    )
    size = size if weight is None else size * weight.abs()
    return size if bias is None else size + bias.abs(), total


def norm_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """Yields x, residual, weight and bias."""

    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for shape in SHAPES:
        yield Sample((make(*shape), make(*shape), make(shape[-1]), make(shape[-1])), label=str(shape))
    yield Sample((make(5, 96), make(5, 96), None, None), label="no affine")
    yield Sample((make(5, 96), make(5, 96), make(192)[::2], make(96).flip(0)), label="strided weight")
    for label, x in strided_forms(lambda shape: make(*shape)):
        yield Sample((x, make(*x.shape), make(x.shape[1]), None), label=label)
        yield Sample((make(*x.shape), x, None, make(x.shape[1])), label=f"{label} residual")
    rows = torch.tensor([[float("inf"), 1.0, 2.0], [float("nan"), 0.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64).to(
        dtype
    )
    yield Sample((make(3, 3), rows, make(3), None), label="extreme")


def rms_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in norm_samples(dtype, generator):
        yield Sample((*sample.args[:3], 1e-6), label=sample.label)


def gated_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample(tuple(normal(shape, dtype, generator) for shape in ((m, n), (m, n), (n,))))


def layer_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample(tuple(normal(shape, dtype, generator) for shape in ((m, n), (m, n), (n,), (n,))))


def rms_rows(m: int, n: int, dtype: torch.dtype, generator: torch.Generator) -> Sample:
    return Sample((*layer_rows(m, n, dtype, generator).args[:3], 1e-6))


def at_sizes(make: Callable[..., Sample]) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"{m}x{n}": make(m, n, torch.float32, generator) for m, n in [(4096, 1024), (512, 16384), (4, 128)]
    }


def gated_backward(
    grad: Tensor, x_res: Tensor, gate: Tensor, eps: float = 1e-6, size: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns gradients by their formulas, or with `size` the sums of the magnitudes of all terms."""

    def of(t: Tensor) -> Tensor:
        return t.abs() if size else t

    tanh = gate.tanh().reshape(-1)
    dx, dtanh = rms_backward(grad, None, x_res, tanh, eps, size)
    return dx, (dtanh * (1 - of(tanh) ** 2 * (-1 if size else 1))).reshape(gate.shape)


def rms_backward(
    grad: Tensor,
    grad_sum: Tensor | None,
    total: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    size: bool = False,
) -> tuple[Tensor, Tensor]:
    rstd = (total.square().mean(-1, keepdim=True) + eps).rsqrt()
    return norm_backward(grad, grad_sum, total * rstd, rstd, weight, False, size)[:2]


def layer_backward(
    grad: Tensor,
    grad_sum: Tensor | None,
    total: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-5,
    size: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    centred = total - total.mean(-1, keepdim=True)
    rstd = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    if size:  # the mean has an error in proportion to the sum of |total|
        centred = total.abs() + total.abs().mean(-1, keepdim=True)
    return norm_backward(grad, grad_sum, centred * rstd, rstd, weight, True, size)


def norm_backward(
    grad: Tensor, grad_sum: Tensor | None, normed: Tensor, rstd: Tensor, weight: Tensor | None, layer: bool, size: bool
) -> tuple[Tensor, Tensor, Tensor]:
    def of(t: Tensor) -> Tensor:
        return t.abs() if size else t

    normed = of(normed)
    g = of(grad if weight is None else grad * weight)
    away = normed * (g * normed).mean(-1, keepdim=True) + (g.mean(-1, keepdim=True) if layer else 0.0)
    dx = (g + away * (1 if size else -1)) * rstd
    if grad_sum is not None:
        dx = dx + of(grad_sum)
    outer = tuple(range(grad.dim() - 1))
    sums = [of(grad) * normed, of(grad)]
    return dx, *(t.sum(outer) if outer else t for t in sums)  # type: ignore[return-value]


def sizes(formula: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: formula(*args, **kwargs, size=True)


def gated_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for sample in gated_samples(dtype, generator):
        x, x_res, gate = sample.args[:3]
        if gate.numel() == x.shape[-1]:
            yield Sample((x, x_res, gate, 1e-6), label=sample.label)


def norm_backward_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    """Yields grad, grad_sum, sum and weight.

    In half precision there is no grad_sum, because it would be added to a rounded result.
    """
    for index, sample in enumerate(norm_samples(dtype, generator)):
        x, residual, weight = sample.args[:3]
        yield Sample(
            (
                x,
                residual if index % 2 and dtype in (torch.float32, torch.float64) else None,
                normal(tuple(x.shape), dtype, generator),
                weight,
            ),
            label=sample.label,
        )


SPECS = [
    OpSpec(
        "kpkg::residual_tanh_gated_rmsnorm",
        eager_gated,
        gated_samples,
        magnitude=gated_magnitude,
        benchmarks=at_sizes(gated_rows),
        eager=eager_gated,
        rows=gated_rows,
    ),
    OpSpec(
        "kpkg::residual_rms_norm", eager_rms, rms_samples, benchmarks=at_sizes(rms_rows), eager=eager_rms, rows=rms_rows
    ),
    OpSpec(
        "kpkg::residual_layer_norm",
        eager_layer,
        norm_samples,
        magnitude=layer_magnitudes,
        benchmarks=at_sizes(layer_rows),
        eager=eager_layer,
        rows=layer_rows,
    ),
    OpSpec(
        "kpkg::residual_tanh_gated_rmsnorm_backward",
        gated_backward,
        gated_backward_samples,
        dtypes=(torch.float32, torch.float64),  # others round tanh(gate), as PyTorch does
        magnitude=sizes(gated_backward),
    ),
    OpSpec("kpkg::residual_rms_norm_backward", rms_backward, norm_backward_samples, magnitude=sizes(rms_backward)),
    OpSpec(
        "kpkg::residual_layer_norm_backward", layer_backward, norm_backward_samples, magnitude=sizes(layer_backward)
    ),
]
