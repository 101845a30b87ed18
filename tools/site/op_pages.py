"""Writes the reference of ops, a page for each family, from packages, specs and results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernels_src"))

import kpkg  # noqa: E402
import opspec  # noqa: E402

#: Ops that only other ops call.
_INTERNAL = ("_reference", "_autograd")
RESULTS = ROOT / "bench" / "results"


def _families() -> list[str]:
    return sorted(path.parent.name for path in (ROOT / "kernels_src").glob("*/spec.py"))


def _short(name: str) -> str:
    return name.partition("::")[2]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _speeds() -> dict[str, list[str]]:
    """Returns rows of the speed table of each op: dtype, GPU, calls, ratio to the best peer, part of a copy's rate."""
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        cases = result.get("cases")
        for case in cases if isinstance(cases, list) else ():
            if isinstance(case, dict) and {"op", "dtype", "ratio_to_best", "share"} <= case.keys():
                groups[case["op"], case["dtype"], result["gpu"], path.name].append(case)
    rows = defaultdict(list)
    for (op, dtype, gpu, file), cases in sorted(groups.items()):
        ratios = [case["ratio_to_best"] for case in cases]
        shares = [case["share"] for case in cases]
        rows[op].append(
            f"| {dtype} | {gpu} | {len(cases)} | {_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
            f"| {_mean(shares):.2f} | [{file}](../../bench/results/{file}) |"
        )
    return rows


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _type_of(argument: dict[str, Any]) -> str:
    return str(argument["type"]) + (", changed" if argument["mut"] else "")


def _facts(op: dict[str, Any], dtypes: Iterable[str]) -> list[str]:
    torch = op.get("torch") or {}
    facts = [f"| dtypes | {', '.join(dtypes)} |"] if dtypes else []
    gradient = op.get("backward")
    facts.append(f"| gradient | {'by kernels, `' + _short(gradient['op']) + '`' if gradient else 'none'} |")
    if "autocast" in torch:
        casts = torch["autocast"]
        facts.append(f"| autocast | {', '.join(f'{key}: {value}' for key, value in casts.items())} |")
    if "fallback" in torch:
        facts.append(
            f"| without a kernel | PyTorch runs `{_escaped(' '.join(str(torch['fallback']).split())[:160])}` |"
        )
    if op.get("reference"):
        facts.append(f"| reference in the package | `{_short(op['reference'])}` |")
    return facts


def _section(op: dict[str, Any], dtypes: Iterable[str], speeds: list[str]) -> list[str]:
    lines = [
        f"## {_short(op['name'])}",
        "",
        "```text",
        _wrapped(op["schema"]),
        "```",
        "",
        op.get("doc", "").strip(),
        "",
    ]
    lines += ["| property | value |", "|---|---|", *_facts(op, dtypes), ""]
    if speeds:
        lines += ["| dtype | GPU | calls | ratio to the best peer (range) | part of a copy's rate | figures |"]
        lines += ["|---|---|---|---|---|---|", *speeds, ""]
    return lines


def _wrapped(schema: str) -> str:
    """Returns a schema with an argument on each line if it is long."""
    if len(schema) <= 90:
        return schema
    head, _, rest = schema.partition("(")
    arguments, arrow, results = rest.rpartition(") ->")
    return f"{head}(\n    " + ",\n    ".join(arguments.split(", ")) + f"\n{arrow}{results}"


def _page(family: str, library: kpkg.CustomOpLibrary, dtypes: dict[str, list[str]], speeds: dict[str, Any]) -> str:
    listed = [op for op in library.manifest["ops"] if not op["name"].endswith(_INTERNAL)]
    ops = sorted(listed, key=lambda op: op["name"].endswith("_backward"))
    kernels, instances = library.manifest["kernels"], library.manifest["instances"]
    lines = [
        f"# The family {family}",
        "",
        f"Load the package, and call an op with PyTorch tensors or NumPy arrays. Source: `kernels_src/{family}`, "
        f"{len(kernels)} kernels.",
        "",
        "```python",
        "import kpkg",
        "",
        f'ops = kpkg.load("{family}.kpkg")  # or kpkg.ops, where kpkg-kernels is installed',
        f"print(ops.{_short(ops[0]['name'])}.schema)",
        "```",
        "",
    ]
    claims = sorted({flag for instance in instances for flag in instance["flags"]})
    if all("deterministic" in instance["flags"] for instance in instances):
        lines += ["All kernels of the family are deterministic: equal arguments give equal bits.", ""]
    elif claims:
        lines += [f"Some kernels claim: {', '.join(claims)}.", ""]
    for op in ops:
        lines += _section(op, dtypes.get(op["name"], []), speeds.get(op["name"], []))
    return "\n".join(lines)


def write(folder: Path, packages: Path) -> dict[str, str]:
    """Writes FAMILY.md for each family and README.md, and returns the titles of families by page.

    Raises kpkg.PackageError if `packages` lacks the package of a family.
    """
    dtypes = {spec.name: [str(dtype).removeprefix("torch.") for dtype in spec.dtypes] for spec in opspec.load_specs()}
    speeds = _speeds()
    index = [
        "# Ops",
        "",
        "Find an op, and open the page of its family. A family is one package.",
        "",
        "| family | ops |",
        "|---|---|",
    ]
    families = {}
    for family in _families():
        library = kpkg.load(packages / f"{family}.kpkg")
        (folder / f"{family}.md").write_text(_page(family, library, dtypes, speeds) + "\n")
        names = [_short(op["name"]) for op in library.manifest["ops"]]
        public = [name for name in names if not name.endswith((*_INTERNAL, "_backward"))]
        index.append(f"| [{family}]({family}.md) | {', '.join(f'[{name}]({family}.md#{name})' for name in public)} |")
        families[family] = family
    (folder / "README.md").write_text("\n".join(index) + "\n")
    return families
