"""Runs every example of docs/attention.md, in its order.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, COMMAND, ROOT, compile_cpp

PAGE = (ROOT / "docs" / "attention.md").read_text()


def run(command, folder, **environment):
    done = subprocess.run(
        [str(c) for c in command], cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def marked(mark: str) -> list[str]:
    return re.findall(rf"<!-- {mark} -->\n```\w*\n(.*?)```", PAGE, re.S)


def test_python(packages, tmp_path):
    examples = marked("run")
    assert len(examples) == 9
    families = ("attention", "attention_varlen", "attention_cache", "attention_scored", "attention_fp8", "rotary")
    path = ":".join(str(packages[family]) for family in families)
    run(
        [sys.executable, "-c", "\n".join(examples)],
        tmp_path,
        PYTHONPATH=str(BUILD / "python"),
        KPKG_PATH=path,
        KPKG_FALLBACK="strict",
    )


def test_own_function(tmp_path):
    (source,) = marked("file: every_second.k")
    (tmp_path / "every_second.k").write_text(source)
    (tmp_path / "kernels_src").symlink_to(ROOT / "kernels_src")
    (commands,) = marked("command")
    for line in commands.strip().splitlines():
        output = run(["bash", "-c", line], tmp_path, PATH=f"{COMMAND.parent}:{os.environ['PATH']}")
    assert "float32 [1, 2, 50, 64]" in output


def test_shown_functions_are_those_of_the_package():
    (shown,) = marked("file: kernels_src/attention_scored/functions.k")
    assert shown in (ROOT / "kernels_src" / "attention_scored" / "functions.k").read_text()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_cpp(packages, tmp_path):
    (source,) = marked("cpp")
    (tmp_path / "main.cpp").write_text(source)
    shutil.copy(packages["attention_cache"], tmp_path)
    compile_cpp(tmp_path / "main.cpp", tmp_path / "main")
    assert run(["./main"], tmp_path) == "0.25 3.94591\n"
