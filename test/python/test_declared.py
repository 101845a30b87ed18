"""Tests ops of a package that is unknown to kpkg: the package declares everything that PyTorch needs.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import load_source
from torch.testing import assert_close

KERNEL = """
@kernel
@specialize(T=[float32])
def sums[T: DType](x: Tensor[T, 1], y: Tensor[T, 1], mut z: Tensor[T, 1], factor: Float64):
    var i = block_idx.x
    z.tile[64](i).store(x.tile[64](i).load() + y.tile[64](i).load() * factor.cast[T]())


def added(x: Tensor, y: Tensor, factor: Float64) raises -> Tensor:
    if x.shape != y.shape or x.dtype != y.dtype:
        raise Error("x and y must be alike")
    var n = x.numel()
    var z = empty(x.shape, dtype=x.dtype)
    launch sums[T=x.dtype](x.reshape(n), y.reshape(n), z.reshape(n), factor, grid=ceildiv(n, 64))
    return z
"""
SOURCE = (
    KERNEL
    + '''
@register.op("demo::blend")
@register.torch(autocast_cpu="float32", autocast_cuda="lower", dimensions="elementwise", promotion="default",
                fallback="x + y * factor")
def blend(x: Tensor, y: Tensor, factor: Float64 = 2.0) raises -> Tensor:
    return added(x, y, factor)


comptime TURNED_IN_TORCH = """
def turned(x):
    total = x * 0
    for step in [0, 1]:
        total = total + x.roll(step, dim)
    return total
"""


@register.op("demo::turned")
@register.torch(autocast="lower", dimensions="along dim", fallback=TURNED_IN_TORCH + "return turned(input)")
def turned(input: Tensor, dim: Int = -1) raises -> Tensor:
    """The input and the input moved on by one along a dimension, added."""
    return added(input, input, 0.0)


@register.op("demo::cube")
@register.torch(dimensions="last", fallback="input * input * input")
def cube(input: Tensor) raises -> Tensor:
    return added(input, input, 0.0)


@register.backward("demo::cube", saves=["input"])
@register.torch(fallback="3 * input * input * grad")
def cube_gradient(grad: Tensor, input: Tensor) raises -> Tensor:
    return added(grad, input, 0.0)


@register.op("demo::kept")
@register.torch(autocast="keep")
def kept(x: Tensor) raises -> Tensor:
    return added(x, x, 0.0)


@register.op("demo::rows")
@register.torch(autocast="first", dimensions="trailing shape", fallback="layer_norm(input, shape, weight)")
def rows(input: Tensor, shape: List[Int], weight: Tensor) raises -> Tensor:
    return added(input, input, 0.0)
'''
)


@pytest.fixture(scope="module")
def library():
    return load_source("declared/demo", SOURCE)


@pytest.fixture(autouse=True)
def silent():
    with kpkg.fallback_policy("silent"):
        yield


def test_nothing_of_it_is_known_to_the_runtime(library):
    assert library.blend.rules.promotion == "default" and library.turned.rules.extent == "dim"


def test_fallbacks(library):
    x, y = torch.randn(3, 64, dtype=torch.float64), torch.randn(3, 64, dtype=torch.float64)
    assert_close(library.blend(x, y), x + 2 * y)
    assert_close(torch.ops.demo.blend(x, y, 0.5), x + y / 2)
    assert library.blend.stats()["fallbacks"] >= 2 and library.blend.fallback == "PyTorch's implementation"
    assert_close(library.blend(x.float(), y.float()), (x + 2 * y).float())
    with kpkg.fallback_policy("strict"):
        library.blend(x.float(), y.float())
        with pytest.raises(kpkg.KernelError, match="float64"):
            library.blend(x, y)


def test_gradients_follow_from_the_fallback(library):
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(library.blend, (x, x.detach().clone().requires_grad_()))
    assert torch.autograd.gradcheck(library.cube, (x,)) and torch.autograd.gradgradcheck(library.cube, (x,))
    assert_close(torch.func.jvp(torch.ops.demo.cube, (x,), (torch.ones_like(x),))[1], 3 * x * x)


def test_autocast(library):
    x, low = torch.randn(2, 64), torch.randn(2, 64, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.ops.demo.blend(low, low).dtype == torch.float32
        assert torch.ops.demo.rows(low, [64], x[0]).dtype == torch.bfloat16
        assert torch.ops.demo.kept(x).dtype == torch.float32


def test_vmap(library):
    x, y = torch.randn(3, 4, 64), torch.randn(3, 4, 64)
    calls = library.blend.stats()["calls"]
    assert_close(torch.vmap(torch.ops.demo.blend)(x, y), x + 2 * y)
    assert library.blend.stats()["calls"] == calls + 1, "one call for the whole batch"
    wide = x.double()
    assert_close(torch.vmap(lambda t: torch.ops.demo.turned(t, 0))(wide), wide + wide.roll(1, 1))
    assert_close(torch.vmap(lambda t: torch.ops.demo.cube(t), in_dims=1)(wide), (wide**3).movedim(1, 0))


def test_promotion(library):
    x, y = torch.randn(4, 64), torch.randn(4, 64, dtype=torch.float64)
    assert library.blend(x, y).dtype == torch.float64
    assert library.blend.promotions == {"float32, float64 -> float64": 1}


@pytest.mark.parametrize(
    "text, why",
    [
        ("open('secret')", "`open` is neither an argument nor a function of PyTorch"),
        ("x.__class__", "`__class__` is no attribute of tensors"),
        ("import os", "`Import` is not part of the language"),
        ("save(x, 'file')", "`save` is neither"),
        ("aten.save(x, 'file')", "`save` is no operator of PyTorch"),
        ("from_file('file')", "`from_file` is neither"),
        ("x +", "invalid syntax"),
        ("_x", "begins with `_`"),
        ("x.untyped_storage()", "`untyped_storage` is no attribute of tensors"),
        ("x.data_ptr()", "`data_ptr` is no attribute of tensors"),
        ("aten.set_(x, x)", "`set_` is no operator of PyTorch"),
        ("aten._unsafe_index(x, [x])", "`_unsafe_index` is no operator of PyTorch"),
        ("resize_as_(x, x)", "`resize_as_` is neither"),
    ],
)
def test_a_text_that_is_no_function_of_tensors_is_refused(text, why, request):
    """Tests that the package opens and other calls run, but the fallback never does."""
    name = f"refused{request.node.callspec.indices['text']}"
    source = (
        KERNEL
        + f'''
@register.op("demo::{name}")
@register.torch(fallback="{text}")
def {name}(x: Tensor) raises -> Tensor:
    return added(x, x, 0.0)
'''
    )
    library = load_source(f"declared/{name}", source)
    x = torch.randn(64)
    assert_close(library[f"demo::{name}"](x), x)
    with pytest.raises(kpkg.KernelError, match=f"demo::{name}: the fallback in .* is refused: .*{why}"):
        library[f"demo::{name}"](x.double())
