"""Runs PyTorch's OpInfo samples of each op that kpkg covers against float64, and checks that error inputs are refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pytest
from opinfo import samples
from opinfo.cases import CASES


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("dtype", samples.DTYPES, ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", CASES)
def test_samples(name, dtype):
    counts = samples.run(name, dtype, "cpu")
    assert not counts.failures, "\n".join(counts.failures[:20])
    assert counts.passed > 0


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", CASES)
def test_error_inputs_are_refused(name):
    assert list(samples.accepted_errors(name, "cpu")) == []
