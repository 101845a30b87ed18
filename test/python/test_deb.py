"""Tests the Debian packages: that they are reproducible and well-formed, and that they work in a clean system.

It needs dpkg-dev, and for the clean system root, mmdebstrap and the network. `tools/dev test deb` runs it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, ROOT

NAMES = ("libkpkg0", "libkpkg-dev", "kpkg")
USER = """
cmake_minimum_required(VERSION 3.25)
project(user CXX)
find_package(kpkg 0.1 CONFIG REQUIRED)
add_executable(example /usr/share/doc/libkpkg-dev/examples/example.cpp)
target_link_libraries(example PRIVATE kpkg::kpkg)
"""
#: What a user does after `apt install`: both ways to build, and a kernel of the user and one of the shipped ones.
STEPS = """
set -e
apt-get update -q >/dev/null
apt-get install -y -q --no-install-recommends ./*.deb >/dev/null
cmake -S . -B by-cmake >/dev/null
cmake --build by-cmake >/dev/null
by-cmake/example sample.kpkg
g++ -std=c++17 /usr/share/doc/libkpkg-dev/examples/example.cpp $(pkg-config --cflags --libs kpkg) -o example
./example sample.kpkg
kpkg version
kpkg build doubled.k -o doubled.kpkg --target native
kpkg run doubled.kpkg doubled --input "x=randn(1000,f32)" --device cpu --check
kpkg build /usr/share/kpkg/kernels_src/softmax -o softmax.kpkg --target native --fast --dtypes f32
kpkg run softmax.kpkg softmax --input "input=randn(3,100,f32)" --device cpu --check
"""


def make(folder: Path, *names: str) -> list[Path]:
    command = [sys.executable, ROOT / "tools" / "deb", folder, *names, "--build", BUILD]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def debs(tmp_path_factory) -> list[Path]:
    return make(tmp_path_factory.mktemp("debs"))


def test_names_and_dependencies(debs):
    assert [path.name.partition("_")[0] for path in debs] == list(NAMES)

    def field(path, name):
        return subprocess.run(["dpkg-deb", "-f", path, name], capture_output=True, text=True, check=True).stdout.strip()

    assert {field(path, "Version") for path in debs} == {"0.1.0-1"}
    library, development, command = (field(path, "Depends") for path in debs)
    assert "libtbb12 (>=" in library and "libc6 (>=" in library
    assert development == "libkpkg0 (= 0.1.0-1)"
    assert "libstdc++6" in command and "libllvm" not in command.lower()


def test_the_same_files_make_the_same_bytes(debs, tmp_path):
    again = make(tmp_path, *NAMES[:2])
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in debs[:2]]


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not installed")
def test_lintian_finds_no_errors(debs):
    done = subprocess.run(["lintian", "--fail-on", "error", *debs], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mmdebstrap") is None, reason="needs root and mmdebstrap for a clean system"
)
def test_works_in_a_clean_system(debs, tmp_path):
    root, release = tmp_path / "root", os.environ.get("KPKG_DEBIAN", "bookworm")
    options = ("--variant=apt", "--include=g++,make,cmake,pkg-config")
    made = subprocess.run(["mmdebstrap", *options, release, root], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-4000:]
    folder = root / "srv"
    for path in (*debs, BUILD / "test/runtime/sample.kpkg", ROOT / "test/tools/kpkg/inputs/doubled.k"):
        shutil.copy(path, folder)
    (folder / "CMakeLists.txt").write_text(USER)
    (folder / "steps").write_text(STEPS)
    done = subprocess.run(["chroot", root, "sh", "-c", "cd /srv && sh steps"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("test::scale: runs kernels of") == 2, done.stdout
    assert "kpkg 0.1.0" in done.stdout


def test_an_unknown_name_is_refused(tmp_path):
    command = [sys.executable, ROOT / "tools" / "deb", tmp_path, "kpkg-doc"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "there is no package kpkg-doc: libkpkg0, libkpkg-dev, kpkg" in done.stderr
