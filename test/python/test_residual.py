"""What exact_mode of residual_tanh_gated_rmsnorm promises: the bits of the PyTorch expression, rounded where that rounds.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
import torch


def expression(x, x_res, gate, eps=1e-6):
    wide = x_res.float()
    return x + (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * torch.tanh(gate)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(256, 3072), (64, 1024), (7, 33), (2, 20000)])
def test_exact_mode_has_the_bits_of_the_expression(ops, dtype, shape):
    """Rows whose squares add up exactly in float32, so that the order in which they are added does not matter."""
    x, gate = torch.randn(shape).to(dtype), torch.randn(shape[-1]).to(dtype)
    x_res = (torch.randint(-8, 9, shape) / 4).to(dtype)
    op = ops["kpkg::residual_tanh_gated_rmsnorm"]
    expected = expression(x, x_res, gate)
    assert torch.equal(op(x, x_res, gate, exact_mode=True), expected)
    assert not torch.equal(op(x, x_res, gate), expected)  # one rounding in place of four


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_exact_mode_differs_by_roundings_of_the_sum_alone(ops, dtype):
    """Elsewhere a factor of a row may be one unit of float32 away, which few results in the dtype show."""
    x, x_res, gate = (torch.randn(shape).to(dtype) for shape in ((256, 3072), (256, 3072), (3072,)))
    differs = ops["kpkg::residual_tanh_gated_rmsnorm"](x, x_res, gate, exact_mode=True) != expression(x, x_res, gate)
    assert float(differs.float().mean()) < 2e-4
