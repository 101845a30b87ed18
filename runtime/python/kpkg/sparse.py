"""Packs weights that are mostly zeros once, and multiplies by ops that store and read only their other elements.

    weight = kpkg.sparse.pack(layer.weight, sample_input=x)     # measures the fastest format on x's device
    y = kpkg.sparse.linear(x, weight, layer.bias)               # or kpkg.sparse.conv2d, for a weight of four dimensions

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kpkg import _sparse_formats as formats
from kpkg import _sparse_packing as packing
from kpkg._default import ops
from kpkg._measure import interleaved
from kpkg._sparse_formats import STEP

_BLOCKS = (128, 64, 32, 16)
_FORMATS = ("elements", "csr", "blocks", "2:4", "dense")
_HALVES = (torch.float16, torch.bfloat16)
#: The elements of a kernel's step. Channels of a tap are rounded up to a multiple.
_UNITS = {"elements": 64, "csr": 1, "blocks": 1, "2:4": 128}

#: The most columns for which windows are copied are the weight's own columns divided by this.
_MOST_TAKEN = 4

Numbers = int | Sequence[int]


@dataclass(frozen=True, repr=False)
class SparseWeight:
    """A packed weight [n, k], or [n, c, rows, columns] of a convolution.

    format: the format, and the ops that take its tensors.
    * "elements": kpkg::sparse_linear and sparse_conv2d; in float16 and bfloat16 half_sparse_linear and
      half_sparse_conv2d, with further columns.
    * "csr": kpkg::compressed_linear.
    * "blocks": kpkg::block_sparse_linear and block_sparse_conv2d.
    * "2:4": kpkg::half_sparse_linear and half_sparse_conv2d.
    * "dense": none; its tensor is the weight.
    times: microseconds of a call with the sample input, for each format that `pack` has measured.
    """

    shape: tuple[int, ...]
    format: str
    tensors: tuple[Tensor, ...]
    density: float
    times: dict[str, float] = field(default_factory=dict)

    def dense(self) -> Tensor:
        """Returns the dense weight."""
        if self.format == "dense":
            return self.tensors[0]
        channels, size = self.shape[1], self.shape[2:]
        unit = STEP if self._has_rest() else _UNITS[self.format]
        k = -(-channels // unit) * unit * size[0] * size[1] if size else channels
        if self.format == "2:4":
            matrix = formats.from_halves(*self.tensors)
        elif self._has_rest():
            values, positions, columns, starts = self.tensors
            if size:
                columns = formats.window_columns(columns, size, k // (size[0] * size[1]))
            matrix = formats.with_rest(values, positions, columns, starts, k)
        else:
            unpack: Any = {
                "csr": formats.from_compressed,
                "blocks": formats.from_blocks,
                "elements": formats.from_elements,
            }[self.format]
            matrix = unpack(*self.tensors[:3], k)
        return formats.as_image_weight(matrix, channels, size).contiguous() if size else matrix

    def _has_rest(self) -> bool:
        """Returns whether elements are packed with 2:4 sparsity, and further columns with the rest."""
        return self.format == "elements" and len(self.tensors) == 4

    def _product(self) -> tuple[str, tuple[Tensor, ...], dict[str, Tensor]]:
        """Returns the name of the ops for the format, and their tensors before and behind the bias."""
        if self._has_rest():
            return "half_sparse", self.tensors[:2], dict(zip(("columns", "starts"), self.tensors[2:]))
        if self.format == "blocks":
            return "block_sparse", self.tensors[:3], {"moves": self.tensors[3]}
        return {"elements": "sparse", "csr": "compressed", "2:4": "half_sparse"}[self.format], self.tensors, {}

    def __repr__(self) -> str:
        times = "".join(f", {name} {us:.1f} us" for name, us in self.times.items())
        rest = f" (2:4 and {STEP * int(self.tensors[3][-1])} columns more)" if self._has_rest() else ""
        return (
            f"SparseWeight({' x '.join(map(str, self.shape))}, density {self.density:.3f}, {self.format}{rest}{times})"
        )


def pack(
    weight: Tensor,
    *,
    format: str | None = None,
    block: int | None = None,
    sample_input: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
) -> SparseWeight:
    """Packs a weight [n, k], or [n, c, rows, columns] of a convolution, so that products skip its zeros.

    It may have any of PyTorch's sparse layouts.

    format: the format, or None for the fastest.
    * "elements": a bit for each element. In float16 and bfloat16 they are packed as "2:4". Third and fourth elements of
      four adjacent ones are in columns behind the others, which 256 rows share. Weights with few such columns are fast,
      since each call also copies the elements by which these columns are multiplied. If that would be more than a
      quarter of an image's windows, weights of convolutions keep a bit for each element.
    * "csr": compressed sparse rows. CPUs multiply only elements that are not zero. For many rows of the input, it is
      faster than the dense weight if about 95 % of the elements are zeros.
    * "blocks": the blocks that are not empty.
    * "2:4": float16 and bfloat16 with at most two non-zero elements in each group of four along k, a multiple of 4, or
      along c.
    * "dense": the weight.
    * None with a sample input: the format with which `linear` or `conv2d` is fastest, measured on its device.
    * None without one: blocks if at most a quarter of them are not empty. Else 2:4 if the weight has 2:4 sparsity and
      the device has sparse tensor cores. Else dense, since the speed of elements depends on the device.

    block: 16, 32, 64 or 128, for blocks of n and k, or of n and the channels of a tap. With None, blocks
    have the dividing size that omits the most elements.
    sample_input: [..., k], or images with the convolution's stride, padding and dilation.

    Raises ValueError for other values, and for a weight that is no such tensor of floats. Also raises it for sizes that
    blocks do not divide, a weight without 2:4 sparsity, or 2^31 elements to pack.
    """
    if weight.layout is not torch.strided:
        weight = weight.detach().to_dense()
    if weight.ndim not in (2, 4) or not weight.is_floating_point():
        raise ValueError(
            f"weight must be a matrix of floats, or have four dimensions, not {tuple(weight.shape)} of {weight.dtype}"
        )
    if format is not None and format not in _FORMATS:
        raise ValueError(f"format is {format!r}, expected one of {', '.join(_FORMATS)}")
    if block is not None and (block not in _BLOCKS or any(extent % block for extent in weight.shape[:2])):
        raise ValueError(
            f"blocks of {block} do not divide a weight of {tuple(weight.shape)}: they can be "
            f"{', '.join(map(str, _BLOCKS))}"
        )
    if weight.numel() >= 1 << 31:
        raise ValueError(f"a weight of {weight.numel()} elements is too large for offsets of 32 bits")
    weight = weight.detach()
    size = block or _block_size(weight)
    if format == "blocks" and size is None:
        raise ValueError(f"no block size of {', '.join(map(str, _BLOCKS))} divides a weight of {tuple(weight.shape)}")
    if format == "csr" and weight.ndim != 2:
        raise ValueError(f"a weight of {tuple(weight.shape)} has no rows to compress: csr is for matrices")
    if format == "2:4" and not _is_two_of_four(weight):
        raise ValueError(
            f"a weight of {tuple(weight.shape)}, {weight.dtype}, is not 2:4: float16 or bfloat16, of every four "
            "neighbours at most two not zero"
        )
    if format is None and sample_input is not None:
        run = linear if weight.ndim == 2 else lambda x, packed: conv2d(x, packed, None, stride, padding, dilation)
        return _fastest(weight, size, sample_input, run)
    if format is None:
        is_empty = size is not None and packing.nonzero_blocks(_matrix(weight, 1), size).float().mean() <= 0.25
        has_sparse_cores = weight.is_cuda and torch.cuda.get_device_capability(weight.device) == (9, 0)
        format = "blocks" if is_empty else "2:4" if has_sparse_cores and _is_two_of_four(weight) else "dense"
    return _packed(weight, format, size)


def linear(input: Tensor, weight: SparseWeight, bias: Tensor | None = None) -> Tensor:
    """Computes input [..., k] times the transposed weight, plus bias [n]: [..., n], all of the weight's dtype.

    Gradients are those of PyTorch's dense product. Raises ValueError for the weight of a convolution, and the errors of
    a call of an op.
    """
    if len(weight.shape) != 2:
        raise ValueError(f"a weight of {weight.shape} is one of a convolution")
    if weight.format == "dense":
        return torch.nn.functional.linear(input, weight.tensors[0], bias)
    name, before, behind = weight._product()
    return ops[f"kpkg::{name}_linear"](input, *before, bias, *behind.values())


def conv2d(
    input: Tensor,
    weight: SparseWeight,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
) -> Tensor:
    """Computes the convolution of images [n, c, h, w], as torch.nn.functional.conv2d. padding must be numbers.

    Images, weight [m, c, ...] and bias [m] have one dtype. Results of sparse formats are channels-last. Images that are
    not channels-last are copied first. Gradients are those of PyTorch's dense convolution. Raises ValueError for the
    weight of a linear layer, and the errors of a call of an op.
    """
    if len(weight.shape) != 4:
        raise ValueError(f"a weight of {weight.shape} is none of a convolution")
    if weight.format == "dense":
        return torch.nn.functional.conv2d(input, weight.tensors[0], bias, stride, padding, dilation)
    how = {"stride": _numbers(stride), "padding": _numbers(padding), "dilation": _numbers(dilation)}
    name, before, behind = weight._product()
    return ops[f"kpkg::{name}_conv2d"](input, *before, list(weight.shape[2:]), bias, **behind, **how)


def _numbers(value: Numbers) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _density(weight: Tensor) -> float:
    return float((weight != 0).float().mean()) if weight.numel() else 0.0


def _matrix(weight: Tensor, unit: int) -> Tensor:
    """Returns the weight as [n, k], or as [n, rows * columns * c] with c rounded up to a multiple of `unit`."""
    if weight.ndim == 2:
        return weight
    channels = weight.shape[1]
    return torch.nn.functional.pad(weight.permute(0, 2, 3, 1), (0, -channels % unit)).reshape(weight.shape[0], -1)


def _block_size(weight: Tensor) -> int | None:
    sizes = [size for size in _BLOCKS if all(extent and extent % size == 0 for extent in weight.shape[:2])]
    matrix = _matrix(weight, 1)
    return min(sizes, key=lambda size: float(packing.nonzero_blocks(matrix, size).float().mean()), default=None)


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
            tensors = packing.blocks(matrix, size)
        elif format == "csr":
            tensors = packing.compressed(matrix)
        else:
            tensors = packing.halves(matrix) if format == "2:4" else _packed_elements(weight, matrix)
    return SparseWeight(tuple(weight.shape), format, tensors, _density(weight))


def _packed_elements(weight: Tensor, matrix: Tensor) -> tuple[Tensor, ...]:
    if weight.dtype not in _HALVES:
        return packing.elements(matrix)
    if weight.ndim == 2:
        return packing.halves_and_rest(matrix)
    wide = _matrix(weight, STEP)
    packed = packing.half_windows_and_rest(wide, weight.shape[3], wide.shape[1] // (weight.shape[2] * weight.shape[3]))
    few = packed[2].shape[1] <= wide.shape[1] // _MOST_TAKEN
    return packed if few else packing.elements(matrix)


def _fastest(weight: Tensor, size: int | None, sample_input: Tensor, run: Callable[..., Tensor]) -> SparseWeight:
    left_out = {"csr": weight.ndim != 2 or weight.is_cuda, "blocks": size is None, "2:4": not _is_two_of_four(weight)}
    candidates = {name: _packed(weight, name, size) for name in _FORMATS if not left_out.get(name)}
    times: dict[str, float] = {}
    with torch.no_grad():
        for name, candidate in candidates.items():
            if name != "dense":
                mine, dense = (functools.partial(run, sample_input, each) for each in (candidate, candidates["dense"]))
                times[name], theirs = interleaved(mine, dense)
                times["dense"] = min(theirs, times.get("dense", theirs))
    best = candidates[min(times, key=lambda name: times[name])]
    return SparseWeight(best.shape, best.format, best.tensors, best.density, times)
