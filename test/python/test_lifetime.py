"""Runs the stress of loads, forks, exits and subinterpreters for a short time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import BUILD


def test_packages_come_and_go(packages):
    command = [sys.executable, str(Path(__file__).with_name("load_stress.py")), str(packages["softmax"])]
    counts = ["--loads=60", "--threads=8", "--forks=5", "--exits=2"]
    environment = os.environ | {"PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run(command + counts, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "subinterpreters are refused" in done.stdout
