"""Tests find_package(kpkg) and pkg-config against the build tree, an installed prefix, and the Python package.

test_wheel.py tests them against the wheel.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import kpkg
import pytest
from conftest import BUILD, ROOT
from user_project import check_cmake, check_pkg_config

VERSION = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The two components, installed and then moved."""
    folder = tmp_path_factory.mktemp("installed")
    for component in ("runtime", "python"):
        prefix = folder / "first" / component
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", prefix], check=True)
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


def folders(name: str, installed: Path) -> tuple[Path, Path]:
    """Returns the folders of kpkg-config.cmake and of kpkg.pc."""
    if name == "Python package":
        package = installed / "python" / "kpkg"
        return package / "cmake", package / "pkgconfig"
    libraries = {"build tree": BUILD / "lib", "prefix": installed / "runtime" / "lib"}[name]
    return libraries / "cmake" / "kpkg", libraries / "pkgconfig"


@pytest.mark.parametrize("name", ["build tree", "prefix", "Python package"])
def test_builds_and_runs(name, installed, tmp_path):
    cmake, pkg_config = folders(name, installed)
    check_cmake(tmp_path / "cmake", cmake)
    searched = {"LD_LIBRARY_PATH": str(pkg_config.parent)} if name == "prefix" else {}
    check_pkg_config(tmp_path / "pkg-config", pkg_config, **searched)


def test_moved_files_name_no_other_place(installed):
    """The prefix of the installation, the sources and the build tree may be gone."""
    for path in [*installed.rglob("*.cmake"), *installed.rglob("*.pc")]:
        text = path.read_text()
        assert not [place for place in (ROOT, BUILD, installed.parent) if str(place) in text], path
        assert VERSION in text or path.name.endswith(("kpkg-config.cmake", "-release.cmake")), path


@pytest.mark.parametrize("wanted, found", [("0.1", True), ("0.1.0", True), ("0.2", False), ("1.0", False)])
def test_versions(wanted, found, installed, tmp_path):
    script = tmp_path / "CMakeLists.txt"
    script.write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nfind_package(kpkg {wanted} CONFIG)\n")
    script.write_text(script.read_text() + 'message(STATUS "found <${kpkg_VERSION}> ${kpkg_FOUND}")\n')
    prefix = f"-DCMAKE_PREFIX_PATH={installed / 'runtime'}"
    options = ["-DCMAKE_CXX_COMPILER_WORKS=TRUE", prefix]
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", *options], capture_output=True, text=True)
    assert f"found <{VERSION}> 1" in done.stdout if found else "found <> 0" in done.stdout, done.stdout + done.stderr


def test_python_names_the_folders():
    def printed(option):
        command, environment = [sys.executable, "-m", "kpkg", option], {"PYTHONPATH": str(BUILD / "python")}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    assert printed("--includes") == f"-I{kpkg.get_include()}"
    assert printed("--cmakedir") == kpkg.get_cmake_dir()
    assert printed("--pkgconfigdir") == kpkg.get_pkgconfig_dir()
    assert (Path(kpkg.get_include()) / "kpkg" / "kpkg.hpp").exists()
    assert (Path(kpkg.get_cmake_dir()) / "kpkg-config.cmake").exists()
    assert (Path(kpkg.get_pkgconfig_dir()) / "kpkg.pc").exists()
