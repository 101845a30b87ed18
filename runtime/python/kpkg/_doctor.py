"""Reports the installation for Python and PyTorch: its parts, whether they work, and advice.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import json
import platform
import sys
from collections.abc import Callable

Finding = dict[str, str]


def findings() -> list[Finding]:
    """Returns a list of {"state": "ok" | "absent" | "not ok", "subject", "text", "advice"}.

    The advice is "" where nothing is to be done.
    """
    found: list[Finding] = []

    def add(state: str, subject: str, text: str, advice: str = "") -> None:
        found.append({"state": state, "subject": subject, "text": text, "advice": advice})

    import kpkg

    add(
        "ok",
        "kpkg",
        f"{kpkg.__version__}, Python {platform.python_version()}; CPU "
        f"{', '.join(kpkg.cpu_targets()) or 'none of its targets'}",
    )
    _torch(add)
    _packages(add)
    _command(add)
    return found


Add = Callable[..., None]


def _torch(add: Add) -> None:
    if importlib.util.find_spec("torch") is None:
        add("absent", "torch", "not installed", "kpkg works with NumPy arrays; for PyTorch install torch 2.10 or newer")
        return
    import torch

    try:
        from kpkg import _torch as glue

        glue._extension()
    except (ImportError, OSError) as error:
        add(
            "not ok",
            "torch",
            f"{torch.__version__}: {error}",
            "install torch 2.10 or newer, and a kpkg that was built with its PyTorch part",
        )
        return
    add("ok", "torch", f"{torch.__version__}, CUDA {torch.version.cuda or 'not in this build'}")
    if not torch.cuda.is_available():
        add(
            "absent",
            "gpu",
            "PyTorch sees none",
            "calls run on the CPU; a GPU needs NVIDIA's driver and a PyTorch built for CUDA",
        )
    for index in range(torch.cuda.device_count()):
        major, minor = torch.cuda.get_device_capability(index)
        state = "ok" if major >= 8 else "not ok"
        add(
            state,
            f"cuda:{index}",
            f"{torch.cuda.get_device_name(index)}, sm_{major}{minor}",
            "" if major >= 8 else "kpkg's GPU code begins at sm_80",
        )


def _packages(add: Add) -> None:
    from kpkg import _default

    files = _default.package_files()
    if not files:
        add(
            "absent",
            "packages",
            "none in KPKG_PATH and none came with kpkg",
            "kpkg.nn and kpkg.ops run PyTorch's ops; set KPKG_PATH, or use kpkg.load",
        )
        return
    ops = set(_default.ops)
    for file, reason in _default._packages.broken.items():
        add("not ok", file, reason, "build it again, or take it out of KPKG_PATH")
    add("ok", "packages", f"{len(files)} files, {len(ops)} ops")
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    for device in ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]:
        op = _default.ops["kpkg::softmax"]
        x = torch.arange(12.0, device=device).reshape(3, 4)
        if not op.is_available:
            continue
        if not op.supports(x):
            add(
                "absent",
                f"run {device}",
                "the packages have no softmax for it",
                "build them with --target for this device",
            )
            continue
        right = torch.allclose(op(x), x.softmax(-1), atol=1e-6)
        add(
            "ok" if right else "not ok",
            f"run {device}",
            "softmax is right" if right else "softmax is wrong",
            "" if right else "please report it, with kpkg.kernel_info()",
        )


def _command(add: Add) -> None:
    from kpkg._compiler import find_command

    try:
        add("ok", "command", find_command())
    except FileNotFoundError:
        add(
            "absent",
            "command",
            "there is no kpkg command",
            "only compiling needs it; KPKG_COMMAND names one. Its own `kpkg doctor` says more of the toolkit",
        )


def run(as_json: bool) -> int:
    """Prints the findings; returns 3 if one is not ok, as ``kpkg doctor`` does."""
    found = findings()
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        for finding in found:
            print(f"{finding['state']:<7} {finding['subject']:<11} {finding['text']}")
            if finding["advice"]:
                print(f"{'':20}-> {finding['advice']}")
    sys.stdout.flush()
    return 3 if any(finding["state"] == "not ok" for finding in found) else 0
