"""Checks a bundle of kpkg-random-device-kernels without a GPU.

Tests what test/device/random_kernels.py reads from the bundle, and which errors it reports.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "device"))
from random_kernels import Call, cta_counts


def filled(call: Call) -> bytearray:
    """Returns the memory that a correct kernel leaves."""
    memory = bytearray(call.initial)
    for place, argument in zip(call.places, call.entry["arguments"]):
        if "expected" in argument:
            expected = call.part(argument["expected"])
            memory[place : place + len(expected)] = expected
    return memory


def check(call: Call) -> int:
    """Returns how many mistakes were tried."""
    memory = filled(call)
    assert call.difference(bytes(memory)) is None
    assert len(call.words(0)) == 3 + sum(1 if "word" in a else 1 + 2 * len(a["shape"]) for a in call.entry["arguments"])
    mistakes = 0
    for place, argument in zip(call.places, call.entry["arguments"]):
        if place is None:
            continue
        before = bytearray(memory)
        before[place - 1] ^= 1
        assert "must not" in call.difference(bytes(before))
        first = bytearray(memory)
        first[place : place + argument["bytes"]] = bytes(
            byte ^ 0x41 for byte in first[place : place + argument["bytes"]]
        )
        if "expected" not in argument or "allowed" not in argument:
            assert call.difference(bytes(first)), argument
            mistakes += 1
    for code in call.entry["code"]:
        assert call.part(code["image"])[:4] == b"\x7fELF"
        assert all(count > 0 for count in cta_counts(code, call.entry["grid"], 132))
    return mistakes


def main() -> int:
    kernels = mistakes = 0
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        data = zlib.decompress(path.with_suffix(".bin").read_bytes())
        for entry in json.loads(path.read_text()):
            kernels += 1
            mistakes += check(Call(entry, data))
    print(f"{kernels} kernels, {mistakes} mistakes in their results found")
    return 0 if kernels and mistakes else 1


if __name__ == "__main__":
    sys.exit(main())
