"""Runs clang-tidy over the C++ files that changed, for `tools/dev lint [COMMIT]` and the `tidy` suite.

Changes are relative to the named commit. Without one, on a branch, they are relative to its start on the main branch.
On the main branch they are those of the last commit. For a merge these are the files that differ from both parents: the
others were checked on their branches. Uncommitted changes count too.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLANG_TIDY = "clang-tidy-22"
SOURCES = ("*.cpp", "*.h", "*.hpp")
MAIN = "origin/main"


def git(root: Path, *arguments: str) -> str | None:
    """Returns git's output, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def changed(root: Path, base: str | None) -> tuple[str, set[str]]:
    """Returns the base in words, and the files that changed. ValueError: there is nothing to compare with."""
    pending = set((git(root, "diff", "--name-only", "HEAD", "--", *SOURCES) or "").splitlines())
    pending |= set((git(root, "ls-files", "--others", "--exclude-standard", "--", *SOURCES) or "").splitlines())
    head = git(root, "rev-parse", "HEAD")
    if base is None:
        fork = git(root, "merge-base", "HEAD", MAIN)
        base = fork if fork != head else None
    if base is not None:
        listed = git(root, "diff", "--name-only", base, "HEAD", "--", *SOURCES)
        if listed is None:
            raise ValueError(f"`{base}` is no commit of this clone")
        return f"since {base[:12]}", pending | set(listed.splitlines())
    listed = git(root, "diff-tree", "--no-commit-id", "--name-only", "-r", "-c", "HEAD", "--", *SOURCES)
    if git(root, "rev-parse", "--verify", "-q", "HEAD~1") is None:
        raise ValueError("this clone holds one commit: nothing to compare with; fetch two (`git fetch --depth 2`)")
    return "by the last commit", pending | set((listed or "").splitlines())


def translation_units(root: Path, files: set[str], compiled: set[str]) -> list[str]:
    """Returns the inputs of clang-tidy: changed sources, and for a header the source of its name, if the build compiles
    it."""
    units = {str(Path(name).with_suffix(".cpp")) for name in files}
    return sorted(name for name in units if (root / name).is_file() and name in compiled)


def compiled_sources(build: Path) -> set[str]:
    """Returns the sources that the build compiles, relative to the tree."""
    commands = json.loads((build / "compile_commands.json").read_text())
    paths = (Path(command["file"]) for command in commands)
    return {str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)}


def tidy(build: Path, name: str) -> list[str]:
    """Returns clang-tidy's output for the file."""
    done = subprocess.run([CLANG_TIDY, "-p", build, "--quiet", name], cwd=ROOT, capture_output=True, text=True)
    return (done.stdout.splitlines() or done.stderr.splitlines()) if done.returncode else []


def main() -> int:
    build = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
    try:
        since, files = changed(ROOT, sys.argv[1] if len(sys.argv) > 1 else None)
    except ValueError as error:
        print(f"{error}\n0 passed, 1 failed")
        return 1
    units = translation_units(ROOT, files, compiled_sources(build))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda name: tidy(build, name), units))
    for lines in said:
        print("\n".join(lines), end="\n" if lines else "")
    failed = sum(bool(lines) for lines in said)
    # The list of changes is a test of its own, which a commit without C++ passes.
    print(f"{len(files)} C++ files changed {since}; clang-tidy ran on {len(units)} sources")
    print(f"{len(units) - failed + 1} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
