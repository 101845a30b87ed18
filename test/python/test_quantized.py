"""Checks products with packed weights of 4 and 8 bits: packing, gradients, compiled form, and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from torch.testing import assert_close

BF16 = torch.bfloat16


def numbers(n, k, seed=0, dtype=torch.int8):
    return torch.randint(-8, 8, (n, k), generator=torch.Generator().manual_seed(seed)).to(dtype)


def dense(weight, scales, zeros=None):
    groups = weight.double().unflatten(1, (len(scales), -1))
    if zeros is not None:
        groups = groups - zeros.double().t().unsqueeze(2)
    return (groups * scales.double().t().unsqueeze(2)).flatten(1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("n, k, groups", [(16, 64, 1), (40, 192, 3), (130, 256, 2), (1, 64, 1)])
def test_packed_numbers(n, k, groups, dtype, ops):
    weight, scales = numbers(n, k, n, dtype), torch.rand(groups, n).to(BF16)
    zeros = numbers(groups, n, 1).to(BF16)
    packed = kpkg.quantized.pack_int4(weight)
    assert packed.shape == (k // 64, -(-n // 16) * 128) and packed.dtype == torch.int32
    x = torch.eye(k, dtype=BF16)
    with kpkg.fallback_policy("strict"):
        assert_close(ops["kpkg::int4_linear"](x, packed, scales), dense(weight, scales).t().to(BF16))
        assert_close(ops["kpkg::int4_linear"](x, packed, scales, zeros), dense(weight, scales, zeros).t().to(BF16))


@pytest.mark.parametrize("n, k, groups", [(16, 64, 1), (40, 192, 6), (130, 256, 2)])
def test_packed_numbers_of_8_bits(n, k, groups, ops):
    whole = torch.arange(n * k).reshape(n, k).remainder(256) - 128
    scales, x = torch.rand(groups, n).to(BF16), torch.eye(k, dtype=BF16)
    with kpkg.fallback_policy("strict"):
        found = ops["kpkg::int8_linear"](x, kpkg.quantized.pack_int8(whole), scales)
        assert_close(found, dense(whole, scales).t().to(BF16))
        if groups < 6:
            floats = torch.randn(n, k).to(torch.float8_e4m3fn)
            found = ops["kpkg::fp8_linear"](x, kpkg.quantized.pack_fp8(floats), scales)
            assert_close(found, dense(floats, scales).t().to(BF16))


@pytest.mark.parametrize("name", ["int8", "fp8"])
def test_gradients_of_8_bits(name, ops):
    whole = torch.randint(-8, 8, (32, 128)).to(torch.int8)
    floats = whole.to(torch.float8_e4m3fn)
    packed = kpkg.quantized.pack_int8(whole) if name == "int8" else kpkg.quantized.pack_fp8(floats)
    scales, x = torch.rand(2, 32).to(BF16), torch.randn(5, 128).to(BF16).requires_grad_()
    with kpkg.fallback_policy("silent"):
        y = ops[f"kpkg::{name}_linear"](x, packed, scales)
        (found,) = torch.autograd.grad(y, x, torch.ones_like(y))
    expected = torch.ones(5, 32).double() @ dense(whole, scales)
    assert_close(found.double(), expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))


def test_columns_that_are_no_multiple_of_64(ops):
    weight, scales = numbers(24, 100), torch.rand(1, 24).to(BF16)
    packed = kpkg.quantized.pack_int4(weight)
    y = ops["kpkg::int4_linear"](torch.eye(100, dtype=BF16), packed, scales)
    assert_close(y, dense(weight, scales).t().to(BF16))


def test_gradients_and_compiled_form(ops):
    weight, scales = kpkg.quantized.pack_int4(numbers(32, 128)), torch.rand(2, 32).to(BF16)
    x = torch.randn(5, 128).to(BF16).requires_grad_()
    with kpkg.fallback_policy("silent"):
        direction = torch.randn(5, 32).to(BF16)
        (found,) = torch.autograd.grad(ops["kpkg::int4_linear"](x, weight, scales), x, direction)
    expected = direction.double() @ dense(numbers(32, 128), scales)
    assert_close(found.double(), expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))
    compiled = torch.compile(lambda *a: ops["kpkg::int4_linear"](*a), fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_close(compiled(x, weight, scales), ops["kpkg::int4_linear"](x, weight, scales))


X, W, S = torch.zeros(3, 128, dtype=BF16), torch.zeros(2, 128, dtype=torch.int32), torch.zeros(2, 16, dtype=BF16)
MISTAKES = [
    ((X, W.long(), S), r"weight is int64 \[2, 128\], expected int32 \[k / 64, 8 \* n\]"),
    ((X, W[:, :64], S), r"weight has shape \[2, 64\], expected \[k / 64, 128\] for 16 columns of scales"),
    ((X, W, S[0]), r"scales has shape \[16\], expected \[groups, n\]"),
    ((X, W, S.float()), r"input is bfloat16, and scales are float32"),
    ((X[:, :64], W, S), r"input has shape \[3, 64\]: weight has 2 \* 64 columns"),
    ((X, W, torch.cat([S, S[:1]])), r"scales has 3 groups, which 128 columns do not have"),
    (
        (X.repeat(1, 2), W.repeat(2, 1), torch.cat([S, S[:1]])),
        r"weight has 4 rows of 64 columns, which 3 groups do not",
    ),
    ((X, W, S, S[:1]), r"zeros is bfloat16 \[1, 16\], expected bfloat16 \[2, 16\]"),
    ((X, W, S, None, S), r"bias is bfloat16 \[2, 16\], expected bfloat16 \[16\]"),
]


@pytest.mark.parametrize("given, message", MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_mistakes(given, message, ops):
    with pytest.raises(Exception, match=message):
        ops["kpkg::int4_linear"](*given)


W8 = torch.zeros(4, 128, dtype=torch.int32)
MISTAKES_OF_8_BITS = [
    ("int8", (X, W8[:2], S), r"input has shape \[3, 128\]: weight has 1 \* 64 columns"),
    ("int8", (X, W8.long(), S), r"weight is int64 \[4, 128\], expected int32 \[2 \* k / 64, 8 \* n\]"),
    ("fp8", (X, W, S), r"weight is int32 \[2, 128\], expected float8_e4m3fn \[k / 64, 64 \* n\]"),
]


@pytest.mark.parametrize("name, given, message", MISTAKES_OF_8_BITS)
def test_mistakes_of_8_bits(name, given, message, ops):
    with pytest.raises(Exception, match=message):
        ops[f"kpkg::{name}_linear"](*given)


def test_mistakes_of_packing():
    with pytest.raises(ValueError, match=r"numbers are from -8 to 9, expected -8 to 7"):
        kpkg.quantized.pack_int4(torch.tensor([[-8, 9]]))
    with pytest.raises(ValueError, match=r"numbers is torch.float32 \[2, 2\], expected integers \[n, k\]"):
        kpkg.quantized.pack_int4(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"numbers are from 0 to 128, expected -128 to 127"):
        kpkg.quantized.pack_int8(torch.tensor([[0, 128]]))
    with pytest.raises(ValueError, match=r"numbers is torch.float32 \[2, 2\], expected torch.float8_e4m3fn"):
        kpkg.quantized.pack_fp8(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"bits is 3, expected 4 or 8"):
        kpkg.quantized.quantize(torch.zeros(2, 2), bits=3)
