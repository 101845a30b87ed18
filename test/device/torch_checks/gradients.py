"""Checks torch.compile, opcheck, autograd, autocast and torch.func.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import torch
from torch.testing import assert_close

from torch_checks import randn


def compiled_forward_and_backward() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x, [x.shape[1]], w) * 2)

    compiled = torch.compile(model, fullgraph=True)
    for rows in (3, 8, 33):
        x, w = randn(rows, 256).requires_grad_(), randn(256).requires_grad_()
        found, expected = compiled(x, w), torch.nn.functional.layer_norm(x, [256], w).mul(2).softmax(-1)
        assert_close(found, expected)
        upstream = torch.randn_like(found)
        for mine, theirs in zip(
            torch.autograd.grad(found, (x, w), upstream), torch.autograd.grad(expected, (x, w), upstream)
        ):
            assert_close(mine, theirs, atol=1e-4, rtol=1e-3)


def opcheck_on_the_gpu() -> str:
    x, w = randn(6, 40), randn(40)
    calls = {
        "softmax": (x, -1),
        "log_softmax": (x, 0),
        "layer_norm": (x, [40], w, w),
        "rms_norm": (x, [40], w),
        "gelu": (x,),
        "add": (x, w),
        "gemm": (x, x, 1.0, 1.0, False, True),
    }
    done = []
    for name, args in calls.items():
        if kpkg.ops[f"kpkg::{name}"].is_available:
            torch.library.opcheck(getattr(torch.ops.kpkg, name).default, args)
            done.append(name)
    return ", ".join(done)


def gradients() -> None:
    x, w = randn(5, 70).requires_grad_(), randn(70).requires_grad_()
    for mine, theirs in [
        (torch.ops.kpkg.softmax(x), x.softmax(-1)),
        (torch.ops.kpkg.layer_norm(x, [70], w), torch.nn.functional.layer_norm(x, [70], w)),
        (torch.ops.kpkg.gelu(x), torch.nn.functional.gelu(x)),
    ]:
        upstream = torch.randn_like(mine)
        for a, b in zip(
            torch.autograd.grad(mine, (x, w), upstream, allow_unused=True),
            torch.autograd.grad(theirs, (x, w), upstream, allow_unused=True),
        ):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert_close(a, b, atol=1e-4, rtol=1e-3)


def autocast() -> None:
    x, w = randn(8, 64), torch.nn.Linear(64, 32, device="cuda")
    layer = kpkg.nn.Linear.from_torch(w)
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
        for mine, theirs in [
            (layer(x), w(x)),
            (kpkg.nn.Softmax(-1)(layer(x)), torch.softmax(w(x), -1)),
            (kpkg.nn.GELU()(w(x)), torch.nn.functional.gelu(w(x))),
        ]:
            assert mine.dtype == theirs.dtype, (mine.dtype, theirs.dtype)
            assert_close(mine, theirs, atol=2e-2, rtol=2e-2)


def transforms() -> None:
    """Checks torch.func and forward mode; the package computes first derivatives without a fallback."""
    x, F = randn(5, 70), torch.func
    for transform in (
        lambda f: F.grad(lambda x: f(x).square().sum())(x),
        lambda f: F.vmap(F.grad(lambda x: f(x).square().sum()))(x),
    ):
        assert_close(
            transform(lambda x: torch.ops.kpkg.softmax(x, -1)), transform(lambda x: x.softmax(-1)), atol=1e-5, rtol=1e-4
        )
    with kpkg.fallback_policy("silent"):
        for transform in (
            lambda f: F.jvp(f, (x,), (x,)),
            lambda f: F.hessian(lambda x: f(x).square().sum())(x[:2, :5]),
        ):
            assert_close(
                transform(lambda x: torch.ops.kpkg.softmax(x, -1)),
                transform(lambda x: x.softmax(-1)),
                atol=1e-5,
                rtol=1e-4,
            )


def gradients_on_a_side_stream() -> None:
    x = randn(512, 1024).requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000)
        y = torch.ops.kpkg.softmax(x).square().sum()
    y.backward()
    torch.cuda.current_stream().wait_stream(stream)
    assert_close(x.grad, torch.autograd.grad(x.softmax(-1).square().sum(), x)[0], atol=1e-5, rtol=1e-4)


CHECKS = (
    compiled_forward_and_backward,
    opcheck_on_the_gpu,
    gradients,
    autocast,
    transforms,
    gradients_on_a_side_stream,
)
