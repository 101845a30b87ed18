"""Checks the ways in which PyTorch calls ops on one GPU or several, and reports whether each works.

Covers graphs, streams, threads, compile, AOTInductor, autocast, opcheck, gradients, torch.func, DTensor, models with
replaced layers, profiles, training and host time:

    KPKG_PATH=packages python3 test/device/torch_ways.py [--calls 10000] --out ways.json

Takes about three minutes. Checks that need two GPUs, torchvision or transformers report "absent" without them. `--only
NAME` and `--skip NAME` select checks. The checks are in `torch_checks`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import kpkg
import torch
from torch_checks import FIGURES, OPTIONS, devices, export, gradients, injection, measurements, streams

MODULES = (streams, gradients, export, devices, injection, measurements)
CHECKS = [check for module in MODULES for check in module.CHECKS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="calls of each of the 8 threads")
    parser.add_argument("--steps", type=int, default=200, help="of the training")
    parser.add_argument("--only", action="append", help="name of a check; may be repeated")
    parser.add_argument("--skip", action="append", default=[], help="name of a check; may be repeated")
    parser.add_argument("--out", type=Path)
    parser.parse_args(namespace=OPTIONS)
    known = {function.__name__ for function in CHECKS}
    if unknown := {*(OPTIONS.only or []), *OPTIONS.skip} - known:
        parser.error(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    kpkg.set_fallback_policy("strict")
    for name in ("softmax", "layer_norm", "gemm", "gelu", "log_softmax", "rms_norm", "add"):
        assert kpkg.ops[f"kpkg::{name}"].is_available, kpkg.ops[f"kpkg::{name}"].reason
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    record: dict[str, Any] = {
        "torch": torch.__version__,
        "kpkg": kpkg.__version__,
        "gpus": gpus,
        "checks": {},
        "figures": FIGURES,
    }
    for function in CHECKS:
        name = function.__name__
        if (OPTIONS.only and name not in OPTIONS.only) or name in OPTIONS.skip:
            continue
        start = time.perf_counter()
        try:
            text = str(function() or "")
            state = "absent" if text.startswith("absent") else "passed"
        except Exception as error:  # the other checks run all the same
            text, state = f"{type(error).__name__}: {str(error)[:1500]}\n{traceback.format_exc(limit=-3)}", "FAILED"
        record["checks"][name] = {"state": state, "seconds": round(time.perf_counter() - start, 2), "text": text}
        print(f"{state:7} {name:40} {record['checks'][name]['seconds']:7.2f} s  {text}", flush=True)
        if OPTIONS.out:
            OPTIONS.out.write_text(json.dumps(record, indent=1) + "\n")
    states = [result["state"] for result in record["checks"].values()]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in ("passed", "absent", "FAILED"))
    print(f"{counts} on {len(gpus)} GPUs")
    return 1 if "FAILED" in states else 0


if __name__ == "__main__":
    sys.exit(main())
