"""How PyTorch treats an op: what its package declares by `@register.torch`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple


class TorchRules(NamedTuple):
    """The declaration of one op; a word of a later version counts as none."""

    #: By "cpu" and "cuda": "lower", "float32", "promote", "first" or "keep".
    autocast: Mapping[str, str] = {}
    #: "elementwise", "last", "along", "trailing", "product" or "linear"; "" where nothing is said.
    dimensions: str = ""
    #: The argument that names the dimension of "along", or the extents of "trailing".
    extent: str = ""
    #: "default" or "int_to_float"; "" for an op whose operands must have one dtype.
    promotion: str = ""
    #: The source of PyTorch's implementation, "" without one.
    fallback: str = ""

    @staticmethod
    def parse(text: str) -> TorchRules:
        """The rules in the JSON that the runtime gives; those of "" say nothing."""
        record = json.loads(text) if text else {}
        dimensions, _, extent = record.get("dimensions", "").partition(" ")
        return TorchRules(
            record.get("autocast", {}), dimensions, extent, record.get("promotion", ""), record.get("fallback", "")
        )
