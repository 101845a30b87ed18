"""Tests the wheels: that they name all they need, that one serves every Python, and that each runs without compilers.

It needs the network, since environments get NumPy and nanobind-backend from PyPI.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import BUILD, COMMAND, ROOT
from user_project import check_cmake, check_pkg_config

#: A call of an op of each family, with NumPy alone.
RUNS = """
import sys
import numpy as np
import kpkg
assert kpkg.__file__.startswith(sys.argv[1]), kpkg.__file__
assert "torch" not in sys.modules
x = np.random.default_rng(7).standard_normal((3, 10)).astype(np.float32)
exponentials = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(kpkg.ops.softmax(x), exponentials / exponentials.sum(1, keepdims=True), rtol=1e-5)
np.testing.assert_allclose(kpkg.ops.gemm(x, x.T.copy()), x @ x.T, rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(kpkg.ops.relu(x), np.maximum(x, 0))
np.testing.assert_allclose(kpkg.ops.sum(x, [1]), x.sum(1), rtol=1e-5, atol=1e-5)
try:
    kpkg.ops.softmax(x, dim=5)
except kpkg.KernelError as error:
    assert "dimension 5 is out of range" in str(error), error
else:
    raise AssertionError("a wrong dimension is refused")
"""
COMPILES = """
import numpy as np
import kpkg
compiler = kpkg.get_compiler()
x = np.ones(1000, np.float32)
np.testing.assert_allclose(compiler.compile_from_file("doubled.k", "mine").doubled(x), 2 * x)
print(compiler.command)
"""


def pythons() -> list[Path]:
    """Returns an interpreter of each version from 3.10 on: those on PATH, and those that pyenv installed."""
    found = {}
    installed = Path("~/.pyenv/versions").expanduser().glob("*/bin")
    for folder in [
        *installed,
        *map(Path, os.environ["PATH"].split(":")),
    ]:  # pyenv's scripts on PATH run one version only
        for path in folder.glob("python3.*"):
            if (match := re.fullmatch(r"python3\.(\d+)", path.name)) and int(match[1]) >= 10:
                found.setdefault(int(match[1]), path)
    return [found[minor] for minor in sorted(found)]


def make(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "wheel", folder, *arguments], capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def wheels(packages, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    built = subprocess.run(
        [ROOT / "tools" / "manylinux" / "build", folder / "libraries"],
        capture_output=True,
        text=True,
        env={**os.environ, "KPKG_PYTHON": sys.executable, "KPKG_BUILD_DIR": str(BUILD)},
    )
    assert built.returncode == 0, built.stdout[-4000:] + built.stderr
    (folder / "packages").mkdir()
    for family in ("gemm", "softmax", "elementwise", "reduction"):
        shutil.copy(packages[family], folder / "packages")
    made = {}
    for name, *options in (
        ("kpkg", "--libraries", folder / "libraries"),
        ("kpkg-compiler", "--command", COMMAND),
        ("kpkg-kernels", "--packages", folder / "packages"),
    ):
        done = make(folder, name, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        made[name] = Path(done.stdout.strip())
    return made


def test_names_and_sizes(wheels):
    tags = {name: path.stem.split("-", 2)[2] for name, path in wheels.items()}
    libc = re.fullmatch(r"cp310-abi3-manylinux_2_(\d+)_x86_64", tags["kpkg"])
    assert libc and int(libc[1]) <= 28, tags
    assert tags["kpkg-kernels"] == "py3-none-any"
    sizes = {name: path.stat().st_size / 1e6 for name, path in wheels.items()}
    assert sizes["kpkg"] <= 6 and sizes["kpkg-compiler"] <= 60, sizes


def test_the_same_files_make_the_same_bytes(wheels, tmp_path):
    packages = wheels["kpkg-kernels"].parent / "packages"
    again = make(tmp_path, "kpkg-kernels", "--packages", packages)
    assert Path(again.stdout.strip()).read_bytes() == wheels["kpkg-kernels"].read_bytes()


def test_has_types_and_licences(wheels):
    names = zipfile.ZipFile(wheels["kpkg"]).namelist()
    assert {"kpkg/py.typed", "kpkg/_native.pyi", "kpkg/libkpkg.so.0", "kpkg/_native.abi3.so"} <= set(names)
    for wheel in wheels.values():
        assert any(name.endswith("/LICENSES-THIRD-PARTY.txt") for name in zipfile.ZipFile(wheel).namelist())


def test_cpp_projects_build_against_the_wheel(wheels, tmp_path):
    zipfile.ZipFile(wheels["kpkg"]).extractall(tmp_path / "site")
    package = tmp_path / "site" / "kpkg"
    check_cmake(tmp_path / "cmake", package / "cmake")
    check_pkg_config(tmp_path / "pkg-config", package / "pkgconfig")


@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.name)
def test_runs_in_a_clean_environment(python, wheels, tmp_path):
    """The PATH is empty: there is no compiler, and nothing of the build tree is found."""
    subprocess.run([python, "-m", "venv", tmp_path / "environment"], check=True)
    own = tmp_path / "environment" / "bin" / "python"
    installed = subprocess.run(
        [own, "-m", "pip", "install", "-q", *wheels.values(), "numpy"], capture_output=True, text=True
    )
    assert installed.returncode == 0, installed.stderr
    shutil.copy(ROOT / "test" / "tools" / "kpkg" / "inputs" / "doubled.k", tmp_path)
    environment = {"PATH": "/nonexistent", "HOME": str(tmp_path)}

    def run(*arguments):
        done = subprocess.run([own, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-c", RUNS, str(tmp_path))
    assert run("-m", "kpkg", "version").startswith("kpkg 0.")
    assert run("-c", COMPILES).rstrip().endswith("kpkg_compiler/bin/kpkg")
    assert re.search(r"ok +command ", run("-m", "kpkg", "doctor"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("kpkg",), "kpkg takes --libraries"),
        (("kpkg-kernels", "--packages", "/nonexistent"), "has no *.kpkg files"),
        (("kpkg-kernels", "--packages", ".", "--command", "x"), "kpkg-kernels takes --packages, not --command"),
    ],
)
def test_messages(arguments, message, tmp_path):
    done = make(tmp_path, *arguments)
    assert done.returncode != 0 and message in done.stderr


def test_libraries_that_other_machines_lack_are_refused(tmp_path):
    """The build tree's libkpkg needs libtbb, and the C library of this machine."""
    (tmp_path / "kpkg").mkdir()
    shutil.copy(BUILD / "lib" / "libkpkg.so.0", tmp_path / "kpkg")
    done = make(tmp_path, "kpkg", "--libraries", tmp_path)
    assert done.returncode != 0 and "kpkg/libkpkg.so.0 needs libtbb.so.12" in done.stderr
