"""Weights that are mostly zeros: packed once, multiplied by ops that read and store only the rest.

    weight = kpkg.sparse.pack(layer.weight, sample_input=x)     # measures which form is the fastest on x's device
    y = kpkg.sparse.linear(x, weight, layer.bias)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kpkg._aten_sparse import WORD, from_blocks, from_elements, from_halves
from kpkg._default import ops
from kpkg._measure import interleaved

_BLOCKS = (128, 64, 32, 16)
_FORMATS = ("elements", "blocks", "2:4", "dense")
_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, repr=False)
class SparseWeight:
    """A packed weight [n, k].

    format: "elements" (arguments of kpkg::sparse_linear), "blocks" (of kpkg::block_sparse_linear), "2:4" (of kpkg::half_sparse_linear) or "dense" (the weight).
    times: microseconds of a call with the sample input, for each form that `pack` has measured.
    """

    shape: tuple[int, int]
    format: str
    tensors: tuple[Tensor, ...]
    density: float
    times: dict[str, float] = field(default_factory=dict)

    def dense(self) -> Tensor:
        """The weight [n, k] itself."""
        k = self.shape[1]
        if self.format == "dense":
            return self.tensors[0]
        if self.format == "2:4":
            return from_halves(*self.tensors)
        return from_blocks(*self.tensors[:3], k) if self.format == "blocks" else from_elements(*self.tensors, k)

    def __repr__(self) -> str:
        times = "".join(f", {name} {us:.1f} us" for name, us in self.times.items())
        return f"SparseWeight({self.shape[0]} x {self.shape[1]}, density {self.density:.3f}, {self.format}{times})"


def pack(weight: Tensor, *, format: str | None = None, block: int | None = None, sample_input: Tensor | None = None) -> SparseWeight:
    """Packs a weight [n, k] whose zeros need not be multiplied.

    format: "elements", "blocks", "2:4" or "dense". None: with a sample input [..., k], whichever `linear` is fastest with, measured on its device; without one,
    blocks where at most a quarter of them is not empty, else 2:4 where the weight is that and a device multiplies it on sparse tensor cores, else dense: whether elements
    are faster depends on the device. "2:4" is for float16 and bfloat16 and at most two elements that are not zero of every four neighbours along k, a multiple of 4.
    block: 16, 32, 64 or 128, for blocks; None: the largest size that divides n and k and leaves out the most.
    Raises ValueError for other values, a weight that is no matrix of floats, sizes that blocks do not divide, a weight that is not 2:4, or 2^31 elements to pack.
    """
    if weight.ndim != 2 or not weight.is_floating_point():
        raise ValueError(f"weight must be a matrix of floats, not {tuple(weight.shape)} of {weight.dtype}")
    if format is not None and format not in _FORMATS:
        raise ValueError(f"format is {format!r}, expected one of {', '.join(_FORMATS)}")
    if block is not None and (block not in _BLOCKS or any(extent % block for extent in weight.shape)):
        raise ValueError(f"blocks of {block} do not divide a weight of {tuple(weight.shape)}: they can be {', '.join(map(str, _BLOCKS))}")
    if weight.numel() >= 1 << 31:
        raise ValueError(f"a weight of {weight.numel()} elements is too large for offsets of 32 bits")
    weight = weight.detach()
    size = block or _block_size(weight)
    if format == "blocks" and size is None:
        raise ValueError(f"no block size of {', '.join(map(str, _BLOCKS))} divides a weight of {tuple(weight.shape)}")
    if format == "2:4" and not _is_two_of_four(weight):
        raise ValueError(f"a weight of {tuple(weight.shape)}, {weight.dtype}, is not 2:4: float16 or bfloat16, of every four neighbours along the last dimension at most two not zero")
    if format is None and sample_input is not None:
        return _fastest(weight, size, sample_input)
    if format is None:
        is_empty = size is not None and _kept_blocks(weight, size).float().mean() <= 0.25
        has_sparse_cores = weight.is_cuda and torch.cuda.get_device_capability(weight.device) == (9, 0)
        format = "blocks" if is_empty else "2:4" if has_sparse_cores and _is_two_of_four(weight) else "dense"
    return _packed(weight, format, size)


def linear(input: Tensor, weight: SparseWeight, bias: Tensor | None = None) -> Tensor:
    """input [..., k] times the transposed weight, plus bias [n]: [..., n]. Gradients are those of PyTorch's dense product."""
    if weight.format == "elements":
        return ops.sparse_linear(input, *weight.tensors, bias)
    if weight.format == "blocks":
        crow, col, values, moves = weight.tensors
        return ops.block_sparse_linear(input, crow, col, values, bias, moves)
    if weight.format == "2:4":
        return ops.half_sparse_linear(input, *weight.tensors, bias)
    return torch.nn.functional.linear(input, weight.tensors[0], bias)


def _density(weight: Tensor) -> float:
    return float((weight != 0).float().mean()) if weight.numel() else 0.0


def _kept_blocks(weight: Tensor, size: int) -> Tensor:
    n, k = weight.shape
    return (weight != 0).view(n // size, size, k // size, size).any(3).any(1)


def _block_size(weight: Tensor) -> int | None:
    sizes = [size for size in _BLOCKS if all(extent and extent % size == 0 for extent in weight.shape)]
    return min(sizes, key=lambda size: float(_kept_blocks(weight, size).float().mean())) if sizes else None


def _is_two_of_four(weight: Tensor) -> bool:
    n, k = weight.shape
    return weight.dtype in _HALVES and k % 4 == 0 and bool(((weight != 0).view(n, k // 4, 4).sum(2) <= 2).all())


def _halves(weight: Tensor) -> tuple[Tensor, Tensor]:
    """values and positions, as kpkg::half_sparse_linear says. Groups with fewer than two elements get zeros, in places that differ."""
    n, k = weight.shape
    groups = weight.view(n, k // 4, 4)
    places = (groups == 0).to(torch.uint8).sort(dim=2, stable=True).indices[:, :, :2].sort(dim=2).values
    values = groups.gather(2, places).view(n, k // 2)
    rows, steps = -(-n // 64), -(-k // 128)
    first_two = torch.tensor([0, 1], device=weight.device).expand(rows * 64, steps * 32, 2).clone()
    first_two[:n, : k // 4] = places
    words = (first_two.view(rows * 64, steps * 8, 8) << torch.arange(0, 16, 2, device=weight.device)).sum(2)
    words = (words - (words >> 15 << 16)).to(torch.int16)
    blocks = words.view(rows, 4, 2, 8, steps, 2, 4).permute(0, 4, 1, 3, 6, 5, 2)
    return values.contiguous(), blocks.reshape(rows, steps, 512).contiguous()


def _packed(weight: Tensor, format: str, size: int | None) -> SparseWeight:
    n, k = weight.shape
    if format == "dense":
        return SparseWeight((n, k), format, (weight,), _density(weight))
    if format == "2:4":
        return SparseWeight((n, k), format, _halves(weight), _density(weight))
    if format == "blocks":
        assert size is not None
        keep = _kept_blocks(weight, size)
        crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)]).int()
        values = weight.view(n // size, size, k // size, size).transpose(1, 2)[keep].contiguous()
        first = keep.sum(1).argsort(descending=True, stable=True)  # block rows with as many blocks are computed at the same time
        moves = (first - torch.arange(len(first), device=first.device)).int()
        return SparseWeight((n, k), format, (crow, keep.nonzero()[:, 1].int(), values, moves), _density(weight))
    # Words of two neighbours along k stand together in `values`: a step of the kernel reads 64 elements of each row.
    words = -(-k // (2 * WORD)) * 2
    padded = torch.nn.functional.pad(weight, (0, words * WORD - k)).view(n, words // 2, 2, WORD).transpose(0, 1)
    keep = padded != 0
    count = keep.sum(3)
    starts = (count.flatten().cumsum(0) - count.flatten()).view_as(count)
    bits = (keep.long() << torch.arange(WORD, device=weight.device)).sum(3)
    bits = bits - (bits >> 31 << 32)

    def by_word(rows: Tensor) -> Tensor:
        return rows.transpose(1, 2).reshape(words, n)[: -(-k // WORD)].int().contiguous()

    return SparseWeight((n, k), format, (by_word(bits), by_word(starts), padded[keep].contiguous()), _density(weight))


def _fastest(weight: Tensor, size: int | None, sample_input: Tensor) -> SparseWeight:
    left_out = {"blocks": size is None, "2:4": not _is_two_of_four(weight)}
    candidates = {name: _packed(weight, name, size) for name in _FORMATS if not left_out.get(name)}
    times: dict[str, float] = {}
    with torch.no_grad():
        for name, candidate in candidates.items():
            if name != "dense":
                mine, theirs = interleaved(lambda c=candidate: linear(sample_input, c), lambda: linear(sample_input, candidates["dense"]))
                times[name] = mine
                times["dense"] = min(theirs, times.get("dense", theirs))
    best = candidates[min(times, key=lambda name: times[name])]
    return SparseWeight(best.shape, best.format, best.tensors, best.density, times)
