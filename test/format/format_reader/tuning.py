"""Checks tuning tables against the package that has them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

from format_reader import canonical
from format_reader.container import Container
from format_reader.page import Refused
from format_reader.records import get

MOST_ROWS = 1 << 16


def check_extents(row: dict[str, Any], key: str, arguments: int) -> None:
    lists = row[key]
    if not isinstance(lists, list) or len(lists) != arguments + 1:
        raise Refused(f"its `{key}` are not those of the kernel's arguments and its grid")
    for extents in lists:
        if not isinstance(extents, list):
            raise Refused(f"its `{key}` hold something that is no list")
        for extent in extents:
            if isinstance(extent, bool) or not isinstance(extent, int) or not 0 <= extent < 2**63:
                raise Refused(f"its `{key}` hold {extent}, which is no extent")


def class_of(extent: int) -> int:
    """Rounds an extent up to three significant binary digits."""
    step = 1 << max(0, (extent - 1).bit_length() - 3) if extent > 8 else 1
    return min(-(-extent // step) * step, 2**63 - 1)


def classes_of(lists: list[list[int]]) -> list[list[int]]:
    return [[class_of(extent) for extent in extents] for extents in lists]


def check_row(row: Any, manifest: dict[str, Any]) -> None:
    if not isinstance(row, dict):
        raise Refused("is no object")
    for key, kind in {
        "device": str,
        "kernel": str,
        "target": str,
        "variant": str,
        "params": dict,
        "choice": dict,
    }.items():
        if not isinstance(row.get(key), kind):
            raise Refused(f"its `{key}` is no {'object' if kind is dict else 'string'}")
    kernels = get("manifest", manifest, "kernels")
    index = next((k for k, kernel in enumerate(kernels) if kernel["name"] == row["kernel"]), None)
    if index is None:
        raise Refused(f"the package has no kernel '{row['kernel']}'")
    declared = get("kernel", kernels[index], "params")
    parts = [{p["name"] for p in declared if bool(p.get("tuned")) == tuned} for tuned in (False, True)]
    if set(row["params"]) != parts[0] or set(row["choice"]) != parts[1]:
        raise Refused(f"its `params` and `choice` are not the parameters of '{row['kernel']}'")
    values = [{**row["params"], **row["choice"]}[param["name"]] for param in declared]
    wanted = (index, row["target"], row["variant"], values)
    has = [
        (i["kernel"], i["target"], get("instance", i, "variant"), get("instance", i, "params"))
        for i in get("manifest", manifest, "instances")
    ]
    if wanted not in has:
        raise Refused(f"the package has no such instance of '{row['kernel']}'")
    check_extents(row, "shapes", len(get("kernel", kernels[index], "args")))
    if row["shapes"] != classes_of(row["shapes"]):
        raise Refused("its `shapes` are no classes of extents")
    if "measured" in row:
        check_extents(row, "measured", len(get("kernel", kernels[index], "args")))
        if row["shapes"] != classes_of(row["measured"]):
            raise Refused("what it `measured` is not of its `shapes`")


def check_tuning(container: Container) -> None:
    section = container.find("tuning")
    if not section:
        return
    if section["kind"] != "tuning":
        raise Refused(f"the tuning table is said to be in section 'tuning', which is of kind '{section['kind']}'")
    try:
        table = canonical.read(container.contents("tuning"))
    except Refused as refused:
        raise Refused(f"section 'tuning': {str(refused).removeprefix('the manifest ')}") from None
    rows = table.get("rows") if isinstance(table, dict) and table.get("format") == 1 else None
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise Refused("section 'tuning': is no tuning table of format 1")
    before = None
    for number, row in enumerate(rows):
        try:
            check_row(row, container.manifest)
        except Refused as refused:
            raise Refused(f"section 'tuning': row {number}: {refused}") from None
        key = canonical.write({name: value for name, value in row.items() if name != "choice"})
        if before is not None and key <= before:
            why = "there is another one for the same calls" if key == before else "it stands behind a greater one"
            raise Refused(f"section 'tuning': row {number}: {why}")
        before = key
