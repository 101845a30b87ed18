"""The hot instances of the row families, for every chip: no spills, and as many 16-byte accesses as rows, threads and dtype ask for.

Of each family's sources only the kernels named here stay, for one row length. Needs ptxas and no GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KPKG = ROOT / os.environ.get("KPKG_BUILD_DIR", "build") / "bin" / "kpkg"
CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"]
COLS = 4096
BYTES = {"bfloat16": 2, "float32": 4}


@dataclass
class Hot:
    """`loads` and `stores` count rows of the dtype that a block moves."""

    file: str
    kernel: str
    instances: str
    loads: int
    stores: int


HOT = [
    Hot("softmax/softmax.k", "softmax_rows", "LOG=[False]", 1, 1),
    Hot("softmax/softmax.k", "softmax_backward_rows", "LOG=[False]", 2, 1),
    Hot("norm/norm.k", "rms_norm_rows", "AFFINE=[True]", 2, 1),
    Hot("norm/norm.k", "layer_norm_rows", "AFFINE=[True]", 3, 1),
    Hot("residual/residual.k", "residual_norm_rows", "LAYER=[False]", 3, 2),
    Hot("cross_entropy/cross_entropy.k", "loss_rows", "SMOOTH=[False]", 1, 0),
]


def blocks_of(source: str) -> list[str]:
    """The top-level parts of a module, a function with its decorators."""
    parts = re.split(r"\n(?=@kernel|@register|fn |comptime |from |import )", source)
    blocks: list[str] = []
    for part in parts:
        if blocks and blocks[-1].startswith("@") and "\nfn " not in blocks[-1]:
            blocks[-1] += "\n" + part
        else:
            blocks.append(part)
    return blocks


def narrowed(source: str, kernels: dict[str, str]) -> str:
    """A module with these kernels only, with these instances, and what they use."""
    kept: list[str] = []
    imports: list[str] = []
    for block in blocks_of(source):
        name = re.search(r"^fn (\w+)", block, re.M)
        if block.startswith("from "):
            imports.append(block)
        elif block.startswith("@kernel") and name and name[1] in kernels:
            body = re.sub(r"^@specialize\(.*\)\n", "", block, flags=re.M)
            kept.append(body.replace("@kernel\n", f"@kernel\n@specialize(T=[float32, bfloat16], COLS=[{COLS}], {kernels[name[1]]})\n", 1))
        elif not block.startswith(("@", '"""')) and not (name and (" raises" in block or "launch " in block)):
            kept.append(block)
    text = "\n".join(kept)
    for line in imports:
        module, names = re.match(r"from (\S+) import (.*)", line).groups()
        used = [name for name in names.split(", ") if re.search(rf"\b{name.strip()}\b", text)]
        if used:
            text = f"from {module} import {', '.join(used)}\n" + text
    return text + "\n"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("hot")
    for path in (ROOT / "kernels_src").glob("*.k"):
        shutil.copy(path, folder)
    made = []
    for file in dict.fromkeys(hot.file for hot in HOT):
        path = folder / Path(file).name
        path.write_text(narrowed((ROOT / "kernels_src" / file).read_text(), {hot.kernel: hot.instances for hot in HOT if hot.file == file}))
        made.append(path)
    return made


def kpkg(*arguments: object) -> str:
    done = subprocess.run([KPKG, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_hot_instances_do_not_spill(sources: list[Path], tmp_path: Path) -> None:
    found = set()
    for source in sources:
        package = tmp_path / f"{source.stem}.kpkg"
        kpkg("build", source, "-o", package, "--target", ",".join(CHIPS))
        for instance in json.loads(kpkg("info", "--json", package))["instances"]:
            if instance["variant"] == "vector":
                kernel = instance["symbol"].split("__")[0]
                found.add((kernel, instance["target"]))
                assert instance["launch"].get("spills", 0) == 0, instance["symbol"]
                assert instance["launch"]["registers"] > 0
    assert found >= {(hot.kernel, chip) for hot in HOT for chip in CHIPS}


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_hot_instances_access_memory_in_vectors(sources: list[Path], chip: str) -> None:
    for source in sources:
        ptx = kpkg("build", source, "--target", chip, "--emit=ptx")
        entries = dict(re.findall(r"\.entry (\w+)\((.*?)(?=\.entry|\Z)", ptx, re.S))
        for hot in HOT:
            if Path(hot.file).name != source.name:
                continue
            for dtype, size in BYTES.items():
                name, body = next((n, b) for n, b in entries.items() if n.startswith(f"{hot.kernel}__{dtype}_{COLS}") and n.endswith("__vector"))
                threads = int(re.search(r"\.reqntid (\d+)", body)[1])
                vectors = COLS * size // 16 // threads
                assert len(re.findall(r"ld\.global(?:\.nc)?\.v4\.b32", body)) == hot.loads * vectors, name
                assert len(re.findall(r"st\.global\.v4\.b32", body)) == hot.stores * vectors, name
