"""Checks a layer of experts against PyTorch, its gradients, its compiled form, and the messages of its ops.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from torch.testing import assert_close

TOKENS, COLUMNS, HIDDEN, EXPERTS, CHOICES = 37, 24, 16, 6, 2


def layer(ops, x, router, up, down, capacity=0):
    weights, experts = ops["kpkg::moe_routing"](x @ router, top_k=CHOICES)
    rows, ends, places = ops["kpkg::moe_dispatch"](x, experts, EXPERTS, capacity)
    hidden = torch.relu(ops["kpkg::grouped_gemm"](rows, up, ends))
    return ops["kpkg::moe_combine"](ops["kpkg::grouped_gemm"](hidden, down, ends), places, weights)


def plain(x, router, up, down, capacity=0):
    """Computes every expert for every token, and sums those that were chosen and not dropped."""
    scores = (x @ router).softmax(-1)
    weights, chosen = scores.topk(CHOICES)
    weights = weights / weights.sum(1, keepdim=True)
    all_experts = torch.einsum("teh,ehc->tec", torch.relu(torch.einsum("tc,ech->teh", x, up)), down)
    is_chosen = torch.nn.functional.one_hot(chosen, EXPERTS)
    order = is_chosen.flatten(0, 1).cumsum(0).reshape(is_chosen.shape)
    kept = is_chosen * (order <= capacity) if capacity else is_chosen
    return ((kept * weights.unsqueeze(2)).sum(1).unsqueeze(2) * all_experts).sum(1)


def parameters(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(TOKENS, COLUMNS), (COLUMNS, EXPERTS), (EXPERTS, COLUMNS, HIDDEN), (EXPERTS, HIDDEN, COLUMNS)]
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("capacity", [0, 5])
def test_layer_and_its_gradients(capacity, ops):
    given = parameters()
    with kpkg.fallback_policy("silent"):
        mine, theirs = layer(ops, *given, capacity), plain(*given, capacity)
        assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
        direction = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1))
        for found, expected in zip(*(torch.autograd.grad(y, given, direction) for y in (mine, theirs))):
            assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_layer_runs_packaged_code_alone(ops):
    with torch.no_grad(), kpkg.fallback_policy("strict"):
        assert_close(layer(ops, *parameters(2)), plain(*parameters(2)), atol=1e-5, rtol=1e-5)


def test_compiled_layer(ops):
    given = parameters(3)
    compiled = torch.compile(lambda *a: layer(ops, *a), fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert_close(compiled(*given), plain(*given), atol=1e-5, rtol=1e-5)


def test_experts_of_another_device_are_dropped(ops):
    x = torch.randn(5, 4)
    experts = torch.tensor([[0, 3], [4, 2], [3, 1], [5, 0], [2, 3]], dtype=torch.int32)
    rows, ends, places = ops["kpkg::moe_dispatch"](x, experts - 2, 2)
    assert ends.tolist() == [2, 5]
    assert places.tolist() == [[-1, 2], [-1, 0], [3, -1], [-1, -1], [1, 4]]
    assert_close(rows, torch.cat([x[[1, 4, 0, 2, 4]], torch.zeros(5, 4)]))


X, CHOSEN = torch.ones(3, 8), torch.zeros(3, 2, dtype=torch.int32)
MISTAKES = [
    ("moe_routing", (torch.ones(2, 513),), r"logits has shape \[2, 513\], expected \[tokens, experts\] with 1 to 512"),
    ("moe_routing", (X, None, 9), r"top_k is 9, expected 1 to 32 of 8 open experts"),
    ("moe_routing", (X, None, 5, "softmax", 4, 2), r"top_k is 5, expected 1 to 32 of 4 open experts"),
    ("moe_routing", (X, None, 2, "tanh"), r"scoring is tanh, expected softmax or sigmoid"),
    ("moe_routing", (X, None, 2, "softmax", 3), r"groups is 3, expected a divisor of 8 experts"),
    ("moe_routing", (X, None, 2, "softmax", 2, 3), r"top_groups is 3, expected 1 to 2 groups"),
    ("moe_routing", (X, torch.ones(7)), r"bias has shape \[7\], expected \[8\]"),
    ("moe_routing", (X, torch.ones(8, dtype=torch.float64)), r"bias is float64, expected float32"),
    ("moe_dispatch", (X, CHOSEN[:2], 4), r"input has shape \[3, 8\], expected \[2, columns\]"),
    ("moe_dispatch", (X, CHOSEN.long(), 4), r"experts is int64, expected int32"),
    ("moe_dispatch", (X, CHOSEN, 0), r"num_experts is 0, expected 1 to 512"),
    ("moe_dispatch", (X, CHOSEN, 4, -1), r"capacity is -1, expected 0 \(none\) or more"),
    ("moe_combine", (X, CHOSEN, torch.ones(3, 1)), r"weights has shape \[3, 1\], expected \[3, 2\] as places"),
    ("moe_combine", (X, CHOSEN, torch.ones(3, 2).half()), r"weights is float16, expected float32"),
]


@pytest.mark.parametrize("name, arguments, message", MISTAKES)
def test_mistakes_are_named(name, arguments, message, ops):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        ops[f"kpkg::{name}"](*arguments)
