"""Packs weights that are mostly zeros for the ops of sparse products.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from kpkg._sparse_formats import LISTED, STEP, WORD

_GROUP = 4
_LANES = 16  # lanes that read a line of columns, each lane _LANE of them
_LANE = STEP // _LANES
_SEARCHED = 1 << 26  # elements per step of the search for exchanges


def nonzero_blocks(matrix: Tensor, size: int) -> Tensor:
    n, k = matrix.shape
    return (matrix != 0).view(n // size, size, k // size, size).any(3).any(1)


def blocks(weight: Tensor, size: int) -> tuple[Tensor, ...]:
    """Returns crow, col, values and moves, as described at kpkg::block_sparse_linear.

    Long block rows come first, so that thread blocks end at similar times.
    """
    n, k = weight.shape
    keep = nonzero_blocks(weight, size)
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)]).int()
    values = weight.view(n // size, size, k // size, size).transpose(1, 2)[keep].contiguous()
    order = keep.sum(1).sort(descending=True, stable=True).indices
    moves = order - torch.arange(len(order), device=order.device)
    return crow, keep.nonzero()[:, 1].int(), values, moves.int()


def halves(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Returns values and positions, as described at kpkg::half_sparse_linear.

    Groups with fewer than two elements are filled with zeros, at distinct positions.
    """
    n, k = weight.shape
    groups = weight.view(n, k // _GROUP, _GROUP)
    places = (groups == 0).to(torch.uint8).sort(dim=2, stable=True).indices[:, :, :2].sort(dim=2).values
    values = groups.gather(2, places).view(n, k // 2)
    rows, steps = -(-n // 64), -(-k // STEP)
    first_two = torch.tensor([0, 1], device=weight.device).expand(rows * 64, steps * 32, 2).clone()
    first_two[:n, : k // _GROUP] = places
    words = (first_two.view(rows * 64, steps * 8, 8) << torch.arange(0, 16, 2, device=weight.device)).sum(2)
    words = (words - (words >> 15 << 16)).to(torch.int16)
    ordered = words.view(rows, 4, 2, 8, steps, 2, 4).permute(0, 4, 1, 3, 6, 5, 2)
    return values.contiguous(), ordered.reshape(rows, steps, 512).contiguous()


def halves_and_rest(weight: Tensor, reorder: bool = True) -> tuple[Tensor, ...]:
    """Returns values, positions, columns and starts, as described at kpkg::half_sparse_linear.

    Without `reorder`, the matrix's own columns keep their positions, and `columns` has only the columns behind them.
    """
    n, k = weight.shape
    own = -(-k // STEP)
    rows = -(-n // LISTED)
    padded = pad(weight, (0, own * STEP - k, 0, rows * LISTED - n))
    order = _apart(padded) if reorder else torch.arange(own * STEP, device=weight.device)
    padded = padded[:, order].view(rows, LISTED, own * STEP)
    moved = _moved_elements(padded)
    slots = [_slots(above) for above in moved]
    counts = torch.tensor([len(one) // STEP for one in slots], dtype=torch.int64)
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int().to(weight.device)
    behind = weight.new_zeros(rows, LISTED, max(counts.tolist(), default=0) * STEP)
    for part, above, matrix, one in zip(behind, moved, padded, slots):
        taken = (matrix * above)[:, one.clamp_min(0)]
        part[:, : len(one)] = taken.masked_fill(one < 0, 0)
    matrix = torch.cat([padded.masked_fill(moved, 0), behind], 2).flatten(0, 1)[:n]
    first = torch.arange(own * STEP if reorder else 0, device=weight.device)
    taken = torch.cat([first, *slots])
    columns = order[taken.clamp_min(0)].masked_fill(taken < 0, -1) if own else taken
    return *halves(matrix.contiguous()), columns.masked_fill(columns >= k, -1).int(), starts


def half_windows_and_rest(weight: Tensor, taps: int, channels: int) -> tuple[Tensor, ...]:
    """Returns the tensors of kpkg::half_sparse_conv2d for a matrix [n, rows of taps * taps * channels].

    They are values, positions, columns and starts.
    """
    values, positions, columns, starts = halves_and_rest(weight, reorder=False)
    place, channel = columns // channels, columns % channels
    none = columns < 0
    named = torch.stack([place // taps, place % taps, channel]).masked_fill(none, 0)
    named[2].masked_fill_(none, -1)
    return values, positions, named.int(), starts


def compressed(weight: Tensor) -> tuple[Tensor, ...]:
    """Returns crow, col and values, as described at kpkg::compressed_linear."""
    keep = weight != 0
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)])
    return crow.int(), keep.nonzero()[:, 1].int(), weight[keep].contiguous()


def elements(weight: Tensor) -> tuple[Tensor, ...]:
    """Returns masks, starts and values, as described at kpkg::sparse_linear."""
    # Words of two adjacent groups along k are together in `values`: a step of the kernel reads 64 elements of each row.
    n, k = weight.shape
    words = -(-k // (2 * WORD)) * 2
    padded = pad(weight, (0, words * WORD - k)).view(n, words // 2, 2, WORD).transpose(0, 1)
    keep = padded != 0
    count = keep.sum(3)
    starts = (count.flatten().cumsum(0) - count.flatten()).view_as(count)
    bits = (keep.long() << torch.arange(WORD, device=weight.device)).sum(3)
    bits = bits - (bits >> 31 << 32)

    def by_word(rows: Tensor) -> Tensor:
        return rows.transpose(1, 2).reshape(words, n)[: -(-k // WORD)].int().contiguous()

    return by_word(bits), by_word(starts), padded[keep].contiguous()


def _apart(weight: Tensor) -> Tensor:
    """Orders the columns of a weight [n, a multiple of STEP] for 2:4 sparsity.

    Few rows then have more than two elements in four adjacent columns. Columns stay within steps, so that reads in this
    order are reads of lines of memory.
    """
    n, k = weight.shape
    steps = (weight != 0).view(n, k // STEP, STEP).transpose(0, 1)
    parts = [_exchanged(part) for part in steps.split(max(_SEARCHED // max(n * STEP, 1), 1))]
    order = torch.cat([torch.zeros(0, STEP, dtype=torch.int64, device=weight.device), *parts])
    return (order + STEP * torch.arange(len(order), device=weight.device).unsqueeze(1)).flatten()


def _exchanged(is_kept: Tensor) -> Tensor:
    """Orders the columns of [steps, n, STEP] for each step by a local search.

    It exchanges the two columns that save the most elements, as long as an exchange saves any. Pool and Yu (NeurIPS
    2021) find permutations for 2:4 pruning like this.
    """
    steps, n, _ = is_kept.shape
    device = is_kept.device
    order = torch.arange(STEP, device=device).repeat(steps, 1)
    active = torch.arange(steps, device=device)
    four = torch.arange(STEP, device=device) // _GROUP
    is_same = four.unsqueeze(0) == four.unsqueeze(1)
    while len(active) and n:
        now = is_kept[active].gather(2, order[active].unsqueeze(1).expand(-1, n, -1)).float()
        fours = now.view(len(active), n, STEP // _GROUP, _GROUP)
        others = (fours.sum(3, keepdim=True) - fours).flatten(2)
        # [a, b]: rows that have one element too many if b replaces a.
        above = (others >= 2).float().transpose(1, 2) @ now
        here = above.diagonal(dim1=1, dim2=2)
        change = (above + above.transpose(1, 2) - here.unsqueeze(1) - here.unsqueeze(2)).masked_fill(is_same, 0)
        is_better = torch.zeros(len(active), dtype=torch.bool, device=device)
        for _ in range(STEP // _GROUP // 4):  # exchanges between other groups do not change these savings
            least, at = change.flatten(1).min(1)
            saves = least < 0
            is_better |= saves
            which, one, other = active[saves], at[saves] // STEP, at[saves] % STEP
            order[which, one], order[which, other] = order[which, other], order[which, one]
            for place in (one, other):
                is_used = four.unsqueeze(0) == four[place].unsqueeze(1)
                change[saves] = change[saves].masked_fill(is_used.unsqueeze(1) | is_used.unsqueeze(2), 0)
        active = active[is_better]
    return order


def _moved_elements(rows: Tensor) -> Tensor:
    """Selects the elements of blocks of rows [blocks, rows, k] that are moved.

    For each block and group of four columns, it moves the fewest columns that leave no row more than two elements.
    """
    blocks, _, k = rows.shape
    keep = (rows != 0).view(blocks, LISTED, k // _GROUP, _GROUP)
    bits = (keep.long() << torch.arange(_GROUP, device=rows.device)).sum(3)  # mask of a row's elements in four columns
    sets = torch.arange(1 << _GROUP, device=rows.device)
    size = (sets.unsqueeze(1) >> torch.arange(_GROUP, device=rows.device) & 1).sum(1)
    leaves = size[sets.unsqueeze(1) & ~sets] > 2  # [columns of a row, moved columns]
    is_seen = torch.stack([(bits == one).any(1) for one in sets], 2)  # [blocks, groups of four, columns of a row]
    leaves_some = (is_seen.unsqueeze(3) & leaves).any(2)
    going = (size + _GROUP * leaves_some).argmin(2)  # [blocks, groups of four columns]
    goes = (going.unsqueeze(2) >> torch.arange(_GROUP, device=rows.device) & 1).bool().unsqueeze(1)
    return (keep & goes & (size[bits] > 2).unsqueeze(3)).view(rows.shape)


def _slots(moved: Tensor) -> Tensor:
    """Chooses columns, a multiple of STEP, for the moved elements of rows [rows, k]. -1 stands for none.

    At most two of four adjacent columns have elements of the same row.
    """
    columns = moved.any(0).nonzero()[:, 0]
    padded = pad(columns, (0, -len(columns) % STEP), value=-1)
    # Adjacent lanes of a warp read adjacent columns, as far as possible.
    ordered = padded.view(-1, _LANE, _LANES).transpose(1, 2).reshape(-1)
    groups = (moved[:, ordered.clamp_min(0)] & (ordered >= 0)).view(len(moved), len(ordered) // _GROUP, _GROUP)
    if bool((groups.sum(2) <= 2).all()):
        return ordered
    slots: list[int] = []
    is_in = moved[:, columns].T.int().cpu()
    counts = is_in.new_zeros(len(moved))
    for column, rows in zip(columns.tolist(), is_in):
        counts = counts + rows if len(slots) % _GROUP else rows
        if int(counts.max()) > 2:
            slots += [-1] * (-len(slots) % _GROUP)
            counts = rows
        slots.append(column)
    slots += [-1] * (-len(slots) % STEP)
    return torch.tensor(slots, device=moved.device)
