"""Compares in-place AdamW steps with PyTorch's optimiser in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from torch.testing import assert_close

HALVES = (torch.float16, torch.bfloat16)
RATES = {"lr": 0.01, "betas": (0.8, 0.97), "eps": 1e-6, "weight_decay": 0.1}
GIVEN = (0.01, 0.8, 0.97, 1e-6, 0.1)
SHAPES = [(), (0, 3), (1,), (7, 33), (4099,), (2, 3, 5, 7)]


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "adamw.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "adamw", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def both(op, shape, dtype, master, arrange=lambda x: x):
    """Returns the weights after a few steps of kpkg and of PyTorch, from the same initial values."""
    state = torch.float32 if master else dtype
    weight = arrange(torch.randn(shape).to(dtype))
    main = weight.to(state) if master else weight
    moments = [torch.zeros_like(main), torch.zeros_like(main)]
    peer = torch.nn.Parameter(main.double().clone())
    optimizer = torch.optim.AdamW([peer], **RATES)
    for step in range(1, 4):
        grad = torch.randn(shape).to(dtype)
        peer.grad = grad.double()
        optimizer.step()
        assert op(weight, grad, *moments, *([main] if master else []), step, *GIVEN) is None
    return weight, main, moments, peer, optimizer.state[peer]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["adamw_", "adamw__reference"])
def test_steps(ops, name, shape, dtype):
    weight, _, moments, peer, state = both(ops[name], shape, dtype, False)
    tolerance = {"rtol": 2e-5, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-13}
    assert_close(weight.double(), peer.detach(), **tolerance)
    assert_close(moments[0].double(), state["exp_avg"], **tolerance)
    assert_close(moments[1].double(), state["exp_avg_sq"], **tolerance)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["adamw_master_", "adamw_master__reference"])
def test_master_weights(ops, name, shape, dtype):
    weight, main, moments, peer, state = both(ops[name], shape, dtype, True)
    assert torch.equal(weight, main.to(dtype))
    assert_close(main.double(), peer.detach(), rtol=2e-5, atol=2e-6)
    assert_close(moments[1].double(), state["exp_avg_sq"], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", HALVES)
def test_sixteen_bits_alone(ops, dtype):
    weight, _, _, peer, _ = both(ops["adamw_"], (7, 33), dtype, False)
    assert_close(weight.double(), peer.detach(), rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


def test_channels_last(ops):
    weight, _, _, peer, _ = both(
        ops["adamw_"], (2, 3, 5, 7), torch.float32, False, lambda x: x.to(memory_format=torch.channels_last)
    )
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert_close(weight.double(), peer.detach(), rtol=2e-5, atol=2e-6)


def test_fallback(ops):
    found, expected = ([torch.ones(5), torch.arange(5.0), torch.zeros(5), torch.zeros(5)] for _ in range(2))
    ops["adamw_"](*found, 1)
    with kpkg.fallback_policy("silent"), ops["adamw_"].configure(kpkg.KernelConfig(target="sm_80")):
        ops["adamw_"](*expected, 1)
    for a, b in zip(found, expected):
        assert_close(a, b)


X = torch.ones(4, 6)
WRONG = [
    ("adamw_", (X, X[1:], X, X, 1), r"grad has shape \[3, 6\], param \[4, 6\]"),
    ("adamw_", (X, X.double(), X, X, 1), r"grad is float64, expected float32 as param"),
    ("adamw_", (X, X, X[:1], X, 1), r"exp_avg has shape \[1, 6\], param \[4, 6\]"),
    ("adamw_", (X, X, X, X.half(), 1), r"exp_avg_sq is float16, expected float32"),
    ("adamw_", (X[:, ::2], X[:, ::2], X[:, :3], X[:, :3], 1), r"param has strides \[6, 2\]: expected dense memory"),
    ("adamw_", (X, X, torch.ones(6, 4).t(), X, 1), r"exp_avg has strides \[1, 4\]: expected dense memory"),
    ("adamw_", (X, X, X, X, 0), r"step is 0, expected 1 or more"),
    ("adamw_", (X, X, X, X, 1, -1.0), r"lr is -1, expected 0 or more"),
    ("adamw_", (X, X, X, X, 1, 0.1, 1.0), r"beta1 is 1, expected 0 or more and less than 1"),
    ("adamw_", (X, X, X, X, 1, 0.1, 0.9, -0.5), r"beta2 is -0.5, expected 0 or more"),
    ("adamw_", (X, X, X, X, 1, 0.1, 0.9, 0.9, -1.0), r"eps is -1, expected 0 or more"),
    ("adamw_master_", (X.half(), X.half(), X, X, X.half(), 1), r"master is float16, expected float32"),
    ("adamw_master_", (X, X, X, X, X, 1), r"param is float32: master weights are for float16 and bfloat16"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, name, arguments, message):
    before = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    with pytest.raises(kpkg.KernelError, match=message):
        ops[name](*arguments)
    for a, b in zip(arguments, before):
        assert not isinstance(a, torch.Tensor) or torch.equal(a, b)
