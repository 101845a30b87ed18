"""Checks the output of `kpkg bench` for hostile.k: `check_bench.py JSON HTML`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

MEASURED = {
    "op": str, "inputs": list, "sweep": dict, "dtype": str, "instances": list, "seconds": dict, "allocates": bool,
    "flops": float,
    "bytes": float, "copies": int, "copied_bytes": int, "flops_per_second": float, "bytes_per_second": float,
    "intensity": float,
    "limit_seconds": float, "share": float, "bound": str,
}  # fmt: skip
HOSTILE = "<script>alert(1)</script>&"

report = json.loads(Path(sys.argv[1]).read_text())
assert report["format"] == 1 and set(report) == {"format", "kpkg", "package", "date", "limits", "lines"}, report.keys()
limits = report["limits"]
assert set(limits) == {"device", "copy_bytes", "flops"} and set(limits["flops"]) == {"float32", "float64"}, limits
assert all(limit["per_second"] > 0 and limit["how"] for limit in [limits["copy_bytes"], *limits["flops"].values()])
lines = report["lines"]
assert [(line["sweep"]["N"], line["sweep"]["T"]) for line in lines] == [
    (n, t) for n in ("1000", "50000", "200000") for t in ("f32", "f64")
]
for line in lines[:4]:
    assert {key: type(value) for key, value in line.items()} == MEASURED, line
    seconds = line["seconds"]
    assert 0 < seconds["p10"] <= seconds["median"] <= seconds["p90"] and 1 <= seconds["samples"] <= 3, seconds
    assert line["inputs"] == [f"x=randn({line['sweep']['N']},{line['sweep']['T']})", "label='<b>N</b>'"], line["inputs"]
    assert HOSTILE in line["instances"][0] and line["flops"] > 0 and not line["allocates"]
    memory, arithmetic = (
        line["bytes"] / limits["copy_bytes"]["per_second"],
        line["flops"] / limits["flops"][line["dtype"]]["per_second"],
    )
    assert math.isclose(line["limit_seconds"], max(memory, arithmetic))
    assert math.isclose(line["share"], line["limit_seconds"] / seconds["median"])
    assert line["bound"] == ("memory" if memory >= arithmetic else "arithmetic")
for line in lines[4:]:
    assert set(line) == {"op", "inputs", "sweep", "error"} and "<img" in line["error"], line

text = Path(sys.argv[2]).read_text()
page = ElementTree.fromstring(text)  # strict: every element closed, every special character escaped
assert "default-src 'none'" in text
elements = list(page.iter())
known = {
    "html", "head", "meta", "title", "style", "body", "h1", "dl", "dt", "dd", "small", "svg", "line", "text", "circle",
    "div", "table", "thead",
    "tbody", "tr", "th", "td", "code", "p",
}  # fmt: skip
assert {element.tag for element in elements} <= known, {element.tag for element in elements} - known
for element in elements:
    assert not any(name.startswith("on") or name in ("src", "href") for name in element.attrib), element.attrib
assert "url(" not in text and "@import" not in text and "\x1b" not in text
assert len(page.findall(".//svg/circle")) == 4
rows = ["".join(row.itertext()) for row in page.findall(".//tbody/tr")]
assert len(rows) == 6 and all(HOSTILE in row for row in rows[:4]) and all("<img src=x" in row for row in rows[4:])
