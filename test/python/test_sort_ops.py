"""Checks sort, argsort, topk, bincount and histc against PyTorch, their gradients, and their messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import opspec
import pytest
import torch
from conftest import build_for_gpus
from torch.testing import assert_close

SPECS = {spec.name: spec for spec in opspec.load_specs()}
DTYPES = [torch.int8, torch.int16, torch.uint8, torch.bool, torch.int32, torch.int64, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [40, 17000])
def test_all_dtypes(dtype, n, ops):
    x = torch.randint(0, 100, (2, n)).to(dtype)
    for descending in (False, True):
        found = ops["kpkg::sort"](x, 1, descending)
        expected = x.sort(dim=1, descending=descending, stable=True)
        assert torch.equal(found[0], expected.values) and torch.equal(found[1], expected.indices)
        assert torch.equal(ops["kpkg::argsort"](x, 1, descending), expected.indices)
        best = ops["kpkg::topk"](x, 30, 1, descending)
        assert torch.equal(best[0], expected.values[:, :30]) and torch.equal(best[1], expected.indices[:, :30])


def test_both_zeros_are_equal_and_keep_their_signs(ops):
    x = torch.tensor([0.0, -0.0, 1.0, -0.0, 0.0, -1.0])
    values, indices = ops["kpkg::sort"](x)
    assert indices.tolist() == [5, 0, 1, 3, 4, 2]
    assert torch.signbit(values).tolist() == [True, False, True, True, False, False]


def test_long_rows_keep_the_order_of_equal_elements(ops):
    x = torch.randint(0, 3, (1, 100_000)).float()
    values, indices = ops["kpkg::sort"](x, descending=True)
    expected = x.sort(descending=True, stable=True)
    assert torch.equal(values, expected.values) and torch.equal(indices, expected.indices)
    for k in (3, 100, 900):
        assert torch.equal(ops["kpkg::topk"](x, k)[1], expected.indices[:, :k])


@pytest.mark.parametrize("shape, dim", [((4, 30), 1), ((30, 4), 0), ((2, 1500), -1)])
def test_gradients(shape, dim, ops):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    for mine, theirs in [
        (lambda: ops["kpkg::sort"](x, dim, True)[0], lambda: x.sort(dim=dim, descending=True).values),
        (lambda: ops["kpkg::topk"](x, 3, dim, False)[0], lambda: x.topk(3, dim, False).values),
    ]:
        weight = torch.randn(theirs().shape, dtype=torch.float64)
        found, expected = (torch.autograd.grad((f() * weight).sum(), x)[0] for f in (mine, theirs))
        assert_close(found, expected)


def test_compiled(ops):
    x = torch.randn(3, 50)
    run = torch.compile(lambda t: ops["kpkg::topk"](t, 4), fullgraph=True, backend="aot_eager")
    for a, b in zip(run(x), x.topk(4)):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["sort", "topk", "bincount", "histc"])
def test_kernels_of_gpus(name):
    op, spec = {op.name: op for op in kpkg.load(build_for_gpus("sorting"))}[f"kpkg::{name}"], SPECS[f"kpkg::{name}"]
    for sample in spec.samples(spec.dtypes[0], torch.Generator().manual_seed(9)):
        arrays = sample.map(torch.Tensor.numpy)
        spec.check(sample, tuple(map(torch.from_numpy, opspec.as_tuple(op(*arrays.args, **arrays.kwargs)))))


def test_histc_is_that_of_pytorch(ops):
    x = torch.randn(5000, dtype=torch.float64)
    assert torch.equal(ops["kpkg::histc"](x), x.histc())
    assert torch.equal(ops["kpkg::histc"](x, 7, -1.0, 2.0), x.histc(7, -1.0, 2.0))


X = torch.ones(3, 8)
MISTAKES = [
    ("sort", (X.to(torch.float8_e5m2),), r"input is float8_e5m2, expected a float of 16 bits or more, a signed"),
    ("topk", (X, 9), r"k is 9, expected 0 to 8, the elements along dim -1"),
    ("topk", (X, -1, 0), r"k is -1, expected 0 to 3, the elements along dim 0"),
    ("bincount", (X, 3), r"input is float32, expected uint8, int32 or int64"),
    ("bincount", (X.long(), 0), r"bins is 0, expected 1 or more"),
    ("histc", (X.long(),), r"input is int64, expected a float"),
    ("histc", (X, 9000), r"bins is 9000, expected at most 8192"),
    ("histc", (X, 10, 2.0, 1.0), r"min is 2.* and max is 1"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops[f"kpkg::{name}"](*arguments)
