"""Tests exact_mode of residual_tanh_gated_rmsnorm: it has the bits of PyTorch's eager operations on CPUs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import platform

import kpkg
import pytest
import torch
from conftest import torch_threads

NAME = "kpkg::residual_tanh_gated_rmsnorm"
HALVES = [torch.float16, torch.bfloat16]
# Rows shorter than a vector, with and without a remainder, and with one, two and three levels of partial sums.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 63, 100, 511, 512, 513, 1000, 3072, 4097, 8197, 20000]

is_like_pytorch = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the order of PyTorch's sums is that of vectors of 256 bits"
)


def expression(x, x_res, gate, eps=1e-6):
    wide = x_res if x_res.dtype == torch.float64 else x_res.float()
    return x + (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * torch.tanh(gate)


def tensors(dtype, *shapes):
    generator = torch.Generator().manual_seed(5)
    return [(3 * torch.randn(shape, generator=generator)).to(dtype) for shape in shapes]


@pytest.fixture
def two_threads():
    with torch_threads(2):
        yield


@is_like_pytorch
@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("dtype", HALVES)
def test_exact_mode_has_the_bits_of_the_expression(ops, two_threads, dtype, rows):
    for n in WIDTHS:
        x, x_res, gate = tensors(dtype, (rows, n), (rows, n), (n,))
        assert torch.equal(ops[NAME](x, x_res, gate, exact_mode=True), expression(x, x_res, gate)), n


@is_like_pytorch
@pytest.mark.parametrize("dtype", HALVES)
def test_exact_mode_of_many_rows(ops, dtype):
    """In float16, a sum in another order differs in about one of 50,000 elements."""
    x, x_res, gate = tensors(dtype, (512, 3072), (512, 3072), (3072,))
    expected = expression(x, x_res, gate)
    assert torch.equal(ops[NAME](x, x_res, gate, exact_mode=True), expected)
    assert not torch.equal(ops[NAME](x, x_res, gate), expected)  # one rounding in place of four


@is_like_pytorch
@pytest.mark.parametrize("dtype", HALVES)
def test_exact_mode_of_other_forms(ops, dtype):
    x, x_res, gate, each = tensors(dtype, (4, 6, 200), (6, 4, 200), (4, 1, 200), (4, 6, 200))
    turned = x_res.transpose(0, 1)
    for one in (gate, each, gate[0, 0], gate[:1, :, :1]):
        assert torch.equal(ops[NAME](x, turned, one, 1e-5, exact_mode=True), expression(x, turned, one, 1e-5))
    parts = x_res.transpose(0, 1)[..., ::2]
    assert torch.equal(
        ops[NAME](x[..., 1::2], parts, gate[..., :100], exact_mode=True),
        expression(x[..., 1::2], parts, gate[..., :100]),
    )
    rows = torch.tensor([[float("inf"), 1.0], [float("nan"), 0.0], [0.0, 0.0], [6e4, -6e4]], dtype=dtype)
    x, gate = tensors(dtype, (4, 2), (2,))
    found = ops[NAME](x, rows, gate, exact_mode=True)
    torch.testing.assert_close(found, expression(x, rows, gate), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_mode_of_wide_types_is_pytorchs_own(packages, dtype):
    """Their tanh comes from a library whose bits no kernel reproduces; PyTorch runs, and `kernel_info` says so."""
    library = kpkg.load(packages["residual"])  # `kernel_info` describes the newest library with the name
    op = next(op for op in library if op.name == NAME)
    before = op.stats()["fallbacks"]
    with kpkg.fallback_policy("silent"):
        for n in WIDTHS:
            x, x_res, gate = tensors(dtype, (5, n), (5, n), (n,))
            assert torch.equal(op(x, x_res, gate, exact_mode=True), expression(x, x_res, gate)), n
    assert op.stats()["fallbacks"] == before + len(WIDTHS)
    assert any(str(dtype)[6:] in reason for reason in kpkg.kernel_info(NAME)["fallback_reasons"])
    assert not op.supports(x, x_res, gate, exact_mode=True) and op.supports(x, x_res, gate)
    with pytest.raises(kpkg.KernelError, match="dtype float"):
        op(x, x_res, gate, exact_mode=True)  # under "strict"


@is_like_pytorch
def test_exact_mode_has_gradients(ops):
    x, x_res, gate = (t.requires_grad_() for t in tensors(torch.bfloat16, (3, 40), (3, 40), (40,)))
    expected = torch.autograd.grad(expression(x, x_res, gate).float().sum(), (x, x_res, gate))
    out = ops[NAME](x, x_res, gate, exact_mode=True)
    for mine, theirs in zip(torch.autograd.grad(out.float().sum(), (x, x_res, gate)), expected):
        torch.testing.assert_close(mine, theirs, rtol=0.05, atol=0.05)
