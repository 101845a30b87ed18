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


def pinned():
    """Returns the digests of the files of each requirement that wheels are built with."""
    text = (ROOT / "tools" / "requirements-wheel.txt").read_text().replace("\\\n", "")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {requirement: digests for requirement, *digests in lines}


def test_wheels_are_built_with_pinned_files():
    assert [name for name in pinned() if not re.fullmatch(r"[\w-]+==[\d.]+", name)] == []
    for name, digests in pinned().items():
        assert digests and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", digest) for digest in digests), name
    assert sum(name.startswith(("nanobind==", "scikit-build-core==", "ziglang==")) for name in pinned()) == 3
    versions = dict(line.split("==") for line in requirements("requirements.txt"))
    for name, version in (requirement.split("==") for requirement in pinned()):
        assert versions.get(name, version) == version, f"tools/requirements.txt has another version of {name}"


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-models.txt"])
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
    [
        "nlohmann/json",
        "fmt",
        "libsodium",
        "Zstandard",
        "oneTBB",
        "nanobind",
        "LLVM, MLIR, lld",
        "zlib",
        "ANTLR 4",
        "CLI11",
        "OpenSSL",
    ],
)
def test_all_that_is_linked_has_its_licence(name):
    assert re.search(
        rf"^{re.escape(name)}.*\n  in: .*\n  licence: .*\n  copyright: ", (ROOT / LICENCES).read_text(), re.M
    )
