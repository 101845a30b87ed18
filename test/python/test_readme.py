"""Runs every snippet of the README, in its order, in one folder.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, COMMAND, ROOT, compile_cpp

SNIPPET = re.compile(r"<!-- snippet: (\w+) -->\n```\w*\n(.*?)```", re.S)
SNIPPETS = dict(SNIPPET.findall((ROOT / "README.md").read_text()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Returns a folder with the README's kernel, built into a package."""
    path = tmp_path_factory.mktemp("readme")
    (path / "scaled_sum.k").write_text(SNIPPETS["kernel"])
    subprocess.run([COMMAND, "build", "scaled_sum.k", "-o", "scaled_sum.kpkg"], cwd=path, check=True)
    subprocess.run([COMMAND, "build", ROOT / "kernels_src" / "gemm", "-o", "gemm.kpkg"], cwd=path, check=True)
    return path


def run(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(code: str, folder: Path) -> str:
    return run([sys.executable, "-c", code], folder, PYTHONPATH=str(BUILD / "python"))


def test_every_snippet_is_known():
    assert set(SNIPPETS) == {"kernel", "command", "cpp", "torch", "inject", "fallback"}


def test_commands(folder):
    for line in SNIPPETS["command"].strip().splitlines():
        output = run(["bash", "-c", line], folder, PATH=f"{COMMAND.parent}:{os.environ['PATH']}")
    assert "scaled_sum_blocks" in output


def test_cpp(folder):
    (folder / "main.cpp").write_text(SNIPPETS["cpp"])
    compile_cpp(folder / "main.cpp", folder / "main")
    assert run(["./main"], folder) == "6 12 18\n"


def test_torch(folder):
    run_python(SNIPPETS["torch"], folder)


def test_inject(folder):
    code = (
        f"import os; os.environ['KPKG_PATH'] = {str(folder / 'gemm.kpkg')!r}; os.environ['KPKG_FALLBACK'] = 'silent'\n"
        + SNIPPETS["inject"]
    )
    assert "of 2 replaced" in run_python(code, folder)


def test_python_page(folder, packages):
    """Runs every marked example of docs/python.md in order."""
    page = (ROOT / "docs" / "python.md").read_text()
    examples = re.findall(r"<!-- run -->\n```python\n(.*?)```", page, re.S)
    assert len(examples) >= 3
    variables = {"PYTHONPATH": str(BUILD / "python"), "KPKG_PATH": ":".join(str(p) for p in packages.values())}
    variables |= {"KPKG_COMMAND": str(COMMAND), "KPKG_CACHE_DIR": str(folder / "cache")}
    shutil.copy(packages["softmax"], folder)
    (folder / "broken.k").write_text("def broken(:\n")
    assert "of 2 replaced" in run([sys.executable, "-c", "\n".join(examples)], folder, **variables)


def test_start_page(folder, packages):
    """Runs every marked example of docs/start.md in order."""
    page = (ROOT / "docs" / "start.md").read_text()
    (folder / "double.k").write_text(re.search(r"<!-- kernel -->\n```k\n(.*?)```", page, re.S)[1])
    examples = re.findall(r"<!-- run -->\n```python\n(.*?)```", page, re.S)
    variables = {"PYTHONPATH": str(BUILD / "python"), "KPKG_COMMAND": str(COMMAND)}
    variables |= {"KPKG_PATH": str(folder / "gemm.kpkg"), "KPKG_CACHE_DIR": str(folder / "cache")}
    shutil.copy(packages["softmax"], folder)
    assert "softmax_rows" in run([sys.executable, "-c", "\n".join(examples)], folder, **variables)
    build = "kpkg build double.k -o double.kpkg && kpkg run double.kpkg double --input 'x=randn(5,f32)'"
    assert "double_blocks" in run(["bash", "-c", build], folder, PATH=f"{COMMAND.parent}:{os.environ['PATH']}")


def test_fallback(folder):
    assert "int32" in run_python(SNIPPETS["fallback"], folder)
