"""Makes the page of signatures, and compares its rows with the checker's table of built-in functions.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import re
from typing import NamedTuple

from table_pages import ROOT, rows, table

CHECKER = ROOT / "compiler" / "check"
SIGNATURES = "compiler/check/signatures.txt"
#: The files of the prelude, in the order in which they are joined.
PRELUDE = ("kernels_src/std/std.k", "kernels_src/std/sorting.k")
BASES = {
    "": "",
    "Op": "",
    "Tile": "tile.",
    "View": "tensor.",
    "Scratch": "scratch.",
    "Window": "block.",
    "Tensor": "tensor.",
    "List": "list.",
}
HINT_VALUES = {"Count": "0 to {}", "PowerOfTwo": "a power of two up to {}", "Bool": "True or False"}


class Row(NamedTuple):
    """One signature: the heading above it, where it may be called, the type whose method it is, and its text."""

    heading: str
    place: str
    base: str
    signature: str
    meaning: str

    @property
    def name(self) -> str:
        return re.split(r"[\[(]", self.signature)[0]


def signatures() -> list[Row]:
    """Reads the rows of the file."""
    found, heading, place = list[Row](), "", ""
    for line in (ROOT / SIGNATURES).read_text().splitlines():
        if line.startswith("#"):
            heading, _, place = (part.strip() for part in line.removeprefix("#").partition("|"))
        elif line.strip():
            base, signature, meaning = (cell.strip() for cell in line.rstrip("| ").split("|"))
            found.append(Row(heading, place, base, signature, meaning))
    return found


def builtins() -> dict[tuple[str, str], str]:
    """Maps (base, name) of each built-in function to the member of Elaborator that checks it."""
    text = (CHECKER / "Builtins.def").read_text()
    found = {("", name): handler for name, handler in re.findall(r"^(?:BUILTIN|SAME)\((\w+), (\w+)\)", text, re.M)}
    found |= {("Op", name): handler for name, handler in re.findall(r"^HOST\((\w+), (\w+)\)", text, re.M)}
    for base, name, handler in re.findall(r"^(?:METHOD|SAMEMETHOD)\((\w+), (\w+), (\w+)\)", text, re.M):
        found[base, name] = handler
    return found


def handlers() -> dict[str, str]:
    """Maps each member function of Elaborator in the files of calls to its text."""
    found = {}
    for path in sorted(CHECKER.glob("Check*.cpp")):
        for part in re.split(r"^(?:[\w:<>* ]+)?Elaborator::(?=\w+\()", path.read_text(), flags=re.M)[1:]:
            name, first = part.split("(", 1)[0], part.splitlines()[0]
            found[name] = first if first.endswith("}") else part.split("\n}\n")[0]
    return found


class Taken(NamedTuple):
    """What a handler reads of a call: its brackets, and its arguments by kind."""

    brackets: set[str]
    required: set[str]
    optional: set[str]
    named: set[str]


def with_callees(handler: str, bodies: dict[str, str]) -> str:
    """Returns the text of a handler, and of those that it gives the call to. Names given to them count as taken."""
    text = bodies[handler]
    for callee, given in re.findall(r"\b(\w+)\(([^;{]*\bsite\b[^;{]*)\);", text):
        if callee in bodies and callee != handler and "Arguments arguments" in bodies[callee]:
            passed = re.findall(r'"(\w+)"', given) if re.search(r"\btake\(\w+\)", bodies[callee]) else []
            text += bodies[callee] + "".join(f'take("{name}")' for name in passed)
    return text


def taken(handler: str, bodies: dict[str, str]) -> Taken:
    """Reads what a handler takes."""
    text = with_callees(handler, bodies)
    for kind, name in re.findall(r'nodeKind == Kind::(\w+) \? arguments\.named\("(\w+)"\)', text):
        if f"Kind::{kind}" not in bodies[handler]:
            text = text.replace(f'named("{name}")', "")
    refused = set(re.findall(r'notSupported\(\w+->range, "`(\w+)=`"', text))
    arguments = re.sub(r"brackets\.\w+", "", text)
    return Taken(
        set(re.findall(r'hasBrackets\(site, "(\w+)"\)', text)),
        set(re.findall(r'\btake\("(\w+)"\)', arguments)),
        set(re.findall(r'\btake\("(\w+)", false\)', arguments)),
        set(re.findall(r'\bnamed\("(\w+)"\)', arguments)) - refused,
    )


def shown(signature: str) -> Taken:
    """Reads the same of a row. Arguments behind `*` are given by name."""
    match = re.fullmatch(r"\w+(?:\[([^\]]*)\])?\((.*)\)", signature)
    assert match, f"{SIGNATURES}: {signature} is no signature"
    result = Taken({part.strip(" .") for part in (match[1] or "").split(",") if part}, set(), set(), set())
    is_named = False
    for part in filter(None, (part.strip() for part in match[2].split(","))):
        name = part.split("=")[0]
        if part == "*":
            is_named = True
        elif is_named:
            result.named.add(name)
        elif "=" in part:
            result.optional.add(name)
        elif not name.endswith("..."):
            result.required.add(name)
    return result


def decorators() -> set[str]:
    """Returns the decorators that the checker knows: the list in its sources that has `register.torch`."""
    for path in sorted([*CHECKER.glob("*.cpp"), *CHECKER.glob("*.h")]):
        if known := re.search(r'\{([\s\w".,]*"register\.torch"[\s\w".,]*)\}', path.read_text()):
            return set(re.findall(r'"([\w.]+)"', known[1]))
    raise ValueError("compiler/check: no list of decorators")


def complaints(listed: list[Row]) -> list[str]:
    """Lists the rows that differ from the checker, and the functions without a row."""
    known, bodies = builtins(), handlers()
    functions = {(row.base, row.name): row for row in listed if row.base in BASES}
    found = [
        f"{SIGNATURES}: add a row for `{name}` ({base or 'a function'}) of Builtins.def"
        for base, name in known
        if (base, name) not in functions
    ]
    for (base, name), row in functions.items():
        if (base, name) not in known:
            found.append(f"{SIGNATURES}: Builtins.def has no `{name}` ({base or 'a function'})")
        elif (code := taken(known[base, name], bodies)) != shown(row.signature):
            found.append(f"{SIGNATURES}: `{row.signature}` differs from the checker, which takes {code}")
    named = {row.name for row in listed if row.base == "@"}
    if named != decorators():
        found.append(f"{SIGNATURES}: the decorators are {sorted(decorators())}, not {sorted(named)}")
    return found


def place(row: Row, bodies: dict[str, str], known: dict[tuple[str, str], str]) -> str:
    """Says where a function may be called: as its handler does, else as its heading does."""
    only = re.search(r"onlyIn\(BodyKind::(\w+)", with_callees(known[row.base, row.name], bodies))
    return {"Kernel": "kernels", "Op": "ops"}[only[1]] if only else row.place


def prelude_rows() -> list[tuple[str, str]]:
    """Returns the functions of the prelude, with the first line of their documentation."""
    text = "".join((ROOT / path).read_text() for path in PRELUDE)
    functions = re.findall(r'(?<!\)\n)^def (.*):\n    """(.*?)(?:"""|\n)', text, re.M)
    return [(f"`{signature}`", meaning) for signature, meaning in functions]


def signatures_page() -> str:
    listed = signatures()
    bodies, known = handlers(), builtins()
    parts = [
        "# Signatures",
        f"`tools/dev pages` writes this page from `{SIGNATURES}`, the table of hints and the prelude.",
        "Square brackets hold what is known while compiling. `...` stands for any number of arguments. Arguments\n"
        "behind `*` are given by name, those with `=` may be left out. [language.md](../language.md) explains more.",
    ]
    for heading in dict.fromkeys(row.heading for row in listed if row.base in BASES):
        lines = [
            [f"`{BASES[row.base]}{row.signature}`", place(row, bodies, known), row.meaning]
            for row in listed
            if row.heading == heading and row.base in BASES
        ]
        parts += [f"## {heading}", table(["signature", "in", "meaning"], lines)]
    parts += ["## Prelude", table(["signature", "meaning"], prelude_rows())]
    words = [row for row in listed if row.base.startswith("+")]
    parts += [
        "## Statements, indices and attributes",
        table(["form", "in", "meaning"], [[f"`{row.signature}`", row.base[2:], row.meaning] for row in words]),
        "## Decorators",
        table(["form", "meaning"], [[f"`@{row.signature}`", row.meaning] for row in listed if row.base == "@"]),
        "### Hints of @schedule",
        table(
            ["hint", "value", "meaning"],
            [
                [f"`{name}=`", HINT_VALUES[kind].format(most), meaning.replace("(tuning.md)", "(../tuning.md)")]
                for _, name, kind, most, meaning in rows("dialect/tile/schedule/Hints.def", "KPKG_HINT")
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"
