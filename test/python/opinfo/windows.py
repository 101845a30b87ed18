"""Convolutions and poolings with PyTorch's signatures, computed by kpkg.

The functions refuse the arguments that PyTorch refuses; they raise LeftToPyTorch for calls that kpkg does not support.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from opinfo.libraries import library


def _each(value: Any) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _conv(rank: int) -> Any:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        numbers, word = ([0], padding) if isinstance(padding, str) else (_each(padding), "")
        result: Tensor = getattr(library("conv"), f"conv{rank}d")(
            input, weight, bias, _each(stride), numbers, _each(dilation), groups, word
        )
        return result

    return conv


def _conv_transpose(rank: int) -> Any:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        op = getattr(library("conv"), f"conv_transpose{rank}d")
        result: Tensor = op(
            input, weight, bias, _each(stride), _each(padding), _each(output_padding), groups, _each(dilation)
        )
        return result

    return conv


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))


def _pool(kind: str, rank: int) -> Any:
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        op = getattr(library("pooling"), f"max_pool{rank}d" + ("_with_indices" if return_indices else ""))
        return op(
            input,
            _each(kernel_size),
            [] if stride is None else _each(stride),
            _each(padding),
            _each(dilation),
            ceil_mode,
        )

    def avg_pool(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None
    ) -> Tensor:  # fmt: skip
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        op = getattr(library("pooling"), f"avg_pool{rank}d")
        strides = [] if stride is None else _each(stride)
        result: Tensor = op(
            input, _each(kernel_size), strides, _each(padding), ceil_mode, count_include_pad, divisor_override or 0
        )
        return result

    return max_pool if kind == "max" else avg_pool


max_pool1d, max_pool2d, max_pool3d = (_pool("max", rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool("avg", rank) for rank in (1, 2, 3))
