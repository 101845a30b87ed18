"""Checks unpacked fields of words against PyTorch, for words, fields and casts of all widths.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import subprocess

import pytest
import torch
from conftest import COMMAND, load_source

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


OF_DTYPES = """
comptime NUMBERS = [float16, float32, float64, bfloat16]


@kernel
@specialize(W=[uint8, int16, int32, int64], P=[int4, uint4, float4_e2m1fn], T=NUMBERS)
def rows[W: DType, P: DType, T: DType](words: Tensor[W, 2], mut y: Tensor[T, 2]):
    var v = words.tile[1, 16](block_idx.x, block_idx.y).load().unpack[P]()
    y.tile[1, v.shape[1]](block_idx.x, block_idx.y).store(v.cast[T]())


@register.op("test_unpack::of_dtype")
def of_dtype(x: Tensor, mut y: Tensor, dtype: String) raises:
    comptime for P in [(int4, "int4"), (uint4, "uint4"), (float4_e2m1fn, "float4_e2m1fn")]:
        if dtype == P[1]:
            launch rows[W=x.dtype, P=P[0], T=y.dtype](x, y, grid=(x.shape[0], ceildiv(x.shape[1], 16)))
"""

#: By the bits of a field.
VALUES = {
    "int4": [*range(8), *range(-8, 0)],
    "uint4": range(16),
    "float4_e2m1fn": [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0],
}


@pytest.fixture(scope="module")
def of_dtype():
    return load_source("of_dtype", OF_DTYPES).of_dtype


@pytest.mark.parametrize("packed", VALUES)
@pytest.mark.parametrize("word", WORDS, ids=str)
def test_dtypes_of_4_bits(word, packed, of_dtype):
    generator = torch.Generator().manual_seed(4)
    words = torch.randint(0, 256, (3, 37 * WORDS[word] // 8), dtype=torch.uint8, generator=generator).view(word)
    numbers = torch.tensor(VALUES[packed], dtype=torch.float64)[expected(words, 4, False)]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        result = torch.full(numbers.shape, 77, dtype=dtype)
        of_dtype(words, result, packed)
        assert torch.equal(result.view(torch.uint8), numbers.to(dtype).view(torch.uint8)), dtype


def refused(folder, text):
    """Returns the message of the compiler, which must refuse `text`."""
    source = folder / "wrong.k"
    source.write_text(text)
    command = [COMMAND, "build", source, "-o", folder / "wrong.kpkg", "--target", "native"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x.tile[8](0).load().unpack[float4_e2m1fn](signed=True)", "`signed=` of float4_e2m1fn is not supported"),
        ("x.tile[8](0).load().unpack[int8]()", "`unpack` takes 1, 2 or 4 bits, or a dtype of 4 bits, not int8"),
        ("x.tile[8](0).load().cast[int4]()", "`int4` cannot be the result of a cast: it exists only packed"),
        ("x.tile[8](0).load().bitcast[uint4]()", "`uint4` cannot be the result of a bitcast"),
        ("zeros[float4_e2m1fn](8)", "`float4_e2m1fn` cannot be the element type of a tile"),
        ("full[int4](1, 8)", "`int4` cannot be the element type of a tile"),
        ("Int4(1)", "`int4` cannot be the result of a cast"),
    ],
)
def test_packed_dtypes_elsewhere(tmp_path, code, message):
    text = f"@kernel\ndef k(x: Tensor[int32, 1], mut y: Tensor[int32, 1]):\n    var v = {code}\n"
    assert message in refused(tmp_path, text)


@pytest.mark.parametrize("argument", ["Tensor[float4_e2m1fn, 2]", "Optional[Tensor[int4, 1]]", "Tensor[UInt4, 1]"])
def test_tensors_of_packed_dtypes(tmp_path, argument):
    text = refused(tmp_path, f"@kernel\ndef k(x: {argument}, mut y: Tensor[int32, 1]):\n    pass\n")
    assert re.search(r"cannot be an element type: .*uint8 or int32.*`\.unpack\[\w+\]\(\)` \[K0530\]", text), text


def test_new_tensors_of_packed_dtypes(tmp_path):
    source = '@register.op("packed::make")\ndef make(x: Tensor) raises -> Tensor:\n    return empty(3, dtype=int4)\n'
    assert "`int4` cannot be the dtype of a tensor" in refused(tmp_path, source)
