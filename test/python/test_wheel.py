"""Checks that the wheel loads without a compiler, finds its own packages, and runs with PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, COMMAND, ROOT

RUNS = """
import sys, torch, kpkg
assert kpkg.__file__.startswith(sys.argv[1]), kpkg.__file__
from kpkg.nn import GEMM
print(f"kpkg enabled: {GEMM(10, 10).use_kpkg}")
x = torch.randn(3, 10)
torch.testing.assert_close(kpkg.ops.softmax(x), x.softmax(-1))
layer = GEMM(10, 4)
with torch.no_grad():
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
assert not any(info["fallbacks"] for info in kpkg.kernel_info().values())
"""


COMPILES = """
import kpkg, torch
compiler = kpkg.get_compiler()
x = torch.randn(1000)
for _ in range(2):
    torch.testing.assert_close(compiler.compile_from_file("doubled.k", "mine").doubled(x), 2 * x)
print(compiler.compilations, compiler.command)
"""


def install(folder, *arguments):
    """Builds a wheel and returns the folder into which it is installed."""
    made = subprocess.run(
        [sys.executable, ROOT / "tools" / "wheel", folder, "--build", BUILD, *arguments], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        folder / "site",
        made.stdout.strip(),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def site(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "packages").mkdir()
    for family in ("gemm", "softmax"):
        shutil.copy(packages[family], folder / "packages")
    return install(folder, "--packages", folder / "packages")


def run(site, *arguments):
    """Runs in an environment with nothing but the installation: no compiler, no build tree."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=site.parent,
        env={"PYTHONPATH": str(site), "PATH": "/nonexistent", "HOME": str(site)},
    )


def test_has_types(site):
    assert (site / "kpkg" / "py.typed").exists() and (site / "kpkg" / "_native.pyi").exists()


def test_works_on_its_own(site):
    done = run(site, "-c", RUNS, str(site))
    assert (done.returncode, done.stdout) == (0, "kpkg enabled: True\n"), done.stderr
    assert (
        (site / "kpkg" / "py.typed").exists()
        and (site / "kpkg" / "_native.pyi").exists()
        and (site / "kpkg" / "libkpkg.so.0").exists()
    )


def test_says_what_it_lacks(site):
    done = run(site, "-m", "kpkg", "build", "x.k")
    assert done.returncode == 3 and "there is no `kpkg` command" in done.stderr
    done = run(site, "-m", "kpkg", "doctor")
    assert done.returncode == 0 and "2 files" in done.stdout, done.stdout + done.stderr


def is_static():
    return "libLLVM" not in subprocess.run(["ldd", COMMAND], capture_output=True, text=True).stdout


def test_command_of_the_wheel_compiles(tmp_path):
    """The wheel's command compiles kernels on a machine without compilers: its PATH is otherwise empty."""
    if not is_static():
        pytest.skip("this build's command needs LLVM's libraries")
    site = install(tmp_path, "--command", COMMAND)
    shutil.copy(ROOT / "test" / "tools" / "kpkg" / "inputs" / "doubled.k", tmp_path)
    done = run(site, "-m", "kpkg", "version")
    assert done.returncode == 0 and "kpkg 0." in done.stdout, done.stdout + done.stderr
    done = run(site, "-c", COMPILES)
    assert done.stdout == f"1 {site / 'kpkg' / 'bin' / 'kpkg'}\n", done.stdout + done.stderr
    done = run(site, "-m", "kpkg", "doctor")
    assert done.returncode == 0 and re.search(r"ok +command ", done.stdout), done.stdout + done.stderr


def test_command_with_llvm_libraries_is_refused(tmp_path):
    if is_static():
        pytest.skip("this build's command is static")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "wheel", tmp_path, "--build", BUILD, "--command", COMMAND],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0 and "KPKG_STATIC_COMMAND" in done.stderr
