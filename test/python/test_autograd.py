"""Tests gradients of ops by autograd, in eager mode and under torch.compile, and calls that must be refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import kpkg
import numpy as np
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from kpkg import KernelError, _autograd
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture(scope="module")
def gradients():
    source = ROOT / "test" / "python" / "inputs" / "gradients.k"
    return kpkg.load(build_package(source, BUILD / "test-packages" / "gradients.kpkg", "--target", "native"))


@pytest.fixture(params=["C++", "Python"])
def nodes(request, gradients):
    """Records calls with nodes of this kind."""
    built = _autograd.nodes()
    if built is None and request.param == "C++":
        pytest.skip("kpkg was built without nodes for this PyTorch")
    recorded = [op for op in gradients if op.gradient] if built is not None and request.param == "Python" else []
    for op in recorded:
        built.use(_autograd._recordings[op.name].state)
    yield request.param
    for op in recorded:
        built.use(_autograd._recordings[op.name].state, *_autograd._known(op))


class Seeing(TorchDispatchMode):
    """Records the arguments of an op's calls."""

    def __init__(self, op):
        super().__init__()
        self.op, self.calls = op, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is self.op:
            self.calls.append(args)
        return function(*args, **(kwargs or {}))


def test_kind_of_nodes(gradients, nodes):
    """Python nodes are objects of a class that torch.autograd.Function made."""
    node = gradients.exp(rows(1, 4)).grad_fn
    assert node.name() == "RecordedBackward" and isinstance(node, torch.autograd.function.BackwardCFunction) == (
        nodes == "Python"
    )


def rows(*shape, grad=True, dtype=torch.float64):
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=dtype, requires_grad=grad)


def affine(x, weight=None, bias=None, scale=1.0, squared=False):
    y = (x * x if squared else x) * scale
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("squared", [False, True])
def test_gradcheck(gradients, weighted, biased, squared):
    """Covers optional arguments that are present or absent, and non-tensor arguments."""
    weight = rows(7) if weighted else None
    bias = rows(7) if biased else None
    inputs = (rows(3, 7), weight, bias, 0.75, squared)
    assert torch.autograd.gradcheck(torch.ops.gradients.affine, inputs)
    assert torch.autograd.gradcheck(gradients.affine, inputs)


@pytest.mark.parametrize("needed", range(1, 8))
def test_only_what_is_needed(gradients, needed):
    inputs = [rows(3, 7), rows(7), rows(7)]
    wanted = [x for i, x in enumerate(inputs) if needed >> i & 1]
    for i, x in enumerate(inputs):
        x.requires_grad_(bool(needed >> i & 1))
    found = torch.autograd.grad(gradients.affine(*inputs, squared=True).sum(), wanted)
    expected = torch.autograd.grad(affine(*inputs, squared=True).sum(), wanted)
    assert_close(found, expected)


def test_needs_reach_the_backward(gradients, nodes):
    """The backward op is told which gradients are needed, and the defaults of omitted arguments."""
    results = gradients.affine(rows(3, 7), bias=rows(7), scale=2.0).sum(), gradients.affine(rows(3, 7)).sum()
    with Seeing(torch.ops.gradients.affine_autograd.default) as seeing:
        for result in results:
            result.backward()
    assert [args[2:] for args in seeing.calls] == [(None, 2.0, False, False, True), (None, 1.0, False, False, False)]


def test_needs_are_what_is_asked_for(gradients, nodes):
    """Gradients that a call does not ask for are not computed, even for inputs that require them.

    They may cost as much as the requested gradients.
    """
    seeing = Seeing(torch.ops.gradients.affine_autograd.default)
    x, weight, bias = rows(3, 7), rows(7), rows(7)
    inner = x * 2
    for source, wanted in (
        (x, [x]),
        (x, [weight]),
        (x, [bias, weight]),
        (inner, [x]),
        (inner, [inner]),
        (inner, [weight]),
    ):
        result = gradients.affine(source, weight, bias, 2.0).sum()
        with seeing:
            found = torch.autograd.grad(result, wanted, retain_graph=True)
        expected = torch.autograd.grad(
            affine(inner if source is inner else x, weight, bias, 2.0).sum(), wanted, retain_graph=True
        )
        assert_close(found, expected)
    for inputs in ([bias], None):
        result = gradients.affine(x, weight, bias, 2.0).sum()
        with seeing:
            result.backward(inputs=inputs)
    asked = [(), ("weight",), ("weight", "bias"), (), (), ("weight",), ("bias",), ("weight", "bias")]
    assert [args[4:] for args in seeing.calls] == [(False, "weight" in names, "bias" in names) for names in asked]
    assert x.grad is not None and weight.grad is not None
    assert_close(bias.grad, torch.full((7,), 6.0, dtype=torch.float64))


@pytest.fixture
def deterministic_after():
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("compiled", [False, True])
def test_deterministic_algorithms_reach_the_backward(gradients, nodes, deterministic_after, compiled):
    """PyTorch's setting at the time of backward() applies; compiled code is compiled again for it."""
    torch._dynamo.reset()
    call = torch.compile(lambda x: gradients.choose(x), fullgraph=True) if compiled else gradients.choose
    for asked, factor in ((False, 2), (True, 1), (False, 2)):
        deterministic_after(asked)
        x = rows(3, 7)
        call(x).sum().backward()
        assert_close(x.grad, torch.full_like(x, factor))
    torch.library.opcheck(torch.ops.gradients.choose.default, (rows(3, 7),))


def test_gradients_are_deterministic_where_instances_must_be(gradients):
    code = (
        "import kpkg, torch, sys; x = torch.ones(2, 3, requires_grad=True); "
        "kpkg.load(sys.argv[1]).choose(x).sum().backward(); print(x.grad.unique().tolist())"
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_REQUIRE": "deterministic"}
    run = subprocess.run([sys.executable, "-c", code, gradients.path], capture_output=True, text=True, env=environment)
    assert run.stdout == "[1.0]\n", run.stderr


def test_gradients_with_strides(gradients, nodes):
    x, weight = rows(5, 7), rows(7)
    strided = rows(7, 5, grad=False).t()
    for upstream in (
        strided,
        torch.ones((), dtype=torch.float64).expand(5, 7),
        strided[:, ::2].repeat_interleave(2, 1)[:, :7],
    ):
        found = torch.autograd.grad(gradients.affine(x, weight, squared=True), (x, weight), upstream)
        expected = torch.autograd.grad(affine(x, weight, squared=True), (x, weight), upstream)
        assert_close(found, expected)


def test_saved_result_and_op_within_a_gradient(gradients, nodes):
    x = rows(4, 5)
    assert torch.autograd.gradcheck(gradients.exp, (x,))
    y = gradients.exp(x)
    y.sum().backward()
    assert_close(x.grad, y.detach())


def test_several_results(gradients, nodes):
    """Covers two differentiable results, one that is not, and an argument without a gradient."""
    x, positions = rows(6), torch.arange(6)
    square, same, index = gradients.powers(x, positions)
    assert square.requires_grad and same.requires_grad and not index.requires_grad
    assert torch.autograd.gradcheck(lambda x: gradients.powers(x, positions)[:2], (x,))
    (one,) = torch.autograd.grad(gradients.powers(x, positions)[0].sum(), x)  # the other result has no gradient
    assert_close(one, 2 * x.detach())


def test_saved_tensors_may_not_change(gradients, nodes):
    x = rows(4, 5)
    y = gradients.exp(x)
    with torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_second_derivative_is_refused(gradients, nodes):
    x = rows(3, 7)
    (first,) = torch.autograd.grad(gradients.affine(x, squared=True).sum(), x, create_graph=True)
    with pytest.raises(KernelError, match="gradients::affine has no second derivative"):
        first.sum().backward()


def test_out_is_not_recorded(gradients):
    x = rows(3, 7)
    with pytest.raises(KernelError, match="cannot record"):
        gradients.affine(x, out=torch.empty_like(x))
    with torch.no_grad():
        gradients.affine(x, out=torch.empty_like(x))


def test_op_without_a_gradient(gradients):
    with pytest.raises(KernelError, match="gradients::multiply has no backward"):
        gradients.multiply(rows(3), rows(3))
    with torch.no_grad():
        gradients.multiply(rows(3), rows(3))


SCRIPT = """
import sys, torch, kpkg
kpkg.load(sys.argv[1])
x = torch.ones(2, 3, requires_grad=True)
try:
    torch.ops.gradients.multiply(x, x).sum().backward()
except Warning as refused:
    print(refused)
"""


def test_backward_through_the_dispatcher_is_refused(gradients):
    """The forward runs there; the backward must raise instead of dropping gradients.

    Runs in a process of its own, because pytest resets warning filters.
    """
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, gradients.path], capture_output=True, text=True, env=environment
    )
    assert "autograd kernel was not registered" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_forward_and_backward(gradients, dynamic):
    def model(x, weight, bias):
        return torch.ops.gradients.exp(gradients.affine(x * 2, weight, bias, scale=0.5)) - gradients.affine(x)

    def plain(x, weight, bias):
        return torch.exp(affine(x * 2, weight, bias, scale=0.5)) - x

    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic)
    for count in (3, 6):
        inputs = rows(count, 7), rows(7), rows(7)
        found, expected = compiled(*inputs), plain(*inputs)
        assert_close(found, expected)
        upstream = rows(count, 7, grad=False)
        assert_close(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream))
    with torch.no_grad():
        assert_close(compiled(*inputs), expected.detach())


def test_compile_with_absent_gradients(gradients):
    """Covers results that may be None within a graph."""
    x = rows(4, 7)
    found = torch.compile(lambda x: gradients.powers(gradients.affine(x), torch.arange(3))[0], fullgraph=True)(x)
    found.sum().backward()
    assert_close(x.grad, 2 * x.detach())


@pytest.mark.parametrize("weighted", [False, True])
def test_opcheck(gradients, weighted):
    weight = rows(7) if weighted else None
    torch.library.opcheck(torch.ops.gradients.affine.default, (rows(3, 7), weight), {"squared": True})
    torch.library.opcheck(
        torch.ops.gradients.affine_autograd.default,
        (
            rows(3, 7, grad=False),
            rows(3, 7, grad=False),
            None if weight is None else weight.detach(),
            1.0,
            False,
            weighted,
            weighted,
        ),
    )
    torch.library.opcheck(torch.ops.gradients.exp.default, (rows(3, 7),))
    torch.library.opcheck(torch.ops.gradients.powers.default, (rows(7), torch.arange(7)))


def test_backward_is_an_op_of_the_package(gradients):
    info = kpkg.kernel_info()["gradients::exp"]
    assert info["backward"] == {"op": "gradients::exp_autograd", "arguments": [["gradient", 0], ["result", 0]]}
    dx, dweight, dbias = gradients.affine_autograd(np.ones((2, 3)), np.ones((2, 3)), None, 2.0, False, True, True)
    np.testing.assert_array_equal(dx, np.full((2, 3), 2.0))
    assert dweight is None
    np.testing.assert_array_equal(dbias, [2, 2, 2])
    manifest = json.loads(json.dumps(gradients.manifest))
    assert "backward" not in next(op for op in manifest["ops"] if op["name"] == "gradients::multiply")


def test_costs_nothing_without_gradients(gradients, monkeypatch):
    """A call that records nothing runs without PyTorch's dispatcher, as a call of an op without a gradient does."""
    if _autograd.nodes() is None:
        pytest.skip("kpkg was built for another release of PyTorch")
    x = rows(1, 4, grad=False)
    monkeypatch.setattr(kpkg.Op, "_call", None)
    assert_close(gradients.multiply(x, x), x * x)
    assert_close(gradients.exp(x), x.exp())


@pytest.mark.filterwarnings("ignore:Error detected in:UserWarning", "ignore:Anomaly Detection:UserWarning")
def test_what_users_do_with_nodes(gradients, nodes):
    """Covers hooks of nodes and of saved tensors, checkpoints, anomaly detection, batched gradients and threads."""
    x, weight = rows(3, 7), rows(7)
    expected = torch.autograd.grad(affine(x, weight).sum(), (x, weight))
    result = gradients.affine(x, weight)
    seen = []
    result.grad_fn.register_prehook(lambda given: seen.append("before"))
    result.grad_fn.register_hook(
        lambda found, given: seen.append(len(found)) or tuple(g if g is None else 2 * g for g in found)
    )
    doubled = torch.autograd.grad(result.sum(), (x, weight), retain_graph=True)
    assert seen[0] == "before" and seen[1] >= 2
    assert_close(doubled, tuple(2 * g for g in expected))
    torch.autograd.grad(result.sum(), x)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(result.sum(), x)

    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t.clone(), lambda t: t):
        result = gradients.affine(x, weight)
    assert packed and torch.autograd.grad(result.sum(), (x, weight)) is not None
    for reentrant in (True, False):
        again = torch.utils.checkpoint.checkpoint(gradients.affine, x, weight, use_reentrant=reentrant)
        x.grad = weight.grad = None
        again.sum().backward()
        assert_close((x.grad, weight.grad), expected)
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="returned nan values"):
        gradients.affine(
            torch.full((3, 7), float("nan"), dtype=torch.float64), weight, None, 1.0, True
        ).sum().backward()

    upstream = torch.randn(4, 3, 7, dtype=torch.float64)
    batched = torch.autograd.grad(gradients.exp(x), x, upstream, is_grads_batched=True)[0]
    assert_close(batched, upstream * x.exp())
    results = []

    def run():
        leaf = x.detach().requires_grad_()
        gradients.affine(leaf, weight).sum().backward(inputs=[leaf])
        results.append(leaf.grad)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(each, expected[0]) for each in results) and len(results) == 8
