"""Reads the tables of docs/package-format.md, on which the independent reader in this folder is built.

Modules of this folder know the format from this page alone. They share no code with kpkg.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "package-format.md"


class Refused(Exception):
    """A file that the page forbids, with the reason."""


def number(text: str) -> int:
    """Returns the number that the page writes as 4096 or 2^20."""
    base, _, power = text.partition("^")
    return int(base) ** int(power or 1)


def read_tables() -> dict[str, list[list[str]]]:
    """Returns the generated tables by name, each as its rows of cells, without the heading."""
    tables = {}
    for name, body in re.findall(r"<!-- table: (\w+) -->\n(.*?)<!-- end -->", PAGE.read_text(), re.S):
        rows = [re.split(r"(?<!\\) \| ", line.strip("|").strip()) for line in body.strip().splitlines()]
        tables[name] = [[cell.strip() for cell in row] for row in rows[2:]]
    return tables


def read_kinds() -> dict[str, int]:
    """Returns the kinds of sections with their most bytes."""
    rows = re.search(r"\| kind \| most bytes \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE.read_text())
    assert rows
    kinds = {}
    units = {"MiB": 2**20, "GiB": 2**30}
    for line in rows[1].splitlines():
        names, most = [cell.strip() for cell in line.strip("|").split("|")]
        count, unit = re.search(r"(\d+)(?: (MiB|GiB))?", most).groups()
        for name in re.findall(r"`([^`]+)`", names):
            kinds[name] = int(count) * units.get(unit, 1)
    return kinds


TABLES = read_tables()
KINDS = read_kinds()
# Opcodes by number, as (name, signature), where "its own" is a signature.
OPCODES = {int(row[0]): (row[1].strip("`"), row[2].strip("`")) for row in TABLES["opcodes"]}
# Dtypes by number, as (name, bits, kind).
DTYPES = {int(row[0]): (row[1].strip("`"), int(row[2]), row[3]) for row in TABLES["dtypes"]}
DTYPE_NUMBERS = {name: code for code, (name, _, _) in DTYPES.items()}
LIMITS = {row[0]: number(row[1]) for row in TABLES["plan_limits"]}


@lru_cache
def limit(start: str) -> int:
    """Returns the limit of plans with this name, or whose name alone begins with this text."""
    if start in LIMITS:
        return LIMITS[start]
    found = [most for name, most in LIMITS.items() if name.startswith(start)]
    assert len(found) == 1, start
    return found[0]
