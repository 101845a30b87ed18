"""Tests embedding: gradients, indices without a row, and wrong arguments.

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
    package = BUILD / "test-packages" / "embedding.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "embedding", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


@pytest.mark.parametrize("padding", [-1, 2])
def test_gradient_is_pytorchs(ops, padding):
    weight = torch.randn(9, 130, dtype=torch.float64, requires_grad=True)
    indices = torch.randint(0, 9, (4, 50))
    upstream = torch.randn(4, 50, 130, dtype=torch.float64)
    (found,) = torch.autograd.grad(torch.ops.kpkg.embedding(weight, indices, padding), weight, upstream)
    (expected,) = torch.autograd.grad(F.embedding(indices, weight, None if padding < 0 else padding), weight, upstream)
    assert_close(found, expected)


def test_gradient_does_not_depend_on_threads(ops):
    grad, indices = torch.randn(3000, 64), torch.randint(0, 5, (3000,))
    first = ops["embedding_backward"](grad, indices, 5)
    with torch_threads(1):
        assert torch.equal(first, ops["embedding_backward"](grad, indices, 5))


def test_compiled(ops):
    weight, indices = torch.randn(9, 130), torch.randint(0, 9, (4, 5))
    run = torch.compile(lambda w, i: torch.ops.kpkg.embedding(w, i) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(run(weight, indices), weight[indices] + 1)


def test_index_without_a_row(ops):
    weight = torch.randn(9, 13)
    for bad in (9, -1):
        with pytest.raises(kpkg.KernelError, match="an index is out of bounds: the table has no such row"):
            ops["embedding"](weight, torch.tensor([1, bad]))


W, AT = torch.ones(4, 3), torch.tensor([1, 2])
WRONG = [
    ("embedding", (W[0], AT), r"weight has shape \[3\], expected \[rows, columns\]"),
    ("embedding", (W, AT.short()), r"indices are int16, expected int64 or int32"),
    ("embedding", (W, AT, 4), r"padding_idx is 4, expected -1 \(none\) or a row of 4"),
    ("embedding_backward", (W, AT, 4), r"grad has shape \[4, 3\] for indices \[2\]"),
    ("embedding_backward", (W[:2], AT, -3), r"num_weights is -3, expected 0 or more"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, name, arguments, message):
    with pytest.raises(kpkg.KernelError, match=message):
        ops[name](*arguments)
