"""Checks that a small transformer of kpkg's layers trains with PyTorch's loss curve.

Covers float32 and bfloat16 autocast, eager and compiled.

Runs a few steps only; test/device/train.py runs 200 steps and CUDA graphs on a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

SIZES = ["--device", "cpu", "--width", "32", "--depth", "1", "--length", "32", "--batch", "4"]


@pytest.mark.parametrize(
    "options", [["--steps", "6", "--ways", "eager,compiled"], ["--steps", "12", "--exact"]], ids=["bfloat16", "float32"]
)
def test_loss_curve(options, packages, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(BUILD / "python"),
        "KPKG_PATH": ":".join(str(p) for p in packages.values()),
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        ROOT / "test" / "device" / "train.py",
        *SIZES,
        *options,
        "--out",
        tmp_path / "train.json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    record = json.loads((tmp_path / "train.json").read_text())
    assert record["reference"][-1] < record["reference"][0] and record["fallbacks"] == {}, done.stdout
    for run in record["runs"].values():
        assert len(run["losses"]) == record["steps"] and run["difference"] <= record["allowed"]
