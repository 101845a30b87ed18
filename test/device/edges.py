"""Checks calls with extreme arguments on a GPU.

Tests more than 2^31 elements, empty tensors, overlapping elements, other strides, NaN and infinities.

    test/device/edges.py --package softmax.kpkg --package norm.kpkg --out edges.json

Calls every op whose spec has `rows`, and compares the results with the spec's reference. For large tensors, it compares
the rows at both ends and around element 2^31. It also checks that a second run is bitwise equal. Needs the same
software as run.py; each op runs in a process of its own with a time limit. `--device cpu --elements 100000` tries the
script itself on a machine without a GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "kernels_src")]

LIMIT = 1 << 31
COLUMNS = 4096
# Ops whose results for infinities are specified and equal those of PyTorch's formula.
WITH_INFINITIES = {
    "softmax",
    "log_softmax",
    "relu",
    "sum",
    "mean",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumsum",
    "add",
    "mul",
}
MEANS_OF_ROWS = {"cross_entropy", "cross_entropy_backward"}
OVER_ALL = {"sum": 1.0, "amax": 1.0, "argmax": None}


@dataclass
class Case:
    """A call; for a large one, only `rows` are compared."""

    label: str
    sample: Any
    rows: list[int] | None = None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", required=True)
    parser.add_argument("--op", action="append", help="only this op, kpkg::...; may be repeated")
    parser.add_argument("--elements", type=int, default=LIMIT, help="a large tensor has more than this")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one op")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time; one takes up to 50 GB")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def matrices(sample: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the sample with `change` applied to its floating-point matrices."""
    return sample.map(lambda tensor: change(tensor) if tensor.dim() == 2 and tensor.is_floating_point() else tensor)


def overlapping(tensor: Any) -> Any:
    """Returns a view of the same shape whose row i starts one element after row i - 1."""
    return tensor.flatten()[: sum(tensor.shape)].as_strided(tensor.shape, (1, 1))


def spaced(tensor: Any) -> Any:
    """Returns the same values as every other element of twice the memory."""
    import torch

    wide = torch.full((tensor.shape[0], 2 * tensor.shape[1]), 7.0, dtype=tensor.dtype, device=tensor.device)
    wide[:, ::2] = tensor
    return wide[:, ::2]


def marked(row: int, value: float) -> Callable[[Any], Any]:
    def change(tensor: Any) -> Any:
        copy = tensor.clone()
        copy[row, copy.shape[1] // 3] = value
        return copy

    return change


def small_cases(spec: Any, dtype: Any, generator: Any) -> Iterator[Case]:
    for m, n in [(0, 40), (1, 1)]:
        yield Case(f"{m}x{n}", spec.rows(m, n, dtype, generator))
    for m, n in [(5, 40), (67, 1032)]:
        sample = spec.rows(m, n, dtype, generator)
        yield Case(f"{m}x{n} overlapping", matrices(sample, overlapping))
        yield Case(f"{m}x{n} one row expanded", matrices(sample, lambda t: t[:1].expand(t.shape)))
        yield Case(f"{m}x{n} one column expanded", matrices(sample, lambda t: t[:, :1].expand(t.shape)))
        yield Case(f"{m}x{n} transposed in memory", matrices(sample, lambda t: t.t().contiguous().t()))
        yield Case(f"{m}x{n} every other element", matrices(sample, spaced))
        yield Case(f"{m}x{n} NaN", matrices(sample, marked(1, math.nan)))
        if spec.family in WITH_INFINITIES:
            yield Case(f"{m}x{n} infinity", matrices(sample, marked(2, math.inf)))
            yield Case(f"{m}x{n} minus infinity", matrices(sample, marked(3, -math.inf)))


def with_losses_of_rows(sample: Any) -> Any:
    """Turns a mean over rows into the call with one result per row, so that a part of the rows can be compared."""
    import torch

    *grad, x, target = sample.args
    grads = [torch.linspace(-1, 1, x.shape[0], dtype=g.dtype, device=g.device) for g in grad]
    return type(sample)((*grads, x, target, None, -100, "none"))


def large_case(spec: Any, dtype: Any, generator: Any, elements: int) -> Case:
    m = elements // COLUMNS + 3
    boundary = elements // COLUMNS
    sample = spec.rows(m, COLUMNS, dtype, generator)
    if spec.family in MEANS_OF_ROWS:
        sample = with_losses_of_rows(sample)
    return Case(f"{m}x{COLUMNS}", sample, [0, 1, boundary - 1, boundary, boundary + 1, m - 1])


def part(tensor: Any, count: int, rows: list[int]) -> Any:
    return tensor[rows] if tensor.dim() and tensor.shape[0] == count else tensor


def failure_of(spec: Any, op: Any, case: Case) -> str | None:
    import torch
    from opspec import as_tuple

    sample, results = case.sample, as_tuple(op(*case.sample.args, **case.sample.kwargs))
    if case.rows is not None:
        again = as_tuple(op(*case.sample.args, **case.sample.kwargs))
        if not all(torch.equal(one, other) for one, other in zip(results, again)):
            return f"{case.label}: a second run differs"
        count = case.sample.args[0].shape[0]
        if not all(result.dim() and result.shape[0] == count for result in results):
            return None  # sums over all rows: a part of them has no reference
        sample = sample.map(lambda tensor: part(tensor, count, case.rows))
        results = tuple(result[case.rows] for result in results)
    try:
        spec.check(sample.map(lambda tensor: tensor.cpu()), tuple(result.cpu() for result in results))
    except AssertionError as error:
        return f"{case.label}: {error}"
    return None


def over_all(name: str, op: Any, elements: int, device: str) -> str | None:
    """Checks a reduction over all elements of a large tensor that is 0 except for its last element."""
    import torch

    x = torch.zeros(elements + 5, dtype=torch.bfloat16, device=device)
    x[-1] = 1.0
    expected = x.numel() - 1 if OVER_ALL[name] is None else OVER_ALL[name]
    found = op(x).item()
    return None if found == expected else f"over all of {x.numel()}: {found}, expected {expected}"


def worker(options: argparse.Namespace) -> int:
    os.environ["KPKG_FALLBACK"] = "strict"
    import kpkg
    import opspec
    import torch

    spec = next(spec for spec in opspec.load_specs() if spec.name == options.worker)
    op = next((found for package in options.package if (found := getattr(kpkg.load(package), spec.family, None))), None)
    generator = torch.Generator(options.device).manual_seed(5)
    passed, failures = 0, []

    def record(label: str, check: Callable[[], str | None]) -> None:
        nonlocal passed
        try:
            failure = check()
        except Exception as error:  # any failure becomes a line of the report
            failure = f"{label}: {type(error).__name__}: {str(error)[:300]}"
        failures.append(failure) if failure else None
        passed += not failure
        print(json.dumps({"at": label}), flush=True)

    for dtype in (torch.float32, torch.bfloat16):
        if dtype in spec.dtypes:
            for case in small_cases(spec, dtype, generator):
                record(f"{dtype} {case.label}", lambda case=case: failure_of(spec, op, case))
    if torch.bfloat16 in spec.dtypes:
        record("large", lambda: failure_of(spec, op, large_case(spec, torch.bfloat16, generator, options.elements)))
        if spec.family in OVER_ALL:
            record("over all", lambda: over_all(spec.family, op, options.elements, options.device))
    print(json.dumps({"op": spec.name, "passed": passed, "failures": failures}), flush=True)
    return 0


def result_of(options: argparse.Namespace, op: str) -> dict[str, Any]:
    """Runs one op in a process of its own and returns its findings."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", op]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
        output, trouble = done.stdout, done.stderr[-600:] if done.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, trouble = (expired.stdout or b"").decode(), f"no answer within {options.limit} s"
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    result = next((line for line in found if "op" in line), {"op": op, "passed": 0, "failures": []})
    if trouble:
        result["failures"] = [*result.get("failures", []), f"{trouble} (last: {found[-1] if found else None})"]
    return result


def main() -> int:
    options = arguments()
    if options.worker:
        return worker(options)
    import kpkg
    import opspec

    packages = [kpkg.load(package) for package in options.package]
    names = [
        spec.name
        for spec in opspec.load_specs()
        if spec.rows
        and (not options.op or spec.name in options.op)
        and any(hasattr(package, spec.family) for package in packages)
    ]
    lines = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda name: result_of(options, name), names):
            lines.append(result)
            print(f"{result['op']:36} {result['passed']:4} passed  {len(result['failures'])} failed", flush=True)
            for failure in result["failures"][:4]:
                print("   ", failure, flush=True)
            if options.out:
                options.out.write_text(json.dumps(lines, indent=1) + "\n")
    return 1 if not lines or any(line["failures"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
