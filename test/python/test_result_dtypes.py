"""Tests `dtype=` of reductions and scans beside PyTorch: results, gradients, fake tensors, compiled code, messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import itertools

import kpkg
import numpy as np
import pytest
import torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
OTHERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool]

# Each takes (functions, tensor, dtype); functions are PyTorch's or kpkg's.
REDUCTIONS = {
    "sum": lambda f, x, dtype: f.sum(x, [1], dtype=dtype),
    "mean": lambda f, x, dtype: f.mean(x, [-1, 0], True, dtype=dtype),
    "prod": lambda f, x, dtype: f.prod(x, [2] if f is not torch else 2, dtype=dtype),
}
SCANS = {
    "cumsum": lambda f, x, dtype: f.cumsum(x, 1, dtype=dtype),
    "cumprod": lambda f, x, dtype: f.cumprod(x, -1, dtype=dtype),
}
FUNCTIONS = REDUCTIONS | SCANS


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request, packages):
    library = kpkg.load(packages["reduction" if request.param in REDUCTIONS else "scan"])
    return lambda f, x, dtype: FUNCTIONS[request.param](library if f is kpkg else f, x, dtype)


def numbers(dtype, shape=(3, 33, 7)):
    """Returns few and small numbers, so that products fit float16."""
    generator = torch.Generator().manual_seed(len(str(dtype)))
    if not dtype.is_floating_point:
        return torch.randint(0, 3, shape, generator=generator).to(dtype)
    return torch.empty(shape, dtype=torch.float64).uniform_(0.6, 1.4, generator=generator).to(dtype)


def close(found, wanted):
    """Compares with a float64 result, or one of the same dtype."""
    eps = torch.finfo(found.dtype).eps
    assert torch.allclose(found.double(), wanted.double(), rtol=4 * eps + 1e-12, atol=4 * eps)


@pytest.mark.parametrize("dtype", [None, *FLOATS])
def test_results_have_the_dtype(function, dtype):
    for own in FLOATS if dtype is None else [*FLOATS, *OTHERS]:
        for x in (numbers(own), numbers(own, (7, 66, 3)).transpose(0, 2)[:, ::2]):
            found = function(kpkg, x, dtype)
            assert found.dtype == (dtype or own)
            close(found, function(torch, x.to(found.dtype).double(), torch.float64))


def test_conversion_comes_first(function):
    """Numbers that float16 lacks are rounded to it, or overflow, before they are added."""
    x = torch.full((2, 5, 4), 1.0 + 2.0**-12)
    close(function(kpkg, x, torch.float16), function(torch, torch.ones(2, 5, 4).double(), None))
    assert torch.isinf(function(kpkg, torch.full((2, 5, 4), 1e5), torch.float16)).all()
    wide = function(kpkg, torch.full((2, 5, 4), 30000.0, dtype=torch.float16), torch.float32)
    assert torch.equal(wide, function(torch, torch.full((2, 5, 4), 30000.0), None))


@pytest.mark.parametrize("own, dtype", list(itertools.permutations([torch.float32, torch.float64, torch.bfloat16], 2)))
def test_gradients_have_the_dtype_of_the_input(function, own, dtype):
    x = numbers(own).requires_grad_()
    y = function(kpkg, x, dtype)
    grad = numbers(dtype, tuple(y.shape))
    (found,) = torch.autograd.grad(y, x, grad)
    twin = x.detach().double().requires_grad_()
    (wanted,) = torch.autograd.grad(function(torch, twin.to(dtype).double(), None), twin, grad.double())
    assert found.dtype == own
    eps = max(torch.finfo(own).eps, torch.finfo(dtype).eps)
    assert torch.allclose(found.double(), wanted, rtol=8 * eps, atol=8 * eps * wanted.abs().max().item())


def test_empty_and_scalar(packages):
    library, scans = kpkg.load(packages["reduction"]), kpkg.load(packages["scan"])
    assert torch.equal(library.sum(torch.ones(0, 3, dtype=torch.bfloat16), [0], dtype=torch.float32), torch.zeros(3))
    assert torch.equal(library.prod(torch.ones(2, 0), [1], dtype=torch.float64), torch.ones(2).double())
    assert library.sum(torch.tensor(3, dtype=torch.int8), dtype=torch.float16) == 3.0
    assert scans.cumsum(torch.ones(0, 2), 0, dtype=torch.float16).dtype == torch.float16
    assert scans.cumprod(torch.tensor(2.5), 0, dtype=torch.float64) == 2.5


def test_compiled(packages):
    cumsum = kpkg.load(packages["scan"]).cumsum
    call = torch.compile(lambda x: cumsum(x, 1, dtype=torch.float32), backend="aot_eager", fullgraph=True)
    x = numbers(torch.bfloat16).requires_grad_()
    y = call(x)
    assert torch.equal(y, cumsum(x, 1, dtype=torch.float32)) and y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16


def test_fake_and_arrays(function):
    x = numbers(torch.float32)
    with torch._subclasses.FakeTensorMode():
        assert function(kpkg, torch.empty(3, 33, 7), torch.float16).dtype == torch.float16
    found = function(kpkg, x.numpy(), "float64")
    assert found.dtype == np.float64 and np.array_equal(found, function(kpkg, x, torch.float64).numpy())


def test_autocast_keeps_a_given_dtype(function):
    x = numbers(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert function(kpkg, x, torch.float32).dtype == torch.float32
        assert function(kpkg, x, torch.bfloat16).dtype == torch.bfloat16


@pytest.mark.parametrize("own", [torch.float32, *OTHERS])
def test_results_of_integers(function, own):
    """Results are PyTorch's, or errors where PyTorch has none. Fake tensors promise their dtype and strides."""
    with kpkg.fallback_policy("strict"):
        for dtype in [torch.int32, torch.int64] if own == torch.float32 else [None, torch.int32]:
            for x in (numbers(own), numbers(own).transpose(0, 2), numbers(own, (3, 0, 2))):
                try:
                    wanted = function(torch, x, dtype)
                except RuntimeError:
                    with pytest.raises(kpkg.KernelError, match="result is a float"):
                        function(kpkg, x, dtype)
                    continue
                found = function(kpkg, x, dtype)
                assert found.dtype == wanted.dtype and torch.equal(found, wanted)
                with torch._subclasses.FakeTensorMode() as mode:
                    fake = function(kpkg, mode.from_tensor(x), dtype)
                assert fake.dtype == found.dtype and fake.stride() == found.stride()


def test_integer_results_have_no_gradient(packages):
    with kpkg.fallback_policy("strict"):
        found = kpkg.load(packages["scan"]).cumsum(torch.ones(3, requires_grad=True), 0, dtype=torch.int64)
    assert found.tolist() == [1, 2, 3] and not found.requires_grad


def test_products_of_an_integer(packages):
    with kpkg.fallback_policy("strict"):
        found = kpkg.load(packages["reduction"]).prod(torch.tensor(3, dtype=torch.int8))
    assert found.dtype == torch.int64 and found == 3


def test_gradients_of_sums_read_no_input(packages):
    """A NaN of the input does not reach the gradient, and the gradient has the strides of the input."""
    library = kpkg.load(packages["reduction"])
    x = torch.full((5, 4, 3), torch.nan, dtype=torch.bfloat16).permute(2, 0, 1).requires_grad_()
    for op, share in ((library.sum, 1.0), (library.mean, 0.25)):
        (found,) = torch.autograd.grad(op(x, [2], dtype=torch.float32).sum(), x)
        assert torch.equal(found, torch.full_like(x, share)) and found.stride() == x.stride()


def test_gradients_in_jax(packages):
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    import kpkg.jax

    op = kpkg.jax.load(packages["scan"]).cumsum
    x = jnp.arange(4, dtype=jnp.float16)
    found = jax.grad(lambda x: op(x, 0, "float32").sum())(x)
    assert found.dtype == jnp.float16 and found.tolist() == [4.0, 3.0, 2.0, 1.0]
