"""Packs weights of 4-bit floats for kpkg::fp4_linear.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

#: Columns of a row of the packed weight, rows of a block of words, and columns of a group.
_STEP, _BLOCK, _MX, _NV = 64, 16, 32, 16


class Fp4Weight(NamedTuple):
    """The arguments of kpkg::fp4_linear behind its input.

    weight: int32 words [..., k / 64, 8 * n].
    scales: [..., groups, n], float8_e8m0fnu (MXFP4) or float8_e4m3fn (NVFP4).
    scale: the factor of the whole weight.
    """

    weight: Tensor
    scales: Tensor
    scale: float = 1.0


def _words(fields: Tensor) -> Tensor:
    """Returns the packed weight of fields [..., n, k], which are integers from 0 to 15."""
    n, k = fields.shape[-2:]
    padded = torch.nn.functional.pad(fields.int(), (0, -k % _STEP, 0, -n % _BLOCK))
    blocks = padded.reshape(-1, padded.shape[-2] // _BLOCK, 2, 8, padded.shape[-1] // _STEP, 4, 2, 4, 2)
    # [weights, steps, blocks, row, 2 columns apart, 16 columns apart, column, 8 columns apart, 8 rows apart]
    ordered = blocks.permute(0, 4, 1, 3, 7, 5, 8, 6, 2).reshape(*fields.shape[:-2], padded.shape[-1] // _STEP, -1, 8)
    words = torch.zeros(ordered.shape[:-1], dtype=torch.int32, device=fields.device)
    for i in range(8):
        words |= ordered[..., i] << 4 * i
    return words


def _halves(bytes: Tensor) -> Tensor:
    """Returns the fields of bytes [..., m] as [..., 2 * m], the low half of a byte first."""
    return torch.stack([bytes & 15, bytes >> 4], -1).flatten(-2)


def _check_bytes(name: str, given: Tensor, shape: str, rank: int) -> Tensor:
    if given.dtype == torch.float4_e2m1fn_x2:
        given = given.view(torch.uint8)
    if given.dtype != torch.uint8 or given.dim() < rank:
        raise ValueError(f"{name} is {given.dtype} {list(given.shape)}, expected uint8 {shape}")
    return given


def _check_scales(name: str, given: Tensor, expected: list[int]) -> None:
    if list(given.shape) != expected:
        raise ValueError(f"{name} has shape {list(given.shape)}, expected {expected}")


def pack_mxfp4(blocks: Tensor, scales: Tensor) -> Fp4Weight:
    """Returns the weight of kpkg::fp4_linear from MXFP4 tensors as in the checkpoints of gpt-oss.

    blocks: uint8 `[..., n, k / 32, 16]`, or `[..., n, k / 2]`. The low half of a byte is the column before the other.
    scales: uint8 or float8_e8m0fnu `[..., n, k / 32]`. They are exponents with a bias of 127.

    Raises ValueError for tensors of other dtypes and shapes.
    """
    blocks = _check_bytes("blocks", blocks, "[..., n, k / 32, 16] or [..., n, k / 2]", 2)
    if scales.dtype not in (torch.uint8, torch.float8_e8m0fnu) or scales.dim() < 2:
        raise ValueError(
            f"scales is {scales.dtype} {list(scales.shape)}, expected uint8 or float8_e8m0fnu [..., n, k / {_MX}]"
        )
    if blocks.dim() == scales.dim() + 1 and blocks.shape[-1] == _MX // 2:
        blocks = blocks.flatten(-2)
    _check_scales("scales", scales, [*blocks.shape[:-1], blocks.shape[-1] * 2 // _MX])
    if blocks.shape[-1] * 2 % _MX:
        raise ValueError(f"blocks have rows of {blocks.shape[-1] * 2} columns, expected a multiple of {_MX}")
    groups = scales.view(torch.uint8).mT.contiguous()
    return Fp4Weight(_words(_halves(blocks)), groups.view(torch.float8_e8m0fnu))


def pack_nvfp4(
    weight_packed: Tensor,
    weight_scale: Tensor,
    *,
    weight_global_scale: Tensor | float | None = None,
    weight_scale_2: Tensor | float | None = None,
) -> Fp4Weight:
    """Returns the weight of kpkg::fp4_linear from NVFP4 tensors as in checkpoints of compressed-tensors and ModelOpt.

    `weight_packed` is uint8 `[..., n, k / 2]`. The low half of a byte is the column before the other. `weight_scale` is
    float8_e4m3fn `[..., n, k / 16]`. Those of compressed-tensors were multiplied by `weight_global_scale`. Those of
    ModelOpt are to be multiplied by `weight_scale_2`. At most one of both is given.

    Raises ValueError for tensors of other dtypes and shapes, and for both factors.
    """
    weight_packed = _check_bytes("weight_packed", weight_packed, "[..., n, k / 2]", 2)
    if weight_scale.dtype != torch.float8_e4m3fn:
        raise ValueError(f"weight_scale is {weight_scale.dtype}, expected float8_e4m3fn [..., n, k / {_NV}]")
    if weight_packed.shape[-1] * 2 % _NV:
        raise ValueError(
            f"weight_packed has rows of {weight_packed.shape[-1] * 2} columns, expected a multiple of {_NV}"
        )
    _check_scales("weight_scale", weight_scale, [*weight_packed.shape[:-1], weight_packed.shape[-1] * 2 // _NV])
    if weight_global_scale is not None and weight_scale_2 is not None:
        raise ValueError("weight_global_scale and weight_scale_2 are both given, expected at most one")
    scale = 1.0
    if weight_global_scale is not None:
        scale = 1.0 / _number("weight_global_scale", weight_global_scale)
    elif weight_scale_2 is not None:
        scale = _number("weight_scale_2", weight_scale_2)
    groups = weight_scale.view(torch.uint8).mT.contiguous()
    return Fp4Weight(_words(_halves(weight_packed)), groups.view(torch.float8_e4m3fn), scale)


def _number(name: str, value: Tensor | float) -> float:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"{name} has shape {list(value.shape)}, expected one number: pack each weight on its own")
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} is {number}, expected a positive number")
    return number
