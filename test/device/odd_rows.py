"""Measures row ops on rows whose length is not a multiple of a vector.

Compares errors and times with PyTorch's and with those of vector-sized rows; launches run in shuffled order.

    python test/device/odd_rows.py softmax.kpkg norm.kpkg cross_entropy.kpkg elementwise.kpkg reduction.kpkg
        -o odd_rows.json [--quick]

Prints one JSON object for each op, dtype and shape. It holds the error against float64 relative to PyTorch's, the bytes
to move, and the launched instances. It also holds median times in microseconds; the L2 cache is flushed before each
launch. Each odd shape has a counterpart whose rows are whole vectors, which shows the cost of odd rows.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kpkg
import torch
import torch.nn.functional as F
from timing import times
from torch import Tensor

ROWS = [
    (16384, 1000),
    (16384, 1001),
    (8192, 4096),
    (8192, 4097),
    (2048, 50264),
    (2048, 50257),
    (65536, 200),
    (65536, 197),
]
Case = tuple[Callable[..., Any], Callable[..., Any], Callable[[int, int], list[Tensor]], int]


def cases(ops: dict[str, Any]) -> dict[str, Case]:
    """Returns cases by name: kpkg's op, PyTorch's, arguments in float64, and the bytes to move.

    Arguments are functions of rows and columns. Bytes are counted in multiples of the first argument's size.
    """

    def normal(m: int, n: int) -> list[Tensor]:
        return [torch.randn(m, n, dtype=torch.double)]

    def affine(m: int, n: int) -> list[Tensor]:
        return [*normal(m, n), torch.randn(n, dtype=torch.double), torch.randn(n, dtype=torch.double)]

    def pair(m: int, n: int) -> list[Tensor]:
        return normal(m, n) + [torch.softmax(normal(m, n)[0], -1)]

    def classes(m: int, n: int) -> list[Tensor]:
        return [*normal(m, n), torch.randint(n, (m,))]

    def flat(m: int, n: int) -> list[Tensor]:
        return [normal(m, n)[0].reshape(-1)]

    return {
        "softmax": (ops["softmax"], lambda x: torch.softmax(x, -1), normal, 2),
        "softmax_backward": (
            ops["softmax_backward"],
            lambda g, y: torch._softmax_backward_data(g, y, -1, y.dtype),
            pair,
            3,
        ),
        "layer_norm": (
            lambda x, w, b: ops["layer_norm"](x, [x.shape[1]], w, b),
            lambda x, w, b: F.layer_norm(x, [x.shape[1]], w, b),
            affine,
            2,
        ),
        "cross_entropy": (ops["cross_entropy"], F.cross_entropy, classes, 1),
        "gelu": (ops["gelu"], F.gelu, flat, 2),
        "sum": (lambda x: ops["sum"](x, [1]), lambda x: x.sum(1), normal, 1),
    }


def measure(
    name: str, case: Case, dtype: torch.dtype, shape: tuple[int, int], device: str, rounds: int
) -> dict[str, Any]:
    ours, theirs, make, moves = case
    with torch.device(device):
        given = [t.to(dtype) if t.is_floating_point() else t for t in make(*shape)]
    wide = [t.double() if t.is_floating_point() else t for t in given]
    want = (
        theirs(*wide) if name != "softmax_backward" else (wide[0] - (wide[0] * wide[1]).sum(-1, keepdim=True)) * wide[1]
    )

    def error(found: Tensor) -> float:
        return float((found.double() - want).norm() / want.norm())

    with kpkg.profile_kernel() as profile:
        found = ours(*given)
    row: dict[str, Any] = {
        "op": name,
        "dtype": str(dtype).removeprefix("torch."),
        "shape": list(shape),
        "bytes": moves * given[0].nbytes,
    }
    row["instances"] = [launch["instance"] for launch in profile.records["launches"]]
    row["errors"] = {"kpkg": error(found), "torch": error(theirs(*given))}
    if device == "cuda":
        source = torch.empty(row["bytes"] // 2, dtype=torch.uint8, device=device)
        into = torch.empty_like(source)
        row["us"] = times(
            {"kpkg": lambda: ours(*given), "torch": lambda: theirs(*given), "copy": lambda: into.copy_(source)},
            rounds,
            is_ahead=True,
        )
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("packages", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    options = parser.parse_args()
    ops: dict[str, Any] = {}
    for path in options.packages:
        library = kpkg.load(path)
        library.set_fallback_policy("strict")
        ops |= {op.name.removeprefix("kpkg::"): op for op in library}
    device = "cuda" if torch.cuda.is_available() else "cpu"  # a CPU only checks errors, on fewer rows
    rows = []
    for name, case in cases(ops).items():
        for dtype in (torch.bfloat16, torch.float32):
            for m, n in ROWS:
                rows.append(
                    measure(name, case, dtype, (m if device == "cuda" else 3, n), device, 7 if options.quick else 31)
                )
                print(json.dumps(rows[-1]), flush=True)
    if options.output:
        found = {
            "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
            "torch": torch.__version__,
            "rows": rows,
        }
        options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
