"""Checks the prose of comments and docstrings: sentence length, and the words that the glossary has retired.

Code inside a comment is exempt: text in backticks, fenced blocks, and lines indented by two spaces or more. So are
the examples `Before:` and `After:` of a pass up to the next empty line.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from check_pages import GLOSSARY, retired_words, sentences, wrong_in

#: Git patterns of the files whose comments are checked.
COMMENTED = ("*.cpp", "*.h", "*.hpp", "*.c", "*.td", "*.def", "*.g4", "*.mlir", "*.py", "*.k")
#: Directives of tools, which are not prose.
DIRECTIVE = re.compile(
    r"SPDX-License-Identifier|^\s*(RUN|REQUIRES|XFAIL|UNSUPPORTED|NOLINT\w*|clang-format|type:|noqa|fmt:|pragma|ruff:)"
    r"|^\s*[A-Z0-9_]+(-(NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(\{[A-Z]+\})?:(\s|$)"
    r"|expected-(error|warning|note|remark)|^\s*-----"
)
EXAMPLE = re.compile(r"^\s*(Before|After|Example)\b[^.]*:")
SLASHES = re.compile(r'^(?P<code>(?:[^"\'/]|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/(?!/))*)//[/!]?<?(?P<text>.*)$')
HASHES = re.compile(r'^(?P<code>(?:[^"\'#]|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')*)#(?P<text>.*)$')

Segment = tuple[int, str]
"""The number of its first line, and its lines."""


def lines_of_comments(text: str, pattern: re.Pattern[str]) -> Iterator[Segment]:
    """Joins adjacent comments on separate lines. A comment after code stands alone."""
    start, block = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = pattern.match(line)
        alone = found is not None and not found["code"].strip()
        if block and not alone:
            yield start, "\n".join(block)
            block = []
        if found and alone:
            start = start if block else number
            block.append(found["text"])
        elif found:
            yield number, found["text"]


def docstrings_of_kernels(text: str) -> Iterator[Segment]:
    """Yields the docstrings of a `.k` source: strings in three quotes that begin a line."""
    for found in re.finditer(r'^[ \t]*"""(.*?)"""', text, re.M | re.S):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def texts_of_tables(text: str) -> Iterator[Segment]:
    """Yields summaries and descriptions of a TableGen source."""
    for found in re.finditer(r'let (?:summary|description) = (?:"((?:\\.|[^"\\])*)"|\[\{(.*?)\}\])', text, re.S):
        yield text.count("\n", 0, found.start()) + 1, found[1] or found[2] or ""


def texts_of_python(text: str) -> Iterator[Segment]:
    """Yields comments and docstrings of a Python source."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(node):
                yield first.lineno, str(first.value.value)
    start, last, block = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, alone = token.start[0], not token.line[: token.start[1]].strip()
        if block and (line != last + 1 or not alone):
            yield start, "\n".join(block)
            block = []
        if alone:
            start = start if block else line
            last = line
            block.append(token.string.lstrip("#:"))
        else:
            yield line, token.string.lstrip("#:")
    if block:
        yield start, "\n".join(block)


def segments(name: str, text: str) -> Iterator[Segment]:
    """Yields the prose of a source's comments."""
    match Path(name).suffix:
        case ".py":
            yield from texts_of_python(text)
        case ".k":
            yield from docstrings_of_kernels(text)
            yield from lines_of_comments(
                re.sub(r'""".*?"""', lambda s: "\n" * s[0].count("\n"), text, flags=re.S), HASHES
            )
        case ".td":
            yield from texts_of_tables(text)
            yield from lines_of_comments(text, SLASHES)
        case _:
            yield from lines_of_comments(text, SLASHES)


def without_code(segment: str) -> str:
    """Returns the segment without the indentation of its prose, and with directives and indented code left empty."""
    lines = segment.split("\n")
    filled = [line for line in lines[1:] if line.strip()] or lines
    margin = min(len(line) - len(line.lstrip()) for line in filled)
    kept, is_example = [], False
    for i, line in enumerate(lines):
        line = line.strip() if i == 0 and len(lines) > 1 and not lines[0][:1].isspace() else line[margin:]
        is_example = bool(EXAMPLE.match(line)) or (is_example and bool(line.strip()))
        is_item = re.match(r"\s*(?:[-*+]|\d+\.)\s+\S", line)
        is_code = is_example or DIRECTIVE.search(line) or (line.startswith("  ") and not is_item and i > 0)
        kept.append("" if is_code else line)
    return "\n".join(kept)


def complaints(name: str, text: str, retired: dict[str, str]) -> list[str]:
    """Lists the broken rules of comments in the source `name`, one per line, each with its place."""
    return [
        each
        for first, segment in segments(name, text)
        for line, sentence in sentences(without_code(segment))
        for each in wrong_in(f"{name}:{first + line - 1}", sentence, retired)
    ]


def check_comments(root: Path, names: list[str]) -> list[str]:
    """Lists the broken rules of comments in the sources `names` below `root`."""
    retired = retired_words((root / GLOSSARY).read_text())
    return [each for name in names for each in complaints(name, (root / name).read_text(errors="replace"), retired)]
