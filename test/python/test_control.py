"""Tests kernels whose control flow follows from tiles: values on CPUs. test/device/control.py tests them on a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
from conftest import BUILD, ROOT, build_package
from torch.testing import assert_close

SPEC = importlib.util.spec_from_file_location("control", ROOT / "test" / "device" / "control.py")
CONTROL = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(CONTROL)


@pytest.fixture(scope="module")
def control():
    source = ROOT / "test" / "device" / "kernels" / "control.k"
    return kpkg.load(build_package(source, BUILD / "test-packages" / "control.kpkg", "--target", "native", "-O1"))


@pytest.mark.parametrize("name, arguments, expected", list(CONTROL.cases("cpu")))
def test_values_are_pytorchs(control, name, arguments, expected):
    assert_close(getattr(control, name)(*arguments), expected, atol=2e-4, rtol=1e-4)
