"""Tests ops in programs that AOTInductor compiles ahead of time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, compile_cpp
from torch.testing import assert_close

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("clang++") is None, reason="AOTInductor needs a C++ compiler"
)


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.ops.kpkg.softmax(torch.ops.kpkg.layer_norm(x * 2, [8], w), -1) + 1


@pytest.fixture(scope="module")
def compiled(packages, tmp_path_factory) -> tuple[str, kpkg.Op]:
    """Returns the compiled model, and the op softmax that its calls from Python reach."""
    # PyTorch calls the newest library of an op: this one, whatever earlier tests have loaded.
    softmax = kpkg.load(packages["softmax"]).softmax
    softmax(torch.ones(2, 2))
    kpkg.load(packages["norm"]).layer_norm(torch.ones(2, 2), [2])
    rows = torch.export.Dim("rows", min=2, max=64)
    arguments = torch.randn(4, 8), torch.randn(8)
    program = torch.export.export(Model(), arguments, dynamic_shapes={"x": {0: rows}, "w": None})
    path = tmp_path_factory.mktemp("aoti") / "model.pt2"
    return torch._inductor.aoti_compile_and_package(program, package_path=str(path)), softmax


def test_export_compile_and_load(compiled):
    package, softmax = compiled
    loaded = torch._inductor.aoti_load_package(package)
    calls = softmax.stats()["launches"]
    w = torch.randn(8)
    for count in (4, 9):
        x = torch.randn(count, 8)
        assert_close(loaded(x, w), Model()(x, w))
    assert softmax.stats()["launches"] == calls + 4


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_program_without_python(compiled, packages, tmp_path):
    """Runs the program of docs/runtime.md."""
    page = (ROOT / "docs" / "runtime.md").read_text()
    (tmp_path / "main.cpp").write_text(re.search(r"<!-- aoti -->\n```cpp\n(.*?)```", page, re.S)[1])
    torch_folder, kpkg_folder = Path(torch.__file__).parent, BUILD / "python" / "kpkg"
    flags = ["-std=c++20", "-isystem", torch_folder / "include"]
    flags += [f"-L{kpkg_folder}", f"-Wl,-rpath,{kpkg_folder}", "-lkpkg_torch"]
    flags += [f"-L{torch_folder}/lib", f"-Wl,-rpath,{torch_folder}/lib", "-ltorch", "-ltorch_cpu", "-lc10", "-lkpkg"]
    compile_cpp(tmp_path / "main.cpp", tmp_path / "main", *flags)

    def run(*loaded: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([tmp_path / "main", compiled[0], *loaded], capture_output=True, text=True)

    done = run(packages["softmax"], packages["norm"])
    assert done.returncode == 0, done.stderr
    expected = Model()(torch.arange(72.0).reshape(9, 8) / 7, torch.arange(8.0) / 3)
    assert_close(torch.tensor([float(line) for line in done.stdout.split()]).reshape(9, 8), expected)
    needed = subprocess.run(["ldd", tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert "libpython" not in needed and "libtorch_python" not in needed
    assert "absent.kpkg': No such file" in run(tmp_path / "absent.kpkg").stderr
