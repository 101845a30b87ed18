"""How weights that are mostly zeros are packed: what the ops of sparse products take.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from kpkg._sparse_formats import LISTED, STEP, WORD

_GROUP = 4
_LANES = 16  # that read a line of columns, each _LANE of them
_LANE = STEP // _LANES
_SEARCHED = 1 << 26  # elements at once, for which columns are exchanged


def nonzero_blocks(matrix: Tensor, size: int) -> Tensor:
    n, k = matrix.shape
    return (matrix != 0).view(n // size, size, k // size, size).any(3).any(1)


def blocks(weight: Tensor, size: int) -> tuple[Tensor, ...]:
    """crow, col, values and moves, as kpkg::block_sparse_linear says.

    Long block rows come first, so that those that compute them end together.
    """
    n, k = weight.shape
    keep = nonzero_blocks(weight, size)
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)]).int()
    values = weight.view(n // size, size, k // size, size).transpose(1, 2)[keep].contiguous()
    order = keep.sum(1).sort(descending=True, stable=True).indices
    moves = order - torch.arange(len(order), device=order.device)
    return crow, keep.nonzero()[:, 1].int(), values, moves.int()


def halves(weight: Tensor) -> tuple[Tensor, Tensor]:
    """values and positions, as kpkg::half_sparse_linear says.

    Groups with fewer than two elements get zeros, in places that differ.
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
    """values, positions, columns and starts, as kpkg::half_sparse_linear says.

    Without `reorder` the matrix's own columns keep their places, and `columns` has only those behind them.
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
    """The tensors of kpkg::half_sparse_conv2d for a matrix [n, rows of taps * taps * channels].

    They are values, positions, columns and starts.
    """
    values, positions, columns, starts = halves_and_rest(weight, reorder=False)
    place, channel = columns // channels, columns % channels
    none = columns < 0
    named = torch.stack([place // taps, place % taps, channel]).masked_fill(none, 0)
    named[2].masked_fill_(none, -1)
    return values, positions, named.int(), starts


def compressed(weight: Tensor) -> tuple[Tensor, ...]:
    """crow, col and values, as kpkg::compressed_linear says."""
    keep = weight != 0
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)])
    return crow.int(), keep.nonzero()[:, 1].int(), weight[keep].contiguous()


def elements(weight: Tensor) -> tuple[Tensor, ...]:
    """masks, starts and values, as kpkg::sparse_linear says."""
    # Words of two neighbours along k stand together in `values`: a step of the kernel reads 64 elements of each row.
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
    """Orders the columns of a weight [n, a multiple of STEP] for 2:4.

    Few rows then have more than two elements in four neighbours. Columns stay within steps, so that reading them in
    this order is reading lines of memory.
    """
    n, k = weight.shape
    steps = (weight != 0).view(n, k // STEP, STEP).transpose(0, 1)
    parts = [_exchanged(part) for part in steps.split(max(_SEARCHED // max(n * STEP, 1), 1))]
    order = torch.cat([torch.zeros(0, STEP, dtype=torch.int64, device=weight.device), *parts])
    return (order + STEP * torch.arange(len(order), device=weight.device).unsqueeze(1)).flatten()


def _exchanged(is_kept: Tensor) -> Tensor:
    """Orders the columns of [steps, n, STEP], for each step, by a local search.

    Those two columns are exchanged that save the most, as long as any do. Permutations for 2:4 pruning are found like
    this: Pool and Yu, NeurIPS 2021.
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
        # [a, b]: rows in which b would be one too many in the place of a.
        above = (others >= 2).float().transpose(1, 2) @ now
        here = above.diagonal(dim1=1, dim2=2)
        change = (above + above.transpose(1, 2) - here.unsqueeze(1) - here.unsqueeze(2)).masked_fill(is_same, 0)
        is_better = torch.zeros(len(active), dtype=torch.bool, device=device)
        for _ in range(STEP // _GROUP // 4):  # exchanges between other fours do not change what these save
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
    """Says which elements of blocks of rows [blocks, rows, k] are moved.

    For each block and four columns: those in the fewest columns that leave no row more than two.
    """
    blocks, _, k = rows.shape
    keep = (rows != 0).view(blocks, LISTED, k // _GROUP, _GROUP)
    bits = (keep.long() << torch.arange(_GROUP, device=rows.device)).sum(3)  # of a row, which of four columns
    sets = torch.arange(1 << _GROUP, device=rows.device)
    size = (sets.unsqueeze(1) >> torch.arange(_GROUP, device=rows.device) & 1).sum(1)
    leaves = size[sets.unsqueeze(1) & ~sets] > 2  # [columns of a row, columns that go]
    is_seen = torch.stack([(bits == one).any(1) for one in sets], 2)  # [blocks, fours of columns, columns of a row]
    leaves_some = (is_seen.unsqueeze(3) & leaves).any(2)
    going = (size + _GROUP * leaves_some).argmin(2)  # [blocks, fours of columns]
    goes = (going.unsqueeze(2) >> torch.arange(_GROUP, device=rows.device) & 1).bool().unsqueeze(1)
    return (keep & goes & (size[bits] > 2).unsqueeze(3)).view(rows.shape)


def _slots(moved: Tensor) -> Tensor:
    """Chooses columns for the moved elements of rows [rows, k], a multiple of STEP, -1 for none.

    Of four neighbours, at most two have elements of the same row.
    """
    columns = moved.any(0).nonzero()[:, 0]
    padded = pad(columns, (0, -len(columns) % STEP), value=-1)
    # Neighbours on which lanes of a warp work are neighbours of memory, as far as they can be.
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
