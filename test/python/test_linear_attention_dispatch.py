"""Tests gradients of linear attention by the kernels for GPUs, compiled for this machine's CPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import build_for_gpus
from test_linear_attention import FORMS, check_gradients


@pytest.mark.parametrize("name, normed", FORMS)
def test_gradients(name, normed):
    library = kpkg.load(build_for_gpus("linear_attention"))

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            ctx.arguments = arguments
            return library[f"kpkg::{name}"](*arguments)

        @staticmethod
        def backward(ctx, *upstream):
            found = library[f"kpkg::{name}_autograd"](*upstream, *in_order(ctx.arguments), True)
            tensors = iter(found)
            return tuple(next(tensors) if isinstance(t, torch.Tensor) else None for t in ctx.arguments)

    def in_order(arguments):
        """Returns tensors before numbers."""
        tensors = [t for t in arguments if isinstance(t, torch.Tensor)]
        return [*tensors, *(t for t in arguments if not isinstance(t, torch.Tensor))]

    check_gradients(Call.apply, name, torch.bfloat16, 70, 20, normed)
