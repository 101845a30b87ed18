"""Measures errors and times of float32 matmul on a GPU at each precision, beside PyTorch's own switch.

    kpkg build kernels_src/gemm -o gemm.kpkg --target sm_90a
    test/device/precision.py --package gemm.kpkg --out precision.json

An error is the greatest |found - exact| / (|a| @ |b|), with `exact` in float64; 2^-10 is allowed where factors are
rounded. Times are medians of calls in shuffled order with an L2 flush before each.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
from timing import times

SHAPES = [
    (4096, 4096, 4096),
    (1024, 1024, 1024),
    (8192, 8192, 1024),
    (512, 512, 8192),
    (64, 4096, 4096),
    (1000, 1000, 1000),
    (1023, 1025, 1027),
    (4095, 4097, 4093),
]
LEVELS = ("highest", "high", "medium")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True, help="kernels_src/gemm, built for this GPU")
    parser.add_argument(
        "--orders", default="nn,nt,tn,tt", help="n or t for each factor: rows or columns are contiguous"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def factor(rows: int, columns: int, is_turned: bool) -> torch.Tensor:
    return torch.randn(columns, rows, device="cuda").T if is_turned else torch.randn(rows, columns, device="cuda")


def main() -> int:
    options = arguments()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    gemm = kpkg.load(options.package).gemm
    rows, failures = [], 0
    for m, n, k in SHAPES:
        for order in options.orders.split(","):
            a, b = factor(m, k, order[0] == "t"), factor(k, n, order[1] == "t")
            exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
            for level in LEVELS:
                torch.set_float32_matmul_precision(level)
                found = gemm(a, b)  # uses the precision that PyTorch's switch sets
                is_same = torch.equal(found, gemm(a, b, precision=level))
                errors = {
                    name: ((result.double() - exact).abs() / size).max().item()
                    for name, result in (("kpkg", found), ("torch", a @ b))
                }
                is_right = is_same and errors["kpkg"] <= (2.0**-18 if level == "highest" else 2.0**-10)
                failures += not is_right
                measured = times({"kpkg": lambda: gemm(a, b), "torch": lambda: a @ b}, options.rounds)
                row = {"shape": [m, n, k], "order": order, "precision": level, "errors": errors, "us": measured}
                rows.append(row | {"tflops": round(2e-6 * m * n * k / measured["kpkg"], 1)})
                print(*rows[-1].values(), "" if is_right else "WRONG", flush=True)
    torch.set_float32_matmul_precision("highest")
    if options.out:
        options.out.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "rows": rows}, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
