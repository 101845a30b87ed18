"""Checks sort, top_k, histogram and long cumulative sums of tiles against PyTorch, on a GPU or on the CPU.

    kpkg build test/device/kernels/sorting.k -o sorting.kpkg --target sm_90a
    test/device/sorting.py sorting.kpkg --device cuda

Exits 1 if a result differs. Needs PyTorch and the Python package `kpkg`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import kpkg
import torch
from torch.testing import assert_close


def cases(device: str) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Yields the name of an op, its arguments and the expected results."""
    generator = torch.Generator().manual_seed(6)

    def drawn(dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """Draws numbers of which many are equal, for floats also NaN and both zeros."""
        x = torch.randint(-300, 300, shape, generator=generator).to(dtype)
        if dtype.is_floating_point:
            x[..., 5::17] = torch.nan
            x[..., 7::19] = -0.0
        return x.to(device)

    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for n in (64, 1000, 4096):
            x = drawn(dtype, 9, n)
            yield "rows", (x,), tuple(x.sort(dim=1, stable=True))
    x = drawn(torch.float32, 64, 100)
    yield "columns", (x,), x.sort(dim=0, descending=True).values
    for dtype in (torch.float32, torch.int64):
        x = drawn(dtype, 9, 4096)
        values, places = x.sort(dim=1, stable=True, descending=True)
        yield "best", (x,), (values[:, :20], places[:, :20])
    for bins in (100, 700):
        x = torch.randint(0, bins, (2000,), generator=generator).to(device)
        yield "counts", (x, bins), torch.bincount(x, minlength=bins).int()
    x = torch.randint(-4, 5, (3, 151936), generator=generator).float().to(device)
    yield "sums", (x,), x.double().cumsum(1).float()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    ops = {op.name: op for op in kpkg.load(options.package)}
    failed = 0
    for name, arguments, expected in cases(options.device):
        try:
            assert_close(ops[f"sorting::{name}"](*arguments), expected, atol=0, rtol=0, equal_nan=True)
            state = "right"
        except (AssertionError, kpkg.KernelError) as error:
            state, failed = f"WRONG: {error}", failed + 1
        print(f"{name}({arguments[0].dtype}, {list(arguments[0].shape)}): {state}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
