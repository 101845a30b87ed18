"""Declares what rules for transformations of JAX see of a function.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kpkg._op import Op

#: Values of a call: one per argument of the schema, with a mark for an array.
Values = tuple[Any, ...]


class Transformed(Protocol):
    """An op as a function of JAX."""

    op: Op

    @property
    def gradient(self) -> Transformed | None:
        """Returns the function that computes this one's gradients."""

    @property
    def differentiates(self) -> Transformed | None:
        """Returns the function whose gradients this one computes."""

    def apply(self, given: list[Any]) -> tuple[Any, ...]:
        """Calls the op with a value for each argument: an array, None or a hashable value. Returns all results."""

    def traced(self, values: Values) -> Callable[..., Any]:
        """Returns the function of the tensors alone."""
