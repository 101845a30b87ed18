"""Times row ops and attention on CPUs beside PyTorch, and the host overhead of a call.

Row ops are pooling, elementwise ops, softmax and norms.

Both sides take turns in one process, on the same inputs and with the same number of threads. A figure is the minimum of
its rounds. A ratio above 1 means that kpkg is faster.

Exits with 1 if a ratio is below the bar of its case, or the geometric mean of a family is below 1. It also does so if
the overhead of a call exceeds PyTorch's by more than the limit.

python tools/bench/cpu_parity_rows.py [--family pooling] [--case TEXT] [--threads 1] [--json
bench/results/cpu-parity-rows.json]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
LEAST_RATIO = 0.9
LEAST_MEAN = 1.0
MOST_ABOVE_US = 2.0
ROUND_SECONDS = 1e-3
# libgomp's workers, which PyTorch uses, spin after their last task and occupy a core.
SETTLE_SECONDS = 8e-3
NEW_SHAPES = 300

Call = Callable[[], Any]
Cases = dict[str, tuple[Call, Call]]


def attention_cases() -> Cases:
    import kpkg
    import torch

    mine, theirs = kpkg.ops.scaled_dot_product_attention, torch.nn.functional.scaled_dot_product_attention
    cases: Cases = {}
    shapes = [
        (1, 4, 16, 32),
        (1, 8, 64, 64),
        (2, 4, 33, 48),
        (1, 8, 128, 64),
        (4, 8, 197, 64),
        (1, 8, 256, 64),
        (1, 8, 512, 64),
        (1, 8, 1024, 64),
    ]
    for shape in shapes:
        q, k, v = (torch.randn(shape) for _ in range(3))
        n = shape[2]
        masks = {"full": {}, "causal": {"is_causal": True}, "masked": {"attn_mask": torch.rand(n, n) > 0.3}}
        for name, options in masks.items():
            cases[f"{name} {list(shape)}"] = (
                lambda q=q, k=k, v=v, o=options: mine(q, k, v, **o),
                lambda q=q, k=k, v=v, o=options: theirs(q, k, v, **o),
            )
    return cases


def pooling_cases() -> Cases:
    import kpkg
    import torch
    import torch.nn.functional as F

    ours = kpkg.ops
    cases: Cases = {}
    windows = [
        ((1, 16, 32, 32), 2, 2, 0),
        ((8, 64, 56, 56), 2, 2, 0),
        ((4, 64, 56, 56), 3, 2, 1),
        ((4, 32, 35, 35), 3, 1, 1),
        ((2, 24, 17, 29), 5, 3, 2),
    ]
    for (shape, k, s, p), last in itertools.product(windows, (False, True)):
        x = torch.randn(shape)
        x = x.contiguous(memory_format=torch.channels_last) if last else x
        label = f"{k}x{k} stride {s} of {list(shape)}" + (" channels_last" if last else "")
        cases[f"max {label}"] = (
            lambda x=x, k=k, s=s, p=p: ours.max_pool2d(x, [k, k], [s, s], [p, p]),
            lambda x=x, k=k, s=s, p=p: F.max_pool2d(x, k, s, p),
        )
        cases[f"average {label}"] = (
            lambda x=x, k=k, s=s, p=p: ours.avg_pool2d(x, [k, k], [s, s], [p, p]),
            lambda x=x, k=k, s=s, p=p: F.avg_pool2d(x, k, s, p),
        )
    return cases


def elementwise_cases() -> Cases:
    import kpkg
    import torch

    ours = kpkg.ops
    cases: Cases = {}
    for shape in ((8, 64), (64, 256), (512, 768), (1024, 3072)):
        x, y = torch.randn(shape), torch.randn(shape)
        label = f"{shape[0]}x{shape[1]}"
        cases[f"relu {label}"] = (lambda x=x: ours.relu(x), lambda x=x: torch.relu(x))
        cases[f"gelu {label}"] = (lambda x=x: ours.gelu(x), lambda x=x: torch.nn.functional.gelu(x))
        cases[f"add {label}"] = (lambda x=x, y=y: ours.add(x, y), lambda x=x, y=y: torch.add(x, y))
        cases[f"mul {label}"] = (lambda x=x, y=y: ours.mul(x, y), lambda x=x, y=y: torch.mul(x, y))
    return cases


def rows_cases() -> Cases:
    import kpkg
    import torch
    import torch.nn.functional as F

    ours = kpkg.ops
    cases: Cases = {}

    def residual(x: Any, r: Any, w: Any) -> tuple[Any, Any]:
        total = x + r
        return F.rms_norm(total, w.shape, w, 1e-6), total

    for rows, n in ((8, 64), (64, 256), (128, 768), (256, 1024), (512, 3072), (128, 5120)):
        x, r, w, b = torch.randn(rows, n), torch.randn(rows, n), torch.randn(n), torch.randn(n)
        label = f"{rows}x{n}"
        cases[f"softmax {label}"] = (lambda x=x: ours.softmax(x, -1), lambda x=x: torch.softmax(x, -1))
        cases[f"layer_norm {label}"] = (
            lambda x=x, n=n, w=w, b=b: ours.layer_norm(x, [n], w, b, 1e-5),
            lambda x=x, n=n, w=w, b=b: F.layer_norm(x, [n], w, b, 1e-5),
        )
        cases[f"rms_norm {label}"] = (
            lambda x=x, n=n, w=w: ours.rms_norm(x, [n], w, 1e-6),
            lambda x=x, n=n, w=w: F.rms_norm(x, [n], w, 1e-6),
        )
        cases[f"residual_rms_norm {label}"] = (
            lambda x=x, r=r, w=w: ours.residual_rms_norm(x, r, w, 1e-6),
            lambda x=x, r=r, w=w: residual(x, r, w),
        )
    return cases


FAMILIES: dict[str, Callable[[], Cases]] = {
    "attention": attention_cases,
    "pooling": pooling_cases,
    "elementwise": elementwise_cases,
    "rows": rows_cases,
}


def host_pairs(ours: Any) -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[int], Any]]]:
    """Returns, for ops of `ours`, a call of each side, and a function that creates its input from a size."""
    import torch
    import torch.nn.functional as F

    def matrix(n: int) -> Any:
        return torch.randn(2, n)

    def image(n: int) -> Any:
        return torch.randn(1, 1, 4, 3 + n)

    def heads(n: int) -> Any:
        return torch.randn(1, 1, 2 + n % 16, 1 + n // 16)

    return {
        "relu": (lambda x: ours.relu(x), torch.relu, matrix),
        "gelu": (lambda x: ours.gelu(x), F.gelu, matrix),
        "add": (lambda x: ours.add(x, x), lambda x: torch.add(x, x), matrix),
        "mul": (lambda x: ours.mul(x, x), lambda x: torch.mul(x, x), matrix),
        "softmax": (lambda x: ours.softmax(x, -1), lambda x: torch.softmax(x, -1), matrix),
        "layer_norm": (
            lambda x: ours.layer_norm(x, x.shape[1:]),
            lambda x: F.layer_norm(x, x.shape[1:]),
            matrix,
        ),
        "rms_norm": (
            lambda x: ours.rms_norm(x, x.shape[1:]),
            lambda x: F.rms_norm(x, x.shape[1:], None, 1e-6),
            matrix,
        ),
        "max_pool2d": (lambda x: ours.max_pool2d(x, [2, 2]), lambda x: F.max_pool2d(x, [2, 2]), image),
        "avg_pool2d": (lambda x: ours.avg_pool2d(x, [2, 2]), lambda x: F.avg_pool2d(x, [2, 2]), image),
        "attention": (
            lambda x: ours.scaled_dot_product_attention(x, x, x),
            lambda x: F.scaled_dot_product_attention(x, x, x),
            heads,
        ),
    }


def seconds_of(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def compare(ours: Call, theirs: Call, rounds: int, threads: int) -> tuple[float, float]:
    """Returns the minimum microseconds of both, measured in turns."""
    calls = (ours, theirs)
    repeats, least = [], []
    for call in calls:
        call()
        once = min(seconds_of(call, 1) for _ in range(3))
        repeats.append(max(1, math.ceil(ROUND_SECONDS / max(once, 1e-7))))
        least.append(once)
    if max(least) > 5e-3:
        rounds = max(rounds // 3, 5)
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            settled = time.perf_counter() + (SETTLE_SECONDS if threads > 1 else 0)
            calls[side]()
            while time.perf_counter() < settled:
                calls[side]()
            least[side] = min(least[side], seconds_of(calls[side], repeats[side]))
    return least[0] * 1e6, least[1] * 1e6


def compare_new_shapes(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], make: Any) -> tuple[float, float]:
    """Returns the microseconds of a call with a new shape for each side: the lower quartile over many."""
    samples: tuple[list[float], list[float]] = ([], [])
    for n in range(2, 2 + NEW_SHAPES):
        x = make(n)
        for side, call in ((0, ours), (1, theirs)) if n % 2 else ((1, theirs), (0, ours)):
            start = time.perf_counter()
            call(x)
            samples[side].append(time.perf_counter() - start)
    return tuple(sorted(side)[NEW_SHAPES // 4] * 1e6 for side in samples)  # type: ignore[return-value]


def check(family: str, case: str, ours: Call, theirs: Call) -> None:
    """Ends the program if the results differ, because times of different results are not comparable."""
    import torch

    mine, expected = ours(), theirs()
    for a, b in zip(
        mine if isinstance(mine, tuple) else [mine],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, msg=lambda text: f"{family}, {case}: {text}")


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import kpkg
    import torch

    for threads in options.threads or (1, 2):
        torch.set_num_threads(threads)
        kpkg.set_cpu_threads(threads)
        for family, make in FAMILIES.items():
            if options.family and family not in options.family:
                continue
            for case, (ours, theirs) in make().items():
                if options.case and options.case not in case:
                    continue
                check(family, case, ours, theirs)
                mine, aten = compare(ours, theirs, options.rounds, threads)
                yield row(family, case, threads, mine, aten)
    if options.family and "host" not in options.family:
        return
    torch.set_num_threads(1)
    kpkg.set_cpu_threads(1)
    for door, ours in (("kpkg.ops", kpkg.ops), ("torch.ops.kpkg", torch.ops.kpkg)):
        for name, (mine, theirs, make) in host_pairs(ours).items():
            if options.case and options.case not in name:
                continue
            x = make(8)
            pair = compare(lambda f=mine, x=x: f(x), lambda f=theirs, x=x: f(x), options.rounds, 1)
            yield row("host", f"{door}.{name}", 1, *pair)
            kpkg_new = make_new(make, door)
            yield row("host", f"{door}.{name}, a new shape", 1, *compare_new_shapes(mine, theirs, kpkg_new))


def make_new(make: Callable[[int], Any], door: str) -> Callable[[int], Any]:
    """Returns a function that creates sizes which the other entry point has not seen."""
    first = 0 if door == "kpkg.ops" else NEW_SHAPES
    return lambda n: make(8 + first + n)


def row(family: str, case: str, threads: int, mine: float, theirs: float) -> dict[str, Any]:
    result: dict[str, Any] = {
        "family": family,
        "case": case,
        "threads": threads,
        "kpkg_us": round(mine, 2),
        "torch_us": round(theirs, 2),
        "ratio": round(theirs / mine, 3),
    }
    if family == "host":
        result["difference_us"] = round(mine - theirs, 2)
    mark = (
        f"{mine - theirs:+6.2f} us" + ("  ABOVE" if mine - theirs > MOST_ABOVE_US else "")
        if family == "host"
        else f"{theirs / mine:5.2f}x" + ("  BELOW" if theirs / mine < LEAST_RATIO else "")
    )
    print(f"{family:12} {case:62} threads {threads}  kpkg {mine:9.2f} us  torch {theirs:9.2f} us  {mark}", flush=True)
    return result


def judge(rows: list[dict[str, Any]]) -> list[str]:
    """Lists the results that miss their bar."""
    found = []
    for result in rows:
        where = f"{result['family']}, {result['case']}, threads {result['threads']}"
        if result["family"] == "host":
            if result["difference_us"] > MOST_ABOVE_US:
                found.append(f"{where}: {result['difference_us']:+.2f} us")
        elif result["ratio"] < LEAST_RATIO:
            found.append(f"{where}: {result['ratio']:.2f}x")
    for key, mean in means(rows).items():
        if mean < LEAST_MEAN:
            found.append(f"{key}: a geometric mean of {mean:.2f}x")
    return found


def means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the geometric mean of each family's ratios, for each number of threads."""
    ratios: dict[str, list[float]] = {}
    for result in rows:
        if result["family"] != "host":
            ratios.setdefault(f"{result['family']}, threads {result['threads']}", []).append(result["ratio"])
    return {key: round(math.exp(sum(map(math.log, r)) / len(r)), 3) for key, r in ratios.items()}


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", choices=[*FAMILIES, "host"])
    parser.add_argument("--case", help="only cases whose label has this text")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--packages", type=Path, default=BUILD / "test-packages")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["KPKG_FALLBACK"] = "strict"  # otherwise PyTorch could be compared with itself
    sys.path.insert(0, str(BUILD / "python"))
    import torch

    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        # The folder of the tests also has packages of the GPUs' kernels for this CPU, with the same ops.
        for family in ("attention", "pooling", "elementwise", "softmax", "norm", "residual"):
            (Path(folder) / f"{family}.kpkg").symlink_to((options.packages / f"{family}.kpkg").resolve(strict=True))
        os.environ["KPKG_PATH"] = folder
        import kpkg

        rows = list(measure(options))
    for key, mean in means(rows).items():
        print(f"{key}: geometric mean {mean:.3f}x")
    below = judge(rows)
    for line in below:
        print(f"below its bar: {line}", file=sys.stderr)
    if options.json:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        meta = {
            "date": datetime.date.today().isoformat(),
            "commit": commit.stdout.strip(),
            "cpu": processor(),
            "target": kpkg.cpu_targets()[0],
            "load": os.getloadavg()[0],
            "torch": torch.__version__,
            "python": platform.python_version(),
        }
        bars = {"ratio": LEAST_RATIO, "geomean": LEAST_MEAN, "host_above_us": MOST_ABOVE_US}
        text = {"meta": meta, "bars": bars, "geomeans": means(rows), "rows": rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(text, indent=1) + "\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
