"""Defines the mixture of experts of `kpkg.nn`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kpkg import _default, quantized
from kpkg._experts import Described, describe
from kpkg.quantized import Fp4Weight, PackedWeight


def _described(weight: PackedWeight | Fp4Weight) -> tuple[str, tuple[int, int]]:
    """Returns the format and the shape of packed matrices."""
    if isinstance(weight, PackedWeight):
        return weight.format, weight.shape
    groups, n = weight.scales.shape[-2:]
    is_mx = weight.scales.dtype == torch.float8_e8m0fnu
    return ("mxfp4", (n, 32 * groups)) if is_mx else ("nvfp4", (n, 16 * groups))


class MoE(nn.Module):
    """Sums the gated feed-forward layers of the experts that a router chooses for each token.

        layer = MoE(hidden_size=64, intermediate_size=32, num_experts=8, top_k=2)
        y = layer(torch.randn(5, 64))

    Input and output: (..., hidden_size). Parameters are ``router_weight`` [experts, hidden_size], ``gate_up``
    [experts, 2 * intermediate_size, hidden_size] and ``down`` [experts, hidden_size, intermediate_size], and biases
    where they are asked for. Those of 8-bit floats have ``gate_up_scale`` and ``down_scale``, as of the op ``moe_fp8``,
    and no gradients. ``shared`` is a layer for all tokens, whose result is added, or None.

    Args:
        hidden_size: Size of tokens.
        intermediate_size: Size of the hidden rows of an expert.
        num_experts: Number of experts, up to 512.
        top_k: Experts of a token, up to 32.
        activation: "silu", "gelu" or "clamped_swiglu", as of the op ``moe``.
        interleaved: Whether every other row of ``gate_up`` belongs to the gate, and not the first half.
        alpha: Factor of "clamped_swiglu".
        limit: Limit of "clamped_swiglu".
        scoring: "softmax" or "sigmoid", as of the op ``moe_routing``.
        groups: Groups of experts, of which only the best are open.
        top_groups: Open groups.
        normalised: Whether weights of a token are divided by their sum.
        scale: Factor of all weights.
        bias: Whether the layers of experts and the router have biases.
        choice_bias: Whether scores have a bias for the choice alone, the buffer ``router_choice_bias``.
        shared: A layer for all tokens.
        device: Device of parameters.
        dtype: Dtype of parameters.

    Raises:
        KernelError: An argument is out of range, at the first forward.
    """

    top_k: int
    activation: str
    interleaved: bool
    alpha: float
    limit: float
    scoring: str
    groups: int
    top_groups: int
    normalised: bool
    scale: float
    #: Whether `gate_up` and `down` have their last two dimensions exchanged, as gpt-oss has them.
    _transposed = False
    #: Whether `gate_up` and `down` are packed weights of 4 bits, with `gate_up_scales` and `down_scales`.
    _is_packed = False

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        num_experts: int,
        top_k: int,
        *,
        activation: str = "silu",
        interleaved: bool = False,
        alpha: float = 1.702,
        limit: float = 7.0,
        scoring: str = "softmax",
        groups: int = 1,
        top_groups: int = 1,
        normalised: bool = True,
        scale: float = 1.0,
        bias: bool = False,
        choice_bias: bool = False,
        shared: nn.Module | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._set(top_k, activation, interleaved, alpha, limit, scoring, groups, top_groups, normalised, scale)

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        e, h, i = num_experts, hidden_size, intermediate_size
        self.router_weight, self.gate_up, self.down = parameter(e, h), parameter(e, 2 * i, h), parameter(e, h, i)
        self.router_bias = parameter(e) if bias else None
        self.gate_up_scale = self.down_scale = None
        self.gate_up_bias = parameter(e, 2 * i) if bias else None
        self.down_bias = parameter(e, h) if bias else None
        made = torch.zeros(e, device=device) if choice_bias else None
        self.register_buffer("router_choice_bias", made)
        self.shared = shared
        self.reset_parameters()

    def _set(self, *values: Any) -> None:
        names = "top_k activation interleaved alpha limit scoring groups top_groups normalised scale".split()
        self.__dict__.update(zip(names, values))

    def reset_parameters(self) -> None:
        """Draws weights as ``torch.nn.Linear`` does, and makes biases zero. Raises nothing."""
        for weight in (self.router_weight, self.gate_up, self.down):
            bound = weight.shape[-1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)
        for bias in (self.router_bias, self.gate_up_bias, self.down_bias):
            if bias is not None:
                nn.init.zeros_(bias)

    @classmethod
    def from_module(cls, module: nn.Module) -> MoE:
        """Returns this layer in place of a block of experts of Hugging Face's models, with the same parameters.

        Args:
            module: The block of Mixtral, Qwen3-MoE, DeepSeek-V3 or gpt-oss, router included.

        Raises:
            TypeError: The block is none of these, or computes something else. The message says what.

        Stacked parameters are shared. Those of single experts, as transformers had them before 5.0, are copied.
        """
        found = describe(module)
        if not isinstance(found, Described):
            raise TypeError(f"MoE cannot stand for {type(module).__name__}: {found}")
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made._set(
            found.top_k, found.activation, found.interleaved, found.alpha, found.limit, found.scoring, found.groups,
            found.top_groups, found.normalised, found.scale,
        )  # fmt: skip
        made.router_weight, made.router_bias = found.router_weight, found.router_bias
        made.gate_up, made.gate_up_bias = found.gate_up, found.gate_up_bias
        made.down, made.down_bias = found.down, found.down_bias
        made.gate_up_scale, made.down_scale = found.gate_up_scale, found.down_scale
        made.register_buffer("router_choice_bias", found.choice_bias)
        made.shared = found.shared
        made._transposed = found.transposed
        made.train(module.training)
        return made

    def quantize_(self, group: int | None = 128) -> MoE:
        """Rounds the matrices of experts to 4 bits, and returns the layer. ``gate_up`` and ``down`` become buffers.

        Args:
            group: Columns that share a scale: 32, a multiple of 64, or None for all columns.

        Raises:
            ValueError: No kernel has such groups.
        """
        gate_up, down = (self.gate_up.mT, self.down.mT) if self._transposed else (self.gate_up, self.down)

        def packed(matrices: Tensor) -> PackedWeight:
            return quantized.stack([quantized.quantize(matrix, 4, group) for matrix in matrices])

        return self.pack_(packed(gate_up), packed(down))

    def pack_(self, gate_up: PackedWeight | Fp4Weight, down: PackedWeight | Fp4Weight) -> MoE:
        """Takes packed matrices of 4 bits in place of the layer's own, and returns the layer.

        Args:
            gate_up: Matrices [2 * intermediate_size, hidden_size] of all experts, from ``kpkg.quantized.stack``, or in
                MXFP4 from ``kpkg.quantized.pack_mxfp4``.
            down: Matrices [hidden_size, intermediate_size].

        Raises:
            ValueError: They have another format or shape.
        """
        experts, hidden = self.router_weight.shape
        inner = _described(gate_up)[1][0] // 2
        for name, given, shape in (("gate_up", gate_up, (2 * inner, hidden)), ("down", down, (hidden, inner))):
            is_stack = given.weight.dim() == 3 and len(given.weight) == experts
            format, found = _described(given)
            if format not in ("int4", "mxfp4") or found != shape or not is_stack:
                raise ValueError(
                    f"{name} has {format} {found} and a weight {list(given.weight.shape)}, expected int4 or mxfp4 "
                    f"{shape} for {experts} experts"
                )
        for name, given in (("gate_up", gate_up), ("down", down)):
            delattr(self, name)
            self.register_buffer(name, given.weight)
            self.register_buffer(f"{name}_scales", given.scales)
        self._is_packed, self._transposed = True, False
        return self

    def forward(self, input: Tensor) -> Tensor:
        """Returns the weighted sum of the experts of each token, and of the shared layer if there is one."""
        x = input.reshape(-1, input.shape[-1])
        logits = F.linear(x.to(self.router_weight.dtype), self.router_weight, self.router_bias)
        if self.scoring == "sigmoid":  # small differences of such scores decide
            logits = F.linear(x.float(), self.router_weight.float(), self.router_bias)
        weights, experts = _default.ops.moe_routing(
            logits, self.router_choice_bias, self.top_k, self.scoring, self.groups, self.top_groups, self.normalised,
            self.scale,
        )  # fmt: skip
        result = self._experts(x, weights, experts).reshape(input.shape)
        return result if self.shared is None else result + self.shared(input)

    def _experts(self, x: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
        ops, gate = _default.ops, (self.activation, self.interleaved, self.alpha, self.limit)
        if self.gate_up_scale is not None and self.down_scale is not None:
            up, down = (self.gate_up, self.gate_up_scale), (self.down, self.down_scale)
            return ops.moe_fp8(x, *up, *down, weights, experts, self.activation, self.alpha, self.limit)
        rest = weights, experts, self.gate_up_bias, self.down_bias, *gate
        if self._is_packed:
            return ops.moe_packed(x, self.gate_up, self.gate_up_scales, self.down, self.down_scales, *rest)
        gate_up, down = (self.gate_up.mT, self.down.mT) if self._transposed else (self.gate_up, self.down)
        return ops.moe(x, gate_up, down, *rest)

    def extra_repr(self) -> str:
        """Returns sizes and the way of routing."""
        experts, hidden = self.router_weight.shape
        rows = self.gate_up_scales.shape[2] // 2 if self._is_packed else self.down.shape[1 if self._transposed else 2]
        return (
            f"hidden_size={hidden}, intermediate_size={rows}, num_experts={experts}, top_k={self.top_k}, "
            f"activation={self.activation}, scoring={self.scoring}"
        )
