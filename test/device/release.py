"""Checks a release on a GPU, then measures it beside PyTorch's libraries.

Runs the conformance suite of devices, builds all families and runs the specs of every shipped op:

    test/device/release.py --kpkg build/bin/kpkg --target sm_90a --seconds 580 --out results

Needs the static `kpkg` command with `DeviceConformanceTest` beside it, ptxas, PyTorch with CUDA and the Python package
`kpkg`. The specs of a family start as soon as its package is built. Measurements wait for an idle machine. Each step
has a time limit and writes its output to a file of its own in `--out`. `release.json` lists which steps ended in time
and their exit statuses. Exits 1 if a step failed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEVICE = ROOT / "test" / "device"
BUILDS = 4  # at a time: the last kernels of a family leave processors idle
#: Families whose packages take minutes. They are built last, so that specs of the others run meanwhile.
SLOW = (
    "conv",
    "attention",
    "attention_scored",
    "gemm",
    "sparse",
    "attention_cache",
    "attention_fp8",
    "attention_varlen",
)


@dataclass(frozen=True)
class Step:
    """A script with its arguments and its time limit in seconds; `{family}` stands for a package."""

    name: str
    command: list[str]
    seconds: float


MEASUREMENTS = [
    Step("residual", ["tools/bench/residual_shapes.py", "--package", "{residual}", "--out", "{out}"], 40),
    Step("exact", ["test/device/exact_mode.py", "--package", "{residual}", "--seed", "1", "--out", "{out}"], 60),
    Step("attention", ["test/device/attention.py", "{attention}", "-o", "{out}", "--quick"], 60),
    Step("products", ["test/device/tensor_cores.py", "--gemm", "{gemm}", "--rounds", "9", "--out", "{out}"], 60),
    Step(
        "conv",
        ["test/device/conv.py", "--package", "{conv}", "--cases", "60", "--dtype", "bfloat16", "--forward"]
        + ["--seconds", "40", "--out", "{out}"],
        80,
    ),
    Step(
        "rows",
        ["tools/bench/gpu.py", "--package", "{softmax}", "--package", "{norm}", "--op", "kpkg::softmax"]
        + ["--op", "kpkg::layer_norm", "--no-compile", "--out", "{out}"],
        60,
    ),
    Step("precision", ["test/device/precision.py", "--package", "{gemm}", "--rounds", "9", "--out", "{out}"], 60),
    Step("decode", ["test/device/decode.py", "{attention_cache}", "-o", "{out}", "--quick"], 60),
    Step("varlen", ["test/device/varlen.py", "{attention_varlen}", "-o", "{out}"], 40),
    Step("sparse", ["test/device/sparse.py", "--package", "{sparse}", "--rounds", "7", "--out", "{out}"], 60),
]  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kpkg", type=Path, required=True, help="the static command")
    parser.add_argument("--target", required=True, help="as for kpkg build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads of a build, and processes of specs")
    parser.add_argument("--seconds", type=float, default=3600, help="for everything: no step begins after these")
    parser.add_argument(
        "--packages", type=Path, default=Path("packages"), help="folder for the packages; those in it stay"
    )
    parser.add_argument("--without-specs", action="store_true", help="measure only")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    return parser.parse_args()


class Release:
    """Runs the steps and records their times and exit statuses."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.started = time.monotonic()
        self.steps: list[dict[str, Any]] = []

    def left(self) -> float:
        return self.options.seconds - (time.monotonic() - self.started)

    def start(self, name: str, command: list[str]) -> tuple[str, subprocess.Popen[bytes], float]:
        log = (self.options.out / f"{name}.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True)
        return name, process, time.monotonic()

    def finish(self, step: tuple[str, subprocess.Popen[bytes], float], seconds: float) -> None:
        """Waits for a step up to its time limit, and records how it ended."""
        name, process, begun = step
        try:
            status: int | str = process.wait(max(1, min(seconds, self.left())))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # including the processes that it started
            status = "out of time"
        self.steps.append({"step": name, "status": status, "seconds": round(time.monotonic() - begun, 1)})
        print(json.dumps(self.steps[-1]), flush=True)
        (self.options.out / "release.json").write_text(json.dumps(self.steps, indent=1) + "\n")

    def package(self, family: str) -> Path:
        return self.options.packages.absolute() / f"{family}.kpkg"

    def build(self, family: str) -> None:
        if self.left() > 0 and not self.package(family).exists():
            command = [self.options.kpkg.absolute(), "build", f"kernels_src/{family}", "-o", self.package(family)]
            command += ["--target", self.options.target, f"-j{self.options.jobs}"]
            self.finish(self.start(f"build-{family}", [str(part) for part in command]), 600)

    def conformance(self) -> None:
        """Checks that the runtime's GPU keeps the contract of devices. A machine without one fails."""
        command = ["env", "KPKG_TEST_DEVICE=cuda"]
        if (objects := ROOT / "test" / "objects").exists():  # in a bundle
            command.append(f"KPKG_TEST_OBJECTS={objects}")
        command += [str(self.options.kpkg.absolute().parent / "DeviceConformanceTest"), "--gtest_filter=*/cuda"]
        self.finish(self.start("conformance", command), 60)

    def parts(self) -> None:
        """Checks what is done with parts of tiles."""
        command = [sys.executable, DEVICE / "parts.py", "--kpkg", self.options.kpkg.absolute(), "--device", "cuda"]
        command += ["--target", self.options.target, "--jobs", self.options.jobs, "--shapes", 4]
        command += ["--dtype", "float32", "--dtype", "float16", "--folder", self.options.out / "parts"]
        command += ["--out", self.options.out / "parts.json"]
        self.finish(self.start("parts", [str(part) for part in command]), 180)

    def cases(self, name: str) -> None:
        """Builds the kernels of a script, and checks its cases."""
        package = self.options.out / f"{name}.kpkg"
        command = [self.options.kpkg.absolute(), "build", DEVICE / "kernels" / f"{name}.k", "-o", package]
        command += ["--target", self.options.target, f"-j{self.options.jobs}"]
        self.finish(self.start(f"build-{name}", [str(part) for part in command]), 120)
        self.finish(self.start(name, [sys.executable, str(DEVICE / f"{name}.py"), str(package)]), 60)

    def specs(self, name: str, families: list[str], jobs: int) -> tuple[str, subprocess.Popen[bytes], float]:
        """Starts the specs of the ops of `families`, `jobs` processes at a time."""
        command = [sys.executable, str(DEVICE / "run.py"), "--jobs", str(jobs)]
        command += ["--out", str(self.options.out / f"{name}.json")]
        for family in families:
            command += ["--package", str(self.package(family))]
        return self.start(name, command)

    def measure(self, step: Step) -> None:
        names = {path.stem: str(path) for path in self.options.packages.glob("*.kpkg")}
        names["out"] = str(self.options.out / f"{step.name}.json")
        script, *rest = step.command
        self.finish(
            self.start(step.name, [sys.executable, str(ROOT / script), *(part.format(**names) for part in rest)]),
            step.seconds,
        )


def main() -> int:
    options = arguments()
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    options.packages.mkdir(parents=True, exist_ok=True)
    release = Release(options)
    families = sorted(path.parent.name for path in (ROOT / "kernels_src").glob("*/spec.py"))
    quick = [family for family in families if family not in SLOW]
    release.conformance()
    with ThreadPoolExecutor(BUILDS) as builds:
        list(builds.map(release.build, quick))
    if not options.without_specs:
        release.parts()
        release.cases("control")
        release.cases("sorting")
        release.cases("atomics")
        release.cases("scratch")
    running = None if options.without_specs else release.specs("specs-rows", quick, options.jobs // 2)
    with ThreadPoolExecutor(BUILDS) as builds:
        list(builds.map(release.build, SLOW))
    if running:
        release.finish(running, 600)
        release.finish(release.specs("specs-products", list(SLOW), options.jobs), 600)
    for step in MEASUREMENTS:
        if release.left() > 10:
            release.measure(step)
    return 1 if any(step["status"] != 0 for step in release.steps) else 0


if __name__ == "__main__":
    sys.exit(main())
