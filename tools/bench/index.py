"""Writes bench/results/README.md, the index of the current result of each subject, from the result files.

    python tools/bench/index.py [--check]

With --check it writes nothing. It fails if the page differs from the files, or if a file lacks a fact.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
HEAD = """# Results

Find a subject, and open its file for the figures. Ratios are the peer's time over kpkg's.

Each subject has one current file. Older files are in the history of this folder.
`python tools/bench/index.py` makes this page from the files.

| subject | date | machine | versions | about |
|---|---|---|---|---|
"""
#: Keys under which files describe a result; the first one present counts.
ABOUT = ("what", "about", "note", "remarks", "command", "script", "method", "timing")
LONGEST = 140


def line_of(path: Path) -> str:
    """Returns the row of one result. ValueError names the file and the missing fact."""
    result: dict[str, Any] = json.loads(path.read_text())
    result |= result.get("meta", {})
    for fact in ("date", "machine"):
        if fact not in result and not (fact == "machine" and {"gpu", "cpu", "device"} & result.keys()):
            raise ValueError(f"{path.name} has no `{fact}`")
    machine = next(str(result[key]) for key in ("gpu", "cpu", "device", "machine") if key in result)
    versions = ", ".join(f"{key} {result[key]}" for key in ("driver", "torch", "triton", "ptxas") if key in result)
    about = next((str(result[key]) for key in ABOUT if key in result), "").replace("\n", " ").replace("|", "\\|")
    if len(about) > LONGEST:
        about = about[: about.rfind(" ", 0, LONGEST)] + " ..."
    return f"| [{path.stem}]({path.name}) | {result['date']} | {machine} | {versions} | {about} |\n"


def main() -> int:
    page = RESULTS / "README.md"
    try:
        text = HEAD + "".join(line_of(path) for path in sorted(RESULTS.glob("*.json")))
    except ValueError as problem:
        print(problem)
        return 1
    if "--check" not in sys.argv:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        print("bench/results/README.md is stale: run `python tools/bench/index.py`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
