"""Tests ops on DTensors over two and four gloo processes on this machine.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT


@pytest.mark.parametrize("count", [2, 4])
def test_gloo(count, packages):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script, needed = (
        ROOT / "test" / "python" / "sharded.py",
        [str(packages[name]) for name in ("softmax", "norm", "gemm", "elementwise")],
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "OMP_NUM_THREADS": "1", "KPKG_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, script, str(rank), str(count), port, "cpu", *needed],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        for rank in range(count)
    ]
    try:
        outputs = [rank.communicate(timeout=180)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for number, output in enumerate(outputs):
        assert f"sharded {number} of {count} right" in output, output[-3000:]
