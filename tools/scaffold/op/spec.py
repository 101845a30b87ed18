"""Spec of NAME.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal, strided_forms
from torch import Tensor


def NAME(input: Tensor) -> Tensor:
    return input * input


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(shape: tuple[int, ...]) -> Tensor:
        return normal(shape, dtype, generator)

    for shape in [(), (1,), (0,), (7,), (4097,), (3, 0, 2), (5, 1000), (2, 3, 5, 7)]:
        yield Sample((make(shape),), label=str(shape))
    for label, x in strided_forms(make):
        yield Sample((x,), label=label)


SPECS = [
    OpSpec(
        "kpkg::NAME",
        NAME,
        samples,
        benchmarks=lambda generator: {"4096x1024": Sample((normal((4096, 1024), torch.float32, generator),))},
        eager=NAME,
    ),
]
