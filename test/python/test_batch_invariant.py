"""Tests batch invariance: rows have equal bits beside any number of others where calls require it.

Packages with the kernels of GPUs run on this CPU, since those divide sums most.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import kpkg
import pytest
import torch
from conftest import BUILD, build_for_gpus

REQUIRED = kpkg.KernelConfig(require="batch_invariant")


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def differing(call: Callable, *rows: torch.Tensor, counts: tuple[int, ...] = (1, 2, 5, 17, 64, 65, 161)) -> list[int]:
    """Returns the counts of rows with which a row has other bits than among all rows."""

    def results(first: int, end: int) -> list[torch.Tensor]:
        found = call(*(x[first:end].contiguous() for x in rows))
        return list(found) if isinstance(found, (tuple, list)) else [found]

    every = results(0, len(rows[0]))
    return [
        count
        for count in counts
        for first in {0, max(len(rows[0]) - count, 0)}
        if count < len(rows[0])
        and not all(torch.equal(a, b[first : first + count]) for a, b in zip(results(first, first + count), every))
    ]


@pytest.fixture(scope="module")
def products(packages):
    """Returns the kernels of GPUs and of CPUs."""
    return {"gpu": kpkg.load(build_for_gpus("gemm")), "cpu": kpkg.load(packages["gemm"])}


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n", "k"), [(96, 304), (65, 519), (3, 64)])
def test_rows_of_products_have_equal_bits(products, kind, dtype, n, k):
    library = products[kind]
    rows, weight, other = draw(200, k, dtype=dtype), draw(n, k, dtype=dtype), draw(200, n, dtype=dtype)
    bias, columns = draw(n, dtype=dtype), weight.t().contiguous()
    with library.linear_fused.configure(REQUIRED):
        assert not differing(lambda x, r: library.linear_fused(x, weight, bias, r, "silu"), rows, other)
        actual = library.linear_fused(rows, weight, bias, other, "silu")
    wide = torch.nn.functional.silu(rows.double() @ weight.double().t() + bias.double() + other.double())
    torch.testing.assert_close(actual.double(), wide, rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-3)
    asked = {"batch_invariant": True}
    assert not differing(lambda x, c: library.gemm(x, columns, 0.5, 2.0, c=c, **asked), rows, other)
    assert not differing(lambda x: library.gemm(x.t().contiguous(), columns, transpose_a=True, **asked), rows)
    assert not differing(lambda x: library.matmul(x, columns, **asked), rows)


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_fast_products_depend_on_the_rows(products, kind):
    rows, weight = draw(200, 1040), draw(96, 1040)
    assert differing(lambda x: products[kind].linear(x, weight), rows)


def test_strides_and_empty_sums(products):
    for library in products.values():
        weight = draw(40, 72)
        wide = draw(30, 90)
        assert not differing(lambda x: library.linear(x[:, 3:75], weight, batch_invariant=True), wide)
        assert library.linear(draw(0, 72), weight, batch_invariant=True).shape == (0, 40)
        assert torch.equal(library.linear(draw(5, 0), draw(4, 0), batch_invariant=True), torch.zeros(5, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_and_softmax(libraries, dtype):
    norm, softmax = libraries["norm"], libraries["softmax"]
    for n in (7, 96, 5000):
        rows, weight = draw(70, n, dtype=dtype), draw(n, dtype=dtype)
        assert not differing(lambda x: norm.rms_norm(x, [n], weight, batch_invariant=True), rows)
        assert not differing(lambda x: norm.layer_norm(x, [n], weight, weight, batch_invariant=True), rows)
        assert not differing(lambda x: softmax.softmax(x, -1, batch_invariant=True), rows)
        assert not differing(lambda x: softmax.softmax(x.t().contiguous(), 0, batch_invariant=True).t(), rows)


def test_softmax_of_gpus_divides_by_depth():
    softmax = kpkg.load(build_for_gpus("softmax", "rows.k"))
    rows = draw(12, 270001)
    assert not differing(lambda x: softmax.softmax(x, 1, batch_invariant=True), rows, counts=(1, 5))
    torch.testing.assert_close(softmax.softmax(rows, 1, batch_invariant=True), torch.softmax(rows, 1))
    columns = draw(40, 600)
    assert not differing(lambda x: softmax.log_softmax(x.t().contiguous(), 0, batch_invariant=True).t(), columns)


def test_decoding_divides_keys_by_the_length_of_each_sequence(libraries):
    for cache in (kpkg.load(build_for_gpus("attention_cache", "scores.k")), libraries["attention_cache"]):
        lengths = torch.tensor([1, 700, 64, 65, 640, 3, 512])
        tensors = draw(7, 8, 1, 64), draw(7, 2, 700, 64), draw(7, 2, 700, 64), lengths.int()
        assert not differing(lambda q, k, v, n: cache.attention_decode(q, k, v, n, batch_invariant=True), *tensors)
        pages, table = draw(60, 2, 64, 64), torch.arange(77).reshape(7, 11).int() % 60

        def paged(q, n, t, cache=cache, pages=pages):
            held = t[:, : (int(n.max()) + 63) // 64].contiguous()  # only what the longest sequence needs
            return cache.attention_decode(q, pages, pages, n, held, batch_invariant=True)

        assert not differing(paged, tensors[0], lengths.int(), table)


def test_attention_and_experts(libraries):
    attention, moe = libraries["attention"], libraries["moe"]
    few = draw(5, 8, 2, 32), draw(5, 2, 2100, 32), draw(5, 2, 2100, 32)
    assert not differing(lambda q, k, v: attention.attention(q, k, v, batch_invariant=True), *few)
    many = draw(5, 4, 70, 32), draw(5, 4, 70, 32), draw(5, 4, 70, 32)
    sdpa = attention.scaled_dot_product_attention
    assert not differing(lambda q, k, v: sdpa(q, k, v, is_causal=True, batch_invariant=True), *many)
    chosen = torch.stack([torch.randperm(6)[:2] for _ in range(100)]).int()
    gate_up, down = draw(6, 80, 64), draw(6, 64, 40)
    call = lambda x, w, e: moe.moe(x, gate_up, down, w, e, batch_invariant=True)  # noqa: E731
    assert not differing(call, draw(100, 64), draw(100, 2).abs(), chosen)
    torch.testing.assert_close(
        call(draw(100, 64), draw(100, 2).abs(), chosen),
        moe.moe(draw(100, 64), gate_up, down, draw(100, 2).abs(), chosen),
        rtol=1e-4,
        atol=1e-3,
    )


def test_other_ops_fail_and_name_their_kernel(libraries):
    total = libraries["reduction"].sum
    with total.configure(REQUIRED), kpkg.fallback_policy("silent"):
        with pytest.raises(kpkg.KernelError, match="has no argument 'batch_invariant'.*no fallback"):
            total(draw(3, 4), [1])
    total(draw(3, 4), [1])


def test_no_fallback_runs(libraries):
    linear = libraries["gemm"].linear
    narrow = torch.ones(2, 3, dtype=torch.float8_e4m3fn)
    with kpkg.fallback_policy("silent"), pytest.raises(kpkg.KernelError, match="none is batch_invariant"):
        linear(narrow, narrow, batch_invariant=True)


def test_explain_says_who_ensures_it(libraries):
    linear = libraries["gemm"].linear
    assert "batch invariance is ensured by the op" in str(linear.explain(draw(2, 8), draw(3, 8), batch_invariant=True))
    assert "batch invariance" not in str(linear.explain(draw(2, 8), draw(3, 8)))


def test_gradients_are_not_affected(libraries):
    x, weight = draw(4, 8).requires_grad_(), draw(3, 8).requires_grad_()
    linear = libraries["gemm"].linear
    with linear.configure(REQUIRED):
        linear(x, weight).sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(0).expand(3, 8))


def test_unknown_requirements():
    with pytest.raises(ValueError, match="'batch_invariance', which is not understood; did you mean 'batch_invariant'"):
        kpkg.KernelConfig(require="batch_invariance")


def test_the_environment_requires_it_of_all_calls(packages):
    code = (
        "import torch, kpkg\n"
        f"library = kpkg.load({str(packages['gemm'])!r})\n"
        "x, w = torch.randn(64, 1000), torch.randn(96, 1000)\n"
        "assert torch.equal(library.linear(x[:1], w), library.linear(x, w)[:1])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_REQUIRE": "batch_invariant"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
