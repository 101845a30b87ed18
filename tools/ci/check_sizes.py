"""Checks the lengths of files and functions. Those that were longer before are in sizes.json, and may only shrink.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_FILE_LINES, MOST_FUNCTION_LINES = 450, 80
SOURCES = ("*.cpp", "*.h", "*.hpp", "*.c", "*.td", "*.py", "*.k")
#: Relative to the tree: {"files": {path: lines}, "functions": {"path: name": lines}}.
ALLOWED = Path("tools/ci/sizes.json")
NO_FUNCTION = re.compile(r"(?:if|for|while|switch|else|do|namespace|class|struct|enum|union|extern|try|catch)\b")
#: A lambda, or a value in braces.
NO_HEAD = re.compile(r"\[[^\[\]]*\] ?[({]| = ?\{|^[^(]* = ")
RAW = re.compile(r'R"(\w*)\((.*?)\)\1"', re.S)
LITERALS = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//.*')
NAME = re.compile(r"([~\w:]+(?: ?operator\S+)?)\s*\(")


def cpp_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yields name and lines of each function with a body, in text that clang-format has formatted.

    Its head begins at most one level deep, and is the text between the previous end and `{`. Lambdas belong to the
    enclosing function.
    """
    text = RAW.sub(lambda raw: "\n" * raw[0].count("\n"), text)
    lines = [LITERALS.sub("", line) for line in text.splitlines()]
    open_blocks: list[int] = []
    for number, line in enumerate(lines):
        for sign in re.findall(r"[{}]", line):
            if sign == "{":
                open_blocks.append(number)
                continue
            if not open_blocks:
                return
            first = start = open_blocks.pop()
            while first > 0 and re.search(r"[^;{}:>]\s*$", lines[first - 1]) and not lines[first - 1].startswith("#"):
                first -= 1
            head = " ".join(each.strip() for each in lines[first : start + 1])
            name = NAME.search(head)
            indent = len(lines[first]) - len(lines[first].lstrip())
            if name and indent <= 2 and not NO_FUNCTION.match(head) and not NO_HEAD.search(head):
                yield name[1], number - first + 1


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yields name and lines of each function, without its docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documentation = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - documentation


def long_ones(root: Path, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """Returns files and functions above the limits, in the format of sizes.json."""
    found: dict[str, dict[str, int]] = {"files": {}, "functions": {}}
    for name in names:
        text = (root / name).read_text(errors="replace")
        if (lines := len(text.splitlines())) > MOST_FILE_LINES:
            found["files"][name] = lines
        suffix = Path(name).suffix
        functions = python_functions if suffix == ".py" else cpp_functions if suffix in (".cpp", ".h", ".hpp") else None
        for function, lines in functions(text) if functions else ():
            key = f"{name}: {function}"
            if lines > MOST_FUNCTION_LINES:
                found["functions"][key] = max(lines, found["functions"].get(key, 0))
    return found


def check_sizes(root: Path, names: Iterable[str]) -> list[str]:
    """Lists files and functions that became too long, and entries of sizes.json that are no longer needed."""
    allowed, complaints = json.loads((root / ALLOWED).read_text()), []
    found = long_ones(root, names)
    for kind, most in (("files", MOST_FILE_LINES), ("functions", MOST_FUNCTION_LINES)):
        for name, lines in found[kind].items():
            limit = allowed[kind].get(name, most)
            if lines > limit:
                complaints.append(f"{name}: {lines} lines, the limit is {limit}; split it")
        for name in allowed[kind].keys() - found[kind].keys():
            complaints.append(f"{ALLOWED}: {name} has at most {most} lines now; take it from the list")
    return complaints
