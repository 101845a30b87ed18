"""Compares with PyTorch the calls that kpkg once refused or interpreted differently.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import math

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import build_for_gpus
from torch.testing import assert_close

HALVES = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("alpha", [math.inf, -math.inf, math.nan, 1e300])
def test_sums_of_nothing_are_not_multiplied(ops, alpha):
    c = torch.randn(2, 3)
    found = ops["kpkg::gemm"](torch.ones(2, 0), torch.ones(0, 3), alpha, 0.5, c=c)
    assert torch.equal(found, torch.addmm(c, torch.ones(2, 0), torch.ones(0, 3), beta=0.5, alpha=alpha))
    batched = ops["kpkg::gemm_batched"](torch.ones(4, 9, 0), torch.ones(4, 0, 5), alpha, 1.0, torch.ones(4, 9, 5))
    assert torch.equal(batched, torch.ones(4, 9, 5))


def test_batch_norm_of_nothing(ops):
    found = ops["kpkg::batch_norm"](torch.zeros(0), torch.zeros(0), torch.ones(0))
    assert found.shape == F.batch_norm(torch.zeros(0), torch.zeros(0), torch.ones(0)).shape


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(64, 300), (3, 20000)])
def test_residual_norms_are_those_of_the_sum_before_it_is_rounded(ops, dtype, shape):
    torch.manual_seed(0)
    x, residual, weight, bias = (torch.randn(s).to(dtype) for s in (shape, shape, shape[1:], shape[1:]))
    total = x.double() + residual.double()
    found, stored = ops["kpkg::residual_layer_norm"](x, residual, weight, bias)
    expected = F.layer_norm(total, shape[1:], weight.double(), bias.double())
    assert torch.equal(stored, total.to(dtype))
    unit = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype]
    assert bool(((found.double() - expected).abs() <= unit * expected.abs() + 1e-5).all())  # one rounding
    found = ops["kpkg::residual_rms_norm"](x, residual, weight)[0]
    expected = F.rms_norm(total, shape[1:], weight.double(), 1e-6)
    assert bool(((found.double() - expected).abs() <= unit * expected.abs() + 1e-5).all())


@pytest.mark.parametrize("target", [[0, 10], [-1, 3], [2**40, 0]])
@pytest.mark.parametrize("classes", [10, 20000])
def test_targets_out_of_bounds_are_errors(ops, target, classes):
    if classes > 10:
        target = [t if t != 10 else classes for t in target]
    with pytest.raises(kpkg.KernelError, match="a target is out of bounds"):
        ops["kpkg::cross_entropy"](torch.randn(2, classes), torch.tensor(target))
    ops["kpkg::cross_entropy"](torch.randn(2, classes), torch.tensor([0, -100]))


WIDE = {"kernel_size": [100_000, 100_000], "stride": [30_000, 1], "padding": [50_000, 50_000]}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_windows_far_larger_than_the_input(ops, layout):
    """Only elements inside the input are read: the whole window has 10^10 elements."""
    x = torch.randn(1, 3, 4, 5).contiguous(memory_format=layout)
    found = ops["kpkg::max_pool2d"](x, **WIDE)
    assert torch.equal(found, x.amax((2, 3), keepdim=True).expand_as(found))
    means = ops["kpkg::avg_pool2d"](x, **WIDE, count_include_pad=False)
    assert_close(means, x.mean((2, 3), keepdim=True).expand_as(means))
    sums = ops["kpkg::avg_pool2d"](x, **WIDE, divisor_override=1)
    assert_close(sums, x.sum((2, 3), keepdim=True).expand_as(sums))
    leaf = x.detach().requires_grad_()
    ops["kpkg::avg_pool2d"](leaf, **WIDE, divisor_override=1).sum().backward()
    assert torch.equal(leaf.grad, torch.full_like(x, float(sums.shape[2] * sums.shape[3])))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_windows_far_larger_than_the_input_on_gpus(libraries, layout):
    """Every kernel of GPUs that takes such windows skips what is outside, too; `libraries` are loaded before."""
    pooling = kpkg.load(build_for_gpus("pooling"))
    x = torch.randn(1, 3, 4, 5).contiguous(memory_format=layout)
    found = pooling.max_pool2d(x, **WIDE)
    assert torch.equal(found, x.amax((2, 3), keepdim=True).expand_as(found))
    means = pooling.avg_pool2d(x, **WIDE, count_include_pad=False)
    assert_close(means, x.mean((2, 3), keepdim=True).expand_as(means))


@pytest.fixture(scope="module")
def products(libraries):
    """Returns gemm with the GPU kernels, compiled for this CPU.

    `libraries` are loaded first, so that PyTorch does not find the GPU package's ops by name.
    """
    return kpkg.load(build_for_gpus("gemm"))


def launches_in(record):
    """Yields every launch in the output of explain."""
    if isinstance(record, dict) and "kernel" in record and "grid" in record:
        yield record
    for value in record.values() if isinstance(record, dict) else record if isinstance(record, list) else ():
        yield from launches_in(value)


@pytest.mark.parametrize("shapes", [((262_144, 63), (63, 32)), ((262_144, 32), (32, 63)), ((262_147, 17), (17, 65))])
def test_rows_in_great_number_that_are_copied_for_alignment(products, shapes):
    """A GPU's grid holds at most 65535 blocks along all dimensions but the first."""
    a, b = (torch.randn(shape).bfloat16() for shape in shapes)
    op = products.gemm
    launches = list(launches_in(json.loads(op._native.explain(op._describe((a, b), {}), True))))
    assert any("copy_blocks" in launch["kernel"] for launch in launches)
    assert all(extent <= 65535 for launch in launches if launch["grid"] for extent in launch["grid"][1:])
    found = op(a, b)
    rows = torch.randint(a.shape[0], (200,))
    rows[:2] = torch.tensor([0, a.shape[0] - 1])
    expected = a[rows].double() @ b.double()
    assert_close(found[rows].double(), expected, rtol=2.0**-7, atol=1e-2)
