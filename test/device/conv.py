"""Checks and times the convolutions of a package on a GPU.

Checks random cases against float64, then times layers against PyTorch with cuDNN's own autotuning.

    test/device/conv.py --package conv.kpkg --out conv.json

Needs PyTorch with CUDA and the Python package `kpkg`; compiles nothing. The timed calls take bfloat16 and float16
tensors in channels-last format and float32 tensors in PyTorch's default format. L2 is flushed before each call,
launches run in shuffled order, and a figure is the median of its rounds. The GPU sleeps before each call so that the
host runs ahead of it; host time counts only with `--with-host`. Depthwise layers are also compared with a copy of as
many bytes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import time
from pathlib import Path

# images, input channels, height and width, output channels, kernel size, stride, padding, dilation, groups
LAYERS = [
    (16, 320, 64, 320, 3, 1, 1, 1, 1),
    (8, 512, 128, 512, 3, 1, 1, 1, 1),
    (64, 256, 14, 256, 3, 1, 1, 1, 1),
    (64, 128, 28, 128, 3, 1, 1, 1, 1),
    (64, 512, 7, 512, 3, 1, 1, 1, 1),
    (64, 256, 56, 512, 1, 2, 0, 1, 1),
    (64, 64, 56, 64, 3, 1, 1, 1, 1),
    (64, 64, 56, 256, 1, 1, 0, 1, 1),
    (64, 1024, 14, 256, 1, 1, 0, 1, 1),
    (64, 3, 224, 64, 7, 2, 3, 1, 1),
    (32, 128, 56, 128, 3, 2, 1, 1, 1),
    (32, 128, 32, 128, 5, 1, 2, 1, 1),
    (32, 128, 32, 128, 3, 1, 2, 2, 1),
    (64, 256, 28, 256, 3, 1, 1, 1, 256),
    (64, 32, 56, 32, 3, 1, 1, 1, 1),
    (64, 16, 112, 16, 3, 1, 1, 1, 1),
    (64, 256, 28, 256, 3, 2, 1, 1, 256),
    (64, 256, 56, 64, 1, 1, 0, 1, 1),
    (64, 96, 112, 96, 3, 2, 1, 1, 96),
    (64, 144, 56, 144, 3, 1, 1, 1, 144),
    (64, 144, 56, 144, 3, 2, 1, 1, 144),
    (64, 512, 14, 512, 3, 1, 1, 1, 512),
]
#: Input channels, height and width, output channels, kernel size, stride of the distinct layers of ResNet-50. They are
#: timed at batch sizes 32 and 256.
RESNET50 = [
    (3, 224, 64, 7, 2),
    (64, 56, 64, 1, 1),
    (64, 56, 64, 3, 1),
    (64, 56, 256, 1, 1),
    (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1),
    (128, 56, 128, 3, 2),
    (128, 28, 512, 1, 1),
    (256, 56, 512, 1, 2),
    (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1),
    (512, 28, 256, 1, 1),
    (256, 28, 256, 3, 2),
    (256, 14, 1024, 1, 1),
    (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1),
    (256, 14, 256, 3, 1),
    (1024, 14, 512, 1, 1),
    (512, 14, 512, 3, 2),
    (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2),
    (2048, 7, 512, 1, 1),
    (512, 7, 512, 3, 1),
]
LAYERS += [
    (batch, c, size, k, taps, stride, taps // 2, 1, 1) for batch in (32, 256) for c, size, k, taps, stride in RESNET50
]
#: Largest difference between two 16-bit or TF32 results, relative to the greatest element.
MOST_DIFFERENCE = 2e-2


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--cases", type=int, default=300, help="random cases that are checked")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", action="append", help="timed dtypes (default: bfloat16, float16, float32)")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="how many layers are timed")
    parser.add_argument("--first-layer", type=int, default=0, help="the first one of them")
    parser.add_argument("--forward", action="store_true", help="without gradients")
    parser.add_argument("--backward", action="store_true", help="gradients only")
    parser.add_argument("--with-host", action="store_true", help="without sleeping")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no further layer is timed after these")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> int:
    options = arguments()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg
    import torch
    from timing import times

    package = kpkg.load(options.package)
    functional = torch.nn.functional
    torch.backends.cudnn.benchmark = True
    unit = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

    def check(seed: int) -> str | None:
        chance = random.Random(seed)
        dims, dtype = chance.choice([1, 2, 2, 3]), chance.choice(list(unit))
        tf32 = dtype == torch.float32 and chance.random() < 0.7
        groups, c, k = (
            chance.choice([1, 1, 2, 16]),
            chance.choice([1, 3, 8, 17, 64, 72]),
            chance.choice([1, 2, 8, 33, 64, 136]),
        )
        taps, stride, dilation, padding = ([chance.randint(low, 3) for _ in range(dims)] for low in (1, 1, 1, 0))
        extents = [max(chance.randint(1, {1: 400, 2: 30, 3: 9}[dims]), d * (t - 1) + 1) for d, t in zip(dilation, taps)]
        is_usual = chance.random() < 0.5  # shapes of real networks, which have specialised kernels
        if is_usual:
            groups, c, k, dilation = 1, chance.choice([8, 32, 64, 136]), chance.choice([16, 64, 72, 200]), [1] * dims
            taps, stride = [chance.choice([1, 3, 3, 5])] * dims, [chance.choice([1, 2])] * dims
            padding = [taps[0] // 2] * dims
            extents = [chance.randint(7, {1: 400, 2: 30, 3: 9}[dims]) for _ in range(dims)]
        elif dims == 2 and chance.random() < 0.2:  # few channels and enough pixels for the kernels of such layers
            groups, c, extents, stride = (
                1,
                chance.choice([3, 8, 16, 32]),
                [chance.randint(60, 130), chance.choice([64, 96, 128])],
                chance.choice([[1, 1], [2, 1], [2, 2]]),
            )
        torch.manual_seed(seed)
        x = torch.randn(chance.randint(1, 3), groups * c, *extents, device="cuda").to(dtype)
        w = torch.randn(groups * k, c, *taps, device="cuda").to(dtype)
        if is_usual or chance.random() < 0.6:
            x = x.movedim(1, -1).contiguous().movedim(-1, 1)
        if chance.random() < 0.5:
            w = w.movedim(1, -1).contiguous().movedim(-1, 1)
        if not is_usual and chance.random() < 0.15:
            groups, c, k = chance.choice([8, 19, 64]), 1, 1
            x, w = (
                x[:, :1].expand(-1, groups, *extents).contiguous()
                * torch.randn(groups, *([1] * dims), device="cuda").to(dtype),
                torch.randn(groups, 1, *taps, device="cuda").to(dtype),
            )
            x = x.movedim(1, -1).contiguous().movedim(-1, 1) if chance.random() < 0.5 else x
        leaves = [
            x.requires_grad_(),
            w.requires_grad_(),
            torch.randn(groups * k, device="cuda").to(dtype).requires_grad_(),
        ]
        found = getattr(package, f"conv{dims}d")(*leaves, stride, padding, dilation, groups, "", tf32)
        upstream = (
            torch.randn_like(found) if chance.random() < 0.8 else torch.randn(found.shape, device="cuda").to(dtype)
        )  # in the result's memory format, as in networks
        results = [found] if options.forward else [found, *torch.autograd.grad(found, leaves, upstream)]
        exact, sizes = (
            [out.cpu(), *(t.cpu() for t in torch.autograd.grad(out, doubles, change(upstream.double())))]
            for change, doubles in (
                (change, [change(t.detach().double()).requires_grad_() for t in leaves])
                for change in (lambda t: t, torch.abs)
            )
            for out in [getattr(functional, f"conv{dims}d")(*doubles, stride, padding, dilation, groups)]
        )
        for name, result, want, size in zip(("result", "input", "weight", "bias"), results, exact, sizes):
            rounding = 2.0**-10 * size if tf32 else 0.0  # of one factor; the hardware truncates
            allowed = (
                2 * rounding
                + 2 * unit[dtype] * want.abs()
                + 64 * (unit[dtype] if dtype == torch.float64 else 2.0**-24) * size
                + torch.finfo(dtype).smallest_normal
            )
            worst = float(((result.detach().double().cpu() - want).abs() / allowed).max()) if result.numel() else 0.0
            if not worst <= 1:
                return (
                    f"seed {seed}: conv{dims}d {tuple(x.shape)} {tuple(w.shape)} {stride} {padding} {dilation} "
                    f"{groups} {dtype} {name}: {worst:.2f} of what is allowed"
                )
        return None

    failures = [text for seed in range(options.seed, options.seed + options.cases) if (text := check(seed))]
    print(f"checked {options.cases}, failed {len(failures)}", *failures[:40], sep="\n  ", flush=True)

    rows, begin = [], time.monotonic()
    ways = (
        ("forward",) if options.forward else ("input", "weight") if options.backward else ("forward", "input", "weight")
    )
    for dtype_name in options.dtype or ["bfloat16", "float16", "float32"]:
        dtype = getattr(torch, dtype_name)
        order = torch.contiguous_format if dtype == torch.float32 else torch.channels_last
        for n, c, size, k, taps, stride, padding, dilation, groups in LAYERS[
            options.first_layer : options.first_layer + options.layers
        ]:
            if time.monotonic() - begin > options.seconds:
                break
            x = torch.randn(n, c, size, size, device="cuda").to(dtype).contiguous(memory_format=order)
            w = torch.randn(k, c // groups, taps, taps, device="cuda").to(dtype).contiguous(memory_format=order)
            rest = (
                [stride],
                [padding],
                [dilation],
                groups,
                "",
                dtype == torch.float32 and torch.backends.cudnn.allow_tf32,
            )
            theirs = functional.conv2d(x, w, None, stride, padding, dilation, groups)
            g = torch.randn_like(theirs)
            leaves = {
                name: [
                    x.detach().clone(memory_format=torch.preserve_format).requires_grad_(),
                    w.detach().clone(memory_format=torch.preserve_format).requires_grad_(),
                ]
                for name in ("kpkg", "cudnn")
            }
            outs = {
                "kpkg": package.conv2d(*leaves["kpkg"], None, *rest),
                "cudnn": functional.conv2d(*leaves["cudnn"], None, stride, padding, dilation, groups),
            }
            results = {
                name: [out, *(() if options.forward else torch.autograd.grad(out, leaves[name], g, retain_graph=True))]
                for name, out in outs.items()
            }
            error = max(
                float((one.detach().float() - other.detach().float()).abs().max() / other.detach().float().abs().max())
                for one, other in zip(results["kpkg"], results["cudnn"])
            )
            if not error <= MOST_DIFFERENCE:
                failures.append(
                    f"{dtype_name} layer {(n, c, size, k, taps, stride, padding, dilation, groups)}: differs from "
                    f"cuDNN's by {error:.1e} of the greatest element"
                )
            del results
            calls = {}
            if "forward" in ways:
                calls["forward kpkg"] = lambda: package.conv2d(x, w, None, *rest)
                calls["forward cudnn"] = lambda: functional.conv2d(x, w, None, stride, padding, dilation, groups)
            for name in () if options.forward else ("kpkg", "cudnn"):
                for which, leaf in zip(("input", "weight"), leaves[name]):
                    calls[f"{which} {name}"] = lambda name=name, leaf=leaf: torch.autograd.grad(
                        outs[name], leaf, g, retain_graph=True
                    )
            if groups == c == k:
                copied = torch.empty((x.numel() + g.numel()) // 2, dtype=dtype, device="cuda")
                into = torch.empty_like(copied)
                calls["copy"] = lambda: into.copy_(copied)
            for call in calls.values():
                call()
            medians = times(calls, options.rounds, is_ahead=not options.with_host)
            teraflops = {
                name: 2e-6 * theirs.numel() * (c // groups) * taps * taps / value
                for name, value in medians.items()
                if name != "copy"
            }
            rows.append(
                {
                    "dtype": dtype_name,
                    "layer": [n, c, size, k, taps, stride, padding, dilation, groups],
                    "error": error,
                    "us": medians,
                    "teraflops": teraflops,
                }
            )
            print(
                dtype_name,
                f"{n},{c},{size} to {k} by {taps} stride {stride} groups {groups} error {error:.1e}:",
                *(
                    f"{which} {teraflops[which + ' kpkg']:.1f} "
                    f"({medians[which + ' cudnn'] / medians[which + ' kpkg']:.2f})"
                    for which in ways
                ),
                *(f"of a copy {medians['copy'] / medians[which + ' kpkg']:.2f}" for which in ways if "copy" in medians),
                flush=True,
            )
    means = {
        f"{dtype} {which}": math.exp(
            statistics.fmean(
                math.log(row["us"][f"{which} cudnn"] / row["us"][f"{which} kpkg"])
                for row in rows
                if row["dtype"] == dtype
            )
        )
        for dtype in {row["dtype"] for row in rows}
        for which in ways
    }
    print(
        "geometric means against cuDNN:", *(f"{name} {value:.2f}" for name, value in sorted(means.items())), sep="\n  "
    )
    print(f"failed {len(failures)}", *failures[-20:], sep="\n  ")
    if options.out:
        found = {
            "device": torch.cuda.get_device_name(),
            "checked": options.cases,
            "failures": failures,
            "means": means,
            "times": rows,
        }
        options.out.write_text(json.dumps(found, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
