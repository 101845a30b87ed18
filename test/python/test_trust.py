"""Tests which packages `kpkg.load` opens with its arguments `policy` and `lock`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import pickle
import subprocess

import kpkg
import pytest
from conftest import COMMAND, ROOT

SAMPLE = ROOT / "test" / "runtime" / "compat" / "sample-1.0.kpkg"


def run(*arguments):
    subprocess.run([COMMAND, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a folder with sample.kpkg, signed.kpkg, release.pub and kpkg.lock, which lists the signed package."""
    folder = tmp_path_factory.mktemp("trust")
    (folder / "sample.kpkg").write_bytes(SAMPLE.read_bytes())
    run("keygen", folder / "release")
    run("sign", folder / "sample.kpkg", "--key", folder / "release.key", "-o", folder / "signed.kpkg")
    run("lock", folder / "signed.kpkg", "-o", folder / "kpkg.lock")
    return folder


def test_policies(folder):
    signer = "signed-by:" + (folder / "release.pub").read_text().strip()
    for policy in (None, "any", "digest", signer):
        assert len(kpkg.load(folder / "signed.kpkg", policy=policy)) > 0
    with pytest.raises(kpkg.PackageError, match="it carries no signature"):
        kpkg.load(folder / "sample.kpkg", policy=signer)
    with pytest.raises(kpkg.PackageError, match="no signature is by a trusted key"):
        kpkg.load(folder / "signed.kpkg", policy="signed-by:" + "0" * 64)
    with pytest.raises(ValueError, match="unknown trust policy 'signed'; there are any, digest and signed-by"):
        kpkg.load(folder / "signed.kpkg", policy="signed")
    with pytest.raises(ValueError, match="'abc' is no Ed25519 public key"):
        kpkg.load(folder / "signed.kpkg", policy="signed-by:abc")


def test_locks(folder):
    library = kpkg.load(folder / "signed.kpkg", lock=folder / "kpkg.lock")
    with pytest.raises(kpkg.PackageError, match=r"the lock '.*kpkg.lock' does not have it"):
        kpkg.load(folder / "sample.kpkg", lock=folder / "kpkg.lock")
    with pytest.raises(OSError, match=r"missing.lock"):
        kpkg.load(folder / "signed.kpkg", lock=folder / "missing.lock")

    # Unpickling applies the trust of the pickled library.
    pickled = pickle.dumps(library)
    assert len(pickle.loads(pickled)) == len(library)
    (folder / "signed.kpkg").write_bytes(SAMPLE.read_bytes())
    with pytest.raises(kpkg.PackageError, match="has another file"):
        pickle.loads(pickled)
