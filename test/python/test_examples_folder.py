"""Compares files of examples/ with their references, and two whose inputs cannot be drawn with PyTorch.

test_example_kernels.py compares files without references.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess

import pytest
import torch
from conftest import COMMAND, ROOT

FOLDER = ROOT / "examples"
FILES = sorted(FOLDER.glob("*.k"))


def command(*arguments):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("file", [pytest.param(f, id=f.stem) for f in FILES if "@register.test" in f.read_text()])
def test_references(file):
    assert "_cases:" in command("test", file, "--cases", "0")


@pytest.fixture
def ops(request, tmp_path):
    import kpkg

    package = tmp_path / f"{request.param}.kpkg"
    command("build", FOLDER / f"{request.param}.k", "-o", package)
    return kpkg.load(package)


@pytest.mark.parametrize("ops", ["chol"], indirect=True)
def test_factors_of_matrices(ops):
    torch.manual_seed(0)
    a = torch.randn(37, 16, 24)
    a = (a @ a.mT + torch.eye(16)).mT
    factor = torch.linalg.cholesky(a.double())
    torch.testing.assert_close(ops.cholesky16(a), factor.float(), rtol=1e-4, atol=1e-4)
    b = torch.randn(37, 16, 21)
    expected = torch.linalg.solve_triangular(factor, b.double(), upper=False)
    torch.testing.assert_close(ops.solve_lower16(factor.float(), b), expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("ops", ["jagged"], indirect=True)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_softmax_of_segments(ops, dtype):
    torch.manual_seed(0)
    lengths = [0, 5, 4096, 9000, 1, 4097]
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    x = torch.randn(2 * sum(lengths), dtype=dtype)[::2]
    expected = torch.cat([part.double().softmax(0) for part in x.split(lengths)])
    torch.testing.assert_close(ops.jagged_softmax(x, offsets), expected.to(dtype))


def test_every_example_is_listed():
    page = (FOLDER / "README.md").read_text()
    listed = [line.split("](")[1].split(")")[0] for line in page.splitlines() if line.startswith("| [")]
    assert listed == sorted([file.name for file in FILES] + [path.name for path in FOLDER.iterdir() if path.is_dir()])
