"""Computes with lists of Int and lists of tensors, which never change.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from format_reader import views
from format_reader.views import Failed


@dataclass(frozen=True)
class Tensors:
    """A list of tensors: views, or None where one is absent."""

    items: tuple[Any, ...]


def entry(items: tuple[Any, ...], index: int) -> int:
    """Returns the place of an index that may count from the end."""
    if not -len(items) <= index < len(items):
        raise Failed(f"index {index} is out of range for the list")
    return index % len(items)


def replaced(items: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    at = entry(items, index)
    return (*items[:at], value, *items[at + 1 :])


LISTS: dict[str, Callable[..., Any]] = {
    "list": lambda *items: items,
    "list_len": len,
    "list_get": lambda items, index: items[entry(items, index)],
    "list_set": replaced,
    "list_append": lambda items, item: (*items, item),
    "list_concat": lambda a, b: a + b,
    "list_slice": lambda items, start, stop: items[start:stop],
    "list_eq": lambda a, b: a == b,
    "broadcast_shapes": views.broadcast,
}


TENSOR_LISTS: dict[str, Callable[..., Any]] = {
    "tensors": lambda *items: Tensors(items),
    "tensors_len": lambda a: len(a.items),
    "tensors_get": lambda a, index: a.items[entry(a.items, index)],
    "tensors_append": lambda a, item: Tensors((*a.items, item)),
    "tensors_concat": lambda a, b: Tensors(a.items + b.items),
    "tensors_slice": lambda a, start, stop: Tensors(a.items[start:stop]),
}
