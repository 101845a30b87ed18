"""Tests that `pip install .` builds the runtime without the compiler, and that the installed package works alone.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

SCRIPT = """
import sys
import numpy as np
import kpkg
assert kpkg.__file__.startswith(sys.argv[2]), kpkg.__file__
ops = kpkg.load(sys.argv[1])
x = np.ones((2, 4), np.float32)
assert np.allclose(ops.softmax(x), 0.25)
import torch
assert torch.allclose(ops.softmax(torch.ones(2, 4)), torch.tensor(0.25))
assert torch.allclose(torch.ops.kpkg.softmax(torch.ones(2, 4)), torch.tensor(0.25))
"""


@pytest.mark.skipif(importlib.util.find_spec("scikit_build_core") is None, reason="scikit-build-core is not installed")
def test_pip_install(packages, tmp_path):
    target, environment = tmp_path / "site", {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        str(ROOT),
        "--target",
        str(target),
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-q",
    ]
    command += [
        "--config-settings",
        f"build-dir={BUILD / 'pip-install'}",
    ]  # kept, so that a second run rebuilds only changed files
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (target / "kpkg" / "py.typed").exists()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(packages["softmax"]), str(target)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
