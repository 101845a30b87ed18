"""Computes the experts of Hugging Face's models by one op.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kpkg import _default, _experts
from kpkg.nn import Layer
from kpkg.nn._layer import _Described


class _Experts(Layer, op="moe"):
    """Computes the experts that a router has chosen.

    The layer's own forward runs where the op does not compute the same, or has no kernel. It also runs for choices that
    are no matrix of indices with weights of the same shape.
    """

    #: Names of children that the op computes, too.
    absorbed: ClassVar[tuple[str, ...]] = ()
    #: Whether the layer also runs in compiled code: PyTorch calls libraries for experts, and fuses nothing with them.
    stays_when_compiled: ClassVar[bool] = False

    def _prepare(self) -> None:
        super()._prepare()
        self._kpkg_reason: str | None = None

    def _why_not(self) -> str:
        """Returns why the op cannot compute this layer, or ""."""
        raise NotImplementedError

    def _stands_back(self) -> bool:
        return bool(self._why_it_stands_back())

    def _why_it_stands_back(self) -> str:
        if self._kpkg_reason is None:
            self._kpkg_reason = self._why_not()
        return self._kpkg_reason

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        def tensor(*shape: int, of: torch.dtype = dtype) -> _Described:
            return _Described(torch.Size(shape), of, device)

        chosen = tensor(2, 1, of=torch.float32), tensor(2, 1, of=torch.int32)
        return (tensor(2, 64), tensor(2, 64, 64), tensor(2, 64, 32), *chosen)

    def _runs(self, x: Tensor, experts: Any, weights: Any) -> bool:
        if not self._kpkg_wanted or self._stands_back() or not isinstance(experts, Tensor):
            return False
        if not isinstance(weights, Tensor) or weights.shape != experts.shape or experts.dim() != 2:
            return False
        return self.supports(x.device, x.dtype)

    def _compute(self, x: Tensor, up: Tensor, down: Tensor, experts: Tensor, weights: Tensor, *more: Any) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        result = _default.ops.moe(rows, up, down, weights.float(), experts.int(), *more)
        return result.reshape(x.shape)


class StackedExperts(_Experts):
    """Computes a module with the stacked parameters of all experts."""

    stays_when_compiled = True

    def _why_not(self) -> str:
        return _experts.reason_against_stacked(self)

    def forward(self, hidden_states: Tensor, *given: Any, **named: Any) -> Any:  # type: ignore[override]
        """Computes [tokens, hidden] or [batch, tokens, hidden] from the same shape, as the layer's own forward does."""
        is_gpt_oss = self.torch_layer.__name__ == "GptOssExperts"
        names = ("router_indices", "routing_weights") if is_gpt_oss else ("top_k_index", "top_k_weights")
        found = dict(zip(names, given)) | named
        experts, weights = (found.get(name) for name in names)
        is_known = len(found) == 2 and set(found) == set(names)
        if is_gpt_oss and isinstance(experts, Tensor) and isinstance(weights, Tensor):
            weights = self._of_choices(weights, experts)
        if torch.compiler.is_compiling() and not self._kpkg_when_compiled:
            return self.torch_layer.forward(self, hidden_states, *given, **named)
        if not is_known or hidden_states.dtype != self.down_proj.dtype and not _is_autocast(hidden_states):
            return self.torch_layer.forward(self, hidden_states, *given, **named)
        if not self._runs(hidden_states, experts, weights):
            return self.torch_layer.forward(self, hidden_states, *given, **named)
        assert isinstance(experts, Tensor) and isinstance(weights, Tensor), "_runs has checked this"
        if is_gpt_oss:
            way = ("clamped_swiglu", True, self.alpha, self.limit)
            biases = self.gate_up_proj_bias, self.down_proj_bias
            matrices = self.gate_up_proj.mT, self.down_proj.mT
            return self._compute(hidden_states, *matrices, experts, weights, *biases, *way)
        activation = _experts.activation_of(self)
        return self._compute(hidden_states, self.gate_up_proj, self.down_proj, experts, weights, None, None, activation)

    def _of_choices(self, weights: Tensor, experts: Tensor) -> Tensor | None:
        """Returns the weights of choices. Before transformers 5.0 gpt-oss had one for each expert, most of them 0."""
        if hasattr(self.torch_layer, "_apply_gate") and weights.shape == experts.shape:
            return weights
        if weights.shape[-1] != self.num_experts or experts.dim() != 2:
            return None
        return weights.gather(1, experts)


class Fp8Experts(_Experts, op="moe_fp8"):
    """Computes a module with the experts of a model in 8-bit floats, whose blocks have scales.

    The layer's own forward runs while gradients are recorded: the op has none.
    """

    stays_when_compiled = True

    def _why_not(self) -> str:
        return _experts.reason_against_fp8(self)

    def _example(self, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
        def tensor(*shape: int, of: torch.dtype) -> _Described:
            return _Described(torch.Size(shape), of, device)

        fp8, wide = torch.float8_e4m3fn, torch.float32
        dtype = torch.bfloat16 if dtype == fp8 else dtype  # inject asks with the dtype of parameters
        up = tensor(2, 256, 64, of=fp8), tensor(2, 2, 1, of=wide)
        down = tensor(2, 64, 128, of=fp8), tensor(2, 1, 1, of=wide)
        return (tensor(2, 64, of=dtype), *up, *down, tensor(2, 1, of=wide), tensor(2, 1, of=torch.int32))

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Any:
        """Computes [tokens, hidden] from the same shape, as the layer's own forward does."""
        is_recorded = torch.is_grad_enabled() and hidden_states.requires_grad
        if is_recorded or torch.compiler.is_compiling() and not self._kpkg_when_compiled:
            return self.torch_layer.forward(self, hidden_states, top_k_index, top_k_weights)
        if not self._runs(hidden_states, top_k_index, top_k_weights):
            return self.torch_layer.forward(self, hidden_states, top_k_index, top_k_weights)
        rows = hidden_states.reshape(-1, hidden_states.shape[-1])
        up, down = (self.gate_up_proj, self.gate_up_proj_scale_inv), (self.down_proj, self.down_proj_scale_inv)
        chosen = top_k_weights.float(), top_k_index.int()
        result = _default.ops.moe_fp8(rows, *up, *down, *chosen, *_experts.gate_of_fp8(self))
        return result.reshape(hidden_states.shape)


def _is_autocast(x: Tensor) -> bool:
    return torch.is_autocast_enabled(x.device.type)


class ListedExperts(_Experts):
    """Computes a block with a list of experts, which transformers had before 5.0.

    Parameters of the experts become views of stacked ones at the first call. The layer's own forward runs while
    gradients are recorded, since these belong to the single parameters.
    """

    absorbed = ("experts",)

    def _why_not(self) -> str:
        return _experts.reason_against_list(self)

    def _prepare(self) -> None:
        super()._prepare()
        self._kpkg_stacked: tuple[tuple[int, ...], Tensor, Tensor] | None = None

    def _stacked(self) -> tuple[Tensor, Tensor]:
        if self._kpkg_stacked is None or self._kpkg_stacked[0] != _experts.places_of(self):
            up, down = _experts.stack_experts(self, share=True)
            self._kpkg_stacked = _experts.places_of(self), up, down
        return self._kpkg_stacked[1:]

    def forward(self, hidden_states: Tensor) -> Any:
        """Computes [batch, tokens, hidden] from the same shape, as the layer's own forward does."""
        is_recorded = torch.is_grad_enabled() and (
            hidden_states.requires_grad or any(p.requires_grad for p in self.parameters())
        )
        own = self.torch_layer.forward
        if self.training or is_recorded or torch.compiler.is_compiling() or _is_autocast(hidden_states):
            return own(self, hidden_states)
        first = _experts.projections(self.experts[0]) if not self._stands_back() else None
        if first is None or first[0].weight.dtype != hidden_states.dtype:
            return own(self, hidden_states)
        if self.torch_layer.__name__ == "DeepseekV3MoE":
            experts, weights = self.gate(hidden_states)
            if not self._runs(hidden_states, experts, weights):
                return own(self, hidden_states)
            return self._sum(hidden_states, experts, weights) + self.shared_experts(hidden_states)
        logits = self.gate(hidden_states.view(-1, hidden_states.shape[-1]))
        scores = nn.functional.softmax(logits, dim=1, dtype=torch.float)
        weights, experts = torch.topk(scores, self.top_k, dim=-1)
        if getattr(self, "norm_topk_prob", True):
            weights = weights / weights.sum(dim=-1, keepdim=True)
        weights = weights.to(hidden_states.dtype)
        if not self._runs(hidden_states, experts, weights):
            return own(self, hidden_states)
        return self._sum(hidden_states, experts, weights), logits

    def _sum(self, hidden_states: Tensor, experts: Tensor, weights: Tensor) -> Tensor:
        up, down = self._stacked()
        activation = _experts.activation_of(self.experts[0])
        return self._compute(hidden_states, up, down, experts, weights, None, None, activation)
