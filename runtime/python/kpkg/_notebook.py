"""Implements the cell magic ``%%kpkg`` of ``%load_ext kpkg``, which compiles the kernels of a notebook's cell.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from kpkg._compiler import get_compiler, replacing

_USAGE = "usage: %%kpkg [package FILE.kpkg] [options of `kpkg build`]"


def register(shell: Any) -> None:
    """Registers the magic with an IPython shell."""

    def cell(line: str, text: str) -> None:
        """Compiles the cell: ``%%kpkg [package FILE.kpkg] [options of `kpkg build`]``.

        Defines the cell's ops by their names in the notebook, and prints their schemas. With a file, it writes the
        package there instead. Modules are imported from the current folder, too. Raises CompileError with the
        compiler's messages if it refuses the cell.
        """
        words = shlex.split(line)
        file = words[1] if len(words) > 1 and words[0] in ("package", "build") else ""
        options = words[2:] if file else words
        if (file and not file.endswith(".kpkg")) or (options and not options[0].startswith("-")):
            raise ValueError(_USAGE)
        library = get_compiler().compile_from_source(text, "cell", options=["-I", os.getcwd(), *options])
        if file:
            with replacing(Path(file)) as temporary:
                shutil.copy(library.path, temporary)
        else:
            shell.push({op.__name__: op for op in library})
            print(*(op.schema for op in library), sep="\n")

    shell.register_magic_function(cell, magic_kind="cell", magic_name="kpkg")
