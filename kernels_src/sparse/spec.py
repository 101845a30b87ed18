"""Specs of products with sparse weights.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor

WORD = 32
#: Position bits of the six pairs of a group of four.
PAIRS = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
#: Results, depth, rows of the input and the share of elements that are kept.
SIZES = [
    (40, 100, 3, 0.1),
    (130, 64, 70, 0.05),
    (64, 300, 129, 0.3),
    (5, 31, 260, 1.0),
    (129, 1030, 300, 0.02),
    (8, 64, 2, 0.0),
]


def kept_columns(keep: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the row starts and the columns of a matrix of flags for kept elements."""
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)])
    return crow.int(), keep.nonzero()[:, 1].int()


def kept_bits(keep: Tensor) -> tuple[Tensor, Tensor, int]:
    """Returns masks and starts of values for kept elements `[words, n, WORD]`, and the number of these."""
    count = keep.sum(2).flatten()
    starts = (count.cumsum(0) - count).view(keep.shape[:2]).int()
    masks = (keep.long() << torch.arange(WORD, device=keep.device)).sum(2)
    return (masks - (masks >> 31 << 32)).int(), starts, int(count.sum())


def random_pairs(n: int, steps: int, generator: torch.Generator) -> Tensor:
    """Returns positions for n rows and `steps` steps of 128 columns. Every pair occurs, in any order over a block."""
    pairs = torch.tensor(PAIRS, device=generator.device)
    words = pairs[torch.randint(6, (-(-n // 64), steps, 512, 4), generator=generator, device=generator.device)]
    words = (words << torch.arange(0, 16, 4, device=words.device)).sum(3)
    return (words - (words >> 15 << 16)).to(torch.int16)


def from_blocks(k: int, crow: Tensor, col: Tensor, values: Tensor) -> Tensor:
    size = values.shape[1]
    dense = values.new_zeros(len(crow) - 1, k // size, size, size)
    for row in range(len(crow) - 1):
        for i in range(int(crow[row]), int(crow[row + 1])):
            dense[row, int(col[i])] += values[i]
    return dense.transpose(1, 2).reshape((len(crow) - 1) * size, k)


def block_reference(
    input: Tensor, crow: Tensor, col: Tensor, values: Tensor, bias: Tensor | None = None, moves: Tensor | None = None
) -> Tensor:
    return torch.nn.functional.linear(input, from_blocks(input.shape[-1], crow, col, values), bias)


def block_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def kept(rows: int, columns: int, size: int, share: float) -> tuple[Tensor, Tensor, Tensor]:
        keep = torch.rand(rows, columns, generator=generator, device=generator.device) < share
        return *kept_columns(keep), make(int(keep.sum()), size, size)

    for i, (size, rows, columns, lines) in enumerate(
        [(16, 3, 5, 1), (32, 4, 3, 70), (64, 2, 7, 300), (128, 3, 2, 129)]
    ):
        blocks = kept(rows, columns, size, 0.5)
        yield Sample((make(lines, columns * size), *blocks), label=f"{size}")
        yield Sample(
            (make(2, columns * size, lines).mT, *blocks, make(rows * size)), label=f"{size}, strided, batch and bias"
        )
        yield Sample(
            (make(lines, columns * size), *kept(rows, columns, size, 0.0), make(rows * size)), label=f"{size}, no block"
        )
        order = torch.arange(rows - 1, -1, -1, device=generator.device)
        moves = (order - order.flip(0)).int()
        yield Sample(
            (make(lines, columns * size), *blocks, make(rows * size), moves), label=f"{size}, the last rows first"
        )
    yield Sample((make(0, 64), *kept(2, 2, 32, 0.5)), label="no rows")
    yield Sample((make(5, 64), *kept(0, 2, 32, 0.5)), label="no results")


def from_elements(k: int, masks: Tensor, starts: Tensor, values: Tensor) -> Tensor:
    """Returns the weight `[n, k]`, element by element."""
    dense = values.new_zeros(masks.shape[1], masks.shape[0] * WORD)
    for word in range(masks.shape[0]):
        for row in range(masks.shape[1]):
            at = int(starts[word, row])
            for bit in range(WORD):
                if int(masks[word, row]) >> bit & 1:
                    dense[row, word * WORD + bit] = values[at]
                    at += 1
    return dense[:, :k]


def element_reference(
    input: Tensor, masks: Tensor, starts: Tensor, values: Tensor, bias: Tensor | None = None
) -> Tensor:
    return torch.nn.functional.linear(input, from_elements(input.shape[-1], masks, starts, values), bias)


def matrix_samples(
    make: Callable[..., Tensor], kept: Callable[[int, int, float], tuple[Tensor, Tensor, Tensor]]
) -> Iterator[Sample]:
    """Yields samples of a product with a weight of n results and depth k, a share of which `kept(n, k, share)`
    keeps."""
    for n, k, rows, share in SIZES:
        yield Sample((make(rows, k), *kept(n, k, share)), label=f"{n}x{k}, {rows} rows")
        yield Sample((make(2, k, rows).mT, *kept(n, k, share), make(n)), label=f"{n}x{k}, strided, batch and bias")
    yield Sample((make(0, 64), *kept(20, 64, 0.1)), label="no rows")
    yield Sample((make(5, 0), *kept(20, 0, 0.1), make(20)), label="no depth")
    yield Sample((make(70), *kept(33, 70, 0.1)), label="a vector")


def element_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def kept(n: int, k: int, share: float) -> tuple[Tensor, Tensor, Tensor]:
        words = -(-k // WORD)
        keep = torch.rand(n, words * WORD, generator=generator, device=generator.device) < share
        keep[:, k:] = False
        masks, starts, count = kept_bits(keep.view(n, words, WORD).transpose(0, 1))
        return masks, starts, make(count)

    yield from matrix_samples(make, kept)


def from_halves(values: Tensor, positions: Tensor) -> Tensor:
    """Returns the weight `[n, k]`."""
    n, kept = values.shape
    row, j = torch.arange(n, device=values.device)[:, None], torch.arange(kept, device=values.device)
    thread = row % 8 * 4 + j // 8 % 4
    word = positions[row // 64, j // 64, (row // 16 % 4 * 32 + thread) * 4 + j // 32 % 2 * 2 + row // 8 % 2]
    column = j // 2 * 4 + (word.long() >> 2 * (j % 8) & 3)
    return values.new_zeros(n, 2 * kept).scatter_add_(1, column, values)


def half_matrix(
    k: int, values: Tensor, positions: Tensor, columns: Tensor | None = None, starts: Tensor | None = None
) -> Tensor:
    """Returns the weight `[n, k]`, including its further columns. `columns` also names the weight's own columns."""
    matrix = from_halves(values, positions)
    if columns is None or starts is None:
        return matrix[:, :k]
    own = -(-k // 128) * 128
    weight = matrix.new_zeros(len(matrix), k)
    for block, (first, last) in enumerate(itertools.pairwise((128 * starts).tolist())):
        rows = slice(256 * block, 256 * block + 256)
        named = torch.cat([columns[:own], columns[own + first : own + last]])[: matrix.shape[1]]
        is_column = (named >= 0) & (named < k)
        weight[rows].index_add_(1, named[is_column], matrix[rows, : len(named)][:, is_column])
    return weight


def half_reference(
    input: Tensor, values: Tensor, positions: Tensor, bias: Tensor | None = None, *behind: Tensor
) -> Tensor:
    return torch.nn.functional.linear(input, half_matrix(input.shape[-1], values, positions, *behind), bias)


def half_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def kept(n: int, k: int) -> tuple[Tensor, Tensor]:
        positions = random_pairs(n, -(-k // 128), generator)
        return make(n, k // 2), positions

    for n, k, rows in [(64, 128, 64), (40, 100, 3), (130, 256, 70), (256, 392, 129), (8, 64, 1), (300, 16, 260)]:
        yield Sample((make(rows, k), *kept(n, k)), label=f"{n}x{k}, {rows} rows")
        yield Sample((make(2, k, rows).mT, *kept(n, k), make(n)), label=f"{n}x{k}, strided, batch and bias")
    yield Sample((make(0, 64), *kept(20, 64)), label="no rows")
    yield Sample((make(5, 0), *kept(20, 0), make(20)), label="no depth")
    yield Sample((make(72), *kept(33, 72)), label="a vector")
    for n, k, rows, steps in [(64, 512, 64, [1]), (300, 31, 70, [2, 0]), (520, 700, 5, [1, 0, 3]), (40, 100, 130, [0])]:
        own = -(-k // 128)
        starts = torch.tensor([0, *steps], device=generator.device).cumsum(0).int()
        columns = torch.randint(-k, k, ((own + sum(steps)) * 128,), generator=generator, device=generator.device).int()
        packed = kept(n, (own + max(steps)) * 128)
        yield Sample(
            (make(rows, k), *packed, make(n), columns, starts), label=f"{n}x{k}, {rows} rows, {steps} steps behind"
        )
        yield Sample(
            (make(2, k, rows).mT, *packed, None, columns, starts), label=f"{n}x{k}, strided, {steps} steps behind"
        )


def as_weight(matrix: Tensor, channels: int, size: list[int]) -> Tensor:
    """Returns the weight `[k, channels, size]` of a matrix `[k, taps * channels]`. Channels of a tap may be rounded
    up."""
    return matrix.reshape(matrix.shape[0], size[0], size[1], -1)[..., :channels].permute(0, 3, 1, 2)


def windows(weight: Tensor, input: Tensor, bias: Tensor | None, how: dict[str, list[int]]) -> Tensor:
    return torch.nn.functional.conv2d(input, weight, bias, **how).contiguous(memory_format=torch.channels_last)


def element_windows(
    input: Tensor,
    masks: Tensor,
    starts: Tensor,
    values: Tensor,
    size: list[int],
    bias: Tensor | None = None,
    **how: list[int],
) -> Tensor:
    return windows(
        as_weight(from_elements(masks.shape[0] * WORD, masks, starts, values), input.shape[1], size), input, bias, how
    )


def block_windows(
    input: Tensor,
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    size: list[int],
    bias: Tensor | None = None,
    moves: Tensor | None = None,
    **how: list[int],
) -> Tensor:
    return windows(
        as_weight(from_blocks(size[0] * size[1] * input.shape[1], crow, col, values), input.shape[1], size),
        input,
        bias,
        how,
    )


def half_windows(
    input: Tensor,
    values: Tensor,
    positions: Tensor,
    size: list[int],
    bias: Tensor | None = None,
    columns: Tensor | None = None,
    starts: Tensor | None = None,
    **how: list[int],
) -> Tensor:
    channels = -(-input.shape[1] // 128) * 128
    k = size[0] * size[1] * channels
    if columns is not None:
        line, tap, channel = columns.unbind()
        behind = ((line * size[1] + tap) * channels + channel).where(channel >= 0, -1)
        columns = torch.cat([torch.arange(k, dtype=columns.dtype, device=columns.device), behind])
    matrix = half_matrix(k, values, positions, columns, starts)
    return windows(as_weight(matrix, input.shape[1], size), input, bias, how)


def magnitude(reference: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def of(*args: Any, **how: Any) -> Tensor:
        return reference(*(a.abs() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args), **how)

    return of


#: Images, channels, height, width, results, taps, and options of the windows.
WINDOWS: list[tuple[int, int, int, int, int, list[int], dict[str, list[int]]]] = [
    (2, 64, 9, 7, 64, [3, 3], {"padding": [1]}),
    (1, 32, 8, 12, 96, [3, 2], {"stride": [2, 1], "padding": [2, 0], "dilation": [1, 3]}),
    (3, 128, 5, 5, 128, [1, 1], {}),
    (2, 64, 13, 4, 192, [2, 3], {"stride": [3], "padding": [1, 2]}),
    (1, 192, 6, 20, 64, [5, 1], {"padding": [2, 0], "dilation": [2, 1]}),
    (5, 64, 1, 3, 64, [1, 3], {"padding": [0, 1]}),
]


def window_samples(
    pack: Callable[..., tuple[Tensor, ...]],
) -> Callable[[torch.dtype, torch.Generator], Iterator[Sample]]:
    """Returns samples of a convolution with a packed weight.

    `pack(make, n, taps, channels, generator)` packs a weight of n results, taps and channels.
    """

    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        def make(*shape: int) -> Tensor:
            return normal(shape, dtype, generator)

        for i, (images, channels, height, width, n, size, how) in enumerate(WINDOWS):
            x = make(images, channels, height, width)
            if i % 2 == 0:
                x = x.contiguous(memory_format=torch.channels_last)
            packed = pack(make, n, size[0] * size[1], channels, generator)
            yield Sample(
                (x, *packed, size, make(n) if i % 3 else None),
                dict(how),
                label=f"{images}x{channels}x{height}x{width} to {n}, {size}",
            )
        yield Sample((make(0, 64, 4, 4), *pack(make, 64, 9, 64, generator), [3, 3]), label="no images")

    return samples


def some_blocks(
    make: Callable[..., Tensor], n: int, taps: int, channels: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    size = 64 if channels % 64 == 0 and n % 64 == 0 else 32
    keep = torch.rand(n // size, taps * channels // size, generator=generator, device=generator.device) < 0.4
    return *kept_columns(keep), make(int(keep.sum()), size, size)


def some_elements(
    make: Callable[..., Tensor], n: int, taps: int, channels: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    words = taps * -(-channels // 64) * 2
    keep = torch.rand(n, words, WORD, generator=generator, device=generator.device) < 0.1
    masks, starts, count = kept_bits(keep.transpose(0, 1))
    return masks, starts, make(count)


def some_halves(
    make: Callable[..., Tensor], n: int, taps: int, channels: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    k = taps * -(-channels // 128) * 128
    positions = random_pairs(n, k // 128, generator)
    return make(n, k // 2), positions


def half_window_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    yield from window_samples(some_halves)(dtype, generator)
    for (images, channels, height, width, n, size, how), steps in zip(
        WINDOWS, ([1], [0], [2, 1], [1], [3], [1]), strict=True
    ):
        n += 256 * (len(steps) - 1)
        starts = torch.tensor([0, *steps], device=generator.device).cumsum(0).int()
        k = size[0] * size[1] * -(-channels // 128) * 128

        def below(end: int, first: int = 0) -> Tensor:
            return torch.randint(first, end, (128 * sum(steps),), generator=generator, device=generator.device).int()

        columns = torch.stack([below(size[0]), below(size[1]), below(channels, -channels // 4).clamp(min=-1)])

        def make(*shape: int) -> Tensor:
            return normal(shape, dtype, generator)

        values, positions = some_halves(make, n, 1, k + 128 * max(steps), generator)
        yield Sample(
            (make(images, channels, height, width), values, positions, size, make(n)),
            dict(how) | {"columns": columns, "starts": starts},
            label=f"{images}x{channels}x{height}x{width} to {n}, {size}, {steps} steps behind",
        )


HALVES = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, torch.float64)
IMAGES = (torch.float32, *HALVES)


def compressed_reference(
    input: Tensor, crow: Tensor, col: Tensor, values: Tensor, bias: Tensor | None = None
) -> Tensor:
    rows = torch.arange(len(crow) - 1, device=crow.device).repeat_interleave(crow.diff())
    dense = values.new_zeros(len(crow) - 1, input.shape[-1])
    return torch.nn.functional.linear(input, dense.index_put((rows, col.long()), values, accumulate=True), bias)


def compressed_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    def make(*shape: int) -> Tensor:
        return normal(shape, dtype, generator)

    def kept(n: int, k: int, share: float) -> tuple[Tensor, Tensor, Tensor]:
        keep = torch.rand(n, k, generator=generator, device=generator.device) < share
        return *kept_columns(keep), make(int(keep.sum()))

    yield from matrix_samples(make, kept)
    yield Sample((make(5, 64), *kept(0, 64, 0.1)), label="no results")


SPECS = [
    OpSpec(
        "kpkg::compressed_linear", compressed_reference, compressed_samples, magnitude=magnitude(compressed_reference)
    ),
    OpSpec(
        "kpkg::sparse_conv2d",
        element_windows,
        window_samples(some_elements),
        magnitude=magnitude(element_windows),
        dtypes=IMAGES,
    ),
    OpSpec(
        "kpkg::block_sparse_conv2d",
        block_windows,
        window_samples(some_blocks),
        magnitude=magnitude(block_windows),
        dtypes=IMAGES,
    ),
    OpSpec(
        "kpkg::half_sparse_conv2d",
        half_windows,
        half_window_samples,
        magnitude=magnitude(half_windows),
        dtypes=HALVES,
    ),
    OpSpec(
        "kpkg::half_sparse_linear", half_reference, half_samples, magnitude=magnitude(half_reference), dtypes=HALVES
    ),
    OpSpec(
        "kpkg::sparse_linear", element_reference, element_samples, magnitude=magnitude(element_reference), dtypes=FLOATS
    ),
    OpSpec("kpkg::block_sparse_linear", block_reference, block_samples, magnitude=magnitude(block_reference)),
]
