"""Compares tables for rotary embedding with those of transformers, and checks the messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": LLAMA3,
    "yarn": YARN,
    "gpt-oss": {**YARN, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
    "DeepSeek-V3": {**YARN, "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.7, "beta_fast": 32, "beta_slow": 1},
    "a factor of its own": {**YARN, "attention_factor": 1.25},
}


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
@pytest.mark.parametrize("name", SCALINGS)
def test_is_transformers_table(name, theta):
    scaling, length = SCALINGS[name], 9000
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        head_dim=64,
        max_position_embeddings=4096,
        rope_parameters={**scaling, "rope_theta": theta},
    )
    frequencies, factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu", seq_len=length)
    angles = torch.arange(length).float()[:, None] * frequencies.float()[None]
    given = kpkg.rotary_tables(length, 64, theta, scaling, trained_length=4096)
    inside = kpkg.rotary_tables(length, 64, scaling=config.rope_parameters, trained_length=4096)
    for found, same, expected in zip(given, inside, (angles.cos() * factor, angles.sin() * factor)):
        assert found.dtype == torch.float32 and found.shape == (length, 32)
        assert_close(found, expected, atol=1e-6, rtol=0)
        assert torch.equal(found, same)


def test_without_scaling():
    cos, sin = kpkg.rotary_tables(100, 128, 1e6)
    angles = torch.arange(100.0)[:, None] / 1e6 ** (torch.arange(64.0) / 64)
    assert_close(cos, angles.cos(), atol=1e-5, rtol=0)
    assert_close(sin, angles.sin(), atol=1e-5, rtol=0)
    for other in ({"type": "default"}, {"rope_theta": 1e6, "rope_type": "default"}):
        assert torch.equal(kpkg.rotary_tables(100, 128, 1e6, other)[0], cos)


def test_a_part_of_each_head():
    cos, _ = kpkg.rotary_tables(10, 256, scaling={"rope_type": "default", "partial_rotary_factor": 0.25})
    assert torch.equal(cos, kpkg.rotary_tables(10, 64)[0])


def test_short_calls_of_dynamic_have_no_scaling():
    found = kpkg.rotary_tables(100, 64, scaling={"type": "dynamic", "factor": 2.0}, trained_length=4096)
    assert torch.equal(found[0], kpkg.rotary_tables(100, 64)[0])


MISTAKES = [
    ({"rope_type": "longrope"}, "rope_type is 'longrope', expected one of default, linear"),
    ({"rope_type": "linear"}, "scaling of type linear needs factor"),
    ({"rope_type": "dynamic", "factor": 2.0}, "scaling of type dynamic needs trained_length"),
    ({"rope_type": "yarn", "factor": 2.0}, "scaling of type yarn needs original_max_position_embeddings"),
    ({"rope_type": "llama3", "factor": 2.0}, "scaling of type llama3 needs original_max_position_embeddings"),
    ({"partial_rotary_factor": 0.11}, "7 elements of a head turn, expected an even number"),
]


@pytest.mark.parametrize("scaling, message", MISTAKES)
def test_mistakes_are_named(scaling, message):
    with pytest.raises(ValueError, match=message):
        kpkg.rotary_tables(10, 64, scaling=scaling)
