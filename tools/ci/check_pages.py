"""Checks the prose of every page: line length, sentence length, and the words that the glossary has retired.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

GLOSSARY = "docs/glossary.md"
COLUMNS = 120
#: Words of one sentence. Code in backticks counts as one word.
WORDS = 25
#: Pages that quote text written elsewhere: the glossary lists the retired words, the index quotes result files.
QUOTING = {GLOSSARY, "bench/results/README.md"}

CODE = re.compile(r"(`+).+?\1")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
CELL_BORDER = re.compile(r"(?<!\\)\|")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"]*\s+(?=[^a-z])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|et al|vs)\.")


def unbreakable(line: str) -> bool:
    """Returns whether no space before the limit allows a break: a long link or long code."""
    masked = ITEM.sub("", line).strip()
    for kind in (CODE, LINK):
        masked = kind.sub(lambda part: "x" * len(part[0]), masked)
    return " " not in masked[:COLUMNS]


def plain(text: str) -> str:
    """Returns the text with its links replaced by their labels, and each piece of code by one word."""
    return ABBREVIATION.sub(r"\1", LINK.sub(r"\1", CODE.sub("CODE", text)))


def prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yields (line number, line, is_row) for each line outside code blocks and comments; `is_row` marks tables."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip()
        if fence:
            fence = "" if stripped.startswith(fence) else fence
        elif stripped.startswith(("```", "~~~")):
            fence = stripped[:3]
        elif not stripped.startswith("<!--"):
            yield number, line, stripped.startswith("|")


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Yields (number of the first line, text) for each paragraph, list item, heading and table cell."""
    start, lines = 0, list[str]()
    for number, line, is_row in prose(text):
        begins = not line.strip() or is_row or line.startswith("#") or bool(ITEM.match(line))
        if lines and (begins or number != start + len(lines)):
            yield start, " ".join(lines)
            lines = []
        if is_row:
            for cell in CELL_BORDER.split(line):
                yield from ((number, part) for part in plain(cell).split(";"))
        elif line.strip():
            start = number if not lines else start
            lines.append(ITEM.sub("", line, count=1) if begins else line.strip())
    if lines:
        yield start, " ".join(lines)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yields (number of the line where its passage begins, sentence)."""
    for number, passage in passages(text):
        for sentence in SENTENCE_END.split(plain(passage)):
            yield number, sentence


def retired_words(glossary: str) -> dict[str, str]:
    """Maps each retired word of the glossary's tables to the field's term. Names in backticks are not words."""
    words = {}
    for _, line, is_row in prose(glossary):
        cells = [cell.strip() for cell in CELL_BORDER.split(line.strip().strip("|"))]
        if is_row and len(cells) == 3 and not set(cells[2]) <= set("-: "):
            for word in CODE.sub("", cells[2]).split(","):
                if word.strip() and word.strip() != "retired":
                    words[word.strip().lower()] = cells[0]
    return words


def wrong_in(place: str, sentence: str, retired: dict[str, str]) -> list[str]:
    """Lists the broken rules of one sentence: too many words, and retired ones."""
    found = []
    if (count := len(re.findall(r"\S*\w\S*", sentence))) > WORDS:
        start = " ".join(sentence.split()[:6])
        found.append(f"{place}: a sentence of {count} words, the limit is {WORDS}: {start} ...")
    words = re.findall(rf"\b({'|'.join(map(re.escape, retired))})\b", sentence, re.I) if retired else []
    return found + [f'{place}: "{word}": write "{retired[word.lower()]}" ({GLOSSARY})' for word in words]


def complaints(name: str, text: str, retired: dict[str, str]) -> list[str]:
    """Lists the broken rules of the page `name`, one per line, each with its place."""
    found = [
        f"{name}:{number}: {len(line)} columns; prose has at most {COLUMNS}"
        for number, line, is_row in prose(text)
        if len(line) > COLUMNS and not is_row and not unbreakable(line)
    ]
    if name in QUOTING:
        return found
    return found + [each for number, one in sentences(text) for each in wrong_in(f"{name}:{number}", one, retired)]


def check_pages(root: Path, names: list[str]) -> list[str]:
    """Lists the broken rules of the pages `names` below `root`."""
    retired = retired_words((root / GLOSSARY).read_text())
    return [each for name in names for each in complaints(name, (root / name).read_text(), retired)]
