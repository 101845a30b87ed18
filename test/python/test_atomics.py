"""Tests what atomic updates find in memory on CPUs. test/device/atomics.py tests it on a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import json
import subprocess

import kpkg
import pytest
from conftest import BUILD, ROOT, build_package

SPEC = importlib.util.spec_from_file_location("atomics", ROOT / "test" / "device" / "atomics.py")
ATOMICS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ATOMICS)
CASES = dict(ATOMICS.cases("cpu"))


@pytest.fixture(scope="module")
def package():
    source = ROOT / "test" / "device" / "kernels" / "atomics.k"
    return build_package(source, BUILD / "test-packages" / "atomics.kpkg", "--target", "native", "-O1")


@pytest.fixture(scope="module")
def ops(package):
    return {op.name.removeprefix("atomics::"): op for op in kpkg.load(package)}


@pytest.mark.parametrize("name", CASES)
def test_updates_are_chains(ops, name):
    CASES[name](ops)


def test_what_updates_find_is_not_called_deterministic(package):
    command = [BUILD / "bin" / "kpkg", "info", "--json", package]
    manifest = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert not [instance["symbol"] for instance in manifest["instances"] if instance["flags"]]
