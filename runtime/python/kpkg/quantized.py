"""Packs weights of 4 and 8 bits once, for kpkg::int4_linear, int8_linear and fp8_linear.

    weight = kpkg.quantized.pack("gptq", checkpoint_tensors, dtype=torch.bfloat16)
    y = kpkg.quantized.linear(x, weight, bias)

    words = kpkg.quantized.pack_int4(numbers)           # integers from -8 to 7, [n, k]
    y = kpkg.ops.int4_linear(x, words, scales)          # scales [groups, n]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kpkg import _checkpoints
from kpkg._checkpoints import Numbers
from kpkg._default import ops
from kpkg._fp4 import Fp4Weight as Fp4Weight
from kpkg._fp4 import pack_mxfp4 as pack_mxfp4
from kpkg._fp4 import pack_nvfp4 as pack_nvfp4

#: Columns of a row of the packed weight, and rows of a block of words.
_STEP, _BLOCK = 64, 16


@dataclass(frozen=True)
class PackedWeight:
    """A packed weight [n, k].

    * format: "int4", "int8" or "fp8", of the op that takes the tensors.
    * weight: the numbers, in the order of that op.
    * scales, zeros: [groups, n]; `zeros` is None without zero points.
    * order: the columns of the input in the order of the packed weight's, or None for their own order.
    """

    format: str
    shape: tuple[int, int]
    weight: Tensor
    scales: Tensor
    zeros: Tensor | None = None
    order: Tensor | None = None


def pack_int4(numbers: Tensor) -> Tensor:
    """Returns the weight of kpkg::int4_linear: int32 words, eight numbers in each.

    numbers: integers from -8 to 7, [n, k]. GPTQ and AWQ have numbers from 0 to 15 with zero points. Subtract 8 from
    both: here, and from `zeros` of the op.

    Raises ValueError for other numbers, and for a tensor that is no matrix of integers.
    """
    _check_integers(numbers, 4)
    return _words(numbers.int())


def pack_int8(numbers: Tensor) -> Tensor:
    """Returns the weight of kpkg::int8_linear: int32 words with the upper and the lower halves of numbers.

    numbers: integers from -128 to 127, [n, k].

    Raises ValueError for other numbers, and for a tensor that is no matrix of integers.
    """
    _check_integers(numbers, 8)
    whole = numbers.int()
    return torch.stack([_words(whole >> 4), _words(whole & 15)], 1).flatten(0, 1)


def _words(numbers: Tensor) -> Tensor:
    """Returns words with the lowest four bits of numbers."""
    n, k = numbers.shape
    padded = torch.nn.functional.pad(numbers, (0, -k % _STEP, 0, -n % _BLOCK))
    # [blocks, 8 rows apart, row, steps, 16 columns apart, 8 columns apart, 2 columns apart, column]
    fields = padded.reshape(-1, 2, 8, padded.shape[1] // _STEP, 4, 2, 4, 2).permute(3, 0, 2, 6, 4, 7, 5, 1)
    words = torch.zeros(
        padded.shape[1] // _STEP, padded.shape[0] * _STEP // 8, dtype=torch.int32, device=numbers.device
    )
    for i, field in enumerate(fields.reshape(*words.shape, 8).unbind(2)):
        words |= (field & 15) << (4 * i)
    return words


def pack_fp8(numbers: Tensor) -> Tensor:
    """Returns the weight of kpkg::fp8_linear.

    numbers: float8_e4m3fn, [n, k].

    Raises ValueError for a tensor that is no matrix of that dtype.
    """
    if numbers.dim() != 2 or numbers.dtype != torch.float8_e4m3fn:
        raise ValueError(f"numbers is {numbers.dtype} {list(numbers.shape)}, expected torch.float8_e4m3fn [n, k]")
    n, k = numbers.shape
    padded = torch.nn.functional.pad(numbers.view(torch.uint8), (0, -k % _STEP, 0, -n % _BLOCK))
    # [blocks, 8 rows apart, row, steps, 32 columns apart, 16 apart, 8 apart, 2 apart, column]
    parts = padded.reshape(-1, 2, 8, padded.shape[1] // _STEP, 2, 2, 2, 4, 2)
    return parts.permute(3, 0, 4, 2, 7, 5, 6, 1, 8).flatten(1).contiguous().view(numbers.dtype)


def _check_integers(numbers: Tensor, bits: int) -> None:
    if numbers.dim() != 2 or numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ValueError(f"numbers is {numbers.dtype} {list(numbers.shape)}, expected integers [n, k]")
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if numbers.numel() and (int(numbers.min()) < low or int(numbers.max()) > high):
        raise ValueError(f"numbers are from {int(numbers.min())} to {int(numbers.max())}, expected {low} to {high}")


def quantize(weight: Tensor, bits: int = 4, group: int | None = 128) -> PackedWeight:
    """Quantizes a weight by rounding to the nearest number, and packs it.

    weight: a float matrix [n, k].
    bits: 4 or 8.
    group: columns that share a scale, or None for all columns. Scales have the dtype of the weight.

    Raises ValueError for other arguments.
    """
    return pack_numbers(_checkpoints.rounded(weight, bits, group))


def pack(
    layout: str, tensors: Mapping[str, Tensor], *, bits: int = 4, dtype: torch.dtype | None = None
) -> PackedWeight:
    """Packs a weight of a checkpoint.

    layout: the layout of the tensors, whose names are those of checkpoints.
    * "gptq", "gptq_v2": `qweight`, `qzeros`, `scales`, and perhaps `g_idx`. The first adds 1 to zero points. Where
      `g_idx` is not in order, the columns of the input are permuted.
    * "awq": `qweight`, `qzeros`, `scales`.
    * "compressed-tensors": `weight_packed` with `weight_shape`, or `weight` in int8 or float8_e4m3fn; `weight_scale`,
      and perhaps `weight_zero_point` and `weight_g_idx`.
    * "int8": `weight` int8 [n, k], with `scale` [n], [n, 1] or [n, groups].
    * "fp8": `weight` float8_e4m3fn [n, k], with `weight_scale` or `weight_scale_inv`, by which numbers are multiplied:
      one number, [n, 1], or blocks of 128 by 128.
    bits: of the numbers of layouts in words, 4 or 8.
    dtype: the dtype of inputs, which scales get. Default: that of the scales.

    Raises ValueError for other layouts, for tensors that do not fit together, and for groups that no kernel has.
    """
    return pack_numbers(_checkpoints.read(layout, tensors, bits), dtype)


def pack_numbers(read: Numbers, dtype: torch.dtype | None = None) -> PackedWeight:
    """Packs numbers and the values of their groups.

    read: what a checkpoint has.
    dtype: that of scales. Default: as it is.

    Raises ValueError for groups that no kernel has.
    """
    n, k = read.numbers.shape
    values = read.scales if dtype is None else read.scales.to(dtype)
    steps, size = -(-k // _STEP), read.group
    if size % _STEP != 0 and size < k and (size != _STEP // 2 or read.format == "fp8"):
        raise ValueError(f"groups have {size} columns, expected 32, multiples of {_STEP}, or all {k}")
    repeats = 1
    if size > _STEP // 2 and (steps % len(values) or steps // len(values) * _STEP != size) and size < k:
        repeats = size // _STEP  # the last group is shorter, so that each step has a scale of its own

    def expanded(value: Tensor) -> Tensor:
        return value.to(values.dtype).repeat_interleave(repeats, 0)[: max(steps, len(value))].contiguous()

    make = {"int4": pack_int4, "int8": pack_int8, "fp8": pack_fp8}[read.format]
    zeros = None if read.zeros is None else expanded(read.zeros)
    return PackedWeight(read.format, (n, k), make(read.numbers), expanded(values), zeros, read.order)


def stack(weights: Sequence[PackedWeight]) -> PackedWeight:
    """Returns the packed weights of experts as one, for `kpkg::moe_packed` and `kpkg.nn.MoE`.

    weights: those of all experts, of one format and shape, without zero points and orders of columns.

    The tensors of the result have one more dimension, the first; its shape is that of one expert.

    Raises ValueError if they differ.
    """
    if not weights:
        raise ValueError("there are no weights to stack")
    first = weights[0]
    for i, each in enumerate(weights):
        if each.zeros is not None or each.order is not None:
            raise ValueError(f"weight {i} has zero points or an order of columns, which experts do not take")
        if (each.format, each.shape, each.scales.shape) != (first.format, first.shape, first.scales.shape):
            raise ValueError(f"weight {i} is {each.format} {each.shape}, and the first {first.format} {first.shape}")
    tensors = torch.stack([each.weight for each in weights]), torch.stack([each.scales for each in weights])
    return PackedWeight(first.format, first.shape, *tensors)


def linear(input: Tensor, weight: PackedWeight, bias: Tensor | None = None) -> Tensor:
    """Returns `input [..., k]` times the transposed packed weight, plus the bias.

    Raises KernelError for an input that does not fit, or has another dtype than the scales.
    """
    x = input if weight.order is None else input.index_select(-1, weight.order)
    if weight.format == "fp8":
        return ops.fp8_linear(x, weight.weight, weight.scales, bias)
    op = ops.int4_linear if weight.format == "int4" else ops.int8_linear
    return op(x, weight.weight, weight.scales, weight.zeros, bias)
