"""Tests compiling from Python: the cache and its invalidation, and the command line of the Python package.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kpkg
import numpy as np
import pytest
from conftest import BUILD, COMMAND, ROOT

SOURCE = """
@kernel
def scaled_blocks(x: Tensor[float32, 1], mut y: Tensor[float32, 1]):
    y.tile[64](block_idx.x).store(x.tile[64](block_idx.x).load() * FACTOR)

@register.op("compiled::scaled")
def scaled(x: Tensor) raises -> Tensor:
    var y = empty_like(x)
    launch scaled_blocks(x, y, grid=ceildiv(x.numel(), 64))
    return y
"""


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "sources" / "scaled.k"
    file.parent.mkdir()
    file.write_text(SOURCE.replace("FACTOR", "2.0"))
    return file


def compiler(tmp_path):
    return kpkg.Compiler(str(COMMAND), tmp_path / "cache")


X = np.arange(5, dtype=np.float32)


def test_compiles_once(source, tmp_path):
    first = compiler(tmp_path)
    library = first.compile_from_file(source, "my_scaled")
    assert library.path.endswith("my_scaled.kpkg")
    np.testing.assert_array_equal(library.scaled(X), X * 2)
    again = compiler(tmp_path)
    np.testing.assert_array_equal(again.compile_from_file(source, "my_scaled").scaled(X), X * 2)
    assert (first.compilations, again.compilations) == (1, 0)
    source.write_text(SOURCE.replace("FACTOR", "3.0"))
    np.testing.assert_array_equal(again.compile_from_file(source, "my_scaled").scaled(X), X * 3)
    assert again.compilations == 1
    assert not [file for file in (tmp_path / "cache").rglob(".*")]


def test_compiles_text(tmp_path):
    one, text = compiler(tmp_path), SOURCE.replace("FACTOR", "2.0")
    library = one.compile_from_source(text)
    np.testing.assert_array_equal(library.scaled(X), X * 2)
    assert library.path.endswith("source.kpkg")
    indented = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    np.testing.assert_array_equal(one.compile_from_source(indented).scaled(X), X * 2)
    assert one.compilations == 1
    np.testing.assert_array_equal(one.compile_from_source(text.replace("2.0", "3.0")).scaled(X), X * 3)
    assert one.compilations == 2
    assert not [file for file in (tmp_path / "cache").rglob(".*")]


def test_one_name_in_two_namespaces(tmp_path):
    text = SOURCE.replace("FACTOR", "2.0")
    again = text.split("@register")[1].replace("compiled::scaled", "other::scaled").replace("def scaled", "def more")
    library = compiler(tmp_path).compile_from_source(f"{text}\n@register{again}")
    assert [op.name for op in library] == ["compiled::scaled", "other::scaled"] and "scaled" in dir(library)
    with pytest.raises(AttributeError, match=r"in several namespaces: use library\['compiled::scaled'\]"):
        library.scaled
    np.testing.assert_array_equal(library["other::scaled"](X), X * 2)
    with pytest.raises(KeyError, match="has no op 'scaled'"):
        library["scaled"]


def test_errors_name_the_text(tmp_path):
    one, folder = compiler(tmp_path), str(tmp_path)
    with pytest.raises(kpkg.CompileError, match=r"(?m)^mine\.k:4:\d+: error") as refused:
        one.compile_from_source(SOURCE, "mine")
    assert folder not in str(refused.value) and "kpkg build mine.k failed" in str(refused.value)
    with pytest.raises(ValueError, match="no name for a package"):
        one.compile_from_source(SOURCE, "../mine")
    old = SOURCE.replace("FACTOR", "2.0").replace("def scaled_blocks", "fn scaled_blocks")
    with pytest.warns(kpkg.KpkgWarning, match=r"^mine\.k:3:1: warning: `fn`"):
        one.compile_from_source(old, "mine")


def test_text_imports_from_named_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "numbers.k").write_text("comptime FACTOR = 5.0\n")
    library = kpkg.compile_from_source(
        "from numbers import FACTOR\n" + SOURCE, "numbered", targets="native", options=["-I", str(tmp_path)]
    )
    np.testing.assert_array_equal(library.scaled(X), X * 5)


def test_changed_schema(tmp_path):
    """PyTorch cannot change the schema of a name in a process; an author changes it all the time."""
    torch = pytest.importorskip("torch")
    one, text = compiler(tmp_path), SOURCE.replace("FACTOR", "2.0").replace("compiled::", "changing::")
    first = one.compile_from_source(text)
    changed = text.replace("scaled(x: Tensor)", "scaled(x: Tensor, unused: Int = 1)")
    later = one.compile_from_source(changed)
    x = torch.ones(3)
    assert torch.equal(later.scaled(x, 2), 2 * x) and torch.equal(first.scaled(x), 2 * x)
    assert torch.equal(torch.ops.changing.scaled(x), 2 * x)
    assert torch.equal(one.compile_from_source(changed.replace("2.0", "3.0")).scaled(x, 2), 3 * x)
    assert torch.equal(one.compile_from_source(text.replace("2.0", "4.0")).scaled(x), 4 * x)


def test_every_file_that_is_read_decides(source, tmp_path):
    """The cache tracks every file that the command reads.

    Covers modules found by `-I`, modules that shadow others, and tuning tables."""
    near, far = tmp_path / "near", tmp_path / "far"
    for folder in (near, far):
        folder.mkdir()
    (far / "numbers.k").write_text("comptime FACTOR = 2.0\n")
    source.write_text("from numbers import FACTOR\n" + SOURCE)
    one, options = compiler(tmp_path), ["-I", str(near), "-I", str(far)]
    np.testing.assert_array_equal(one.compile_from_file(source, options=options).scaled(X), X * 2)
    (far / "numbers.k").write_text("comptime FACTOR = 3.0\n")
    np.testing.assert_array_equal(one.compile_from_file(source, options=options).scaled(X), X * 3)
    (near / "numbers.k").write_text("comptime FACTOR = 4.0\n")
    np.testing.assert_array_equal(one.compile_from_file(source, options=options).scaled(X), X * 4)
    rows = tmp_path / "rows.json"
    for table in ('{"format": 1, "rows": []}', '{"format":1,"rows":[]}'):
        rows.write_text(table)
        one.compile_from_file(source, options=[*options, "--tuning", str(rows)])
    assert one.compilations == 5
    (source.parent / "unrelated.k").write_text("comptime FACTOR = 5.0\n")
    one.compile_from_file(source, options=options)
    assert one.compilations == 5


def test_default_targets_are_the_commands(source, tmp_path, monkeypatch):
    source.write_text(SOURCE.replace("FACTOR", "2.0"))
    one = compiler(tmp_path)
    first = one.package_of(source)
    monkeypatch.setenv("KPKG_TARGET", "aarch64")
    other = one.package_of(source)
    assert other != first and b"aarch64" in other.read_bytes()


def test_damaged_entries_are_made_again(source, tmp_path):
    one = compiler(tmp_path)
    file = one.package_of(source)
    whole = file.read_bytes()
    middle = len(whole) * 3 // 4
    for damaged in (whole[: len(whole) // 2], b"", whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        file.write_bytes(damaged)
        assert one.package_of(source) == file and file.read_bytes() == whole
    assert one.compilations == 4


def test_many_at_once(source, tmp_path):
    """Processes that find no package compile it independently; each gets a complete package."""
    script = (
        f"import kpkg, numpy; c = kpkg.Compiler({str(COMMAND)!r}, {str(tmp_path / 'cache')!r}); "
        f"print(c.compile_from_file({str(source)!r}).scaled(numpy.ones(3, 'f'))[0])"
    )
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}

    def run(_):
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment).stdout

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run, range(3))) == ["2.0\n"] * 3


def test_what_is_refused(source, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nothing.k"):
        compiler(tmp_path).compile_from_file(tmp_path / "nothing.k")
    with pytest.raises(ValueError, match="no name"):
        compiler(tmp_path).compile_from_file(source, "../up")
    source.write_text(SOURCE)
    with pytest.raises(kpkg.CompileError, match="FACTOR"):
        compiler(tmp_path).compile_from_file(source)
    assert not list((tmp_path / "cache").rglob("*.kpkg"))
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path / "other"))
    assert kpkg.get_compiler().command == str(COMMAND) and kpkg.get_compiler().cache == tmp_path / "other"


def test_variables_that_name_what_is_not_there(source, tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", "/nowhere/kpkg")
    with pytest.raises(FileNotFoundError, match="KPKG_COMMAND is /nowhere/kpkg, which is no program"):
        kpkg.get_compiler()
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match="KPKG_CACHE_DIR names the folder of compiled packages: .*file/cache"):
        kpkg.get_compiler().compile_from_file(source, targets="x86-64-v3")


def command_line(*arguments, **environment):
    given = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_COMMAND": str(COMMAND), **environment}
    return subprocess.run([sys.executable, "-m", "kpkg", *arguments], capture_output=True, text=True, env=given)


def test_doctor(packages, tmp_path):
    done = command_line("doctor", "--json", KPKG_PATH=str(packages["softmax"]))
    found = {finding["subject"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0 and found["torch"]["state"] == "ok" and found["run cpu"]["text"] == "softmax is right"
    assert found["command"]["text"] == str(COMMAND)
    (tmp_path / "bad.kpkg").write_bytes(b"no package")
    done = command_line("doctor", KPKG_PATH=str(tmp_path))
    assert done.returncode == 3 and "not ok" in done.stdout and "build it again" in done.stdout


def test_profile_of_a_script(packages, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, kpkg, numpy\nassert sys.argv[1:] == ['a']\n"
        f"kpkg.load({str(packages['softmax'])!r}).softmax(numpy.ones((2, 3)))\n"
    )
    done = command_line("profile", "--trace", str(tmp_path / "trace.json"), str(script), "a")
    assert done.returncode == 0 and "kpkg::softmax" in done.stdout and "softmax_rows[" in done.stdout, done.stderr
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_the_rest_is_the_commands():
    assert command_line("version").stdout == subprocess.run([COMMAND, "version"], capture_output=True, text=True).stdout


def test_numbers_of_a_call_choose_among_alternatives(tmp_path):
    """An Int argument of the call may decide which alternative runs; results do not depend on it."""
    library = compiler(tmp_path).compile_from_file(ROOT / "test/tools/kpkg/inputs/trips.k", "trips")
    rng = np.random.default_rng(0)
    b = rng.standard_normal((512, 80), dtype=np.float32)
    for rows in (300, 8):
        a = rng.standard_normal((rows, 512), dtype=np.float32)
        for first in (0, 33, 511):
            explained = library["demo::partial"].explain(a, b, first)
            assert "chosen by the cost model" in explained and "as the first of" not in explained
            np.testing.assert_allclose(
                library["demo::partial"](a, b, first), a[:, first:] @ b[first:], rtol=1e-3, atol=1e-3
            )
            whole = first // 32 * 32  # a multiple of the kernel's loop step
            np.testing.assert_allclose(
                library["demo::some"](a, b, whole), a[:, :whole] @ b[:whole], rtol=1e-3, atol=1e-3
            )
