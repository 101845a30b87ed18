"""Checks a whole package by the page's rules, as a runtime that loads everything.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from format_reader import bytecode, host_object
from format_reader.container import Container
from format_reader.page import Refused
from format_reader.records import get
from format_reader.tables import check_tables
from format_reader.tuning import check_tuning


def opened(data: bytes) -> Container:
    """Returns a package that a runtime opens. Raises Refused."""
    container = Container(data)
    check_tables(container)
    check_tuning(container)
    return container


def verify(data: bytes, target: str) -> Container:
    """Returns a package whose sections, plans and code for this target are good. Raises Refused."""
    container = opened(data)
    for name in container.sections:
        container.contents(name)
    for op in get("manifest", container.manifest, "ops"):
        for key in ("plan", "shape_plan", "gpu_plan", "gpu_shape_plan"):
            if name := get("op", op, key):
                if not container.find(name):
                    raise Refused(f"has no section '{name}'")
                bytecode.load(container.contents(name))
    for instance in get("manifest", container.manifest, "instances"):
        if instance["target"] == target:
            functions = host_object.functions_of(container.contents(instance["section"]))
            if instance["symbol"] not in functions:
                raise Refused(f"has no function '{instance['symbol']}'")
    return container
