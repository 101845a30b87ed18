"""Times sparse products of a package on a GPU against dense cuBLAS products, and 3x3 convolutions against cuDNN.

Weights are 4096 x 4096 and inputs have 256 rows. Weights are pruned, have a quarter of their blocks, or are 2:4 sparse:

    test/device/sparse.py --package sparse.kpkg --out sparse.json

The specs check correctness (test/device/run.py); this script compares the timed calls with the dense product. Both are
timed interleaved, with L2 flushed and the host ahead of the GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
from pathlib import Path
from typing import Any

import torch
from timing import Calls, times
from torch.nn.functional import conv2d, linear


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def error_of(found: torch.Tensor, reference: torch.Tensor) -> float:
    return float((found.double() - reference).norm() / reference.norm())


class Bench:
    """Compares sparse products with the dense ones, and records their times."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.found: list[dict[str, Any]] = []

    def record(
        self, what: str, density: float, size: dict[str, Any], calls: Calls, errors: list[float], allowed: float
    ) -> None:
        us = times(calls, self.rounds, is_ahead=True)
        ratio, (error, theirs) = us["dense"] / us["kpkg"], errors
        line = {"what": what, **size, "density": density, "error": error, "dense_error": theirs}
        self.found.append(line | {"us": us, "ratio": ratio})
        is_right = error <= 1.1 * theirs + allowed
        print(what, *size.values(), us, f"{ratio:.2f} of dense", "" if is_right else "WRONG", flush=True)

    def measure(self, what: str, weight: torch.Tensor, rows: int, **how: Any) -> None:
        from kpkg import sparse

        x = torch.randn(rows, weight.shape[1], device="cuda").to(weight.dtype)
        packed = sparse.pack(weight, **how)
        calls: Calls = {"kpkg": lambda: sparse.linear(x, packed), "dense": lambda: linear(x, weight)}
        reference = linear(x.double(), weight.double())
        errors = [error_of(call(), reference) for call in calls.values()]
        self.record(what, packed.density, {"rows": rows}, calls, errors, 1e-7)

    def measure_windows(self, what: str, weight: torch.Tensor, images: int, size: int, **how: Any) -> None:
        from kpkg import sparse

        x = torch.randn(images, weight.shape[1], size, size, device="cuda").to(weight.dtype)
        x = x.contiguous(memory_format=torch.channels_last)
        packed, dense = sparse.pack(weight, **how), weight.contiguous(memory_format=torch.channels_last)
        calls: Calls = {
            "kpkg": lambda: sparse.conv2d(x, packed, padding=1),
            "dense": lambda: conv2d(x, dense, padding=1),
        }
        reference = conv2d(x[:1].double(), weight.double(), padding=1)
        errors = [error_of(call()[:1], reference) for call in calls.values()]
        self.record(what, packed.density, {"images": [images, size]}, calls, errors, 1e-4)


def bench_convolutions(bench: Bench, images: int, channels: int, size: int) -> None:
    shape = (channels, channels, 3, 3)
    weight = torch.randn(shape, device="cuda")
    for density in (0.1, 0.05, 0.02):
        keep = torch.rand(shape, device="cuda") < density
        bench.measure_windows(
            f"3x3 elements {density}, {channels} channels",
            (weight * keep).bfloat16(),
            images,
            size,
            format="elements",
        )
    for block in (64, 128):
        keep = torch.rand(channels // block, channels // block, 3, 3, device="cuda") < 0.25
        keep = keep.repeat_interleave(block, 0).repeat_interleave(block, 1)
        bench.measure_windows(
            f"3x3 blocks of {block}, {channels} channels",
            (weight * keep).bfloat16(),
            images,
            size,
            format="blocks",
            block=block,
        )
    order = torch.rand(channels, channels // 4, 4, 3, 3, device="cuda").argsort(2)
    half = weight.view(channels, channels // 4, 4, 3, 3).scatter(2, order[:, :, :2], 0.0).view(shape)
    bench.measure_windows(f"3x3 2:4, {channels} channels", half.bfloat16(), images, size, format="2:4")


def bench_products(bench: Bench, dtype: torch.dtype) -> None:
    name = str(dtype)[6:]
    for density in (0.1, 0.05, 0.02):
        weight = torch.randn(4096, 4096, device="cuda") * (torch.rand(4096, 4096, device="cuda") < density)
        for rows in (16, 256):
            bench.measure(f"{name} elements {density}", weight.to(dtype), rows, format="elements")
    for n, k, rows in ((4096, 4096, 256), (4096, 4096, 4096), (8192, 8192, 8192)):
        order = torch.rand(n, k // 4, 4, device="cuda").argsort(2)
        weight = torch.randn(n, k // 4, 4, device="cuda").scatter(2, order[:, :, :2], 0.0).view(n, k)
        bench.measure(f"{name} 2:4, {n} x {k}", weight.to(dtype), rows, format="2:4")
    for size in (4096, 8192):
        for block in (64, 128):
            keep = torch.rand(size // block, size // block, device="cuda") < 0.25
            weight = torch.randn(size, size, device="cuda")
            weight *= keep.repeat_interleave(block, 0).repeat_interleave(block, 1)
            bench.measure(
                f"{name} blocks of {block}, {size} x {size}", weight.to(dtype), size, format="blocks", block=block
            )


def main() -> int:
    options = arguments()
    os.environ["KPKG_FALLBACK"] = "strict"
    os.environ["KPKG_PATH"] = options.package
    torch.backends.cudnn.benchmark = True
    bench = Bench(options.rounds)
    for images, channels, size in ((32, 256, 56), (32, 512, 28)):
        bench_convolutions(bench, images, channels, size)
    for dtype in (torch.bfloat16, torch.float16):
        bench_products(bench, dtype)
    if options.out:
        about = {
            "date": str(datetime.date.today()),
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "driver": os.environ.get("KPKG_DRIVER", ""),
        }
        options.out.write_text(json.dumps({**about, "rows": bench.found}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
