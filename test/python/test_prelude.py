"""Tests functions of the prelude: lists for @specialize, random numbers and sums of segments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import load_source
from torch.testing import assert_close

SOURCE = '''
@kernel
def draw_bits(mut bits: Tensor[uint32, 2], seed: Int, offset: Int, first: Int):
    var drawn = random_bits(first + iota[64](), seed, offset)
    comptime for i in range(4):
        bits.tile[1, 64](i, 0).store(drawn[i].reshape(1, 64))


@kernel
def draw_numbers(mut numbers: Tensor[float32, 2], seed: Int):
    var bits = random_bits(block_idx.x * 1024 + iota[1024](), seed, 0)
    var one, other = normal(bits[1], bits[2])
    numbers.tile[1, 1024](0, block_idx.x).store(uniform(bits[0]).reshape(1, 1024))
    numbers.tile[1, 1024](1, block_idx.x).store(one.reshape(1, 1024))
    numbers.tile[1, 1024](2, block_idx.x).store(other.reshape(1, 1024))


@kernel
@specialize(N=powers_of_two(60, 300), STEP=multiples(3, 8))
def segment_rows[N: Int, STEP: Int](x: Tensor[float32, 2], mut y: Tensor[float32, 2]):
    """Sums that begin again at every STEP-th column, and down columns at every STEP-th row."""
    var row = block_idx.x * 8
    var columns = (iota[N]() % STEP == 0).reshape(1, N).expand(8, N)
    var rows = (iota[8]() % STEP == 0).reshape(8, 1).expand(8, N)
    var v = x.window[8, N](row, 0).load()
    y.window[8, N](row, 0).store(segment_sum(segment_sum(v, columns, 1), rows, 0))


@register.op("prelude::bits")
def bits(seed: Int, offset: Int, first: Int) -> Tensor:
    var found = empty(4, 64, dtype=uint32)
    launch draw_bits(found, seed, offset, first, grid=1)
    return found


@register.op("prelude::numbers")
def numbers(seed: Int) -> Tensor:
    var found = empty(3, 65536, dtype=float32)
    launch draw_numbers(found, seed, grid=64)
    return found


@register.op("prelude::segments")
def segments(x: Tensor, step: Int) raises -> Tensor:
    if x.rank != 2 or x.shape[1] > 256 or (step != 3 and step != 6):
        raise Error("no such rows: {}", x.shape)
    var y = empty_like(x)
    launch segment_rows[N=at_least(x.shape[1]), STEP=step](x, y, grid=ceildiv(x.shape[0], 8))
    return y
'''


@pytest.fixture(scope="module")
def prelude():
    return load_source("prelude", SOURCE)


#: Known answers of Random123 for Philox-4x32-10: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter, key):
    """Philox-4x32-10 in Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return tuple(c)


def signed(number):
    return number - (1 << 64) if number >> 63 else number


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_bits_are_those_of_random123(prelude, counter, key, expected):
    assert philox(counter, key) == expected
    seed, offset, first = (low | high << 32 for low, high in (key, counter[:2], counter[2:]))
    found = np.asarray(prelude.bits(signed(seed), signed(offset), signed(first)))
    assert tuple(int(one) for one in found[:, 0]) == expected
    for place in (1, 63):
        c2, c3 = (first + place) & 0xFFFFFFFF, (first + place) >> 32
        assert tuple(int(one) for one in found[:, place]) == philox((*counter[:2], c2, c3), key)


def test_numbers_are_curands(prelude):
    found = np.asarray(prelude.numbers(5)).astype(np.float64)
    bits = np.array([philox((0, 0, place, 0), (5, 0)) for place in range(256)], dtype=np.float64)
    unit = (bits * 2.0**-32 + 2.0**-33).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(found[0, :256], unit[:, 0], rtol=1e-6)
    radius, angle = np.sqrt(-2 * np.log(unit[:, 1])), 2 * np.pi * unit[:, 2]
    np.testing.assert_allclose(found[1, :256], radius * np.sin(angle), atol=2e-6)
    np.testing.assert_allclose(found[2, :256], radius * np.cos(angle), atol=2e-6)
    assert found[0].min() > 0 and found[0].max() <= 1
    assert abs(found[0].mean() - 0.5) < 0.01 and abs(found[1:].std() - 1) < 0.01


@pytest.mark.parametrize("shape", [(8, 64), (13, 256), (3, 100)])
@pytest.mark.parametrize("step", [3, 6])
def test_sums_begin_again(prelude, shape, step):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    expected = x.clone()
    for at in range(1, shape[1]):
        if at % step:
            expected[:, at] += expected[:, at - 1]
    for at in range(shape[0]):
        if at % 8 % step:
            expected[at] += expected[at - 1]
    assert_close(prelude.segments(x.float(), step), expected.float(), atol=1e-5, rtol=1e-5)
