"""Unpacks sparse weights to dense weights with PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

WORD = 32
STEP = 128
LISTED = 256


def from_elements(masks: Tensor, starts: Tensor, values: Tensor, k: int) -> Tensor:
    """Returns the weight [n, k] of kpkg::sparse_linear."""
    bits = (masks.unsqueeze(2) >> torch.arange(WORD, device=masks.device)) & 1
    places = starts.unsqueeze(2) + bits.cumsum(2) - bits
    padded = torch.cat([values, values.new_zeros(1)])
    words = torch.where((bits != 0) & (places >= 0), padded[places.clamp(0, len(values))], padded[-1])
    return words.permute(1, 0, 2).reshape(masks.shape[1], -1)[:, :k].contiguous()


def from_blocks(crow: Tensor, col: Tensor, values: Tensor, k: int) -> Tensor:
    """Returns the weight [n, k] of kpkg::block_sparse_linear."""
    size, rows = values.shape[1], len(crow) - 1
    blocks = values.new_zeros(rows, k // size, size, size)
    places = torch.arange(rows, device=crow.device).repeat_interleave(crow.diff())
    blocks = blocks.index_put((places, col.long()), values, accumulate=True)
    return blocks.transpose(1, 2).reshape(rows * size, k)


def from_compressed(crow: Tensor, col: Tensor, values: Tensor, k: int) -> Tensor:
    """Returns the weight [n, k] of kpkg::compressed_linear."""
    rows = torch.arange(len(crow) - 1, device=crow.device).repeat_interleave(crow.diff())
    return values.new_zeros(len(crow) - 1, k).index_put((rows, col.long()), values, accumulate=True)


def from_halves(values: Tensor, positions: Tensor) -> Tensor:
    """Returns the weight [n, k] of kpkg::half_sparse_linear."""
    n, kept = values.shape
    blocks = positions.view(*positions.shape[:2], 4, 8, 4, 2, 2).permute(0, 2, 6, 3, 1, 5, 4)
    words = blocks.reshape(positions.shape[0] * 64, positions.shape[1] * 8)[:n].int()
    places = ((words.unsqueeze(2) >> torch.arange(0, 16, 2, device=words.device)) & 3).flatten(1)[:, :kept]
    groups = values.new_zeros(n, kept // 2, 4)
    return groups.scatter_add(2, places.reshape(n, kept // 2, 2).long(), values.reshape(n, kept // 2, 2)).reshape(
        n, 2 * kept
    )


def window_columns(columns: Tensor, size: Sequence[int], channels: int) -> Tensor:
    """Converts `columns` of kpkg::half_sparse_conv2d to those of kpkg::half_sparse_linear, for `channels` per tap."""
    line, tap, channel = columns.unbind()
    k = size[0] * size[1] * channels
    behind = ((line * size[1] + tap) * channels + channel).where((channel >= 0) & (channel < channels), -1)
    return torch.cat([torch.arange(k, dtype=columns.dtype, device=columns.device), behind])


def with_rest(values: Tensor, positions: Tensor, columns: Tensor, starts: Tensor, k: int) -> Tensor:
    """Returns the weight [n, k] of kpkg::half_sparse_linear with further columns behind its own."""
    matrix, own = from_halves(values, positions), -(-k // STEP) * STEP
    n = len(matrix)

    def known(numbers: Tensor) -> Tensor:
        return (numbers >= 0) & (numbers < k)

    first = columns[:own].long()
    weight = (
        matrix.new_zeros(n, k).index_add(1, first.where(known(first), 0), matrix[:, :own].where(known(first), 0))
        if k
        else matrix.new_zeros(n, 0)
    )
    rest = matrix[:, own:]
    if rest.shape[1] == 0 or k == 0:
        return weight
    ends = own + STEP * starts.long()
    place = ends[:-1, None] + torch.arange(rest.shape[1], device=columns.device)
    place = place.where((place < ends[1:, None]) & (place >= 0) & (place < len(columns)), 0)
    numbers = columns[place].long().where(place >= own, -1).repeat_interleave(LISTED, 0)[:n]
    return weight.scatter_add(1, numbers.where(known(numbers), 0), rest.where(known(numbers), 0))


def as_image_weight(matrix: Tensor, channels: int, size: Sequence[int]) -> Tensor:
    """Returns the weight [k, channels, size] of a matrix [k, taps * channels, perhaps rounded up]."""
    return matrix.view(matrix.shape[0], size[0], size[1], -1)[..., :channels].permute(0, 3, 1, 2)
