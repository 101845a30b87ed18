"""Finds the build, builds the packages of kernels_src once, and provides tests with their libraries.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("KPKG_BUILD_DIR", "build")).resolve()
COMMAND = BUILD / "bin" / "kpkg"
sys.path[:0] = [
    str(BUILD / "python"),
    str(ROOT / "kernels_src"),
    str(ROOT / "test" / "python"),
    str(ROOT / "test" / "format"),
]

FAMILIES = sorted(path.parent.name for path in (ROOT / "kernels_src").glob("*/spec.py"))


def build_package(source: Path, package: Path, *options: str) -> Path:
    """Builds `package` from the file or folder `source` with the built command, unless it is up to date.

    It is up to date if it is newer than the command, the sources and the folders of imports among the options.
    """
    folder = source if source.is_dir() else source.parent
    folders = [
        folder,
        folder.parent,
        ROOT / "kernels_src" / "std",
        *(Path(option) for option in options if Path(option).is_dir()),
    ]
    newest = max(p.stat().st_mtime for p in [COMMAND, *(p for one in folders for p in one.glob("*.k"))])
    package.parent.mkdir(parents=True, exist_ok=True)
    with package.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be building it
        if not package.exists() or package.stat().st_mtime < newest:
            done = subprocess.run([COMMAND, "build", source, "-o", package, *options], capture_output=True, text=True)
            assert done.returncode == 0, f"kpkg build {source} failed:\n{done.stdout}{done.stderr}"
    return package


def build_for_gpus(family: str, *sources: str) -> Path:
    """Builds a package of the family with the GPU kernels, compiled for this machine's CPU.

    Tests check which kernels an op launches and what they compute. None of them depends on LLVM's optimisations, which
    take four fifths of such a build.
    """
    folder, package = ROOT / "kernels_src", BUILD / "test-packages" / f"{family}-dispatch.kpkg"
    others = [str(folder / source) for source in sources]
    return build_package(folder / family, package, *others, "--target", "native", "-D", "ON_GPU=True", "-O0")


def load_input(name: str, family: str):
    """Returns the library of test/python/inputs/NAME.k, which imports from a family of kernels_src."""
    import kpkg

    assert name not in FAMILIES, f"the package of {name} has this name"
    source, package = ROOT / "test" / "python" / "inputs" / f"{name}.k", BUILD / "test-packages" / f"{name}.kpkg"
    folders = [str(ROOT / "kernels_src" / family), str(ROOT / "kernels_src")]
    return kpkg.load(build_package(source, package, "--target", "native", "-O1", "-I", folders[0], "-I", folders[1]))


def load_source(name: str, text: str):
    """Returns the library of a test's source text, compiled again when the text has changed."""
    import kpkg

    assert name not in FAMILIES, f"the package of {name} has this name"
    source = BUILD / "test-packages" / f"{name}.k"
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return kpkg.load(build_package(source, source.with_suffix(".kpkg"), "--target", "native"))


def compile_cpp(source: Path, program: Path, *options: str) -> None:
    """Compiles a C++ program against the built libkpkg."""
    lib = BUILD / "lib"
    flags = ["-std=c++17", "-Wall", "-Werror", f"-I{ROOT}/runtime/include", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lkpkg"]
    done = subprocess.run(["g++", source, "-o", program, *flags, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def op_calls(name: str, run: Callable[[], object]) -> int:
    """Returns how often `run` calls an op of `kpkg.ops`."""
    import kpkg
    import torch

    op = kpkg.ops[f"kpkg::{name}"].op
    before = op.stats()["calls"]
    with torch.no_grad():
        run()
    return op.stats()["calls"] - before


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Makes PyTorch compute on `count` threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def build_families() -> dict[str, Path]:
    return {
        family: build_package(
            ROOT / "kernels_src" / family, BUILD / "test-packages" / f"{family}.kpkg", "--target", "native"
        )
        for family in FAMILIES
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="draws other random inputs for all tests")


def pytest_configure(config: pytest.Config) -> None:
    """Builds the packages before several workers (`-n 2`) start, so that each is built once."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        build_families()


@pytest.fixture(scope="session")
def packages() -> dict[str, Path]:
    """Returns the path of each family's package, compiled for this machine's CPU."""
    return build_families()


@pytest.fixture(scope="session")
def libraries(packages):
    """Returns an open library for each family, with its ops registered with PyTorch."""
    import kpkg
    import torch  # noqa: F401  (before the packages, so that their ops are registered with it)

    return {family: kpkg.load(path) for family, path in packages.items()}


@pytest.fixture
def ops(libraries):
    """Returns every op of kernels_src by its full name, registered with PyTorch."""
    for library in libraries.values():
        library.register_torch()  # another test may have loaded a newer library, whose ops took the names
    return {op.name: op for library in libraries.values() for op in library}


@pytest.fixture(autouse=True)
def seeded(request, record_property) -> int:
    """Seeds all generators by the test's name and `--seed`, whatever ran before, and returns the seed.

    A suite that draws other numbers in each run fails by chance. `pytest --seed N` draws others on purpose.
    """
    import numpy as np

    seed = zlib.crc32(f"{request.config.getoption('seed')} {request.node.nodeid}".encode())
    record_property("seed", seed)
    random.seed(seed)
    np.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)
    return seed


@pytest.fixture(autouse=True)
def no_fallbacks():
    """Makes fallbacks an error for tests that do not ask for them."""
    import kpkg

    with kpkg.fallback_policy("strict"):
        yield


@pytest.fixture
def fast(monkeypatch):
    """Makes kpkg appear twice as fast, whatever the clock says."""
    from kpkg import _measure

    monkeypatch.setattr(_measure, "interleaved", lambda first, second, **_: (2.0, 1.0))


@pytest.fixture(scope="session")
def default_ops(packages):
    """Returns `kpkg.ops` with the packages of kernels_src."""
    import kpkg
    import torch  # noqa: F401

    before = os.environ.get("KPKG_PATH")
    os.environ["KPKG_PATH"] = ":".join(str(path) for path in packages.values())
    kpkg.ops.reload()
    yield kpkg.ops
    if before is None:
        del os.environ["KPKG_PATH"]
    else:
        os.environ["KPKG_PATH"] = before
    kpkg.ops.reload()
