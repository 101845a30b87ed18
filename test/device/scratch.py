"""Checks kernels whose threads exchange elements through scratch memory of their block.

    kpkg build test/device/kernels/scratch.k -o scratch.kpkg --target sm_90a
    python test/device/scratch.py scratch.kpkg [--device cpu] [--repeats 20]

A missing barrier shows as a wrong element now and then, so each case runs several times. Prints a line for each case
and exits 1 if one is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import kpkg
import torch
from torch import Tensor

Ops = dict[str, Callable[..., Any]]
TRANSPOSED = (torch.float32, torch.float64, torch.float16, torch.int8, torch.int64, torch.bool)
COMPARED = (torch.int32, torch.int64, torch.uint32, torch.float32, torch.float64)


def require(actual: Tensor, expected: Tensor, what: str) -> None:
    if not torch.equal(actual.cpu(), expected):
        wrong = int((actual.cpu() != expected).sum())
        raise AssertionError(f"{wrong} of {expected.numel()} elements of {what} are wrong")


def integers(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(low, high, shape, generator=generator, dtype=torch.int32)


def count(ops: Ops, device: str, generator: torch.Generator, n: int, bins: int) -> None:
    x = integers(-3, bins + 3, (n,), generator)
    counts = torch.zeros(bins, dtype=torch.int32, device=device)
    ops["count"](counts, x.to(device))
    inside = x[(x >= 0) & (x < bins)]
    require(counts, torch.bincount(inside, minlength=bins).int(), "the counts")


def transpose(ops: Ops, device: str, generator: torch.Generator, dtype: torch.dtype, rows: int, columns: int) -> None:
    x = integers(-9, 9, (rows, columns), generator).to(dtype)
    require(ops["transpose"](x.to(device)), x.T.contiguous(), "the transpose")


def permute(ops: Ops, device: str, generator: torch.Generator, rows: int, n: int) -> None:
    x = torch.randn(rows, n, generator=generator)
    places = torch.stack([torch.randperm(n, generator=generator) for _ in range(rows)]).int()
    outside = torch.rand(rows, n, generator=generator) < 0.1
    places[outside] = places[outside] % 2 * 5000 - 1
    moved, back = ops["permute"](x.to(device), places.to(device))
    expected_moved, expected_back = torch.full((rows, n), -1.0), torch.full((rows, n), -1.0)
    for row in range(rows):
        inside = (places[row] >= 0) & (places[row] < n)
        kept = inside & (places[row] != 3)
        expected_moved[row, places[row, kept].long()] = x[row, kept]
        expected_back[row, inside] = x[row, places[row, inside].long()]
    require(moved, expected_moved, "the scattered rows")
    require(back, expected_back, "the gathered rows")


def sums(ops: Ops, device: str, generator: torch.Generator, rows: int, n: int) -> None:
    x = integers(-100, 100, (rows, n), generator)
    require(ops["sums"](x.to(device)), x.cumsum(1).int(), "the sums")


def smooth(ops: Ops, device: str, generator: torch.Generator, rows: int, times: int) -> None:
    x = integers(-100, 100, (rows, 256), generator).float()  # few bits, so that means are exact
    expected = x
    for _ in range(times):
        padded = torch.cat([expected[:, :1], expected, expected[:, -1:]], dim=1)
        expected = (padded[:, :-2] + padded[:, 2:]) * 0.5
    require(ops["smooth"](x.to(device), times), expected, "the lines")


def follow(ops: Ops, device: str, generator: torch.Generator, blocks: int) -> None:
    links = integers(-1, 128, (blocks, 128), generator)
    links[0] = torch.arange(128).add(1).remainder(128)  # one long circle
    expected = torch.full((blocks, 128), -1, dtype=torch.int32)
    for block in range(blocks):
        at = number = 0
        while at >= 0 and expected[block, at] < 0:
            expected[block, at] = number
            at, number = int(links[block, at]), number + 1
    require(ops["follow"](links.reshape(-1).to(device)), expected.reshape(-1), "the order")


def extremes(ops: Ops, device: str, generator: torch.Generator, dtype: torch.dtype, blocks: int) -> None:
    x = integers(0, 101, (blocks, 256), generator)
    group = integers(-2, 18, (blocks, 256), generator)
    least, most, counts = ops["extremes"](x.reshape(-1).to(dtype).to(device), group.reshape(-1).to(device))
    for g in range(16):
        mine = group == g
        require(least.cpu()[:, g].int(), torch.where(mine, x, 100).amin(1), f"the least elements of group {g}")
        require(most.cpu()[:, g].int(), torch.where(mine, x, 0).amax(1), f"the greatest elements of group {g}")
        require(counts[:, g], mine.sum(1).int() * (g != 5), f"the counts of group {g}")


def multiply(ops: Ops, device: str, generator: torch.Generator, dtype: torch.dtype, m: int, n: int, k: int) -> None:
    a = integers(-3, 4, (m, k), generator).to(dtype)
    b = integers(-3, 4, (k, n), generator).to(dtype)
    rows = torch.cat([torch.randperm(min(64, m - at), generator=generator) + at for at in range(0, m, 64)]).int()
    expected = (a[rows.long()].float() @ b.float()).to(dtype)  # exact
    require(ops["multiply"](a.to(device), rows.to(device), b.to(device)), expected, "the product")


def cases(device: str) -> Iterator[tuple[str, Callable[[Ops, torch.Generator], None]]]:
    """Yields names and checks."""

    def case(check: Callable[..., None], *arguments: Any) -> tuple[str, Callable[[Ops, torch.Generator], None]]:
        name = " ".join(str(argument).removeprefix("torch.") for argument in (check.__name__, *arguments))
        return name, lambda ops, generator: partial(check, ops, device, generator)(*arguments)

    for n in (0, 1, 511, 100_000):
        for bins in (50, 4096):
            yield case(count, n, bins)
    for dtype in TRANSPOSED:
        for rows, columns in ((1, 1), (32, 64), (70, 45)):
            yield case(transpose, dtype, rows, columns)
    for n in (1, 7, 50, 1000, 2048):
        yield case(permute, 3, n)
    for n in (1, 32, 77, 1024, 3999):
        yield case(sums, 3, n)
    for times in (0, 1, 5):
        yield case(smooth, 9, times)
    yield case(follow, 5)
    for dtype in COMPARED:
        yield case(extremes, dtype, 3)
    for dtype in (torch.float32, torch.bfloat16):
        for m, n, k in ((64, 64, 32), (150, 70, 100)):
            yield case(multiply, dtype, m, n, k)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    ops = {op.name.removeprefix("scratch::"): op for op in kpkg.load(options.package)}
    failed = 0
    for name, check in cases(options.device):
        try:
            for seed in range(options.repeats):
                check(ops, torch.Generator().manual_seed(seed))
            state = "right"
        except (AssertionError, kpkg.KernelError) as error:
            state, failed = f"WRONG: {error}", failed + 1
        print(f"{name}: {state}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
