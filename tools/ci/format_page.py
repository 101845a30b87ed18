"""Generates the tables of docs/package-format.md from the manifest's schema, runtime/manifest/Manifest.def.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`, where NAME is a record's name, an enum, or a table of
plan_tables.py.
Called with `--check` it writes nothing, and says whether the page differs from its source.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import plan_tables
from plan_tables import spelled

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "runtime/manifest/Manifest.def"
LIMITS = "runtime/manifest/Limits.h"
PAGE = "docs/package-format.md"
TABLE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.S)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass
class Field:
    """A field of a record, with the columns of its macro as text."""

    kind: str
    initial: str
    key: str
    presence: str
    limit: str
    meaning: str


@dataclass
class Schema:
    """The records by name with their fields, the enums with their words, and the records' structs."""

    records: dict[str, list[Field]]
    words: dict[str, list[tuple[str, str, str]]]
    structs: dict[str, str]


def arguments_of(text: str, start: int) -> tuple[list[str], int]:
    """Splits a macro's arguments at commas outside brackets and strings, and returns the end of the call."""
    arguments, depth, begin, position = list[str](), 1, start, start
    while depth:
        char = text[position]
        if char == '"' and (string := STRING.match(text, position)):
            position = string.end()
            continue
        depth += (char in "({") - (char in ")}")
        if (char == "," and depth == 1) or depth == 0:
            arguments.append(" ".join(text[begin:position].split()))
            begin = position + 1
        position += 1
    return arguments, position


def unquoted(text: str) -> str:
    """Joins the string literals of an argument."""
    return "".join(STRING.findall(text))


def read_schema() -> Schema:
    """Parses the macros of the schema."""
    text = (ROOT / SCHEMA).read_text()
    text = text[text.rindex("#endif") :]
    schema, name = Schema({}, {}, {}), ""
    for macro in re.finditer(r"^KPKG_(\w+)\(", text, re.M):
        arguments, _ = arguments_of(text, macro.end())
        match macro[1]:
            case "WORDS":
                schema.words[arguments[0]] = []
            case "WORD":
                enum, _, spelling, operands, meaning = arguments
                schema.words[enum].append((unquoted(spelling), unquoted(operands), unquoted(meaning)))
            case "RECORD":
                name = unquoted(arguments[1])
                schema.records[name] = []
                schema.structs[arguments[0]] = name
            case "FIELD":
                _, kind, _, initial, key, presence, limit, _, meaning = arguments
                field = Field(kind, initial, unquoted(key), presence, limit, unquoted(meaning))
                schema.records[name].append(field)
    return schema


def number(text: str) -> int:
    """Evaluates a number of the schema: digits, shifts, or a constant of Limits.h."""
    constants = dict(re.findall(r"inline constexpr uint64_t (\w+) = ([^;]+);", (ROOT / LIMITS).read_text()))
    text = constants.get(text, text).replace("'", "")
    base, *shift = re.sub(r"u?int64_t\((\d+)\)", r"\1", text).split(" << ")
    return int(base) << int(shift[0]) if shift else int(base)


def limits_of(limit: str) -> dict[str, list[int]]:
    """Returns the calls of a limit with their numbers: `count(3).each(0, 255)` has "count" and "each"."""
    return {
        name: [number(part.strip()) for part in numbers.split(",")]
        for name, numbers in re.findall(r"(\w+)\(((?:[^()]|\(\d+\))*)\)", limit)
    }


def form(schema: Schema, field: Field, kind: str) -> str:
    """Describes the values of a field."""
    limits = limits_of(field.limit)
    if inner := re.fullmatch(r"std::vector<(.*)>", kind):
        return f"list of at most {spelled(limits['count'][0])}: {form(schema, field, inner[1])}"
    if inner := re.fullmatch(r"std::optional<(.*)>", kind):
        return form(schema, field, inner[1])
    if kind in schema.words:
        return "one of " + ", ".join(f"`{word}`" for word, _, _ in schema.words[kind] if word)
    if kind in schema.structs:
        return f"`{schema.structs[kind]}`"
    named = {"bool": "true or false", "Value": "value", "CostFactor": "factor", "BackwardArgument": "pair"}
    if kind in named:
        return named[kind]
    if kind == "std::string":
        return f"text of at most {spelled(limits['bytes'][0])} bytes"
    if "powerOfTwo" in limits:
        return f"power of two, at most {spelled(limits['powerOfTwo'][0])}"
    if "aboveZero" in limits:
        return f"number above 0, at most {limits['aboveZero'][0]}"
    word = {"double": "number", "Tap": "pair of integers"}.get(kind, "integer")
    bounds = limits.get("each") or limits.get("between") or [0, *limits.get("upTo", [])]
    return f"{word}, {bounds[0]} to {spelled(bounds[1])}" if len(bounds) == 2 else word


def default(field: Field) -> str:
    """Describes the value of an absent field."""
    if field.presence.startswith("needed"):
        return "needed"
    if field.presence.startswith("nullable"):
        return "null"
    if field.initial == "{}" or (field.initial == "-1" and field.presence.startswith("optional")):
        return "empty" if "vector" in field.kind or field.kind == "std::string" else "none"
    return f"`{field.initial}`"


def key(field: Field) -> str:
    """Returns the key, with the version that added it."""
    since = re.search(r"\.since\((\d+)\)", field.presence)
    return f"`{field.key}`" + (f" (1.{since[1]})" if since else "")


def table(schema: Schema, name: str) -> str:
    """Returns the table of a record, of an enum's words, or of plans."""
    if name in plan_tables.TABLES:
        return plan_tables.TABLES[name](ROOT)
    if name in schema.words:
        words = schema.words[name]
        # Words with operands stand in lists; where some word is no word but a number, only these do.
        is_list = any(operands for _, operands, _ in words) and all(word for word, _, _ in words)
        rows = list[tuple[str, str]]()
        for word, operands, meaning in words:
            parts = [f'"{word}"', *([operands] if operands else [])]
            in_list = is_list or operands
            spelling = f"`[{', '.join(parts)}]`" if in_list else f"`{parts[0]}`" if word else "an integer"
            rows.append((spelling, meaning.removeprefix("an integer: ")))
        return "\n".join(["| word | meaning |", "|---|---|", *(f"| {word} | {meaning} |" for word, meaning in rows)])
    lines = [f"| {key(f)} | {default(f)} | {form(schema, f, f.kind)} | {f.meaning} |" for f in schema.records[name]]
    return "\n".join(["| key | if absent | value | meaning |", "|---|---|---|---|", *lines])


def page() -> str:
    """Returns the page with its tables made anew."""
    schema = read_schema()
    text = (ROOT / PAGE).read_text()
    return TABLE.sub(lambda found: f"<!-- table: {found[1]} -->\n{table(schema, found[1])}\n<!-- end -->", text)


def format_page_differs() -> list[str]:
    """Lists complaints: tables that differ from the schema, and records without a table."""
    text = (ROOT / PAGE).read_text()
    tables = {found[1] for found in TABLE.finditer(text)}
    wanted = [*read_schema().records, *plan_tables.TABLES]
    missing = [f"{PAGE}: has no table of `{name}`" for name in wanted if name not in tables]
    return missing + ([] if page() == text else [f"{PAGE}: differs from its sources; run `tools/dev pages`"])


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        found = format_page_differs()
        print(*found, sep="\n")
        return 1 if found else 0
    (ROOT / PAGE).write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
