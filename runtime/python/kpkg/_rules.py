"""Parses rules for PyTorch's treatment of an op, which its package declares by `@register.torch`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple


class TorchRules(NamedTuple):
    """The declaration of one op. Words of later versions are ignored."""

    #: By "cpu" and "cuda": "lower", "float32", "promote", "first" or "keep".
    autocast: Mapping[str, str] = {}
    #: "elementwise", "last", "along", "trailing", "product" or "linear", or "" if not declared.
    dimensions: str = ""
    #: The argument that names the dimension of "along", or the extents of "trailing".
    extent: str = ""
    #: "default", "int_to_float" or "first", or "" for an op whose operands must have one dtype.
    promotion: str = ""
    #: The source of PyTorch's implementation, or "".
    fallback: str = ""

    @staticmethod
    def parse(text: str) -> TorchRules:
        """Parses the runtime's JSON. An empty text has no rules."""
        record = json.loads(text) if text else {}
        dimensions, _, extent = record.get("dimensions", "").partition(" ")
        return TorchRules(
            record.get("autocast", {}), dimensions, extent, record.get("promotion", ""), record.get("fallback", "")
        )
