"""Tests quantisation of rows: norm with int8 output, NaN, products of the results, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from opspec import load_specs
from torch.testing import assert_close

SPECS = {spec.name.partition("::")[2]: spec for spec in load_specs()}
FLOAT8 = torch.float8_e4m3fn


@pytest.fixture(scope="module")
def quantize():
    package = BUILD / "test-packages" / "quantize.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "quantize", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


@pytest.mark.parametrize("group", [0, 128])
@pytest.mark.parametrize("n", [7, 640, 20000])
def test_integers_behind_a_norm(quantize, n, group):
    """Results differ by one step at most, because the sum of squares may have another order."""
    x, residual, weight = torch.randn(3, n), torch.randn(3, n), torch.randn(n)
    for name, given in [("rms_norm_quantize", (x,)), ("residual_rms_norm_quantize", (x, residual))]:
        found = quantize[name](*given, weight, torch.int8, 1e-6, group)
        expected = SPECS[name].reference(*(t.double() for t in given), weight.double(), torch.int8, 1e-6, group)
        assert found[0].dtype == torch.int8
        assert (found[0].double() - expected[0]).abs().max() <= 1
        assert_close(found[1].double(), expected[1], rtol=1e-5, atol=0)


GATES = [
    ("silu_and_mul_quantize", {}),
    ("gelu_and_mul_quantize", {"approximate": "tanh"}),
    ("clamped_swiglu_quantize", {}),
    ("clamped_swiglu_quantize", {"interleaved": False, "limit": 1.0}),
]


@pytest.mark.parametrize("group", [0, 128])
@pytest.mark.parametrize("n", [7, 640, 20000])
def test_integers_behind_a_gate(quantize, n, group):
    """Results differ by one step at most, because exponentials are rounded in another way."""
    x = torch.randn(3, 2 * n)
    for name, options in GATES:
        found = quantize[name](x, torch.int8, **options, group=group)
        expected = SPECS[name].reference(x.double(), torch.int8, **options, group=group)
        assert found[0].dtype == torch.int8 and found[0].shape == (3, n)
        assert (found[0].double() - expected[0]).abs().max() <= 1
        assert_close(found[1].double(), expected[1], rtol=1e-5, atol=0)


def test_nan_of_a_gate(quantize):
    x = torch.tensor([[1.0, 2.0, float("nan"), 2.0]])
    for name, options in GATES:
        y, scale = quantize[name](x, torch.int8, **options)
        assert y.tolist() == [[0, 0]] and bool(scale.isnan().all())


@pytest.mark.parametrize("dtype", [torch.int8, FLOAT8])
@pytest.mark.parametrize("n", [300, 20000])
def test_scales_give_the_row_back(quantize, n, dtype):
    x = torch.randn(4, n) * torch.tensor([[1e-6], [1.0], [300.0], [0.0]])
    y, scale = quantize["quantize_per_token"](x, dtype)
    assert scale.shape == (4, 1) and bool((scale > 0).all())
    step = 0.5 if dtype == torch.int8 else 16.0
    assert bool(((y.float() * scale - x).abs() <= step * scale * 1.001).all())
    y, scale = quantize["quantize_per_group"](x, dtype)
    assert scale.shape == (4, -(-n // 128))
    each = scale.repeat_interleave(128, -1)[:, :n]
    assert bool(((y.float() * each - x).abs() <= step * each * 1.001).all())


def test_nan_is_zero_as_an_integer(quantize):
    x = torch.tensor([[1.0, float("nan"), 2.0]])
    y, scale = quantize["quantize_per_token"](x, torch.int8)
    assert y.tolist() == [[0, 0, 0]] and bool(scale.isnan().all())
    assert bool(quantize["quantize_per_token"](x, FLOAT8)[0].float().isnan().any())


def test_compiled(quantize):
    x = torch.randn(5, 256)
    run = torch.compile(lambda x: torch.ops.kpkg.quantize_per_token(x, torch.int8), fullgraph=True, backend="aot_eager")
    for a, b in zip(run(x), quantize["quantize_per_token"](x, torch.int8)):
        assert torch.equal(a, b)


X = torch.ones(2, 8)
WRONG = [
    ("quantize_per_token", (X, torch.float8_e5m2), r"dtype is float8_e5m2, expected float8_e4m3fn or int8"),
    ("quantize_per_group", (X.double(), torch.int8), r"float64 cannot be quantized"),
    ("quantize_per_token", (torch.ones(()), torch.int8), r"expected at least one dimension"),
    ("rms_norm_quantize", (X, torch.ones(7), FLOAT8), r"weight has shape \[7\], expected \[8\]"),
    ("rms_norm_quantize", (X, torch.ones(8).half(), FLOAT8), r"weight is float16, expected float32"),
    ("rms_norm_quantize", (X, None, FLOAT8, 1e-6, 64), r"group is 64, expected 0 .* or 128"),
    (
        "silu_and_mul_quantize",
        (X[:, 1:], FLOAT8),
        r"the last dimension of input has 7 elements, expected an even number",
    ),
    ("silu_and_mul_quantize", (X, FLOAT8, 64), r"group is 64, expected 0 .* or 128"),
    ("gelu_and_mul_quantize", (X, FLOAT8, "erf"), r"approximate is erf, expected none or tanh"),
    ("clamped_swiglu_quantize", (X, FLOAT8, 1.0, -1.0), r"limit is -1.*, expected 0 or more"),
    ("clamped_swiglu_quantize", (X, torch.float16), r"dtype is float16, expected float8_e4m3fn or int8"),
    ("residual_rms_norm_quantize", (X, X[:1], None, FLOAT8), r"residual has shape \[1, 8\], expected \[2, 8\]"),
    ("residual_rms_norm_quantize", (X, X.half(), None, FLOAT8), r"residual is float16, expected float32"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(quantize, name, arguments, message):
    with pytest.raises(kpkg.KernelError, match=message):
        quantize[name](*arguments)
