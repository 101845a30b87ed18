"""Tests both readers of packages, the runtime and the independent one, with the conformance corpus and old files.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import platform
import subprocess

import kpkg
import make_corpus
import pytest
from conftest import COMMAND, ROOT
from format_reader import canonical, container, page
from format_reader.verify import verify

CORPUS = ROOT / "test" / "format" / "corpus"
INDEX = json.loads((CORPUS / "index.json").read_text())
# The host objects are for x86-64, and other machines refuse nothing of them but load none.
ON_X86 = platform.machine() == "x86_64"


def runtime_verdict(path):
    """Returns why the runtime refuses a file, or nothing."""
    try:
        kpkg.load(path).verify()
    except (kpkg.PackageError, ValueError) as error:  # ValueError for a section that is missing
        return str(error)
    return ""


def reader_verdict(path):
    """Returns why the independent reader refuses a file, or nothing."""
    try:
        verify(path.read_bytes(), "x86-64-v3")
    except page.Refused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("name", INDEX)
def test_both_readers_give_the_verdict(name):
    expected, path = INDEX[name]["cause"], CORPUS / f"{name}.kpkg"
    for verdict in (reader_verdict(path), *([runtime_verdict(path)] if ON_X86 else [])):
        assert expected in verdict if expected else not verdict, verdict


def test_every_file_is_in_the_index():
    assert {path.stem for path in CORPUS.glob("*.kpkg")} == set(INDEX)


def test_files_are_those_of_the_generator(monkeypatch, tmp_path):
    monkeypatch.setattr(make_corpus, "CORPUS", tmp_path)
    make_corpus.main()
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # Compressed bytes depend on the version of zstd.
    assert set(made) == {path.name for path in CORPUS.iterdir()}
    assert made["index.json"] == (CORPUS / "index.json").read_bytes()


@pytest.mark.parametrize("path", sorted((ROOT / "test" / "runtime" / "compat").iterdir()), ids=lambda path: path.stem)
def test_old_packages_are_read(path):
    assert reader_verdict(path) == ""


def test_shipped_packages_are_read(packages):
    for family in ("vector_add", "softmax", "adamw"):
        assert reader_verdict(packages[family]) == ""


@pytest.mark.parametrize(("name", "valid"), [("good-signed", True), ("good-signature-broken", False)])
def test_signatures_of_both_agree(name, valid):
    path = CORPUS / f"{name}.kpkg"
    ((key, is_valid),) = container.Container(path.read_bytes()).signers()
    command = [COMMAND, "verify", path, "--no-run", "--signed-by", key.hex()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert is_valid == valid == (done.returncode == 0)
    assert valid or "is not valid" in done.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [(8.0, "8.0"), (1e22, "1e+22"), (1e15, "1e+15"), (-1.25e15, "-1.25e+15"), (123456789012345.6, "123456789012345.6")]
    + [(1234567890123456.8, "1.2345678901234568e+15"), (0.0001, "0.0001"), (1e-05, "1e-05"), (5e-324, "5e-324")],
)
def test_floats_have_one_spelling(value, text):
    assert canonical.write(value) == text
