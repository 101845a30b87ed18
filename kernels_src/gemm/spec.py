"""Specs of gemm, gemm_batched, bmm, matmul, gemv and linear.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import OpSpec, Sample, normal
from torch import Tensor


def product(
    a: Tensor,
    b: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str = "none",
) -> Tensor:
    result = alpha * ((a.mT if transpose_a else a) @ (b.mT if transpose_b else b))
    result = result if c is None or beta == 0 else result + beta * c
    result = result if bias is None else result + bias
    return result if activation == "none" else getattr(F, activation)(result)


def product_batched(a: Tensor, b: Tensor, alpha: float = 1.0, beta: float = 1.0, c: Tensor | None = None) -> Tensor:
    return product(a, b, alpha, beta, c=c)


def magnitude(
    a: Tensor,
    b: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    *rest: bool,
    c: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str = "none",
    **flags: bool,
) -> Tensor:
    """Returns the product of absolute values: the magnitude of the summed terms. No activation is steeper than 1.13."""
    c, bias = (None if t is None else t.abs() for t in (c, bias))
    return (1.0 if activation == "none" else 1.13) * product(
        a.abs(), b.abs(), abs(alpha), abs(beta), *rest, c=c, bias=bias, **flags
    )


def linear_magnitude(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(input.abs(), weight.abs(), None if bias is None else bias.abs())


SIZES = [
    (1, 1, 1),
    (1, 300, 1111),
    (2, 129, 600),
    (3, 1030, 40),
    (4, 65, 2050),
    (300, 1, 99),
    (70, 3, 520),
    (0, 4, 5),
    (4, 0, 5),
    (4, 5, 0),
    (1, 129, 77),
    (129, 1, 64),
    (64, 64, 1),
    (3, 5, 7),
    (17, 33, 65),
    (128, 256, 256),
    (129, 257, 258),
    (520, 515, 521),
    (64, 72, 4100),
    (16, 520, 1032),
    (100, 96, 300),
    (255, 63, 1023),
]


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for i, (m, n, k) in enumerate(SIZES):
        yield Sample((make(m, k), make(k, n)), label=f"{m}x{n}x{k}")
        a = [make(m, k), make(k, m).t(), make(m, k + 3)[:, 1 : k + 1], make(m, 2 * k)[:, ::2]][i % 4]
        b = [make(n, k).t(), make(k, n), make(k, 2 * n)[:, ::2], make(k + 2, n)[1 : k + 1]][i % 4]
        c = [make(m, n), make(n), make(m, 1), make(n, m).t()][i % 4]
        scales = {"alpha": [1.0, 0.5, -2.0][i % 3], "beta": [1.0, 0.25, 0.0][i % 3]}
        yield Sample((a, b), {**scales, "c": c}, label=f"{m}x{n}x{k} strided, with c")
    yield Sample((make(33, 20), make(33, 40)), {"transpose_a": True}, label="transpose a")
    yield Sample((make(20, 33), make(40, 33)), {"transpose_b": True, "alpha": 3.0}, label="transpose b")
    yield Sample(
        (make(33, 20), make(40, 33)),
        {"transpose_a": True, "transpose_b": True, "c": make(20, 40)},
        label="transpose both",
    )
    for m in (1, 3, 40):
        for i, activation in enumerate(("none", "relu", "gelu", "silu")):
            extra = {"bias": make(70), "activation": activation, "transpose_b": i % 2 == 0}
            extra |= {"c": make(m, 70), "beta": 0.5} if i < 2 else {}
            yield Sample(
                (make(m, 50), make(70, 50) if i % 2 == 0 else make(50, 70)),
                extra,
                label=f"{m} rows, bias, {activation}",
            )
    yield Sample((make(5, 0), make(0, 7)), {"bias": make(7), "activation": "silu"}, label="nothing but bias")
    yield Sample(
        (make(4, 8), make(8, 4)),
        {"beta": 0.0, "c": torch.full((4, 4), torch.nan, dtype=dtype)},
        label="beta 0 hides NaN",
    )


def batched_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for a, b, c in [
        ((2, 3, 4), (2, 4, 5), None),
        ((0, 3, 4), (0, 4, 5), None),
        ((3, 17, 33), (3, 33, 65), (3, 17, 65)),
        ((1, 17, 33), (4, 33, 20), (20,)),
        ((2, 1, 9, 8), (5, 8, 7), (2, 5, 9, 7)),
        ((9, 8), (3, 8, 7), (1, 9, 1)),
        ((130, 8), (8, 7), None),
        ((2, 100, 300), (2, 300, 96), None),
    ]:
        extra = {} if c is None else {"c": make(*c), "alpha": 0.5, "beta": 2.0}
        yield Sample((make(*a), make(*b)), extra, label=f"{a} by {b}")
    yield Sample((make(3, 8, 20).mT, make(1, 8, 30).expand(3, 8, 30)), label="transposed and expanded")


def matmul_magnitude(input: Tensor, other: Tensor) -> Tensor:
    return input.abs() @ other.abs()


def bmm_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for b, m, n, k in [(1, 1, 1, 1), (3, 17, 65, 33), (2, 129, 40, 300), (0, 3, 4, 5), (2, 0, 3, 4), (2, 3, 4, 0)]:
        yield Sample((make(b, m, k), make(b, k, n)), label=f"{b} times {m}x{n}x{k}")
    yield Sample((make(4, 20, 9).mT, make(8, 20, 31)[::2]), label="transposed, every other")


def matmul_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for a, b in [
        ((33,), (33,)),
        ((0,), (0,)),
        ((17,), (17, 40)),
        ((40, 17), (17,)),
        ((5, 9), (9, 70)),
        ((2, 3, 9, 8), (8,)),
        ((8,), (2, 3, 8, 9)),
        ((2, 3, 9, 8), (8, 7)),
        ((9, 8), (2, 3, 8, 7)),
        ((2, 3, 9, 8), (2, 3, 8, 7)),
        ((2, 1, 9, 8), (5, 8, 7)),
        ((3, 1, 2, 5, 8), (4, 1, 8, 6)),
        ((1, 9, 8), (4, 8, 7)),
        ((0, 9, 8), (8, 7)),
    ]:
        yield Sample((make(*a), make(*b)), label=f"{a} by {b}")
    yield Sample((make(4, 9, 5).permute(2, 1, 0), make(8, 7)[::2]), label="permuted by every other")


def gemv(
    a: Tensor,
    x: Tensor,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    c: Tensor | None = None,
) -> Tensor:
    result = alpha * ((a.mT if transpose_a else a) @ x)
    return result if c is None or beta == 0 else result + beta * c


def gemv_magnitude(a: Tensor, x: Tensor, alpha: float = 1.0, beta: float = 1.0, *flags: bool, **more: Any) -> Tensor:
    more = {name: value.abs() if isinstance(value, Tensor) else value for name, value in more.items()}
    return gemv(a.abs(), x.abs(), abs(alpha), abs(beta), *flags, **more)


def gemv_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for m, k in [(1, 1), (129, 300), (1030, 40), (3, 2050), (0, 5), (5, 0)]:
        yield Sample((make(m, k), make(k)), label=f"{m}x{k}")
        yield Sample((make(k, m), make(k)), {"transpose_a": True, "alpha": 0.5}, label=f"{m}x{k} transposed")
        yield Sample((make(m, 2 * k)[:, ::2], make(k)), {"beta": 2.0, "c": make(m)}, label=f"{m}x{k} strided, c")
    yield Sample((make(7, 5), make(10)[::2]), {"beta": 0.5, "c": make(1)}, label="c broadcast")


def linear_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for lead in ((), (1,), (3,), (17,), (2, 5), (0, 4), (2, 1, 33)):
        yield Sample((make(*lead, 40), make(70, 40), make(70)), label=f"{lead}")
        yield Sample((make(*lead, 40), make(40, 70).t()), label=f"{lead} without bias, weight transposed")
    yield Sample((make(9, 0), make(7, 0), make(7)), label="no features in")
    yield Sample((make(40, 2, 9).permute(1, 2, 0), make(70, 40), make(140)[::2]), label="permuted")


def linear_fused(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, residual: Tensor | None = None, activation: str = "none"
) -> Tensor:
    result = F.linear(input, weight, bias)
    result = result if residual is None else result + residual
    return result if activation == "none" else getattr(F, activation)(result)


def linear_fused_magnitude(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, residual: Tensor | None = None, activation: str = "none"
) -> Tensor:
    given = (t if t is None else t.abs() for t in (input, weight, bias, residual))
    return (1.0 if activation == "none" else 1.13) * linear_fused(*given)


def linear_fused_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for i, lead in enumerate(((), (1,), (17,), (2, 5), (0, 4), (2, 1, 33))):
        extra = {"activation": ("none", "relu", "gelu", "silu")[i % 4]}
        extra |= {"residual": make(*lead, 70) if i % 4 else make(70)} if i % 2 == 0 else {}
        yield Sample(
            (make(*lead, 40), make(70, 40), make(70) if i % 3 else None), extra, label=f"{lead} {extra['activation']}"
        )


def benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    found = {}
    for dtype, name in ((torch.float32, ""), (torch.bfloat16, " bfloat16")):
        for n in (512, 1000, 1024, 2048):
            found[f"{n}{name}"] = Sample((normal((n, n), dtype, generator), normal((n, n), dtype, generator)))
    for m in (1, 4):
        found[f"{m}x4096x4096"] = Sample(
            (normal((m, 4096), torch.float32, generator), normal((4096, 4096), torch.float32, generator))
        )
    return found


def linear_benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, torch.float32, generator)

    return {f"{m}x1024x1024": Sample((make(m, 1024), make(1024, 1024), make(1024))) for m in (1, 4, 256)}


def batched_benchmarks(generator: torch.Generator) -> dict[str, Sample]:
    return {
        "16x256": Sample(
            (normal((16, 256, 256), torch.float32, generator), normal((16, 256, 256), torch.float32, generator))
        )
    }


SPECS = [
    OpSpec("kpkg::gemm", product, samples, magnitude=magnitude, benchmarks=benchmarks, eager=torch.mm),
    OpSpec(
        "kpkg::gemm_batched",
        product_batched,
        batched_samples,
        magnitude=magnitude,
        benchmarks=batched_benchmarks,
        eager=torch.bmm,
    ),
    OpSpec("kpkg::bmm", torch.bmm, bmm_samples, magnitude=matmul_magnitude, eager=torch.bmm),
    OpSpec("kpkg::matmul", torch.matmul, matmul_samples, magnitude=matmul_magnitude, eager=torch.matmul),
    OpSpec("kpkg::gemv", gemv, gemv_samples, magnitude=gemv_magnitude, eager=torch.mv),
    OpSpec(
        "kpkg::linear",
        F.linear,
        linear_samples,
        magnitude=linear_magnitude,
        benchmarks=linear_benchmarks,
        eager=F.linear,
    ),
    OpSpec("kpkg::linear_fused", linear_fused, linear_fused_samples, magnitude=linear_fused_magnitude),
]
