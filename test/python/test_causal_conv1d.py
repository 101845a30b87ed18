"""Tests causal depthwise convolutions: gradients, steps on states, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, ROOT, build_package, torch_threads
from torch.testing import assert_close


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "causal_conv1d.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "causal_conv1d", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def drawn(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype)


def convolved(x, weight, bias, state, activation):
    joined = torch.cat([state, x], -1)
    y = F.conv1d(joined, weight.unsqueeze(1), bias, groups=x.shape[1])
    return F.silu(y) if activation == "silu" else y, joined[..., x.shape[2] :]


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("length", [1, 2, 63, 260])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("last", [False, True])
def test_gradients_are_pytorchs(ops, activation, length, width, last):
    x = drawn(2, length, 70).transpose(1, 2) if last else drawn(2, 70, length)
    inputs = [t.requires_grad_() for t in (x, drawn(70, width), drawn(70), drawn(2, 70, width - 1))]
    found = torch.ops.kpkg.causal_conv1d(*inputs, activation)
    expected = convolved(*inputs, activation)
    assert_close(found, expected)
    upstream = [torch.randn_like(t) for t in expected]
    assert_close(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream))
    assert length == 1 or found[0].stride() == x.stride()


def test_second_derivatives(ops):
    inputs = [t.requires_grad_() for t in (drawn(1, 2, 5), drawn(2, 3))]
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradgradcheck(
            lambda x, w: torch.ops.kpkg.causal_conv1d(x, w, None, None, "silu")[0], inputs
        )


def test_gradient_does_not_depend_on_threads(ops):
    x, weight = drawn(3, 5, 3000, dtype=torch.float32), drawn(5, 4, dtype=torch.float32).requires_grad_()

    def gradient():
        return torch.autograd.grad(torch.ops.kpkg.causal_conv1d(x, weight)[0], weight, x)[0]

    first = gradient()
    with torch_threads(1):
        assert torch.equal(first, gradient())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("positions, tokens", [(3, None), (4, 1), (8, 3), (3, 5), (3, 0)])
def test_steps_continue_a_sequence(ops, dtype, positions, tokens):
    shape = (2, 300) if tokens is None else (2, 300, tokens)
    x, state = drawn(*shape, dtype=dtype), drawn(2, 300, positions, dtype=dtype)
    weight, bias = drawn(300, 4, dtype=dtype), drawn(300, dtype=dtype)
    behind = x.unsqueeze(-1) if tokens is None else x
    expected, _ = ops["causal_conv1d"](behind, weight, bias, state[..., positions - 3 :].contiguous(), "silu")
    joined = torch.cat([state, behind], -1)
    y = torch.ops.kpkg.causal_conv1d_update(x, state, weight, bias, "silu")
    assert_close(y, expected.reshape(shape))
    assert torch.equal(state, joined[..., joined.shape[2] - positions :])


def test_step_in_parts_of_a_tensor(ops):
    cache = drawn(4, 6, 5)
    before = cache.clone()
    x, weight = drawn(2, 5), drawn(5, 4)
    state = cache[1:3, 1:4].transpose(1, 2)
    ops["causal_conv1d_update"](x, state, weight)
    assert torch.equal(state[..., :2], before[1:3, 2:4].transpose(1, 2)) and torch.equal(state[..., 2], x)
    cache[1:3, 1:4] = before[1:3, 1:4]
    assert torch.equal(cache, before)


def test_step_is_what_the_fallback_does(ops):
    op = ops["causal_conv1d_update"]
    x, weight, bias = drawn(2, 7, 2), drawn(7, 3), drawn(7)
    states = [drawn(2, 7, 4)] * 2
    states = [state.clone() for state in states]
    expected = op(x, states[0], weight, bias, "silu")
    with kpkg.fallback_policy("silent"), op.configure(kpkg.KernelConfig(target="sm_80")):
        found = op(x, states[1], weight, bias, "silu")
    assert_close(found, expected)
    assert torch.equal(*states)


def test_compiled(ops):
    x, weight, state = drawn(2, 5, 9), drawn(5, 4), drawn(2, 5, 3)

    def run(x, weight, state):
        y, last = torch.ops.kpkg.causal_conv1d(x, weight, None, state, "silu")
        return y + torch.ops.kpkg.causal_conv1d_update(x[..., 0], last, weight).unsqueeze(-1), last

    assert_close(
        torch.compile(run, fullgraph=True, backend="aot_eager")(x, weight, state.clone()), run(x, weight, state)
    )


X, W, S = torch.ones(2, 3, 5), torch.ones(3, 4), torch.ones(2, 3, 3)
WRONG = [
    ("causal_conv1d", (X[0], W), r"x has shape \[3, 5\], expected \[batch, channels, length\]"),
    ("causal_conv1d", (X, W[0]), r"weight has shape \[4\], expected \[channels, width\]"),
    ("causal_conv1d", (X, W[:2]), "weight has 2 channels, x has 3"),
    ("causal_conv1d", (X, W[:, :1]), "width is 1, expected 2 to 4"),
    ("causal_conv1d", (X, W.repeat(1, 2)), "width is 8, expected 2 to 4"),
    ("causal_conv1d", (X, W.double()), "weight is float64, x is float32, expected one dtype"),
    ("causal_conv1d", (X, W, W[0]), r"bias has shape \[4\], expected \[3\]"),
    ("causal_conv1d", (X, W, W[:, 0].half()), "bias is float16, x is float32"),
    ("causal_conv1d", (X, W, None, S[..., :2]), r"initial_state has shape \[2, 3, 2\], expected \[2, 3, 3\]"),
    ("causal_conv1d", (X, W, None, S.double()), "initial_state is float64, x is float32"),
    ("causal_conv1d", (X, W, None, None, "relu"), "activation is relu, expected none or silu"),
    ("causal_conv1d_update", (X[0, 0], S, W), r"x has shape \[5\], expected \[batch, channels\]"),
    ("causal_conv1d_update", (X, S[0], W), r"state has shape \[3, 3\], expected \[batch, channels, positions\]"),
    ("causal_conv1d_update", (X[:1], S, W), r"state has shape \[2, 3, 3\] for x \[1, 3, 5\]"),
    ("causal_conv1d_update", (X, S[..., :2], W), "state has 2 positions, expected 3 to 8"),
    ("causal_conv1d_update", (X, S.double(), W), "state is float64, x is float32"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, name, arguments, message):
    with pytest.raises(kpkg.KernelError, match=message):
        ops[name](*arguments)
