"""Checks that scripts for GPUs, which no test of a CPU runs, import names that exist in their neighbours.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "test" / "device", ROOT / "tools" / "bench"]
MODULES = {path.stem: path for folder in FOLDERS for path in folder.glob("*.py")}


def defined(path: Path) -> set[str]:
    """Returns the names that a module gives to something anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(name.asname or name.name).split(".")[0] for name in node.names}
    return found


@pytest.mark.parametrize("script", sorted(MODULES))
def test_imported_names_exist(script: str) -> None:
    for node in ast.walk(ast.parse(MODULES[script].read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            missing = {name.name for name in node.names} - defined(MODULES[node.module])
            assert not missing, f"{node.module} has no {', '.join(sorted(missing))}"
