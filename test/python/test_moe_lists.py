"""Checks blocks with a list of experts, as transformers had them before 5.0, which inject replaces.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import op_calls
from inputs.listed_experts import DeepseekV3MoE, MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock
from kpkg import nn
from torch.testing import assert_close

pytestmark = pytest.mark.usefixtures("default_ops")
KINDS = [MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock, DeepseekV3MoE]


def first_of(value):
    return value[0] if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_block(kind, dtype, fast):
    model, x = torch.nn.Sequential(kind()).eval().to(dtype), torch.randn(2, 9, 32).to(dtype)
    with torch.no_grad():
        expected = model(x)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        with kpkg.inject(model, sample_input=(x,), verbose=False) as injection:
            row = next(row for row in injection.rows if row.layer == kind.__name__)
            assert row.status == "replaced", injection
            assert not any(".experts." in row.name for row in injection.rows), injection
            assert op_calls("moe", lambda: model(x)) == 1
            close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 0.05, "atol": 0.02}
            assert_close(model(x), expected, **close)
            assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
        assert_close(model(x), expected)


def test_changed_parameters_are_seen(fast):
    """Loaded, moved and replaced parameters of single experts."""
    model, x = torch.nn.Sequential(MixtralSparseMoeBlock()).eval(), torch.randn(2, 9, 32)
    plain = torch.nn.Sequential(MixtralSparseMoeBlock()).eval()
    with torch.no_grad():
        kpkg.inject(model, sample_input=(x,), verbose=False)
        model.load_state_dict(plain.state_dict())
        assert_close(model(x), plain(x), rtol=1e-4, atol=1e-4)
        for each in (model, plain):
            each[0].experts[3].w2.weight = torch.nn.Parameter(torch.ones(32, 24) * 0.1)
        assert_close(model(x), plain(x), rtol=1e-4, atol=1e-4)
        model.double()
        assert_close(model(x.double()), plain.double()(x.double()), rtol=1e-6, atol=1e-6)


def test_gradients_belong_to_the_single_parameters(fast):
    model, x = torch.nn.Sequential(Qwen3MoeSparseMoeBlock()).eval(), torch.randn(2, 9, 32)
    with torch.no_grad():
        kpkg.inject(model, sample_input=(x,), verbose=False)
    first_of(model(x)).sum().backward()
    assert any(p.grad is not None for p in model[0].experts.parameters())


def test_experts_that_the_op_does_not_compute_stay(fast):
    x = torch.randn(2, 9, 32)
    with_bias, differ, hooked = MixtralSparseMoeBlock(bias=True), MixtralSparseMoeBlock(), MixtralSparseMoeBlock()
    differ.experts[2].w1 = torch.nn.Sequential(differ.experts[2].w1)
    hooked.experts[1].register_forward_hook(lambda *_: None)
    reasons = {
        with_bias: "kept: its experts are not gate_proj, up_proj and down_proj with silu or gelu",
        differ: "kept: its experts differ",
        hooked: "kept: its experts differ",
    }
    for block, reason in reasons.items():
        model = torch.nn.Sequential(block).eval()
        with torch.no_grad():
            expected = model(x)
            injection = kpkg.inject(model, sample_input=(x,), verbose=False)
            row = next(row for row in injection.rows if row.layer == "MixtralSparseMoeBlock")
            assert row.status == reason
            assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_layer_from_block(kind):
    block, x = kind().eval(), torch.randn(2, 9, 32)
    with torch.no_grad():
        assert_close(nn.MoE.from_module(block)(x), first_of(block(x)), rtol=1e-4, atol=1e-4)
