"""Checks mixtures of experts with matrices of 8-bit floats: messages, compiled form, and modules of Hugging Face.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
import torch
from conftest import op_calls
from kpkg import nn
from opspec import load_specs
from torch.testing import assert_close

SPEC = next(spec for spec in load_specs() if spec.name == "kpkg::moe_fp8")
FP8, BF16 = torch.float8_e4m3fn, torch.bfloat16
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def arguments(tokens, hidden=144, inner=128, experts=4, choices=2, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def matrices(rows, columns):
        x = torch.randn(experts, rows, columns, generator=generator).to(FP8)
        scale = torch.rand(experts, -(-rows // 128), -(-columns // 128), generator=generator) + 0.5
        return x, scale * columns**-0.5

    x = torch.randn(tokens, hidden, generator=generator).to(BF16)
    chosen = torch.rand(tokens, experts, generator=generator).argsort(1)[:, :choices].int()
    weights = torch.rand(tokens, choices, generator=generator)
    return [x, *matrices(2 * inner, hidden), *matrices(hidden, inner), weights, chosen]


@pytest.mark.parametrize("tokens", [1, 16, 50])
def test_experts_that_are_not_used_are_not_read(tokens, ops):
    """NaN in their scales, as poison, must not reach any result."""
    given = arguments(tokens)
    given[6] = torch.where(given[6] == 2, 1, given[6])
    expected = ops["kpkg::moe_fp8"](*given)
    for scale in (given[2], given[4]):
        scale[2] = torch.nan
    assert torch.equal(ops["kpkg::moe_fp8"](*given), expected)


def test_rows_of_infinite_tokens_do_not_reach_others(ops):
    given = arguments(40)
    expected = ops["kpkg::moe_fp8"](*given)
    given[0][7] = torch.inf
    result = ops["kpkg::moe_fp8"](*given)
    others = torch.arange(40) != 7
    assert torch.equal(result[others], expected[others])


def test_fake_tensors_and_compiled_form(ops):
    given = arguments(20)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = ops["kpkg::moe_fp8"](*(mode.from_tensor(t) for t in given))
        assert y.shape == given[0].shape and y.dtype == given[0].dtype
    compiled = torch.compile(lambda *a: ops["kpkg::moe_fp8"](*a), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*given), ops["kpkg::moe_fp8"](*given))


@pytest.mark.parametrize("activation", ["silu", "clamped_swiglu"])
def test_the_fallback_computes_the_same(activation, ops):
    given = [*arguments(20), activation]
    expected = ops["kpkg::moe_fp8"](*given)
    with kpkg.fallback_policy("silent"), ops["kpkg::moe_fp8"].configure(kpkg.KernelConfig(target="sm_80")):
        assert_close(ops["kpkg::moe_fp8"](*given), expected, rtol=3e-2, atol=3e-2)


GIVEN = arguments(3)
MISTAKES = [
    ({0: GIVEN[0].float()}, r"input is float32, expected bfloat16 or float16"),
    ({0: GIVEN[0][0]}, r"input has shape \[144\], expected \[tokens, hidden\]"),
    ({1: GIVEN[1].to(BF16)}, r"gate_up is bfloat16 \[4, 256, 144\], expected float8_e4m3fn \[experts, rows, columns\]"),
    ({2: GIVEN[2][:, :1]}, r"gate_up_scale has shape \[4, 1, 2\], expected \[4, 2, 2\] for blocks of 128 x 128"),
    ({4: GIVEN[4].double()}, r"down_scale is float64, expected float32"),
    ({3: GIVEN[3][:, :100], 4: GIVEN[4][:, :1]}, r"down has shape \[4, 100, 128\], expected \[4, 144, inner\]"),
    ({1: GIVEN[1][:, :128], 2: GIVEN[2][:, :1]}, r"gate_up has shape \[4, 128, 144\], expected \[4, 256, 144\]"),
    (
        {1: GIVEN[1][:, :128], 2: GIVEN[2][:, :1], 3: GIVEN[3][:, :, :64]},
        r"gate_up has 128 rows: those of gate and up each have to be a multiple of 128",
    ),
    ({5: GIVEN[5][:, :1]}, r"weights has shape \[3, 1\], expected \[3, 2\] as experts"),
    ({6: GIVEN[6].long()}, r"experts is int64, expected int32"),
    ({7: "gelu"}, r"activation is gelu, which only the op moe has; expected silu or clamped_swiglu"),
    ({7: "relu"}, r"activation is relu, expected silu, gelu or clamped_swiglu"),
]


@pytest.mark.parametrize("changes, message", MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_mistakes_are_named(changes, message, ops):
    given = [changes.get(i, value) for i, value in enumerate([*GIVEN, "silu"])]
    with pytest.raises(Exception, match=message):
        ops["kpkg::moe_fp8"](*given)


def block(**options):
    """Returns a block of Qwen3-MoE whose experts are those of a checkpoint in 8-bit floats."""
    from transformers import Qwen3MoeConfig
    from transformers.integrations.finegrained_fp8 import FP8Experts
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

    torch.manual_seed(0)
    config = Qwen3MoeConfig(hidden_size=128, moe_intermediate_size=128, num_experts=4, num_experts_per_tok=2)
    made = Qwen3MoeSparseMoeBlock(config).to(BF16)
    made.experts = FP8Experts(config, **{"block_size": (128, 128)} | options)
    with torch.no_grad():
        for name, parameter in made.experts.named_parameters():
            drawn = torch.rand(parameter.shape) * 0.1 if "scale" in name else torch.randn(parameter.shape)
            parameter.copy_(drawn.to(parameter.dtype))
        made.gate.weight.normal_()
    return made


@needs_transformers
def test_experts_of_transformers(default_ops):
    model, x = block(), torch.randn(2, 9, 128).to(BF16)
    layer = nn.MoE.from_module(model)
    assert layer.down_scale is model.experts.down_proj_scale_inv
    with torch.no_grad():
        given = []
        hook = model.experts.register_forward_pre_hook(lambda _, inputs: given.append(inputs))
        injection = kpkg.inject(model, include="FP8Experts", verbose=False)
        assert len(injection.replaced) == 1, injection
        assert op_calls("moe_fp8", lambda: model(x)) == 1
        hook.remove()
        result = model(x)
        result = result[0] if isinstance(result, tuple) else result
        rows, experts, weights = given[0]
        own = model.experts
        matrices = own.gate_up_proj, own.gate_up_proj_scale_inv, own.down_proj, own.down_proj_scale_inv
        expected = SPEC.reference(rows.double(), *(t.double() for t in matrices), weights.double(), experts)
        assert_close(result.reshape(rows.shape).double(), expected, rtol=3e-2, atol=3e-2)
        assert_close(layer(x), result.reshape(x.shape), rtol=3e-2, atol=3e-2)


@needs_transformers
@pytest.mark.parametrize(
    "options, reason",
    [
        ({"block_size": (64, 64)}, r"its block_size is (64, 64)"),
        ({"activation_scheme": "static"}, "its activation_scheme is static"),
    ],
)
def test_experts_that_the_op_does_not_compute_stay(options, reason, default_ops):
    model = block(**options)
    injection = kpkg.inject(model, include="FP8Experts", verbose=False)
    assert reason in str(injection) and not injection.replaced
    with pytest.raises(TypeError, match="MoE cannot stand for Qwen3MoeSparseMoeBlock: its"):
        nn.MoE.from_module(model)
