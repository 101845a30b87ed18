"""Times products with weights of 4 and 8 bits on a GPU beside bfloat16 of cuBLAS and PyTorch's packed int4 weights.

    kpkg build kernels_src/quantized --target sm_90a -o quantized.kpkg
    python test/device/int4.py quantized.kpkg [-o results.json] [--rows 1 16 128]

Each result is compared with the float64 product of the dequantised weight first. Times are medians of calls in shuffled
order behind an L2 flush, with the host ahead of the GPU. Exits 1 if a result is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kpkg
import torch
from timing import Calls, times, usable
from torch import Tensor

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

WEIGHTS = [(8192, 8192), (4096, 4096), (14336, 4096), (5120, 13824), (16384, 8192), (8192, 16384)]
#: A weight of which only the first rows of results are compared, since float64 takes too much memory.
LARGE = (81920, 8192)
COMPARED = 4096
ROWS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096]
GROUP = 128
ROUNDS = 15
#: PyTorch's own op for packed weights is for few rows: it takes milliseconds for more.
MOST_ROWS_OF_PYTORCH = 128
TOLERANCE = 5e-3
WHAT = (
    "kpkg::int4_linear (groups of 128 and of 32 columns), int8_linear and fp8_linear, bfloat16, weights [n, k], beside "
    "cuBLAS with a bfloat16 weight and torch's _weight_int4pack_mm: microseconds behind an L2 flush "
    "(test/device/int4.py)"
)


def formats_of(ops: Any, n: int, k: int) -> dict[str, tuple[Any, Tensor, Tensor, Tensor]]:
    """Returns the op, packed weight, scales, and the first rows of the dense weight of each format."""
    whole = torch.randint(-8, 8, (n, k), dtype=torch.int8, device="cuda")
    wide = torch.randint(-128, 128, (n, k), dtype=torch.int8, device="cuda")
    floats = torch.randn(n, k, device="cuda", dtype=torch.bfloat16).to(torch.float8_e4m3fn)
    quantized = kpkg.quantized
    found = {}
    for name, op, numbers, pack, group in (
        ("int4", ops.int4_linear, whole, quantized.pack_int4, GROUP),
        ("int4, groups of 32", ops.int4_linear, whole, quantized.pack_int4, 32),
        ("int8", ops.int8_linear, wide, quantized.pack_int8, GROUP),
        ("fp8", ops.fp8_linear, floats, quantized.pack_fp8, GROUP),
    ):
        scales = torch.rand(k // group, n, device="cuda").bfloat16() * 0.05 + 0.01
        some = numbers[:COMPARED].bfloat16().view(-1, k // group, group) * scales.t()[:COMPARED].unsqueeze(2)
        found[name] = op, pack(numbers), scales, some.view(-1, k)
    return found


def packed_by_pytorch(n: int, k: int) -> tuple[Tensor, Tensor]:
    """Returns a packed weight of PyTorch with any numbers, and its scales with zeros."""
    halves = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
    return torch.ops.aten._convert_weight_to_int4pack(halves, 8), torch.rand(
        k // GROUP, n, 2, device="cuda", dtype=torch.bfloat16
    )


def cases(ops: Any, n: int, k: int, counts: list[int]) -> Iterator[tuple[int, Calls, dict[str, float]]]:
    """Yields the calls of every number of rows for one weight, and the errors of kpkg's."""
    formats = formats_of(ops, n, k)
    dense = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    of_pytorch = packed_by_pytorch(n, k)
    for rows in counts:
        x = torch.randn(rows, k, device="cuda").bfloat16()
        calls: Calls = {"cublas": lambda x=x: x @ dense.t()}
        if rows <= MOST_ROWS_OF_PYTORCH:
            calls["int4pack"] = lambda x=x: torch.ops.aten._weight_int4pack_mm(x, of_pytorch[0], GROUP, of_pytorch[1])
        errors = {}
        for name, (op, weight, scales, some) in formats.items():
            calls[name] = lambda x=x, op=op, weight=weight, scales=scales: op(x, weight, scales)
            expected = x.double() @ some.double().t()
            errors[name] = float((calls[name]()[:, :COMPARED].double() - expected).norm() / expected.norm())
        yield rows, calls, errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options = parser.parse_args()
    torch.manual_seed(0)
    ops = kpkg.load(options.package)
    found: list[dict[str, Any]] = []
    for n, k in [*WEIGHTS, LARGE]:
        for rows, calls, errors in cases(ops, n, k, [1] if (n, k) == LARGE else options.rows):
            calls, refused = usable(calls)
            us = times(calls, ROUNDS, is_ahead=True)
            row: dict[str, Any] = {"rows": rows, "n": n, "k": k, "error": max(errors.values())}
            row |= {"is_right": row["error"] < TOLERANCE, "us": us}
            of_four = min(us["cublas"], us.get("int4pack", us["cublas"]))
            row["ratio"] = {
                name: round((of_four if name.startswith("int4") else us["cublas"]) / us[name], 3) for name in errors
            }
            found.append(row | ({"refused": refused} if refused else {}))
            print(json.dumps(found[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": found}, indent=1) + "\n")
    return 0 if all(row["is_right"] for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
