"""Tests optional float arguments: absent, 0 and other values differ, through PyTorch, NumPy and shape plans.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math

import kpkg
import numpy as np
import pytest
import torch
from conftest import load_source

SOURCE = '''
@kernel
@specialize(T=[float32])
def scale_elements[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1], factor: Float64):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() * factor)

def factor_of(scale: Optional[Float64], otherwise: Float64) -> Float64:
    return otherwise if scale is None else scale

@register.op("kpkg_test::scaled")
def scaled(x: Tensor, scale: Optional[Float64] = None, least: Optional[Float64] = 0.5) raises -> Tensor:
    """x * scale, or 3 x, of two elements where `least` is there and more than 1, else of one."""
    var smallest = 0.0 if least is None else least
    var rows = 2 if smallest > 1.0 else 1
    if x.rank != 1 or x.shape[0] < rows:
        raise Error("x is too small: {}", x.shape)
    var y = empty_like(x)
    launch scale_elements[T=x.dtype](x, y, factor_of(scale, 3.0), grid=ceildiv(x.shape[0], 64))
    return y
'''


@pytest.fixture(scope="module")
def scaled():
    return load_source("optional/scaled", SOURCE).scaled


@pytest.mark.parametrize("scale, factor", [(None, 3.0), (0.0, 0.0), (-2, -2.0), (math.inf, math.inf)])
def test_absent_differs_from_all_numbers(scaled, scale, factor):
    x = torch.arange(1.0, 6.0)
    assert torch.equal(scaled(x, scale), x * factor)
    assert torch.equal(scaled(x, scale=scale, least=None), x * factor)
    assert np.array_equal(scaled(x.numpy(), scale), (x * factor).numpy())


def test_the_schema_is_pytorchs(scaled):
    assert "float? scale=None, float? least=0.5" in scaled.schema
    assert torch.equal(torch.ops.kpkg_test.scaled(torch.ones(2)), torch.full((2,), 3.0))


def test_nan_is_no_number_that_can_be_given(scaled):
    with pytest.raises(kpkg.KernelError, match="argument 'scale' is NaN, expected a number or None"):
        scaled(torch.ones(2), math.nan)


def test_checks_and_shape_plans_know_absent_numbers(scaled):
    from kpkg import _fake, _symbolic

    with pytest.raises(kpkg.KernelError, match="too small"):
        scaled(torch.ones(1), None, 2.0)
    for least in (None, 0.5):
        values = scaled.bind((torch.ones(1), None, least), {})
        assert [tuple(r[0]) for r in _symbolic.infer(scaled, values)] == [(1,)]
        assert [tuple(r[0]) for r in _fake._infer(scaled, values)] == [(1,)]
    with pytest.raises(kpkg.KernelError, match="too small"):
        _symbolic.infer(scaled, scaled.bind((torch.ones(1), None, 2.0), {}))
