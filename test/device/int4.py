"""Times kpkg::int4_linear on a GPU beside a bfloat16 product of cuBLAS and PyTorch's op for packed int4 weights.

    kpkg build kernels_src/quantized --target sm_90a -o quantized.kpkg
    python test/device/int4.py quantized.kpkg [-o results.json]

Each result is compared with the float64 product of the dequantised weight first. Times are medians of calls in shuffled
order behind an L2 flush, with the host ahead of the GPU. Exits 1 if a result is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import kpkg
import torch
from timing import times, usable

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

WEIGHTS = [(8192, 8192), (4096, 4096), (14336, 4096), (5120, 13824)]
ROWS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096]
GROUP = 128
ROUNDS = 25
#: PyTorch's own op for packed weights is for few rows: it takes milliseconds for more.
MOST_ROWS_OF_PYTORCH = 128
TOLERANCE = 5e-3
WHAT = (
    "kpkg::int4_linear, bfloat16, weights [n, k] of 4 bits with a scale for 128 columns, beside cuBLAS with a bfloat16 "
    "weight and torch's _weight_int4pack_mm: microseconds behind an L2 flush (test/device/int4.py)"
)


def cases(op: Any, n: int, k: int) -> Any:
    """Yields the calls of every number of rows for one weight, with the float64 result."""
    numbers = torch.randint(-8, 8, (n, k), dtype=torch.int8, device="cuda")
    scales = torch.rand(k // GROUP, n, device="cuda").bfloat16() * 0.05 + 0.01
    packed = kpkg.quantized.pack_int4(numbers)
    dense = (numbers.view(n, -1, GROUP).bfloat16() * scales.t().unsqueeze(2)).view(n, k)
    unsigned = (numbers + 8).to(torch.uint8)
    of_pytorch = torch.ops.aten._convert_weight_to_int4pack((unsigned[:, ::2] << 4 | unsigned[:, 1::2]).contiguous(), 8)
    with_zeros = torch.stack([scales, torch.zeros_like(scales)], 2).contiguous()
    for rows in ROWS:
        x = torch.randn(rows, k, device="cuda").bfloat16()
        calls = {
            "kpkg": lambda x=x: op(x, packed, scales),
            "cublas": lambda x=x: x @ dense.t(),
        }
        if rows <= MOST_ROWS_OF_PYTORCH:
            calls["int4pack"] = lambda x=x: torch.ops.aten._weight_int4pack_mm(x, of_pytorch, GROUP, with_zeros)
        yield rows, calls, x.double() @ dense.double().t()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    op = kpkg.load(options.package).int4_linear
    rows: list[dict[str, Any]] = []
    for n, k in WEIGHTS:
        for count, calls, expected in cases(op, n, k):
            calls, refused = usable(calls)
            error = ((calls["kpkg"]().double() - expected).norm() / expected.norm()).item()
            us = times(calls, ROUNDS, is_ahead=True)
            row: dict[str, Any] = {"rows": count, "n": n, "k": k, "error": error, "is_right": error < TOLERANCE}
            row |= {"us": us, "ratio": round(min(us[name] for name in us if name != "kpkg") / us["kpkg"], 3)}
            rows.append(row | ({"refused": refused} if refused else {}))
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
