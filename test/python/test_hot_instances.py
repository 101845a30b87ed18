"""Checks that hot instances do not spill registers.

Memory-bound kernels must not spill on any chip; attention kernels must not spill where warpgroups multiply. The former
must make as many 16-byte accesses as tiles, threads and dtype require.

The test compiles only the kernels named here from each family's sources, for few sizes. It needs ptxas and no GPU.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KPKG = ROOT / os.environ.get("KPKG_BUILD_DIR", "build") / "bin" / "kpkg"
CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"]
BYTES = {"bfloat16": 2, "float32": 4}
ROWS_OF_4096 = "T=[float32, bfloat16], COLS=[4096]"


@dataclass
class Hot:
    """A block loads `loads` and stores `stores` tiles of `elements` elements of the dtype.

    A pair of numbers is for float32 and for bfloat16.
    """

    file: str
    kernel: str
    instances: str
    loads: int
    stores: int
    elements: tuple[int, int] = (4096, 4096)

    def vectors(self, dtype: str, threads: int) -> int:
        """Returns the 16-byte accesses that a thread makes for one tile."""
        return self.elements[dtype == "bfloat16"] * BYTES[dtype] // 16 // threads


HOT = [
    Hot("softmax/softmax.k", "softmax_rows", f"{ROWS_OF_4096}, LOG=[False]", 1, 1),
    Hot("softmax/softmax.k", "softmax_backward_rows", f"{ROWS_OF_4096}, LOG=[False]", 2, 1),
    Hot("norm/norm.k", "rms_norm_rows", f"{ROWS_OF_4096}, AFFINE=[True]", 2, 1),
    Hot("norm/norm.k", "layer_norm_rows", f"{ROWS_OF_4096}, AFFINE=[True]", 3, 1),
    Hot("residual/residual.k", "residual_norm_rows", f"{ROWS_OF_4096}, LAYER=[False]", 3, 2),
    Hot("cross_entropy/cross_entropy.k", "loss_rows", f"{ROWS_OF_4096}, SMOOTH=[False]", 1, 0),
    Hot("channel_norm/group_norm.k", "group_rows", "T=[float32, bfloat16], COLS=[8192]", 1, 1, (8192, 8192)),
    Hot("elementwise/elementwise.k", "map_dense", "T=[float32, bfloat16], F=[UNARY[0]]", 1, 1),
    Hot("elementwise/elementwise.k", "map_two_dense", "T=[float32, bfloat16], F=[BINARY[0]]", 2, 1),
    Hot("reduction/reduction.k", "reduce_rows", 'T=[float32, bfloat16], KIND=["sum"], COLS=[1024]', 1, 0, (2048, 4096)),
    Hot("reduction/argmax.k", "arg_rows", ROWS_OF_4096, 1, 0, (4096, 8192)),
    # A loop that prefetches: it loads before the loop, and in the loop one tile more than it uses.
    Hot("reduction/reduction.k", "split_rows", 'T=[float32, bfloat16], KIND=["sum"]', 3, 0, (4096, 8192)),
    Hot("scan/scan.k", "scan_rows", 'T=[float32, bfloat16], KIND=["sum"], COLS=[LENGTHS[-1]]', 2, 1, (512, 512)),
]

# Warpgroup-level matrix products that use nearly all registers. Fields are file, kernel, instances, their symbols, the
# arguments that need aligned rows, and the fewest threads of a block. A block has one warpgroup that copies and two
# that multiply. attend_latent has one more, which computes weights.
PRODUCTS = [
    (
        "attention/forward.k",
        "attention_forward",
        "T=[bfloat16], D=[64, 128], V=D, SCORES=[PLAIN], KIND=[LONG]",
        ["64_64_0_0_128", "128_128_0_0_128"],
        {0, 1, 2, 5},
        384,
    ),  # not the log-sum-exps: any number of queries
    (
        "attention/fused.k",
        "all_gradients",
        "T=[bfloat16], D=[64, 128], SEEN=[SPAN]",
        ["64_1", "128_1"],
        {0, 1, 2, 6, 7, 8, 9, 10},
        384,
    ),
    (
        "attention/fused.k",
        "all_gradients",
        "T=[bfloat16], D=[64, 128], SEEN=[BITS]",
        ["64_2", "128_2"],
        {0, 1, 2, 3, 6, 7, 8, 9, 10},
        384,
    ),
    (
        "attention/fused.k",
        "all_gradients",
        "T=[bfloat16], D=[64, 128], SEEN=[ADDED]",
        ["64_3", "128_3"],
        {0, 1, 2, 5, 6, 7, 8, 9, 10},
        384,
    ),
    (
        "attention_varlen/varlen.k",
        "ragged_tiles",
        "T=[bfloat16], D=[128], GENERAL=[False]",
        ["128_False"],
        {0, 1, 2, 9},  # and the results
        384,
    ),
    ("attention_cache/latent.k", "attend_latent", "T=[bfloat16], BLOCK=[64]", ["64"], {0, 1, 4, 6}, 512),
]


def blocks_of(source: str) -> list[str]:
    """Returns the top-level parts of a module; a part is a function with its decorators."""
    parts = re.split(r"\n(?=@kernel|@register|def |comptime |from |import )", source)
    blocks: list[str] = []
    for part in parts:
        if blocks and blocks[-1].startswith("@") and "\ndef " not in blocks[-1]:
            blocks[-1] += "\n" + part
        else:
            blocks.append(part)
    return blocks


def narrowed(path: Path, kernels: dict[str, str]) -> str:
    """Returns the module at `path` with only these kernels and instances, and the functions that they use."""
    kept: list[str] = []
    imports: list[str] = []
    for block in blocks_of(path.read_text().replace(" \\\n    ", " ")):  # imports may continue on a second line
        name = re.search(r"^def (\w+)", block, re.M)
        if block.startswith("from "):
            imports.append(block)
        elif block.startswith("@kernel") and name and name[1] in kernels:
            body = re.sub(r"^@specialize\((?:.*\)\n|\n(?: .*\n)*\)\n)", "", block, flags=re.M)
            kept.append(body.replace("@kernel\n", f"@kernel\n@specialize({kernels[name[1]]})\n", 1))
        elif not block.startswith(("@", '"""')) and not (name and (" raises" in block or "launch " in block)):
            kept.append(block)
    text = "\n".join(kept)
    for line in imports:
        module, names = re.match(r"from (\S+) import (.*)", line).groups()
        used = [name for name in names.split(", ") if re.search(rf"\b{name.strip()}\b", text)]
        if used:
            text = f"from {module} import {', '.join(used)}\n" + text
    return text + "\n"


def copied(files: list[str], folder: Path) -> None:
    """Copies the functions of all modules of the families of `files` to one folder, so that modules there can import
    them. Without their kernels, which would take most of the build."""
    families = {(ROOT / "kernels_src" / file).parent for file in files}
    for path in [path for place in [ROOT / "kernels_src", *families] for path in place.glob("*.k")]:
        (folder / path.name).write_text(narrowed(path, {}))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("hot")
    copied([hot.file for hot in HOT], folder)
    made = []
    for file in dict.fromkeys(hot.file for hot in HOT):
        path = folder / Path(file).name
        path.write_text(
            narrowed(ROOT / "kernels_src" / file, {hot.kernel: hot.instances for hot in HOT if hot.file == file})
        )
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
            for dtype in BYTES:
                name, body = next(
                    (n, b)
                    for n, b in entries.items()
                    if n.startswith(f"{hot.kernel}__{dtype}_") and n.endswith("__vector")
                )
                vectors = hot.vectors(dtype, int(re.search(r"\.reqntid (\d+)", body)[1]))
                assert len(re.findall(r"ld\.global(?:\.nc)?\.v4\.b32", body)) == hot.loads * vectors, name
                assert len(re.findall(r"st\.global\.v4\.b32", body)) == hot.stores * vectors, name


@pytest.mark.parametrize(
    "file, kernel, instances, parameters, vectors, threads", PRODUCTS, ids=[f"{row[1]}-{row[3][0]}" for row in PRODUCTS]
)
def test_products_of_warpgroups_do_not_spill(
    file: str, kernel: str, instances: str, parameters: list[str], vectors: set[int], threads: int, tmp_path: Path
) -> None:
    """If ptxas spills registers of an instance, another launch replaces it, or none.

    The package then has slower instances only.
    """
    copied([file], tmp_path)
    source = tmp_path / Path(file).name
    source.write_text(narrowed(ROOT / "kernels_src" / file, {kernel: instances}))
    package = tmp_path / "products.kpkg"
    done = subprocess.run([KPKG, "build", source, "-o", package, "--target", "sm_90a"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = {instance["symbol"]: instance for instance in json.loads(kpkg("info", "--json", package))["instances"]}
    for parameter in parameters:
        instance = made.get(f"{kernel}__bfloat16_{parameter}__vector")
        assert instance, done.stderr
        launch = instance["launch"]
        assert launch["tensor_maps"] and launch.get("spills", 0) == 0, done.stderr
        assert launch["threads"] >= threads, done.stderr
        assert {fact["arg"] for fact in instance["facts"] if fact.get("divisible", 1) > 1} == vectors
