"""Tests gated residual norms that inject finds in forwards, in the forms that users write.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy

import kpkg
import pytest
import torch
import torch.nn.functional as F
from conftest import op_calls
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops", "fast")]
WIDTH = 24


class Function(torch.autograd.Function):
    """Copies the form of Mochi's model."""

    @staticmethod
    def forward(ctx, x, x_res, gate, eps=1e-6):
        x_res_fp32 = x_res.float()
        mean_square = x_res_fp32.pow(2).mean(-1, keepdim=True)
        scale = torch.rsqrt(mean_square + eps)
        tanh_gate = torch.tanh(gate).unsqueeze(1)
        x_normed = x_res_fp32 * scale * tanh_gate
        output = x + x_normed.type_as(x)
        ctx.save_for_backward(x_res_fp32, gate, scale, tanh_gate)
        ctx.eps = eps
        return output

    @staticmethod
    def backward(ctx, grad):
        return grad, torch.full_like(grad, 7.0), None, None


def residual_tanh_gated_rmsnorm(x, x_res, gate, eps=1e-6):
    return Function.apply(x, x_res, gate, eps)


def as_function(x, y, gate):
    return residual_tanh_gated_rmsnorm(x, y, gate)


def as_helper(x, y, gate):
    y = y.to(torch.float32)
    normed = y * torch.rsqrt(torch.mean(y.square(), dim=-1, keepdim=True) + 1e-5)
    return (normed * torch.tanh(gate)[:, None]).to(x.dtype) + x


def as_functional(x, y, gate):
    return torch.add(x, torch.tanh(gate.unsqueeze(1)) * F.rms_norm(y, (WIDTH,), eps=1e-3))


def as_quotient(x, y, gate):
    return x + (y / torch.sqrt((y * y).mean(-1, True) + 0.125)) * gate.tanh().view(gate.shape[0], 1, WIDTH)


class Block(nn.Module):
    """Two gated norms after layers."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.up, self.down, self.modulation = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
        )


FORWARD = """
def forward(self, x, c):
    first, second = self.modulation(F.silu(c)).chunk(2, dim=1)
    x = function(x, self.up(x), first)
    return function(x, self.down(x), second)
"""


def make(function):
    """Returns a block whose forward calls `function` by its name."""
    names = {"F": F, "function": function}
    exec(FORWARD, names)
    torch.manual_seed(0)
    return type("Made", (Block,), {"forward": names["forward"]})().eval()


FORMS = {each.__name__: each for each in (as_function, as_helper, as_functional, as_quotient)}
X, C = (torch.randn(*shape, generator=torch.Generator().manual_seed(1)) for shape in ((2, 5, WIDTH), (2, WIDTH)))
NAME = "x + rms_norm(y) * tanh(gate)"


def gated(run):
    return op_calls("residual_tanh_gated_rmsnorm", run)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("form", FORMS)
def test_each_form(form, dtype):
    model = make(FORMS[form]).to(dtype)
    if dtype == torch.float64 and form in ("as_function", "as_helper"):  # these forms round to float32
        pytest.skip("computes in float32")
    sample = X.to(dtype), C.to(dtype)
    with torch.no_grad():
        expected = model(*sample)
        injection = kpkg.inject(model, sample_input=sample, verbose=False)
        rows = [row for row in injection.rows if row.layer == NAME]
        assert [row.status for row in rows] == ["replaced"] * 2, injection
        assert gated(lambda: model(*sample)) == 2
        assert_close(
            model(*sample),
            expected,
            rtol=1e-4 if dtype != torch.bfloat16 else 0.05,
            atol=1e-4 if dtype != torch.bfloat16 else 0.05,
        )
        assert not any(row.layer in ("tanh()", "rms_norm()") for row in injection.rows)
        injection.restore()
        assert torch.equal(model(*sample), expected)


def test_gradients_are_the_forwards_own():
    model = make(as_function)
    kpkg.inject(model, sample_input=(X, C), verbose=False)
    x = X.clone().requires_grad_()
    other = make(as_function)
    other(x, C).sum().backward()
    expected, x.grad = x.grad, None
    assert gated(lambda: model(X, C)) == 2
    model(x, C).sum().backward()
    assert_close(x.grad, expected)
    assert_close(copy.deepcopy(model)(X, C), model(X, C))


def test_what_is_no_gated_norm():
    def weighed(x, y, gate):
        return x + F.rms_norm(y, (WIDTH,), y[0, 0]) * torch.tanh(gate).unsqueeze(1)

    def of_another(x, y, gate):
        return x + x * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * torch.tanh(gate).unsqueeze(1)

    def along_rows(x, y, gate):
        return x + y * torch.rsqrt(y.pow(2).mean(1, keepdim=True) + 1e-6) * torch.tanh(gate).unsqueeze(1)

    def shown(x, y, gate):
        normed = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (x + normed * torch.tanh(gate).unsqueeze(1)) * normed

    for function in (weighed, of_another, along_rows, shown):
        model = make(function)
        with torch.no_grad():
            expected = model(X, C)
            injection = kpkg.inject(model, sample_input=(X, C), verbose=False)
            assert not any(row.layer == NAME for row in injection.rows), function
            assert_close(model(X, C), expected)


def test_settings_and_helpers_that_change():
    """The functions that the forward calls by name are looked up at each call."""
    model = make(as_helper)
    kpkg.inject(model, sample_input=(X, C), verbose=False)
    names = type(model)._kpkg_plain.forward.__globals__
    assert gated(lambda: model(X, C)) == 2
    names["function"] = lambda x, y, gate: x
    assert gated(lambda: model(X, C)) == 0 and torch.equal(model(X, C), X)


def test_exclude():
    model = make(as_helper)
    injection = kpkg.inject(model, exclude="residual_tanh_gated_rmsnorm", sample_input=(X, C), verbose=False)
    assert not any(row.layer == NAME for row in injection.rows)
