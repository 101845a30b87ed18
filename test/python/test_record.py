"""Tests records of calls from Python and PyTorch, and their replay.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys

import pytest
from conftest import BUILD, COMMAND

PROGRAM = """
import sys
import numpy
import torch
import kpkg

library = kpkg.load(sys.argv[1])
x = torch.linspace(-4, 4, 35).reshape(5, 7)
for _ in range(3):
    torch.ops.kpkg.softmax(x, 1)
torch.ops.kpkg.softmax(x.T, 1)
torch.ops.kpkg.softmax(x[:, 1:4], 0)
torch.ops.kpkg.softmax(x[:1].expand(4, 7), 1)
library.softmax(numpy.ones((3, 4), numpy.float32), 1)
try:
    torch.ops.kpkg.softmax(x, 9)
except RuntimeError:
    pass
"""


def run(package, **variables):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), **variables}
    made = subprocess.run([sys.executable, "-c", PROGRAM, package], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made


def header(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size])


@pytest.fixture(scope="module")
def softmax(packages, tmp_path_factory):
    """Returns a package and the folder of calls of PROGRAM."""
    package = packages["softmax"]
    folder = tmp_path_factory.mktemp("record") / "new" / "calls"
    run(package, KPKG_RECORD=str(folder))
    return package, folder


def replay(*arguments):
    return subprocess.run([COMMAND, "replay", *arguments], capture_output=True, text=True)


def test_equal_calls_are_recorded_once(softmax):
    headers = [header(path) for path in softmax[1].iterdir()]
    calls = [json.loads(one["__metadata__"]["kpkg.call"]) for one in headers]
    shapes = [call["arguments"][0]["shape"] for call in calls]
    assert sorted(shapes) == [[3, 4], [4, 7], [5, 3], [5, 7], [7, 5]]
    for one, call in zip(headers, calls):
        assert call["op"] == "kpkg::softmax" and call["instances"] and len(call["results"]) == 1
        if call["arguments"][0]["shape"] in ([3, 4], [5, 7]):
            assert one["arguments.input"]["dtype"] == "F32" and "strides" not in call["arguments"][0]
    assert [1, 7] in [call["arguments"][0].get("strides") for call in calls]


def test_replay(softmax):
    package, folder = softmax
    made = replay(folder, package, "--instance", "all", "--compare", "--device", "cpu")
    assert made.returncode == 0, made.stdout + made.stderr
    recorded, reference = made.stdout.split("beside the packaged references")
    assert "ok " in recorded and "ok " in reference and "5 of the package" in reference
    assert replay(folder, package).stdout.count("ran  ") == 5
    label = json.loads(header(next(folder.iterdir()))["__metadata__"]["kpkg.call"])["instances"][0]
    assert replay(folder, package, "--instance", label).returncode == 0
    none = replay(folder, package, "--instance", "nothing")
    assert none.returncode == 1 and "no recorded call ran" in none.stderr


def test_changed_results_and_damage_are_found(softmax, tmp_path):
    package, folder = softmax
    path = next(path for path in folder.iterdir() if header(path)["results.0"]["shape"] == [5, 7])
    wrong = tmp_path / "wrong.safetensors"
    data = bytearray(path.read_bytes())
    data[-4:] = struct.pack("<f", 7.0)
    wrong.write_bytes(data)
    found = replay(wrong, package, "--compare", "--device", "cpu")
    assert found.returncode == 1 and "expected 7" in found.stdout and str(wrong) in found.stdout

    for damaged, message in (
        (b"", "its header is longer than the file"),
        (data[:40], "its header is longer than the file"),
        (data[:-8], "outside the file"),
        (struct.pack("<Q", 8) + b"not JSON", "is not JSON"),
        (struct.pack("<Q", 2) + b"{}", "is no recorded call: it has no text `kpkg.call`"),
        (data.replace(b'\\"shape\\":[5,7]', b'\\"shape\\":[5,8]'), "has a tensor that reaches beyond its data"),
    ):
        wrong.write_bytes(damaged)
        refused = replay(wrong, package)
        assert refused.returncode == 1 and message in refused.stderr, (message, refused.stderr)
    missing = replay(tmp_path / "missing", package)
    assert missing.returncode == 3 and "missing" in missing.stderr


def test_limit(softmax, tmp_path):
    made = run(softmax[0], KPKG_RECORD=str(tmp_path), KPKG_RECORD_LIMIT="0")
    assert not list(tmp_path.iterdir())
    assert made.stderr.count("KPKG_RECORD leaves calls out: more than KPKG_RECORD_LIMIT=0 MiB") == 1
