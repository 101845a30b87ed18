"""Checks and times FP8 convolutions on a GPU.

Checks random cases against float64, then times layers against bfloat16 convolutions of kpkg and of cuDNN.

    test/device/scaled_conv.py --package conv.kpkg --out scaled_conv.json

Tensors are channels-last. L2 is flushed before each call, launches run in shuffled order, and a figure is the median of
its rounds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import times

#: images, input channels, height and width, output channels, kernel size, stride
LAYERS = [
    (8, 512, 128, 512, 3, 1), (16, 320, 64, 320, 3, 1), (256, 64, 56, 64, 3, 1), (256, 128, 28, 128, 3, 1),
    (256, 256, 14, 256, 3, 1), (256, 512, 7, 512, 3, 1),
    (256, 128, 56, 128, 3, 2), (256, 256, 28, 256, 3, 2), (256, 512, 14, 512, 3, 2), (64, 256, 14, 256, 3, 1),
    (32, 128, 28, 128, 3, 1), (256, 1024, 14, 256, 1, 1),
]  # fmt: skip


def check(package, seed: int, kinds: list[torch.dtype], results: list[torch.dtype]) -> str | None:
    chance = random.Random(seed)
    torch.manual_seed(seed)
    groups, c, k = (
        chance.choice([1, 1, 1, 2, 4]),
        chance.choice([1, 16, 33, 64, 72, 128, 144, 256]),
        chance.choice([1, 5, 16, 40, 64, 130, 200]),
    )
    taps, (stride, dilation, padding) = (
        [chance.randint(1, 4) for _ in range(2)],
        [[chance.randint(low, 2) for _ in range(2)] for low in (1, 1, 0)],
    )
    extents = [chance.randint(d * (t - 1) + 1, 30) for d, t in zip(dilation, taps)]
    kind, dtype, activation = (
        chance.choice(kinds),
        chance.choice(results),
        chance.choice(["none", "relu", "silu", "gelu"]),
    )
    x = torch.randn(chance.choice([1, 2, 5]), groups * c, *extents, device="cuda").to(kind)
    w = torch.randn(groups * k, c, *taps, device="cuda").to(kind)
    x = x.contiguous(memory_format=torch.channels_last) if chance.random() < 0.7 else x
    w = w.contiguous(memory_format=torch.channels_last) if chance.random() < 0.6 else w
    scale_x, scale_w = (
        torch.rand(1, device="cuda") + 0.5,
        torch.rand(groups * k if chance.random() < 0.5 else 1, device="cuda") + 0.5,
    )
    bias = torch.randn(groups * k, device="cuda").to(dtype) if chance.random() < 0.5 else None
    found = package.scaled_conv2d(
        x, w, scale_x, scale_w, dtype, bias, stride, padding, dilation, groups, "", activation
    )
    inputs = (
        x.double() * scale_x.double(),
        w.double() * scale_w.double().reshape(-1, 1, 1, 1),
        None if bias is None else bias.double(),
    )
    exact = F.conv2d(*inputs, stride, padding, dilation, groups)
    exact = exact if activation == "none" else getattr(F, activation)(exact)
    size = F.conv2d(*(None if t is None else t.abs() for t in inputs), stride, padding, dilation, groups)
    unit = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype]
    allowed = (
        2 * unit * exact.abs() + 1.13 * 2.0**-13 * size + 1e-6
    )  # tensor cores keep some 13 bits of a sum of 128 products
    worst = float(((found.double() - exact).abs() / allowed).max())
    return (
        None
        if worst <= 1 and found.dtype == dtype
        else (
            f"seed {seed}: {tuple(x.shape)} {tuple(w.shape)} {stride} {padding} {dilation} {groups} {kind} {dtype} "
            f"{activation}: {worst:.2f}"
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--plain", help="a package with conv2d, where it is another one")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--kind", action="append", help="float8_e4m3fn and float8_e5m2 where not given")
    parser.add_argument("--result", action="append", help="float32, float16 and bfloat16 where not given")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    torch.backends.cudnn.benchmark = True
    package = kpkg.load(options.package)
    plain = kpkg.load(options.plain) if options.plain else package
    kinds = [getattr(torch, name) for name in options.kind or ("float8_e4m3fn", "float8_e5m2")]
    results = [getattr(torch, name) for name in options.result or ("float32", "float16", "bfloat16")]
    failures = [text for seed in range(options.cases) if (text := check(package, seed, kinds, results))]
    print(f"checked {options.cases}, failed {len(failures)}", *failures[:20], sep="\n  ", flush=True)
    rows = []
    for n, c, size, k, taps, stride in LAYERS:
        x = torch.randn(n, c, size, size, device="cuda").contiguous(memory_format=torch.channels_last)
        w = torch.randn(k, c, taps, taps, device="cuda").contiguous(memory_format=torch.channels_last)
        x8, w8, one = x.to(kinds[0]), w.to(kinds[0]), torch.ones(1, device="cuda")
        x16, w16 = x.bfloat16(), w.bfloat16()
        rest = ([stride], [taps // 2], [1], 1)
        found = times(
            {
                "fp8": lambda: package.scaled_conv2d(x8, w8, one, one, torch.bfloat16, None, *rest),
                "bfloat16": lambda: plain.conv2d(x16, w16, None, *rest),
                "cudnn bfloat16": lambda: F.conv2d(x16, w16, None, stride, taps // 2),
            },
            options.rounds,
        )
        work = 2 * n * (-(-size // stride)) ** 2 * k * c * taps * taps
        rows.append(
            {
                "layer": [n, c, size, k, taps, stride],
                "us": found,
                "teraflops": {name: round(1e-6 * work / us, 1) for name, us in found.items()},
            }
        )
        print(
            rows[-1]["layer"],
            rows[-1]["teraflops"],
            f"{found['bfloat16'] / found['fp8']:.2f} of our bfloat16, "
            f"{found['cudnn bfloat16'] / found['fp8']:.2f} of cuDNN's",
            flush=True,
        )
    if options.out:
        options.out.write_text(
            json.dumps(
                {
                    "device": torch.cuda.get_device_name(),
                    "torch": torch.__version__,
                    "checked": options.cases,
                    "failures": failures,
                    "rows": rows,
                },
                indent=1,
            )
        )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
