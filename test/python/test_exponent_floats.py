"""Checks float8_e8m0fnu against PyTorch: every bit pattern in both directions, scalars, memory, and what is refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess

import kpkg
import numpy as np
import pytest
import torch
from conftest import COMMAND, load_source

SOURCE = """
comptime E = float8_e8m0fnu
comptime OTHERS = [float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2]


@kernel
@specialize(T=OTHERS)
def widen_tiles[T: DType](x: Tensor[E, 2], mut y: Tensor[T, 2]):
    y.tile[1, 64](block_idx.x, block_idx.y).store(x.tile[1, 64](block_idx.x, block_idx.y).load().cast[T]())


@kernel
@specialize(T=OTHERS)
def narrow_tiles[T: DType](x: Tensor[T, 2], mut y: Tensor[E, 2]):
    y.tile[1, 64](block_idx.x, block_idx.y).store(x.tile[1, 64](block_idx.x, block_idx.y).load().cast[E]())


@kernel
def place_tiles(x: Tensor[E, 1], a: Float8_e8m0fnu, b: Float64, mut y: Tensor[E, 2]):
    var v = x.tile[64](block_idx.x).load(fill=2.0)
    y[0].tile[64](block_idx.x).store(v)
    y[1].tile[64](block_idx.x).store(full[E](a, 64))
    y[2].tile[64](block_idx.x).store(full[E](0.75, 64))
    y[3].tile[64](block_idx.x).store(zeros[E](64))
    y[4].tile[64](block_idx.x).store(select(iota[64]() % 2 == 0, v, b.cast[E]()))
    y[5].tile[64](block_idx.x).store((v.bitcast[uint8]() + 1).bitcast[E]())
    y[6].tile[64](block_idx.x).store(concat(v[0::2], v[1::2], axis=0))
    y[7].tile[64](block_idx.x).store(v.cast[int32]().cast[E]())


@register.op("exponents::widen")
def widen(x: Tensor, dtype: DType) raises -> Tensor:
    var y = empty(x.shape, dtype=dtype)
    launch widen_tiles[T=dtype](x, y, grid=(x.shape[0], ceildiv(x.shape[1], 64)))
    return y


@register.op("exponents::narrow")
def narrow(x: Tensor) raises -> Tensor:
    var y = empty(x.shape, dtype=float8_e8m0fnu)
    launch narrow_tiles[T=x.dtype](x, y, grid=(x.shape[0], ceildiv(x.shape[1], 64)))
    return y


@register.op("exponents::places")
def places(x: Tensor, a: Float64, b: Float64) raises -> Tensor:
    var y = empty(8, x.shape[0], dtype=float8_e8m0fnu)
    launch place_tiles(x, a, b, y, grid=ceildiv(x.shape[0], 64))
    return y
"""
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.fixture(scope="module")
def library():
    return load_source("exponents", SOURCE)


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Compares bits, NaN aside."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    wide, exact = found.double(), expected.double()
    assert torch.equal(wide.isnan(), exact.isnan())
    assert torch.equal(wide.nan_to_num(7, 1e300, -1e300), exact.nan_to_num(7, 1e300, -1e300))


@pytest.mark.parametrize("dtype", (*FLOATS, torch.float8_e5m2), ids=str)
def test_every_exponent(dtype, library):
    x = torch.arange(256, dtype=torch.uint8).view(torch.float8_e8m0fnu).repeat(3).reshape(6, 128)
    same(library.widen(x, dtype), x.float().to(dtype))
    same(library.widen(x.t(), dtype), x.float().t().to(dtype))
    same(library.widen(x[1:, 3:100:2], dtype), x.float()[1:, 3:100:2].to(dtype))


def test_the_smallest_and_the_last_pattern(library):
    x = torch.tensor([[0, 1, 254, 255]], dtype=torch.uint8).view(torch.float8_e8m0fnu)
    for dtype in (torch.float32, torch.bfloat16):
        y = library.widen(x, dtype).double()[0]
        assert y[:3].tolist() == [2.0**-127, 2.0**-126, 2.0**127]
        assert y[3].isnan()


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2), ids=str)
def test_every_pattern_of_narrow_floats(dtype, library):
    bits = 8 * torch.empty(0, dtype=dtype).element_size()
    patterns = torch.arange(2**bits).to(torch.uint8 if bits == 8 else torch.uint16).view(dtype).reshape(4, -1)
    expected = patterns.float().to(torch.float8_e8m0fnu).view(torch.uint8)
    assert torch.equal(library.narrow(patterns).view(torch.uint8), expected)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_wide_floats(dtype, library):
    generator = torch.Generator().manual_seed(8)
    patterns = torch.randint(-(2**31), 2**31, (1 << 16,), generator=generator).int()
    near = torch.cat([torch.arange(1 << 23, 256 << 23, 1 << 22) + d for d in (-2, -1, 0, 1, 2)]).int()
    edges = torch.tensor([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]).int()
    x = torch.cat([patterns, near, edges, edges | -(2**31)]).view(torch.float32)
    x = x.to(dtype).unsqueeze(0)
    expected = x.to(torch.float8_e8m0fnu).view(torch.uint8)
    assert torch.equal(library.narrow(x).view(torch.uint8), expected)


def test_memory_scalars_and_bits(library):
    x = torch.randint(1, 200, (100,), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    y = library.places(x.view(torch.float8_e8m0fnu), -3.0, 1e-3).view(torch.uint8)
    exponent = torch.tensor([3.0, 0.75, 1e-3]).to(torch.float8_e8m0fnu).view(torch.uint8)
    padded = torch.cat([x, torch.full((28,), 128, dtype=torch.uint8)])
    assert torch.equal(y[0], x)
    assert y[1].eq(exponent[0]).all() and y[2].eq(exponent[1]).all() and y[3].eq(0).all()
    even = torch.arange(100) % 2 == 0
    assert torch.equal(y[4], torch.where(even, x, exponent[2]))
    assert torch.equal(y[5], x + 1)
    mixed = torch.cat([torch.cat([part[0::2], part[1::2]]) for part in padded.split(64)])[:100]
    assert torch.equal(y[6], mixed)
    # Integers do not hold numbers below 1, nor those of exponents above 31.
    held = (x >= 127) & (x < 127 + 31)
    assert torch.equal(y[7][held], x[held])


def test_numpy(library):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.arange(256, dtype=np.uint8).reshape(2, 128).view(ml_dtypes.float8_e8m0fnu)
    y = library.widen(x, "float32")
    np.testing.assert_array_equal(y, x.astype(np.float32))
    assert library.narrow(y).dtype == ml_dtypes.float8_e8m0fnu


def test_other_dtypes_are_refused_by_name(library):
    with pytest.raises(kpkg.KernelError, match="`x` has dtype uint8, expected float8_e8m0fnu"):
        library.widen(torch.zeros(1, 4, dtype=torch.uint8), torch.float32)


@pytest.mark.parametrize(
    "code",
    ["v + v", "v * 2.0", "v == v", "max(v, v)", "abs(v)", "isnan(v)", "exp(v)", "fma(v, v, v)", "clamp(v, v, v)", "-v"],
)
def test_arithmetic_is_refused(tmp_path, code):
    source = tmp_path / "wrong.k"
    source.write_text(
        f"@kernel\ndef k(x: Tensor[float8_e8m0fnu, 1]):\n    var v = x.tile[8](0).load()\n    var w = {code}\n"
    )
    command = [COMMAND, "build", source, "-o", tmp_path / "wrong.kpkg", "--target", "native"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "error: " in done.stderr, done.stderr
