"""Writes runtime/python/kpkg/shipped_ops.json: PyTorch's implementations of shipped ops, from their packages.

    python tools/shipped_ops.py FOLDER

FOLDER has packages of all families in kernels_src. Calls of `kpkg.ops` without a package use the file.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import kpkg
from kpkg import _fallbacks


def declarations(libraries: Iterable[Any]) -> str:
    """Returns the text of the file: a line for each op that declares a fallback."""
    declared = {op.name: _fallbacks.Declaration.of(op) for library in libraries for op in library if op.rules.fallback}
    lines = [
        f"{json.dumps(name)}: " + json.dumps({"arguments": one.arguments, "defaults": one.defaults, "text": one.text})
        for name, one in sorted(declared.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    from pathlib import Path

    libraries = [kpkg.load(file) for file in sorted(Path(sys.argv[1]).glob("*.kpkg"))]
    _fallbacks.SHIPPED.write_text(declarations(libraries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
