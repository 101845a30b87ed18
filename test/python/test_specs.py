"""Tests every op against its spec: random inputs, odd shapes, strides and all dtypes, with PyTorch and NumPy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opspec import as_tuple, load_specs

CASES = [
    pytest.param(spec, dtype, id=f"{spec.name}-{str(dtype)[6:]}") for spec in load_specs() for dtype in spec.dtypes
]


@pytest.fixture
def generator(seeded):
    return torch.Generator().manual_seed(seeded)


@pytest.mark.parametrize("spec, dtype", CASES)
def test_torch(spec, dtype, ops, generator):
    count, fallbacks = 0, ops[spec.name].stats()["fallbacks"]
    for sample in spec.samples(dtype, generator):
        before = sample.map(torch.Tensor.clone)
        spec.check(sample, ops[spec.name](*sample.args, **sample.kwargs))
        for given, kept in zip(tensors(sample), tensors(before)):
            assert torch.equal(comparable(given), comparable(kept)), f"{sample.label}: an argument was changed"
        count += 1
    assert count > 5
    assert ops[spec.name].stats()["fallbacks"] == fallbacks


@pytest.mark.parametrize("spec, dtype", CASES)
def test_out_is_written_completely_and_alone(spec, dtype, ops, generator):
    """Results go into the middle of poisoned memory: all their elements are written, and nothing around them."""
    for sample in spec.samples(dtype, generator):
        fresh = as_tuple(ops[spec.name](*sample.args, **sample.kwargs))
        frames = [torch.full((t.numel() + 64,), 77.0, dtype=t.dtype) for t in fresh]
        outs = [frame[32 : 32 + t.numel()].view(t.shape) for frame, t in zip(frames, fresh)]
        result = ops[spec.name].out(*sample.args, **sample.kwargs, out=outs[0] if len(outs) == 1 else tuple(outs))
        for got, out, t, frame in zip(as_tuple(result), outs, fresh, frames):
            assert got is out
            assert torch.equal(comparable(out), comparable(t)), sample.label
            edge = torch.cat([frame[:32], frame[32 + t.numel() :]]).double()
            assert bool((edge == torch.tensor(77.0).to(t.dtype).double()).all()), (
                f"{sample.label}: memory around the result was written"
            )


@pytest.mark.parametrize(
    "spec, dtype", [case for case in CASES if case.values[0].numpy and case.values[1] is not torch.bfloat16]
)
def test_numpy(spec, dtype, ops, generator):
    for sample in spec.samples(dtype, generator):
        arrays = sample.map(lambda t: t.numpy())
        results = as_tuple(ops[spec.name](*arrays.args, **arrays.kwargs))
        assert all(isinstance(r, np.ndarray) for r in results)
        spec.check(sample, tuple(torch.from_numpy(r) for r in results))


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in load_specs()])
def test_repeated_calls_give_the_same_bits(spec, ops, generator):
    dtype = torch.float32 if torch.float32 in spec.dtypes else spec.dtypes[0]
    for sample in list(spec.samples(dtype, generator))[:12]:
        first = as_tuple(ops[spec.name](*sample.args, **sample.kwargs))
        second = as_tuple(ops[spec.name](*sample.args, **sample.kwargs))
        for a, b in zip(first, second):
            assert torch.equal(comparable(a), comparable(b)), sample.label


def test_every_op_has_a_spec(ops):
    # In-place ops return nothing to compare, and samples hold no lists of tensors; separate files test them.
    apart = {name for name, op in ops.items() if any(a.mutates or a.type == "Tensor[]" for a in op.arguments)}
    public = {name for name in ops.keys() - apart if not name.endswith(("_reference", "_autograd"))}
    described = {spec.name for spec in load_specs()}
    assert public == described, (
        f"without a spec in kernels_src/*/*spec.py: {sorted(public - described)}; "
        f"specs without an op: {sorted(described - public)}"
    )


def tensors(sample):
    return [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, torch.Tensor)]


def comparable(tensor):
    """Replaces NaN, so that the tensor equals itself."""
    return torch.nan_to_num(tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor)
