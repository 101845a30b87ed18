"""Tests linear_cross_entropy: gradients, chunks, targets without a class, the layer, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, ROOT, build_package, torch_threads
from kpkg import nn
from torch.testing import assert_close


@pytest.fixture(scope="module")
def op():
    package = BUILD / "test-packages" / "linear_cross_entropy.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "linear_cross_entropy", package, "--target", "native"))
    library.register_torch()
    return torch.ops.kpkg.linear_cross_entropy


def expected_loss(x, weight, target, bias, reduction, ignored, smoothing, softcap):
    z = F.linear(x, weight, bias)
    z = softcap * torch.tanh(z / softcap) if softcap else z
    options = {"ignore_index": ignored, "reduction": reduction, "label_smoothing": smoothing}
    loss = F.cross_entropy(z.reshape(-1, weight.shape[0]), target.reshape(-1), **options)
    return loss.reshape(target.shape) if reduction == "none" else loss


def draw(shape, k, classes, dtype=torch.float64):
    x = torch.randn(*shape, k, dtype=dtype, requires_grad=True)
    weight = torch.randn(classes, k, dtype=dtype, requires_grad=True)
    return x, weight, torch.randint(0, classes, shape), torch.randn(classes, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("input_gradient", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", [(-100, 0.0, 0.0), (2, 0.1, 0.0), (-100, 0.2, 3.0)])
def test_gradients_are_pytorchs(op, options, reduction, biased, input_gradient):
    x, weight, target, bias = draw((5, 27), 19, 130)
    leaves = [x, weight, bias] if biased else [x, weight]
    given = bias if biased else None
    found, lse, dx = op(x, weight, target, given, reduction, *options, input_gradient)
    expected = expected_loss(x, weight, target, given, reduction, *options)
    assert_close(found, expected)
    assert lse.shape == target.shape and dx.shape == (x.shape if input_gradient else (0,))
    upstream = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, leaves, upstream)
    for mine, theirs in zip(torch.autograd.grad(found, leaves, upstream), wanted):
        assert_close(mine, theirs)


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_only_wanted_gradients(op, wanted):
    x, weight, target, _ = draw((9,), 6, 40)
    x.requires_grad_(wanted[0])
    weight.requires_grad_(wanted[1])
    leaves = [leaf for leaf in (x, weight) if leaf.requires_grad]
    found = torch.autograd.grad(op(x, weight, target)[0], leaves)
    expected = torch.autograd.grad(F.cross_entropy(x @ weight.t(), target), leaves)
    for mine, theirs in zip(found, expected):
        assert_close(mine, theirs)


def test_chunks_of_rows_and_of_classes(op):
    """More logits than a chunk has at least."""
    x, weight, target, _ = draw((6000,), 3, 6000, torch.float32)
    with torch.no_grad():
        weight *= 0.5
    found = op(x, weight, target, input_gradient=True)
    expected = F.cross_entropy(x @ weight.t(), target)
    assert_close(found[0], expected)
    mine = torch.autograd.grad(found[0], (x, weight))
    for a, b in zip(mine, torch.autograd.grad(expected, (x, weight))):
        assert_close(a, b, rtol=1e-4, atol=1e-7)


def test_results_do_not_depend_on_threads(op):
    x, weight, target, _ = draw((300,), 70, 513, torch.float32)
    first = op(x, weight, target, input_gradient=True)
    with torch_threads(1):
        for a, b in zip(first, op(x, weight, target, input_gradient=True)):
            assert torch.equal(a, b)


def test_classes_that_a_bias_excludes(op):
    x, weight, _, bias = draw((7,), 5, 700)
    with torch.no_grad():
        bias[100:] = -torch.inf
    target = torch.randint(0, 100, (7,))
    assert_close(op(x, weight, target, bias)[0], F.cross_entropy(F.linear(x, weight, bias), target))


def test_compiled(op):
    x, weight, target, _ = draw((9,), 6, 40)
    run = torch.compile(lambda x: op(x, weight, target)[0] * 2, fullgraph=True, backend="aot_eager")
    (mine,) = torch.autograd.grad(run(x), x)
    (theirs,) = torch.autograd.grad(F.cross_entropy(x @ weight.t(), target) * 2, x)
    assert_close(mine, theirs)


def test_second_derivative(op):
    x, weight, target, _ = draw((4,), 3, 6)
    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradgradcheck(lambda x, w: op(x, w, target)[0], (x, weight))


def test_autocast(op):
    x, weight, target, _ = draw((9,), 6, 40, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = op(x, weight, target)[0]
    assert loss.dtype == torch.bfloat16
    loss.backward()
    assert x.grad.dtype == torch.float32


def test_target_without_a_class(op):
    x, weight, target, _ = draw((9,), 6, 40)
    target[3] = 40
    with pytest.raises(RuntimeError, match="a target is out of bounds"):
        op(x, weight, target)


@pytest.mark.skipif(not hasattr(torch.nn, "LinearCrossEntropyLoss"), reason="PyTorch has the layer from 2.13 on")
@pytest.mark.parametrize("options", [{}, {"bias": True, "reduction": "none"}, {"label_smoothing": 0.1}])
def test_layer(op, default_ops, options):
    mine, theirs = nn.LinearCrossEntropyLoss(12, 50, **options), torch.nn.LinearCrossEntropyLoss(12, 50, **options)
    theirs.load_state_dict(mine.state_dict())
    assert mine.use_kpkg
    x, target = torch.randn(8, 12, requires_grad=True), torch.randint(0, 50, (8,))
    found, expected = mine(x, target), theirs(x, target)
    assert_close(found, expected)
    leaves = [x, mine.linear.weight], [x, theirs.linear.weight]
    for a, b in zip(torch.autograd.grad(found.sum(), leaves[0]), torch.autograd.grad(expected.sum(), leaves[1])):
        assert_close(a, b)
    assert not nn.LinearCrossEntropyLoss(12, 50, weight=torch.ones(50)).use_kpkg


X, W, T = torch.ones(4, 3), torch.ones(5, 3), torch.zeros(4, dtype=torch.int64)
WRONG = [
    ((X, W[0], T), r"input has shape \[4, 3\] and weight \[3\], expected"),
    ((X, W[:, :2], T), r"input has 3 features, weight 2"),
    ((X, W[:0], T), r"weight has shape \[0, 3\], expected at least one class"),
    ((X, W, T[1:]), r"target has shape \[3\], expected \[4\]"),
    ((X, W, T.int()), r"target is int32, expected int64"),
    ((X, W.double(), T), r"weight is float64, expected float32"),
    ((X, W, T, W[0]), r"bias has shape \[3\], expected \[5\]"),
    ((X, W, T, None, "all"), r"reduction must be none, mean or sum, got all"),
    ((X, W, T, None, "sum", 0, 1.5), r"label_smoothing is 1.5, expected 0 to 1"),
    ((X, W, T, None, "sum", 0, 0.0, -1.0), r"softcap is -1, expected 0 \(none\) or more"),
]


@pytest.mark.parametrize("arguments, message", WRONG)
def test_wrong_arguments_are_named(op, arguments, message):
    with kpkg.fallback_policy("strict"), pytest.raises(RuntimeError, match=message):
        op(*arguments)
