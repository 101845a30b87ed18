"""Scaffolds the most frequent additions: `tools/dev new op NAME [FAMILY]`, `tools/dev new pass FOLDER NAME`.

The files come from the templates in `op/` and `pass/`. The results build and pass their tests unchanged: an op that
squares, a pass that drops additions of zero. `test/python/test_scaffold.py` runs both.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parent
ROOT = TEMPLATES.parents[1]


#: What a scaffold cannot write.
OP_IS_NEXT = """next:
  replace the squares in all three files
  name the op in kernels_src/README.md, in CHANGELOG.md, and, if PyTorch has it, in test/python/test_autocast.py
  .venv/bin/python -m pytest -k NAME test/python/test_{specs,references,every_op,memory_order,autocast}.py
  tools/dev shipped"""
PASS_IS_NEXT = """next:
  replace the pass's body, its header, its record in Passes.td and its test
  put it into the pipelines that need it, in dialect/pipeline
  tools/dev build kpkg-opt, then .venv/bin/lit -v build/test --filter TEST
  tools/dev pages"""


def filled(template: str, words: Mapping[str, str]) -> str:
    """Returns the template's text with each key of `words` replaced."""
    text = (TEMPLATES / template).read_text()
    return re.sub("|".join(sorted(words, key=len, reverse=True)), lambda found: words[found.group()], text)


def write(files: Mapping[Path, str]) -> None:
    """Writes all new files or none. Existing files are never replaced."""
    for path in files:
        if path.exists():
            sys.exit(f"{path.relative_to(ROOT)} exists already")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")


def extend(path: Path, text: str) -> None:
    path.write_text(text)
    print(f"extended {path.relative_to(ROOT)}")


def kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def new_op(name: str, family: str | None = None) -> None:
    """Adds an op to a family, or as a family of its own."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        sys.exit(f"an op's name is lower case with underscores, got {name}")
    folder = ROOT / "kernels_src" / (family or name)
    if family is not None and not (folder / "spec.py").exists():
        known = sorted(path.parent.name for path in (ROOT / "kernels_src").glob("*/spec.py"))
        sys.exit(f"kernels_src has no family {family}; it has {', '.join(known)}")
    prefix = "" if family is None else f"{name}_"
    sources = {
        f"{name}.k": "op/op.k",
        f"{prefix}reference.k": "op/reference.k",
        f"{prefix}spec.py": "op/spec.py",
    }
    write({folder / file: filled(template, {"NAME": name}) for file, template in sources.items()})
    print(OP_IS_NEXT.replace("NAME", name))


def with_source(text: str, source: str) -> str | None:
    """Adds `source` to the sources of the library in CMake text: before the first one that follows it in the alphabet.

    None if there is no library of passes.
    """
    library = re.search(r"kpkg_mlir_library\(\w+\s+(.*?)(\s+)LINK", text, re.DOTALL)
    if library is None:
        return None
    separator = "\n  " if "\n" in library[1] else " "
    sources = library[1].split()
    sources.insert(next((i for i, other in enumerate(sources) if other > source), len(sources)), source)
    return text[: library.start(1)] + separator.join(sources) + text[library.end(1) :]


def new_pass(folder: str, name: str) -> None:
    """Adds a pass. `folder` is its folder, such as dialect/tile/transforms; it or its parent has the Passes.td.

    `name` is CamelCase.
    """
    if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name):
        sys.exit(f"a pass's name is in CamelCase, got {name}")
    place = ROOT / folder
    home = next((path for path in (place, place.parent) if (path / "Passes.td").exists()), None)
    if home is None:
        sys.exit(f"neither {folder} nor the folder above it has a Passes.td")
    namespace = re.search(r"namespace ([\w:]+) {", (home / "Passes.h").read_text())
    cmake, record = home / "CMakeLists.txt", home / "Passes.td"
    lists = with_source(cmake.read_text(), str((place / f"{name}.cpp").relative_to(home)))
    if namespace is None or lists is None:
        sys.exit(f"{home.relative_to(ROOT)} has no library of passes")
    dialect = Path(folder).parts[1]
    phase = place.relative_to(home) if dialect == "kgpu" else Path()  # tests of kgpu mirror its phases
    words = {
        "PASSES_FOLDER": str(home.relative_to(ROOT)),
        "NAMESPACE": namespace[1],
        "CLASS": dialect.capitalize() + name,
        "UPPER": (dialect + name).upper(),
        "FLAG": f"{dialect}-{kebab(name)}",
    }
    write(
        {
            place / f"{name}.cpp": filled("pass/pass.cpp", words),
            ROOT / "test" / "dialect" / dialect / phase / f"{kebab(name)}.mlir": filled("pass/pass.mlir", words),
        }
    )
    records = record.read_text()
    end = records.rindex("\n#endif")
    extend(record, records[:end] + filled("pass/pass.td", words) + records[end:])
    extend(cmake, lists)
    print(PASS_IS_NEXT.replace("TEST", kebab(name)))


def main() -> None:
    match sys.argv[1:]:
        case ["op", name]:
            new_op(name)
        case ["op", name, family]:
            new_op(name, family)
        case ["pass", folder, name]:
            new_pass(folder.rstrip("/"), name)
        case _:
            sys.exit("usage: tools/dev new op NAME [FAMILY] | tools/dev new pass FOLDER NAME")


if __name__ == "__main__":
    main()
