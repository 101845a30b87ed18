"""Builds programs against an installed runtime, as users' projects do, and runs them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from conftest import BUILD, ROOT

VERSION = """
#include <kpkg/kpkg.h>
#include <stdio.h>
int main(void) { return puts(kpkg_version()) < 0; }
"""
SOURCE = ROOT / "test" / "runtime" / "install"


def _run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env={"PATH": os.environ["PATH"], **environment}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_cmake(folder: Path, config: Path) -> None:
    """Checks that CMake finds kpkg by its folder `config`, and that the C++ example runs. `folder` is for its build."""
    options = ("-G", "Ninja", f"-Dkpkg_DIR={config}", "-DCMAKE_CXX_FLAGS=-O0")
    _run("cmake", "-S", SOURCE, "-B", folder, *options)
    _run("cmake", "--build", folder, "--target", "example")
    printed = _run(folder / "example", BUILD / "test" / "runtime" / "sample.kpkg")
    assert printed.startswith("50\n") and "test::scale: runs kernels of" in printed, printed


def check_pkg_config(folder: Path, config: Path, **environment: str) -> None:
    """Checks that pkg-config finds kpkg.pc in `config`, and that a program in C runs, which compiles in no time."""
    flags, version = (
        _run("pkg-config", *options, "kpkg", PKG_CONFIG_PATH=str(config))
        for options in (("--cflags", "--libs"), ("--modversion",))
    )
    folder.mkdir(parents=True)
    (folder / "version.c").write_text(VERSION)
    _run("gcc", "-Wall", "-Werror", folder / "version.c", "-o", folder / "version", *shlex.split(flags))
    assert _run(folder / "version", **environment) == version
