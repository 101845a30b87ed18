"""Writes kernel repositories for Hugging Face's `kernels`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kpkg import _hub_files
from kpkg._library import CustomOpLibrary
from kpkg._native import version

_HERE = Path(__file__).parent
#: The modules that a variant for PyTorch starts with. Those that they import follow.
_ROOTS = ("_library", "_torch")
#: Libraries of variants, as patterns of files.
_TORCH_LIBRARIES = ("_native*.so", "libkpkg.so.?", "libkpkg_torch.so")
_TVM_FFI_LIBRARIES = ("libkpkg.so.?", "libkpkg_tvm_ffi.so")
#: Versions of PyTorch's stable ABI and of tvm-ffi that the libraries need.
_STABLE_ABI, _TVM_FFI = "210", "01"
#: CUDA releases: `kernels` takes a variant whose minor version is not above that of the system.
_CUDA = ("cu120", "cu130")
#: Machines by their number in ELF files.
_MACHINES = {62: "x86_64", 183: "aarch64"}
#: The newest symbols that manylinux_2_28 has.
_NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
_SYMBOL = re.compile(rb"\0(GLIBC|GLIBCXX|CXXABI)_([0-9.]+)(?=\0)")
_IMPORT = re.compile(r"^(\s*)(?:from kpkg((?:\.\w+)*) import |import kpkg\.(\w+) as )", re.M)


@dataclass
class Repository:
    """What a kernel repository is made from."""

    packages: list[Path]
    name: str
    number: int
    #: Folder of libkpkg and the libraries beside it.
    libraries: Path


def modules() -> dict[str, str]:
    """Returns the sources of kpkg's modules that calls from PyTorch need, by file name, with relative imports."""
    found: dict[str, str] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        path = _HERE / f"{name}.py"
        if f"{name}.py" in found or not path.exists():
            continue
        text = path.read_text()
        found[f"{name}.py"] = _IMPORT.sub(_relative, text)
        waiting += _imported(text)
    return found


def _relative(match: re.Match[str]) -> str:
    indent, module, renamed = match.groups()
    return f"{indent}from . import " if renamed is None and not module else f"{indent}{_from(module, renamed)}"


def _from(module: str | None, renamed: str | None) -> str:
    return f"from . import {renamed} as " if renamed else f"from {module} import "


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("kpkg."))
        elif isinstance(node, ast.ImportFrom) and node.module == "kpkg":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kpkg."):
            yield str(node.module).partition(".")[2]


def _targets(libraries: Iterable[CustomOpLibrary]) -> set[str]:
    return {instance["target"] for library in libraries for instance in library.manifest["instances"]}


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Returns the libraries of a folder. Raises FileNotFoundError for a pattern without one."""
    files = []
    for pattern in patterns:
        if not (matching := sorted(folder.glob(pattern))):
            raise FileNotFoundError(f"{folder} has no {pattern}: name another folder with --libraries")
        files += matching
    return files


def _machine(library: Path) -> str:
    number = int.from_bytes(library.read_bytes()[18:20], "little")
    if number not in _MACHINES:
        raise ValueError(f"{library} is for a machine that kpkg does not know: number {number} of ELF")
    return _MACHINES[number]


def complaints(libraries: Iterable[Path]) -> list[str]:
    """Returns what the rules of the Hub forbid in these libraries.

    They forbid symbols newer than those of manylinux_2_28 and oneTBB as a library of its own. They also forbid other
    Python packages, and modules that are bound to one version of Python.
    """
    found = []
    for library in libraries:
        content = library.read_bytes()
        newest: dict[str, tuple[int, ...]] = {}
        for kind, numbers in _SYMBOL.findall(content):
            number = tuple(int(part) for part in numbers.split(b"."))
            newest[kind.decode()] = max(newest.get(kind.decode(), ()), number)
        for kind, number in sorted(newest.items()):
            if number > _NEWEST[kind]:
                limit = ".".join(map(str, _NEWEST[kind]))
                found.append(f"{library.name} needs {kind}_{'.'.join(map(str, number))}, above {limit}")
        if b"\0libtbb.so." in content:
            found.append(f"{library.name} needs oneTBB, which is not in the repository")
        if b"nanobind_backend" in content:
            found.append(f"{library.name} needs the Python package nanobind-backend")
        if ".cpython-" in library.name:
            found.append(f"{library.name} is bound to one version of Python")
    return found


def write(folder: Path, repository: Repository) -> tuple[list[Path], list[str]]:
    """Writes the repository into `folder/build`, in place of what is there, and returns its variants and `complaints`.

    There is a variant for CPUs. If a package has code for GPUs, there is one for each major release of CUDA, too. All
    are for PyTorch, and for tvm-ffi as well if there is a libkpkg_tvm_ffi. Raises FileNotFoundError for an absent
    library, and the errors of ``kpkg.load``.
    """
    opened = [CustomOpLibrary(path) for path in repository.packages]
    targets = _targets(opened)
    chips = sorted({_arch(target) for target in targets if target.startswith("sm_")})
    used = _files(repository.libraries, _TORCH_LIBRARIES)
    frameworks = {f"torch-stable-abi{_STABLE_ABI}": used}
    if (repository.libraries / _TVM_FFI_LIBRARIES[1]).exists():
        frameworks[f"tvm-ffi{_TVM_FFI}"] = _files(repository.libraries, _TVM_FFI_LIBRARIES)
    machine = _machine(used[-1])
    ops = {op.__name__ for library in opened for op in library}
    shutil.rmtree(folder / "build", ignore_errors=True)
    variants = []
    for framework, libraries in frameworks.items():
        for backend in ["cpu", *(_CUDA if chips or "ptx" in targets else ())]:
            variant = folder / "build" / f"{framework}-{backend}-{machine}-linux"
            _write_variant(variant, repository, libraries, ops, chips if backend != "cpu" else None)
            variants.append(variant)
    every = {library.name: library for libraries in frameworks.values() for library in libraries}
    return variants, complaints(every.values())


def _arch(target: str) -> str:
    """Returns the capability of a target: 9.0a of sm_90a."""
    major, minor, feature = re.fullmatch(r"sm_(\d+)(\d)([af]?)", target).groups()  # type: ignore[union-attr]
    return f"{major}.{minor}{feature}"


def _write_variant(
    variant: Path, repository: Repository, libraries: list[Path], ops: set[str], chips: list[str] | None
) -> None:
    is_torch = variant.name.startswith("torch")
    content = hashlib.sha256(b"".join(path.read_bytes() for path in [*repository.packages, *libraries])).hexdigest()
    kind = "cpu" if chips is None else "cuda"
    identifier = f"_{repository.name.replace('-', '_')}_{kind}_{content[:12]}"
    (variant / "_kpkg").mkdir(parents=True)
    (variant / "packages").mkdir()
    for package in repository.packages:
        shutil.copyfile(package, variant / "packages" / package.name)
    for library in libraries:
        shutil.copyfile(library, variant / "_kpkg" / library.name)
    files = _hub_files.torch_files(identifier, version(), ops) if is_torch else _hub_files.tvm_ffi_files(version())
    if is_torch:
        (variant / "_kpkg" / "__init__.py").write_text('"""The part of kpkg that calls from PyTorch need."""\n')
        shutil.copyfile(_HERE / "shipped_ops.json", variant / "_kpkg" / "shipped_ops.json")
        files |= {f"_kpkg/{name}": text for name, text in modules().items()}
    for name, text in files.items():
        (variant / name).write_text(text)
    metadata = {
        "id": identifier,
        "name": repository.name,
        "version": repository.number,
        "license": "Apache-2.0",
        "python-depends": [] if is_torch else ["tvm-ffi"],
        "backend": {"type": kind} | ({"archs": chips} if chips else {}),
        "digest": {"algorithm": "sha256", "files": _digests(variant)},
    }
    (variant / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")


def _digests(variant: Path) -> dict[str, str]:
    files = sorted(path for path in variant.rglob("*") if path.is_file())
    return {
        path.relative_to(variant).as_posix(): base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
        for path in files
    }
