"""Tests rotary embedding: in place, under autograd, torch.compile and autocast, and messages for wrong arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package
from opspec import load_specs
from torch.testing import assert_close

SPEC = next(spec for spec in load_specs() if spec.name == "kpkg::rotary_embedding")


@pytest.fixture(scope="module")
def rotary():
    package = BUILD / "test-packages" / "rotary.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "rotary", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def call(tokens=5, heads=4, keys=2, dim=64, pairs=32, dtype=torch.float32):
    q, k = (torch.randn(tokens, n, dim, dtype=torch.float64).to(dtype) for n in (heads, keys))
    angle = torch.rand(17, pairs, dtype=torch.float64) * 6
    return q, k, angle.cos().to(dtype), angle.sin().to(dtype), torch.randint(0, 17, (tokens,))


@pytest.mark.parametrize("dtype", SPEC.dtypes)
@pytest.mark.parametrize("name", ["rotary_embedding_", "rotary_embedding__reference"])
def test_in_place(rotary, name, dtype):
    """Queries and keys change in place with any strides, and nothing around them changes."""
    op = rotary[name]
    for index, sample in enumerate(SPEC.samples(dtype, torch.Generator().manual_seed(7))):
        query, key, *rest = sample.args
        if op is not rotary["rotary_embedding_"] and index % 5:
            continue  # references are slow
        held = [torch.full((*x.shape[:-1], x.shape[-1] + 6), 77.0, dtype=dtype) for x in (query, key)]
        inside = [frame[..., 3 : 3 + x.shape[-1]].copy_(x) for frame, x in zip(held, (query, key))]
        assert op(*inside, *rest) is None
        SPEC.check(sample, tuple(inside))
        for frame in held:
            assert bool((frame[..., :3] == 77).all() and (frame[..., -3:] == 77).all()), sample.label


def test_in_place_is_seen_by_autograd(rotary):
    q, k, *rest = call()
    before = q._version
    torch.ops.kpkg.rotary_embedding_(q, k, *rest)
    assert q._version == before + 1


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradient(rotary, interleaved):
    q, k, cos, sin, at = call(dtype=torch.float64)
    q, k = q.requires_grad_(), k.requires_grad_()
    op = torch.ops.kpkg.rotary_embedding
    torch.autograd.gradcheck(lambda a, b: op(a, b, cos, sin, at, interleaved), (q, k))


def test_one_result_alone_has_a_gradient(rotary):
    q, k, *rest = call(dtype=torch.float64)
    q.requires_grad_()
    torch.ops.kpkg.rotary_embedding(q, k, *rest)[0].sum().backward()
    leaf = q.detach().clone().requires_grad_()
    SPEC.reference(leaf, k, *rest)[0].sum().backward()
    assert_close(q.grad, leaf.grad)


def test_compiled(rotary):
    arguments = call()
    op = torch.ops.kpkg.rotary_embedding
    run = torch.compile(lambda *a: op(*a)[0] * 2, fullgraph=True, backend="aot_eager", dynamic=True)
    assert_close(run(*arguments), op(*arguments)[0] * 2)

    def in_place(q, k, *rest):
        q = q + 1
        torch.ops.kpkg.rotary_embedding_(q, k, *rest)
        return q

    expected = op(arguments[0] + 1, *arguments[1:])[0]
    held = (arguments[0], arguments[1].clone(), *arguments[2:])
    assert_close(torch.compile(in_place, fullgraph=True, backend="aot_eager")(*held), expected)
    assert_close(held[1], op(*arguments)[1])


def test_autocast_keeps_the_dtype_of_queries(rotary):
    q, k, cos, sin, at = call(dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        y, z = torch.ops.kpkg.rotary_embedding(q, k, cos.float(), sin.float(), at)
    assert y.dtype == z.dtype == torch.bfloat16


def test_positions_out_of_bounds(rotary):
    q, k, cos, sin, at = call()
    for bad in (17, -1):
        at[3] = bad
        with pytest.raises(kpkg.KernelError, match="a position is out of bounds"):
            rotary["rotary_embedding"](q, k, cos, sin, at)


WRONG = {
    r"query has shape \[5, 64\], expected \[tokens, heads, dim\]": lambda q, k, c, s, p: (q[:, 0], k[:, 0], c, s, p),
    r"key has shape \[4, 2, 64\], query \[5, 4, 64\]": lambda q, k, c, s, p: (q, k[1:], c, s, p),
    r"key is float64, query is float32": lambda q, k, c, s, p: (q, k.double(), c, s, p),
    r"cos has shape \[5, 1, 32\], expected \[positions, pairs\]": lambda q, k, c, s, p: (q, k, c[:5, None], s, p),
    r"sin has shape \[17, 31\], cos \[17, 32\]": lambda q, k, c, s, p: (q, k, c, s[:, 1:], p),
    r"sin is float64, cos is float32": lambda q, k, c, s, p: (q, k, c, s.double(), p),
    r"cos is float64, expected float32": lambda q, k, c, s, p: (q, k, c.double(), s.double(), p),
    r"cos has 32 pairs for heads of 62 elements": lambda q, k, c, s, p: (q[..., 2:], k[..., 2:], c, s, p),
    r"positions have shape \[4\], expected \[5\]": lambda q, k, c, s, p: (q, k, c, s, p[1:]),
    r"positions are int16, expected int64 or int32": lambda q, k, c, s, p: (q, k, c, s, p.short()),
    r"cos has 4 rows for 5 tokens": lambda q, k, c, s, p: (q, k, c[:4], s[:4]),
    r"sections are \[8, 24\], expected three": lambda q, k, c, s, p: (q, k, c, s, p.expand(3, 5), False, [8, 24]),
    r"sections \[8, 8, 8\] have not the 32 pairs": lambda q, k, c, s, p: (q, k, c, s, p.expand(3, 5), False, [8] * 3),
    r"expected interleaved=False": lambda q, k, c, s, p: (q, k, c, s, p.expand(3, 5), True, [8, 8, 16]),
    r"sections need positions": lambda q, k, c, s, p: (q, k, c, s, None, False, [8, 8, 16]),
    r"cos has 129 pairs, expected at most 128": lambda q, k, c, s, p: (
        torch.ones(5, 1, 300),
        torch.ones(5, 1, 300),
        torch.ones(9, 129),
        torch.ones(9, 129),
    ),
}


@pytest.mark.parametrize("name", ["rotary_embedding", "rotary_embedding_", "rotary_embedding_backward"])
@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(rotary, message, name):
    with pytest.raises(kpkg.KernelError, match=message):
        rotary[name](*WRONG[message](*call()))
