"""Checks sort, argsort, topk, bincount and histc against PyTorch, their gradients, and their messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

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


def equal_and_special(kind, n, dtype):
    """Returns rows of equal elements, of few different ones, or with NaN, infinities and both zeros."""
    if kind == "equal":
        return torch.full((2, n), 2.0).to(dtype)
    x = torch.randint(-3, 4, (2, n)).double() * torch.where(torch.rand(2, n) < 0.5, -1.0, 1.0)
    if kind == "special" and dtype.is_floating_point:
        x[:, ::3], x[:, 1::5] = math.nan, -math.inf
    return (torch.randn(2, n) * 100 if kind == "normal" else x).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int32, torch.int64])
@pytest.mark.parametrize("kind", ["equal", "few", "special", "normal"])
def test_gpus_select_by_digits(kind, dtype):
    """Rows for one block and for several, the lengths of parts, and places whose digits decide."""
    topk = {op.name: op for op in kpkg.load(build_for_gpus("sorting"))}["kpkg::topk"]
    for n, k, largest in [(4097, 1, True), (5000, 600, False), (32768, 128, True), (33000, 129, False)]:
        x = equal_and_special(kind, n, dtype)
        expected = x.sort(dim=1, descending=largest, stable=True)
        values, indices = map(torch.from_numpy, topk(x.numpy(), k, 1, largest))
        assert torch.equal(indices, expected.indices[:, :k])
        assert torch.equal(values.isnan(), expected.values[:, :k].isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int32])
@pytest.mark.parametrize("kind", ["few", "special", "normal"])
def test_gpus_sort_long_rows_by_digits(kind, dtype):
    sort = {op.name: op for op in kpkg.load(build_for_gpus("sorting"))}["kpkg::sort"]
    x = equal_and_special(kind, 16385, dtype)
    for descending in (False, True):
        expected = x.sort(dim=1, descending=descending, stable=True)
        values, indices = map(torch.from_numpy, sort(x.numpy(), 1, descending))
        assert torch.equal(indices, expected.indices)
        assert values.numpy().tobytes() == x.gather(1, indices).numpy().tobytes()  # with their own bits


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32])
def test_unique_is_that_of_pytorch(dtype, ops):
    for shape in [(0,), (1,), (40, 3), (9000,)]:
        x = torch.randint(0, 60, shape).to(dtype)
        values, inverse, counts, number = ops["kpkg::unique_padded"](x)
        expected = torch.unique(x, return_inverse=True, return_counts=True)
        n = int(number)
        for found, other in zip((values[:n], inverse, counts[:n]), expected):
            assert torch.equal(found, other)
        assert not values[n:].any() and not counts[n:].any()


def assert_unique(x, **options):
    found, expected = kpkg.unique(x, **options), torch.unique(x, **options)
    assert type(found) is type(expected)
    for mine, other in zip(opspec.as_tuple(found), opspec.as_tuple(expected), strict=True):
        assert mine.dtype is other.dtype
        assert_close(mine, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32])
def test_unique_has_the_results_of_pytorch(dtype, default_ops):
    with kpkg.fallback_policy("strict"):
        for shape in [(), (0,), (1,), (3, 0), (40, 3), (9000,)]:
            x = torch.randint(0, 60, shape).to(dtype)
            for return_inverse in (False, True):
                for return_counts in (False, True):
                    assert_unique(x, return_inverse=return_inverse, return_counts=return_counts)
        assert_unique(torch.randint(0, 9, (30, 70)).to(dtype).t()[3:, ::2], return_inverse=True, return_counts=True)
    values = kpkg.unique(torch.zeros(9000, dtype=dtype), sorted=False)
    assert values.tolist() == [0] and values.untyped_storage().nbytes() == values.itemsize


def test_unique_lists_each_nan_and_the_zeros_once(default_ops):
    x = torch.tensor([math.nan, 0.0, math.inf, -0.0, math.nan, -math.inf, 0.0])
    assert_unique(x, return_inverse=True, return_counts=True)


@pytest.mark.parametrize(
    "x, options, reason",
    [
        (torch.tensor([[1, 2], [1, 2], [0, 5]]), {"dim": 0}, "not slices along dim"),
        (torch.tensor([3, 1, 3], dtype=torch.uint16), {}, "no kernel takes torch.uint16 on cpu"),
    ],
)
def test_unique_falls_back_with_a_reason(x, options, reason, default_ops):
    options = {**options, "return_inverse": True, "return_counts": True}
    with kpkg.fallback_policy("strict"), pytest.raises(kpkg.KernelError, match=f"unique_padded: .*{reason}"):
        kpkg.unique(x, **options)
    before = kpkg.kernel_info("unique_padded")["fallbacks"]
    with kpkg.fallback_policy("silent"):
        assert_unique(x, **options)
    info = kpkg.kernel_info("unique_padded")
    assert info["fallbacks"] == before + 1 and any(reason in each for each in info["fallback_reasons"])


def test_unique_without_a_package(monkeypatch):
    op = kpkg.ops["kpkg::unique_padded"]
    monkeypatch.setattr(op, "_op", None)
    monkeypatch.setattr(op, "_reason", "no package has kpkg::unique_padded")
    x = torch.randint(0, 9, (5, 7))
    with kpkg.fallback_policy("strict"), pytest.raises(kpkg.KernelError, match="no package has"):
        kpkg.unique(x)
    with kpkg.fallback_policy("silent"):
        assert_unique(x, return_inverse=True, return_counts=True)


def test_unique_takes_tensors():
    with pytest.raises(TypeError, match="input must be a tensor, not list"):
        kpkg.unique([1, 2])


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
    ("unique_padded", (X.to(torch.float8_e5m2),), r"input is float8_e5m2, expected a float of 16 bits"),
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
