"""Checks gradients of the row ops through autograd against finite differences in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from torch.testing import assert_close

TARGET = torch.tensor([2, 0, -100, 4])


def along(dim):
    return lambda op, x: op(x, dim)


def summed(results):
    """Returns one tensor of all results, so that all have a gradient."""
    return sum(result.square() for result in results)


CASES = {
    "kpkg::softmax": [(along(-1), [(3, 5)]), (along(0), [(3, 5)]), (along(1), [(2, 3, 4)])],
    "kpkg::log_softmax": [(along(-1), [(3, 5)]), (along(1), [(2, 3, 4)])],
    "kpkg::layer_norm": [
        (lambda op, x: op(x, [5]), [(3, 5)]),
        (lambda op, x, w, b: op(x, [2, 5], w, b, 1e-3), [(3, 2, 5), (2, 5), (2, 5)]),
        (lambda op, x, b: op(x, [5], None, b), [(3, 5), (5,)]),
    ],
    "kpkg::native_layer_norm": [(lambda op, x, w, b: op(x, [5], w, b)[0], [(3, 5), (5,), (5,)])],
    "kpkg::rms_norm": [(lambda op, x: op(x, [5]), [(3, 5)]), (lambda op, x, w: op(x, [5], w), [(2, 3, 5), (5,)])],
    "kpkg::cross_entropy": [
        (lambda op, x: op(x, TARGET), [(4, 5)]),
        (lambda op, x: op(x, TARGET, None, -100, "none"), [(4, 5)]),
        (lambda op, x: op(x, TARGET.abs() % 98, torch.arange(1.0, 6.0, dtype=torch.float64), 4, "mean", 0.2), [(4, 5)]),
        (lambda op, x: op(x, TARGET.view(2, 2), None, -100, "sum", 0.1), [(2, 5, 2)]),
    ],
    "kpkg::residual_tanh_gated_rmsnorm": [(lambda op, x, r, g: op(x, r, g), [(3, 5), (3, 5), (5,)])],
    "kpkg::residual_rms_norm": [
        (lambda op, x, r: summed(op(x, r)), [(3, 5), (3, 5)]),
        (lambda op, x, r, w: op(x, r, w)[0], [(3, 5), (3, 5), (5,)]),
    ],
    "kpkg::residual_layer_norm": [
        (lambda op, x, r, w, b: summed(op(x, r, w, b)), [(3, 5), (3, 5), (5,), (5,)]),
        (lambda op, x, r: op(x, r)[1], [(3, 5), (3, 5)]),
    ],
    "kpkg::linear": [
        (lambda op, x, w, b: op(x, w, b), [(2, 3, 5), (4, 5), (4,)]),
        (lambda op, x, w: op(x, w), [(9, 5), (7, 5)]),
        (lambda op, x, w, b: op(x, w, b), [(5,), (4, 5), (4,)]),
    ],
    "kpkg::gemm": [
        (lambda op, a, b: op(a, b, alpha=0.5), [(6, 5), (5, 7)]),
        (lambda op, a, b, c: op(a, b, 0.5, 2.0, True, False, c), [(5, 6), (5, 7), (7,)]),
        (lambda op, a, b, c, v: op(a, b, 0.5, 2.0, False, True, c, v, "gelu"), [(6, 5), (7, 5), (6, 7), (7,)]),
        (lambda op, a, b, c, v: op(a, b, 1.0, 0.5, True, True, c, v, "silu"), [(5, 6), (7, 5), (6, 1), (7,)]),
        (lambda op, a, b, c: op(a, b, 1.0, 0.5, c=c, activation="relu"), [(6, 5), (5, 7), ()]),
    ],
    "kpkg::group_norm": [
        (lambda op, x, w, b: op(x, 2, w, b), [(2, 4, 3), (4,), (4,)]),
        (lambda op, x: op(x, 1), [(2, 4, 3)]),
    ],
    "kpkg::native_group_norm": [(lambda op, x, w, b: op(x, 2, w, b)[0], [(2, 4, 3), (4,), (4,)])],
    "kpkg::instance_norm": [(lambda op, x, w, b: op(x, w, b), [(2, 4, 3), (4,), (4,)])],
    "kpkg::batch_norm": [
        (
            lambda op, x, w, b: op(x, torch.arange(4.0).double(), torch.arange(1.0, 5.0).double(), w, b),
            [(2, 4, 3), (4,), (4,)],
        ),
        (lambda op, x: op(x, torch.arange(4.0).double(), torch.arange(1.0, 5.0).double()), [(5, 4)]),
    ],
}


@pytest.mark.parametrize(
    "name, call, shapes",
    [pytest.param(name, *case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)],
)
def test_gradcheck(ops, name, call, shapes):
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *tensors: call(ops[name], *tensors), inputs)


def test_second_derivatives_of_native_layer_norm_have_its_eps(libraries):
    """PyTorch's implementation computes them, with the same number added to the variance."""
    x = torch.randn(3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()

    def second(norm):
        (first,) = torch.autograd.grad(norm(x).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    with kpkg.fallback_policy("silent"):
        found = second(lambda x: libraries["norm"].native_layer_norm(x, [8], eps=0.5)[0])
    assert_close(found, second(lambda x: torch.nn.functional.layer_norm(x, [8], eps=0.5)))
