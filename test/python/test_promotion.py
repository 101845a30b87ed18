"""Tests operands of several dtypes, Python numbers and tensors without dimensions.

Results have PyTorch's dtype and value, and casts are counted.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

ELEMENTWISE = {name: getattr(torch, name) for name in ("add", "sub", "mul", "div")}
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def tolerance(dtype):
    """Returns two units in the last place of the result; PyTorch may round an operand once more."""
    return {torch.float64: 1e-14, torch.float32: 1e-6, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}[dtype]


def compare(found, expected, where):
    assert found.dtype == expected.dtype and found.shape == expected.shape, where
    unit = tolerance(expected.dtype)
    assert_close(found, expected, rtol=unit, atol=unit, msg=lambda text: f"{where}: {text}")


def operands():
    """Yields second operands for a tensor [5, 7]."""
    yield from (2, 0.1, True, -3.5)
    yield from (torch.tensor(0.3), torch.tensor(2), torch.tensor(0.7, dtype=torch.float64))
    yield from (torch.rand(5, 7).to(other) + 0.5 for other in FLOATS)
    yield torch.randint(1, 5, (7,))
    yield torch.rand(5, 1, dtype=torch.float64) + 1


def as_tensor(value):
    """Turns a number on the left into a tensor, because PyTorch's functions take no number there."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name, dtype, ops):
    x, op, theirs = torch.rand(5, 7).to(dtype) + 0.5, ops[f"kpkg::{name}"], ELEMENTWISE[name]
    for value in operands():
        if name == "sub" and value is True:
            continue  # PyTorch refuses Bool
        compare(op(x, value), theirs(x, value), f"{name} with {value}")
        compare(op(value, x), theirs(as_tensor(value), x), f"{name} with {value} on the left")
    compare(op(x.t(), 0.1), theirs(x.t(), 0.1), "a transposed tensor and a number")
    compare(op(x[0, 0], 0.1), theirs(x[0, 0], 0.1), "a number and a tensor without dimensions")


MASK = torch.tensor([True, False])
BESIDE_BOOLS = [(torch.ones(2), MASK), (MASK, torch.ones(2).bfloat16()), (torch.ones(2), True), (True, torch.ones(2))]
BESIDE_BOOLS += [(MASK.long(), MASK), (MASK, 1), (MASK, 0.5), (torch.ones(2).half(), MASK[0]), (MASK.byte(), True)]


@pytest.mark.parametrize("a, b", BESIDE_BOOLS)
def test_differences_of_bools_are_refused(a, b, ops):
    for run in (lambda: ops["kpkg::sub"](a, b), lambda: ops["kpkg::sub"](a, b, alpha=2.0)):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            run()
    with kpkg.fallback_policy("silent"):
        for name in ("add", "mul"):
            found, expected = ops[f"kpkg::{name}"](a, b), ELEMENTWISE[name](as_tensor(a), b)
            assert found.dtype == expected.dtype and torch.equal(found, expected)


INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
PAIRS = ELEMENTWISE | {name: getattr(torch, name) for name in ("minimum", "maximum")}
NUMBERS = (2, -3, True, 0, 255, -129, 2**31, -(2**40), 2**63 - 1)


def same(found, expected, where):
    assert found.dtype == expected.dtype and torch.equal(found, expected), where


def all_bits(shape, dtype):
    x = torch.randint(-(2**63), 2**63 - 1, shape)
    return x > 0 if dtype == torch.bool else x.to(dtype)


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "div"])
def test_integers_of_several_dtypes(name, ops):
    """Results wrap around, also those of numbers and tensors without dimensions."""
    op, theirs = ops[f"kpkg::{name}"], PAIRS[name]
    for dtype in (*INTEGERS, torch.bool):
        a = all_bits((3, 5), dtype)
        for other in (*INTEGERS, torch.bool):
            if name == "sub" and torch.bool in (dtype, other):
                continue  # PyTorch refuses bools
            for b in (all_bits((3, 5), other), all_bits((5,), other), all_bits((3, 1), other), all_bits((), other)):
                same(op(a, b), theirs(a, b), f"{name} of {dtype} and {other}")
                same(op(b.t() if b.dim() == 2 else b, a[0, 0]), theirs(b.t() if b.dim() == 2 else b, a[0, 0]), name)
        for number in NUMBERS if name in ("add", "mul") else ():
            same(op(a, number), theirs(a, number), f"{name} of {dtype} and {number}")
            same(op(number, a[::2]), theirs(torch.tensor(number), a[::2]), f"{name} of {number} and {dtype}")


def test_bools_are_refused_as_by_pytorch(ops):
    for name, arguments in {"sub": (MASK, MASK), "neg": (MASK,), "relu": (MASK[:0],)}.items():
        with pytest.raises(RuntimeError) as theirs:
            getattr(torch, name)(*arguments)
        with pytest.raises(kpkg.KernelError) as mine:
            ops[f"kpkg::{name}"](*arguments)
        assert str(mine.value) == f"kpkg::{name}: {theirs.value}"


def test_integers_agree_with_references(ops):
    for name in ("add", "sub", "mul", "minimum", "maximum", "abs", "relu", "neg", "sign", "square"):
        op = ops[f"kpkg::{name}"]
        for dtype in INTEGERS:
            x, y = all_bits((3, 67), dtype), all_bits((67,), dtype)
            arguments = (x, y)[: len(op.arguments)]
            found = op(*(v.numpy() for v in arguments))
            same(torch.from_numpy(found), ops[op._native.reference](*arguments), f"{name} of {dtype}")


def test_alpha_of_integers_is_an_integer(ops):
    x, y = torch.tensor([2**60 + 1, -3, 5]), torch.tensor([7, 2**59 + 1, -1])
    for alpha in (1, 3, -2):
        same(ops["kpkg::add"](x, y, alpha=alpha), torch.add(x, y, alpha=alpha), "add")
        same(ops["kpkg::sub"](x.byte(), y, alpha=alpha), torch.sub(x.byte(), y, alpha=alpha), "sub")
        same(ops["kpkg::sub"](x.byte(), y.byte(), alpha=alpha), torch.sub(x.byte(), y.byte(), alpha=alpha), "sub")
    same(ops["kpkg::add"](MASK, ~MASK, alpha=0), torch.add(MASK, ~MASK, alpha=0), "add")
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        ops["kpkg::add"](x, y, alpha=1.5)
    for dtype, alpha in ((torch.int8, 128), (torch.uint8, -256), (torch.int32, 2**31)):
        for name, factor in (("add", alpha), ("sub", -alpha)):
            with pytest.raises(RuntimeError):
                ELEMENTWISE[name](x.to(dtype), y.to(dtype), alpha=factor)
            with pytest.raises(kpkg.KernelError, match=f"alpha {factor} does not fit {str(dtype)[6:]}"):
                ops[f"kpkg::{name}"](x.to(dtype), y.to(dtype), alpha=factor)
    with pytest.raises(kpkg.KernelError, match=r"alpha 9007199254740994 may be rounded, since it is over 2\^53"):
        ops["kpkg::add"](x, y, alpha=2**53 + 2)


def test_integers_beside_a_float_without_dimensions(ops):
    x, y = torch.tensor([[3, -4], [5, 6]]), torch.tensor(0.5)
    for name, theirs in ELEMENTWISE.items():
        compare(ops[f"kpkg::{name}"](x, y), theirs(x, y), f"{name} with a float")
        compare(ops[f"kpkg::{name}"](y, x.byte()), theirs(y, x.byte()), f"{name} with a float on the left")


def test_comparisons_without_dimensions_are_bools(ops):
    for dtype in FLOATS:
        x = torch.tensor(1.5, dtype=dtype)
        for name in ("lt", "ge", "ne"):
            found, expected = ops[f"kpkg::{name}"](x, 2.5), getattr(torch, name)(x, 2.5)
            assert found.dtype == torch.bool and torch.equal(found, expected)


def test_numbers_out_of_range(ops):
    """Floats become infinite, as in PyTorch."""
    x = torch.tensor([1.0, -1.0, 0.0])
    for value in (1e300, -1e300, 2**63):
        for dtype in (torch.float32, torch.bfloat16):
            found, expected = ops["kpkg::mul"](x.to(dtype), value), x.to(dtype) * value
            assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16))
def test_numbers_keep_the_digits_that_the_dtype_has_not(dtype, ops):
    x = torch.randn(4096).to(dtype)
    exact = (x.double() * (1 + 2.0**-12)).to(dtype)
    assert torch.equal(ops["kpkg::mul"](x, 1 + 2.0**-12), exact)
    assert torch.equal(ops["kpkg::mul"](torch.tensor(1 + 2.0**-12), x), exact)


def test_gradients_have_the_dtypes_of_the_operands(ops):
    a, b = torch.rand(3, 4).bfloat16().requires_grad_(), torch.rand(4).requires_grad_()
    with kpkg.fallback_policy("silent"):  # PyTorch computes the gradients of sums
        ops["kpkg::mul"](a, b).sum().backward()
        ops["kpkg::add"](a, 1.5).sum().backward()
    assert a.grad.dtype == torch.bfloat16 and b.grad.dtype == torch.float32
    assert_close(b.grad, a.detach().float().sum(0))


def test_products_of_two_dtypes(ops):
    a, b, bias = torch.randn(9, 8).bfloat16(), torch.randn(8, 7), torch.randn(7, dtype=torch.float16)
    assert_close(ops["kpkg::gemm"](a, b, bias=bias), a.float() @ b + bias)
    assert_close(ops["kpkg::linear"](a, b.t(), bias), a.float() @ b + bias)
    assert_close(ops["kpkg::gemm_batched"](a.half()[None], b.double()[None])[0], a.double() @ b.double())


def test_products_by_their_other_names(ops):
    a, b = torch.randn(9, 8).bfloat16(), torch.randn(8, 7)
    before = dict(ops["kpkg::matmul"].promotions)
    assert_close(ops["kpkg::matmul"](a, b), a.float() @ b)
    assert_close(ops["kpkg::matmul"](a, b[:, 0].double()), a.double() @ b[:, 0].double())
    assert_close(ops["kpkg::bmm"](a[None], b[None].half()), torch.bmm(a[None].float(), b[None].half().float()))
    assert_close(ops["kpkg::gemv"](a, b[:, 0]), torch.mv(a.float(), b[:, 0]))
    after = ops["kpkg::matmul"].promotions
    assert after["bfloat16, float32 -> float32"] == before.get("bfloat16, float32 -> float32", 0) + 1


NORMS = {
    "layer_norm": lambda x, w: F.layer_norm(x, (8,), w, w),
    "native_layer_norm": lambda x, w: torch.native_layer_norm(x, (8,), w, w, 1e-5),
    "rms_norm": lambda x, w: F.rms_norm(x, (8,), w, 1e-6),
    "group_norm": lambda x, w: F.group_norm(x, 2, w, w),
    "instance_norm": lambda x, w: F.instance_norm(x, weight=w, bias=w),
    "batch_norm": lambda x, w: F.batch_norm(x, w, w.abs(), w, w),
    "batch_norm_training": lambda x, w: F.batch_norm(x, None, None, w, w, True),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_with_wide_parameters(name, ops):
    """The result has the dtype of the input, as PyTorch's has on CPUs."""
    x, w = torch.randn(4, 8, 8).bfloat16(), torch.rand(8) + 0.5
    op = ops[f"kpkg::{name}"]
    arguments = {
        "group_norm": (2, w, w), "instance_norm": (w, w), "batch_norm": (w, w, w, w), "batch_norm_training": (w, w)
    }.get(name, ([8], w) if name == "rms_norm" else ([8], w, w))  # fmt: skip
    found, expected = op(x, *arguments), NORMS[name](x, w)
    found = found[0] if name == "batch_norm_training" else found
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for mine, theirs in pairs:
        assert_close(mine, theirs.view_as(mine), atol=0.03, rtol=0.02)


def test_layers_take_narrow_inputs(default_ops):
    x = torch.randn(4, 8, 8).bfloat16()
    for kind, *arguments in (("LayerNorm", 8), ("RMSNorm", 8), ("GroupNorm", 2, 8), ("BatchNorm1d", 8)):
        mine, theirs = getattr(kpkg.nn, kind)(*arguments), getattr(torch.nn, kind)(*arguments)
        assert_close(mine(x), theirs(x), atol=0.03, rtol=0.02)


def test_casts_are_counted(ops):
    before = dict(ops["kpkg::add"].promotions)
    ops["kpkg::add"](torch.ones(2).bfloat16(), torch.ones(2))
    ops["kpkg::add"](torch.ones(2), 2.0)
    ops["kpkg::add"](torch.ones(2), torch.ones(2))
    after = dict(ops["kpkg::add"].promotions)
    for text in ("bfloat16, float32 -> float32", "float32, number -> float32"):
        assert after[text] == before.get(text, 0) + 1
    assert sum(after.values()) == sum(before.values()) + 2


def test_the_dispatcher_and_other_languages_get_an_error_with_both_dtypes(ops):
    ops["kpkg::add"](torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="a is bfloat16 and b is float32"):
        torch.ops.kpkg.add(torch.ones(2).bfloat16(), torch.ones(2))
    with pytest.raises(kpkg.KernelError, match="a is float64 and b is float32"):
        ops["kpkg::add"](torch.ones(2).double().numpy(), torch.ones(2).numpy())


def test_what_is_no_number_is_refused_as_before(ops):
    with pytest.raises(TypeError, match="argument 'b' is 'one', expected Tensor"):
        ops["kpkg::add"](torch.ones(2), "one")


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_samples_of_pytorchs_own_tests_of_promotion(name, dtype, ops):
    from opinfo import samples  # noqa: F401  (its stand-in for a module that PyTorch's tests import)
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo.core import (
        generate_elementwise_binary_with_scalar_and_type_promotion_samples,
        generate_elementwise_binary_with_scalar_samples,
    )

    info = next(info for info in op_db if info.name == name and info.variant_test_name in ("", "no_rounding_mode"))
    count = 0
    for generate in (
        generate_elementwise_binary_with_scalar_samples,
        generate_elementwise_binary_with_scalar_and_type_promotion_samples,
    ):
        for sample in generate(info, device="cpu", dtype=dtype, requires_grad=False):
            expected = info.op(sample.input, *sample.args, **sample.kwargs)
            if not expected.is_floating_point() or not isinstance(sample.input, torch.Tensor):
                continue  # PyTorch computes integer results, and a call of two numbers has no tensor for an op
            compare(ops[f"kpkg::{name}"](sample.input, *sample.args, **sample.kwargs), expected, str(sample)[:200])
            count += 1
    assert count > 2
