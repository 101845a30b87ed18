"""Reports the installation for Python and PyTorch: its parts, whether they work, and advice.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import json
import platform
import sys
from collections.abc import Iterator

#: "ok", "absent" or "not ok"; the subject; the text; the advice, or "" where nothing is to be done.
Finding = tuple[str, str, str, str]


def findings() -> Iterator[Finding]:
    """Yields the findings about kpkg, PyTorch, packages and the command."""
    import kpkg

    targets = ", ".join(kpkg.cpu_targets()) or "none of its targets"
    yield "ok", "kpkg", f"{kpkg.__version__}, Python {platform.python_version()}; CPU {targets}", ""
    yield from _torch()
    yield from _packages()
    yield from _command()


def _torch() -> Iterator[Finding]:
    if importlib.util.find_spec("torch") is None:
        advice = "kpkg works with NumPy arrays; for PyTorch install torch 2.10 or newer"
        yield "absent", "torch", "not installed", advice
        return
    import torch

    try:
        from kpkg import _torch as glue

        glue._extension()
    except (ImportError, OSError) as error:
        advice = "install torch 2.10 or newer, and a kpkg that was built with its PyTorch part"
        yield "not ok", "torch", f"{torch.__version__}: {error}", advice
        return
    yield "ok", "torch", f"{torch.__version__}, CUDA {torch.version.cuda or 'not in this build'}", ""
    if not torch.cuda.is_available():
        advice = "calls run on the CPU; a GPU needs NVIDIA's driver and a PyTorch built for CUDA"
        yield "absent", "gpu", "PyTorch sees none", advice
    for index in range(torch.cuda.device_count()):
        major, minor = torch.cuda.get_device_capability(index)
        state, advice = ("ok", "") if major >= 8 else ("not ok", "kpkg's GPU code begins at sm_80")
        yield state, f"cuda:{index}", f"{torch.cuda.get_device_name(index)}, sm_{major}{minor}", advice


def _packages() -> Iterator[Finding]:
    from kpkg import _default

    files = _default.package_files()
    if not files:
        advice = "kpkg.nn and kpkg.ops run PyTorch's ops; set KPKG_PATH, or use kpkg.load"
        yield "absent", "packages", "none in KPKG_PATH, and kpkg-kernels is not installed", advice
        return
    ops = set(_default.ops)
    for file, reason in _default._packages.broken.items():
        yield "not ok", file, reason, "build it again, or take it out of KPKG_PATH"
    yield "ok", "packages", f"{len(files)} files, {len(ops)} ops", ""
    op = _default.ops["kpkg::softmax"]
    if importlib.util.find_spec("torch") is None or not op.is_available:
        return
    import torch

    for device in ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]:
        x = torch.arange(12.0, device=device).reshape(3, 4)
        if not op.supports(x):
            advice = "build them with --target for this device"
            yield "absent", f"run {device}", "the packages have no softmax for it", advice
        elif torch.allclose(op(x), x.softmax(-1), atol=1e-6):
            yield "ok", f"run {device}", "softmax is right", ""
        else:
            yield "not ok", f"run {device}", "softmax is wrong", "please report it, with kpkg.kernel_info()"


def _command() -> Iterator[Finding]:
    from kpkg._compiler import find_command

    try:
        yield "ok", "command", find_command(), ""
    except FileNotFoundError:
        advice = "only compiling needs it; KPKG_COMMAND names one. Its own `kpkg doctor` says more of the toolkit"
        yield "absent", "command", "there is no kpkg command", advice


def run(as_json: bool) -> int:
    """Prints the findings; returns 3 if one is not ok, as ``kpkg doctor`` does."""
    found = list(findings())
    if as_json:
        print(json.dumps([dict(zip(("state", "subject", "text", "advice"), finding)) for finding in found], indent=1))
    else:
        for state, subject, text, advice in found:
            print(f"{state:<7} {subject:<11} {text}")
            if advice:
                print(f"{'':20}-> {advice}")
    sys.stdout.flush()
    return 3 if any(state == "not ok" for state, *_ in found) else 0
