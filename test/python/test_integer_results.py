"""Tests reductions and scans of integers and bools beside PyTorch: dtypes, overflow, shapes, references, messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool]


@pytest.fixture(params=["", "_reference"])
def call(request, libraries):
    """Returns a function that calls an op, or its reference implementation, without a fallback."""

    def run(name, *args):
        library = libraries["scan" if name.startswith("cum") else "reduction"]
        with kpkg.fallback_policy("strict"):
            return getattr(library, name + request.param)(*args)

    return run


def numbers(shape, dtype):
    """Returns integers of the whole range of the dtype, so that sums and products wrap around."""
    generator = torch.Generator().manual_seed(sum(shape))
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.9
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, shape, generator=generator, dtype=dtype)


def inputs(dtype):
    """Yields tensors, and dimensions to reduce."""
    for shape, dims in [((), []), ((7,), []), ((3, 0), [1]), ((0, 3), [1]), ((5, 33), [-1]), ((5, 33), [0])]:
        yield numbers(shape, dtype), dims
    yield numbers((3, 5000), dtype), [1]
    yield numbers((300, 70), dtype), [0]
    yield numbers((4, 3, 5), dtype), [0, 2]
    yield numbers((6, 40, 3), dtype).permute(2, 0, 1)[:, ::2], [1]
    yield numbers((4, 1), dtype).expand(4, 9), [1]


def product(x, dims, keepdim, dtype=None):
    for dim in dims or range(max(x.dim(), 1)):
        x = x.prod(dim, keepdim=True, dtype=dtype)
    return (
        x if keepdim else x.reshape([n for d, n in enumerate(x.shape) if d not in [k % max(x.dim(), 1) for k in dims]])
    )


@pytest.mark.parametrize("own", INTEGERS)
def test_sums_and_products(call, own):
    for i, (x, dims) in enumerate(inputs(own)):
        axes = dims or list(range(x.dim()))
        dtype = [None, *INTEGERS][i % 7]
        found = call("sum", x, dims, i % 2 == 0, dtype)
        wanted = x.sum(axes, i % 2 == 0, dtype=dtype)
        assert found.dtype == wanted.dtype and torch.equal(found, wanted)
        found, wanted = call("prod", x, axes, True, dtype), product(x, axes, True, dtype)
        assert found.dtype == wanted.dtype and torch.equal(found, wanted)


@pytest.mark.parametrize("own", INTEGERS)
def test_extremes(call, own):
    for x, dims in inputs(own):
        for name in ("amax", "amin"):
            if x.numel() or x.shape[0] == 0:
                found, wanted = call(name, x, dims, False), getattr(x, name)(dims or list(range(x.dim())))
                assert found.dtype == own and torch.equal(found, wanted)
            else:
                with pytest.raises(kpkg.KernelError, match="no elements have no extreme"):
                    call(name, x, dims, False)
        for name in ("argmax", "argmin"):
            if own != torch.bool and len(dims) < 2 and x.numel():
                for values in (x, x % 3):  # the first of equal ones
                    found = call(name, values, dims, True)
                    assert torch.equal(found, getattr(values, name)(dims[0] if dims else None, True))


@pytest.mark.parametrize("own", INTEGERS)
def test_scans(call, own):
    for i, (x, dims) in enumerate(inputs(own)):
        dim, dtype = (dims or [0])[0], [None, *INTEGERS[:-1]][i % 6]
        for name in ("cumsum", "cumprod"):
            found, wanted = call(name, x, dim, dtype), getattr(x, name)(dim, dtype=dtype)
            assert found.dtype == wanted.dtype and torch.equal(found, wanted)


def test_floats_are_converted_first(call):
    x = torch.tensor([[0.5, -0.5, 3.7], [-2.9, 0.0, 300.0]])
    for dtype in INTEGERS[2:]:
        assert torch.equal(call("sum", x, [1], False, dtype), x.sum(1, dtype=dtype))
        assert torch.equal(call("prod", x, [1], False, dtype), x.prod(1, dtype=dtype))
        if dtype != torch.bool:
            assert torch.equal(call("cumsum", x, 1, dtype), x.cumsum(1, dtype=dtype))


def test_long_ones(libraries):
    """Parts of long rows and columns are joined."""
    for x in (numbers((1, 300001), torch.int32), numbers((9000, 65), torch.int8)):
        dim = 0 if x.shape[1] == 65 else 1
        with kpkg.fallback_policy("strict"):
            assert torch.equal(libraries["reduction"].sum(x, [dim]), x.sum(dim))
            assert torch.equal(libraries["reduction"].amin(x, [dim]), x.amin(dim))
            assert torch.equal(libraries["reduction"].argmax(x, [dim]), x.argmax(dim))
            assert torch.equal(libraries["scan"].cumsum(x, dim), x.cumsum(dim))


def test_no_cumulative_bools(call):
    with pytest.raises(kpkg.KernelError, match="dtype is bool"):
        call("cumsum", torch.ones(3), 0, torch.bool)
