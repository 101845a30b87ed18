"""Measures training, host time and profiles; the figures go into the record.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from torch_checks import FIGURES, OPTIONS, randn


def by_script(name: str, *arguments: str) -> Any:
    """Returns the JSON that a script of test/device writes to --out; fails if the script fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        done = subprocess.run(
            [sys.executable, str(Path(__file__).parents[1] / name), *arguments, "--out", str(out)],
            capture_output=True,
            text=True,
        )
        if out.exists():
            FIGURES[name.removesuffix(".py")] = json.loads(out.read_text())
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    return "\n" + done.stdout.rstrip()


def training() -> str:
    """Trains 200 steps on real text: eager, compiled, and with graph replay."""
    return str(by_script("train.py", "--steps", str(OPTIONS.steps)))


def host_time() -> str:
    return str(by_script("host_time.py", "--rounds", "41"))


def profile() -> str:
    """Compares times of the same calls by CUPTI, by events and by PyTorch's profiler.

    Each runs in a process of its own, because PyTorch's profiler keeps CUPTI for itself.
    """
    found = {}
    for way in ("cupti", "events", "torch"):
        done = subprocess.run([sys.executable, "-c", PROFILED, way], capture_output=True, text=True)
        assert done.returncode == 0, f"{way}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        found[way] = json.loads(done.stdout.splitlines()[-1])
    FIGURES["profile"] = found
    assert found["cupti"]["by"] == {"by": "cupti"} and found["events"]["by"] == {"by": "events", "reason": ""}, found
    assert found["torch"]["by"]["by"] == "events" and "another tool" in found["torch"]["by"]["reason"], found["torch"]
    lines = [f"{'us':>14} {'CUPTI':>9} {'events':>9} {'PyTorch':>9}"]
    for rows in found["cupti"]["us"]:
        cupti, events, theirs = (found[way]["us"][rows] for way in ("cupti", "events", "torch"))
        lines.append(f"{rows:>6}x4096 f32 {cupti:9.2f} {events:9.2f} {theirs:9.2f}")
        assert abs(cupti - theirs) <= 0.05 * theirs + 0.3, lines
        assert cupti <= events * 1.02, lines
    return "\n".join(["", *lines])


PROFILED = """
import json, sys, torch, kpkg
kpkg.set_fallback_policy("strict")
softmax = kpkg.ops.softmax
us = {}
for rows in (16, 1024, 32768):
    x = torch.randn(rows, 4096, device="cuda")
    for _ in range(3):
        softmax(x)
    torch.cuda.synchronize()
    if sys.argv[1] == "torch":
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as taken, kpkg.profile_kernel() as profile:
            for _ in range(20):
                softmax(x)
            torch.cuda.synchronize()
        times = [event.device_time_total for event in taken.events() if "softmax_rows" in event.name]
    else:
        with kpkg.profile_kernel(events=sys.argv[1] == "events") as profile:
            for _ in range(20):
                softmax(x)
        times = [launch["device_duration_ns"] / 1e3 for launch in profile.records["launches"]]
    assert len(times) == 20 and len(profile.records["launches"]) == 20, (len(times), profile.summary())
    launches = profile.records["launches"]
    starts = [launch["device_start_ns"] for launch in launches]
    assert all(s > launch["start_ns"] - 50_000 for s, launch in zip(starts, launches)), "began before its launch"
    assert starts == sorted(starts)
    us[rows] = sorted(times)[10]
print(json.dumps({"by": profile.records["device_times"], "us": us}))
"""


def torch_profiler_shows_names() -> str:
    x = randn(64, 256)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as taken:
        torch.ops.kpkg.softmax(x)
        torch.cuda.synchronize()
    names = {event.key for event in taken.key_averages()}
    assert "kpkg::softmax" in names, names
    kernels = [name for name in names if "softmax_rows" in name]
    assert kernels, names
    return ", ".join(kernels)


CHECKS = (training, host_time, profile, torch_profiler_shows_names)
