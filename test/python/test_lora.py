"""Checks low-rank adapters: gradients, compiled form, adapters without rows, and messages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from opspec import load_specs
from torch.testing import assert_close

SPEC = next(spec for spec in load_specs() if spec.name == "kpkg::lora_linear")


def call(rows, k=40, n=24, rank=32, count=5, dtype=torch.float32):
    generator = torch.Generator().manual_seed(rows)

    def make(*shape):
        return (torch.randn(shape, generator=generator) * shape[-1] ** -0.5).to(dtype)

    adapters = torch.randint(-1, count, (rows,), generator=generator, dtype=torch.int32)
    adapters[0] = -1
    scales = torch.rand(count, generator=generator) + 0.5
    return [make(rows, k), make(count, rank, k), make(count, n, rank), adapters, scales, make(rows, n)]


@pytest.mark.parametrize("rows", [7, 300])
@pytest.mark.parametrize("scaled", [False, True])
def test_gradients(rows, scaled, ops):
    given = call(rows, dtype=torch.float64)
    if not scaled:
        given[4] = None
    wanted = [given[i].requires_grad_() for i in (0, 1, 2, 4, 5) if given[i] is not None]
    weight = torch.randn(rows, 24, dtype=torch.float64)
    expected = torch.autograd.grad((SPEC.reference(*given) * weight).sum(), wanted)
    with kpkg.fallback_policy("strict"):
        found = torch.autograd.grad((ops["kpkg::lora_linear"](*given) * weight).sum(), wanted)
    for one, other in zip(found, expected):
        assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rows", [7, 300])
def test_adapters_without_rows_are_not_read(rows, ops):
    """NaN in their matrices, as poison, must not reach any result."""
    given = call(rows, dtype=torch.bfloat16)
    given[3] = torch.where(given[3] == 2, -1, given[3])
    expected = ops["kpkg::lora_linear"](*given)
    given[1][2] = given[2][2] = torch.nan
    assert torch.equal(ops["kpkg::lora_linear"](*given), expected)


@pytest.mark.parametrize("rows", [7, 300])
def test_rows_without_adapters_are_those_of_base(rows, ops):
    given = call(rows)
    found = ops["kpkg::lora_linear"](*given)
    none = given[3] < 0
    assert bool(none.any()) and torch.equal(found[none], given[5][none])


def test_fake_tensors_and_compiled_form(ops):
    given = call(20)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = ops["kpkg::lora_linear"](*(mode.from_tensor(t) for t in given))
        assert y.shape == (20, 24) and y.dtype == torch.float32
    compiled = torch.compile(lambda *a: ops["kpkg::lora_linear"](*a), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*given), ops["kpkg::lora_linear"](*given))


def test_the_fallback_computes_the_same(ops):
    given = call(20)
    expected = ops["kpkg::lora_linear"](*given)
    with kpkg.fallback_policy("silent"), ops["kpkg::lora_linear"].configure(kpkg.KernelConfig(target="sm_80")):
        assert_close(ops["kpkg::lora_linear"](*given), expected)


GIVEN = call(3)
MISTAKES = [
    ({0: torch.zeros(())}, r"input has shape \[\], expected \[..., k\]"),
    ({1: GIVEN[1][:, :, 1:]}, r"a has shape \[5, 32, 39\], expected \[adapters, rank, 40\]"),
    ({2: GIVEN[2][:4]}, r"b has shape \[4, 24, 32\], expected \[5, n, 32\]"),
    ({1: GIVEN[1][:0], 2: GIVEN[2][:0]}, r"a has 0 adapters, expected 1 to 512"),
    ({1: GIVEN[1].half()}, r"input is float32, a is float16 and b is float32"),
    ({3: GIVEN[3].long()}, r"adapters is int64 \[3\], expected int32 \[3\]"),
    ({3: GIVEN[3][:2]}, r"adapters is int32 \[2\], expected int32 \[3\]"),
    ({4: GIVEN[4].double()}, r"scales is float64 \[5\], expected float32 \[5\]"),
    ({5: GIVEN[5][:, 1:]}, r"base is float32 \[3, 23\], expected float32 \[3, 24\]"),
]


@pytest.mark.parametrize("changes, message", MISTAKES, ids=[message[:24] for _, message in MISTAKES])
def test_mistakes(changes, message, ops):
    with pytest.raises(Exception, match=message):
        ops["kpkg::lora_linear"](*(changes.get(i, t) for i, t in enumerate(GIVEN)))
