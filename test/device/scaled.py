"""Measures scaled 8-bit matrix products on a GPU.

Checks errors against float64, then times calls against torch._scaled_mm and torch._int_mm.

    kpkg build kernels_src/scaled_gemm -o scaled.kpkg --target sm_90a
    test/device/scaled.py --package scaled.kpkg --out scaled.json

cuBLAS can accumulate FP8 products in two ways. `precise` promotes the tensor cores' partial sums to float32 after some
steps, as kpkg does. `fast` leaves the whole sum to the tensor cores. All calls are launched in shuffled order with an
L2 flush before each launch; a figure is the median.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import times, usable
from torch import Tensor

DEVICE = "cuda"
BLOCK = 128
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (4096, 14336, 4096)]
CHECKED = [(512, 512, 512), (1024, 768, 4096), (128, 256, 16384), (1000, 1040, 1008), (384, 640, 144)]
KINDS = [
    ("tensor", torch.float8_e4m3fn),
    ("rows", torch.float8_e4m3fn),
    ("blocks", torch.float8_e4m3fn),
    ("tensor", torch.float8_e5m2),
    ("tensor", torch.int8),
]


def eight_bits(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    if dtype == torch.int8:
        return torch.randint(-127, 128, (rows, columns), dtype=dtype, device=DEVICE)
    return torch.randn(rows, columns, device=DEVICE).to(dtype)


def scale(*shape: int) -> Tensor:
    return torch.rand(shape, device=DEVICE) + 0.5


def spread(values: Tensor, rows: int, columns: int) -> Tensor:
    """Expands scales to one for every element."""
    for dim, extent in ((0, rows), (1, columns)):
        if values.shape[dim] not in (1, extent):
            values = values.repeat_interleave(BLOCK, dim).narrow(dim, 0, extent)
    return values.expand(rows, columns)


class Case:
    """One product: its operands, kpkg's call and the peers'."""

    def __init__(self, kind: str, dtype: torch.dtype, m: int, n: int, k: int) -> None:
        self.a, self.b = eight_bits(m, k, dtype), eight_bits(n, k, dtype).t()
        depth = -(-k // BLOCK)
        self.scale_a = scale(*{"tensor": (1, 1), "rows": (m, 1), "blocks": (m, depth)}[kind])
        self.scale_b = scale(*{"tensor": (1, 1), "rows": (1, n), "blocks": (depth, -(-n // BLOCK))}[kind])
        self.shape, self.kind, self.dtype = (m, n, k), kind, dtype
        if dtype == torch.int8:  # no scales, so that the results are the sums
            self.scale_a.fill_(1)
            self.scale_b.fill_(1)

    def reference(self) -> Tensor:
        m, n, k = self.shape
        return (self.a.double() * spread(self.scale_a, m, k)) @ (self.b.double() * spread(self.scale_b, k, n))

    def calls(self) -> dict[str, Callable[[], Tensor]]:
        a, b, x, y = self.a, self.b, self.scale_a, self.scale_b
        if self.dtype == torch.int8:
            return {
                "kpkg": lambda: torch.ops.kpkg.scaled_gemm(a, b, x, y, torch.float32),
                "cublas": lambda: torch._int_mm(a, b),
            }
        found = {"kpkg": lambda: torch.ops.kpkg.scaled_gemm(a, b, x, y, torch.bfloat16)}
        if self.kind == "blocks":  # cuBLAS expects transposed scales
            x, y = x.t().contiguous().t(), y.t().contiguous().t()
        else:
            found["fast"] = lambda: torch._scaled_mm(a, b, x, y, out_dtype=torch.bfloat16, use_fast_accum=True)
        found["precise"] = lambda: torch._scaled_mm(a, b, x, y, out_dtype=torch.bfloat16, use_fast_accum=False)
        return found


def error(result: Tensor, reference: Tensor) -> float:
    return ((result.double() - reference).norm() / reference.norm()).item()


def check(kind: str, dtype: torch.dtype, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Checks that the error is at most 1.1 times the precise peer's, and that two calls give the same bits."""
    case = Case(kind, dtype, *shape)
    reference = case.reference()
    calls, refused = usable(case.calls())
    if "kpkg" not in calls:
        return {"what": [kind, str(dtype)[6:], *shape], "refused": refused, "holds": False}
    errors = {name: error(call(), reference) for name, call in calls.items()}
    same = torch.equal(calls["kpkg"](), calls["kpkg"]())
    peer = errors.get("precise", errors.get("cublas", 0.004))
    holds = same and errors["kpkg"] <= 1.1 * peer + (0 if dtype != torch.int8 else 1e-7)
    return {
        "what": [kind, str(dtype)[6:], *shape],
        "errors": errors,
        "same_bits": same,
        "refused": refused,
        "holds": holds,
    }


def measure(kind: str, dtype: torch.dtype, shape: tuple[int, int, int], rounds: int) -> dict[str, Any]:
    case = Case(kind, dtype, *shape)
    calls, refused = usable(case.calls())
    microseconds = times(calls, rounds)
    m, n, k = shape
    line = {
        "what": [kind, str(dtype)[6:], *shape],
        "us": microseconds,
        "tflops": {name: round(2e-6 * m * n * k / us) for name, us in microseconds.items()},
        "ratios": {name: round(us / microseconds["kpkg"], 3) for name, us in microseconds.items() if name != "kpkg"},
        "refused": refused,
    }
    print(line["what"], line["tflops"], line["ratios"], refused or "", flush=True)
    return line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True, help="the package of kernels_src/scaled_gemm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    kpkg.load(options.package)
    checks = [check(kind, dtype, shape) for kind, dtype in KINDS for shape in CHECKED]
    for line in checks:
        print(
            "right" if line["holds"] else "WRONG", line["what"], line.get("errors"), line["refused"] or "", flush=True
        )
    timed = [measure(kind, dtype, shape, options.rounds) for kind, dtype in KINDS for shape in SHAPES]
    result = {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "checks": checks,
        "timed": timed,
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(line["holds"] for line in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
