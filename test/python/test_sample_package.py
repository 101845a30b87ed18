"""Tests an archived package of format 1.0.

Its small ops cover cases that kernels_src lacks: in-place writes, calls without tensors, prints, failed asserts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import numpy as np
import pytest
import torch
from conftest import ROOT
from torch.testing import assert_close

pytestmark = pytest.mark.skipif("x86-64-v3" not in kpkg.cpu_targets(), reason="the kept package has code for x86-64-v3")
T = torch.randn(3, 50)


@pytest.fixture(scope="module")
def library():
    kpkg.set_fallback("test::scale", lambda x, alpha=2.0: x * alpha)
    return kpkg.load(ROOT / "test" / "runtime" / "compat" / "sample-1.0.kpkg")


def test_calls(library):
    assert_close(library.scale(T, 3.0), 3 * T)
    assert_close(library.scale(T.T, alpha=0.5), 0.5 * T.T)
    assert_close(library.scale_transposed(T), 2 * T.T)
    np.testing.assert_allclose(library.scale(T.numpy()), 2 * T.numpy())


def test_an_op_without_tensor_arguments(library):
    expected = torch.arange(20) // 8
    assert_close(torch.ops.test.number(20), expected)
    np.testing.assert_array_equal(library.number(20), expected.numpy())


def test_writing_in_place_moves_the_version_counter(library):
    x = T.clone()
    before = x._version
    torch.ops.test.scale_(x, 2.0)
    assert_close(x, 2 * T)
    assert x._version > before
    array = T.numpy().copy()
    library.scale_(array, 2.0)
    np.testing.assert_allclose(array, 2 * T.numpy())


def test_writing_into_elements_that_share_memory_is_refused(library):
    with pytest.raises(kpkg.KernelError, match="share memory"):
        library.scale_(torch.zeros(1, 3).expand(2, 3), 1.0)


def test_prints_and_a_failed_assert(library, capsys):
    with pytest.raises(kpkg.KernelError, match="block is not 3"):
        library.complain()
    assert "block 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, args", [("scale", (T, 2.0)), ("scale_", (T.clone(), 2.0)), ("scale_transposed", (T,)), ("number", (5,))]
)
def test_opcheck(library, name, args):
    torch.library.opcheck(getattr(torch.ops.test, name).default, args)


def test_one_compilation_for_all_shapes(library):
    count = 0

    def counting(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(
        lambda x: torch.ops.test.scale_transposed(library.scale(x, 3.0)), fullgraph=True, dynamic=True, backend=counting
    )
    for shape in [(3, 5), (7, 9), (10, 100)]:
        x = torch.randn(shape)
        assert_close(compiled(x), 6 * x.T)
    assert count == 1


def test_a_size_as_argument_stays_symbolic(library):
    count = 0

    def counting(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(
        lambda x: torch.ops.test.number(x.shape[0] * 2) + 1, fullgraph=True, dynamic=True, backend=counting
    )
    for n in (5, 6, 40):
        assert_close(compiled(torch.empty(n)), torch.arange(2 * n) // 8 + 1)
    assert count == 1


def test_a_dtype_that_kpkg_does_not_have_falls_back(library):
    x = torch.randn(2, 3, dtype=torch.complex64)
    with kpkg.fallback_policy("silent"):
        assert_close(library.scale(x, 2.0), 2 * x)
    with kpkg.fallback_policy("strict"), pytest.raises(kpkg.KernelError, match="dtype"):
        library.scale(x, 2.0)
