"""Specs of choosing experts, moving tokens to their rows, and summing the rows of tokens.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from opspec import OpSpec, Sample, normal
from torch import Tensor

LOGITS = (torch.float32, torch.float16, torch.bfloat16)


def moe_routing(
    logits: Tensor,
    bias: Tensor | None = None,
    top_k: int = 2,
    scoring: str = "softmax",
    groups: int = 1,
    top_groups: int = 1,
    normalised: bool = True,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor]:
    scores = logits.sigmoid() if scoring == "sigmoid" else logits.softmax(-1)
    keys = scores if bias is None else scores + bias
    if groups > 1:
        per_group = logits.shape[1] // groups
        best = keys.unflatten(1, (groups, per_group)).sort(2, descending=True)[0]
        value = best[:, :, : 1 if bias is None else 2].sum(2)
        chosen = value.argsort(dim=1, descending=True, stable=True)[:, :top_groups]
        is_open = torch.zeros_like(value).scatter(1, chosen, 1.0).bool().repeat_interleave(per_group, 1)
        keys = keys.masked_fill(~is_open, -torch.inf)
    experts = keys.argsort(dim=1, descending=True, stable=True)[:, :top_k]
    weights = scores.gather(1, experts)
    if normalised:
        weights = weights / weights.sum(1, keepdim=True)
    return weights * scale, experts.int()


def moe_dispatch(input: Tensor, experts: Tensor, num_experts: int, capacity: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    flat = experts.flatten().tolist()
    rows = input.new_zeros(len(flat), input.shape[1])
    places = torch.full((len(flat),), -1, dtype=torch.int32)
    ends, row = [], 0
    for expert in range(num_experts):
        taken = [i for i, e in enumerate(flat) if e == expert][: capacity or None]
        for i in taken:
            rows[row], places[i] = input[i // experts.shape[1]], row
            row += 1
        ends.append(row)
    return rows, torch.tensor(ends, dtype=torch.int32), places.to(experts.device).reshape(experts.shape)


def terms(rows: Tensor, places: Tensor, weights: Tensor | None) -> Tensor:
    exists = (places >= 0) & (places < rows.shape[0])
    padded = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
    found = padded[torch.where(exists, places, rows.shape[0]).long()]
    return found if weights is None else found * weights.unsqueeze(2)


def moe_combine(rows: Tensor, places: Tensor, weights: Tensor | None = None) -> Tensor:
    return terms(rows, places, weights).sum(1)


def magnitude(rows: Tensor, places: Tensor, weights: Tensor | None = None) -> Tensor:
    return terms(rows, places, weights).abs().sum(1)


def spread(tokens: int, experts: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns logits between -4 and 4, exact in 8 bits, of which no two in a row are equal."""
    keys = torch.rand(tokens, experts, generator=generator, device=generator.device)
    return ((keys.argsort(1) - experts // 2) * (1 / 64 if experts > 64 else 1 / 8)).to(dtype)


def routing_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for tokens, experts, top_k in [(1, 1, 1), (0, 8, 2), (5, 8, 2), (3, 60, 4), (2, 64, 6), (33, 128, 8), (2, 512, 22)]:
        yield Sample((spread(tokens, experts, dtype, generator), None, top_k), label=f"{top_k} of {tokens}x{experts}")
    for experts, groups, top_groups, top_k in [(256, 8, 4, 8), (160, 8, 3, 6), (12, 12, 5, 5), (96, 4, 4, 32)]:
        logits = spread(7, experts, dtype, generator)
        bias = (torch.rand(experts, generator=generator, device=generator.device) * 0.5).float()
        label = f"{top_k} of {experts} in {top_groups} of {groups} groups"
        yield Sample((logits, None, top_k, "softmax", groups, top_groups), label=label)
        yield Sample((logits, bias, top_k, "sigmoid", groups, top_groups, True, 2.5), label=f"{label}, bias")
    yield Sample((spread(9, 32, dtype, generator), None, 4, "softmax", 1, 1, False), label="not normalised")
    yield Sample((spread(40, 16, dtype, generator).t(), None, 3, "sigmoid"), label="transposed")
    yield Sample((torch.zeros(3, 20, dtype=dtype), None, 4), label="equal logits")


def chosen(tokens: int, choices: int, experts: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, experts, (tokens, choices), dtype=torch.int32, generator=generator, device=generator.device)


def dispatch_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    sizes = [(1, 1, 1, 1), (0, 3, 2, 4), (5, 7, 2, 8), (4, 0, 2, 3), (70, 33, 8, 5), (300, 20, 3, 512), (9, 1030, 1, 4)]
    for tokens, columns, choices, experts in sizes:
        given = (normal((tokens, columns), dtype, generator), chosen(tokens, choices, experts, generator), experts)
        yield Sample(given, label=f"{tokens}x{columns}, {choices} of {experts}")
        yield Sample((*given, 3), label=f"{tokens}x{columns}, {choices} of {experts}, capacity 3")
    strange = chosen(50, 2, 12, generator) - 4
    yield Sample((normal((12, 50), dtype, generator).t(), strange, 5), label="transposed, experts that do not exist")
    large = (normal((5, 7), dtype, generator), chosen(5, 2, 3, generator), 3, 2**32)
    yield Sample(large, label="capacity beyond int32")
    same = torch.full((400, 2), 2, dtype=torch.int32)
    yield Sample((normal((400, 8), dtype, generator)[:, ::2], same, 4, 500), label="one expert, step 2")


def combine_samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
    for tokens, columns, choices in [(1, 1, 1), (0, 3, 2), (5, 7, 2), (4, 0, 2), (70, 33, 8), (3, 2050, 11)]:
        rows = normal((tokens * choices, columns), dtype, generator)
        order = torch.randperm(tokens * choices, generator=generator).int().reshape(tokens, choices)
        weights = normal((tokens, choices), torch.float32, generator)
        yield Sample((rows, order, weights), label=f"{tokens}x{columns}, {choices} choices")
        yield Sample((rows, order), label=f"{tokens}x{columns}, {choices} choices, no weights")
    places = chosen(20, 4, 30, generator) - 6
    yield Sample((normal((20, 40), dtype, generator)[:, ::2], places), label="rows that do not exist, step 2")
    yield Sample((normal((9, 15), dtype, generator).t(), places.t()), label="transposed")


SPECS = [
    OpSpec(
        "kpkg::moe_routing",
        moe_routing,
        routing_samples,
        dtypes=LOGITS,
        benchmarks=lambda generator: {
            "4096x128": Sample((spread(4096, 128, torch.float32, generator), None, 8)),
        },
        eager=lambda *args: tuple(result.contiguous() for result in moe_routing(*args)),
    ),
    OpSpec(
        "kpkg::moe_dispatch",
        moe_dispatch,
        dispatch_samples,
        benchmarks=lambda generator: {
            "512x1024, 4 of 64": Sample(
                (normal((512, 1024), torch.float32, generator), chosen(512, 4, 64, generator), 64)
            ),
        },
    ),
    OpSpec(
        "kpkg::moe_combine",
        moe_combine,
        combine_samples,
        magnitude=magnitude,
        benchmarks=lambda generator: {
            "512x1024, 4 choices": Sample(
                (normal((2048, 1024), torch.float32, generator), chosen(512, 4, 2048, generator))
            ),
        },
        eager=moe_combine,
    ),
]
