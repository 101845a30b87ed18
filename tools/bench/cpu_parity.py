"""Checks that calls of every size, above all small ones, are as fast as PyTorch's on the CPU.

Exits with 1 if a case misses its bar.

Each family of `FAMILIES` has cases. A case is the same call of kpkg and of PyTorch, timed in turns in one process, with
one thread and with two. A figure is the minimum of its rounds. A ratio is PyTorch's time divided by kpkg's. The result
goes to `bench/results/cpu-parity.json`.

tools/bench/cpu_parity.py                            # all families, packages are built first tools/bench/cpu_parity.py
--family linear --packages build/packages --no-write

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("KPKG_BUILD_DIR", "build")
RESULT = ROOT / "bench" / "results" / "cpu-parity.json"
CALLS_SECONDS = 2e-3  # per round: short rounds can run without interference
WARM_SECONDS = 5e-3  # before a round: workers of the other side spin after their last task
LEAST_RATIO = 0.9
LEAST_MEAN = 1.0  # geometric mean of a family
MOST_OF_PRODUCT = 1.1  # maximum time with a bias, relative to the time without
MOST_HOST_US = 2.0  # maximum beyond PyTorch's, for a call with almost no work

Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One call. `alone` is kpkg's call without the part that should cost almost nothing.

    `is_host` means that the host time of the call counts.
    """

    name: str
    ours: Call
    theirs: Call
    alone: Call | None = None
    is_host: bool = False


def linear(torch: Any, ops: Any) -> Iterator[Case]:
    """Yields cases with bias, from 8 to 1024 rows and 64 to 4096 columns. Weights have the layout of
    `torch.nn.Linear`."""
    shapes = [(8, 64, 64), (8, 256, 256), (8, 1024, 1024), (8, 1024, 4096), (32, 64, 64), (32, 512, 512)]
    shapes += [(64, 256, 256), (128, 1024, 1024), (256, 64, 256), (512, 512, 512), (1024, 64, 64), (1024, 1024, 1024)]
    for rows, depth, columns in shapes:
        x, w, b = torch.randn(rows, depth), torch.randn(columns, depth), torch.randn(columns)
        yield Case(
            f"{rows}x{depth}x{columns}",
            lambda x=x, w=w, b=b: ops.linear(x, w, b),
            lambda x=x, w=w, b=b: torch.nn.functional.linear(x, w, b),
            alone=lambda x=x, w=w: ops.linear(x, w),
        )
    x, w, b = torch.randn(1, 8), torch.randn(8, 8), torch.randn(8)
    yield Case("1x8x8", lambda: ops.linear(x, w, b), lambda: torch.nn.functional.linear(x, w, b), is_host=True)


def linear_half(torch: Any, ops: Any) -> Iterator[Case]:
    for dtype in (torch.bfloat16, torch.float16):
        for rows, depth, columns in ((8, 64, 64), (8, 1024, 1024), (64, 256, 256), (512, 512, 512)):
            x, w, b = (torch.randn(*size, dtype=dtype) for size in ((rows, depth), (columns, depth), (columns,)))
            yield Case(
                f"{str(dtype)[6:]} {rows}x{depth}x{columns}",
                lambda x=x, w=w, b=b: ops.linear(x, w, b),
                lambda x=x, w=w, b=b: torch.nn.functional.linear(x, w, b),
                alone=lambda x=x, w=w: ops.linear(x, w),
            )


def activations(torch: Any, ops: Any) -> Iterator[Case]:
    """Yields cases of `linear_fused` and `gemm` with a bias and an epilogue."""
    functions = {
        "none": lambda v: v,
        "relu": torch.relu,
        "gelu": torch.nn.functional.gelu,
        "silu": torch.nn.functional.silu,
    }
    for rows, depth, columns in ((8, 64, 64), (64, 256, 256), (256, 512, 1024)):
        x, w, b = torch.randn(rows, depth), torch.randn(columns, depth), torch.randn(columns)
        v = torch.randn(depth, columns)
        for name, function in functions.items():
            yield Case(
                f"linear_fused {name} {rows}x{depth}x{columns}",
                lambda x=x, w=w, b=b, name=name: ops.linear_fused(x, w, b, None, name),
                lambda x=x, w=w, b=b, f=function: f(torch.nn.functional.linear(x, w, b)),
            )
            yield Case(
                f"gemm {name} {rows}x{depth}x{columns}",
                lambda x=x, v=v, b=b, name=name: ops.gemm(x, v, bias=b, activation=name),
                lambda x=x, v=v, b=b, f=function: f(torch.addmm(b, x, v)),
            )


def batched(torch: Any, ops: Any) -> Iterator[Case]:
    for count, m, k, n in (
        (1, 8, 16, 8),
        (1, 8, 16, 16),
        (2, 8, 64, 8),
        (4, 8, 256, 8),
        (8, 16, 32, 16),
        (4, 64, 64, 64),
    ):
        a, b = torch.randn(count, m, k), torch.randn(count, k, n)
        yield Case(
            f"{count}x({m}x{k}x{n})",
            lambda a=a, b=b: ops.gemm_batched(a, b),
            lambda a=a, b=b: torch.bmm(a, b),
        )


#: The cases of each family, and the package with its ops. `cases(torch, ops)` yields them.
FAMILIES: dict[str, tuple[str, Callable[[Any, Any], Iterator[Case]]]] = {
    "linear": ("gemm", linear),
    "linear, 16 bits": ("gemm", linear_half),
    "activations": ("gemm", activations),
    "batched products": ("gemm", batched),
}


def seconds_of(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def least_times(calls: list[Call], rounds: int) -> list[float]:
    """Returns the minimum seconds of each call, measured in turns."""
    for call in calls:
        call()
    repeats = [max(1, math.ceil(CALLS_SECONDS / max(seconds_of(call, 3), 1e-7))) for call in calls]
    least = [math.inf] * len(calls)
    for turn in range(rounds):
        order = range(len(calls)) if turn % 2 else reversed(range(len(calls)))
        for i in order:
            warmed = time.perf_counter() + WARM_SECONDS
            while time.perf_counter() < warmed:
                calls[i]()
            least[i] = min(least[i], seconds_of(calls[i], repeats[i]))
    return least


def measure(case: Case, rounds: int, torch: Any) -> dict[str, Any]:
    ours, theirs = case.ours(), case.theirs()
    tolerance = 1e-3 if ours.dtype in (torch.float32, torch.float64) else 5e-2
    scale = max(1.0, float(theirs.abs().max()))
    torch.testing.assert_close(ours / scale, theirs / scale, rtol=tolerance, atol=tolerance)
    calls = [case.ours, case.theirs] + ([case.alone] if case.alone else [])
    times = least_times(calls, rounds)
    row = {"case": case.name, "kpkg_us": times[0] * 1e6, "torch_us": times[1] * 1e6, "ratio": times[1] / times[0]}
    misses = []
    if case.is_host:
        row["host_us"] = row["kpkg_us"] - row["torch_us"]
        if row["host_us"] > MOST_HOST_US:
            misses.append(f"{row['host_us']:.1f} us above PyTorch's, allowed {MOST_HOST_US}")
    elif row["ratio"] < LEAST_RATIO:
        misses.append(f"ratio below {LEAST_RATIO}")
    if case.alone:
        row["of_product"] = times[0] / times[2]
        if row["of_product"] > MOST_OF_PRODUCT:
            misses.append(f"{row['of_product']:.2f} of the product alone, allowed {MOST_OF_PRODUCT}")
    row = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
    return row | ({"misses": misses} if misses else {})


def measure_families(options: argparse.Namespace) -> dict[str, Any]:
    """Measures all families with the environment's number of threads."""
    sys.path[:0] = [str(BUILD / "python")]
    import kpkg
    import torch

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    families = {}
    for name, (package, cases) in FAMILIES.items():
        if options.family and name not in options.family:
            continue
        ops = kpkg.load(options.packages / f"{package}.kpkg")
        rows = []
        with torch.no_grad():
            for case in cases(torch, ops):
                rows.append(row := measure(case, options.rounds, torch))
                print(
                    f"{options.threads} {name:18} {row['case']:34} kpkg {row['kpkg_us']:9.1f} us  PyTorch "
                    f"{row['torch_us']:9.1f} us  "
                    f"{row['ratio']:5.2f}  {'; '.join(row.get('misses', []))}",
                    file=sys.stderr,
                    flush=True,
                )
        counted = [row["ratio"] for row in rows if "host_us" not in row]
        mean = math.exp(sum(map(math.log, counted)) / len(counted))
        families[name] = {"mean_ratio": round(mean, 3), "cases": rows}
        print(f"{options.threads} {name:18} geometric mean {mean:.2f}", file=sys.stderr, flush=True)
    return {"torch": torch.__version__, "kpkg": kpkg.__version__, "families": families}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def misses_of(threads: dict[str, Any]) -> list[str]:
    found = []
    for count, run in threads.items():
        for name, family in run["families"].items():
            if family["mean_ratio"] < LEAST_MEAN:
                found.append(f"{count} threads, {name}: mean {family['mean_ratio']}, expected {LEAST_MEAN}")
            found += [
                f"{count} threads, {name}, {row['case']}: {miss}"
                for row in family["cases"]
                for miss in row.get("misses", [])
            ]
    return found


def measure_all(options: argparse.Namespace) -> int:
    """Starts a process for each number of threads, because kpkg and PyTorch's libraries read it at startup."""
    threads = {}
    for count in options.threads_of_runs:
        command = [sys.executable, __file__, "--threads", str(count), "--rounds", str(options.rounds)]
        command += ["--packages", str(options.packages)] + [f"--family={name}" for name in options.family or []]
        environment = {
            **os.environ,
            "KPKG_NUM_THREADS": str(count),
            "OMP_NUM_THREADS": str(count),
            "KPKG_FALLBACK": "strict",  # otherwise PyTorch could be compared with itself
            "MALLOC_MMAP_THRESHOLD_": str(1 << 30),  # else results of some MB need new pages each time, on either side
            "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
        }
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        threads[str(count)] = json.loads(done.stdout)
    found = misses_of(threads)
    result = {
        "date": datetime.date.today().isoformat(),
        "cpu": processor(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "rounds": options.rounds,
        "bars": {"ratio": LEAST_RATIO, "mean": LEAST_MEAN, "of_product": MOST_OF_PRODUCT, "host_us": MOST_HOST_US},
        "misses": found,
        "threads": threads,
    }
    if options.write:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print("\n".join(found) if found else "all bars are met")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=25, help="timed rounds of each call")
    parser.add_argument(
        "--packages", type=Path, help="a folder with the packages, built for this CPU; else they are built"
    )
    parser.add_argument("--no-write", dest="write", action="store_false", help="leave the result file as it is")
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)  # for the process that prints JSON
    options = parser.parse_args()
    if options.threads:
        print(json.dumps(measure_families(options)))
        return 0
    options.threads_of_runs = (1, 2)
    if options.packages:
        return measure_all(options)
    with tempfile.TemporaryDirectory() as folder:
        options.packages = Path(folder)
        for package in sorted({package for package, _ in FAMILIES.values()}):
            command = [BUILD / "bin" / "kpkg", "build", ROOT / "kernels_src" / package, "--target", "native"]
            subprocess.run([*command, "-o", options.packages / f"{package}.kpkg"], check=True, stdout=sys.stderr)
        return measure_all(options)


if __name__ == "__main__":
    sys.exit(main())
