"""Packs weights in the layouts of checkpoints, and puts layers in place of those that hold them.

The layouts are written here field by field, as AutoGPTQ, AutoAWQ and compressed-tensors describe them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from types import SimpleNamespace

import kpkg
import pytest
import torch
from kpkg.nn import QuantizedLinear
from torch import nn
from torch.testing import assert_close

BF16, HALF = torch.bfloat16, torch.float16
N, K = 24, 128


def drawn(n=N, k=K, group=32, bits=4, seed=0):
    """Returns numbers and zero points from 0 on, scales [groups, n], and the dense weight."""
    generator = torch.Generator().manual_seed(seed)
    groups = k // group
    numbers = torch.randint(0, 1 << bits, (n, k), generator=generator)
    zeros = torch.randint(1, 1 << bits, (groups, n), generator=generator)
    scales = (torch.rand(groups, n, generator=generator) * 0.1 + 0.01).to(HALF)
    return numbers, zeros, scales


def dense(numbers, zeros, scales, group_of):
    """Returns the weight of which column i belongs to group group_of[i]."""
    return (numbers - zeros.t()[:, group_of]).double() * scales.double().t()[:, group_of]


def word(fields, bits):
    value = 0
    for i, field in enumerate(fields):
        value |= int(field) << (bits * i)
    return value - (1 << 32) if value >= 1 << 31 else value


def words_along(rows, bits, order=None):
    """Returns int32 words of neighbours in each row."""
    per = 32 // bits
    order = range(per) if order is None else order
    return torch.tensor(
        [[word([row[c + i] for i in order], bits) for c in range(0, len(row), per)] for row in rows.tolist()],
        dtype=torch.int32,
    )


def gptq(numbers, zeros, scales, bits=4, g_idx=None, offset=1):
    tensors = {
        "qweight": words_along(numbers, bits).t().contiguous(),
        "qzeros": words_along(zeros - offset, bits),
        "scales": scales,
    }
    return tensors if g_idx is None else {**tensors, "g_idx": g_idx.int()}


def awq(numbers, zeros, scales):
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    return {
        "qweight": words_along(numbers.t(), 4, order),
        "qzeros": words_along(zeros, 4, order),
        "scales": scales,
    }


def compressed(numbers, zeros, scales, bits=4):
    return {
        "weight_packed": words_along(numbers, bits),
        "weight_shape": torch.tensor(numbers.shape),
        "weight_scale": scales.t().contiguous(),
        "weight_zero_point": words_along(zeros, bits).t().contiguous(),
    }


def check(weight, expected, dtype=HALF, rows=3):
    """Compares the product with an identity, and with other rows."""
    for x in (torch.eye(expected.shape[1], dtype=dtype), torch.randn(rows, expected.shape[1]).to(dtype)):
        found = kpkg.quantized.linear(x, weight).double()
        exact = x.double() @ expected.t()
        assert_close(found, exact, rtol=1e-2, atol=1e-2 * float(exact.abs().max()))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_gptq(group, bits, default_ops):
    numbers, zeros, scales = drawn(group=group, bits=bits)
    expected = dense(numbers, zeros, scales, torch.arange(K) // group)
    check(kpkg.quantized.pack("gptq", gptq(numbers, zeros, scales, bits), bits=bits), expected)
    second = gptq(numbers, zeros, scales, bits, offset=0)
    check(kpkg.quantized.pack("gptq_v2", second, bits=bits), expected)


def test_gptq_whose_columns_are_in_the_order_of_their_activations(default_ops):
    numbers, zeros, scales = drawn(group=32)
    g_idx = (torch.arange(K) // 32)[torch.randperm(K, generator=torch.Generator().manual_seed(1))]
    weight = kpkg.quantized.pack("gptq", gptq(numbers, zeros, scales, g_idx=g_idx))
    assert weight.order is not None
    check(weight, dense(numbers, zeros, scales, g_idx))
    in_order = gptq(numbers, zeros, scales, g_idx=torch.arange(K) // 32)
    assert kpkg.quantized.pack("gptq", in_order).order is None


def test_zero_points_that_are_all_in_the_middle_are_left_out(default_ops):
    numbers, _, scales = drawn()
    zeros = torch.full((K // 32, N), 8)
    weight = kpkg.quantized.pack("gptq", gptq(numbers, zeros, scales))
    assert weight.zeros is None
    check(weight, dense(numbers, zeros, scales, torch.arange(K) // 32))


@pytest.mark.parametrize("group", [32, 128])
def test_awq(group, default_ops):
    numbers, zeros, scales = drawn(group=group)
    weight = kpkg.quantized.pack("awq", awq(numbers, zeros, scales), dtype=BF16)
    assert weight.scales.dtype == BF16
    exact = (numbers - zeros.t().repeat_interleave(group, 1)) * scales.to(BF16).double().t().repeat_interleave(group, 1)
    check(weight, exact, BF16)


@pytest.mark.parametrize("bits", [4, 8])
def test_compressed_tensors_in_words(bits, default_ops):
    numbers, zeros, scales = drawn(bits=bits)
    tensors = compressed(numbers, zeros, scales, bits)
    group_of = torch.arange(K) // 32
    check(kpkg.quantized.pack("compressed-tensors", tensors, bits=bits), dense(numbers, zeros, scales, group_of))
    symmetric = {name: tensor for name, tensor in tensors.items() if name != "weight_zero_point"}
    middle = torch.full_like(zeros, 1 << bits - 1)
    expected = dense(numbers, middle, scales, group_of)
    check(kpkg.quantized.pack("compressed-tensors", symmetric, bits=bits), expected)


@pytest.mark.parametrize("groups", [1, 2])
def test_plain_int8(groups, default_ops):
    numbers = torch.randint(-128, 128, (N, K)).to(torch.int8)
    scales = torch.rand(N, groups).to(HALF) * 0.1
    expected = numbers.double() * scales.double().repeat_interleave(K // groups, 1)
    check(kpkg.quantized.pack("int8", {"weight": numbers, "scale": scales}), expected)
    check(kpkg.quantized.pack("compressed-tensors", {"weight": numbers, "weight_scale": scales}), expected)


@pytest.mark.parametrize("k", [256, 200])
@pytest.mark.parametrize("kind", ["number", "rows", "blocks"])
def test_fp8(kind, k, default_ops):
    n = 140
    numbers = torch.randn(n, k).to(torch.float8_e4m3fn)
    scale = {"number": torch.rand(()), "rows": torch.rand(n, 1), "blocks": torch.rand(2, 2)}[kind] + 0.5
    name = "weight_scale_inv" if kind == "blocks" else "weight_scale"
    whole = scale.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k] if kind == "blocks" else scale
    expected = numbers.double() * whole.to(BF16).double()
    check(kpkg.quantized.pack("fp8", {"weight": numbers, name: scale}, dtype=BF16), expected, BF16)


GOOD = gptq(*drawn())
MISTAKES = [
    ("other", GOOD, 4, r"layout is 'other', expected one of gptq, gptq_v2, awq"),
    ("gptq", {}, 4, r"tensors has no 'qweight', only nothing"),
    ("gptq", {**GOOD, "scales": GOOD["scales"][:, :8]}, 4, r"scales has shape \[4, 8\], expected \[4, 24\]"),
    ("gptq", {**GOOD, "qzeros": GOOD["qzeros"][:1]}, 4, r"the unpacked qzeros has shape \[1, 24\], expected \[4, 24\]"),
    (
        "gptq",
        {**GOOD, "qweight": GOOD["qweight"].long()},
        4,
        r"qweight is torch.int64 \[16, 24\], expected torch.int32",
    ),
    ("gptq", {**GOOD, "g_idx": torch.zeros(K)}, 4, r"g_idx does not give 32 of 128 columns to each of 4 groups"),
    ("gptq", GOOD, 3, r"bits is 3, expected 4 or 8"),
    ("awq", GOOD, 8, r"bits is 8, and AWQ has 4"),
    ("gptq", gptq(*drawn(group=16)), 4, r"groups have 16 columns, expected 32, multiples of 64, or all 128"),
    ("fp8", {"weight": torch.zeros(4, 4).to(torch.float8_e4m3fn)}, 8, r"no 'weight_scale' or 'weight_scale_inv'"),
]


@pytest.mark.parametrize("layout, tensors, bits, message", MISTAKES, ids=[m[3][:30] for m in MISTAKES])
def test_mistakes(layout, tensors, bits, message):
    with pytest.raises(ValueError, match=message):
        kpkg.quantized.pack(layout, tensors, bits=bits)


@pytest.mark.parametrize("bits, group, bound", [(4, 32, 0.09), (4, 128, 0.12), (8, None, 0.01)])
def test_layer_of_a_linear_layer(bits, group, bound, default_ops):
    linear = nn.Linear(K, N).to(BF16)
    layer = QuantizedLinear.from_linear(linear, bits, group)
    x, linear = torch.randn(2, 5, K).to(BF16), linear.requires_grad_(False)
    assert float((layer(x) - linear(x)).double().norm() / linear(x).double().norm()) < bound
    other = QuantizedLinear(K, N, format=f"int{bits}", group=group, dtype=BF16)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), layer(x))


def test_layer_with_activations_of_8_bits(default_ops):
    linear, x = nn.Linear(K, N).to(BF16), torch.randn(5, K).to(BF16)
    layer = QuantizedLinear.from_linear(linear, 8, None, activations="int8")
    assert float((layer(x) - linear(x)).double().norm() / linear(x).double().norm()) < 0.02
    of_four = [QuantizedLinear.from_linear(linear, 4, 32, activations=kind) for kind in (None, "int8")]
    assert float((of_four[1](x) - of_four[0](x)).double().norm() / linear(x).double().norm()) < 0.02
    numbers = torch.randn(256, 256).to(torch.float8_e4m3fn)
    for scale in (torch.rand(256, 1) + 0.5, torch.rand(2, 2) + 0.5):
        whole = scale if scale.shape[1] == 1 else scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
        tensors = {"weight": numbers, "weight_scale": scale}
        layer = QuantizedLinear.from_checkpoint("fp8", tensors, dtype=BF16, activations="float8_e4m3fn")
        x = torch.randn(5, 256).to(BF16)
        exact = x.double() @ (numbers.double() * whole.double()).t()
        assert float((layer(x).double() - exact).norm() / exact.norm()) < 0.05


def test_mistakes_of_layers(default_ops):
    linear = nn.Linear(K, N).to(BF16)
    with pytest.raises(ValueError, match="activations in float8_e4m3fn do not fit a weight in int8"):
        QuantizedLinear.from_linear(linear, 8, None, activations="float8_e4m3fn")
    with pytest.raises(ValueError, match="activations is 'int2', expected one of int8, float8_e4m3fn"):
        QuantizedLinear.from_linear(linear, 4, None, activations="int2")
    with pytest.raises(ValueError, match="groups have 32 columns: activations in int8 take one scale for each row"):
        QuantizedLinear.from_linear(linear, 8, 32, activations="int8")
    with pytest.raises(ValueError, match="format is 'int2', expected one of int4, int8, fp8"):
        QuantizedLinear(K, N, format="int2")
    with pytest.raises(RuntimeError, match="its last dimension must have 128 elements, in_features"):
        QuantizedLinear.from_linear(linear)(torch.zeros(2, 64, dtype=BF16))


class Holder(nn.Module):
    """Holds tensors of a checkpoint, and multiplies by the weight that they stand for."""

    def __init__(self, tensors, weight):
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)
        self.expected = weight

    def forward(self, x):
        return (x.double() @ self.expected.t()).to(x.dtype)


def model_of(method, tensors, weight, **config):
    """Returns a model of one held layer, and a norm that says its dtype."""
    model = nn.Sequential(nn.LayerNorm(K, dtype=HALF), Holder(tensors, weight))
    model.config = SimpleNamespace(quantization_config={"quant_method": method, **config})
    return model


def held_models():
    numbers, zeros, scales = drawn()
    group_of = torch.arange(K) // 32
    weight = dense(numbers, zeros, scales, group_of)
    g_idx = group_of.flip(0)
    yield "gptq", model_of("gptq", gptq(numbers, zeros, scales), weight, bits=4)
    yield "gptq_v2", model_of("gptq", gptq(numbers, zeros, scales, offset=0), weight, checkpoint_format="gptq_v2")
    ordered = gptq(numbers, zeros, scales, g_idx=g_idx)
    yield "desc_act", model_of("gptq", ordered, dense(numbers, zeros, scales, g_idx), bits=4, desc_act=True)
    yield "awq", model_of("awq", awq(numbers, zeros, scales), weight, bits=4, version="gemm")
    yield "compressed", model_of("compressed-tensors", compressed(numbers, zeros, scales), weight, config_groups={})
    eight = torch.randint(-128, 128, (N, K)).to(torch.int8)
    of_rows = {"weight": eight, "weight_scale": torch.rand(N, 1) * 0.01}
    activations = {"num_bits": 8, "dynamic": True, "symmetric": True}
    config = {"group_0": {"input_activations": activations}}
    weight = eight.double() * of_rows["weight_scale"].double()
    yield "W8A8", model_of("compressed-tensors", of_rows, weight, config_groups=config)


@pytest.mark.parametrize("name, model", [pytest.param(*pair, id=pair[0]) for pair in held_models()])
def test_injected_models(name, model, default_ops):
    x = torch.randn(4, K).to(HALF)
    expected = model(x).detach()
    with torch.no_grad(), kpkg.inject(model, verbose=False, include="1") as injection:
        assert [row.replacement for row in injection.replaced] == ["QuantizedLinear"], str(injection)
        assert isinstance(model[1], QuantizedLinear)
        assert (model[1].activations == "int8") == (name == "W8A8")
        found = model(x)
        assert float((found - expected).double().norm() / expected.double().norm()) < 0.02
    assert isinstance(model[1], Holder)


REFUSALS = [
    (None, r"the model has no config.quantization_config"),
    ({"quant_method": "hqq"}, r"quant_method is hqq, expected one of gptq, awq"),
    ({"quant_method": "awq", "version": "gemv"}, r"AWQ's layout is gemv, expected gemm"),
]


@pytest.mark.parametrize("config, reason", REFUSALS, ids=[reason[:20] for _, reason in REFUSALS])
def test_refused_models(config, reason, default_ops):
    model = model_of("gptq", GOOD, torch.zeros(N, K).double())
    model.config.quantization_config = config
    injection = kpkg.inject(model, verbose=False, include="1")
    assert reason in injection.rows[0].status and not injection.replaced


def test_a_model_of_transformers_whose_linear_layers_are_held(default_ops):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).to(BF16).eval()
    count = 0
    for name, layer in list(model.model.named_modules()):
        if isinstance(layer, nn.Linear):
            n, k = layer.weight.shape
            numbers, zeros, scales = drawn(n, k, 128, seed=n)
            scales = scales * 0.02
            held = Holder(awq(numbers, zeros, scales), dense(numbers, zeros, scales, torch.arange(k) // 128))
            parent, _, child = name.rpartition(".")
            setattr(model.model.get_submodule(parent), child, held)
            count += 1
    model.config.quantization_config = {"quant_method": "awq", "bits": 4, "version": "gemm"}
    tokens = torch.arange(6).unsqueeze(0)
    with torch.no_grad():
        expected = model(tokens).logits
        with kpkg.inject(model, verbose=False, include="Holder") as injection:
            assert len(injection.replaced) == count == 7
            found = model(tokens).logits
    assert float((found - expected).double().norm() / expected.double().norm()) < 0.05
