"""Tests dispatch of 16-bit products for GPUs, compiled for this CPU: the kernels that they launch, and their results.

test/device measures the times behind the choices. This test fixes the choices for shapes that were slow before.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import kpkg
import pytest
import torch
from conftest import build_for_gpus

F = torch.nn.functional
CASES = 60
ROUND_OFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
ENDS = {"none": lambda v: v, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}
SPLIT = ["split_k_products", "reduce_products"]
#: Rows, columns and depth; the kernels; the tile of the first one (an index of kernels_src/gemm/tiling.k) and the
#: number of parts.
CHOICES = [
    ((129, 6144, 4096), ["few_rows"], 8),
    ((4096, 4096, 4096), ["gemm_tiles"], None),
    ((2083, 5984, 1184), ["gemm_tiles"], None),
    ((1, 4096, 4096), ["few_rows"], 16),
    ((29, 4888, 3480), ["few_rows"], 14),
    ((64, 28672, 4096), ["few_rows"], 17),
    ((80, 9080, 3704), ["few_rows"], 8),
    ((283, 6656, 6440), ["few_rows"], 3),
    ((4096, 8, 4096), ["few_rows"], 14),
    ((288, 4096, 14336), SPLIT, 3),
    ((520, 1280, 5120), ["few_rows"], 12),
    ((64, 64, 131072), SPLIT, 14),
]
#: Checked beside random shapes: split-K, and tiles of gemm_tiles with few rows in the last tile.
DIVIDED = [(65, 64, 4096), (193, 64, 4096), (129, 64, 4096), (130, 264, 8192), (193, 2056, 200), (257, 2056, 200)]
#: Dtype; rows, columns and depth; the kernels. Random calls of such products were up to 80 times slower than PyTorch's.
PARTS = ["part_products", "reduce_products"]
FEW = [
    (torch.float32, (5, 40, 600), PARTS),
    (torch.float32, (300, 7, 600), PARTS),
    (torch.float32, (70, 70, 1300), PARTS),
    (torch.float32, (20, 24, 4500), PARTS),
    (torch.float32, (1200, 1200, 24), ["gemm_tiles"]),
    (torch.float32, (33, 70, 9), ["short_sums"]),
    (torch.bfloat16, (33, 270, 9), ["short_sums"]),
    (torch.float16, (300, 11, 15), ["short_sums"]),
    (torch.bfloat16, (70, 3, 9), ["row_products"]),
    (torch.float16, (5000, 3, 40), ["row_products"]),
    (torch.bfloat16, (5000, 1, 300), ["row_products"]),
    (torch.float16, (6, 100, 2047), SPLIT),
    (torch.float16, (7, 100, 1030), SPLIT),
]
launched: Counter[str] = Counter()


@pytest.fixture(scope="module")
def package(libraries):
    """Builds a package of kernels_src/gemm with the kernels for GPUs.

    `libraries` are loaded first, so that this package, loaded last, has the public names in PyTorch.
    """
    return kpkg.load(build_for_gpus("gemm"))


def chosen(op, *args):
    """Returns the names of the instances that a call would launch, in order."""
    record = json.loads(op._native.explain(op._describe(args, {}), True))
    package = next(package for package in record["packages"] if package["runs"])
    return [launch["chosen"] for launch in package["launches"]]


@pytest.mark.parametrize("shape, kernels, tile", CHOICES, ids=lambda value: str(value))
def test_choice(package, shape, kernels, tile):
    m, n, k = shape
    instances = chosen(
        package.gemm, torch.empty(m, k, dtype=torch.bfloat16), torch.empty(n, k, dtype=torch.bfloat16).t()
    )
    assert [instance.partition("[")[0] for instance in instances] == kernels
    found = re.search(r"TILE=(\d+)", instances[0])
    assert (int(found[1]) if found else None) == tile


@pytest.mark.parametrize("dtype, shape, kernels", FEW, ids=str)
def test_few_rows_columns_and_terms(package, dtype, shape, kernels):
    m, n, k = shape
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, dtype=torch.float64, generator=generator).to(dtype) for size in ((m, k), (n, k)))
    assert [instance.partition("[")[0] for instance in chosen(package.gemm, a, b.t())] == kernels
    want = a.double() @ b.t().double()
    round_off = ROUND_OFF.get(dtype, 2.0**-24)
    assert float((package.gemm(a, b.t()).double() - want).abs().max() / want.abs().max()) <= 16 * round_off


def test_batches_of_small_matrices(package):
    a, b = (torch.randn(300, 20, 24).bfloat16(), torch.randn(300, 24, 30).bfloat16())
    assert chosen(package.gemm_batched, a, b)[0].startswith("small_tiles")
    assert chosen(package.gemm_batched, a[:, :8, :8], b[:, :8, :8])[0].startswith("small_sums")
    for rows, columns in ((20, 30), (16, 9), (5, 8)):
        x, y = a[:, :rows], b[:, :, :columns]
        c = torch.randn(300, rows, columns).bfloat16()
        want = 0.5 * (x.double() @ y.double()) + 2 * c.double()
        found = package.gemm_batched(x, y, 0.5, 2.0, c)
        assert float(((found.double() - want).abs() / (2.0**-8 * want.abs() + 1e-2)).max()) <= 1


def check(package, seed, shape=None):
    chance = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    dtype = chance.choice(list(ROUND_OFF))

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype)

    m = chance.choice([5, 16, 33, 64, 65, 96, 100, 127, 129, 130, 160, 161, 193, 257, 300])
    n = chance.choice([8, 10, 16, 64, 72, 128, 200, 256, 384])
    k = chance.choice([1, 8, 64, 72, 200, 512, 1024, 2048])
    m, n, k = shape or (m, n, k)
    a = normal(m, k) if chance.random() < 0.7 else normal(k, m).t()
    b = normal(k, n) if chance.random() < 0.5 else normal(n, k).t()
    c = normal(m, n) if chance.random() < 0.4 else None
    bias = normal(n) if chance.random() < 0.4 else None
    end = chance.choice(list(ENDS))
    with kpkg.profile_kernel() as profile:
        found = package.gemm(a, b, 0.5, 2.0, False, False, c, bias, end)
    kernels = [launch["instance"].partition("[")[0] for launch in profile.records["launches"]]
    launched.update(kernels)
    want = 0.5 * (a.double() @ b.double())
    size = 0.5 * (a.double().abs() @ b.double().abs())
    if c is not None:
        want, size = want + 2 * c.double(), size + 2 * c.double().abs()
    if bias is not None:
        want, size = want + bias.double(), size + bias.double().abs()
    want = ENDS[end](want)
    allowed = 2 * ROUND_OFF[dtype] * (want.abs() + torch.finfo(dtype).smallest_normal) + 72 * 2.0**-24 * (size + 1e-6)
    worst = float(((found.double() - want).abs() / allowed).max())
    assert worst <= 1, (
        f"seed {seed}: {m} x {n} x {k} {dtype} {end}: {worst:.2f} of what is allowed, by {', '.join(kernels)}"
    )


@pytest.mark.parametrize("first", range(0, CASES, 20))
def test_results(package, first):
    for seed in range(first, first + 20):
        check(package, seed)


@pytest.mark.parametrize("shape", DIVIDED, ids=str)
def test_divided(package, shape):
    for seed in range(2):
        check(package, seed, shape)


def test_paths(package):
    """Tests that the tests above have launched every kernel of 16-bit products."""
    assert {"few_rows", "split_k_products", "reduce_products", "gemm_tiles", "copy_blocks"} <= set(launched)
