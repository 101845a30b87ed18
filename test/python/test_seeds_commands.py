"""The shell lines and source cells of the documents that kpkg was founded on, with kpkg's names.

test_seeds.py has their Python lines.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import kpkg
import pytest
import torch
from conftest import BUILD, COMMAND, ROOT
from torch.testing import assert_close

INPUTS = ROOT / "test" / "python" / "inputs"


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a line in `folder`, with `kpkg` and `python` being the built command and this interpreter."""
    names = folder / "names"
    names.mkdir(exist_ok=True)
    for name, target in (("kpkg", COMMAND), ("python", sys.executable)):
        if not (names / name).exists():
            (names / name).write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
            (names / name).chmod(0o755)
    given = {name: value for name, value in os.environ.items() if name not in ("TORCH_CUDA_ARCH_LIST", "KPKG_TARGET")}
    given |= {"PATH": f"{names}:{os.environ['PATH']}", "PYTHONPATH": str(BUILD / "python"), **environment}
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, env=given)


# ---- Kernel packages: Mojo -------------------------------------------------------------------------------------------

CELL = """from max import register
from max.tensor import Tensor
from max.driver import Tensor as MaxTensor

@register.op("mojo::gemm")
fn gemm_kernel(
    a: MaxTensor,
    b: MaxTensor,
    alpha: Float32,
    beta: Float32
) raises -> MaxTensor:
    # Your optimized GEMM implementation
    # See reference implementation in ../gemm_reference.mojo
    ...
"""


def test_the_cell_is_answered_line_by_line(tmp_path):
    (tmp_path / "gemm.k").write_text(CELL)
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    assert done.returncode == 1 and "`...` is not part of the language; write what the function does" in done.stderr
    (tmp_path / "gemm.k").write_text(CELL.replace("...\n", "return a\n"))
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    for module in ("max", "max.tensor", "max.driver"):
        assert f"`{module}` is a module of another language; remove the line" in done.stderr, done.stderr
    (tmp_path / "gemm.k").write_text(CELL.partition("\n\n")[2].replace("...\n", "return a\n"))
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    assert "`MaxTensor` is not a type" in done.stderr and "write `Tensor`" in done.stderr


@pytest.mark.parametrize("package", ["kpkg", "max"])
def test_imports_of_the_language_by_its_own_name(package, tmp_path):
    """Whoever only changes the package's name is told the same."""
    (tmp_path / "gemm.k").write_text(CELL.replace("from max", f"from {package}").replace("...\n", "return a\n"))
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    assert done.stderr.count("remove the line: `register`, `Tensor` and all of the language are always there") == 3


def test_the_cell_with_a_body(tmp_path):
    kernel = CELL.partition("\n\n")[2].replace("MaxTensor", "Tensor").replace("...\n", "return product(a, b, alpha)\n")
    (tmp_path / "gemm.k").write_text(
        "@kernel\n@specialize(T=[float32])\n"
        "def product_tiles[T: DType](a: Tensor[T, 2], b: Tensor[T, 2], mut y: Tensor[T, 2], alpha: Float32):\n"
        "    var acc = dot(a.tile[16, 64](block_idx.x, 0).load(), b.tile[64, 16](0, block_idx.y).load(), "
        "zeros[float32](16, 16))\n"
        "    y.tile[16, 16](block_idx.x, block_idx.y).store((acc * alpha).cast[T]())\n\n"
        "def product(a: Tensor, b: Tensor, alpha: Float32) raises -> Tensor:\n"
        "    var y = empty(a.shape[0], b.shape[1], dtype=a.dtype)\n"
        "    launch product_tiles[T=a.dtype](a, b, y, alpha, grid=(ceildiv(a.shape[0], 16), ceildiv(b.shape[1], 16)))\n"
        "    return y\n\n" + kernel
    )
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    assert done.returncode == 0, done.stderr
    a, b = torch.randn(20, 33), torch.randn(33, 18)
    library = kpkg.CustomOpLibrary.load(str(tmp_path / "gemm.kpkg"))
    assert_close(library["mojo::gemm"](a, b, alpha=1.0, beta=0.0), a @ b, atol=1e-4, rtol=1e-4)


def test_required_packages(tmp_path):
    """`max build softmax.mojo -o softmax.mojopkg`, in the folder of kpkg's own sources and beside it."""
    done = shell(f"cd {ROOT}/kernels_src/softmax && kpkg build softmax.k -o {tmp_path}/softmax.kpkg -O0", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kpkg::softmax" in {op.name for op in kpkg.load(tmp_path / "softmax.kpkg")}
    shutil.copy(ROOT / "kernels_src" / "gemm" / "gemm.k", tmp_path)
    done = shell("kpkg build gemm.k -o gemm.kpkg", tmp_path)
    assert "modules that kpkg's own kernels share lie in its folder kernels_src" in done.stderr


# ---- bmm, conv2d and the injector ------------------------------------------------------------------------------------


def test_a_folder_of_kernels_is_packaged(tmp_path):
    (tmp_path / "kernels").mkdir()
    shutil.copy(INPUTS / "softmax_rows.k", tmp_path / "kernels")
    done = shell("kpkg package kernels -o kernels.kpkg", tmp_path)
    assert done.returncode == 0 and (tmp_path / "kernels.kpkg").exists(), done.stderr


@pytest.mark.parametrize(
    "line", ["bmm --input 2,33,16 --input 2,16,17", "conv2d --input 1,3,9,9 --input 4,3,3,3"], ids=["bmm", "conv2d"]
)
def test_benchmarks(line, packages, tmp_path):
    """`python bench.py bmm`, `pixi run bench-conv2d`: the command's own, which needs no PyTorch."""
    family = "gemm" if line.startswith("bmm") else "conv"
    names = iter(("input", "mat2" if family == "gemm" else "weight"))
    parts = line.split(" --input ")
    inputs = " ".join(f'--input "{next(names)}=randn({each},f32)"' for each in parts[1:])
    done = shell(f"kpkg bench {packages[family]} {parts[0]} {inputs}", tmp_path)
    assert done.returncode == 0 and parts[0] in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["bmm", "conv2d"])
def test_benchmarks_beside_pytorch(name, default_ops):
    shapes = ((2, 8, 8), (2, 8, 8)) if name == "bmm" else ((1, 3, 9, 9), (4, 3, 3, 3))
    a, b = (torch.randn(shape) for shape in shapes)
    theirs = torch.bmm if name == "bmm" else torch.nn.functional.conv2d
    found = kpkg.benchmark_op(name, getattr(kpkg.ops, name), theirs, a, b, warmup=1, iterations=3)
    assert found["match"]


# ---- Mochi: the fused norm -------------------------------------------------------------------------------------------


def test_a_manual_check_needs_no_pytest(packages, tmp_path):
    inputs = '--input "x=randn(4,64,f32)" --input "x_res=randn(4,64,f32)" --input "gate=randn(64,f32)"'
    done = shell(f"kpkg run {packages['residual']} residual_tanh_gated_rmsnorm {inputs} --check", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flags", ["--target sm_90 --use_fast_math -O3", "--target sm_90 --use_fast_math -O 3"])
def test_flags_of_nvcc(flags, tmp_path):
    done = shell(f"kpkg build {INPUTS / 'softmax_rows.k'} -o x.kpkg {flags}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "target sm_90 means sm_90a" in done.stderr and "--use_fast_math changes nothing" in done.stderr


def test_the_architecture_as_nvcc_takes_it(tmp_path):
    done = shell(f"kpkg build {INPUTS / 'softmax_rows.k'} -o x.kpkg -arch=sm_90", tmp_path)
    assert done.returncode == 2 and "-arch=sm_90" in done.stderr


# ---- ATunner ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line, part", [("kpkg doctor", "ptxas"), ("python -m kpkg doctor", "command")])
def test_the_tools_are_looked_at(line, part, packages, tmp_path):
    """`nvcc --version`, `python examples/test_cuda_toolchain.py`."""
    done = shell(line, tmp_path, KPKG_PATH=str(packages["softmax"]), KPKG_COMMAND=str(COMMAND))
    assert part in done.stdout, done.stdout + done.stderr


def test_cuda_sources_are_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax_cuda.cu").write_text('extern "C" __global__ void softmax(float *x) { x[threadIdx.x] = 0; }\n')
    from kpkg.kernels import get_cuda_compiler

    compiler = get_cuda_compiler()
    with pytest.raises(kpkg.CompileError, match="is CUDA C\\+\\+, expected .k source"):
        compiler.compile_from_file("softmax_cuda.cu", "my_softmax")


@pytest.mark.parametrize("value, says", [("8.0", "built for sm_80, native"), ("7.0", "7.0 is not served and left out")])
def test_architectures_of_the_environment(value, says, tmp_path):
    line = f'export TORCH_CUDA_ARCH_LIST="{value}"; kpkg build {INPUTS / "softmax_rows.k"} -o x.kpkg'
    done = shell(line, tmp_path)
    assert done.returncode == 0 and says in done.stderr, done.stderr
