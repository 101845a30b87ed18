"""Checks mixtures of experts: gradients, compiled form, messages, the layer, and blocks of Hugging Face's models.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import importlib.util

import kpkg
import pytest
import torch
from conftest import op_calls
from kpkg import nn
from opspec import load_specs
from torch.nn import functional as F
from torch.testing import assert_close

SPEC = next(spec for spec in load_specs() if spec.name == "kpkg::moe")
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def arguments(tokens, dtype=torch.float32, hidden=40, inner=24, experts=6, choices=3, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return (torch.randn(shape, generator=generator, dtype=torch.float64) * shape[-1] ** -0.5).to(dtype)

    chosen = torch.rand(tokens, experts, generator=generator).argsort(1)[:, :choices].int()
    tensors = [normal(tokens, hidden), normal(experts, 2 * inner, hidden), normal(experts, hidden, inner)]
    return [*tensors, torch.rand(tokens, choices, generator=generator), chosen], [
        normal(experts, 2 * inner), normal(experts, hidden),
    ]  # fmt: skip


WAYS = [("silu", False), ("gelu", False), ("clamped_swiglu", True), ("clamped_swiglu", False)]


@pytest.mark.parametrize("tokens", [5, 90])
@pytest.mark.parametrize("activation, interleaved", WAYS)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
def test_gradients(dtype, tolerance, activation, interleaved, tokens, ops):
    given, biases = arguments(tokens, dtype)
    given[4][0, 0], given[4][1, 2] = -1, 6
    leaves = [t.requires_grad_() for t in (*given[:4], *biases)]
    exact = [t.detach().double().requires_grad_() for t in leaves]
    with kpkg.fallback_policy("strict"):
        y = ops["kpkg::moe"](*leaves[:4], given[4], *leaves[4:], activation, interleaved)
        direction = torch.randn(y.shape).to(dtype)
        found = torch.autograd.grad(y, leaves, direction)
    z = SPEC.reference(*exact[:4], given[4], *exact[4:], activation, interleaved)
    for mine, theirs in zip(found, torch.autograd.grad(z, exact, direction.double())):
        assert float((mine.double() - theirs).norm()) <= tolerance * float(theirs.norm())


def test_second_derivatives_and_the_fallback(ops):
    given, biases = arguments(5, torch.float64, 6, 4, 3, 2)
    leaves = [t.requires_grad_() for t in (*given[:3], *biases)]

    def run(x, up, down, up_bias, down_bias):
        return ops["kpkg::moe"](x, up, down, *given[3:], up_bias, down_bias, "gelu")

    with kpkg.fallback_policy("silent"):
        assert torch.autograd.gradcheck(run, leaves)
        assert torch.autograd.gradgradcheck(run, leaves)


@pytest.mark.parametrize("tokens", [1, 16, 50])
def test_experts_that_are_not_used_are_not_read(tokens, ops):
    """NaN in their weights, as poison, must not reach any result."""
    (x, up, down, weights, experts), biases = arguments(tokens)
    experts = torch.where(experts == 2, 4, experts)
    expected = SPEC.reference(x, up, down, weights, experts, *biases)
    for tensor in (up, down, *biases):
        tensor[2] = torch.nan
    assert_close(ops["kpkg::moe"](x, up, down, weights, experts, *biases), expected, rtol=1e-4, atol=1e-5)


def test_results_do_not_depend_on_other_tokens_or_runs(ops):
    given, _ = arguments(60, torch.bfloat16)
    y = ops["kpkg::moe"](*given)
    assert torch.equal(ops["kpkg::moe"](*given), y)


def test_compiled_form_and_fake_tensors(ops):
    given, biases = arguments(20)
    compiled = torch.compile(lambda *a: ops["kpkg::moe"](*a) * 2, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_close(compiled(*given, *biases), ops["kpkg::moe"](*given, *biases) * 2)
    leaves = [t.clone().requires_grad_() for t in given[:4]]
    for run in (compiled, lambda *a: ops["kpkg::moe"](*a) * 2):
        run(*leaves, given[4]).sum().backward()
    assert all(t.grad is not None for t in leaves)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = ops["kpkg::moe"](*(mode.from_tensor(t) for t in given))
        assert y.shape == given[0].shape and y.dtype == given[0].dtype
    torch.library.opcheck(torch.ops.kpkg.moe.default, tuple(given))


def test_autocast(ops):
    given, biases = arguments(20)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = ops["kpkg::moe"](*given, *biases)
    lower = [t if t.shape == given[3].shape else t.bfloat16() for t in (*given, *biases)]
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, ops["kpkg::moe"](*lower))


(X, UP, DOWN, W, E), (UP_BIAS, DOWN_BIAS) = arguments(4, hidden=8, inner=4, experts=3, choices=2)
MISTAKES = [
    ((X[0], UP, DOWN, W, E), r"input has shape \[8\], expected \[tokens, hidden\]"),
    ((X, UP[:, :7], DOWN, W, E), r"gate_up has shape \[3, 7, 8\], expected \[experts, 2 \* inner, 8\]"),
    ((X, UP, DOWN.mT, W, E), r"down has shape \[3, 4, 8\], expected \[3, 8, 4\]"),
    ((X, UP, DOWN, W, E.long()), r"experts is int64, expected int32"),
    ((X, UP, DOWN, W, E[:2]), r"experts has shape \[2, 2\], expected \[4, choices\]"),
    ((X, UP, DOWN, W[:, :1], E), r"weights has shape \[4, 1\], expected \[4, 2\] as experts"),
    ((X, UP, DOWN, W.half(), E), r"weights is float16, expected float32"),
    ((X, UP, DOWN, W, E, UP_BIAS[0]), r"gate_up_bias has shape \[8\], expected \[3, 8\]"),
    ((X, UP, DOWN, W, E, None, DOWN_BIAS.double()), r"down_bias is float64, and input is float32"),
    ((X, UP, DOWN, W, E, None, None, "relu"), r"activation is relu, expected silu, gelu or clamped_swiglu"),
    ((X, UP, DOWN, W, E, None, None, "silu", False, 1.0, -1.0), r"limit is -1.*, expected 0 or more"),
]


@pytest.mark.parametrize("given, message", MISTAKES, ids=[message[:25] for _, message in MISTAKES])
def test_mistakes_are_named(given, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops["kpkg::moe"](*given)


def plain_layer(layer, x):
    """Computes kpkg.nn.MoE by every expert for every token."""
    logits = F.linear(x, layer.router_weight, layer.router_bias)
    scores = logits.sigmoid() if layer.scoring == "sigmoid" else logits.softmax(-1)
    keys = scores if layer.router_choice_bias is None else scores + layer.router_choice_bias
    chosen = keys.topk(layer.top_k, -1)[1]
    weights = scores.gather(1, chosen)
    weights = (weights / weights.sum(1, keepdim=True) if layer.normalised else weights) * layer.scale
    way = (layer.activation, layer.interleaved, layer.alpha, layer.limit)
    y = SPEC.reference(x, layer.gate_up, layer.down, weights, chosen.int(), layer.gate_up_bias, layer.down_bias, *way)
    return y if layer.shared is None else y + layer.shared(x)


LAYERS = [
    {}, {"normalised": False, "activation": "gelu"}, {"scoring": "sigmoid", "choice_bias": True, "scale": 2.5},
    {"activation": "clamped_swiglu", "interleaved": True, "bias": True},
]  # fmt: skip


@pytest.mark.parametrize("options", LAYERS)
def test_layer(options, default_ops):
    layer = nn.MoE(24, 16, 8, 3, shared=torch.nn.Linear(24, 24), **options)
    with torch.no_grad():
        for name, value in [*layer.named_parameters(), *layer.named_buffers()]:
            if "bias" in name:
                value.normal_()
    x = torch.randn(7, 24)
    with torch.no_grad():
        assert_close(layer(x), plain_layer(layer, x), rtol=1e-4, atol=1e-5)
        assert layer(x.reshape(1, 7, 24)).shape == (1, 7, 24)
    with kpkg.fallback_policy("silent"):
        layer(x).square().sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    again = copy.deepcopy(layer)
    again.load_state_dict(layer.state_dict())
    with torch.no_grad():
        assert torch.equal(again(x), layer(x)) and "top_k=3" in repr(layer)


@pytest.mark.usefixtures("default_ops")
def test_layer_cannot_stand_for_others():
    with pytest.raises(TypeError, match=r"MoE cannot stand for Linear: it is no block of Mixtral"):
        nn.MoE.from_module(torch.nn.Linear(2, 2))


def configured(kind, **options):
    """Returns a small model of transformers with experts, on which each expert is used by some tokens."""
    import transformers

    sizes = {
        "vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2,
    }  # fmt: skip
    config = getattr(transformers, f"{kind}Config")(**sizes | options)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for p in model.parameters():  # some are empty, and those of routers zero
            p.normal_(0, 0.2)
    return model


MODELS = {
    "Mixtral": {"num_local_experts": 6, "num_experts_per_tok": 2},
    "Qwen3Moe": {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24, "head_dim": 8},
    "DeepseekV3": {
        "n_routed_experts": 8, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
        "first_k_dense_replace": 1, "kv_lora_rank": 16, "q_lora_rank": 12, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 4,
    },
    "GptOss": {"num_local_experts": 6, "num_experts_per_tok": 2, "head_dim": 8},
}  # fmt: skip
BLOCKS = {"Mixtral": "SparseMoeBlock", "Qwen3Moe": "SparseMoeBlock", "DeepseekV3": "MoE", "GptOss": "MLP"}


def first_of(value):
    return value[0] if isinstance(value, tuple) else value


@needs_transformers
@pytest.mark.parametrize("kind", MODELS)
def test_models_of_transformers(kind, default_ops, fast):
    torch.manual_seed(0)
    model, ids = configured(kind, **MODELS[kind]), torch.randint(3, 99, (2, 9))
    with torch.no_grad():
        expected = model(ids).logits
        with kpkg.inject(model, sample_input=(ids,), verbose=False) as injection:
            rows = [row for row in injection.rows if row.layer == f"{kind}Experts"]
            layers = 1 if kind == "DeepseekV3" else 2
            assert [row.status for row in rows] == ["replaced"] * layers, injection
            assert op_calls("moe", lambda: model(ids)) == layers
            assert_close(model(ids).logits, expected, rtol=1e-3, atol=1e-3)
        assert torch.equal(model(ids).logits, expected)


@needs_transformers
@pytest.mark.parametrize("kind", MODELS)
def test_layer_from_blocks_of_transformers(kind, default_ops):
    torch.manual_seed(0)
    model, x = configured(kind, **MODELS[kind]), torch.randn(2, 9, 32)
    name = f"{kind}{BLOCKS[kind]}"
    block = next(layer for layer in model.modules() if type(layer).__name__ == name)
    with torch.no_grad():
        layer = nn.MoE.from_module(block)
        assert_close(layer(x), first_of(block(x)), rtol=1e-4, atol=1e-4)
        assert layer.down is block.experts.down_proj


@needs_transformers
def test_training_reaches_the_parameters_of_the_model(default_ops, fast):
    model, ids = configured("Qwen3Moe", **MODELS["Qwen3Moe"]), torch.randint(3, 99, (2, 9))
    name = "model.layers.1.mlp.experts.gate_up_proj"
    model(ids).logits.square().mean().backward()
    expected = dict(model.named_parameters())[name].grad.clone()
    model.zero_grad()
    with kpkg.fallback_policy("silent"):
        injection = kpkg.inject(model, include="Qwen3MoeExperts", verbose=False)
        assert len(injection.replaced) == 2
        model(ids).logits.square().mean().backward()
    assert_close(dict(model.named_parameters())[name].grad, expected, rtol=1e-3, atol=1e-5)


@needs_transformers
def test_experts_that_the_op_does_not_compute_stay(default_ops, fast):
    options = MODELS["Mixtral"] | {"hidden_act": "relu"}
    model, ids = configured("Mixtral", **options), torch.randint(3, 99, (2, 9))
    with torch.no_grad():
        expected = model(ids).logits
        injection = kpkg.inject(model, sample_input=(ids,), verbose=False)
        rows = [row for row in injection.rows if row.layer == "MixtralExperts"]
        assert [row.status for row in rows] == ["kept: its activation is ReLU"] * 2, injection
        assert_close(model(ids).logits, expected, rtol=1e-3, atol=1e-3)


@needs_transformers
def test_compiled_model(default_ops, fast):
    model, ids = configured("Qwen3Moe", **MODELS["Qwen3Moe"]), torch.randint(3, 99, (2, 9))
    with torch.no_grad():
        expected = model(ids).logits
        injection = kpkg.inject(model, include="Qwen3MoeExperts", sample_input=(ids,), verbose=False)
        assert len(injection.replaced) == 2
        compiled = torch.compile(model, backend="aot_eager")
        assert op_calls("moe", lambda: compiled(ids)) == 2
        assert_close(compiled(ids).logits, expected, rtol=1e-3, atol=1e-3)
