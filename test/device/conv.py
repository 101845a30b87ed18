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
import functools
import json
import math
import os
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from timing import Calls, times
from torch.nn import functional

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
#: Unit roundoff of the dtypes whose results are checked.
UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
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


@dataclass
class Case:
    """A random convolution: its input, weight and bias, and its options."""

    dims: int
    dtype: torch.dtype
    tf32: bool
    leaves: list[torch.Tensor]
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int
    keeps_format: bool  # the gradient of the result has the result's memory format, as in networks

    def __str__(self) -> str:
        x, w, _ = self.leaves
        return (
            f"conv{self.dims}d {tuple(x.shape)} {tuple(w.shape)} {self.stride} {self.padding} {self.dilation} "
            f"{self.groups} {self.dtype}"
        )


def random_case(seed: int) -> Case:
    chance = random.Random(seed)
    dims, dtype = chance.choice([1, 2, 2, 3]), chance.choice(list(UNIT))
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
    bias = torch.randn(groups * k, device="cuda").to(dtype)
    leaves = [leaf.requires_grad_() for leaf in (x, w, bias)]
    return Case(dims, dtype, tf32, leaves, stride, padding, dilation, groups, chance.random() < 0.8)


def failure_of(package: Any, seed: int, is_forward: bool) -> str:
    """Compares results of a random case with float64. Returns the first that is wrong; empty if all are right."""
    case = random_case(seed)
    how = (case.stride, case.padding, case.dilation, case.groups)
    found = getattr(package, f"conv{case.dims}d")(*case.leaves, *how, "", case.tf32)
    upstream = torch.randn_like(found) if case.keeps_format else torch.randn(found.shape, device="cuda").to(case.dtype)
    results = [found] if is_forward else [found, *torch.autograd.grad(found, case.leaves, upstream)]
    exact, sizes = (
        [out.cpu(), *(t.cpu() for t in torch.autograd.grad(out, doubles, change(upstream.double())))]
        for change, doubles in (
            (change, [change(t.detach().double()).requires_grad_() for t in case.leaves])
            for change in (lambda t: t, torch.abs)
        )
        for out in [getattr(functional, f"conv{case.dims}d")(*doubles, *how)]
    )
    for name, result, want, size in zip(("result", "input", "weight", "bias"), results, exact, sizes):
        rounding = 2.0**-10 * size if case.tf32 else 0.0  # of one factor; the hardware truncates
        allowed = (
            2 * rounding
            + 2 * UNIT[case.dtype] * want.abs()
            + 64 * (UNIT[case.dtype] if case.dtype == torch.float64 else 2.0**-24) * size
            + torch.finfo(case.dtype).smallest_normal
        )
        worst = float(((result.detach().double().cpu() - want).abs() / allowed).max()) if result.numel() else 0.0
        if not worst <= 1:
            return f"seed {seed}: {case} {name}: {worst:.2f} of what is allowed"
    return ""


class Layer:
    """A layer to time: the calls of kpkg and of cuDNN, forwards and backwards."""

    def __init__(self, package: Any, dtype: torch.dtype, layer: tuple[int, ...], is_forward: bool) -> None:
        n, c, size, k, self.taps, stride, padding, dilation, self.groups = layer
        self.is_forward, self.is_depthwise = is_forward, self.groups == c == k
        order = torch.contiguous_format if dtype == torch.float32 else torch.channels_last
        self.x = torch.randn(n, c, size, size, device="cuda").to(dtype).contiguous(memory_format=order)
        shape = (k, c // self.groups, self.taps, self.taps)
        self.w = torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=order)
        tf32 = dtype == torch.float32 and torch.backends.cudnn.allow_tf32
        rest = ([stride], [padding], [dilation], self.groups, "", tf32)
        self.forward: Calls = {
            "kpkg": lambda x=self.x, w=self.w: package.conv2d(x, w, None, *rest),
            "cudnn": lambda x=self.x, w=self.w: functional.conv2d(x, w, None, stride, padding, dilation, self.groups),
        }
        self.upstream = torch.randn_like(self.forward["cudnn"]())
        self.leaves = {
            name: [t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in (self.x, self.w)]
            for name in self.forward
        }
        self.outs = {name: call(*self.leaves[name]) for name, call in self.forward.items()}

    def gradients(self, name: str, leaves: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(self.outs[name], leaves, self.upstream, retain_graph=True)

    def error(self) -> float:
        """Returns the largest difference of the results, relative to the greatest element."""
        results = {
            name: [out, *(() if self.is_forward else self.gradients(name, self.leaves[name]))]
            for name, out in self.outs.items()
        }
        return max(
            float((one.detach().float() - other.detach().float()).abs().max() / other.detach().float().abs().max())
            for one, other in zip(results["kpkg"], results["cudnn"])
        )

    def calls(self, ways: tuple[str, ...]) -> Calls:
        calls: Calls = {}
        if "forward" in ways:
            calls |= {f"forward {name}": call for name, call in self.forward.items()}
        for name in () if self.is_forward else ("kpkg", "cudnn"):
            for which, leaf in zip(("input", "weight"), self.leaves[name]):
                calls[f"{which} {name}"] = functools.partial(self.gradients, name, [leaf])
        if self.is_depthwise:
            elements = (self.x.numel() + self.upstream.numel()) // 2
            copied = torch.empty(elements, dtype=self.x.dtype, device="cuda")
            calls["copy"] = functools.partial(torch.empty_like(copied).copy_, copied)
        return calls

    def teraflops(self, microseconds: float) -> float:
        return 2e-6 * self.upstream.numel() * self.w.shape[1] * self.taps**2 / microseconds


def time_layers(
    package: Any, options: argparse.Namespace, ways: tuple[str, ...], failures: list[str]
) -> list[dict[str, Any]]:
    """Times the layers, and adds those whose results differ from cuDNN's to the failures."""
    rows: list[dict[str, Any]] = []
    begin = time.monotonic()
    for dtype_name in options.dtype or ["bfloat16", "float16", "float32"]:
        for shape in LAYERS[options.first_layer : options.first_layer + options.layers]:
            if time.monotonic() - begin > options.seconds:
                break
            layer = Layer(package, getattr(torch, dtype_name), shape, options.forward)
            error = layer.error()
            if not error <= MOST_DIFFERENCE:
                failures.append(
                    f"{dtype_name} layer {shape}: differs from cuDNN's by {error:.1e} of the greatest element"
                )
            calls = layer.calls(ways)
            for call in calls.values():
                call()
            us = times(calls, options.rounds, is_ahead=not options.with_host)
            teraflops = {name: layer.teraflops(value) for name, value in us.items() if name != "copy"}
            rows.append({"dtype": dtype_name, "layer": list(shape), "error": error, "us": us, "teraflops": teraflops})
            n, c, size, k, taps, stride, _, _, groups = shape
            print(
                dtype_name,
                f"{n},{c},{size} to {k} by {taps} stride {stride} groups {groups} error {error:.1e}:",
                *(
                    f"{way} {teraflops[way + ' kpkg']:.1f} ({us[way + ' cudnn'] / us[way + ' kpkg']:.2f})"
                    for way in ways
                ),
                *(f"of a copy {us['copy'] / us[way + ' kpkg']:.2f}" for way in ways if "copy" in us),
                flush=True,
            )
    return rows


def geometric_means(rows: list[dict[str, Any]], ways: tuple[str, ...]) -> dict[str, float]:
    """Returns the geometric mean of cuDNN's times over kpkg's, for each dtype and way."""
    return {
        f"{dtype} {way}": math.exp(
            statistics.fmean(
                math.log(row["us"][f"{way} cudnn"] / row["us"][f"{way} kpkg"]) for row in rows if row["dtype"] == dtype
            )
        )
        for dtype in {row["dtype"] for row in rows}
        for way in ways
    }


def main() -> int:
    options = arguments()
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg

    package = kpkg.load(options.package)
    torch.backends.cudnn.benchmark = True
    seeds = range(options.seed, options.seed + options.cases)
    failures = [text for seed in seeds if (text := failure_of(package, seed, options.forward))]
    print(f"checked {options.cases}, failed {len(failures)}", *failures[:40], sep="\n  ", flush=True)

    ways: tuple[str, ...] = ("forward", "input", "weight")
    if options.forward:
        ways = ("forward",)
    elif options.backward:
        ways = ("input", "weight")
    rows = time_layers(package, options, ways, failures)
    means = geometric_means(rows, ways)
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
