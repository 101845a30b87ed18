"""Checks mixtures of experts with matrices of 4 bits: layers, gradients, and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from kpkg import nn

BF16 = torch.bfloat16


def layer_of(**options):
    return nn.MoE(64, 64, 6, 2, dtype=BF16, **options)


def rounded(matrices, group):
    """Returns the matrices that packed ones of 4 bits stand for."""
    groups = matrices.detach().float().unflatten(2, (-1, group))
    scales = (groups.abs().amax(3, keepdim=True) / 7).to(BF16).float()
    return ((groups / scales).round().clamp(-8, 7) * scales).flatten(2).to(BF16)


@pytest.mark.parametrize("tokens", [1, 5, 40])
@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.parametrize("options", [{}, {"activation": "clamped_swiglu", "interleaved": True, "bias": True}])
def test_layers(tokens, group, options, default_ops):
    layer = layer_of(**options)
    x = torch.randn(tokens, 64).to(BF16)
    with torch.no_grad():
        layer.gate_up.copy_(rounded(layer.gate_up, group))
        layer.down.copy_(rounded(layer.down, group))
        expected = layer(x)
        found = layer.quantize_(group)(x)
    assert float((found - expected).double().norm() / expected.double().norm()) < 0.02
    assert set(layer.state_dict()) >= {"gate_up", "gate_up_scales", "down", "down_scales"}
    assert "intermediate_size=64" in repr(layer)


def checkpoint(n, k, experts=6):
    """Returns blocks and scales as gpt-oss has them, and the matrices that they stand for."""
    blocks = torch.randint(0, 256, (experts, n, k // 32, 16), dtype=torch.uint8)
    scales = torch.randint(121, 125, (experts, n, k // 32), dtype=torch.uint8)
    sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    fields = torch.stack([blocks & 15, blocks >> 4], -1).flatten(-2).long()
    numbers = sizes[fields & 7] * (1 - 2 * (fields >> 3))
    return blocks, scales, (numbers * torch.exp2(scales.float() - 127).unsqueeze(3)).flatten(2).to(BF16)


@pytest.mark.parametrize("tokens", [1, 40])
def test_experts_of_gpt_oss(tokens, default_ops):
    """Blocks and scales of MXFP4, with the biases and the gate of that model."""
    layer = nn.MoE(64, 96, 6, 2, dtype=BF16, activation="clamped_swiglu", interleaved=True, bias=True)
    up, down = checkpoint(192, 64), checkpoint(64, 96)
    x = torch.randn(tokens, 64).to(BF16)
    with torch.no_grad():
        layer.gate_up_bias.normal_()
        layer.down_bias.normal_()
        layer.gate_up.copy_(up[2])
        layer.down.copy_(down[2])
        expected = layer(x)
        pack = kpkg.quantized.pack_mxfp4
        with kpkg.fallback_policy("strict"):
            found = layer.pack_(pack(*up[:2]), pack(*down[:2]))(x)
        assert float((found - expected).double().norm() / expected.double().norm()) < 0.01
    assert "intermediate_size=96" in repr(layer)


def test_the_fallback_of_floats(ops):
    up, down = (kpkg.quantized.pack_mxfp4(*checkpoint(n, k)[:2]) for n, k in ((192, 64), (64, 96)))
    chosen = torch.rand(20, 6).argsort(1)[:, :2].int().contiguous()
    given = torch.randn(20, 64).to(BF16), *up[:2], *down[:2], torch.rand(20, 2), chosen
    op = ops["kpkg::moe_packed"]
    expected = op(*given)
    with kpkg.fallback_policy("silent"), op.configure(kpkg.KernelConfig(target="sm_80")):
        assert float((op(*given) - expected).double().norm() / expected.double().norm()) < 0.01


def test_gradients_of_the_input(default_ops):
    layer = layer_of().quantize_(32)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    x = torch.randn(5, 64).to(BF16).requires_grad_()
    with kpkg.fallback_policy("silent"):
        layer(x).float().square().sum().backward()
    assert x.grad is not None and bool(x.grad.isfinite().all()) and float(x.grad.abs().max()) > 0


def stacked(n, k, experts=6):
    return kpkg.quantized.stack([kpkg.quantized.quantize(torch.randn(n, k).to(BF16), 4, 32) for _ in range(experts)])


def test_mistakes_of_layers():
    good = stacked(64, 64)
    with pytest.raises(ValueError, match=r"gate_up has int4 \(128, 32\) and a weight \[6, 1, 1024\], expected int4 or"):
        layer_of().pack_(stacked(128, 32), good)
    with pytest.raises(ValueError, match=r"down has int4 \(64, 64\) and a weight \[5, 1, 512\], expected int4 or"):
        layer_of().pack_(stacked(128, 64), stacked(64, 64, 5))
    nv = kpkg.quantized.Fp4Weight(torch.zeros(6, 1, 1024), torch.zeros(6, 4, 128, dtype=torch.float8_e4m3fn))
    with pytest.raises(
        ValueError, match=r"gate_up has nvfp4 \(128, 64\) and a weight \[6, 1, 1024\], expected int4 or"
    ):
        layer_of().pack_(nv, good)
    with pytest.raises(ValueError, match="there are no weights to stack"):
        kpkg.quantized.stack([])
    different = [kpkg.quantized.quantize(torch.randn(n, 64), 4, 32) for n in (16, 32)]
    with pytest.raises(ValueError, match=r"weight 1 is int4 \(32, 64\), and the first int4 \(16, 64\)"):
        kpkg.quantized.stack(different)


X = torch.zeros(3, 128, dtype=BF16)
UP, UPS = torch.zeros(4, 2, 1024, dtype=torch.int32), torch.zeros(4, 2, 128, dtype=BF16)
DOWN, DOWNS = torch.zeros(4, 1, 1024, dtype=torch.int32), torch.zeros(4, 1, 128, dtype=BF16)
WEIGHTS, EXPERTS = torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.int32)
MISTAKES = [
    ((X[0], UP, UPS, DOWN, DOWNS, WEIGHTS, EXPERTS), r"input has shape \[128\], expected \[tokens, hidden\]"),
    ((X, UP.long(), UPS, DOWN, DOWNS, WEIGHTS, EXPERTS), r"gate_up is int64, expected int32"),
    (
        (X, UP, UPS.float(), DOWN, DOWNS, WEIGHTS, EXPERTS),
        r"gate_up_scales is float32, and input is bfloat16: expected that",
    ),
    ((X, UP[:, :1], UPS, DOWN, DOWNS, WEIGHTS, EXPERTS), r"gate_up has shape \[4, 1, 1024\], expected \[4, 2, 1024\]"),
    ((X, UP, UPS, DOWN, DOWNS[:, :, :64], WEIGHTS, EXPERTS), r"down has shape \[4, 1, 1024\], expected \[4, 1, 512\]"),
    ((X, UP, UPS, DOWN, DOWNS, WEIGHTS, EXPERTS.long()), r"experts is int64, expected int32"),
    ((X, UP, UPS.repeat(1, 3, 1), DOWN, DOWNS, WEIGHTS, EXPERTS), r"gate_up_scales has 6 groups, which 128 columns do"),
    (
        (X, UP, torch.ones(4, 2, 128).to(torch.float8_e8m0fnu), DOWN, DOWNS, WEIGHTS, EXPERTS),
        r"gate_up_scales has 2 groups of 32 columns, and 128 columns",
    ),
    ((X, UP, UPS, DOWN, DOWNS, WEIGHTS, EXPERTS, None, None, "relu"), r"activation is relu, expected silu, gelu"),
]


@pytest.mark.parametrize("given, message", MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_mistakes(given, message, ops):
    with pytest.raises(Exception, match=message):
        ops["kpkg::moe_packed"](*given)
