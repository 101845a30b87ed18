"""Checks unpacked fields of words against PyTorch, for words, fields and casts of all widths.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch
from conftest import load_source

SOURCE = """
comptime WORDS = [uint8, int16, int32, int64]
comptime NUMBERS = [float16, float32, float64, bfloat16, int8, int32]


@kernel
@specialize(W=WORDS, T=NUMBERS, B=[1, 2, 4], S=[False, True])
def rows[W: DType, T: DType, B: Int, S: Bool](words: Tensor[W, 2], mut y: Tensor[T, 2]):
    var v = words.tile[1, 16](block_idx.x, block_idx.y).load().unpack[B](signed=S)
    comptime N = v.shape[1]
    comptime if T == int8:
        y.tile[1, N](block_idx.x, block_idx.y).store(v)
    else:
        y.tile[1, N](block_idx.x, block_idx.y).store(v.cast[T]())


@register.op("test_unpack::unpack")
def unpack(x: Tensor, mut y: Tensor, bits: Int, signed: Bool) raises:
    comptime for B in [1, 2, 4]:
        comptime for S in [False, True]:
            if bits == B and signed == S:
                launch rows[W=x.dtype, T=y.dtype, B=B, S=S](x, y, grid=(x.shape[0], ceildiv(x.shape[1], 16)))
"""

WORDS = {torch.uint8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
NUMBERS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int32]


@pytest.fixture(scope="module")
def unpack():
    return load_source("unpack", SOURCE).unpack


def expected(words, bits, signed):
    """Takes fields out of the bytes of words; the lowest bits come first in both."""
    fields = words.view(torch.uint8).long().unsqueeze(2) >> (bits * torch.arange(8 // bits)) & (2**bits - 1)
    return torch.where(fields >= 2 ** (bits - 1), fields - signed * 2**bits, fields).flatten(1)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("word", WORDS, ids=str)
def test_fields_of_words(word, bits, signed, unpack):
    generator = torch.Generator().manual_seed(bits)
    words = torch.randint(0, 256, (3, 37 * WORDS[word] // 8), dtype=torch.uint8, generator=generator).view(word)
    numbers = expected(words, bits, signed)
    for dtype in NUMBERS:
        result = torch.full((3, 37 * WORDS[word] // bits), 77, dtype=dtype)
        unpack(words, result, bits, signed)
        assert torch.equal(result, numbers.to(dtype)), dtype
