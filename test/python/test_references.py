"""Checks that every op has a reference that agrees with its spec and with the op.

The reference runs where no other implementation can.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import warnings
from itertools import islice

import kpkg
import numpy as np
import pytest
import torch
from conftest import load_source
from opspec import as_tuple, load_specs

SPECS = {spec.name: spec for spec in load_specs()}
#: Limits of samples per op and of elements per sample: references are slow.
MOST_SAMPLES, MOST_ELEMENTS = 4, 20_000


def elements(sample):
    return sum(v.numel() for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor))


def small_samples(spec, dtype, generator):
    """Returns non-trivial samples from all parts of the spec, with few elements if possible."""
    useful = [s for s in spec.samples(dtype, generator) if elements(s) > 1]
    fitting = [s for s in useful if elements(s) <= MOST_ELEMENTS] or sorted(useful, key=elements)[:2]
    return islice(fitting, 0, None, max(1, len(fitting) // MOST_SAMPLES))


@pytest.mark.parametrize("name", SPECS)
def test_op_and_reference_agree(name, ops):
    spec, op = SPECS[name], ops[name]
    assert op._native.reference, f"{name} has no @register.reference"
    reference = ops[op._native.reference]
    count = 0
    for index, sample in enumerate(small_samples(spec, spec.dtypes[-1], torch.Generator().manual_seed(20))):
        if index == MOST_SAMPLES:
            break
        results = as_tuple(reference(*sample.args, **sample.kwargs))
        spec.check(sample, results)
        given = as_tuple(op(*sample.args, **sample.kwargs))
        assert [(r.shape, r.dtype) for r in results] == [(g.shape, g.dtype) for g in given]
        spec.check(sample, given)
        count += 1
    assert count >= 1


SOURCE = '''
@kernel
@specialize(T=[float32])
def twice_tiles[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() * 2)

@kernel
@specialize(T=[float32, float64, int32])
def twice_plainly[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[1](block_idx.x).store(x.tile[1](block_idx.x).load() + x.tile[1](block_idx.x).load())

@register.op("kpkg_test::twice")
def twice(input: Tensor) raises -> Tensor:
    """2 * a matrix, the result's columns contiguous in memory."""
    var turned = empty(input.shape[1], input.shape[0], dtype=input.dtype)
    launch twice_tiles[T=input.dtype](input.T.reshape(input.numel()), turned.reshape(turned.numel()),
                                     grid=ceildiv(input.numel(), 64))
    return turned.T

@register.reference("kpkg_test::twice")
def twice_reference(input: Tensor) raises -> Tensor:
    var out = empty(input.shape, dtype=input.dtype)
    launch twice_plainly[T=input.dtype](input.reshape(input.numel()), out.reshape(out.numel()), grid=input.numel())
    return out
'''


@pytest.fixture
def twice():
    return load_source("references/twice", SOURCE).twice


def test_reference_is_the_last_resort(twice):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    before = twice.stats()
    with kpkg.fallback_policy("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert (twice(x) == 2 * x).all()
        text = twice.explain(x)
    assert len(caught) == 1 and issubclass(caught[0].category, kpkg.FallbackWarning)
    assert all(part in str(caught[0].message) for part in ("kpkg_test::twice_reference", "slow", "int32"))
    assert "runs the reference" in text
    after = twice.stats()
    assert after["references"] - before["references"] == after["fallbacks"] - before["fallbacks"] == 3
    seen = json.loads(twice._native.kernel_info())
    assert seen["references"] == after["references"]


def test_reference_does_not_run_under_strict(twice):
    with pytest.raises(kpkg.KernelError, match="has a reference, but the policy is strict"):
        twice(np.ones((3, 1)))


def test_reference_gives_the_layout_that_the_op_promises(twice):
    with kpkg.fallback_policy("silent"):
        assert twice(torch.ones(3, 2)).stride() == (1, 3)
        x = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
        y = twice(x)
        assert y.stride() == (1, 3)
        torch.testing.assert_close(y, 2 * x)
        out = torch.empty(3, 2, dtype=torch.float64)
        twice.out(x, out=out)
        torch.testing.assert_close(out, 2 * x)


def test_reference_comes_after_pytorch_where_arrays_are_numpy(ops):
    """PyTorch's fallback takes PyTorch's tensors only; the reference takes all arrays."""
    softmax = ops["kpkg::softmax"]
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    with kpkg.fallback_policy("silent"), softmax.configure(kpkg.KernelConfig(target="sm_80")):
        before = softmax.stats()["references"]
        np.testing.assert_allclose(softmax(x), torch.softmax(torch.from_numpy(x), -1), rtol=1e-6)
        assert softmax.stats()["references"] == before + 1
