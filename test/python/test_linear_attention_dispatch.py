"""Tests gradients of linear attention by the kernels for GPUs, compiled for this machine's CPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from test_linear_attention import FORMS, attended, check_gradients, check_scan_gradients, drawn, heads


def call_of(name, options):
    """Returns a function whose gradient is the op's. All `options`, arguments that may be absent, need theirs."""
    library = kpkg.load(build_for_gpus("linear_attention"))

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            ctx.arguments = arguments
            return library[f"kpkg::{name}"](*arguments)

        @staticmethod
        def backward(ctx, *upstream):
            needs = [True] * options
            found = library[f"kpkg::{name}_autograd"](*upstream, *in_order(ctx.arguments), *needs)
            tensors = iter(found)
            return tuple(next(tensors) if isinstance(t, torch.Tensor) else None for t in ctx.arguments)

    def in_order(arguments):
        """Returns tensors before numbers."""
        tensors = [t for t in arguments if isinstance(t, torch.Tensor)]
        return [*tensors, *(t for t in arguments if not isinstance(t, torch.Tensor))]

    return Call.apply


@pytest.mark.parametrize("name, normed", FORMS)
def test_gradients(name, normed):
    check_gradients(call_of(name, 1), name, torch.bfloat16, 70, 20, normed)


def test_gradients_of_a_scan():
    check_scan_gradients(call_of("mamba2_scan", 4), torch.bfloat16, 70, 20, "", True)


def test_segments_of_a_long_sequence_are_joined():
    """The sequence has three segments. Keys and values are narrower than blocks."""
    q, k, v, g, beta = heads(3100, torch.bfloat16)
    q, k, v, g, beta = q[:1, :, :1], k[:1, :, :1], v[:1, :, :2], g[:1, :, :2].float(), beta[:1, :, :2].float()
    state = drawn(1, 2, 20, 24, dtype=torch.float32)
    library = kpkg.load(build_for_gpus("linear_attention"))
    found = library["kpkg::gated_delta_rule"](q, k, v, g * 0.02, beta, None, state, True)
    expected = attended(*(t.double() for t in (q, k, v, g * 0.02, beta, state)), True)
    for got, wanted in zip(found, expected):
        assert float((got.double() - wanted).abs().max() / wanted.abs().max()) < 2 * torch.finfo(torch.bfloat16).eps
