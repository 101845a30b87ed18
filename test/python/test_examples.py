"""Builds the C++ examples of test/runtime/install against the shared library and runs them without Python and PyTorch.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess

import pytest
import torch
from conftest import ROOT, compile_cpp


@pytest.fixture(scope="module")
def example(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")

    def run(name, *arguments):
        program, source = folder / name, ROOT / "test" / "runtime" / "install" / f"{name}.cpp"
        compile_cpp(source, program, "-Wextra", "-ldl")
        done = subprocess.run([program, *arguments], capture_output=True, text=True, env={})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, done.stderr

    return run


def numbers(count, scale):
    return scale * torch.sin(0.7 * torch.arange(count, dtype=torch.float64) + 0.3).float()


def test_inference(example, packages, tmp_path):
    for name in ("gemm", "elementwise", "norm", "softmax"):
        (tmp_path / f"{name}.kpkg").symlink_to(packages[name])
    lines = example("inference", str(tmp_path))[0].splitlines()
    assert len(lines) == 8
    up, down, bias = numbers(128 * 64, 0.1).reshape(128, 64), numbers(10 * 128, 0.1).reshape(10, 128), numbers(128, 0.5)
    for run in range(2):
        x = numbers(4 * 64, 1.0 + run).reshape(4, 64)
        h = torch.nn.functional.gelu(x @ up.T + bias)
        y = (torch.nn.functional.layer_norm(h, [128]) @ down.T).softmax(-1)
        for row in range(4):
            best = int(y[row].argmax())
            found = lines[4 * run + row]
            assert found.startswith(f"run {run} row {row}: class {best} with ") and found.endswith(
                "all together 1.0000"
            ), found
            assert float(found.split("with ")[1].split(",")[0]) == pytest.approx(float(y[row, best]), abs=2e-4)


def test_fallback(example, packages):
    output, errors = example("cublas_fallback", str(packages["gemm"]))
    assert output == "package: 4 5 10 11\nfallback: 4 5 10 11\nfallbacks: 1\n"
    assert "op kpkg::gemm runs its fallback" in errors


def test_products(example, packages):
    """Covers bmm, matmul and gemv from C++, and an int in place of a list of one."""
    lines = example("products", str(packages["gemm"]), str(packages["norm"]))[0].splitlines()
    assert lines == [
        "bmm [ 2 2 2 ]: 1 2 3 4 10 12 14 16",
        "matmul [ 2 2 ]: 21 43 65 87",
        "gemv [ 4 ]: 42 86 130 174",
        "layer_norm [ 4 2 ]: -1 1 -1 1 -1 1 -1 1",
    ]
