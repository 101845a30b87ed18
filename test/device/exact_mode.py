"""Compares the bits of residual_tanh_gated_rmsnorm in exact_mode with PyTorch's eager expression.

    python test/device/exact_mode.py --package packages/residual.kpkg --seed 1 --out exact-mode.json

Counts the elements whose bits differ. Draws log-uniform rows and columns, in addition to fixed shapes, until
`--elements` elements of float16 and of bfloat16 were compared. Every value of both types is used as a gate. Calls run
under the strict policy; columns that have no kernel must be refused. Exits 1 if an element differs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch import Tensor

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from residual_shapes import eager  # noqa: E402

FIXED = [(512, 3072), (1024, 3072), (2048, 3072), (3256, 3072), (600, 7), (600, 100), (600, 128), (600, 8188)]
FIXED += [(600, 8192), (40, 65536), (1, 3072), (3, 16384), (12, 4096), (7, 260), (16, 130560), (1, 1), (4100, 24)]
LARGEST = 1 << 24  # elements of a drawn tensor


def shapes(draw: random.Random) -> Iterator[tuple[int, int]]:
    """Yields rows and columns."""
    yield from FIXED
    while True:
        columns = round(math.exp(draw.uniform(0, math.log(100_000))))
        columns = columns if columns < 128 else columns // 4 * 4
        yield min(round(math.exp(draw.uniform(0, math.log(20_000)))), max(LARGEST // columns, 1)), columns


def bits_differ(found: Tensor, expected: Tensor) -> int:
    """Counts elements with different bits; NaN equals NaN."""
    same = found.view(torch.int16) == expected.view(torch.int16)
    return int((~(same | (found.isnan() & expected.isnan()))).sum())


def compare(op: kpkg.Op, dtype: torch.dtype, seed: int, elements: int) -> dict[str, Any]:
    """Returns the number of compared elements, and the differing ones with their shapes."""
    draw = random.Random(seed)
    make = torch.Generator(device="cuda").manual_seed(seed)
    every = torch.arange(-(1 << 15), 1 << 15, device="cuda").to(torch.int16).view(dtype)
    compared, differing, drawn = 0, {}, 0
    for rows, columns in shapes(draw):
        x, x_res = (torch.randn((rows, columns), generator=make, device="cuda").to(dtype) for _ in range(2))
        gate = every[torch.randint(1 << 16, (columns,), generator=make, device="cuda")] if drawn % 2 else x_res[0]
        count = bits_differ(op(x, x_res, gate, 1e-6, True), eager(x, x_res, gate))
        if count:
            differing[f"{rows}x{columns}"] = count
        compared += x.numel()
        drawn += 1
        if compared >= elements and drawn >= 2 * len(FIXED):
            return {"dtype": str(dtype), "shapes": drawn, "elements": compared, "differing": differing}
    raise AssertionError("shapes never end")


def refusals(op: kpkg.Op) -> list[str]:
    """Returns the op's errors for columns and strides for which it has no kernel."""
    found = []
    wide = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16)
    for x in (wide[:, :129].contiguous(), wide.T, torch.zeros(1, 1 << 17, device="cuda", dtype=torch.bfloat16)):
        try:
            op(x, x, x[0].contiguous(), 1e-6, True)
        except kpkg.KernelError as error:
            found.append(str(error).partition("\n")[0])
        else:
            raise AssertionError(f"{tuple(x.shape)} with strides {x.stride()} was taken")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--package", required=True, help="a package of kernels_src/residual for this GPU")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--elements", type=float, default=1e9, help="to compare for each dtype")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    options = parser.parse_args()
    op = kpkg.load(options.package).residual_tanh_gated_rmsnorm
    kpkg.set_fallback_policy("strict")
    cases = [compare(op, dtype, options.seed, int(options.elements)) for dtype in (torch.float16, torch.bfloat16)]
    result = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "seed": options.seed,
        "cases": cases,
        "refused": refusals(op),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return int(any(case["differing"] for case in cases))


if __name__ == "__main__":
    sys.exit(main())
