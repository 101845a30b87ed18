"""Checks every tracked source and page: format, lint, types, licence lines, prose, lengths, and results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_comments import COMMENTED, check_comments
from check_pages import check_pages
from check_sizes import SOURCES, check_sizes
from compiler_pages import FOLDER, differing
from format_page import format_page_differs
from textmate import grammar_differs

ROOT = Path(__file__).resolve().parents[2]
LICENCE = re.compile(
    r"^(//|///|#|[ ]\*|/\*)?[ ]?SPDX-License-Identifier: Apache-2\.0 WITH LLVM-exception([ ]\*/)?$", re.M
)
CLANG_FORMAT = "clang-format-22"


def tracked(*patterns: str) -> list[str]:
    """Lists files under version control that exist and match one of `patterns`."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def formatted(name: str) -> str | None:
    """Returns a complaint if clang-format would change the C++ file, or None."""
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", name], cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{name}: not formatted; run `tools/dev fmt`"


def licensed(name: str) -> str | None:
    """Returns a complaint if scanners would not find the licence of the file, or None."""
    text = (ROOT / name).read_text(errors="replace")
    return None if LICENCE.search(text) else f"{name}: no licence line of its own"


def ruff(*arguments: str) -> list[str]:
    """Lists ruff's complaints about the whole tree, one per line."""
    done = subprocess.run([sys.executable, "-m", "ruff", *arguments, "."], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines()[:-1] or [done.stderr.strip()] if done.returncode else []


def mypy() -> list[str]:
    """Lists mypy's complaints about the packages and tools that pyproject.toml names, one per line."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def main() -> int:
    cpp = tracked("*.cpp", "*.h", "*.hpp", "*.c")
    python = tracked("*.py")
    pages = tracked("*.md")
    with ThreadPoolExecutor() as pool:
        complaints = [c for c in pool.map(formatted, cpp) if c]
    complaints += [c for c in map(licensed, [*cpp, *python]) if c]
    complaints += ruff("format", "--check") + ruff("check", "--output-format", "concise")
    complaints += mypy()
    # Prose of the generated pages is that of their sources.
    complaints += check_pages(ROOT, [page for page in pages if not page.startswith(f"{FOLDER}/")])
    # Golden files hold the output of the compiler.
    commented = [name for name in tracked(*COMMENTED) if "/golden/" not in name]
    complaints += check_comments(ROOT, commented)
    complaints += differing() + format_page_differs() + grammar_differs()
    sized = tracked(*SOURCES)
    complaints += check_sizes(ROOT, sized)
    index = subprocess.run(
        [sys.executable, "tools/bench/index.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    complaints += index.stdout.splitlines()
    for complaint in complaints:
        print(complaint)
    checked = 2 * len(cpp) + 4 * len(python) + len(pages) + len(sized) + len(commented) + 1
    print(f"{checked - len(complaints)} passed, {len(complaints)} failed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
