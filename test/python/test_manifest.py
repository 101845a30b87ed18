"""Tests that `kpkg.load` and the command refuse manifests by the field, the value found and the one expected.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import hashlib
import json
import subprocess

import kpkg
import pytest
from conftest import COMMAND, ROOT

COMPAT = ROOT / "test" / "runtime" / "compat"
PACKAGE = (COMPAT / "sample-1.2.kpkg").read_bytes()
SIZE = int.from_bytes(PACKAGE[16:24], "little")


def up(offset):
    return (offset + 63) // 64 * 64


def write(path, change, minor=2):
    """Writes the sample with another manifest, whose digest is right."""
    manifest = json.loads(PACKAGE[64 : 64 + SIZE])
    change(manifest)
    manifest["format"]["minor"] = minor
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header = PACKAGE[:10] + minor.to_bytes(2, "little") + PACKAGE[12:16] + len(text).to_bytes(8, "little") + bytes(8)
    content = header + hashlib.sha256(text).digest() + text
    path.write_bytes(content.ljust(up(len(content)), b"\0") + PACKAGE[up(64 + SIZE) :])
    return path


def require(name):
    return lambda manifest: manifest.update(requires=[name])


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_every_version_opens(version):
    library = kpkg.load(COMPAT / f"sample-{version}.kpkg")
    assert library.manifest["format"] == {"major": 1, "minor": int(version[2:])}


def test_known_requirements_and_unknown_keys_are_no_trouble(tmp_path):
    def change(manifest):
        manifest["requires"] = ["launch.tensor_maps", "instance.work"]
        manifest["instances"][0]["colour"] = {"of later": "versions"}

    assert len(kpkg.load(write(tmp_path / "later.kpkg", change, minor=7))) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            require("launch.sparse"),
            "it is of format version 1.2 and requires `launch.sparse`, which this runtime of 1.2 does not know; update "
            "kpkg or rebuild the package",
        ),
        (require(3), "requires[0] is 3, expected a text of at most 4096 bytes"),
        (
            lambda m: m["instances"][0].update(launch={"threads": "many"}),
            'instances[0].launch.threads is "many", expected an integer from 1 to 1024',
        ),
        (lambda m: m["kernels"][1].pop("name"), "kernels[1] has no `name`"),
        (lambda m: m["ops"][0]["torch"].update(autocast=1), "ops[0].torch.autocast is 1, expected an object"),
    ],
)
def test_refusals(tmp_path, change, message):
    path = write(tmp_path / "refused.kpkg", change)
    with pytest.raises(kpkg.PackageError) as refused:
        kpkg.load(path)
    assert message in str(refused.value)
    for command in (["info", path], ["strip", path, "--sources"], ["verify", path]):
        done = subprocess.run([COMMAND, *command], capture_output=True, text=True)
        assert done.returncode == 1, command
        assert f"'{path}' is refused: {message}" in done.stderr


def test_merging_keeps_requirements(tmp_path):
    first = write(tmp_path / "first.kpkg", require("op.torch"))
    second = write(tmp_path / "second.kpkg", require("launch.shared"))
    subprocess.run([COMMAND, "merge", first, second, "-o", tmp_path / "both.kpkg"], check=True)
    assert kpkg.load(tmp_path / "both.kpkg").manifest["requires"] == ["launch.shared", "op.torch"]
