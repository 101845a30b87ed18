"""Reads and writes canonical JSON.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from format_reader.page import Refused

MOST_NESTED = 32
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)


POINT = re.compile(r"-?(0|[1-9]\d*)\.(0|\d*[1-9])")
EXPONENT = re.compile(r"-?[1-9](\.\d*[1-9])?e[+-]\d{2,3}")
MOST_DIGITS = 17


class Written(float):
    """A float with its text, whose digits need not be the fewest."""

    def __new__(cls, text: str) -> Written:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def spelling(self) -> str:
        """Returns the text if only its digits differ from the usual spelling."""
        form = POINT if self == 0 or 1e-4 <= abs(self) < 1e15 else EXPONENT
        digits = re.sub(r"e.*|[-.]", "", self.text).lstrip("0")
        return self.text if form.fullmatch(self.text) and len(digits) <= MOST_DIGITS else spelled_float(self)


def spelled_float(value: float) -> str:
    """Spells a float as the page says: with a point from 1e-4 to before 1e15, else with an exponent."""
    if not math.isfinite(value):
        raise Refused("the manifest holds a number that is not finite")
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        return float.__repr__(value)
    digits, exponent = f"{float.__repr__(value)}e".split("e")[:2]
    if not exponent:  # Python has no exponent below 1e16
        whole, _, fraction = digits.lstrip("-").partition(".")
        figures = (whole + ("" if fraction == "0" else fraction)).rstrip("0")
        sign = "-" if value < 0 else ""
        point = "." + figures[1:] if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{point}e+{len(whole) - 1}"
    return f"{digits}e{exponent}"


def write(value: Any) -> str:
    """Returns the one spelling of a value."""
    match value:
        case dict():
            return "{" + ",".join(f"{write(key)}:{write(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(write, value)) + "]"
        case Written():
            return value.spelling()
        case float():
            return spelled_float(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def depth(text: str) -> int:
    """Returns how deep lists and objects of a text are nested, without building them."""
    deepest = now = 0
    for char in STRING.sub("", text):
        now += (char in "[{") - (char in "]}")
        deepest = max(deepest, now)
    return deepest


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object of its keys, unless one of them is there twice."""
    made = dict[str, Any]()
    for key, value in pairs:
        if key in made:
            raise Refused(f"the manifest has the key '{key}' twice in one object")
        made[key] = value
    return made


def integer(text: str) -> int | float:
    """Returns an integer of 64 bits, with or without a sign; others are floats."""
    value = int(text)
    return value if -(2**63) <= value < 2**64 else float(text)


def no_constant(text: str) -> Any:
    raise Refused(f"the manifest is not JSON: {text} is no value")


NUMBERS = {"parse_int": integer, "parse_float": Written, "parse_constant": no_constant}


def read(data: bytes) -> Any:
    """Returns the value of a text, which must be its one spelling."""
    try:
        text = data.decode()
        if depth(text) > MOST_NESTED:
            raise Refused(f"the manifest is nested deeper than {MOST_NESTED}")
        value = json.loads(text, object_pairs_hook=unique, **NUMBERS)
        if any(math.isinf(item) for item in floats(value)):
            raise Refused("the manifest is not JSON: a number is out of range")
        spelling = write(value).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"the manifest is not JSON: {error}") from None
    if spelling != data:
        raise Refused("the manifest is not canonical JSON")
    return value


def floats(value: Any) -> list[float]:
    """Returns all floats of a value."""
    if isinstance(value, float):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in inner for number in floats(item)]
