"""Checks and times an op `a @ b` of a package on a GPU.

Compares odd shapes, every order of strides and poisoned outputs with float64 and torch.

    test/device/products.py --package mm.kpkg --op mm --dtype bfloat16 --out products.json

Needs PyTorch with CUDA and the Python package `kpkg`; compiles nothing.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import statistics
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import torch

SHAPES = [
    (1, 1, 1),
    (16, 8, 16),
    (128, 128, 32),
    (129, 127, 33),
    (257, 130, 1),
    (64, 200, 96),
    (333, 222, 1111),
    (512, 512, 512),
    (1000, 1048, 904),
]
#: Every product is exact; sums and the result are rounded.
TOLERANCE = {torch.int8: 0.0, torch.float32: 2e-3, torch.float16: 1e-3, torch.bfloat16: 8e-3}
TIMED = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (5000, 3000, 1112)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--op", action="append", required=True, help="name of the op in the package; may be repeated")
    parser.add_argument("--dtype", action="append", required=True)
    parser.add_argument("--shape", action="append", default=[], help="one more shape that is timed: MxNxK")
    parser.add_argument("--orders", default="nn,nt,tn,tt", help="orders that are timed")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def operand(rows: int, columns: int, dtype: torch.dtype, transposed: bool, padding: int = 0) -> torch.Tensor:
    """Returns random values, integers from -100 to 99 for int8; `padding` makes the row stride unaligned."""
    shape = (columns, rows + padding) if transposed else (rows, columns + padding)
    if dtype == torch.int8:
        whole = torch.randint(-100, 100, shape, dtype=dtype, device="cuda")
    else:
        whole = torch.randn(shape, device="cuda").to(dtype)
    return whole[:, :rows].T if transposed else whole[:, :columns]


def operands(
    m: int, n: int, k: int, dtype: torch.dtype, order: str, padding: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    return operand(m, k, dtype, order[0] == "t", padding), operand(k, n, dtype, order[1] == "t", padding)


def failure_of(op: Callable[..., Any], a: torch.Tensor, b: torch.Tensor) -> str:
    """Returns how far the product is wrong; empty if it is right, also in a poisoned output."""
    want = a.double() @ b.double()
    scale = a.double().abs() @ b.double().abs() + 1e-30
    got = op(a, b)
    again = torch.full_like(got, 77) if a.dtype == torch.int8 else torch.full_like(got, float("nan"))
    op.out(a, b, out=again)  # type: ignore[attr-defined]
    worst = ((got.double() - want).abs() / (scale.sqrt() + want.abs())).max().item()
    if torch.equal(got, again) and worst <= TOLERANCE[a.dtype] * 1.5:
        return ""
    return f"error {worst:.3g}, same {torch.equal(got, again)}"


def check(package: Any, names: list[str], dtypes: list[str]) -> tuple[int, list[str]]:
    """Returns the number of checked products, and the failures."""
    failures, checked = [], 0
    for name, dtype_name, (m, n, k), order, padding in product(
        names, dtypes, SHAPES, ("nn", "nt", "tn", "tt"), (0, 3, 8)
    ):
        a, b = operands(m, n, k, getattr(torch, dtype_name), order, padding)
        checked += 1
        if failure := failure_of(getattr(package, name), a, b):
            failures.append(f"{name} {dtype_name} {m}x{n}x{k} {order} padding {padding}: {failure}")
    return checked, failures


def microseconds(call: Callable[[], Any], flush: torch.Tensor) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.zero_()
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000


def time_products(package: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Times the ops and torch, and returns a row for each dtype, shape and order."""
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    rows = []
    timed = TIMED + [tuple(int(part) for part in shape.split("x")) for shape in options.shape]
    for dtype_name, (m, n, k), order in product(options.dtype, timed, options.orders.split(",")):
        a, b = operands(m, n, k, getattr(torch, dtype_name), order)
        calls: dict[str, Callable[[], Any]] = {
            name: functools.partial(getattr(package, name), a, b) for name in options.op
        }
        if a.dtype != torch.int8:
            calls["torch"] = functools.partial(torch.matmul, a, b)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            call()
        for _ in range(options.rounds):
            for name in random.sample(list(calls), len(calls)):
                times[name].append(microseconds(calls[name], flush))
        teraflops = {name: 2e-6 * m * n * k / statistics.median(all_times) for name, all_times in times.items()}
        rows.append({"dtype": dtype_name, "shape": [m, n, k], "order": order, "teraflops": teraflops})
        print(
            dtype_name,
            f"{m}x{n}x{k}",
            order,
            *(f"{name} {value:.1f}" for name, value in teraflops.items()),
            flush=True,
        )
    return rows


def main() -> int:
    options = arguments()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    package = kpkg.load(options.package)
    torch.manual_seed(random.randrange(1 << 31))
    checked, failures = check(package, options.op, options.dtype)
    print(f"checked {checked}, failed {len(failures)}", *failures[:40], sep="\n  ")
    rows = time_products(package, options)
    if options.out:
        options.out.write_text(
            json.dumps(
                {"device": torch.cuda.get_device_name(), "checked": checked, "failures": failures, "times": rows},
                indent=1,
            )
        )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
