"""Runs PyTorch's OpInfo samples of each op that kpkg covers against float64, and checks that error inputs are refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from opinfo import samples
from opinfo.cases import CASES, OF_BITS, OF_INTEGERS


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("dtype", samples.DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_BITS])
def test_samples(name, dtype):
    counts = samples.run(name, dtype, "cpu")
    assert not counts.failures, "\n".join(counts.failures[:20])
    assert counts.passed > 0


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("dtype", samples.INTEGERS, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_samples_of_integers(name, dtype):
    if not samples.has(name, dtype):
        pytest.skip("PyTorch refuses bools")
    counts = samples.run(name, dtype, "cpu")
    assert not counts.failures, "\n".join(counts.failures[:20])
    assert counts.passed > 0 and not counts.unsupported


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("dtype", (torch.int32, torch.uint8), ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "argmax", "argmin", "cumsum", "cumprod"])
def test_samples_of_integer_reductions(name, dtype):
    with kpkg.fallback_policy("strict"):
        test_samples(name, dtype)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", CASES)
def test_error_inputs_are_refused(name):
    assert list(samples.accepted_errors(name, "cpu")) == []
