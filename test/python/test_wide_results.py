"""Tests `dtype=` of softmax and norms beside PyTorch: results, gradients, compiled code, injected calls, messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import op_calls
from kpkg import _calls

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SHAPES = [(3, 1), (2, 64), (5, 257), (2, 16385), (0, 4), (3, 0)]


def numbers(shape, dtype):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).mul(3.0).to(dtype)


def views(dtype):
    for shape in SHAPES:
        yield numbers(shape, dtype), -1
    yield numbers((2, 33, 5), dtype), 1
    yield numbers((7, 66), dtype)[:, ::2], 1
    yield numbers((6, 40, 3), dtype).permute(2, 0, 1), -1
    yield numbers((), dtype), 0


@pytest.fixture(params=["softmax", "log_softmax"])
def pair(request, libraries):
    return getattr(libraries["softmax"], request.param), getattr(torch, request.param)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("own", FLOATS)
def test_softmax(pair, own, dtype):
    """Results have the dtype and the strides of PyTorch's, and no more than the error of their dtype."""
    function, wanted = pair
    eps = torch.finfo(dtype).eps
    with kpkg.fallback_policy("strict"):
        for x, dim in views(own):
            found = function(x, dim, dtype)
            exact = wanted(x.to(dtype).double(), dim)
            assert found.dtype == dtype and found.stride() == wanted(x, dim, dtype=dtype).stride()
            assert torch.allclose(found.double(), exact, rtol=4 * eps, atol=4 * eps)


def test_results_of_16_bits_convert_nothing(libraries):
    """Rows that are held on chip are read as they are."""
    softmax = libraries["softmax"].softmax
    for own in (torch.float16, torch.bfloat16):
        text = str(softmax.explain(numbers((5, 257), own), 1, torch.float32))
        assert "softmax_rows_wide" in text and "convert_elements" not in text


@pytest.mark.parametrize("own, dtype", [(torch.bfloat16, torch.float32), (torch.float32, torch.float64)])
def test_gradients(pair, own, dtype):
    function, wanted = pair
    for x, dim in views(own):
        x.requires_grad_()
        y = function(x, dim, dtype)
        grad = numbers(tuple(y.shape), dtype)
        (found,) = torch.autograd.grad(y, x, grad)
        twin = x.detach().double().requires_grad_()
        (exact,) = torch.autograd.grad(wanted(twin, dim), twin, grad.double())
        eps = max(torch.finfo(own).eps, torch.finfo(dtype).eps)
        assert found.dtype == own and torch.allclose(found.double(), exact, rtol=4 * eps, atol=64 * eps)


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 3.0, float("inf"), -float("inf")])
def test_norms(libraries, order):
    norm = libraries["reduction"].vector_norm
    for own, dtype in [(torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float32, torch.float64)]:
        for x in (numbers((5, 257), own), numbers((7, 66), own)[:, ::2], numbers((40, 9), own).t()):
            for dims in ([], [0], [1]):
                x = x.detach().requires_grad_()
                found = norm(x, order, dims, True, dtype)
                exact = torch.linalg.vector_norm(x.detach().double(), order, dims or None, True)
                assert found.dtype == dtype and torch.allclose(
                    found.double(), exact, rtol=1e-5 if dtype == torch.float32 else 1e-12
                )
                if order != 0.0:
                    twin = x.detach().double().requires_grad_()
                    torch.linalg.vector_norm(twin, order, dims or None, True).sum().backward()
                    found.sum().backward()
                    assert torch.allclose(x.grad.double(), twin.grad, rtol=0.02, atol=1e-6) and x.grad.dtype == own


def test_injected_calls_are_not_converted_before(default_ops):
    x = numbers((4, 33), torch.bfloat16)
    for call in (
        lambda: F.softmax(x, dim=-1, dtype=torch.float32),
        lambda: torch.softmax(x, -1, dtype=torch.float32),
        lambda: x.softmax(-1, torch.float32),
    ):
        seen = []

        def run(call=call, seen=seen):
            with _calls.Replacing(_calls.CALLS):
                seen.append(call())

        assert op_calls("softmax", run) == 1
        assert torch.allclose(seen[0], call(), rtol=1e-6) and seen[0].dtype == torch.float32


def test_compiled(libraries):
    libraries["softmax"].register_torch()
    softmax = libraries["softmax"].softmax
    x = numbers((4, 33), torch.bfloat16).requires_grad_()
    y = torch.compile(lambda x: softmax(x, 1, dtype=torch.float32), backend="aot_eager", fullgraph=True)(x)
    assert y.dtype == torch.float32 and torch.equal(y, softmax(x, 1, torch.float32))
    y[:, 0].sum().backward()
    assert x.grad.dtype == torch.bfloat16


def test_messages(libraries):
    x = torch.ones(2, 3)
    for call, message in [
        (
            lambda: libraries["softmax"].softmax(x.int(), 1, torch.float32),
            "the input has dtype int32, expected a float",
        ),
        (lambda: libraries["softmax"].softmax(x, 1, torch.int32), "dtype is int32, but the result is a float"),
        (
            lambda: libraries["reduction"].vector_norm(x, dtype=torch.float16),
            "the input has dtype float32, which is not widened to float16",
        ),
    ]:
        with pytest.raises(kpkg.KernelError, match=message):
            call()
