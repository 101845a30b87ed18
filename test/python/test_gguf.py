"""Checks products with the weights of GGUF files: messages for bad input, gradients, drawn shapes, compiled code.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package

FOLDER = ROOT / "kernels_src" / "gguf"
X, W = torch.randn(2, 64), torch.zeros(5, 68, dtype=torch.uint8)


@pytest.fixture(scope="module")
def gguf():
    package = BUILD / "test-packages" / "gguf.kpkg"
    library = kpkg.load(build_package(FOLDER, package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


@pytest.fixture(scope="module")
def formats():
    found = importlib.util.spec_from_file_location("gguf_spec", FOLDER / "spec.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, W, "Q4_0"), "type is 'Q4_0', expected Q8_0, Q4_K or Q6_K"),
        ((X, W.int(), "Q8_0"), r"weight is int32 \[5, 68\], expected uint8 \[..., bytes of a row\]"),
        ((X, W[:, :67], "Q8_0"), "weight has rows of 67 bytes, expected a multiple of 34 for Q8_0"),
        ((X, W, "Q6_K"), "weight has rows of 68 bytes, expected a multiple of 210 for Q6_K"),
        ((X, W[0], "Q8_0"), r"weight has shape \[68\], expected \[n, bytes of a row\]"),
        ((X[:, 1:], W, "Q8_0"), r"input has shape \[2, 63\]: weight has 64 columns"),
        ((X.double(), W, "Q8_0"), "input is float64, expected float32, float16 or bfloat16"),
        ((X, W, "Q8_0", torch.zeros(4)), r"bias is float32 \[4\], expected float32 \[5\]"),
        ((X, W, "Q8_0", torch.zeros(5).half()), r"bias is float16 \[5\], expected float32 \[5\]"),
    ],
)
def test_messages(arguments, message, gguf):
    with pytest.raises(kpkg.KernelError, match=message):
        gguf["gguf_linear"](*arguments)


def test_other_dtypes_of_results(gguf):
    with pytest.raises(kpkg.KernelError, match="dtype is float64, expected float32, float16 or bfloat16"):
        gguf["gguf_dequantize"](W, "Q8_0", torch.float64)


@pytest.mark.parametrize("type", ["Q8_0", "Q4_K", "Q6_K"])
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_gradients_of_the_input(type, rows, formats, gguf):
    columns, _ = formats.FORMATS[type]
    generator = torch.Generator().manual_seed(rows)
    weight = formats.packed((6, 2), type, generator)
    x = torch.randn(rows, 2 * columns, generator=generator).requires_grad_()
    grad = torch.randn(rows, 6, generator=generator)
    with kpkg.fallback_policy("silent"):
        gguf["gguf_linear"](x, weight, type).backward(grad)
    expected = grad.double() @ formats.dense_weight(weight, type)
    torch.testing.assert_close(x.grad.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("type", ["Q8_0", "Q4_K", "Q6_K"])
def test_drawn_shapes(type, formats, gguf):
    columns, size = formats.FORMATS[type]
    generator = torch.Generator().manual_seed(7)

    def draw(choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    for _ in range(25):
        n, blocks, rows = draw([0, 1, 7, 8, 9, 63, 65]), draw([1, 2, 3, 4, 5, 15, 17]), draw([0, 1, 2, 4, 5, 63, 65])
        dtype = draw([torch.float32, torch.float16, torch.bfloat16])
        step, offset = draw([1, 2]), draw([0, 1])
        weight = formats.packed((n * step, blocks + offset), type, generator)[::step, offset * size :]
        x = torch.randn(rows, blocks * columns, generator=generator).to(dtype)
        if draw([False, True]):
            x = x.t().contiguous().t()
        dense = formats.dense_weight(weight, type)
        exact = x.double() @ dense.to(dtype).double().t()
        error = (gguf["gguf_linear"](x, weight, type).double() - exact).abs()
        size_of_terms = x.double().abs() @ dense.abs().t()
        limit = size_of_terms * {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
        assert (error <= limit + 1e-6).all(), (type, n, blocks, rows, dtype)
        found = gguf["gguf_dequantize"](weight, type, torch.float32).double()
        torch.testing.assert_close(found, dense, rtol=1e-5, atol=1e-5)


def test_compiled(formats, gguf):
    weight = formats.packed((8, 3), "Q4_K", torch.Generator().manual_seed(3))
    x = torch.randn(2, 3, 768)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(x):
        return gguf["gguf_linear"](x, weight, "Q4_K") * 2

    torch.testing.assert_close(layer(x), 2 * gguf["gguf_linear"](x, weight, "Q4_K"))


def test_autocast(formats, gguf):
    weight = formats.packed((8, 1), "Q6_K", torch.Generator().manual_seed(4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert gguf["gguf_linear"](torch.randn(2, 256), weight, "Q6_K").dtype == torch.bfloat16
