"""Draws the speed of kpkg from the result files, and writes the page that shows it.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

#: Equal results give equal pictures.
matplotlib.rcParams["svg.hashsalt"] = "kpkg"
RELEASE, ROWS, PRODUCTS = "gpu-release-h100.json", "gpu-rows-h200.json", "gpu-gemm-h200.json"


def _read(results: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / name).read_text())
    return found


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _ratios(release: dict[str, Any], path: Path) -> None:
    families = list(release["families"].items())[::-1]
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(families) + 0.9))
    means = [family["geomean"] for _, family in families]
    bars = axes.barh([name for name, _ in families], means, color="#3f51b5")
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlim(0, max(means) * 1.12)
    axes.set_xlabel(f"peer's time over kpkg's, geometric mean; {release['gpu']}")
    _save(figure, path)


def _roofline(rows: dict[str, Any], path: Path) -> None:
    """Draws the rates of row ops over the bytes of a call: the roof is the rate of a copy."""
    figure, axes = plt.subplots(figsize=(8, 4.5))
    for op, marker in (("softmax", "o"), ("layer_norm", "s"), ("rms_norm", "^"), ("cross_entropy", "x")):
        cases = [case for case in rows["cases"] if case["op"] == f"kpkg::{op}" and case["dtype"] == "bfloat16"]
        lengths = [case["shape"][-1] for case in cases]
        axes.scatter(lengths, [case["share"] for case in cases], marker=marker, label=op)
    axes.axhline(1.0, color="black", linewidth=1, label="a copy of as many bytes")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.15)
    axes.set_xlabel("elements of a row")
    axes.set_ylabel("part of a copy's rate")
    axes.set_title(f"row ops, bfloat16, {rows['gpu']}")
    axes.legend(loc="lower right")
    _save(figure, path)


def _page(release: dict[str, Any]) -> str:
    lines = [
        "# Speed",
        "",
        f"Compare kpkg with the best peer of each family. All figures: {release['gpu']}, driver {release['driver']}, "
        f"PyTorch {release['torch']}, {release['date']}. Ratios are the peer's time over kpkg's.",
        "",
        "![Ratios of all families](ratios.svg)",
        "",
        "| family | peer | cases | ratio, geometric mean | least |",
        "|---|---|---|---|---|",
    ]
    for name, family in release["families"].items():
        least = min(row["ratio"] for row in family["rows"])
        lines.append(f"| {name} | {family['peer']} | {family['cases']} | {family['geomean']:.2f} | {least:.2f} |")
    lines += [
        "",
        "Row ops read their input once, so that the rate of a copy is their limit:",
        "",
        "![Rates of row ops beside a copy](rows.svg)",
        "",
        "[All results](../../bench/results/README.md) have their files. The figures of one op are on its page under "
        "[Ops](README.md).",
        "",
    ]
    return "\n".join(lines)


def write(folder: Path, results: Path) -> None:
    """Writes speed.md with its pictures into `folder`, from the result files in `results`."""
    release = _read(results, RELEASE)
    _ratios(release, folder / "ratios.svg")
    _roofline(_read(results, ROWS), folder / "rows.svg")
    (folder / "speed.md").write_text(_page(release))
