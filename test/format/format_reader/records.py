"""Checks records of the manifest against the page's tables: presence of keys, kinds of values, limits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from typing import Any

from format_reader.page import TABLES, Refused, number

INT64 = range(-(2**63), 2**63)


def key_of(cell: str) -> str:
    return re.match(r"`(\w+)`", cell)[1]


# Each record's keys, with the cells "if absent" and "value".
RECORDS = {
    name: {key_of(row[0]): (row[1], row[2]) for row in rows}
    for name, rows in TABLES.items()
    if all(len(row) == 4 and not row[0].isdigit() for row in rows)
}
# Operands of the words of lists: ["dim", arg, d] has two.
FACTORS, STEPS, SOURCES = (
    {
        re.match(r'`\[?"([^"]+)"', row[0])[1]: row[0].count(",") if row[0].startswith("`[") else -1
        for row in TABLES[name]
        if row[0].startswith("`")
    }
    for name in ("FactorKind", "StepKind", "BackwardSource")
)


def expected(place: str, value: Any, what: str) -> Refused:
    return Refused(f"{place} is {str(value)[:80]}, expected {what}")


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in INT64


def check_integer(value: Any, least: int, most: int, place: str) -> None:
    if not is_integer(value) or not least <= value <= most:
        raise expected(place, value, f"an integer from {least} to {most}")


def check_call(value: Any, words: dict[str, int], place: str) -> None:
    """Checks a list of a word and its operands, which are integers from 0 on."""
    if not isinstance(value, list) or not value or not isinstance(value[0], str) or words.get(value[0], -1) < 0:
        raise expected(place, value, "a list of a name and numbers")
    if len(value) != words[value[0]] + 1:
        raise expected(place, value, f"a list of a name and {words[value[0]]} numbers")
    for operand in value[1:]:
        check_integer(operand, 0, 2**63 - 1, place)


def check_factor(value: Any, place: str) -> None:
    if isinstance(value, list) and value[:1] == ["count"]:
        if not 2 <= len(value) <= 65:
            raise expected(place, value, "a count of 1 to 64 steps")
        for step in value[1:]:
            if isinstance(step, str):
                if STEPS.get(step) != -1:
                    raise expected(place, step, "a step")
            elif isinstance(step, list):
                check_call(step, STEPS, place)
            else:
                check_integer(step, INT64[0], INT64[-1], place)
        return
    check_call(value, FACTORS, place)
    if len(value) == 4 and value[3] == 0:
        raise expected(place, value, "a size above 0")


def check_scalar_or_list(value: Any, place: str) -> None:
    if value is None or isinstance(value, bool | float):
        return
    if isinstance(value, str):
        check_value("text of at most 65536 bytes", value, place)
    elif isinstance(value, list | dict):
        check_value("list of at most 4096: integer", value, place)
    else:
        check_integer(value, INT64[0], INT64[-1], place)


def check_value(form: str, value: Any, place: str) -> None:
    """Checks a value against a cell of the column "value"."""
    if found := re.match(r"list of at most (\S+): (.*)", form):
        if not isinstance(value, list) or len(value) > number(found[1]):
            raise expected(place, value, f"a list of at most {number(found[1])} items")
        for index, item in enumerate(value):
            check_value(found[2], item, f"{place}[{index}]")
    elif found := re.match(r"text of at most (\S+) bytes", form):
        if not isinstance(value, str) or len(value.encode()) > number(found[1]):
            raise expected(place, value, f"a text of at most {number(found[1])} bytes")
    elif form.startswith("one of "):
        words = re.findall(r"`([^`]+)`", form)
        if value not in words:
            raise expected(place, value, "one of " + ", ".join(words))
    elif found := re.fullmatch(r"integer(?:, (\d+) to (\S+))?", form):
        # An integer without limits stands for a count of bytes, or for an entry of a list.
        least, most = (int(found[1]), number(found[2])) if found[1] else (INT64[0], INT64[-1])
        check_integer(value, least, most, place)
    elif found := re.fullmatch(r"power of two, at most (\S+)", form):
        if not is_integer(value) or not 1 <= value <= number(found[1]) or value & (value - 1):
            raise expected(place, value, f"a power of two up to {number(found[1])}")
    elif found := re.fullmatch(r"number above 0, at most (\S+)", form):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= number(found[1]):
            raise expected(place, value, f"a number above 0 and at most {found[1]}")
    elif form == "number":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise expected(place, value, "a number")
    elif form.startswith("pair of integers"):
        check_value("list of at most 2: " + form.replace("pair of integers", "integer"), value, place)
        if len(value) != 2:
            raise expected(place, value, "a list of 2 numbers")
    elif form == "true or false":
        if not isinstance(value, bool):
            raise expected(place, value, "true or false")
    elif form == "value":
        check_scalar_or_list(value, place)
    elif form == "factor":
        check_factor(value, place)
    elif form == "pair":
        check_call(value, SOURCES, place)
    else:
        check_record(re.fullmatch(r"`(\w+)`", form)[1], value, place)


def check_record(name: str, value: Any, place: str = "") -> None:
    """Checks an object against the table of its record. Keys that the table lacks are ignored."""
    if not isinstance(value, dict):
        raise expected(place or "the manifest", value, "an object")
    for key, (absent, form) in RECORDS[name].items():
        if value.get(key) is None:
            if absent == "needed":
                raise Refused(f"{place or 'the manifest'} has no `{key}`")
            continue
        check_value(form, value[key], f"{place}.{key}" if place else key)


def default_of(record: str, key: str) -> Any:
    """Returns the value of an absent key."""
    absent, form = RECORDS[record][key]
    if absent == "empty":
        return [] if form.startswith("list") else ""
    return {"false": False, "none": None, "null": None}.get(absent.strip("`"), absent.strip("`"))


def get(record: str, value: dict[str, Any], key: str) -> Any:
    """Returns the value of a key of a checked record, or that of an absent one."""
    if value.get(key) is not None:
        return value[key]
    default = default_of(record, key)
    return int(default) if isinstance(default, str) and re.fullmatch(r"-?\d+", default) else default


def unknown_requirement(manifest: dict[str, Any]) -> str | None:
    """Returns a field of `requires` that the page's tables do not have."""
    wanted = manifest.get("requires")
    if wanted is not None:
        check_value(RECORDS["manifest"]["requires"][1], wanted, "requires")
    for name in wanted or []:
        record, _, key = name.partition(".")
        if key not in RECORDS.get(record, {}):
            return name
    return None
