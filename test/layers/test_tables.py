"""Checks that dtypes and chips have one table each, and that a row more needs no other list.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from table_pages import CHIPS, DTYPES, chips, dtypes, rows

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("clang++-22") or shutil.which("c++")
SOURCES = [
    path
    for folder in ("compiler", "dialect", "runtime", "tools")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".h", ".hpp", ".cpp", ".c", ".td", ".def", ".py", ".g4"}
]
#: The one switch that gives each dtype its type in MLIR, which a new dtype needs beside its row.
CODE_GENERATION = "compiler/irgen/GenerateKernels.cpp"
#: A dtype below 8 bits, which PyTorch's stable ABI does not have.
INT2 = "KPKG_DTYPE_ROW(INT2, Int2, int2, {code}, 2, Signed, 0, 0, 0, 0, 0, Undefined, 0)\n"
ADDED = """
#include "compiler/comptime/DType.h"
#include "runtime/plan/DType.h"
#include <kpkg/kpkg.h>
#include <kpkg/tensor.hpp>
using namespace kpkg;
static_assert(KPKG_INT2 == int(DType::Int2) && KPKG_DTYPE_COUNT == KPKG_INT2 + 1 && dtypeCount == KPKG_DTYPE_COUNT);
static_assert(dtypeFromName("int2") == DType::Int2 && dtypeBits(DType::Int2) == 2 && !dtypeIsFloat(DType::Int2));
static_assert(dtypeBytes(DType::Int2) == 1 && dtypeBytes(DType::Int2, 4) == 1 && dtypeBytes(DType::Int2, 5) == 2);
static_assert(dtypeBytes(DType::Int2, 0) == 0 && dtypeBytes(DType::Int2, -4) == -1);
static_assert(dtypeBytes(DType::Float64, 3) == 24 && dtypeBytes(DType::None, 3) == 0);
static_assert(dtypeOf<int8_t>() == DType::Int8 && dtypeOf<double>() == DType::Float64);
static_assert(compiler::DType::Int2 != compiler::DType::Int8);
"""
#: Files that include the table, and need neither LLVM nor PyTorch.
READERS = [
    "compiler/comptime/DType.cpp",
    "runtime/package/Dlpack.cpp",
    "runtime/package/PackScalar.cpp",
    "runtime/torch/DTypeCodes.cpp",
    "tools/kpkg/Elements.cpp",
]


def test_no_other_file_lists_all_dtypes():
    most = 12  # of the names; lists for a purpose are shorter
    names = {spelling for d in dtypes() for spelling in (d.name, d.type, f"KPKG_{d.constant}")}
    word = re.compile(r"\b(?:" + "|".join(names) + r")\b")
    lines_together = 40
    for path in SOURCES:
        if path in (ROOT / DTYPES, ROOT / CODE_GENERATION):
            continue
        lines = path.read_text(errors="replace").splitlines()
        found = [
            (number, name.casefold().removeprefix("kpkg_"))
            for number, line in enumerate(lines)
            for name in word.findall(line)
        ]
        for first, _ in found:
            near = {name for number, name in found if first <= number < first + lines_together}
            assert len(near) < most, f"{path.relative_to(ROOT)}:{first + 1} lists {len(near)} dtypes: use {DTYPES}"


def switches(text: str) -> list[str]:
    """Returns the text of each switch statement, with those inside."""
    found = []
    for start in re.finditer(r"\bswitch \(", text):
        at = text.index("{", start.end())
        depth, end = 1, at + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[at:end])
    return found


def test_switches_over_dtypes_name_all_cases():
    """So that -Wswitch shows what a new dtype lacks. Integers of the C header have no such warning."""
    constants = "|".join(f"KPKG_{d.constant}" for d in dtypes())
    of_dtypes, of_integers = re.compile(r"case (?:\w+::)*DType::"), re.compile(rf"case (?:{constants}):")
    for path in SOURCES:
        if path.suffix != ".cpp" or not of_dtypes.search(text := path.read_text()) and not of_integers.search(text):
            continue
        for body in switches(text):
            name = path.relative_to(ROOT)
            assert not of_dtypes.search(body) or "default:" not in body, f"{name}: a switch with a default"
            assert not of_integers.search(body), f"{name}: a switch over integers: use `DType` or its record"


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_one_row_adds_a_dtype(tmp_path):
    """Compiles the readers of the table with a row more."""
    shutil.copytree(ROOT / "runtime/include", tmp_path / "runtime/include")
    copied = tmp_path / DTYPES
    last = "#undef KPKG_DTYPE_ROW"
    copied.write_text(copied.read_text().replace(last, INT2.format(code=len(dtypes()) + 1) + last))
    (tmp_path / "Added.cpp").write_text(ADDED)
    folders = [tmp_path, tmp_path / "runtime/include", ROOT]
    for file in [tmp_path / "Added.cpp", *(ROOT / reader for reader in READERS)]:
        command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", "-DFMT_HEADER_ONLY=1"]
        done = subprocess.run(
            [*command, *(f"-I{folder}" for folder in folders), str(file)], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{file}\n{done.stderr}"


def test_dtypes_have_consecutive_codes():
    assert [d.code for d in dtypes()] == list(range(1, len(dtypes()) + 1))


def test_chips_have_all_fields_in_order():
    fields = [name for _, _, name, _ in rows(CHIPS, "KPKG_CHIP_FIELD")]
    for chip in chips():
        assert [name for name in chip if name != "heuristics"] == fields, chip["name"]


def test_heuristics_have_results():
    for _, name, _, origin, result, _ in rows(CHIPS, "KPKG_HEURISTIC"):
        assert origin in {"Measured", "Estimated"}, name
        assert (ROOT / "bench/results" / result).is_file(), name


def test_ops_divide_their_work_for_the_reference_chip():
    processors = next(chip["processors"] for chip in chips() if chip["name"] == "sm_90a")
    found = {
        path.relative_to(ROOT).as_posix(): match[1]
        for path in (ROOT / "kernels_src").rglob("*.k")
        for match in re.finditer(r"^comptime PROCESSORS = (\d+)", path.read_text(), re.M)
    }
    assert found == {"kernels_src/reference_chip.k": processors}
