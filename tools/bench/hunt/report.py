"""Reports the results of a hunt: figures of each family, the slowest calls, and the page for users.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from typing import Any

WORST = 20
Row = dict[str, Any]


def quantile(ascending: list[float], share: float) -> float:
    """Returns the value below which `share` of all values are."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def summary(rows: list[Row]) -> dict[str, Any]:
    """Returns figures of the calls of a family. Ratios are the best peer's time divided by kpkg's."""
    ratios = sorted(row["ratio"] for row in rows if "ratio" in row)
    figures: dict[str, Any] = {"n": len(rows), "timed": len(ratios)}
    for kind in ("wrong", "error", "fallback", "left_out"):
        if count := sum(kind in row for row in rows):
            figures[kind] = count
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        figures |= {"geomean": mean, "p50": quantile(ratios, 0.5), "p5": quantile(ratios, 0.05)}
        figures |= {"p1": quantile(ratios, 0.01), "minimum": ratios[0]}
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()}


def worst(rows: list[Row]) -> list[Row]:
    """Returns wrong results first, then errors, then the lowest ratios."""

    def rank(row: Row) -> tuple[int, float]:
        return (0 if "wrong" in row else 1 if "error" in row else 2, row.get("ratio", math.inf))

    told = [row for row in rows if "wrong" in row or "error" in row or row.get("ratio", math.inf) < 1]
    return sorted(told, key=rank)[:WORST]


def result(facts: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    """Returns the result file: facts of the run, figures of each family with its gradients separate, and the worst
    calls."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row["family"] + (" gradients" if row["call"]["grad"] else ""), []).append(row)
    return {
        **facts,
        "about": "calls drawn at random beside PyTorch (tools/bench/hunt)",
        "families": {name: summary(of) for name, of in sorted(families.items())},
        "worst": {name: worst(of) for name, of in sorted(families.items())},
    }


def page(results: list[dict[str, Any]]) -> str:
    """Returns the page for users, from result files."""
    text = """# Expected speed

Look up a family of ops to see how kpkg compares with PyTorch on shapes that nobody chose.

`tools/bench/hunt` draws calls from a seed, checks each against float64, and times it beside PyTorch. A ratio is the
time of the best peer by kpkg's: 2 means twice as fast. A share of 0.05 of all calls has a ratio below p5.
`tools/bench/hunt --page` makes this page from the result files.
"""
    for each in results:
        machine = each.get("gpu", each.get("cpu"))
        text += f"\n## {machine}\n\n{each['date']}, PyTorch {each['torch']}, seed {each['seed']}. "
        text += "Calls with a fallback are PyTorch's own, and have no ratio.\n\n"
        text += "| family | calls | geometric mean | median | p5 | p1 | least | fallbacks | wrong or failed |\n"
        text += "|---|---|---|---|---|---|---|---|---|\n"
        for name, of in each["families"].items():
            cells = [str(of.get(key, "")) for key in ("geomean", "p50", "p5", "p1", "minimum")]
            bad = of.get("wrong", 0) + of.get("error", 0)
            text += f"| {name} | {of['n']} | {' | '.join(cells)} | {of.get('fallback', 0)} | {bad} |\n"
    return text
