"""Checks draws of `sample` one by one against exact probabilities, what they depend on, and the messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import numpy as np
import opspec
import pytest
import torch
from conftest import build_for_gpus
from torch.testing import assert_close

SPECS = {spec.name: spec for spec in opspec.load_specs()}
ROWS = 4000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_draws_are_those_of_the_exact_distribution(dtype, ops):
    logits = torch.tensor([0.5, -1.0, 2.0, 2.0, -3.0, 1.25, 0.0], dtype=dtype).expand(ROWS, 7)
    cases = {
        "plain": (None, None, None, None),
        "temperature": (0.5, None, None, None),
        "top-k, with a tie": (0.7, 1, None, None),
        "top-p": (1.5, None, 0.8, None),
        "min-p": (1.0, None, None, 0.3),
        "all": (1.3, 4, 0.9, 0.05),
    }
    for label, numbers in cases.items():
        kinds = (torch.float32, torch.int32, torch.float32, torch.float32)
        given = [None if n is None else torch.full((ROWS,), n, dtype=d) for n, d in zip(numbers, kinds)]
        tokens, logprobs = ops["kpkg::sample"](logits, *given, seed=11)
        expected, expected_logprobs = SPECS["kpkg::sample"].reference(logits, *given, seed=11)
        assert torch.equal(tokens, expected), label
        assert_close(logprobs, expected_logprobs.float(), atol=1e-5, rtol=1e-5)
        shares = torch.bincount(tokens, minlength=7) / ROWS
        exact = torch.zeros(7).scatter(0, tokens, logprobs.exp())
        assert_close(shares, exact, atol=0.03, rtol=0)


def test_filters_apply_one_after_the_other(ops):
    # Probabilities 0.4, 0.3, 0.2, 0.1. The three greatest have 4/9, 3/9, 2/9, so that top-p counts these.
    logits = torch.tensor([0.1, 0.4, 0.3, 0.2]).log().expand(ROWS, 4)
    k, p, m = torch.full((ROWS,), 3).int(), torch.full((ROWS,), 0.75), torch.full((ROWS,), 0.8)
    assert ops["kpkg::sample"](logits, None, k, p)[0].unique().tolist() == [1, 2]
    assert ops["kpkg::sample"](logits, None, None, p)[0].unique().tolist() == [1, 2, 3]
    assert ops["kpkg::sample"](logits, None, k, p, m)[0].unique().tolist() == [1]
    assert ops["kpkg::sample"](logits, None, k * 0 - 1, p * 0 + 1)[0].unique().tolist() == [0, 1, 2, 3]
    assert ops["kpkg::sample"](logits, None, None, p * 0)[0].unique().tolist() == [1]


def test_temperature_zero_takes_the_first_of_the_greatest(ops):
    logits = torch.randint(0, 5, (60, 9001)).float()
    tokens, logprobs = ops["kpkg::sample"](logits, torch.zeros(60), torch.full((60,), 2).int())
    assert torch.equal(tokens, logits.argmax(1)) and not logprobs.any()


def test_rows_with_seeds_do_not_depend_on_the_batch(ops):
    logits, seeds, offsets = torch.randn(50, 6000), torch.randint(0, 2**62, (50,)), torch.randint(0, 2**40, (50,))
    p = torch.full((50,), 0.9)
    tokens, logprobs = ops["kpkg::sample"](logits, None, None, p, seeds=seeds, offsets=offsets)
    order = torch.randperm(50)[:17]
    found = ops["kpkg::sample"](logits[order], None, None, p[:17], seed=9, seeds=seeds[order], offsets=offsets[order])
    assert torch.equal(found[0], tokens[order]) and torch.equal(found[1], logprobs[order])
    one = ops["kpkg::sample"](logits[5:6], None, None, p[:1], seed=int(seeds[5]), offset=int(offsets[5]))
    assert torch.equal(one[0], tokens[5:6])  # the only row has number 0


def test_seed_and_offset_choose_the_draw(ops):
    logits = torch.zeros(200, 50000)
    draws = [ops["kpkg::sample"](logits, seed=s, offset=o)[0] for s, o in [(0, 0), (0, 0), (1, 0), (0, 1), (2**40, 0)]]
    assert torch.equal(draws[0], draws[1])
    assert all(int((draws[0] == other).sum()) < 5 for other in draws[2:])


@pytest.mark.parametrize("name", ["sample", "apply_penalties"])
def test_compiled(name, ops):
    logits = torch.randn(3, 70)
    given = (logits, torch.full((3,), 0.5)) if name == "sample" else (logits, torch.randint(0, 70, (3, 9)))
    op = ops[f"kpkg::{name}"]
    expected = opspec.as_tuple(op(*given))
    found = torch.compile(lambda *a: op(*a), fullgraph=True, backend="aot_eager")(*given)
    for a, b in zip(opspec.as_tuple(found), expected):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", ["kpkg::sample", "kpkg::apply_penalties"])
def test_kernels_of_gpus(name, dtype):
    op = {op.name: op for op in kpkg.load(build_for_gpus("sampling"))}[name]
    for sample in SPECS[name].samples(dtype, torch.Generator().manual_seed(8)):
        arrays = sample.map(torch.Tensor.numpy)
        results = opspec.as_tuple(op(*arrays.args, **arrays.kwargs))
        SPECS[name].check(sample, tuple(map(torch.from_numpy, results)))


def test_penalties_of_a_small_row(ops):
    logits = torch.tensor([[1.0, -1.0, 2.0, -2.0, 0.5]])
    output, prompt = torch.tensor([[2, 2, 3, -1, 5]]), torch.tensor([[0, 1, 1]])
    given = [torch.tensor([n]) for n in (2.0, 0.25, 0.5)]
    found = ops["kpkg::apply_penalties"](logits, output, prompt, *given)
    assert_close(found, torch.tensor([[0.5, -2.0, 0.0, -4.75, 0.5]]))


X, ONE = torch.ones(3, 8), torch.ones(3)
MISTAKES = [
    ("sample", (X[0],), r"logits has shape \[8\], expected \[rows, vocabulary\] with 1 to 1048576 tokens"),
    ("sample", (X[:, :0],), r"logits has shape \[3, 0\]"),
    ("sample", (X.double(),), r"logits is float64, expected float32, float16 or bfloat16"),
    ("sample", (X, ONE[:2]), r"temperature has shape \[2\], expected \[3\], one for each row"),
    ("sample", (X, None, ONE.long()), r"top_k is int64, expected int32"),
    ("sample", (X, None, None, ONE.half()), r"top_p is float16, expected float32"),
    ("sample", (X, None, None, None, X), r"min_p has shape \[3, 8\], expected \[3\]"),
    ("sample", (X, None, None, None, None, 0, 0, ONE), r"seeds is float32, expected int64"),
    ("apply_penalties", (X, torch.zeros(2, 4).long()), r"output_tokens has shape \[2, 4\], expected \[3, tokens\]"),
    ("apply_penalties", (X, torch.zeros(3, 4)), r"output_tokens is float32, expected int32 or int64"),
    (
        "apply_penalties",
        (X, torch.zeros(3, 4).int(), torch.zeros(3, 4).long()),
        r"prompt_tokens is int64, expected int32 as output_tokens",
    ),
    ("apply_penalties", (X, torch.zeros(3, 4).int(), None, ONE[:1]), r"repetition has shape \[1\], expected \[3\]"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops[f"kpkg::{name}"](*arguments)


def test_numpy(ops):
    logits = np.zeros((2, 5), np.float32)
    logits[:, 3] = 90
    assert ops["kpkg::sample"](logits)[0].tolist() == [3, 3]
    with kpkg.fallback_policy("strict"):
        assert ops["kpkg::sample"](logits, np.zeros(2, np.float32))[0].tolist() == [3, 3]
