"""Runs `tools/dev new op` and `tools/dev new pass` in a copy of this tree, which must then build and pass its tests.

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

LLVM = Path(os.environ.get("KPKG_LLVM_PREFIX", "/usr/lib/llvm-22"))
COMPILER = shutil.which("clang++-22")


def run(*command: object, **options: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def copy(tmp_path):
    """Copies the folders that scaffolds write to or read. File times are kept, so that packages count as up to date."""
    for folder in ("kernels_src", "tools/scaffold", "test/python", "test/dialect", "dialect"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_a_new_op_passes_its_tests(copy, packages):
    run(sys.executable, "tools/scaffold/new.py", "op", "square_of", cwd=copy)
    build = copy / "build"
    (build / "test-packages").mkdir(parents=True)
    for part in ("bin", "python"):
        (build / part).symlink_to(BUILD / part)
    for package in packages.values():
        (build / "test-packages" / package.name).symlink_to(package)
    suites = [f"test/python/test_{name}.py" for name in ("specs", "references", "every_op")]
    environment = os.environ | {"KPKG_BUILD_DIR": str(build)}
    text = run(sys.executable, "-m", "pytest", "-p", "no:xdist", "-k", "square_of", *suites, cwd=copy, env=environment)
    assert " passed" in text and "failed" not in text


def test_a_new_op_of_a_family(copy):
    """Only the names differ from those of an op that is a family."""
    text = run(sys.executable, "tools/scaffold/new.py", "op", "square_of", "scan", cwd=copy)
    made = copy / "kernels_src" / "scan"
    assert all((made / f"square_of{end}").exists() for end in (".k", "_reference.k", "_spec.py"))
    assert "test_autocast.py" in text and "-k square_of" in text
    run(BUILD / "bin" / "kpkg", "check", made / "square_of.k", made / "square_of_reference.k")


def test_a_new_op_of_an_unknown_family(copy):
    command = [sys.executable, "tools/scaffold/new.py", "op", "square_of", "scans"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 1 and "no family scans; it has " in done.stderr and " scan, " in done.stderr


@pytest.mark.skipif(COMPILER is None, reason="compiling a pass needs clang++-22")
@pytest.mark.parametrize("folder", ["dialect/tile/transforms", "dialect/kgpu/expand"])
def test_a_new_pass_passes_its_test(copy, folder):
    """Links kpkg-opt again with the pass, because building the tree again would take minutes."""
    run(sys.executable, "tools/scaffold/new.py", "pass", folder, "DropZeros", cwd=copy)
    dialect = Path(folder).parts[1]
    home = folder if (copy / folder / "Passes.td").exists() else str(Path(folder).parent)
    assert f"{Path(folder, 'DropZeros.cpp').relative_to(home)}" in (copy / home / "CMakeLists.txt").read_text()
    generated = copy / "generated" / home / "Passes.h.inc"
    generated.parent.mkdir(parents=True)
    # The table contains only the new pass: kpkg-opt already has the tree's passes.
    records = (copy / home / "Passes.td").read_text()
    start = records.index(f"def {dialect.capitalize()}DropZeros")
    (copy / "new.td").write_text('include "mlir/Pass/PassBase.td"\n' + records[start : records.rindex("\n#endif")])
    run(
        LLVM / "bin" / "mlir-tblgen",
        "-gen-pass-decls",
        "-name",
        "New",
        "-I",
        LLVM / "include",
        copy / "new.td",
        "-o",
        generated,
    )
    source, made, program = copy / "added.cpp", copy / "added.o", copy / "kpkg-opt"
    source.write_text(ADDED.replace("FOLDER", folder).replace("NAMESPACE", f"kpkg::{dialect}"))
    includes = [f"-I{copy / 'generated'}", f"-I{copy}", f"-I{ROOT}", f"-I{BUILD}", "-isystem", LLVM / "include"]
    run(COMPILER, "-std=c++20", "-O0", "-fPIC", "-fno-rtti", "-fvisibility=hidden", *includes, "-c", source, "-o", made)
    link = run("ninja", "-C", BUILD, "-t", "commands", "bin/kpkg-opt").splitlines()[-1]
    assert link.count("-o bin/kpkg-opt ") == 1, link
    run("sh", "-c", link.replace("-o bin/kpkg-opt ", f"-o {program} {made} "), cwd=BUILD)
    [test] = (copy / "test" / "dialect" / dialect).rglob("drop-zeros.mlir")
    flag = f"--{dialect}-drop-zeros"
    text = run(program, flag, test)
    run(LLVM / "bin" / "FileCheck", test, input=text)


#: The pass's own header registers the passes of the table above.
ADDED = """
#include "FOLDER/DropZeros.cpp"
static const bool registered = (NAMESPACE::registerNewPasses(), true);
"""
