"""Times the kernels of examples/ on a GPU beside PyTorch, torch.compile, cuSPARSE, cuFFT and Triton.

    for k in examples/*.k; do kpkg build $k --target sm_90a -o packages/$(basename $k .k).kpkg; done
    python test/device/examples.py packages [NAME ...] [-o results.json] [--warm]

Each result is compared with a peer's first. Times are medians of calls in shuffled order behind an L2 flush, with the
host ahead of the GPU. `--warm` compiles the peers alone, so that several processes can fill the caches of
torch.compile at once. With names of files only these are timed; rows of others in the output file are kept. Exits 1
if a result is wrong.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import example_cases
import kpkg
import torch
from timing import times, usable

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tools" / "bench")]

from gpu import device_facts  # noqa: E402

ROUNDS = 15


def error_of(found: Any, expected: Any) -> float:
    """The largest difference between results, as a part of the largest element."""
    if isinstance(found, (tuple, list)):
        return max(error_of(a, b) for a, b in zip(found, expected))
    found, expected = found.double(), expected.double()
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30)).item()


def measured(case: example_cases.Case) -> dict[str, Any]:
    calls, refused = usable(case.calls)
    row: dict[str, Any] = {"call": case.name, **({"refused": refused} if refused else {})}
    if "kpkg" not in calls:
        return row | {"is_right": False}
    if case.is_right is not None:
        row["is_right"] = bool(case.is_right())
    else:
        row["error"] = error_of(calls["kpkg"](), next(call for name, call in calls.items() if name != "kpkg")())
        row["is_right"] = row["error"] <= case.tolerance
    torch.cuda.empty_cache()
    row["us"] = times(calls, ROUNDS, is_ahead=True)
    peers = {name: time for name, time in row["us"].items() if name != "kpkg"}
    if peers:
        row["best_peer"] = min(peers, key=lambda name: peers[name])
        row["ratio"] = round(peers[row["best_peer"]] / row["us"]["kpkg"], 3)
    return row


WHAT = (
    "the kernels of examples/ beside PyTorch, torch.compile, cuSPARSE, cuFFT and Triton: microseconds behind an L2 "
    "flush, ratio of the best peer (test/device/examples.py)"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(example_cases.FILES)}; default: all")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - example_cases.FILES.keys():
        parser.error(f"no cases for {', '.join(sorted(unknown))}")
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    for name in options.names or example_cases.FILES:
        for case in example_cases.FILES[name](kpkg.load(options.packages / f"{name}.kpkg")):
            if options.warm:
                usable({peer: call for peer, call in case.calls.items() if peer in ("compile", "triton")})
                continue
            rows.append({"file": name, **measured(case)})
            print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
    if options.out:
        kept = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
        done = {row["file"] for row in rows}
        rows = sorted([row for row in kept if row["file"] not in done] + rows, key=lambda row: row["file"])
        options.out.write_text(json.dumps({**device_facts(), "what": WHAT, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
