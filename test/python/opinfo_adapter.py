"""PyTorch's own signatures of ops, computed by kpkg ops: what OpInfo samples are run against.

The functions refuse what PyTorch refuses. `KPKG_ADAPTER_PACKAGES` names the folder of the packages (default: those that the tests build).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_ROOT = Path(__file__).resolve().parents[2]
_BUILD = (_ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
if str(_BUILD / "python") not in sys.path:
    sys.path.insert(0, str(_BUILD / "python"))

import kpkg  # noqa: E402

OPS = ("softmax", "log_softmax", "layer_norm", "native_layer_norm", "rms_norm", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention")


@functools.cache
def _library(family: str) -> kpkg.CustomOpLibrary:
    folder = Path(os.environ.get("KPKG_ADAPTER_PACKAGES", _BUILD / "test-packages"))
    library = kpkg.load(folder / f"{family}.kpkg")
    library.set_fallback_policy("strict")  # an answer from PyTorch would prove nothing
    return library


def _along(op: str, input: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    result: Tensor = getattr(_library("softmax"), op)(input if dtype is None else input.to(dtype), dim)
    return result


def softmax(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return _along("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return _along("log_softmax", input, dim, dtype)


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    result: Tensor = _library("norm").layer_norm(input, list(normalized_shape), weight, bias, eps)
    return result


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    out, mean, rstd = _library("norm").native_layer_norm(input, list(normalized_shape), weight, bias, eps)
    if input.device.type == "cpu":  # there PyTorch rounds the statistics to the input's dtype
        mean, rstd = mean.to(input.dtype), rstd.to(input.dtype)
    return out, mean, rstd


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    if eps is None:
        eps = torch.finfo(torch.float64 if input.dtype == torch.float64 else torch.float32).eps
    result: Tensor = _library("norm").rms_norm(input, list(normalized_shape), weight, eps)
    return result


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    result: Tensor = _library("gemm").gemm(input, mat2)
    return result


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    _need(input.dim() == 3 and mat2.dim() == 3, "bmm takes tensors of rank 3")
    _need(input.shape[0] == mat2.shape[0], "bmm does not broadcast batches")
    result: Tensor = _library("gemm").gemm_batched(input, mat2)
    return result


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _need(input.dtype == mat1.dtype, "addmm takes one dtype")
    result: Tensor = _library("gemm").gemm(mat1, mat2, alpha, beta, c=input)
    return result


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    _need(batch1.dim() == 3 and batch2.dim() == 3, "baddbmm takes tensors of rank 3")
    _need(batch1.shape[0] == batch2.shape[0], "baddbmm does not broadcast batches")
    _need(input.dtype == batch1.dtype, "baddbmm takes one dtype")
    result: Tensor = _library("gemm").gemm_batched(batch1, batch2, alpha, beta, input)
    return result


def _each(value: Any) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _conv(rank: int) -> Any:
    def conv(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
        numbers, word = ([0], padding) if isinstance(padding, str) else (_each(padding), "")
        result: Tensor = getattr(_library("conv"), f"conv{rank}d")(input, weight, bias, _each(stride), numbers, _each(dilation), groups, word)
        return result

    return conv


def _conv_transpose(rank: int) -> Any:
    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1
    ) -> Tensor:
        op = getattr(_library("conv"), f"conv_transpose{rank}d")
        result: Tensor = op(input, weight, bias, _each(stride), _each(padding), _each(output_padding), groups, _each(dilation))
        return result

    return conv


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False
) -> Tensor:  # fmt: skip
    if dropout_p:
        raise NotImplementedError("dropout runs in PyTorch")
    op = _library("attention").scaled_dot_product_attention
    result: Tensor = op(query, key, value, attn_mask, dropout_p, is_causal, scale or 0.0, enable_gqa)
    return result
