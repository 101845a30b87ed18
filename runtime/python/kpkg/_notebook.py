"""Implements the cell magic ``%%kpkg package x.kpkg``, which compiles the kernels of a notebook's cell to a package.

    %load_ext kpkg

    %%kpkg package scale.kpkg --target native
    @kernel
    ...

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from typing import Any

from kpkg._compiler import environment_of, find_command

_USAGE = "usage: %%kpkg package FILE.kpkg [options of `kpkg build`]"


def register(shell: Any) -> None:
    """Registers the magic with an IPython shell."""
    shell.register_magic_function(_cell, magic_kind="cell", magic_name="kpkg")


def _cell(line: str, cell: str) -> None:
    """Compiles the cell to a package: ``%%kpkg package FILE.kpkg [options of `kpkg build`]``.

    Prints the compiler's messages. ``kpkg.load("FILE.kpkg")`` loads the package. No package is written if the compiler
    refuses the cell.
    """
    words = shlex.split(line)
    if len(words) < 2 or words[0] not in ("package", "build") or not words[1].endswith(".kpkg"):
        print(_USAGE, file=sys.stderr)
        return
    output, options = words[1], words[2:]
    try:
        command = find_command()
    except FileNotFoundError as error:
        print(f"kpkg: {error}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.basename(output).removesuffix(".kpkg")
        source = os.path.join(folder, f"{name}.k")
        with open(source, "w", encoding="utf-8") as file:
            file.write(cell)
        # The compiler finds modules beside the notebook, as it finds modules beside a file.
        done = subprocess.run(
            [command, "build", source, "-o", output, "-I", os.getcwd(), *options],
            capture_output=True,
            text=True,
            env=environment_of(command),
        )
    text = (done.stdout + done.stderr).replace(source, f"{name} (cell)").rstrip()
    if text:
        print(text, file=sys.stderr if done.returncode else sys.stdout)
    if done.returncode == 0 and not text:
        print(output)
