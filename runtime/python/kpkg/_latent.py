"""Computes multi-head latent attention of Hugging Face's models without the expansion of its cache.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _default
from kpkg.nn import Layer
from kpkg.nn._layer import _Described

# Layers that cache one compressed key and value for all heads, and expand them for each head in every call.
KINDS = frozenset({"DeepseekV3Attention"})
# The largest key that kernels of the op are compiled for, in elements.
_LARGEST = 576


def suits(kind: type[nn.Module]) -> bool:
    """Returns whether layers of the type expand a compressed cache in a method of their own.

    transformers does so from 5.20 on; before, caches had each head's keys.
    """
    return hasattr(kind, "expand_kv")


class LatentAttention(Layer, op="attention_latent"):
    """Attends to compressed keys: a key and its value are read once for all heads.

    Queries are projected to the compressed keys, and sums of compressed values are projected to the values of each
    head.

    The layer's own forward runs in training mode, with a mask, and where gradients are recorded. It also runs if
    weights of the attention are asked for, for several queries behind a cache, under autocast, and in torch.compile.
    """

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        size = self.kv_lora_rank + self.qk_rope_head_dim
        query, cache = torch.Size((1, self.num_heads, 2, size)), torch.Size((1, 1, 4, size))
        described = (_Described(shape, dtype, device) for shape in (query, cache))
        return (*described, None, None, 1.0, 0.0, 0, self.kv_lora_rank)

    def _stands_back(self) -> bool:
        implementation = self.config._attn_implementation
        return bool(
            self.training
            or implementation != "sdpa"
            or self.kv_lora_rank + self.qk_rope_head_dim > _LARGEST
            or type(self.kv_b_proj) is not nn.Linear
            and getattr(type(self.kv_b_proj), "torch_layer", None) is not nn.Linear
            or self.kv_b_proj.bias is not None
        )

    def _takes(self, hidden_states: Tensor, attention_mask: Tensor | None, past_key_values: Any) -> bool:
        """Returns whether the op computes this call."""
        if attention_mask is not None or not self._kpkg_wanted or self._stands_back():
            return False
        if torch.compiler.is_compiling() or torch.is_autocast_enabled(hidden_states.device.type):
            return False
        if torch.is_grad_enabled() and (hidden_states.requires_grad or any(p.requires_grad for p in self.parameters())):
            return False
        length = 0 if past_key_values is None else past_key_values.get_seq_length(self.layer_idx)
        if length and hidden_states.shape[1] > 1:
            return False  # without a mask, PyTorch counts the positions of such queries from the first key
        if self.kv_b_proj.weight.dtype != hidden_states.dtype:
            return False
        return self.supports(hidden_states.device, hidden_states.dtype)

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Computes [B, L, hidden] from the same shape, as the layer's own forward does.

        Returns None in place of weights.
        """
        if not self._takes(hidden_states, attention_mask, past_key_values):
            return self.torch_layer.forward(
                self, hidden_states, position_embeddings, attention_mask, past_key_values, **kwargs
            )
        batch, length = hidden_states.shape[:-1]
        if self.q_lora_rank is None:
            queries = self.q_proj(hidden_states)
        else:
            queries = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(hidden_states)))
        queries = queries.view(batch, length, -1, self.qk_head_dim).transpose(1, 2)
        plain, turned = torch.split(queries, [self.qk_nope_head_dim, self.qk_rope_head_dim], dim=-1)
        compressed = self.kv_a_proj_with_mqa(hidden_states)
        latent, key = torch.split(compressed, [self.kv_lora_rank, self.qk_rope_head_dim], dim=-1)
        latent = self.kv_a_layernorm(latent).view(batch, 1, length, self.kv_lora_rank)
        key = key.view(batch, 1, length, self.qk_rope_head_dim)
        rotary = vars(sys.modules[self.torch_layer.__module__])
        turn = rotary[f"apply_rotary_pos_emb{'_interleave' if self.config.rope_interleave else ''}"]
        turned, key = turn(turned, key, *position_embeddings)
        if past_key_values is not None:
            latent, key = past_key_values.update(latent, key, self.layer_idx)
        result = self._attend(plain, turned, torch.cat((latent, key), dim=-1))
        return self.o_proj(result.transpose(1, 2).reshape(batch, length, -1)), None

    def _attend(self, plain: Tensor, turned: Tensor, cache: Tensor) -> Tensor:
        """Attends with queries [B, H, L, E] and [B, H, L, R] to a cache [B, 1, S, C + R]; returns [B, H, L, V]."""
        ops, rank = _default.ops, self.kv_lora_rank
        each = self.kv_b_proj.weight.view(self.num_heads, -1, rank)
        of_keys, of_values = torch.split(each, [self.qk_nope_head_dim, self.v_head_dim], dim=1)
        query = torch.cat((ops.gemm_batched(plain, of_keys), turned), dim=-1)
        sums = ops.attention_latent(query, cache, scale=self.scaling, value_size=rank)[0]
        return ops.gemm_batched(sums, of_values.mT)
