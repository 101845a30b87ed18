"""Reads quantised weights of checkpoints: numbers, scales and zero points, in the order of the dense weight.

The layouts are those that AutoGPTQ, AutoAWQ and compressed-tensors document.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]

#: AWQ stores column _AWQ_ORDER[i] of each eight in field i of a word.
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_FP8_BLOCK = 128


@dataclass(frozen=True)
class Numbers:
    """Numbers [n, k] of a weight, signed, and values [groups, n]. `order` is that of `PackedWeight`."""

    format: str
    numbers: Tensor
    scales: Tensor
    zeros: Tensor | None
    group: int
    order: Tensor | None = None


def group_size(k: int, group: int | None) -> int:
    """Returns the columns of a group, of which all columns are one where `group` is None or -1."""
    if group is None or group == -1 or group >= k:
        return max(k, 1)
    if group < 1:
        raise ValueError(f"group is {group}, expected columns of a group, or None for all {k}")
    return group


def rounded(weight: Tensor, bits: int, group: int | None) -> Numbers:
    """Quantizes a float matrix [n, k] by rounding to the nearest number. Scales have its dtype."""
    if weight.dim() != 2 or not weight.is_floating_point():
        raise ValueError(f"weight is {weight.dtype} {list(weight.shape)}, expected floats [n, k]")
    if bits not in (4, 8):
        raise ValueError(f"bits is {bits}, expected 4 or 8")
    k = weight.shape[1]
    size = group_size(k, group)
    padded = torch.nn.functional.pad(weight.detach().float(), (0, -k % size)).unflatten(1, (-1, size))
    largest = (1 << bits - 1) - 1
    scales = (padded.abs().amax(2) / largest).to(weight.dtype)
    divisors = torch.where(scales == 0, 1, scales.float()).unsqueeze(2)
    numbers = (padded / divisors).round().clamp(-largest - 1, largest).to(torch.int8).flatten(1)[:, :k]
    return Numbers(f"int{bits}", numbers, scales.t(), None, size)


def read(layout: str, tensors: Tensors, bits: int) -> Numbers:
    """Reads the tensors of a layout, as `kpkg.quantized.pack` describes them."""
    readers: dict[str, Callable[[Tensors, int], Numbers]] = {
        "gptq": lambda t, b: _gptq(t, b, 1),
        "gptq_v2": lambda t, b: _gptq(t, b, 0),
        "awq": _awq,
        "compressed-tensors": _compressed,
        "int8": lambda t, _: _plain_int8(t, "scale"),
        "fp8": lambda t, _: _plain_fp8(t),
    }
    if layout not in readers:
        raise ValueError(f"layout is {layout!r}, expected one of {', '.join(readers)}")
    return readers[layout](tensors, bits)


def _take(tensors: Tensors, name: str, dtype: torch.dtype | None = None, rank: int = 2) -> Tensor:
    if name not in tensors:
        raise ValueError(f"tensors has no {name!r}, only {', '.join(tensors) or 'nothing'}")
    found = tensors[name]
    if found.dim() != rank or dtype is not None and found.dtype != dtype:
        expected = f"{dtype or 'a tensor'} of {rank} dimensions"
        raise ValueError(f"{name} is {found.dtype} {list(found.shape)}, expected {expected}")
    return found.detach()


def _fields(words: Tensor, bits: int, dim: int) -> Tensor:
    """Returns the fields of int32 words, lowest first, as neighbours along `dim`: from 0 on, in int16."""
    if bits not in (4, 8):
        raise ValueError(f"bits is {bits}, expected 4 or 8")
    mask = (1 << bits) - 1
    fields = [((words >> shift) & mask).to(torch.int16) for shift in range(0, 32, bits)]
    return torch.stack(fields, dim + 1).flatten(dim, dim + 1)


def _shape_of(values: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    if tuple(values.shape) != shape:
        raise ValueError(f"{name} has shape {list(values.shape)}, expected {list(shape)}")
    return values


def _zeros_or_none(zeros: Tensor, bits: int) -> Tensor | None:
    """Returns signed zero points, or None if all are 0."""
    signed = zeros - (1 << bits - 1)
    return signed if bool(signed.any()) else None


def _groups_of(count: int, k: int, name: str) -> int:
    """Returns the columns of each of `count` equal groups of k columns."""
    if count < 1 or k % count != 0:
        raise ValueError(f"{name} has {count} groups, which do not divide {k} columns")
    return k // count


def _ordered(g_idx: Tensor | None, count: int, k: int) -> Tensor | None:
    """Returns the columns in the order of their groups, or None if they are in order."""
    if g_idx is None:
        return None
    _shape_of(g_idx, "g_idx", (k,))
    size = _groups_of(count, k, "scales")
    found = g_idx.long()
    if bool((found < 0).all()):  # compressed-tensors marks weights without an order so
        return None
    if bool((found == torch.arange(k, device=found.device) // size).all()):
        return None
    counts = torch.bincount(found.clamp(0, count), minlength=count)
    if bool((found < 0).any()) or len(counts) != count or bool((counts != size).any()):
        raise ValueError(f"g_idx does not give {size} of {k} columns to each of {count} groups")
    return torch.argsort(found, stable=True)


def _gptq(tensors: Tensors, bits: int, offset: int) -> Numbers:
    words, scales = _take(tensors, "qweight", torch.int32), _take(tensors, "scales")
    numbers = _fields(words, bits, 0).t()  # [n, k]
    n, k = numbers.shape
    _shape_of(scales, "scales", (len(scales), n))
    size = _groups_of(len(scales), k, "scales")
    zeros = _fields(_take(tensors, "qzeros", torch.int32), bits, 1)
    _shape_of(zeros, "the unpacked qzeros", (len(scales), n))
    order = _ordered(tensors.get("g_idx"), len(scales), k)
    if order is not None:
        numbers = numbers[:, order]
    signed = (numbers - (1 << bits - 1)).to(torch.int8)
    return Numbers(f"int{bits}", signed, scales, _zeros_or_none(zeros + offset, bits), size, order)


def _awq(tensors: Tensors, bits: int) -> Numbers:
    if bits != 4:
        raise ValueError(f"bits is {bits}, and AWQ has 4")
    scales = _take(tensors, "scales")
    places = torch.tensor(_AWQ_ORDER, device=scales.device).argsort()

    def unpacked(name: str) -> Tensor:
        words = _take(tensors, name, torch.int32)
        return _fields(words, bits, 1).unflatten(1, (-1, 8))[:, :, places].flatten(1)

    numbers, zeros = unpacked("qweight").t(), unpacked("qzeros")
    n, k = numbers.shape
    _shape_of(scales, "scales", (len(scales), n))
    _shape_of(zeros, "the unpacked qzeros", (len(scales), n))
    size = _groups_of(len(scales), k, "scales")
    return Numbers("int4", (numbers - 8).to(torch.int8), scales, _zeros_or_none(zeros, bits), size)


def _compressed(tensors: Tensors, bits: int) -> Numbers:
    if "weight_packed" not in tensors:
        weight = _take(tensors, "weight")
        return _plain_fp8(tensors) if weight.dtype == torch.float8_e4m3fn else _plain_int8(tensors, "weight_scale")
    words = _take(tensors, "weight_packed", torch.int32)
    n, k = (int(extent) for extent in _take(tensors, "weight_shape", rank=1))
    fields = _fields(words, bits, 1)
    if fields.shape[0] != n or not k <= fields.shape[1] < k + 32 // bits:
        shape = list(words.shape)
        raise ValueError(f"weight_packed has shape {shape}, which {bits} bits of {n} x {k} numbers do not fill")
    numbers = fields[:, :k] - (1 << bits - 1)
    scales = _shape_of(_take(tensors, "weight_scale"), "weight_scale", (n, tensors["weight_scale"].shape[1]))
    count = scales.shape[1]
    size = _groups_of(count, k, "weight_scale")
    zeros = tensors.get("weight_zero_point")
    if zeros is not None and zeros.dtype == torch.int32 and zeros.shape[0] != n:
        zeros = _fields(zeros, bits, 0)[:n] - (1 << bits - 1)
    if zeros is not None:
        zeros = _shape_of(zeros, "the unpacked weight_zero_point", (n, count)).t()
        zeros = zeros if bool(zeros.any()) else None
    order = _ordered(tensors.get("weight_g_idx"), count, k)
    if order is not None:
        numbers = numbers[:, order]
    return Numbers(f"int{bits}", numbers.to(torch.int8), scales.t(), zeros, size, order)


def _plain_int8(tensors: Tensors, scale: str) -> Numbers:
    weight = _take(tensors, "weight", torch.int8)
    n, k = weight.shape
    if scale not in tensors:
        raise ValueError(f"tensors has no {scale!r}, only {', '.join(tensors)}")
    given = tensors[scale].detach()
    scales = given.reshape(1, 1).expand(n, 1) if given.numel() == 1 else given.reshape(len(given), -1)
    _shape_of(scales, scale, (n, scales.shape[1]))
    zeros = tensors.get("weight_zero_point")
    if zeros is not None:
        zeros = _shape_of(zeros.reshape(len(scales), -1), "weight_zero_point", tuple(scales.shape)).t()
        zeros = zeros if bool(zeros.any()) else None
    return Numbers("int8", weight, scales.t(), zeros, _groups_of(scales.shape[1], k, scale))


def _plain_fp8(tensors: Tensors) -> Numbers:
    weight = _take(tensors, "weight", torch.float8_e4m3fn)
    n, k = weight.shape
    name = "weight_scale_inv" if "weight_scale_inv" in tensors else "weight_scale"
    if name not in tensors:
        raise ValueError(f"tensors has no 'weight_scale' or 'weight_scale_inv', only {', '.join(tensors)}")
    scale = tensors[name].detach()
    if scale.numel() == 1:
        return Numbers("fp8", weight, scale.reshape(1, 1).expand(1, n), None, max(k, 1))
    if scale.dim() == 1 or scale.dim() == 2 and tuple(scale.shape) == (n, 1):
        return Numbers("fp8", weight, _shape_of(scale.reshape(-1), name, (n,)).reshape(1, n), None, max(k, 1))
    _shape_of(scale, name, (-(-n // _FP8_BLOCK), -(-k // _FP8_BLOCK)))
    return Numbers("fp8", weight, scale.t().repeat_interleave(_FP8_BLOCK, 1)[:, :n], None, _FP8_BLOCK)
