"""Tests kernels that load coordinates and bounds from memory, and kernels whose blocks update the same elements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import kpkg
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("KPKG_BUILD_DIR", "build")
SOURCE = """
@kernel
def add_rows(x: Tensor[float32, 2], at: Tensor[int64, 1], mut y: Tensor[float32, 2], mut seen: Tensor[int32, 1]):
    var i = at.tile[16](block_idx.x).load(fill=-1)
    var column = iota[64]().reshape(1, 64)
    y.atomic_add(i.reshape(16, 1), column, x.tile[16, 64](block_idx.x, 0).load(), mask=column < x.shape[1])
    seen.atomic_max(i, (block_idx.x * 16 + iota[16]()).cast[int32]())


@register.op("t::add_rows")
def added(mut y: Tensor, mut seen: Tensor, x: Tensor, at: Tensor):
    launch add_rows(x, at, y, seen, grid=ceildiv(x.shape[0], 16))


@kernel
def add_tiles(x: Tensor[float32, 2], mut y: Tensor[float32, 2]):
    y.window[16, 64](block_idx.x % 3 * 5 - 2, 3).add(x.tile[16, 64](block_idx.x, 0).load())


@register.op("t::add_tiles")
def added_tiles(mut y: Tensor, x: Tensor):
    launch add_tiles(x, y, grid=ceildiv(x.shape[0], 16))


@kernel
def read_pages(cache: Tensor[float32, 3], pages: Tensor[int32, 2], lengths: Tensor[int32, 1],
               mut y: Tensor[float32, 2]):
    var sum = zeros[float32](1, 32)
    var left = lengths[block_idx.x]
    var n = 0
    while left > 0:
        var page = cache[pages[block_idx.x, n]]
        sum += page[:left].tile[8, 32](0, 0).load().sum(axis=0)
        left -= 8
        n += 1
    y.tile[1, 32](block_idx.x, 0).store(sum)


@register.op("t::read_pages")
def pages_read(cache: Tensor, pages: Tensor, lengths: Tensor) raises -> Tensor:
    var y = empty(pages.shape[0], cache.shape[2], dtype=float32)
    launch read_pages(cache, pages, lengths, y, grid=pages.shape[0])
    return y
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    (folder / "memory.k").write_text(SOURCE)
    command = [BUILD / "bin" / "kpkg", "build", folder / "memory.k", "-o", folder / "memory.kpkg", "--target", "native"]
    subprocess.run(command, check=True)
    return folder / "memory.kpkg"


def test_every_update_counts(package: Path) -> None:
    ops = kpkg.load(package)
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(-8, 8, (5000, 50), generator=generator).float()  # sums are exact in any order
    at = torch.randint(-1, 8, (5000,), generator=generator)  # -1 is outside
    y, seen = torch.zeros(7, 50), torch.full((7,), -1, dtype=torch.int32)
    ops.add_rows(y, seen, x, at)
    inside = (at >= 0) & (at < 7)
    assert torch.equal(y, torch.zeros(7, 50).index_add_(0, at[inside], x[inside]))
    assert seen.tolist() == [int((at == row).nonzero().max()) for row in range(7)]


def test_tiles_are_added(package: Path) -> None:
    x = torch.randint(-8, 8, (5000, 70), generator=torch.Generator().manual_seed(1)).float()
    y, expected = torch.ones(20, 60), torch.ones(40, 80)  # tiles reach beyond y on three sides
    kpkg.load(package).add_tiles(y, x)
    padded = torch.nn.functional.pad(x, (0, 0, 0, -5000 % 16))[:, :64]
    for block in range(len(padded) // 16):
        first = block % 3 * 5
        expected[first : first + 16, 3:67] += padded[16 * block : 16 * block + 16]
    assert torch.equal(y, expected[2:22, :60])


def test_pages(package: Path) -> None:
    ops = kpkg.load(package)
    cache = torch.randn(9, 8, 32)
    pages = torch.tensor([[3, 1, 8], [0, 0, 0], [5, 99, -1]], dtype=torch.int32)
    lengths = torch.tensor([19, 0, 24], dtype=torch.int32)
    expected = torch.stack([cache[[3, 1, 8]].reshape(24, 32)[:19].sum(0), torch.zeros(32), cache[5].sum(0)])
    torch.testing.assert_close(ops.read_pages(cache, pages, lengths), expected)


def test_sums_of_floats_in_any_order_are_not_called_deterministic(package: Path) -> None:
    manifest = json.loads(
        subprocess.run(
            [BUILD / "bin" / "kpkg", "info", "--json", package], check=True, capture_output=True, text=True
        ).stdout
    )
    flags = {instance["symbol"].split("__")[0]: instance["flags"] for instance in manifest["instances"]}
    assert flags == {"add_rows": [], "add_tiles": [], "read_pages": ["deterministic"]}
