"""Blocks with a list of experts, as transformers 4 has them: attributes, names and forwards are those of its models.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    """Has the projections of an expert by the names of its model: gate, up and down."""

    def __init__(self, names, hidden, inner, bias=False):
        super().__init__()
        self.names = names
        for name, (n, k) in zip(names, ((inner, hidden), (inner, hidden), (hidden, inner))):
            self.add_module(name, nn.Linear(k, n, bias=bias))
        self.act_fn = nn.SiLU()

    def forward(self, x):
        gate, up, down = (getattr(self, name) for name in self.names)
        return down(self.act_fn(gate(x)) * up(x))


def loop(block, x, chosen, weights):
    sums = torch.zeros_like(x)
    mask = F.one_hot(chosen, len(block.experts)).permute(2, 1, 0)
    for e in torch.greater(mask.sum((-1, -2)), 0).nonzero():
        choice, token = torch.where(mask[e].squeeze(0))
        rows = block.experts[int(e)](x[token]) * weights[token, choice, None]
        sums.index_add_(0, token, rows.to(x.dtype))
    return sums


class MixtralSparseMoeBlock(nn.Module):
    names = ("w1", "w3", "w2")
    norm = True

    def __init__(self, hidden=32, inner=24, experts=6, top_k=2, bias=False):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(hidden, experts, bias=False)
        self.experts = nn.ModuleList(Expert(self.names, hidden, inner, bias) for _ in range(experts))

    def forward(self, hidden_states):
        batch, tokens, hidden = hidden_states.shape
        x = hidden_states.view(-1, hidden)
        logits = self.gate(x)
        weights, chosen = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), self.top_k, dim=-1)
        if self.norm:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return loop(self, x, chosen, weights.to(x.dtype)).reshape(batch, tokens, hidden), logits


class Qwen3MoeSparseMoeBlock(MixtralSparseMoeBlock):
    names = ("gate_proj", "up_proj", "down_proj")
    norm = False
    norm_topk_prob = False


class Router(nn.Module):
    def __init__(self, hidden, experts, top_k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden) * 0.2)
        self.e_score_correction_bias = nn.Buffer(torch.rand(experts))
        self.top_k, self.n_group, self.topk_group = top_k, 1, 1
        self.norm_topk_prob, self.routed_scaling_factor = True, 2.5

    def forward(self, hidden_states):
        scores = F.linear(hidden_states.view(-1, hidden_states.shape[-1]).float(), self.weight.float()).sigmoid()
        chosen = torch.topk(scores + self.e_score_correction_bias, self.top_k, dim=-1, sorted=False)[1]
        weights = scores.gather(1, chosen)
        return chosen, weights / (weights.sum(dim=-1, keepdim=True) + 1e-20) * self.routed_scaling_factor


class DeepseekV3MoE(nn.Module):
    def __init__(self, hidden=32, inner=24, experts=6, top_k=2, bias=False):
        super().__init__()
        names = ("gate_proj", "up_proj", "down_proj")
        self.experts = nn.ModuleList(Expert(names, hidden, inner, bias) for _ in range(experts))
        self.gate = Router(hidden, experts, top_k)
        self.shared_experts = Expert(names, hidden, inner)

    def forward(self, hidden_states):
        chosen, weights = self.gate(hidden_states)
        x = hidden_states.view(-1, hidden_states.shape[-1])
        return loop(self, x, chosen, weights).view(hidden_states.shape) + self.shared_experts(hidden_states)


for _kind in (MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock, DeepseekV3MoE):
    _kind.__module__ = "transformers.models.of_version_4"
