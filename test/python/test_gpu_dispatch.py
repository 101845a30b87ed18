"""Compares the convolution kernels of GPUs, compiled for this CPU, with float64.

Checks which kernels the ops launch, with which arguments, and their results.

Layers are typical of networks, with random sizes; gradients have the result's memory format. test/device/conv.py tests
the machine code, which needs a GPU. `KPKG_DISPATCH_CASES` is the number of layers (default 320), `KPKG_DISPATCH_SEED`
the first seed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import random
from collections import Counter

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from opspec import channels_last

CASES = int(os.environ.get("KPKG_DISPATCH_CASES", "320"))
SEED = int(os.environ.get("KPKG_DISPATCH_SEED", "0"))
CHUNK = 80
F = torch.nn.functional
ROUND_OFF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
#: Kernels that CPUs do not run: all must have been launched at the end.
PATHS = {
    "image_tiles", "image_tiles_first", "image_tiles_scattered", "image_points", "image_parts", "point_planes",
    "merge_rows", "widen_taps", "phase_tiles", "pack_phases",
    "place_phases", "place_planes", "fold_windows", "image_weights", "image_weight_lines",
    "point_weights", "plane_weight_parts", "window_weight_parts",
    "depthwise_strips", "depthwise_rings", "depthwise_squares", "depthwise_weight_strips",
    "depthwise_taps", "depthwise_columns",
}  # fmt: skip
launched: Counter[str] = Counter()


@pytest.fixture(scope="module")
def package(libraries):
    """Returns a package of kernels_src/conv with the GPU kernels.

    `libraries` are loaded first, so that PyTorch does not find the GPU package's ops by name.
    """
    return kpkg.load(build_for_gpus("conv"))


def layer(seed):
    """Returns dims, x, w, bias, the other arguments, and whether the gradient has the result's memory format."""
    chance = random.Random(seed)
    dims, dtype = chance.choice([1, 2, 2, 2, 3]), chance.choice(list(ROUND_OFF))
    groups, c, k, dilation = 1, chance.choice([3, 8, 16, 32, 64, 136]), chance.choice([16, 24, 64, 72, 136]), 1
    taps, stride = chance.choice([1, 1, 3, 3, 5, 7]), chance.choice([1, 1, 2])
    extents = [chance.randint(7, {1: 300, 2: 26, 3: 8}[dims]) for _ in range(dims)]
    planes = False
    if chance.random() < 0.3:
        groups, c, k, taps, dilation = (
            chance.choice([8, 19, 64, 72]),
            1,
            1,
            chance.choice([3, 3, 5]),
            chance.choice([1, 1, 2]),
        )
    elif dims == 2 and chance.random() < 0.2:  # few channels and enough pixels for the kernels of such layers
        c, extents, taps = (
            chance.choice([3, 8, 16, 32]),
            [chance.randint(50, 70), chance.choice([48, 64])],
            chance.choice([3, 5, 7]),
        )
        planes = seed % 3 == 0  # contiguous (NCHW) gradients of such results have a specialised kernel
    extents = [max(n, dilation * (taps - 1) + 1) for n in extents]
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)

    x, w, b = (
        normal(chance.randint(2, 3), groups * c, *extents),
        normal(groups * k, c, *([taps] * dims)),
        normal(groups * k),
    )
    x = channels_last(x) if chance.random() < 0.75 and not planes else x
    w = channels_last(w) if chance.random() < 0.5 and not planes else w
    tf32 = dtype == torch.float32 and chance.random() < 0.8
    return dims, x, w, b, ([stride] * dims, [taps // 2] * dims, [dilation] * dims, groups), tf32, chance.random() < 0.85


def check(package, seed):
    dims, x, w, b, rest, tf32, follows = layer(seed)
    leaves = [t.detach().requires_grad_() for t in (x, w, b)]
    with kpkg.profile_kernel() as profile:
        found = getattr(package, f"conv{dims}d")(*leaves, *rest, "", tf32)
        upstream = torch.randn_like(found) if follows else torch.randn(found.shape, dtype=found.dtype)
        results = [found, *torch.autograd.grad(found, leaves, upstream)]
    kernels = sorted({launch["instance"].partition("[")[0] for launch in profile.records["launches"]})
    launched.update(kernels)

    def exact(change):
        """Returns the float64 results for the arguments after `change`."""
        doubles = [change(t.detach().double()).requires_grad_() for t in leaves]
        out = getattr(F, f"conv{dims}d")(doubles[0], doubles[1], doubles[2], *rest)
        return [out.detach(), *torch.autograd.grad(out, doubles, change(upstream.double()))]

    for name, result, want, size in zip(
        ("result", "input", "weight", "bias"), results, exact(lambda t: t), exact(torch.abs)
    ):
        rounding = 2 * ROUND_OFF[x.dtype]
        allowed = (
            2 * (2.0**-10 * size if tf32 else 0)
            + rounding * (want.abs() + torch.finfo(x.dtype).smallest_normal)
            + 64 * 2.0**-24 * size
        )
        worst = float(((result.detach().double() - want).abs() / allowed).max())
        assert worst <= 1, (
            f"seed {seed}: conv{dims}d {tuple(x.shape)} {tuple(w.shape)} {rest} {x.dtype} {name}: {worst:.2f} of "
            f"what is allowed, by {', '.join(kernels)}"
        )


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_layers(package, first):
    for seed in range(SEED + first, SEED + min(first + CHUNK, CASES)):
        check(package, seed)


ENDS = {
    "relu": F.relu,
    "silu": F.silu,
    "hardswish": F.hardswish,
    "sigmoid": torch.sigmoid,
    "hardsigmoid": F.hardsigmoid,
    "relu6": F.relu6,
    "gelu": F.gelu,
    "none": lambda v: v,
}


@pytest.mark.parametrize("activation", ENDS)
def test_ends_of_depthwise_layers(package, activation):
    chance = random.Random(activation)
    kernels: set[str] = set()
    for seed in range(24):
        dtype, channels, dilation = (
            chance.choice(list(ROUND_OFF)),
            chance.choice([8, 24, 33, 72]),
            chance.choice([1, 1, 2]),
        )
        stride, padding, height, width = (
            chance.choice([1, 2]),
            chance.choice([0, 1, 2]),
            chance.randint(7, 20),
            chance.choice([8, 12, 36, chance.randint(7, 40)]),
        )
        follows = chance.random() < 0.75
        if seed % 6 == 0:  # few random draws use the ring kernels
            channels, dilation, stride, padding, width, follows = (
                chance.choice([8, 24, 72]),
                1,
                1,
                1,
                chance.choice([8, 12, 36]),
                True,
            )
        torch.manual_seed(seed)
        x, w, b = (
            torch.randn(shape).to(dtype)
            for shape in ((chance.randint(1, 3), channels, height, width), (channels, 1, 3, 3), (channels,))
        )
        x, b = channels_last(x) if follows else x, b if chance.random() < 0.75 else None
        rest = [stride] * 2, [padding] * 2, [dilation] * 2, channels
        z = None
        if seed % 3 == 1:
            z = torch.randn(F.conv2d(x, w, None, *rest).shape).to(dtype)
            z = channels_last(z) if seed % 2 else z
        with kpkg.profile_kernel() as profile:
            found = package.conv2d_fused(x, w, b, z, *rest, "", activation)
        kernels |= {launch["instance"] for launch in profile.records["launches"]}
        sums, size = (
            F.conv2d(*(t if t is None else change(t.double()) for t in (x, w, b)), *rest)
            for change in (lambda t: t, torch.abs)
        )
        if z is not None:
            sums, size = sums + z.double(), size + z.double().abs()
        want = ENDS[activation](sums)
        allowed = 2 * ROUND_OFF[dtype] * (want.abs() + torch.finfo(dtype).smallest_normal) + 64 * 2.0**-24 * (1 + size)
        worst = float(((found.double() - want).abs() / allowed).max())
        assert worst <= 1, (
            f"seed {seed}: {activation} of {tuple(x.shape)} {rest} {dtype}: {worst:.2f} of what is allowed, by "
            f"{', '.join(sorted(kernels))}"
        )
    wanted = [("depthwise_strips", "STRIDE=1"), ("depthwise_strips", "STRIDE=2")]
    wanted += [("depthwise_rings", "")] if activation != "gelu" else []
    for kernel, parameter in wanted:
        assert any(instance.startswith(f"{kernel}[") and parameter in instance for instance in kernels), kernel


def test_all_paths_were_taken():
    if CASES < 320 or not launched:
        pytest.skip("needs all layers of test_layers")
    assert not PATHS - launched.keys(), f"no layer took {sorted(PATHS - launched.keys())}"
