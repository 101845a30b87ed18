"""Tests embedding_bag: gradients, indices without a row, the layer, and wrong arguments.

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

OFFSETS = torch.tensor([0, 0, 5, 45, 45])


@pytest.fixture(scope="module")
def op():
    package = BUILD / "test-packages" / "embedding.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "embedding", package, "--target", "native"))
    library.register_torch()
    return torch.ops.kpkg.embedding_bag


@pytest.mark.parametrize("columns", [1, 130, 1030])
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_are_pytorchs(op, mode, padding, columns):
    weight = torch.randn(9, columns, dtype=torch.float64, requires_grad=True)
    for indices, offsets in ((torch.randint(0, 9, (60,)), OFFSETS), (torch.randint(0, 9, (4, 11)), None)):
        factors = torch.randn(indices.shape, dtype=torch.float64, requires_grad=True) if mode == "sum" else None
        leaves = [weight] if factors is None else [weight, factors]
        found = op(weight, indices, offsets, mode, factors, False, padding)
        options = {"mode": mode, "per_sample_weights": factors, "padding_idx": None if padding < 0 else padding}
        expected = F.embedding_bag(indices, weight, offsets, **options)
        assert_close(found, expected)
        upstream = torch.randn_like(expected)
        wanted = torch.autograd.grad(expected, leaves, upstream)
        for mine, theirs in zip(torch.autograd.grad(found, leaves, upstream), wanted):
            assert_close(mine, theirs)


def test_gradient_does_not_depend_on_threads(op):
    weight, indices = torch.randn(5, 64, requires_grad=True), torch.randint(0, 5, (300, 10))
    upstream = torch.randn(300, 64)
    (first,) = torch.autograd.grad(op(weight, indices), weight, upstream)
    with torch_threads(1):
        assert torch.equal(first, torch.autograd.grad(op(weight, indices), weight, upstream)[0])


def test_indices_before_the_first_bag_count_nowhere(op):
    weight = torch.randn(5, 3, requires_grad=True)
    y = op(weight, torch.tensor([4, 1, 2]), torch.tensor([1]), "sum")
    assert_close(y, weight[[1, 2]].sum(0, True))
    (found,) = torch.autograd.grad(y.sum(), weight)
    assert_close(found, torch.tensor([0.0, 1, 1, 0, 0]).reshape(5, 1).expand(5, 3))


def test_compiled(op):
    weight, indices = torch.randn(9, 130), torch.randint(0, 9, (4, 5))
    run = torch.compile(lambda w, i: op(w, i) + 1, fullgraph=True, backend="aot_eager")
    assert_close(run(weight, indices), weight[indices].mean(1) + 1)


def test_index_without_a_row(op):
    for bad in (9, -1):
        with pytest.raises(RuntimeError, match="an index is out of bounds: the table has no such row"):
            op(torch.randn(9, 13), torch.tensor([[1, bad]]))


@pytest.mark.parametrize("options", [{}, {"mode": "max"}, {"mode": "sum", "padding_idx": 1}])
def test_layer(op, default_ops, options):
    mine, theirs = nn.EmbeddingBag(7, 5, **options), torch.nn.EmbeddingBag(7, 5, **options)
    theirs.load_state_dict(mine.state_dict())
    assert mine.use_kpkg and not nn.EmbeddingBag(7, 5, sparse=True).use_kpkg
    for inputs in ((torch.randint(7, (3, 4)),), (torch.randint(7, (60,)), OFFSETS)):
        assert_close(mine(*inputs), theirs(*inputs))
    ended = nn.EmbeddingBag(7, 5, include_last_offset=True)
    assert ended.use_kpkg and ended(torch.tensor([1, 2, 3]), torch.tensor([0, 2, 3])).shape == (2, 5)
    model = torch.nn.Sequential(theirs)
    with kpkg.inject(model, verbose=False):
        assert type(model[0]) is nn.EmbeddingBag


W, AT, TO = torch.ones(4, 3), torch.tensor([1, 2]), torch.tensor([0])
WRONG = [
    ((W[0], AT, TO), r"weight has shape \[3\], expected \[rows, columns\]"),
    ((W, AT), r"indices have shape \[2\] and no offsets, expected \[bags, length\]"),
    ((W, AT[None], TO), r"indices have shape \[1, 2\], offsets \[1\], expected vectors"),
    ((W, AT, TO, "all"), r"mode must be sum, mean or max, got all"),
    ((W, AT, TO, "mean", W[0, :2]), r"per_sample_weights are for mode sum, got mean"),
    ((W, AT, TO, "sum", W[0]), r"per_sample_weights are float32 of shape \[3\], expected float32 of shape \[2\]"),
    ((W, AT, TO.short()), r"indices are int16, expected int64 or int32"),
    ((W, AT[None], None, "sum", None, True), r"include_last_offset needs offsets"),
    ((W, AT, TO[:0], "sum", None, True), r"offsets is empty, expected the end of the last bag"),
    ((W, AT, TO, "sum", None, False, 4), r"padding_idx is 4, expected -1 \(none\) or a row of 4"),
]


@pytest.mark.parametrize("arguments, message", WRONG)
def test_wrong_arguments_are_named(op, arguments, message):
    with kpkg.fallback_policy("strict"), pytest.raises(RuntimeError, match=message):
        op(*arguments)
