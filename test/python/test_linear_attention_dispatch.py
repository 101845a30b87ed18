"""Tests gradients of linear attention by the kernels for GPUs, compiled for this machine's CPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from test_linear_attention import FORMS, check_gradients, check_scan_gradients


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
