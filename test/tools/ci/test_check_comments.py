"""The check of comments: each kind of source fails with the place and the rule, and code in comments is exempt.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from pathlib import Path

import pytest
from check_comments import check_comments, complaints
from check_pages import GLOSSARY

RETIRED = {"road": "dispatch path"}
LONG = "Word" + " word" * 25

BAD = {
    "comment.cpp": f"// Computes.\nint a; // A road.\n\n// {LONG[:60]}\n// {LONG[61:]}\n",
    "members.h": "struct S {\n  int a; ///< the road\n  int b; ///< its width\n};\n",
    "kernel.k": f'"""Adds rows."""\n\ndef f():\n    """{LONG}"""\n    var a = "#"  # by road\n',
    "page.td": f'let summary = "takes a road";\nlet description = [{{\n  {LONG}.\n}}];\n',
    "script.py": f'"""Reads."""\n\n\ndef f():\n    """{LONG}."""\n    return "a road"  # a road\n',
    "test.mlir": "// RUN: kpkg-opt %s | FileCheck %s\n// Takes a road.\n// CHECK: a road\n",
}
FOUND = {
    "comment.cpp": ['comment.cpp:2: "road"', "comment.cpp:4: a sentence of 26 words"],
    "members.h": ['members.h:2: "road"'],
    "kernel.k": ["kernel.k:4: a sentence of 26 words", 'kernel.k:5: "road"'],
    "page.td": ['page.td:1: "road"', "page.td:3: a sentence of 26 words"],
    "script.py": ["script.py:5: a sentence of 26 words", 'script.py:6: "road"'],
    "test.mlir": ['test.mlir:2: "road"'],
}

GOOD = """// Splits a loop. The pass calls it a `road`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: a road and a road and a road and a road and a road and a road and a road and a road and a road
//         and a road
// After:  nothing
//
// On entry: a kernel.
//   road(%a, %b)
// ```
// a road
// ```
const char *text = "// a road";
"""


@pytest.mark.parametrize("name", BAD)
def test_bad_comments_are_found(name: str) -> None:
    found = complaints(name, BAD[name], RETIRED)
    assert len(found) == len(FOUND[name]), found
    for complaint, expected in zip(sorted(found), FOUND[name]):
        assert complaint.startswith(expected)


def test_code_in_comments_is_exempt() -> None:
    assert complaints("good.cpp", GOOD, RETIRED) == []


def test_the_glossary_retires_words(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / GLOSSARY).write_text(
        "| term | meaning | retired |\n|---|---|---|\n| dispatch path | a kernel | road |\n"
    )
    (tmp_path / "a.h").write_text("// A road.\n")
    assert check_comments(tmp_path, ["a.h"]) == [f'a.h:1: "road": write "dispatch path" ({GLOSSARY})']
