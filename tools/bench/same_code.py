"""Compares the PTX of two kpkg commands for the same sources, up to names of kernels and comments.

After a change of the compiler that should leave all kernels as fast as before:

    tools/bench/same_code.py --old OLD/bin/kpkg --new build/bin/kpkg --sources kernels_src \\
        --target sm_80,sm_90a,sm_120 --json same.json kernels_src/gemm kernels_src/softmax/softmax.k

After a change of kernels that should leave their code alone, `--old-sources` is the folder with the sources before it.
Code is then compared whatever the names of kernels: each body must exist on both sides.

Prints a line for each source and target, and writes the names of kernels with other code to the JSON file. Exits with 1
if a kernel differs, exists on one side only, or one command alone refuses a source.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ENTRY = re.compile(r"\.entry\s+([\w$]+)")


def kernels(ptx: str) -> dict[str, str]:
    """Returns the code of each kernel of a module's text, by the kernel's name."""
    parts = re.split(r"(?m)^(?=(?:\.visible )?\.entry )", ptx)
    named = [(match[1], part) for part in parts if (match := ENTRY.match(part.removeprefix(".visible ")))]
    return {name: re.sub(r"//.*", "", part).replace(name, "KERNEL") for name, part in named}


def built(command: Path, source: Path, include: Path, target: str) -> dict[str, str] | None:
    """Returns the kernels of `source`, or None if the command refuses it."""
    call = [str(command), "build", str(source), "-I", str(include), "--emit=ptx", "--target", target]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    return kernels(run.stdout) if run.returncode == 0 else None


def compared(given: argparse.Namespace, source: Path, target: str) -> dict[str, Any]:
    """Returns the record of one source for one target."""
    earlier = given.old_sources
    old_source = earlier / source.relative_to(given.sources) if earlier else source
    before = built(given.old, old_source, earlier or given.sources, target)
    after = built(given.new, source, given.sources, target)
    record: dict[str, Any] = {"source": str(source), "target": target}
    if before is None or after is None:
        return record | {"refused_by": [side for side, had in (("old", before), ("new", after)) if had is None]}
    if earlier:
        bodies = [set(side.values()) for side in (before, after)]
        before = {name: code for name, code in before.items() if code not in bodies[1]}
        after_only = {name: code for name, code in after.items() if code not in bodies[0]}
        return record | {"kernels": len(after), "differing": sorted(before.keys() | after_only.keys())}
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return record | {"kernels": len(after), "differing": differing}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True, help="the kpkg command before the change")
    parser.add_argument("--new", type=Path, required=True, help="the kpkg command with the change")
    parser.add_argument("--sources", type=Path, required=True, help="the folder for imports")
    parser.add_argument("--old-sources", type=Path, help="the same folder before the change, if kernels changed")
    parser.add_argument("--target", required=True, help="chips, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="sources compared at a time")
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("paths", nargs="+", type=Path, help="files and folders of kernels")
    given = parser.parse_args()
    cases = [(path, target) for target in given.target.split(",") for path in given.paths]
    with ThreadPoolExecutor(given.jobs) as pool:
        records = list(
            pool.map(lambda case: compared(given, *case), cases),
        )
    for record in records:
        told = f"{len(record['differing'])} of {record['kernels']} differ" if "kernels" in record else "refused by "
        print(record["target"], record["source"], told + ", ".join(record.get("refused_by", [])))
    if given.json:
        meta = {"date": datetime.date.today().isoformat(), "machine": platform.machine(), "what": "equal PTX"}
        given.json.write_text(json.dumps(meta | {"rows": records}, indent=1) + "\n")
    one_sided = any(len(record.get("refused_by", [])) == 1 for record in records)
    return int(one_sided or any(record.get("differing") for record in records))


if __name__ == "__main__":
    sys.exit(main())
