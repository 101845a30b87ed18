"""Checks the layering: which folder may include which, and which library may link which.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The phases of the GPU pipelines: a pass of one phase knows no pass of another. All of them ask the analyses.
PHASES = ["launch", "layout", "pipeline", "roles", "expand", "alloc", "verify"]
PHASES_SEE = [
    "dialect/kgpu/Passes.h",
    "dialect/kgpu/Passes.h.inc",
    "dialect/kgpu/analysis",
    "dialect/kgpu/ir",
    "dialect/layout",
    "dialect/tile",
]

# Maps a folder to the folders or files that its files may include besides itself. The longest matching prefix applies.
ALLOWED = {
    "compiler/source": [],
    "compiler/diag": ["compiler/source"],
    "compiler/ast": ["compiler/source"],
    "compiler/syntax": ["compiler/source", "compiler/diag", "compiler/ast"],
    "compiler/comptime": ["compiler/source", "compiler/diag", "compiler/ast", "compiler/check", "runtime/include"],
    "compiler/check": [
        "compiler/source",
        "compiler/diag",
        "compiler/ast",
        "compiler/syntax",
        "compiler/comptime",
        "dialect/tile/schedule",
        "runtime/manifest",
        "runtime/plan",
        "runtime/include",
    ],
    "compiler/irgen": [
        "compiler/source",
        "compiler/diag",
        "compiler/ast",
        "compiler/check",
        "compiler/comptime",
        "dialect/tile",
        "dialect/plan",
    ],
    "compiler/codegen": ["dialect/tile", "dialect/lower"],
    "compiler/pack": [
        "dialect/plan",
        "compiler/check",
        "compiler/codegen",
        "runtime/format",
        "runtime/manifest",
        "runtime/plan",
        "runtime/include",
    ],
    "compiler/driver": ["compiler", "dialect", "runtime/format", "runtime/manifest", "runtime/plan"],
    "compiler/lsp": [
        "compiler/source",
        "compiler/diag",
        "compiler/ast",
        "compiler/syntax",
        "compiler/comptime",
        "compiler/check",
        "compiler/driver/Guard.h",
        "compiler/driver/TileLayouts.h",
        "dialect/tile/schedule",
    ],
    "dialect/layout": [],
    "dialect/tile": ["runtime/manifest"],
    "dialect/tile/schedule": [],
    "dialect/plan": ["runtime/plan"],
    "dialect/kgpu": ["dialect/kgpu/ir"],
    "dialect/kgpu/ir": ["dialect/layout", "dialect/tile", "runtime/chips"],
    "dialect/kgpu/analysis": ["dialect/kgpu/ir", "dialect/layout", "dialect/tile"],
    **{f"dialect/kgpu/{phase}": PHASES_SEE for phase in PHASES},
    "dialect/lower": ["dialect/tile", "dialect/layout"],
    "dialect/lower/atomics": ["dialect/tile"],
    "dialect/lower/math": [],
    "dialect/lower/scf": [],
    "dialect/lower/nvvm": [
        "dialect/layout",
        "dialect/tile",
        "dialect/kgpu/ir",
        "dialect/kgpu/analysis",
        "dialect/lower/atomics",
        "dialect/lower/math",
        "dialect/lower/scf",
    ],
    "dialect/sim": ["dialect/tile"],
    "dialect/sim/async": [
        "dialect/sim",
        "dialect/tile",
        "dialect/layout",
        "dialect/kgpu/ir",
        "dialect/kgpu/analysis",
    ],
    "dialect/pipeline": ["dialect"],
    "runtime/torch": ["runtime/include"],
    "runtime/python": ["runtime/include"],
    "runtime/tvm_ffi": ["runtime/include"],
    "runtime/onnxruntime": ["runtime/include"],
    "runtime/chips": [],
    "runtime/manifest": [],
    "runtime": ["runtime"],
}

SOURCES = [
    p
    for folder in ("compiler", "dialect", "runtime")
    for p in sorted((ROOT / folder).rglob("*"))
    if p.suffix in {".h", ".hpp", ".cpp", ".c", ".td"}
]
INCLUDE = re.compile(r'^\s*#?\s*include\s+"((?:compiler|dialect|runtime|tools|test)/[^"]+)"', re.M)


def rule_of(path: Path) -> str | None:
    name = path.relative_to(ROOT).as_posix()
    fitting = [rule for rule in ALLOWED if name.startswith(rule + "/")]
    return max(fitting, key=len, default=None)


def violations(path: Path) -> list[str]:
    """Returns the includes of `path` that its folder may not have."""
    rule = rule_of(path)
    if rule is None:
        return [f"{path.relative_to(ROOT)}: no layering rule for its folder"]
    allowed = [rule, *ALLOWED[rule]]
    return [
        f"{path.relative_to(ROOT)} includes {target}"
        for target in INCLUDE.findall(path.read_text(errors="replace"))
        if not any(target == place or target.startswith(place + "/") for place in allowed)
    ]


def test_there_are_sources():
    assert len(SOURCES) > 20


def test_includes_point_downwards():
    found = [line for path in SOURCES for line in violations(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["manifest", "format", "plan", "package", "device", "include"])
def test_runtime_core_sees_no_compiler_python_or_torch(folder):
    banned = re.compile(r'#\s*include\s+[<"](?:llvm|mlir|torch|ATen|c10|Python\.h|nanobind)')
    for path in (ROOT / "runtime" / folder).rglob("*"):
        if path.suffix in {".h", ".hpp", ".cpp"}:
            assert not banned.search(path.read_text()), path


def unit_of(name: str) -> str:
    """Returns the path without its ending: a header and its implementation count as one."""
    return name.rsplit(".", 1)[0]


def includes_of_units() -> dict[str, set[str]]:
    """Maps each header with its implementation to those that it includes."""
    units: dict[str, set[str]] = {}
    for path in SOURCES:
        own = unit_of(path.relative_to(ROOT).as_posix())
        targets = {unit_of(target) for target in INCLUDE.findall(path.read_text(errors="replace"))}
        units.setdefault(own, set()).update(targets - {own})
    return units


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Returns the nodes that a path from `start` leads to."""
    seen: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(graph.get(node, ()))
    return seen


def cyclic_groups(graph: dict[str, set[str]]) -> list[list[str]]:
    """Lists the groups of nodes that reach each other."""
    reach = {node: reached(graph, node) for node in graph}
    cyclic = sorted(node for node in graph if node in reach[node])
    groups = {node: [other for other in cyclic if other in reach[node] and node in reach[other]] for node in cyclic}
    return [group for node, group in groups.items() if node == group[0]]


def test_no_cycle_between_folders():
    folders: dict[str, set[str]] = {}
    for unit, targets in includes_of_units().items():
        own = unit.rsplit("/", 1)[0]
        folders.setdefault(own, set()).update({target.rsplit("/", 1)[0] for target in targets} - {own})
    assert not cyclic_groups(folders)


def test_no_cycle_within_kgpu():
    assert not [group for group in cyclic_groups(includes_of_units()) if group[0].startswith("dialect/kgpu/")]


def test_at_most_one_cyclic_group_in_a_folder():
    groups: dict[str, list[list[str]]] = {}
    for group in cyclic_groups(includes_of_units()):
        groups.setdefault(group[0].rsplit("/", 1)[0], []).append(group)
    assert not {folder: found for folder, found in groups.items() if len(found) > 1}


def test_every_phase_has_a_rule():
    folders = {path.name for path in (ROOT / "dialect/kgpu").iterdir() if path.is_dir()}
    assert folders == {*PHASES, "ir", "analysis"}


PACKAGE = ROOT / "runtime" / "package"
#: The registry of devices is the only place of the package layer that knows their kinds.
REGISTRY = {PACKAGE / "Devices.cpp", PACKAGE / "Devices.h"}
DEVICE_KIND = re.compile(r"\b(?:isCuda|isCpu|KPKG_DEVICE_\w+|cuda::|cpu::)")


def test_packages_do_not_know_the_kinds_of_devices():
    found = []
    for path in sorted(PACKAGE.iterdir()):
        if path in REGISTRY or path.suffix not in {".h", ".cpp"}:
            continue
        text = path.read_text()
        devices = [target for target in INCLUDE.findall(text) if target.startswith("runtime/device/")]
        found += [f"{path.name} includes {target}" for target in devices if target != "runtime/device/Device.h"]
        found += [f"{path.name} has {word}" for word in DEVICE_KIND.findall(text)]
    assert not found, "\n".join(found)


def python_imports(module: str, path: Path, known: Collection[str]) -> set[str]:
    """Returns the modules that a module of the package imports, also within functions and for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports name the module in full"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in full}
    return (found & set(known)) - {module}


def test_python_modules_import_without_circles():
    folder = ROOT / "runtime" / "python"
    paths = {".".join(p.relative_to(folder).with_suffix("").parts): p for p in (folder / "kpkg").rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    # The package stands above its modules, so these import the native module by its own name, never from `kpkg`.
    imports = {name: python_imports(name, path, modules) for name, path in modules.items()}
    assert not cyclic_groups(imports)
    folders: dict[str, set[str]] = {}
    for name, others in imports.items():
        own = ".".join(name.split(".")[:2])
        folders.setdefault(own, set()).update({".".join(other.split(".")[:2]) for other in others} - {own})
    assert not cyclic_groups(folders)


def test_file_names_say_something():
    meaningless = re.compile(r"^(utils?|helpers?|misc|common|base|manager)\.", re.I)
    bad = [p for p in SOURCES if meaningless.match(p.name)]
    assert not bad
