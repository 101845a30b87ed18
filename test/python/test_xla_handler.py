"""Tests the handlers of XLA's custom calls without JAX, with call frames like XLA's.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ctypes
import sys

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "test" / "device"))

import xla_handler


def test_host(packages):
    xla_handler.check(str(packages["softmax"]), "cpu")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_states_the_oldest_version(device):
    assert xla_handler.stated_version(device) == (0, 1)


def test_gpu_needs_an_xla_that_tells_the_device():
    ordinal = ctypes.sizeof(ctypes.c_void_p)
    caller = xla_handler.Caller("cuda", None, ctypes.sizeof(xla_handler.Api) - ordinal)
    memory = xla_handler.Memory("cpu", [0.0], None)
    assert "needs a newer JAX" in caller.softmax("check:softmax", 1, 1, 0, memory, memory)
