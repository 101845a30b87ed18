"""Specs of products with the weights of GGUF files.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: Columns and bytes of a block.
FORMATS = {"Q8_0": (32, 34), "Q4_K": (256, 144), "Q6_K": (256, 210)}
#: n, blocks, rows of the input
SIZES = [(1, 1, 1), (8, 4, 1), (9, 5, 2), (37, 3, 4), (130, 2, 5), (66, 17, 3), (20, 1, 70), (129, 3, 131)]


def half(blocks: Tensor, at: int) -> Tensor:
    """Reads a float16 of each block, bit by bit."""
    bits = blocks[:, at] | blocks[:, at + 1] << 8
    exponent, mantissa = bits >> 10 & 31, (bits & 1023).double()
    size = torch.where(exponent == 0, mantissa / 1024, 1 + mantissa / 1024) * 2.0 ** (exponent.clamp(min=1) - 15)
    return torch.where(bits >> 15 == 1, -size, size)


def signed(byte: Tensor) -> Tensor:
    return torch.where(byte > 127, byte - 256, byte)


def of_q8_0(blocks: Tensor, column: int) -> Tensor:
    return half(blocks, 0) * signed(blocks[:, 2 + column])


def of_q4_k(blocks: Tensor, column: int) -> Tensor:
    part = column // 32
    if part < 4:
        scale, least = blocks[:, 4 + part] % 64, blocks[:, 8 + part] % 64
    else:
        both = blocks[:, 8 + part]
        scale = both % 16 + blocks[:, part] // 64 * 16
        least = both // 16 + blocks[:, 4 + part] // 64 * 16
    byte = blocks[:, 16 + column // 64 * 32 + column % 32]
    number = byte // 16 if part % 2 else byte % 16
    return half(blocks, 0) * scale * number - half(blocks, 2) * least


def of_q6_k(blocks: Tensor, column: int) -> Tensor:
    piece, within = divmod(column, 128)
    byte = blocks[:, 64 * piece + within % 64]
    low = byte // 16 if within >= 64 else byte % 16
    high = blocks[:, 128 + 32 * piece + within % 32] // 4 ** (within // 32) % 4
    return half(blocks, 208) * signed(blocks[:, 192 + column // 16]) * (low + 16 * high - 32)


NUMBERS = {"Q8_0": of_q8_0, "Q4_K": of_q4_k, "Q6_K": of_q6_k}


def dense_weight(weight: Tensor, type: str) -> Tensor:
    """Returns the numbers in float64, column by column of the blocks."""
    columns, size = FORMATS[type]
    blocks = weight.reshape(-1, size).long()
    numbers = torch.stack([NUMBERS[type](blocks, column) for column in range(columns)], 1)
    return numbers.reshape(*weight.shape[:-1], weight.shape[-1] // size * columns)


def gguf_dequantize(weight: Tensor, type: str, dtype: torch.dtype) -> Tensor:
    return dense_weight(weight, type)


def gguf_linear(input: Tensor, weight: Tensor, type: str, bias: Tensor | None = None) -> Tensor:
    return torch.nn.functional.linear(input, dense_weight(weight, type).to(input.dtype), bias)


def magnitude(input: Tensor, weight: Tensor, type: str, bias: Tensor | None = None) -> Tensor:
    sizes = torch.nn.functional.linear(input.abs(), dense_weight(weight, type).abs())
    return sizes if bias is None else sizes + bias.abs()


def packed(shape: tuple[int, ...], type: str, generator: torch.Generator) -> Tensor:
    """Returns blocks with any numbers, and float16 scales of weights of layers."""
    size = FORMATS[type][1]
    blocks = torch.randint(0, 256, (*shape, size), generator=generator, device=generator.device, dtype=torch.uint8)
    scales = {"Q8_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}[type]
    for at in scales:
        scale = normal(shape, torch.float16, generator) * 2.0**-6
        blocks[..., at : at + 2] = scale.unsqueeze(-1).view(torch.uint8)
    return blocks.flatten(-2)


def linear_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    for type, (columns, size) in FORMATS.items():
        for index, (n, blocks, rows) in enumerate(SIZES):
            weight, k = packed((n, blocks), type, generator), blocks * columns
            bias = make(n) if index % 2 else None
            yield Sample((make(rows, k), weight, type, bias), label=f"{type} {n}x{k}, {rows} rows")
        weight = packed((24, 8), type, generator)
        yield Sample(
            (make(2, 2 * columns, 3).mT, weight[::2, : 2 * size], type, make(24)[::2]), label=f"{type} strided"
        )
        yield Sample((make(columns), weight[:, size : 2 * size], type), label=f"{type} a vector")
        yield Sample((make(0, columns), weight[:, :size], type), label=f"{type} no rows")
        yield Sample((make(3, columns), weight[:0, :size], type), label=f"{type} no results")


def dequantize_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for type, (_, size) in FORMATS.items():
        for shape in ((1, 1), (9, 5), (3, 5, 17), (70, 2), (4,), (0, 3)):
            yield Sample((packed(shape, type, generator), type, dtype), label=f"{type} {shape}")
        weight = packed((12, 7), type, generator)
        yield Sample((weight[::3, size : 5 * size], type, dtype), label=f"{type} strided")


def timed(rows: int) -> dict[str, object]:
    return {
        "benchmarks": lambda generator: {
            f"{rows} rows, 1024x1024, {type}": Sample(
                (normal((rows, 1024), torch.float32, generator), packed((1024, 1024 // columns), type, generator), type)
            )
            for type, (columns, _) in FORMATS.items()
        }
    }


SPECS = [
    OpSpec("kpkg::gguf_dequantize", gguf_dequantize, dequantize_samples, dtypes=FLOATS, numpy=False),
    OpSpec(
        "kpkg::gguf_linear",
        gguf_linear,
        linear_samples,
        dtypes=FLOATS,
        magnitude=magnitude,
        numpy=False,
        rounds_between=True,
        **timed(1),
        eager=gguf_linear,
    ),
]
