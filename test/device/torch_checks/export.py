"""Checks a program that AOTInductor exports and a process of its own loads.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from torch_checks import randn


def shared_compiler(folder: Path) -> dict[str, Any]:
    """Returns settings of Inductor with which the compiler links the shared C++ library.

    Where only the static library is installed, AOTInductor's programs hold a copy of their own. Such programs crash
    when loaded beside PyTorch's library, even without any kpkg op. In this case, the library that PyTorch has loaded
    comes first in the search path.
    """
    compiler, program = os.environ.get("CXX", "g++"), folder / "program.so"
    (folder / "program.cpp").write_text("#include <iostream>\nvoid f() { std::cout << 1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", folder / "program.cpp", "-o", program], check=True)
    if "libstdc++.so" in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout:
        return {}
    loaded = next(
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libstdc++.so.6" in line
    )
    (folder / "libstdc++.so").symlink_to(loaded)
    wrapper = folder / "g++"
    wrapper.write_text(f'#!/bin/sh\nexec "{shutil.which(compiler)}" -L"{folder}" "$@"\n')
    wrapper.chmod(0o755)
    return {"cpp.cxx": (None, str(wrapper))}


def aot_inductor() -> str:
    """Packages a model with kpkg's ops and a dynamic dimension by AOTInductor, and runs it in a process of its own."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return torch.ops.kpkg.softmax(torch.ops.kpkg.gemm(x, w) * 2)

    with tempfile.TemporaryDirectory() as folder:
        rows = torch.export.Dim("rows", min=2, max=4096)
        program = torch.export.export(
            Model(), (randn(8, 64), randn(64, 32)), dynamic_shapes={"x": {0: rows}, "w": None}
        )
        # Both shorten the host compilation, which takes nearly all of the time here.
        configs = {
            "aot_inductor.compile_wrapper_opt_level": "O0",
            "aot_inductor.precompile_headers": False,
            **shared_compiler(Path(folder)),
        }
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=f"{folder}/model.pt2", inductor_configs=configs
        )
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", LOADED, package], capture_output=True, text=True
        )
    assert "right" in done.stdout, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-3000:]}"
    return done.stdout.strip()


LOADED = """
import sys, torch, torch._inductor, kpkg
kpkg.set_fallback_policy("strict")
assert kpkg.ops.softmax.is_available and kpkg.ops.gemm.is_available
print("ops registered", flush=True)
x, w = torch.randn(8, 64, device="cuda"), torch.randn(64, 32, device="cuda")
torch.ops.kpkg.softmax(torch.ops.kpkg.gemm(x, w))
model = torch._inductor.aoti_load_package(sys.argv[1])
print("program loaded", flush=True)
for rows in (8, 33):
    x = torch.randn(rows, 64, device="cuda")
    torch.testing.assert_close(model(x, w), (x @ w * 2).softmax(-1), atol=1e-4, rtol=1e-3)
print("right for 8 and 33 rows", flush=True)
"""


CHECKS = (aot_inductor,)
