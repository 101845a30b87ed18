"""Compares the Mojo GPU puzzles with PyTorch, and times kernels at thread level beside kernels of tiles.

    kpkg build examples/puzzles -o puzzles.kpkg --target sm_90a
    kpkg build test/device/kernels/threads.k -o threads.kpkg --target sm_90a
    python test/device/puzzles.py puzzles.kpkg [--times threads.kpkg] [--device cpu] [--repeats 5]

A missing barrier shows as a wrong element now and then, so each case runs several times. Prints a line for each puzzle
and exits 1 if one is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

import kpkg
import torch

for _folder in (Path(__file__).resolve().parent, Path(__file__).resolve().parents[1] / "python"):
    sys.path.insert(0, str(_folder))
from puzzle_cases import CASES, check  # noqa: E402
from timing import times  # noqa: E402


def compare_times(package: str) -> None:
    ops = kpkg.load(package)
    n = 64 << 20
    a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    torch.testing.assert_close(ops.add_threads(a, b), a + b)
    torch.testing.assert_close(ops.sum_threads(a), a.view(-1, 8192).sum(1), rtol=1e-4, atol=1e-2)
    calls = {
        "add_threads": lambda: ops.add_threads(a, b),
        "add_tiles": lambda: ops.add_tiles(a, b),
        "sum_threads": lambda: ops.sum_threads(a),
        "sum_tiles": lambda: ops.sum_tiles(a),
    }
    for name, time in times(calls, rounds=30, is_clean=True, is_ahead=True).items():
        print(f"{name} of {n} float32: {time} us", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--times")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    ops, wrong = kpkg.load(arguments.package), 0
    for name in sorted(CASES):
        try:
            for _ in range(arguments.repeats):
                check(ops, name, arguments.device)
            print(f"{name}: right", flush=True)
        except Exception:
            wrong += 1
            print(f"{name}: wrong\n{traceback.format_exc(limit=2)}", flush=True)
    if arguments.times:
        compare_times(arguments.times)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
