"""Tests the wheel `kpkg` for aarch64, in a system for aarch64 whose Python qemu runs: it imports, and an op runs.

It needs the network, mmdebstrap and qemu-user-static. `tools/dev test wheel` runs it.

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
from conftest import BUILD, ROOT, build_package

QEMU = shutil.which("qemu-aarch64-static")
#: What the system has: that of Debian 12. Its Python is the version of the wheels that pip loads.
RELEASE, PYTHON = "bookworm", "3.11"
RUNS = """
import sys
sys.path.insert(0, "/site")
import numpy as np
import kpkg
assert kpkg.cpu_targets() == ["aarch64"]
ops = kpkg.load("/softmax.kpkg")
x = np.random.default_rng(7).standard_normal((3, 10)).astype(np.float32)
exponentials = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(ops.softmax(x), exponentials / exponentials.sum(1, keepdims=True), rtol=1e-5)
try:
    ops.softmax(x, dim=5)
except kpkg.KernelError as error:  # an exception of C++ crosses the libraries
    print(error)
"""


def run(*command: object) -> str:
    environment = {**os.environ, "KPKG_PYTHON": sys.executable, "KPKG_BUILD_DIR": str(BUILD)}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("aarch64")
    run(ROOT / "tools/manylinux/build", folder / "libraries", "--arch", "aarch64")
    return Path(run(sys.executable, ROOT / "tools/wheel", folder, "kpkg", "--libraries", folder / "libraries"))


def test_name_size_and_contents(wheel):
    """`tools/wheel` refuses libraries that other machines lack."""
    libc = re.fullmatch(r"kpkg-[\d.]+-cp310-abi3-manylinux_2_(\d+)_aarch64", wheel.stem)
    assert libc and int(libc[1]) <= 28 and wheel.stat().st_size <= 6e6
    libraries = {f"libkpkg_{host}.so" for host in ("torch", "tvm_ffi", "onnxruntime")}
    files = {"_native.abi3.so", "libkpkg.so.0", "include/kpkg/kpkg.hpp"} | libraries
    assert {f"kpkg/{name}" for name in files} <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.skipif(
    os.geteuid() != 0 or QEMU is None or shutil.which("mmdebstrap") is None,
    reason="needs root, mmdebstrap and qemu-user-static for a system of aarch64",
)
def test_runs(wheel, tmp_path):
    root, wheels = tmp_path / "root", tmp_path / "wheels"
    extracted = ("--architectures=arm64", "--variant=extract", "--include=python3,libstdc++6")  # runs nothing of it
    run("mmdebstrap", *extracted, RELEASE, root)
    needed = re.findall(r"^(?:numpy|nanobind-backend)==.*", (ROOT / "tools/requirements.txt").read_text(), re.M)
    platforms = [f"--platform=manylinux_2_{libc}_aarch64" for libc in (28, 27, 26)]
    run(
        *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"),
        *(*platforms, f"--python-version={PYTHON}", "-d", wheels, *needed),
    )
    for each in (wheel, *wheels.glob("*.whl")):
        zipfile.ZipFile(each).extractall(root / "site")
    options = ("--target", "aarch64", "--fast", "--dtypes", "f32")
    package = build_package(ROOT / "kernels_src/softmax", BUILD / "test-packages/softmax-aarch64.kpkg", *options)
    shutil.copy(package, root / "softmax.kpkg")
    shutil.copy(QEMU, root / "usr/bin")
    printed = run("chroot", root, f"/usr/bin/{Path(QEMU).name}", "/usr/bin/python3", "-c", RUNS)
    assert "dimension 5 is out of range" in printed
