"""Checks the dependencies of builds and wheels: exact versions, and the licences of all linked code.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import importlib.util
import re
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LICENCES = "LICENSES-THIRD-PARTY.txt"


def requirements(name):
    lines = (ROOT / "tools" / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-models.txt", "requirements-wheel.txt"])
def test_requirements_have_exact_versions(name):
    assert [line for line in requirements(name) if not re.fullmatch(r"[\w-]+==[\d.]+", line)] == []


def test_wheels_are_built_with_the_versions_of_development():
    requires = re.search(r"^requires = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.M)[1]
    wanted = re.findall(r'"([^"]*)"', requires)
    assert wanted and set(wanted) <= set(requirements("requirements.txt"))


def test_wheels_carry_the_licences():
    assert f'"{LICENCES}"' in re.search(r"^wheel.license-files = .*", (ROOT / "pyproject.toml").read_text(), re.M)[0]
    loader = SourceFileLoader("kpkg_wheel", str(ROOT / "tools" / "wheel"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    wheel = importlib.util.module_from_spec(spec)
    loader.exec_module(wheel)
    for name in wheel.SUMMARIES:
        files = wheel.metadata(name, "py3-none-any")
        assert files[f"{wheel.info_folder(name)}/{LICENCES}"] == (ROOT / LICENCES).read_bytes()


@pytest.mark.parametrize(
    "name",
    ["nlohmann/json", "fmt", "libsodium", "Zstandard", "oneTBB", "nanobind", "LLVM, MLIR, lld", "ANTLR 4", "CLI11", "OpenSSL"],
)
def test_all_that_is_linked_has_its_licence(name):
    assert re.search(
        rf"^{re.escape(name)}.*\n  in: .*\n  licence: .*\n  copyright: ", (ROOT / LICENCES).read_text(), re.M
    )
