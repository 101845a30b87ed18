"""Runs every example of docs/book: its files are written, its commands and its Python run in the order of the page.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, COMMAND, ROOT

BOOK = ROOT / "docs" / "book"
PAGES = sorted(str(path.relative_to(BOOK)) for path in BOOK.rglob("*.md"))
#: A mark above a block of code says what to do with it: `file: NAME` writes it, `run` and `command` run it.
EXAMPLE = re.compile(r"^<!-- (file: [\w./-]+|run|command) -->\n```\w*\n(.*?)^```$", re.S | re.M)
CPP_FLAGS = ["-std=c++20", f"-I{ROOT}/runtime/include", f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib"]


def examples(page: str) -> list[tuple[str, str]]:
    """Returns (mark, text) of each marked block of a page, in its order."""
    return EXAMPLE.findall((BOOK / page).read_text())


def transcript(text: str) -> list[tuple[str, list[str]]]:
    """Returns each command of a block with the output that the page shows. Commands of such a block begin with `$ `."""
    joined = text.replace("\\\n", "")
    if not joined.startswith("$ "):
        return [(line, []) for line in joined.splitlines()]
    parts = [part.splitlines() for part in re.split(r"^\$ ", joined, flags=re.M)[1:]]
    return [(lines[0], lines[1:]) for lines in parts]


def run_command(command: str, shown: list[str], folder: Path) -> None:
    """Runs one command. Each shown line must be in the output; `...` stands for any text."""
    if command.startswith("c++ "):
        command = " ".join([command, *CPP_FLAGS])
    command = command.replace("kpkg build ", "kpkg build -O0 ")  # no example depends on LLVM's optimisations
    variables = {**os.environ, "KPKG_CACHE_DIR": str(folder / "cache")}
    variables["PATH"] = f"{COMMAND.parent}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables, capture_output=True, text=True, timeout=300
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"{command}\n{output}"
    for line in shown:
        pattern = ".*".join(re.escape(part) for part in line.strip().split("..."))
        assert re.search(pattern, output), f"{command}: no line like\n{line}\nin\n{output}"


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    variables: dict = {"__name__": "book"}
    for mark, text in examples(page):
        if mark.startswith("file: "):
            (tmp_path / mark.removeprefix("file: ")).write_text(text)
        elif mark == "run":
            exec(compile(text, page, "exec"), variables)
        elif shutil.which("c++") or "c++ " not in text:
            for command, shown in transcript(text):
                run_command(command, shown, tmp_path)


@pytest.mark.cuda
@pytest.mark.parametrize("page", PAGES)
def test_page_on_gpu(page, tmp_path, monkeypatch):
    """Builds the sources of a page for this GPU, and runs its Python with tensors there."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    major, minor = torch.cuda.get_device_capability()
    monkeypatch.setenv("KPKG_TARGET", f"native,sm_{major}{minor}{'a' if major in (9, 10) else ''}")
    monkeypatch.setenv("KPKG_FALLBACK", "strict")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    variables: dict = {"__name__": "book"}
    with torch.device("cuda"):
        for mark, text in examples(page):
            if mark.startswith("file: "):
                (tmp_path / mark.removeprefix("file: ")).write_text(text)
            elif mark == "run":
                exec(compile(text, page, "exec"), variables)
            else:
                for command, _ in transcript(text):
                    if command.startswith("kpkg build "):
                        run_command(command, [], tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_kernels_are_files(page):
    """Each block of the language is a file that a command or the Python of the page builds. Marks are understood."""
    text = (BOOK / page).read_text()
    assert text.count("<!--") == len(examples(page)), page
    assert text.count("\n```k\n") == sum(mark.endswith(".k") for mark, _ in examples(page)), page


@pytest.mark.parametrize("page", [page for page in PAGES if page[0].isdigit()])
def test_chapters_end_with_an_exercise(page):
    """A chapter begins with its task. It has one exercise, whose folded solution is tested as the examples are."""
    text = (BOOK / page).read_text()
    task, exercise = text.split("## Exercise\n")
    assert task.splitlines()[2].startswith("**Task:**")
    solution = exercise.split("<details><summary>Solution</summary>")[1].split("</details>")[0]
    assert EXAMPLE.search(solution)
