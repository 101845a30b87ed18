"""Tests detached signatures with the verifier of OpenSSF Model Signing, if its command `model_signing` is there.

It is not among the requirements, since it brings 30 packages: `pip install model-signing pyOpenSSL`.
test/tools/kpkg/bundle.test checks files that it has signed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from conftest import COMMAND, ROOT

VERIFIER = shutil.which("model_signing")
SAMPLE = ROOT / "test" / "runtime" / "compat" / "sample-1.0.kpkg"

pytestmark = pytest.mark.skipif(not VERIFIER, reason="the command `model_signing` is not there")


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


@pytest.fixture(params=["file", "folder"])
def signed(request, tmp_path):
    """Returns what is signed and its bundle: a package, or a folder of files."""
    if request.param == "file":
        path = tmp_path / "sample.kpkg"
        path.write_bytes(SAMPLE.read_bytes())
        return path, tmp_path / "sample.sig"
    path = tmp_path / "model"
    (path / "sub").mkdir(parents=True)
    (path / ".gitignore").write_text("*.sig\n")
    (path / "sub" / "sample.kpkg").write_bytes(SAMPLE.read_bytes())
    (path / "b.txt").write_text("text")
    return path, path / "model.sig"


def test_theirs_reads_ours(signed, tmp_path):
    path, bundle = signed
    assert run(COMMAND, "keygen", tmp_path / "release", "--ecdsa").returncode == 0
    assert run(COMMAND, "sign", path, "--bundle", bundle, "--key", tmp_path / "release.key").returncode == 0
    check = (VERIFIER, "verify", "key", "--public_key", tmp_path / "release.pub", "--signature", bundle, path)
    assert run(*check).returncode == 0

    changed = path / "b.txt" if path.is_dir() else path
    changed.write_bytes(changed.read_bytes() + b"!")
    assert run(*check).returncode != 0


def test_ours_reads_theirs(signed, tmp_path):
    path, bundle = signed
    run(COMMAND, "keygen", tmp_path / "release", "--ecdsa")
    made = run(VERIFIER, "sign", "key", "--private_key", tmp_path / "release.key", "--signature", bundle, path)
    assert made.returncode == 0, made.stderr
    check = (COMMAND, "verify", path, "--bundle", bundle, "--signed-by", tmp_path / "release.pub", "--no-run")
    assert run(*check).returncode == 0

    changed = path / "b.txt" if path.is_dir() else path
    changed.write_bytes(changed.read_bytes() + b"!")
    wrong = run(*check)
    assert wrong.returncode == 1 and "is not what the bundle" in wrong.stderr
