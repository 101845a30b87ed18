"""Tests which calls with PyTorch tensors bypass its dispatcher.

A call bypasses the dispatcher only if it would do nothing else. Results, errors and counters must be the same.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib

import kpkg
import pytest
import torch
from kpkg import _autograd, _direct
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.skipif(_autograd.nodes() is None, reason="kpkg was built for another release of PyTorch")

X = torch.randn(6, 40)
W = torch.randn(40)
LEAF = torch.randn(6, 40, requires_grad=True)


class Subclass(torch.Tensor):
    pass


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.fixture
def call(ops):
    """Makes direct calls of an op that return "next" if the call needs the dispatcher."""

    def make(name):
        return _direct.make(ops[f"kpkg::{name}"], lambda *args, **kwargs: "next")

    return make


@pytest.mark.parametrize(
    "name, args, kwargs, expected",
    [
        ("softmax", (X, -1), {}, lambda: X.softmax(-1)),
        ("softmax", (X.t(),), {"dim": 0}, lambda: X.t().softmax(0)),
        ("softmax", (), {"dim": 0, "input": X}, lambda: X.softmax(0)),
        ("softmax", (torch.nn.Parameter(X, requires_grad=False),), {}, lambda: X.softmax(-1)),
        ("softmax", (X[:0],), {}, lambda: X[:0]),
        ("layer_norm", (X, [40], W, None, 1e-5), {}, lambda: torch.nn.functional.layer_norm(X, [40], W)),
        ("layer_norm", (X, X.shape[1:]), {}, lambda: torch.nn.functional.layer_norm(X, [40])),
        ("gemm", (X, X, 2, 0.5, False, True), {}, lambda: 2 * X @ X.t()),
    ],
)
def test_plain_calls_are_direct(name, args, kwargs, expected, call, ops):
    op = ops[f"kpkg::{name}"]
    if "input" in kwargs:
        kwargs[op.arguments[0].name] = kwargs.pop("input")
    before = op.stats()
    assert_close(call(name)(*args, **kwargs), expected())
    after = op.stats()
    assert after["calls"] == before["calls"] + 1 and after["errors"] == before["errors"]


def test_several_results_are_a_tuple(call):
    results = call("native_layer_norm")(X, [40], W, W, 1e-5)
    assert type(results) is tuple
    for result, expected in zip(results, torch.native_layer_norm(X, [40], W, W, 1e-5), strict=True):
        assert_close(result, expected)


def test_results_follow_inference_mode(call):
    with torch.inference_mode():
        assert call("softmax")(X).is_inference()
    assert not call("softmax")(X).is_inference()


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((LEAF,), {}),
        ((X.as_subclass(Subclass),), {}),
        ((X.to("meta"),), {}),
        ((X.to_sparse(),), {}),
        ((torch.randn(6, 40, dtype=torch.complex64).conj(),), {}),
        ((X, True), {}),
        ((X, -1.0), {}),
        ((X, 2**63), {}),
        ((X, -1), {"dim": -1}),
        ((X,), {"axis": -1}),
        ((X,), {"out": torch.empty_like(X)}),
        ((X, -1, None, None, None), {}),
        ((), {}),
        ((None,), {}),
        ((3.0,), {}),
    ],
)
def test_other_arguments_are_for_the_dispatcher(args, kwargs, call):
    assert call("softmax")(*args, **kwargs) == "next"


@contextlib.contextmanager
def default_deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "context",
    [
        FunctionMode,
        DispatchMode,
        FakeTensorMode,
        default_deterministic,
        lambda: torch.autocast("cpu"),
        lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        lambda: torch.device("meta"),
    ],
)
def test_whoever_sees_calls_goes_on_seeing_them(context, call):
    direct = call("softmax")
    with context():
        assert isinstance(direct(X), str)
    assert_close(direct(X), X.softmax(-1))


def test_transforms_and_tangents_are_for_the_dispatcher(call):
    direct, seen = call("softmax"), []

    def run(x):
        seen.append(direct(x))
        return x

    torch.func.vmap(run)(X)
    torch.func.grad(lambda x: run(x).sum())(X)
    torch.jit.trace(run, X, check_trace=False)
    with forward_ad.dual_level():
        run(forward_ad.make_dual(X, X))
    assert set(seen) == {"next"} and len(seen) >= 4


def test_without_gradients_leaves_are_plain(call):
    with torch.no_grad():
        assert_close(call("softmax")(LEAF), LEAF.softmax(-1))


def test_what_no_kernel_runs_falls_back_once(call, ops):
    op = ops["kpkg::softmax"]
    before = op.stats()
    assert call("softmax")(X.to(torch.int64)) == "next"
    assert op.stats()["calls"] == before["calls"] and op.stats()["errors"] == before["errors"]


def test_errors_are_those_of_the_dispatcher(ops):
    """Errors have the same text and, through kpkg's own ops, the same type."""
    overload = torch.ops.kpkg.softmax.default
    with pytest.raises(RuntimeError) as direct:
        overload(X, 7)
    with pytest.raises(RuntimeError) as dispatched, FunctionMode():
        overload(X, 7)
    assert str(direct.value) == str(dispatched.value)
    with pytest.raises(kpkg.KernelError, match="kpkg::softmax"):
        ops["kpkg::softmax"](X, 7)


def test_an_op_for_none_is_for_the_dispatcher(call, ops):
    direct = call("softmax")
    direct.use(0)
    assert direct(X) == "next"
    direct.use(ops["kpkg::softmax"]._native.address)
    assert_close(direct(X), X.softmax(-1))
    with pytest.raises(ValueError, match="the op writes into arguments"):
        type(direct)(None, 0, 0)


def test_recorded_calls_have_their_gradient():
    x = LEAF.detach().clone().requires_grad_()
    torch.ops.kpkg.softmax(x, -1).square().sum().backward()
    expected = LEAF.detach().clone().requires_grad_()
    expected.softmax(-1).square().sum().backward()
    assert_close(x.grad, expected.grad)
