"""Tests packages built for GPUs without a GPU: their metadata, and the memory accesses of their code.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from kpkg import _native

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("KPKG_BUILD_DIR", "build")
ROW_KERNEL = """
@kernel
@specialize(T=[bfloat16, float32], COLS=[4096])
def normalise[T: DType, COLS: Int](x: Tensor[T, 2], mut y: Tensor[T, 2]):
    var v = x.tile[1, COLS](block_idx.x, 0).load(fill=-inf).cast[float32]()
    var e = exp(v - v.max(axis=1))
    y.tile[1, COLS](block_idx.x, 0).store((e * (1.0 / e.sum(axis=1))).cast[T]())


comptime WIDTHS = [4096] if target.has("gpu") else [1024, 4096]


@kernel
@specialize(N=WIDTHS)
def copy_rows[N: Int](x: Tensor[float32, 2], mut y: Tensor[float32, 2]):
    y.tile[1, N](block_idx.x, 0).store(x.tile[1, N](block_idx.x, 0).load())


@register.op("t::rows")
def rows(x: Tensor) raises -> Tensor:
    if x.shape[1] > 4096:
        raise Error("rows of {} are too long", x.shape[1])
    var y = empty_like(x)
    launch normalise[T=x.dtype, COLS=at_least(x.shape[1])](x, y, grid=x.shape[0])
    return y


@register.op("t::copied")
def copied(x: Tensor) raises -> Tensor:
    if x.shape[1] > 4096:
        raise Error("rows of {} are too long", x.shape[1])
    var y = empty_like(x)
    launch copy_rows[N=at_least(x.shape[1])](x, y, grid=x.shape[0])
    return y
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpu") / "rows.k"
    path.write_text(ROW_KERNEL)
    return path


def kpkg(*arguments: object) -> str:
    return subprocess.run(
        [BUILD / "bin" / "kpkg", *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


def manifest_of(package: Path) -> dict:
    return json.loads(kpkg("info", "--json", package))


def test_each_kind_of_target_has_its_own_instances(source: Path, tmp_path: Path) -> None:
    package = tmp_path / "rows.kpkg"
    kpkg("build", source, "-o", package, "--target", "x86-64-v3,sm_80,sm_90a")
    instances = manifest_of(package)["instances"]
    copies = [i for i in instances if i["symbol"].startswith("copy_rows")]
    assert {i["params"][0] for i in copies if "launch" not in i} == {1024, 4096}
    assert {i["params"][0] for i in copies if "launch" in i} == {4096}
    for chip in ("80", "90a"):
        ours = [i for i in instances if "launch" in i and i["target"] in (f"sm_{chip}", f"compute_{chip}")]
        assert {i["variant"] for i in ours} == {"vector", "vector64", "unit", "any"}
        for instance in ours:
            assert instance["launch"]["threads"] % 32 == 0
            assert bool(instance["facts"]) == (instance["variant"] != "any")


def test_hot_instances_access_memory_in_vectors(source: Path) -> None:
    ptx = kpkg("build", source, "--target", "sm_90a", "--emit=ptx")
    entries = dict(re.findall(r"\.entry (\w+)\((.*?)(?=\.entry|\Z)", ptx, re.S))
    for name, element_bytes in (("bfloat16", 2), ("float32", 4)):
        body = entries[f"normalise__{name}_4096__vector"]
        threads = int(re.search(r"\.reqntid (\d+)", body)[1])
        vectors = 4096 * element_bytes // 16 // threads
        assert len(re.findall(r"ld\.global\.v4\.b32", body)) == vectors
        assert len(re.findall(r"st\.global\.v4\.b32", body)) == vectors
        assert len(re.findall(r"(?:ld|st)\.global", body)) == 2 * vectors
        assert len(re.findall(r"bar\.sync|barrier\.sync", body)) <= 2


def test_two_builds_of_gpu_code_are_equal(source: Path, tmp_path: Path) -> None:
    kpkg("build", source, "-o", tmp_path / "rows.kpkg", "--target", "x86-64-v3,sm_90a,ptx", "--check-reproducible")


def test_a_chip_that_is_not_served_is_named(source: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [BUILD / "bin" / "kpkg", "build", source, "-o", tmp_path / "x.kpkg", "--target", "sm_70"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "chip sm_70 is not served" in done.stderr


def test_clusters_of_products_are_an_alternative(tmp_path: Path) -> None:
    path, package = tmp_path / "pairs.k", tmp_path / "pairs.kpkg"
    path.write_text("""
@kernel
@tune(CLUSTER=[2, 1])
@schedule(cluster=CLUSTER)
def pairs[CLUSTER: Int](a: Tensor[int8, 2], b: Tensor[int8, 2], mut c: Tensor[int32, 2]):
    for m, n in output_tiles[64, 64](c):
        var acc = zeros[int32](64, 64)
        for k in range(ceildiv(a.shape[1], 128)):
            acc = dot(a.tile[64, 128](m, k).load(), b.tile[128, 64](k, n).load(), acc)
        c.tile[64, 64](m, n).store(acc)
""")
    done = subprocess.run(
        [BUILD / "bin" / "kpkg", "build", path, "-o", package, "--target", "sm_80,sm_90a"],
        check=True,
        capture_output=True,
        text=True,
    )
    text = done.stderr + done.stdout
    assert "clusters of 2 blocks are more than the chip has" in text
    found = [
        one for one in manifest_of(package)["instances"] if one["target"] == "sm_90a" and one["variant"] == "vector_nt"
    ]
    alone, paired = sorted(found, key=lambda one: one["launch"]["cluster"])
    assert (alone["launch"]["cluster"], paired["launch"]["cluster"]) == (1, 2)
    assert {one["launch"]["cluster"] for one in manifest_of(package)["instances"] if one["target"] == "sm_80"} == {1}
    # A cluster's tiles count as one tile.
    area = [[factor[3] for factor in one["tiles"][0]["factors"]] for one in (alone, paired)]
    assert area[0] == [64, 64] and sorted(area[1]) == [64, 128]
    assert paired["work"]["flops"][0]["count"] == 2 * alone["work"]["flops"][0]["count"]
    parts = [map["box"] for map in paired["launch"]["tensor_maps"]]
    assert [128, 32] in parts and [64, 128] in parts


TAKEN = """
@kernel
@tune(DYNAMIC=[True, False])
@schedule(dynamic=DYNAMIC)
def taken[DYNAMIC: Bool](a: Tensor[bfloat16, 2], b: Tensor[bfloat16, 2], mut c: Tensor[bfloat16, 2]):
    for m, n in output_tiles[64, 64](c):
        var acc = zeros[float32](64, 64)
        for k in range(ceildiv(a.shape[1], 64)):
            acc = dot(a.tile[64, 64](m, k).load(), b.tile[64, 64](k, n).load(), acc)
        c.tile[64, 64](m, n).store(acc.cast[bfloat16]())
"""


def test_tiles_from_a_counter_are_an_alternative_where_a_warpgroup_loads(tmp_path: Path) -> None:
    path, package = tmp_path / "taken.k", tmp_path / "taken.kpkg"
    path.write_text(TAKEN)
    done = subprocess.run(
        [BUILD / "bin" / "kpkg", "build", path, "-o", package, "--target", "sm_80,sm_90a"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert (
        "the thread that copies operands of products of warpgroups takes tiles from a counter"
        in done.stderr + done.stdout
    )
    counters = {target: set() for target in ("sm_80", "sm_90a")}
    for one in manifest_of(package)["instances"]:
        counters[one["target"]].add(one["launch"].get("counters", 0))
    assert counters == {"sm_80": {0}, "sm_90a": {0, 4096}}
    listed = subprocess.run(
        [BUILD / "bin" / "kpkg", "info", "--instances", package], check=True, capture_output=True, text=True
    ).stdout
    assert "takes tiles from a counter" in listed


def test_a_schedule_is_dynamic_or_not(tmp_path: Path) -> None:
    path = tmp_path / "taken.k"
    path.write_text(TAKEN.replace("dynamic=DYNAMIC", "dynamic=2"))
    done = subprocess.run(
        [BUILD / "bin" / "kpkg", "build", path, "-o", tmp_path / "x.kpkg", "--target", "sm_90a"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "`dynamic`" in done.stderr and "a Bool" in done.stderr
    path.write_text("""
@kernel
@schedule(dynamic=True)
def twice(x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() * 2.0)
""")
    done = subprocess.run(
        [BUILD / "bin" / "kpkg", "build", path, "-o", tmp_path / "x.kpkg", "--target", "sm_90a"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "does not go over `output_tiles`" in done.stderr


PATHS = """
@kernel
@specialize(T=[float32])
def for_gpus[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load())


@kernel
@specialize(T=[float32])
def for_cpus[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load())


@register.op("t::copied")
def copied(x: Tensor) raises -> Tensor:
    var y = empty_like(x)
    var n = x.numel()
    comptime if target.has("gpu"):
        launch for_gpus[T=x.dtype](x.reshape(n), y.reshape(n), grid=ceildiv(n, 64))
    else:
        launch for_cpus[T=x.dtype](x.reshape(n), y.reshape(n), grid=ceildiv(n, 64))
    return y


@register.op("t::padded")
def padded(x: Tensor) raises -> Tensor:
    comptime MULTIPLE = 64 if target.has("gpu") else 16
    return empty(ceildiv(x.shape[0], MULTIPLE) * MULTIPLE, dtype=x.dtype)


@register.op("t::same")
def same(x: Tensor) raises -> Tensor:
    return x.contiguous()
"""


@pytest.mark.parametrize("targets", ["x86-64-v3,sm_90a", "x86-64-v3", "sm_90a"])
def test_ops_that_ask_for_the_target_have_a_plan_for_each(targets: str, tmp_path: Path) -> None:
    source, package = tmp_path / "paths.k", tmp_path / "paths.kpkg"
    source.write_text(PATHS)
    kpkg("build", source, "-o", package, "--target", targets)
    ops = {op["name"]: op for op in manifest_of(package)["ops"]}
    own = {name: [key for key in ("gpu_plan", "gpu_shape_plan") if key in op] for name, op in ops.items()}
    both = targets == "x86-64-v3,sm_90a"
    assert own == {"t::copied": ["gpu_plan"] * both, "t::padded": ["gpu_plan", "gpu_shape_plan"] * both, "t::same": []}
    library = _native.Library(str(package))
    library.verify()
    plans = {op.name: op for op in library.ops()}
    for on_gpu in (False, True):
        launched = "for_gpus" if "sm_90a" in targets and (on_gpu or not both) else "for_cpus"
        strings = json.loads(plans["t::copied"].plan_json(False, on_gpu))["strings"]
        assert [s for s in strings if s.startswith("for_")] == [launched]
        shape = ((70,), (1,), "float32", 2 if on_gpu else 1)
        assert plans["t::padded"].infer([shape])[0][0] == ((128,) if launched == "for_gpus" else (80,))


TF32_KERNEL = """
@kernel
@specialize(STRAIGHT=[0, 1])
def rounded[STRAIGHT: Int](a: Tensor[float32, 2], b: Tensor[float32, 2], mut d: Tensor[float32, 2]):
    for m, n in output_tiles[64, 64](d):
        var acc = zeros[float32](64, 64)
        for k in range(ceildiv(a.shape[1], 32)):
            comptime if STRAIGHT == 1:
                acc = dot(a.tile[64, 32](m, k).load(), b.tile[32, 64](k, n).load(), acc, precision="tf32")
            else:
                acc = dot(b.tile[32, 64](k, n).load().T, a.tile[64, 32](m, k).load().T, acc, precision="tf32")
        comptime if STRAIGHT == 1:
            d.tile[64, 64](m, n).store(acc)
        else:
            d.tile[64, 64](m, n).store(acc.T)


@register.op("t::rounded")
def product(a: Tensor, b: Tensor, straight: Int = 1) raises -> Tensor:
    var d = empty(a.shape[0], b.shape[1], dtype=float32)
    launch rounded[STRAIGHT=at_least(min(straight, 1))](a, b, d)
    return d
"""


@pytest.mark.parametrize("chip", ["sm_90a", "sm_80"])
def test_rounded_float32_is_multiplied_by_warpgroups_where_they_can_read_it(chip: str, tmp_path: Path) -> None:
    """wgmma needs its second TF32 factor K-major in shared memory.

    Its first factor is loaded from any layout. gemm_rounded relies on it.
    """
    source = tmp_path / "rounded.k"
    source.write_text(TF32_KERNEL)
    text = kpkg("build", source, "--target", chip, "--emit", "ptx")
    found = {}
    for entry in re.split(r"(?=\.entry )", text)[1:]:
        name = re.match(r"\.entry (\w+)", entry)
        assert name is not None
        kinds = [
            kind for kind in ("wgmma.mma_async", "mma.sync") if re.search(rf"\b{re.escape(kind)}\S*\.tf32\.tf32", entry)
        ]
        assert len(kinds) == 1, name[1]
        found[name[1]] = kinds[0]
    names = {
        f"{straight}_{order}": found[f"rounded__{straight}__vector{suffix}"]
        for straight in (0, 1)
        for order, suffix in (("nn", ""), ("nt", "_nt"), ("tn", "_tn"), ("tt", "_tt"))
    }
    rows = {name for name, kind in names.items() if kind == "wgmma.mma_async"}
    assert rows == ({"0_nn", "0_nt", "1_nt", "1_tt"} if chip == "sm_90a" else set())
