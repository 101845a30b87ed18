"""Tests models of transformers for vision, audio and multi-head latent attention.

Checks what inject finds in them, and their results with it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
import torch
from torch.testing import assert_close

pytestmark = [
    pytest.mark.usefixtures("default_ops"),
    pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed"),
]


def yolos():
    from transformers import YolosConfig, YolosModel

    config = YolosConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=[64, 64],
        num_detection_tokens=5,
    )  # fmt: skip
    return YolosModel(config), {"pixel_values": torch.randn(1, 3, 64, 64)}


def whisper():
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        d_model=48, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=96, decoder_ffn_dim=96, vocab_size=99, max_source_positions=40, max_target_positions=20,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return WhisperModel(config), {
        "input_features": torch.randn(1, 80, 80),
        "decoder_input_ids": torch.randint(3, 99, (1, 7)),
    }


def sam():
    from transformers import SamVisionConfig, SamVisionModel

    config = SamVisionConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=8, window_size=3,
        global_attn_indexes=[1], output_channels=16, mlp_dim=96,
    )  # fmt: skip
    return SamVisionModel(config), {"pixel_values": torch.randn(1, 3, 64, 64)}


@pytest.mark.parametrize("make", [yolos, whisper, sam])
def test_models_that_see_and_hear(make, fast):
    torch.manual_seed(0)
    model, sample = make()
    model = model.eval()
    with torch.no_grad():
        expected = model(**sample).last_hidden_state
        with kpkg.inject(model, sample_input=sample, verbose=False) as injection:
            kinds = {row.layer for row in injection.replaced}
            assert kinds >= {"Linear", "LayerNorm"}, injection
            assert any("GELU" in kind or "gelu" in kind for kind in kinds)
            assert kinds & {"scaled_dot_product_attention()", "matmul()"}
            assert len(injection.replaced) > 0.9 * len(injection.rows), injection
            assert_close(model(**sample).last_hidden_state, expected, rtol=1e-4, atol=1e-4)
        assert torch.equal(model(**sample).last_hidden_state, expected)


@pytest.fixture
def deepseek():
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    torch.manual_seed(0)
    config = DeepseekV3Config(
        vocab_size=99, hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, n_routed_experts=4, n_group=1, topk_group=1,
        num_experts_per_tok=2,
        kv_lora_rank=32, q_lora_rank=24, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=12,
        first_k_dense_replace=2,
        max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = DeepseekV3ForCausalLM(config).eval()
    if not hasattr(type(model.model.layers[0].self_attn), "expand_kv"):
        pytest.skip("caches of this transformers have keys of each head")
    return model


def test_latent_attention(deepseek, fast):
    model, ids = deepseek, torch.randint(3, 99, (2, 9))
    op = kpkg.ops.attention_latent.op
    with torch.no_grad():
        expected = model(ids).logits
        written = model.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False)
        with kpkg.inject(model, sample_input=(ids,), verbose=False) as injection:
            rows = [row for row in injection.rows if row.layer == "DeepseekV3Attention"]
            assert [row.status for row in rows] == ["replaced"] * 2, injection
            assert not any(row.layer == "scaled_dot_product_attention()" for row in injection.replaced)
            before = op.stats()["calls"]
            assert_close(model(ids).logits, expected, rtol=1e-4, atol=1e-4)
            assert op.stats()["calls"] == before + 2
            assert torch.equal(model.generate(ids, max_new_tokens=8, min_new_tokens=8, do_sample=False), written)
            assert op.stats()["calls"] == before + 2 + 8 * 2
        assert torch.equal(model(ids).logits, expected)


def test_latent_attention_leaves_the_rest_to_the_layer(deepseek, fast):
    """Padding masks, gradients, and several tokens behind a cache run in the original layer."""
    model, ids = deepseek, torch.randint(3, 99, (2, 9))
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    op = kpkg.ops.attention_latent.op
    with torch.no_grad():
        padded = model(ids, attention_mask=mask).logits
        start = model(ids[:, :4], use_cache=True)
        expected = model(ids[:, 4:], past_key_values=start.past_key_values).logits
    kpkg.inject(model, sample_input=(ids,), verbose=False)
    before = op.stats()["calls"]
    with torch.no_grad():
        assert_close(model(ids, attention_mask=mask).logits[:, 4:], padded[:, 4:], rtol=1e-4, atol=1e-4)
    assert op.stats()["calls"] == before
    model(ids).logits.sum().backward()
    assert op.stats()["calls"] == before and model.model.layers[0].self_attn.kv_b_proj.weight.grad is not None
    with torch.no_grad():
        start = model(ids[:, :4], use_cache=True)
        assert op.stats()["calls"] == before + 2
        assert_close(model(ids[:, 4:], past_key_values=start.past_key_values).logits, expected, rtol=1e-4, atol=1e-4)
        assert op.stats()["calls"] == before + 2
