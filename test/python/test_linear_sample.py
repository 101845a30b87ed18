"""Checks draws from a product that is not in memory: their distribution, what they depend on, and the messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_for_gpus, build_package
from opspec import load_specs
from torch.testing import assert_close

SPEC = next(spec for spec in load_specs() if spec.name == "kpkg::linear_sample")


@pytest.fixture(scope="module")
def op():
    package = BUILD / "test-packages" / "sampling.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "sampling", package, "--target", "native"))
    library.register_torch()
    return next(op for op in library if op.name == "kpkg::linear_sample")


@pytest.mark.parametrize("dtype", SPEC.dtypes)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_greedy_is_argmax(op, dtype, n):
    """Small integers have exact products and many ties: the first of the greatest counts."""
    g = torch.Generator().manual_seed(n)
    x, w = (torch.randint(-2, 3, shape, generator=g).to(dtype) for shape in ((70, 24), (n, 24)))
    tokens, logprobs = op(x, w, torch.zeros(70))
    assert torch.equal(tokens, (x.double() @ w.double().T).argmax(1))
    assert bool((logprobs == 0).all())


def test_shares_are_the_probabilities(op):
    """Draws of fixed seeds have shares within five standard deviations, and fitting sums of squares (chi-squared)."""
    g = torch.Generator().manual_seed(1)
    x, w = torch.randn(1, 16, generator=g), torch.randn(90, 16, generator=g) * 0.3
    rows, parts = 4096, 32
    for temperature in (0.7, 2.0):
        t = torch.full((rows,), temperature)
        p = ((x.double() @ w.double().T)[0] / temperature).softmax(0)
        tokens = torch.stack([op(x.expand(rows, 16), w, t, seed)[0] for seed in range(parts)])
        counts = torch.stack([torch.bincount(part, minlength=90) for part in tokens]).double()
        far = (counts.sum(0) - p * rows * parts) / (p * (1 - p) * rows * parts).sqrt()
        assert float(far.abs().max()) < 5
        squares = ((counts - p * rows) ** 2 / (p * rows)).sum(1)  # each with 89 degrees of freedom
        assert abs(float(squares.mean()) - 89) < 4 * (2 * 89 / parts) ** 0.5


def test_rows_with_seeds_do_not_depend_on_the_batch(op):
    x, w = torch.randn(150, 40), torch.randn(700, 40)
    seeds, offsets = torch.randint(0, 2**62, (150,)), torch.randint(0, 2**40, (150,))
    tokens, logprobs = op(x, w, None, 0, 0, seeds, offsets)
    order = torch.randperm(150)[:17]
    found = op(x[order], w, None, 9, 0, seeds[order], offsets[order])
    assert torch.equal(found[0], tokens[order])
    assert_close(found[1], logprobs[order])
    one = op(x[5:6], w, None, int(seeds[5]), int(offsets[5]))
    assert torch.equal(one[0], tokens[5:6])  # the only row has number 0


def test_seed_and_offset_choose_the_draw(op):
    x, w = torch.zeros(200, 8), torch.zeros(20000, 8)
    draws = [op(x, w, None, s, o)[0] for s, o in [(0, 0), (0, 0), (1, 0), (0, 1), (2**40, 0)]]
    assert torch.equal(draws[0], draws[1])
    assert all(int((draws[0] == other).sum()) < 5 for other in draws[2:])
    assert int((draws[0][1:] == draws[0][:-1]).sum()) < 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_kernels_of_gpus(dtype):
    op = {op.name: op for op in kpkg.load(build_for_gpus("sampling"))}[SPEC.name]
    for sample in SPEC.samples(dtype, torch.Generator().manual_seed(8)):
        SPEC.check(sample, op(*sample.args, **sample.kwargs))


def test_compiled_and_autocast(op):
    x, w = torch.randn(3, 8), torch.randn(50, 8)
    run = torch.compile(torch.ops.kpkg.linear_sample, fullgraph=True, backend="aot_eager", dynamic=True)
    for a, b in zip(run(x, w, torch.ones(3)), op(x, w, torch.ones(3))):
        assert_close(a, b)
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.ops.kpkg.linear_sample(x, w, torch.zeros(3))
    assert torch.equal(found[0], op(x.bfloat16(), w.bfloat16(), torch.zeros(3))[0])


X, W, ONE = torch.ones(3, 8), torch.ones(5, 8), torch.ones(3)
MISTAKES = [
    ((X[0], W), r"input has shape \[8\], weight \[5, 8\], expected \[rows, k\] and \[vocabulary, k\]"),
    ((X, W[:, 1:]), r"input has shape \[3, 8\], weight \[5, 7\]"),
    ((X, W[:0]), r"weight has 0 rows, expected 1 to \d+ tokens"),
    ((X.double(), W.double()), r"input is float64, expected float32, float16 or bfloat16"),
    ((X, W.half()), r"weight is float16, expected float32 as input"),
    ((X, W, ONE[:2]), r"temperature has shape \[2\], expected \[3\], one for each row"),
    ((X, W, None, 0, 0, ONE), r"seeds is float32, expected int64"),
    ((X, W, None, 0, 0, None, None, -1.0), r"softcap is -1.*, expected 0 or more"),
]


@pytest.mark.parametrize("arguments, message", MISTAKES)
def test_mistakes_are_named(op, arguments, message):
    with pytest.raises(kpkg.KernelError, match=message):
        op(*arguments)
