"""Runs the digits tutorial from end to end, and checks that its page matches its files.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, COMMAND, ROOT

FOLDER = ROOT / "docs" / "tutorial-digits"


def run(*command, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_page_shows_the_files():
    page = (ROOT / "docs" / "tutorial-digits.md").read_text()
    shown = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.S)
    assert len(shown) == 3
    for name, text in shown:
        assert text in (ROOT / name).read_text(), f"{name} on the page differs from the file"


def test_pytorch_and_cpp_predict_the_same(tmp_path):
    compiler = shutil.which("c++") or shutil.which("clang++-22")
    if compiler is None:
        pytest.skip("no C++ compiler")
    package = tmp_path / "digits.kpkg"
    kernels = ROOT / "kernels_src"
    run(
        COMMAND,
        "build",
        kernels / "gemm",
        kernels / "norm",
        kernels / "softmax",
        FOLDER / "relu.k",
        "-o",
        package,
        "--target",
        "native",
    )
    text = run(sys.executable, FOLDER / "digits.py", package, tmp_path, PYTHONPATH=str(BUILD / "python"))
    assert float(re.search(r"accuracy ([\d.]+)", text)[1]) > 0.9

    program = tmp_path / "digits"
    libraries = BUILD / "lib"
    run(
        compiler,
        "-std=c++20",
        f"-I{ROOT / 'runtime' / 'include'}",
        FOLDER / "digits.cpp",
        f"-L{libraries}",
        "-lkpkg",
        f"-Wl,-rpath,{libraries}",
        "-o",
        program,
    )
    predicted = run(program, package, tmp_path / "digits.bin")
    assert predicted.split() == (tmp_path / "predictions.txt").read_text().split()
