"""Checks that ptxas accepts the runtime's own kernels, which clang compiles when kpkg is built, for every GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import BUILD, COMMAND

PTX = BUILD / "runtime" / "device" / "cuda" / "CopyElements.ptx"


@pytest.fixture(scope="module")
def ptxas():
    lines = json.loads(subprocess.run([COMMAND, "doctor", "--json"], capture_output=True, text=True).stdout)
    line = next(line for line in lines if line["subject"] == "ptxas")
    assert line["state"] == "ok", line["text"]
    return line["text"].split(",")[0]


@pytest.mark.parametrize("chip", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_copies_assemble_without_spills(ptxas, chip, tmp_path):
    done = subprocess.run(
        [ptxas, "-v", "-arch", chip, PTX, "-o", tmp_path / "copies.cubin"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("0 bytes spill stores, 0 bytes spill loads") == 9, done.stderr


def test_drivers_of_cuda_11_read_them():
    assert ".version 7.0" in PTX.read_text()
