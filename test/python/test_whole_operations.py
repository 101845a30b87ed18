"""Tests operations on bits, truth values, and whole quotients beside PyTorch: dtypes, numbers, zeros, gradients.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import kpkg
import pytest
import torch
from torch.testing import assert_close

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
NARROW = (torch.float16, torch.bfloat16)
TRUTHS = ("logical_and", "logical_or", "logical_xor")
QUOTIENTS = ("floor_divide", "remainder", "fmod")
NUMBERS = (2, -3, True, 7, 255, -129, 2**31, -(2**40))


def all_bits(shape, dtype):
    x = torch.randint(-(2**63), 2**63 - 1, shape)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def places(shape, dtype):
    return torch.randint(-3 if dtype.is_signed else 0, 70, shape).to(dtype)


def divisors(shape, dtype):
    x = all_bits(shape, dtype)
    return torch.where((x % 2 == 0) | (x == 0), torch.randint(1, 9, shape).to(dtype), x)


def same(found, expected, where=""):
    assert found.dtype == expected.dtype and found.stride() == expected.stride(), where
    assert torch.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0)), where
    if found.dtype.is_floating_point:
        assert torch.equal(found.signbit() & ~found.isnan(), expected.signbit() & ~expected.isnan()), where


def second_of(name):
    return places if name in SHIFTS else divisors if name in QUOTIENTS else all_bits


@pytest.mark.parametrize("name", (*BITS, *SHIFTS, *TRUTHS, *QUOTIENTS))
def test_integers_of_several_dtypes(name, ops):
    op, theirs, second = ops[f"kpkg::{name}"], getattr(torch, name), second_of(name)
    dtypes = INTEGERS if name in (*SHIFTS, *QUOTIENTS) else (*INTEGERS, torch.bool)
    for dtype in dtypes:
        a = all_bits((3, 5), dtype)
        for other in dtypes:
            for b in (second((3, 5), other), second((5,), other), second((3, 1), other), second((), other)):
                same(op(a, b), theirs(a, b), f"{name} of {dtype} and {other}")
        for number in NUMBERS if name not in TRUTHS else ():
            if name in QUOTIENTS and torch.tensor(number).to(dtype) == 0:
                continue  # of which the dtype has the lower bits
            same(op(a, number), theirs(a, number), f"{name} of {dtype} and {number}")
            if name != "fmod":  # which takes no number first
                b = second((4, 3), dtype)[:, 1:]
                same(op(number, b), theirs(number, b), f"{name} of {number} and {dtype}")


@pytest.mark.parametrize("name", ("bitwise_not", "logical_not"))
def test_one_operand(name, ops):
    op, theirs = ops[f"kpkg::{name}"], getattr(torch, name)
    for dtype in (*INTEGERS, torch.bool, *(FLOATS if name == "logical_not" else ())):
        x = all_bits((5, 6, 7), torch.int16).to(dtype) if dtype in FLOATS else all_bits((5, 6, 7), dtype)
        for form in (x, x.permute(2, 0, 1), x[:, ::2, 1:], x[0, 0, 0], x[:0]):
            same(op(form), theirs(form), f"{name} of {dtype}")


SPECIAL = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-3, -700.0)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", (*TRUTHS, *QUOTIENTS))
def test_special_floats(name, dtype, ops):
    x = torch.tensor(SPECIAL, dtype=dtype)
    same(ops[f"kpkg::{name}"](x, x.unsqueeze(1)), getattr(torch, name)(x, x.unsqueeze(1)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_floats_and_numbers(name, dtype, ops):
    """Beside a tensor without dimensions of 16 bits, PyTorch rounds numbers that kpkg keeps."""
    op, theirs = ops[f"kpkg::{name}"], getattr(torch, name)
    x = (torch.randn(40, 33) * 20).to(dtype)
    for number in (0.3, -7.123, 3, 1000.7, math.inf):
        for form in (x, x.t(), x[::2, 1:], *((x[0, 0],) if dtype not in NARROW else ())):
            same(op(form, number), theirs(form, number), f"{name} of {dtype} and {number}")
    for other in (torch.tensor(0.7), torch.tensor(3), torch.tensor(1.7, dtype=torch.float64)):
        same(op(x, other), theirs(x, other), f"{name} of {dtype} and {other}")
        if dtype not in NARROW or other.dtype != torch.int64:
            same(op(x[0, 0], other), theirs(x[0, 0], other), f"{name} of {dtype} and {other}")
    x = torch.randint(-50, 50, (40,)).to(dtype)
    y = torch.where(x == 0, 2, x).flip(0)
    same(op(x, y), theirs(x, y))


@pytest.mark.parametrize("name", ("remainder", "fmod"))
def test_remainders_of_large_quotients_are_exact(name, ops):
    """PyTorch's are NaN for some of them. Those of Python are exact, too."""

    def plain(u, v):
        rest = math.fmod(u, v)
        return rest + v if name == "remainder" and rest and (rest < 0) != (v < 0) else rest

    exponents = torch.randint(-900, 900, (2, 500))
    a, b = torch.randn(2, 500, dtype=torch.float64) * torch.exp2(exponents.double())
    b[:50] = torch.arange(1, 51, dtype=torch.float64) * 5e-324
    expected = [plain(u, v) for u, v in zip(a.tolist(), b.tolist())]
    same(ops[f"kpkg::{name}"](a, b), torch.tensor(expected, dtype=torch.float64))
    exponents = torch.randint(-140, 120, (2, 500))
    a, b = (torch.randn(2, 500, dtype=torch.float64) * torch.exp2(exponents.double())).float()
    b[b == 0] = 1e-45
    expected = [math.fmod(u, v) for u, v in zip(a.tolist(), b.tolist())]
    same(ops["kpkg::fmod"](a, b), torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_integers_are_not_divided_by_0(name, dtype, ops):
    x = torch.arange(1, 5000).to(dtype)
    x[4321] = 0
    for a, b in ((x, x), (x, 0), (x[:7], torch.zeros(2, 1, dtype=dtype))):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(torch, name)(a, b)
        with pytest.raises(kpkg.KernelError, match="ZeroDivisionError: an integer is divided by 0"):
            ops[f"kpkg::{name}"](a, b)
    assert ops[f"kpkg::{name}"](x[:0], 0).shape == (0,)


def test_other_dtypes_are_refused(ops):
    x, mask = torch.ones(3), torch.ones(3, dtype=torch.bool)
    for name in (*BITS, *SHIFTS):
        for arguments in ((x, x), (x, 1), (x.int(), 1.5)):
            with pytest.raises(NotImplementedError):
                getattr(torch, name)(*arguments)
            with pytest.raises(kpkg.KernelError, match="operands are float32, expected integers"):
                ops[f"kpkg::{name}"](*arguments)
    with pytest.raises(kpkg.KernelError, match="operands are float32, expected integers or bools"):
        ops["kpkg::bitwise_not"](x)
    for name, what in (*((name, "integers") for name in SHIFTS), *((name, "numbers") for name in QUOTIENTS)):
        with pytest.raises(NotImplementedError):
            getattr(torch, name)(mask, mask)
        with pytest.raises(kpkg.KernelError, match=f"operands are bool, expected {what}"):
            ops[f"kpkg::{name}"](mask, mask)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", ("remainder", "fmod"))
def test_gradients(name, dtype, ops):
    for shapes in (((3, 70), (3, 70)), ((4, 1), (1, 9)), ((2, 3, 5), (3, 1)), ((5,), ())):
        a, b = ((torch.randn(shape) * 4).to(dtype).requires_grad_() for shape in shapes)
        grad = torch.randn(torch.broadcast_shapes(*shapes)).to(dtype)
        found = torch.autograd.grad(ops[f"kpkg::{name}"](a, b), (a, b), grad)
        exact = torch.autograd.grad(getattr(torch, name)(a.double(), b.double()), (a, b), grad.double())
        for mine, theirs in zip(found, exact):
            unit = 2**-7 if dtype == torch.bfloat16 else 1e-5
            assert_close(mine.double(), theirs.double(), rtol=unit, atol=unit * float(theirs.abs().max()))
    x, y = (torch.rand(6, dtype=torch.float64) + 0.5).requires_grad_(), torch.full((6,), 0.4, dtype=torch.float64)
    assert torch.autograd.gradcheck(ops[f"kpkg::{name}"], (x, y.requires_grad_()))


def test_quotients_have_no_gradient(ops):
    """They have none in PyTorch, either."""
    x = torch.rand(4, requires_grad=True)
    for function in (ops["kpkg::floor_divide"], torch.floor_divide):
        with (
            kpkg.fallback_policy("silent"),
            pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"),
        ):
            function(x, 2.0).sum().backward()


def test_compiled(ops):
    def run(x, y):
        mixed = torch.ops.kpkg.bitwise_xor(torch.ops.kpkg.bitwise_left_shift(x, y), x)
        return torch.ops.kpkg.logical_and(torch.ops.kpkg.remainder(mixed, y), x)

    x, y = torch.randint(0, 99, (7, 5)), torch.randint(1, 9, (5,))
    assert torch.equal(torch.compile(run, backend="aot_eager", fullgraph=True)(x, y), run(x, y))
