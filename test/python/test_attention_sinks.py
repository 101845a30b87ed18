"""Tests sinks of attention: gradients, equality with a key whose value is 0, and wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from torch.testing import assert_close


@pytest.fixture(scope="module")
def ops():
    found = {}
    for family in ("attention", "attention_cache"):
        package = BUILD / "test-packages" / f"{family}.kpkg"
        library = kpkg.load(build_package(ROOT / "kernels_src" / family, package, "--target", "native"))
        library.register_torch()
        found |= {op.name.partition("::")[2]: op for op in library}
    return found


def drawn(*shape):
    return torch.randn(shape, dtype=torch.float64)


def attended(query, key, value, sinks, window):
    """Returns causal attention to the keys and one more, which has the score of the sink and the value 0."""
    group = query.shape[1] // key.shape[1]
    k, v = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = query @ k.mT * query.shape[3] ** -0.5
    ahead = torch.arange(k.shape[2]) - torch.arange(query.shape[2])[:, None]
    scores = scores.masked_fill((ahead > 0) | (ahead <= -window if window else False), -torch.inf)
    all_scores = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:3], 1)], -1)
    return all_scores.softmax(-1)[..., :-1] @ v, all_scores.logsumexp(-1)


@pytest.mark.parametrize("length, size, window", [(1, 8, 0), (65, 33, 0), (150, 64, 16)])
def test_gradients(ops, length, size, window):
    shapes = ((2, 4, length, size), (2, 2, length, size), (2, 2, length, size), (4,))
    inputs = [drawn(*shape).requires_grad_() for shape in shapes]
    found = torch.ops.kpkg.attention(*inputs[:3], None, True, None, 0.0, window, inputs[3])
    expected = attended(*inputs, window)
    assert_close(found, expected)
    upstream = [torch.randn_like(t) for t in expected]
    assert_close(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(expected, inputs, upstream))


def test_decoding_is_the_last_query(ops):
    q, k, v, sinks = drawn(2, 4, 90, 24), drawn(2, 2, 90, 24), drawn(2, 2, 90, 24), drawn(4)
    out, lse = attended(q, k, v, sinks, 20)
    found = ops["attention_decode"](q[:, :, -2:], k, v, window=20, sinks=sinks)
    assert_close(found, (out[:, :, -2:], lse[:, :, -2:]))


@pytest.mark.parametrize("sink", [-torch.inf, -1000.0, 1000.0])
def test_extreme_sinks(ops, sink):
    q, k, v = drawn(1, 2, 5, 8), drawn(1, 2, 5, 8), drawn(1, 2, 5, 8)
    out, lse = ops["attention"](q, k, v, sinks=torch.full((2,), sink, dtype=torch.float64))
    plain, sums = ops["attention"](q, k, v)
    if sink < 0:
        assert_close((out, lse), (plain, sums))
    else:
        assert_close((out, lse), (torch.zeros_like(out), torch.full_like(lse, sink)))


def test_wrong_sinks_are_named(ops):
    q = drawn(1, 2, 5, 8)
    for name in ("attention", "attention_decode"):
        with pytest.raises(kpkg.KernelError, match=r"sinks have shape \[3\], expected \[2\]"):
            ops[name](q, q, q, sinks=drawn(3))
        with pytest.raises(kpkg.KernelError, match="sinks are float32, query is float64, expected one dtype"):
            ops[name](q, q, q, sinks=drawn(2).float())
