"""Checks kernels whose control flow follows from tiles, against PyTorch.

    kpkg build test/device/kernels/control.k -o control.kpkg --target sm_90a
    python test/device/control.py control.kpkg [--device cpu]

Covers numbers that are read from tiles, tuples of tiles that loops carry, and output tiles of numbers. Rows of 65536
elements are shared by blocks of a cluster, which must all see one number. Prints a line for each case and exits 1 if
one differs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import kpkg
import torch
from torch import Tensor
from torch.testing import assert_close

Case = tuple[str, tuple[Any, ...], Any]


def k_means(x: Tensor, start: Tensor, most: int) -> tuple[Tensor, Tensor]:
    centres, rounds, moved = start.double(), 0, 1.0
    while rounds < most and moved > 0:
        nearest = (x.double()[:, None] - centres).abs().argmin(1)
        means = [x.double()[nearest == i].mean() if (nearest == i).any() else c for i, c in enumerate(centres)]
        moved = float((torch.stack(means) - centres).abs().max())
        centres, rounds = torch.stack(means), rounds + 1
    return centres.float(), torch.tensor([rounds], device=x.device)


def first_above(x: Tensor, limit: float) -> Tensor:
    above = x > limit
    return torch.where(above.any(1), above.int().argmax(1), x.shape[1])


def thresholds(x: Tensor, count: int) -> Tensor:
    """The bisection of the kernel, whose numbers float32 holds exactly."""
    found = []
    for row in x:
        low, high, step = 0.0, 1.0, 0
        while step < 24 and low < high:
            middle = (low + high) / 2
            above = int((row > middle).sum())
            low, high = (middle if above >= count else low), (middle if above <= count else high)
            step += 1
        found.append(high)
    return torch.tensor(found, device=x.device)


def ragged(rows: int, depth: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A matrix whose rows end in zeros, and the number of elements before these."""
    depths = torch.randint(0, depth + 1, (rows,), generator=generator, dtype=torch.int32)
    depths[64:128] //= 5
    a = torch.randn(rows, depth, generator=generator)
    return torch.where(torch.arange(depth) < depths[:, None], a, 0), depths


def interleaved_sums(x: Tensor, lanes: int) -> Tensor:
    sums = [x[i::lanes].sum(0) for i in range(lanes)]
    steps = -(-x.shape[0] // lanes)
    top = x.amax(0) if x.shape[0] % lanes == 0 else x.amax(0).clamp_min(0)  # loads outside of x give 0
    return torch.stack([*sums, top, torch.full_like(top, steps - 1)])


def cycled(x: Tensor, times: int) -> Tensor:
    rows = [x[0], x[1], x[2]]
    for i in range(times):
        rows = [*rows[1:], rows[0]]
        if i == 5:
            rows = [rows[0], rows[2], rows[1]]
    return torch.stack(rows)


def cases(device: str) -> Iterator[Case]:
    """Yields names of ops, arguments and expected results."""
    generator = torch.Generator().manual_seed(7)

    def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator).to(device, dtype)

    def indices(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator, dtype=torch.int32).to(device)

    for count in (200, 1000):
        x, start = normal(count), torch.tensor([-2.0, -1.0, 1.0, 2.0], device=device)
        for most in (0, 2, 100):
            yield "k_means", (x, start, most), k_means(x, start, most)
    for columns in (1, 128, 1000):
        x = normal(9, columns)
        yield "first_above", (x, 2.0), first_above(x, 2.0)
    for columns in (700, 1024, 40000, 65536):
        x = torch.rand(5, columns, generator=generator).to(device)
        for count in (1, 50):
            yield "thresholds", (x, count), thresholds(x, count)
    x, exponents = normal(40, 64), indices(6, 40)
    exponents[16:32] = 0
    yield "raise_rows", (x, exponents), x ** exponents[:, None]
    scores, x = normal(7, 200), normal(200, 64)
    yield "best_rows", (scores, x), x[scores.argmax(1)]
    for dtype in (torch.float32, torch.bfloat16):
        matrix, depths = ragged(200, 300, generator)
        a, b, depths = matrix.to(device, dtype), normal(300, 96, dtype=dtype), depths.to(device)
        yield "ragged_products", (a, b, depths), (a.double() @ b.double()).float()
        a, experts, b = normal(192, 100, dtype=dtype), indices(4, 3), normal(4, 100, 130, dtype=dtype)
        product = a.double().reshape(3, 64, 100) @ b.double()[experts.long()]
        yield "gathered_products", (a, experts, b), product.float()
    for rows, columns in ((100, 136), (640, 1032)):
        a, b = normal(rows, 192, dtype=torch.bfloat16), normal(192, columns, dtype=torch.bfloat16)
        for cluster in (1, 2):
            for dynamic in (False, True):
                yield "products", (a, b, cluster, dynamic), (a.double() @ b.double()).float()
    for rows, lanes in ((8, 2), (9, 2), (16, 4), (13, 4)):
        x = normal(rows, 300)
        yield "interleaved_sums", (x, lanes), interleaved_sums(x, lanes)
    like = torch.empty(8, 8, dtype=torch.int32, device=device)
    for m in (-17, -1, 0, 1, 15, 16, 17, 33):
        for n in (-9, 0, 1, 7, 8, 9):
            counts = torch.zeros_like(like)
            counts[: max(0, -(-m // 16)), : max(0, -(-n // 8))] = 1
            yield "visits", (like, m, n), counts
    x = normal(3, 64)
    for times in (0, 1, 5, 8):
        yield "cycled", (x, times), cycled(x, times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    library = kpkg.load(options.package)
    ops = {op.name: op for op in library}
    failed = 0
    for name, arguments, expected in cases(options.device):
        try:
            assert_close(ops[f"control::{name}"](*arguments), expected, atol=2e-4, rtol=1e-4)
            state = "right"
        except (AssertionError, kpkg.KernelError) as error:
            state, failed = f"WRONG: {error}", failed + 1
        shown = ", ".join(str(list(a.shape)) if isinstance(a, Tensor) else str(a) for a in arguments)
        print(f"{name}({shown}): {state}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
