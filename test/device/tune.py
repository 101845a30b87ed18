"""Measures the alternatives of matrix products on a GPU and writes tuning tables for `kpkg build`.

`kpkg tune` does so for one call, this script for many at once.

    test/device/tune.py --gemm gemm.kpkg --scaled scaled.kpkg --out tables

The command writes tables/gemm.json and tables/scaled_gemm.json. A build reads them as kernels_src/gemm/tuning.json and
kernels_src/scaled_gemm/tuning.json. `measured` records their origin; packages do not hold it.

Alternatives are launched in another order in every round, with an L2 flush before each launch. Among those within two
percent of the best median, the script takes the one with the least cost by the cost model, else the first.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from product_shapes import BATCHED, LARGE, MEDIUM, ODD, WEIGHTS
from torch import Tensor

DEVICE = "cuda"
TIE_BAND = 1.02
FEW = [(m, n, k) for n, k in WEIGHTS for m in (64, 128, 256)]
SCALED = [
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 1024),
    (4096, 14336, 4096),
    (2048, 2048, 2048),
    (4096, 7168, 2048),
    (4096, 2112, 7168),
]

Call = tuple[str, tuple[Any, ...]]


def matrix(rows: int, columns: int, order: str, dtype: torch.dtype) -> Tensor:
    """Returns a matrix that is contiguous along its columns (n) or its rows (t)."""
    return (
        torch.randn(rows, columns, device=DEVICE).to(dtype)
        if order == "n"
        else torch.randn(columns, rows, device=DEVICE).to(dtype).t()
    )


def gemm_calls() -> Iterator[Call]:
    for dtype in (torch.bfloat16, torch.float16):
        for m, n, k in [*LARGE, *MEDIUM, *ODD, *FEW]:
            for order in "nt":
                yield "gemm", (matrix(m, k, "n", dtype), matrix(k, n, order, dtype))
        for count, m, n, k in BATCHED:
            yield (
                "gemm_batched",
                (
                    torch.randn(count, m, k, device=DEVICE, dtype=dtype),
                    torch.randn(count, k, n, device=DEVICE, dtype=dtype),
                ),
            )


def scaled_calls() -> Iterator[Call]:
    one = torch.ones(1, 1, device=DEVICE)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for m, n, k in SCALED:
            yield "scaled_gemm", (matrix(m, k, "n", dtype), matrix(k, n, "t", dtype), one, one, torch.bfloat16)
            lines = (torch.ones(m, 1, device=DEVICE), torch.ones(1, n, device=DEVICE))
            yield "scaled_gemm", (matrix(m, k, "n", dtype), matrix(k, n, "t", dtype), *lines, torch.bfloat16)
    for m, n, k in SCALED:
        scales = [torch.ones(shape, device=DEVICE) for shape in ((m, -(-k // 128)), (-(-k // 128), -(-n // 128)))]
        yield (
            "scaled_gemm",
            (matrix(m, k, "n", torch.float8_e4m3fn), matrix(k, n, "t", torch.float8_e4m3fn), *scales, torch.bfloat16),
        )


def launches(op: Any, args: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Returns the launches of the call that have alternatives."""
    record = json.loads(op._native.explain(op._describe(args, {}), True))
    return [launch for package in record["packages"] for launch in package.get("launches", []) if "choice" in launch]


def once(call: Any, flush: Tensor) -> float:
    call()  # resolves the call
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def fastest(
    op: Any, args: tuple[Any, ...], launch: dict[str, Any], rounds: int, flush: Tensor
) -> tuple[dict[str, Any], dict[str, float]]:
    import kpkg

    alternatives = launch["choice"]["alternatives"]
    times: list[list[float]] = [[] for _ in alternatives]
    for _ in range(rounds):
        for i in random.sample(range(len(alternatives)), len(alternatives)):
            with op.configure(kpkg.KernelConfig(params=alternatives[i]["values"])):
                times[i].append(once(lambda: op(*args), flush))
    medians = [statistics.median(values) for values in times]
    near = [i for i, median in enumerate(medians) if median <= TIE_BAND * min(medians)]
    best = min(near, key=lambda i: (alternatives[i].get("cycles", 0), i))
    return alternatives[best]["values"], {json.dumps(a["values"]): round(t, 1) for a, t in zip(alternatives, medians)}


def table(package: Any, calls: Iterator[Call], rounds: int, flush: Tensor) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    for name, args in calls:
        op = getattr(package, name)
        for launch in launches(op, args):
            values, times = fastest(op, args, launch, rounds, flush)
            key = launch["choice"]["row"]
            rows[json.dumps(key, sort_keys=True, separators=(",", ":"))] = {**key, "choice": values}
            print(
                launch["kernel"],
                [tuple(t.shape) for t in args if isinstance(t, Tensor)][:2],
                args[1].stride(-1),
                values,
                "of",
                times,
                flush=True,
            )
    return {"format": 1, "rows": [rows[key] for key in sorted(rows)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemm", help="the package of kernels_src/gemm")
    parser.add_argument("--scaled", help="the package of kernels_src/scaled_gemm")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0, help="of inputs and of the order of measurements")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    random.seed(options.seed)
    torch.manual_seed(options.seed)
    flush = torch.empty(256 << 20, dtype=torch.int8, device=DEVICE)
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    measured = {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "driver": driver.stdout.strip(),
        "rounds": options.rounds,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for name, path, calls in (("gemm", options.gemm, gemm_calls), ("scaled_gemm", options.scaled, scaled_calls)):
        if path:
            made = {"measured": measured, **table(kpkg.load(path), calls(), options.rounds, flush)}
            (options.out / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
