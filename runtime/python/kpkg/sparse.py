"""Weights that are mostly zeros: packed once, multiplied by ops that read and store only the rest.

    weight = kpkg.sparse.pack(layer.weight, sample_input=x)     # measures which form is the fastest on x's device
    y = kpkg.sparse.linear(x, weight, layer.bias)               # or kpkg.sparse.conv2d, for a weight of four dimensions

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kpkg._aten_sparse import LINES, LISTED, WORD, as_image_weight, from_blocks, from_elements, from_halves, with_rest
from kpkg._default import ops
from kpkg._measure import interleaved

_BLOCKS = (128, 64, 32, 16)
_FORMATS = ("elements", "blocks", "2:4", "dense")
_HALVES = (torch.float16, torch.bfloat16)
#: Channels of a tap are rounded up to so many, which a step of the kernels takes.
_UNITS = {"elements": 64, "blocks": 1, "2:4": 128}

Numbers = int | Sequence[int]


@dataclass(frozen=True, repr=False)
class SparseWeight:
    """A packed weight [n, k], or [n, c, rows, columns] of a convolution.

    format: "elements" (arguments of kpkg::sparse_linear or sparse_conv2d, for a matrix of float16 or bfloat16 of kpkg::half_sparse_linear with lists of the rest), "blocks" (of
    kpkg::block_sparse_linear or block_sparse_conv2d), "2:4" (of kpkg::half_sparse_linear or half_sparse_conv2d) or "dense" (the weight).
    times: microseconds of a call with the sample input, for each form that `pack` has measured.
    """

    shape: tuple[int, ...]
    format: str
    tensors: tuple[Tensor, ...]
    density: float
    times: dict[str, float] = field(default_factory=dict)

    def dense(self) -> Tensor:
        """The weight itself."""
        if self.format == "dense":
            return self.tensors[0]
        channels, size = self.shape[1], self.shape[2:]
        k = -(-channels // _UNITS[self.format]) * _UNITS[self.format] * size[0] * size[1] if size else channels
        if self.format == "2:4":
            matrix = from_halves(*self.tensors)
        elif self._has_rest():
            matrix = with_rest(*self.tensors, k)
        elif self.format == "blocks":
            matrix = from_blocks(*self.tensors, k)
        else:
            matrix = from_elements(*self.tensors, k)
        return as_image_weight(matrix, channels, size).contiguous() if size else matrix

    def _has_rest(self) -> bool:
        """Whether elements are packed as two of every four and a list of the rest."""
        return self.format == "elements" and len(self.shape) == 2 and self.tensors[0].dtype in _HALVES

    def __repr__(self) -> str:
        times = "".join(f", {name} {us:.1f} us" for name, us in self.times.items())
        rest = f" (2:4 and up to {len(self.tensors[2])} more of a row)" if self._has_rest() else ""
        return f"SparseWeight({' x '.join(map(str, self.shape))}, density {self.density:.3f}, {self.format}{rest}{times})"


def pack(
    weight: Tensor, *, format: str | None = None, block: int | None = None, sample_input: Tensor | None = None,
    stride: Numbers = 1, padding: Numbers = 0, dilation: Numbers = 1,
) -> SparseWeight:
    """Packs a weight [n, k], or [n, c, rows, columns] of a convolution, whose zeros need not be multiplied.

    format: "elements", "blocks", "2:4" or "dense". None: with a sample input ([..., k], or images with the convolution's stride, padding and dilation), whichever `linear`
    or `conv2d` is fastest with, measured on its device; without one, blocks where at most a quarter of them is not empty, else 2:4 where the weight is that and a
    device multiplies it on sparse tensor cores, else dense: whether elements are faster depends on the device.
    "elements" of a matrix of float16 or bfloat16 are packed as "2:4"; third and fourth ones of four neighbours are lists of their rows, multiplied without tensor cores. They are
    right for any weight, and fast for one in which a row has few of these: the longest list of 128 rows decides, so one dense row slows its neighbours down.
    "2:4" is for float16 and bfloat16 and at most two elements that are not zero of every four neighbours along k, a multiple of 4, or along c.
    block: 16, 32, 64 or 128, for blocks (of n and k, or of n and the channels of a tap); None: the largest size that divides n and k, or n and c, and leaves out the most.
    Raises ValueError for other values, a weight that is no such tensor of floats, sizes that blocks do not divide, a weight that is not 2:4, or 2^31 elements to pack.
    """
    if weight.ndim not in (2, 4) or not weight.is_floating_point():
        raise ValueError(f"weight must be a matrix of floats, or have four dimensions, not {tuple(weight.shape)} of {weight.dtype}")
    if format is not None and format not in _FORMATS:
        raise ValueError(f"format is {format!r}, expected one of {', '.join(_FORMATS)}")
    if block is not None and (block not in _BLOCKS or any(extent % block for extent in weight.shape[:2])):
        raise ValueError(f"blocks of {block} do not divide a weight of {tuple(weight.shape)}: they can be {', '.join(map(str, _BLOCKS))}")
    if weight.numel() >= 1 << 31:
        raise ValueError(f"a weight of {weight.numel()} elements is too large for offsets of 32 bits")
    weight = weight.detach()
    size = block or _block_size(weight)
    if format == "blocks" and size is None:
        raise ValueError(f"no block size of {', '.join(map(str, _BLOCKS))} divides a weight of {tuple(weight.shape)}")
    if format == "2:4" and not _is_two_of_four(weight):
        raise ValueError(f"a weight of {tuple(weight.shape)}, {weight.dtype}, is not 2:4: float16 or bfloat16, of every four neighbours at most two not zero")
    if format is None and sample_input is not None:
        run = linear if weight.ndim == 2 else lambda x, packed: conv2d(x, packed, None, stride, padding, dilation)
        return _fastest(weight, size, sample_input, run)
    if format is None:
        is_empty = size is not None and _kept_blocks(_matrix(weight, 1), size).float().mean() <= 0.25
        has_sparse_cores = weight.is_cuda and torch.cuda.get_device_capability(weight.device) == (9, 0)
        format = "blocks" if is_empty else "2:4" if has_sparse_cores and _is_two_of_four(weight) else "dense"
    return _packed(weight, format, size)


def linear(input: Tensor, weight: SparseWeight, bias: Tensor | None = None) -> Tensor:
    """input [..., k] times the transposed weight, plus bias [n]: [..., n]. Gradients are those of PyTorch's dense product."""
    if len(weight.shape) != 2:
        raise ValueError(f"a weight of {weight.shape} is one of a convolution")
    if weight._has_rest():
        values, positions, *rest = weight.tensors
        return ops.half_sparse_linear(input, values, positions, bias, *rest)
    if weight.format == "elements":
        return ops.sparse_linear(input, *weight.tensors, bias)
    if weight.format == "blocks":
        return ops.block_sparse_linear(input, *weight.tensors, bias)
    if weight.format == "2:4":
        return ops.half_sparse_linear(input, *weight.tensors, bias)
    return torch.nn.functional.linear(input, weight.tensors[0], bias)


def conv2d(input: Tensor, weight: SparseWeight, bias: Tensor | None = None, stride: Numbers = 1, padding: Numbers = 0, dilation: Numbers = 1) -> Tensor:
    """The convolution of images [n, c, h, w], as torch.nn.functional.conv2d; padding is numbers. Results of sparse forms have channels last in memory, and images
    that do not are copied first. Gradients are those of PyTorch's dense convolution.
    """
    if len(weight.shape) != 4:
        raise ValueError(f"a weight of {weight.shape} is none of a convolution")
    if weight.format == "dense":
        return torch.nn.functional.conv2d(input, weight.tensors[0], bias, stride, padding, dilation)
    size = list(weight.shape[2:])
    how = {"stride": _numbers(stride), "padding": _numbers(padding), "dilation": _numbers(dilation)}
    if weight.format == "elements":
        return ops.sparse_conv2d(input, *weight.tensors, size, bias, **how)
    if weight.format == "blocks":
        return ops.block_sparse_conv2d(input, *weight.tensors, size, bias, **how)
    return ops.half_sparse_conv2d(input, *weight.tensors, size, bias, **how)


def _numbers(value: Numbers) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _density(weight: Tensor) -> float:
    return float((weight != 0).float().mean()) if weight.numel() else 0.0


def _matrix(weight: Tensor, unit: int) -> Tensor:
    """[n, k], or [n, rows * columns * c] with c rounded up to a multiple of `unit`."""
    if weight.ndim == 2:
        return weight
    channels = weight.shape[1]
    return torch.nn.functional.pad(weight.permute(0, 2, 3, 1), (0, -channels % unit)).reshape(weight.shape[0], -1)


def _kept_blocks(matrix: Tensor, size: int) -> Tensor:
    n, k = matrix.shape
    return (matrix != 0).view(n // size, size, k // size, size).any(3).any(1)


def _block_size(weight: Tensor) -> int | None:
    sizes = [size for size in _BLOCKS if all(extent and extent % size == 0 for extent in weight.shape[:2])]
    return min(sizes, key=lambda size: float(_kept_blocks(_matrix(weight, 1), size).float().mean())) if sizes else None


def _is_two_of_four(weight: Tensor) -> bool:
    if weight.dtype not in _HALVES or (weight.ndim == 2 and weight.shape[1] % 4 != 0):
        return False
    matrix = _matrix(weight, 4)
    return bool(((matrix != 0).view(matrix.shape[0], matrix.shape[1] // 4, 4).sum(2) <= 2).all())


def _packed(weight: Tensor, format: str, size: int | None) -> SparseWeight:
    tensors: tuple[Tensor, ...] = (weight,)
    if format != "dense":
        matrix = _matrix(weight, _UNITS[format])
        if format == "blocks":
            assert size is not None
            tensors = _blocks(matrix, size)
        else:
            pack_elements = _halves_and_rest if weight.ndim == 2 and weight.dtype in _HALVES else _elements
            tensors = _halves(matrix) if format == "2:4" else pack_elements(matrix)
    return SparseWeight(tuple(weight.shape), format, tensors, _density(weight))


def _blocks(weight: Tensor, size: int) -> tuple[Tensor, ...]:
    """crow, col and values, as kpkg::block_sparse_linear says."""
    n, k = weight.shape
    keep = _kept_blocks(weight, size)
    crow = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(1).cumsum(0)]).int()
    values = weight.view(n // size, size, k // size, size).transpose(1, 2)[keep].contiguous()
    return crow, keep.nonzero()[:, 1].int(), values


def _halves(weight: Tensor) -> tuple[Tensor, ...]:
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


def _halves_and_rest(weight: Tensor) -> tuple[Tensor, ...]:
    """values, positions, columns, rest and turns, as kpkg::half_sparse_linear says."""
    n, k = weight.shape
    padded = torch.nn.functional.pad(weight, (0, -k % 4))
    keep = (padded != 0).view(n, padded.shape[1] // 4, 4)
    above = (keep & (keep.cumsum(2) > 2)).view(padded.shape)
    turns = torch.nn.functional.pad(above.sum(1), (0, -n % LISTED)).view(-(-n // LISTED), LISTED).amax(1).add(LINES - 1).div(LINES, rounding_mode="floor").int()
    lines = LINES * int(turns.max()) if n else 0
    rows, places = above.nonzero().unbind(1)
    line = (above.cumsum(1) - 1)[rows, places]
    columns = torch.full((lines, n), -1, dtype=torch.int32, device=weight.device)
    columns[line, rows] = places.int()
    rest = weight.new_zeros(lines, n)
    rest[line, rows] = padded[rows, places]
    return *_halves(padded.masked_fill(above, 0)), columns, rest, turns


def _elements(weight: Tensor) -> tuple[Tensor, ...]:
    """masks, starts and values, as kpkg::sparse_linear says."""
    # Words of two neighbours along k stand together in `values`: a step of the kernel reads 64 elements of each row.
    n, k = weight.shape
    words = -(-k // (2 * WORD)) * 2
    padded = torch.nn.functional.pad(weight, (0, words * WORD - k)).view(n, words // 2, 2, WORD).transpose(0, 1)
    keep = padded != 0
    count = keep.sum(3)
    starts = (count.flatten().cumsum(0) - count.flatten()).view_as(count)
    bits = (keep.long() << torch.arange(WORD, device=weight.device)).sum(3)
    bits = bits - (bits >> 31 << 32)

    def by_word(rows: Tensor) -> Tensor:
        return rows.transpose(1, 2).reshape(words, n)[: -(-k // WORD)].int().contiguous()

    return by_word(bits), by_word(starts), padded[keep].contiguous()


def _fastest(weight: Tensor, size: int | None, sample_input: Tensor, run: Callable[..., Tensor]) -> SparseWeight:
    left_out = {"blocks": size is None, "2:4": not _is_two_of_four(weight)}
    candidates = {name: _packed(weight, name, size) for name in _FORMATS if not left_out.get(name)}
    times: dict[str, float] = {}
    with torch.no_grad():
        for name, candidate in candidates.items():
            if name != "dense":
                mine, theirs = interleaved(lambda c=candidate: run(sample_input, c), lambda: run(sample_input, candidates["dense"]))
                times[name] = mine
                times["dense"] = min(theirs, times.get("dense", theirs))
    best = candidates[min(times, key=lambda name: times[name])]
    return SparseWeight(best.shape, best.format, best.tensors, best.density, times)
