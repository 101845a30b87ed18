"""Makes the pages of dtypes and chips from the tables in the runtime's sources.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DTYPES = "runtime/include/kpkg/dtypes.def"
CHIPS = "runtime/chips/Chips.def"
KINDS = {"Bool": "truth value", "Signed": "signed integer", "Unsigned": "unsigned integer"}


def rows(source: str, macro: str) -> list[list[str]]:
    """Returns the arguments of each use of `macro` at the beginning of a line, without quotes."""
    text = (ROOT / source).read_text()
    found = []
    for use in re.finditer(rf"^{macro}\(", text, re.M):
        argument = re.compile(r"""((?:"[^"]*"|[^",()])+)([,)])""")
        arguments, at, end = [], use.end(), ","
        while end == ",":
            match = argument.match(text, at)
            assert match, f"{source}: a use of {macro} that is no list of words, numbers and texts"
            arguments.append(re.sub(r'"\s+"', "", match[1].strip()).strip('"'))
            at, end = match.end(), match[2]
        found.append(arguments)
    return found


class DType(NamedTuple):
    """One row of the table of dtypes."""

    constant: str
    type: str
    name: str
    code: int
    bits: int
    kind: str
    exponent: int
    mantissa: int
    infinity: bool
    dlpack: int
    numpy: bool
    torch: str
    stable: bool


def dtypes() -> list[DType]:
    return [
        DType(
            constant=row[0],
            type=row[1],
            name=row[2],
            code=int(row[3]),
            bits=int(row[4]),
            kind=row[5],
            exponent=int(row[6]),
            mantissa=int(row[7]),
            infinity=row[8] == "1",
            dlpack=int(row[9]),
            numpy=row[10] == "1",
            torch=row[11],
            stable=row[12] == "1",
        )
        for row in rows(DTYPES, "KPKG_DTYPE_ROW")
    ]


def chips() -> list[dict[str, str]]:
    """Returns the fields of each chip by name, as they are written."""
    pairs = [[field.removeprefix(".").split(" = ") for field in row] for row in rows(CHIPS, "KPKG_CHIP")]
    return [{name: value.strip('"') for name, value in record} for record in pairs]


def table(titles: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table."""
    all_lines = [titles, ["---"] * len(titles), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in all_lines)


def number(text: str) -> str:
    """Returns the value of a product of numbers, `64 * 1024`, with KB for multiples of 1024."""
    if not re.fullmatch(r"[\d* ]+", text):
        return {"true": "yes", "false": ""}.get(text, text)
    value = 1
    for factor in text.split("*"):
        value *= int(factor)
    return f"{value // 1024} K" if value >= 4096 and value % 1024 == 0 else str(value)


def kind(dtype: DType) -> str:
    if dtype.kind in KINDS:
        return KINDS[dtype.kind]
    return f"float: {dtype.exponent} bits of exponent, {dtype.mantissa} of mantissa" + (
        "" if dtype.infinity else ", no infinities"
    )


def dtypes_page() -> str:
    notice = f"`tools/dev pages` writes this page from `{DTYPES}`."
    lines = [
        [
            f"`{d.name}`",
            f"`{d.type}`",
            d.bits,
            kind(d),
            "" if d.numpy else "ml_dtypes",
            f"`KPKG_{d.constant}`, {d.code}",
        ]
        for d in dtypes()
    ]
    text = (
        "Each dtype is a value and a type of the language. PyTorch has it under the same name. NumPy has some only\n"
        "through another package. Bits are those of an element in memory."
    )
    return (
        "\n\n".join(
            [
                "# Dtypes",
                notice,
                text,
                table(["dtype", "type", "bits", "kind", "NumPy by", "C constant, number"], lines),
            ]
        )
        + "\n"
    )


def chips_page() -> str:
    records = chips()
    parts = ["# Chips", f"`tools/dev pages` writes this page from `{CHIPS}`."]
    groups = {"limit": "Limits", "feature": "Features", "rate": "Rates of a multiprocessor"}
    fields = rows(CHIPS, "KPKG_CHIP_FIELD")
    parts.append(table(["target", "devices"], ([f"`{c['name']}`", c["devices"]] for c in records)))
    for group, heading in groups.items():
        lines = [[name, *(number(c[name]) for c in records), meaning] for of, _, name, meaning in fields if of == group]
        parts += [f"## {heading}", table(["field", *(c["name"] for c in records), "meaning"], lines)]
    heuristics = rows(CHIPS, "KPKG_HEURISTIC")
    parts += [
        "## Heuristics",
        "The values suit an H200. Other chips use them unmeasured. Measured means: kernels were timed on an H200 with\n"
        "several values. Estimated means: no such measurement is known. The file in `bench/results` has times of\n"
        "kernels that use the value.",
        table(
            ["field", "value", "origin", "times", "meaning"],
            [
                [name, number(value), origin.lower(), result, meaning]
                for _, name, value, origin, result, meaning in heuristics
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


#: The pages under docs/compiler/, and what makes each.
TABLE_PAGES = {"chips.md": chips_page, "dtypes.md": dtypes_page}
