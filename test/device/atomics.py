"""Checks what atomic updates leave in memory and what they find there.

    kpkg build test/device/kernels/atomics.k -o atomics.kpkg --target sm_90a
    python test/device/atomics.py atomics.kpkg [--device cpu]

The order of updates is open, so results are not compared with one expected result. The updates of one element are a
chain from its first value to its last one. So what all of them find, with the last value, equals what all of them
leave, with the first value. Prints a line for each case and exits 1 if one is wrong.

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
SUMMED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint32)
UPDATED = (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint32)
EXPECTED = 5  # what a compare-and-swap looks for


def require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def comparable(x: Tensor) -> Tensor:
    """The same numbers in a dtype in which PyTorch has all functions."""
    return x.cpu().to(torch.int64 if x.dtype == torch.uint32 else x.dtype)


def check_chains(at: Tensor, first: Tensor, last: Tensor, found: Tensor, left: Tensor) -> None:
    """Checks each element's chain. `at`, `found` and `left` have an item for each update."""
    for i in range(len(first)):
        mine = at == i
        before = torch.cat([found[mine], last[i : i + 1]]).sort().values
        after = torch.cat([left[mine], first[i : i + 1]]).sort().values
        require(torch.equal(before, after), f"the updates of element {i} are no chain")


def numbers(dtype: torch.dtype, count: int, generator: torch.Generator, device: str) -> Tensor:
    least = 0 if dtype == torch.uint32 else -4
    return torch.randint(least, 9, (count,), generator=generator).to(dtype).to(device)


def add(ops: Ops, device: str, dtype: torch.dtype, count: int, elements: int) -> None:
    generator, skipped = torch.Generator().manual_seed(count), 3
    at = torch.randint(-1, elements + 1, (count,), generator=generator, dtype=torch.int32)  # some outside
    first, v = (numbers(dtype, n, generator, device) for n in (elements, count))
    y, old = first.clone(), torch.full((count,), 77).to(dtype).to(device)
    ops["add"](y, old, at.to(device), v, skipped)
    first, v, y, old = (comparable(x) for x in (first, v, y, old))
    updates = (at >= 0) & (at < elements) & (v != skipped)
    require(bool((old[~updates] == 0).all()), "an element without an update has another old value than 0")
    check_chains(at[updates], first, y, old[updates], (old + v)[updates])


def update(ops: Ops, device: str, dtype: torch.dtype, how: int) -> None:
    generator, count, elements = torch.Generator().manual_seed(how), 1000, 20
    at = torch.randint(-1, elements + 1, (count,), generator=generator, dtype=torch.int32)
    first, v = (numbers(dtype, n, generator, device) for n in (elements, count))
    y, old = first.clone(), torch.full((count,), 77).to(dtype).to(device)
    ops["update"](y, old, at.to(device), v, how, EXPECTED)
    first, v, y, old = (comparable(x) for x in (first, v, y, old))
    updates = (at >= 0) & (at < elements)
    require(bool((old[~updates] == 0).all()), "an element without an update has another old value than 0")
    left = [torch.maximum(old, v), torch.minimum(old, v), v, torch.where(old == EXPECTED, v, old)][how]
    check_chains(at[updates], first, y, old[updates], left[updates])


def group(ops: Ops, device: str) -> None:
    generator, groups = torch.Generator().manual_seed(1), 5
    x = torch.randn(1000, 64, generator=generator)
    of = torch.randint(groups, (1000,), generator=generator, dtype=torch.int32)
    counts = torch.bincount(of, minlength=groups)
    begin, used = (counts.cumsum(0) - counts).int(), torch.zeros(groups, dtype=torch.int32, device=device)
    y = ops["group"](used, x.to(device), of.to(device), begin.to(device)).cpu()
    require(torch.equal(used.cpu(), counts.int()), "a group has another number of rows")
    for g in range(groups):
        mine = y[begin[g] : begin[g] + counts[g]]
        require(sorted(mine.tolist()) == sorted(x[of == g].tolist()), f"group {g} has other rows")


def double(ops: Ops, device: str) -> None:
    x = torch.randn(100, 128, generator=torch.Generator().manual_seed(2)).to(device)
    taken = torch.zeros(1, dtype=torch.int32, device=device)
    require(torch.equal(ops["double"](taken, x), 2 * x), "a row is missing")
    require(int(taken) == 107, "blocks took another number of rows")


def insert(ops: Ops, device: str) -> None:
    keys = torch.randint(500, (3000,), generator=torch.Generator().manual_seed(3))
    table = torch.full((701,), -1).to(device)
    ops["insert"](table, keys.to(device))
    found = table.cpu()
    require(found[found >= 0].sort().values.equal(keys.unique()), "the table has other keys")


def cases(device: str) -> Iterator[tuple[str, Callable[[Ops], None]]]:
    """Yields names and checks."""
    for dtype in SUMMED:
        for count, elements in ((1, 1), (8, 2), (1000, 3), (5000, 100)):
            name = f"add {count} to {elements} of {dtype}"
            yield name, partial(add, device=device, dtype=dtype, count=count, elements=elements)
    for dtype in UPDATED:
        for how, word in enumerate(("max", "min", "exchange", "compare_exchange")):
            yield f"{word} of {dtype}", partial(update, device=device, dtype=dtype, how=how)
    for check in (group, double, insert):
        yield check.__name__, partial(check, device=device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    ops = {op.name.removeprefix("atomics::"): op for op in kpkg.load(options.package)}
    failed = 0
    for name, check in cases(options.device):
        try:
            check(ops)
            state = "right"
        except (AssertionError, kpkg.KernelError) as error:
            state, failed = f"WRONG: {error}", failed + 1
        print(f"{name}: {state}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
