"""Spec of vector_add.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal, strided_forms


def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for shape in [(), (1,), (0,), (7,), (4096,), (4097,), (3, 0, 2), (5, 1000), (2, 3, 5, 7), (100003,)]:
        yield Sample((normal(shape, dtype, generator), normal(shape, dtype, generator)), label=str(shape))
    for label, a in strided_forms(lambda shape: normal(shape, dtype, generator)):
        yield Sample((a, normal(tuple(a.shape), dtype, generator)), label=label)


SPECS = [
    OpSpec(
        "kpkg::vector_add",
        reference=torch.add,
        samples=samples,
        accumulation=0.0,
        benchmarks=lambda generator: {
            f"{n}": Sample((normal((n,), torch.float32, generator), normal((n,), torch.float32, generator)))
            for n in (1 << 20, 1 << 24)
        },
        eager=torch.add,
    )
]
