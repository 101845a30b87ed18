"""Whether a model as a whole is right and not slower with its replacements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kpkg import _measure, _passes
from kpkg._injection import NOISE, Injection, Row
from kpkg._measure import compare
from kpkg._samples import call


def check_model(injection: Injection, sample: Any, expected: Any) -> None:
    """Compares the model's output, and keeps only kinds of replacements with which the model as a whole is not slower.

    A layer is timed alone, and a function without what it costs to watch for its calls: in the model either may cost more than it gains.
    """
    model = injection.model
    with torch.no_grad():
        for group in ([row for row in injection.replaced if row._is_inplace], [row for row in injection.replaced if row.is_fold]):
            _check_together(injection, group, sample, expected)
        kinds: dict[str, list[Row]] = {}
        for row in injection.replaced:
            kinds.setdefault(row.layer, []).append(row)

        def gain(kind: str) -> float:
            return sum((row.original_us or 0.0) - (row.kpkg_us or 0.0) for row in kinds[kind])

        if kinds:
            injection.original_us, injection.kpkg_us = _compared(model, sample, injection.replaced)
        for kind in sorted(kinds, key=lambda kind: (not kind.endswith("()"), gain(kind))):
            is_slower = (injection.kpkg_us or 0.0) > (injection.original_us or 0.0)
            if not kind.endswith("()") and not is_slower:
                break
            without, with_it = _compared(model, sample, kinds[kind])
            if with_it > without:
                for row in kinds[kind]:
                    injection._take_out(row, "kept: the model as a whole is slower with it")
                injection.original_us, injection.kpkg_us = _compared(model, sample, injection.replaced)
        if injection.replaced and (injection.kpkg_us or 0.0) > (injection.original_us or 0.0) * NOISE:
            for row in reversed(injection.replaced):
                injection._take_out(row, "kept: the model as a whole is slower with them all")
        if not injection.replaced:
            injection.original_us = injection.kpkg_us = _measure.interleaved(_passes.iteration(model, lambda: call(model, sample)), None)[0]
        injection.error, _ = compare(_passes.repeatable(lambda: call(model, sample)), expected, None)


def _check_together(injection: Injection, rows: list[Row], sample: Any, expected: Any) -> None:
    """Undoes replacements with which the model is wrong though each of them is right: something else has read what a layer wrote over its input, or what a convolution gave to its norm."""
    error, allowed = compare(_passes.repeatable(lambda: call(injection.model, sample)), expected, None) if rows else (0.0, 0.0)
    if error <= allowed:
        return
    for row in reversed(rows):
        injection._take_out(row, "kept: the model's output differs with it")
    without, _ = compare(_passes.repeatable(lambda: call(injection.model, sample)), expected, None)
    if without > error / 2:  # it differs for other reasons
        for row in rows:
            row.status = "replaced"
            assert row._replacement is not None, "it was in the model"
            row._replacement.put()


def _compared(model: nn.Module, sample: Any, rows: list[Row]) -> tuple[float, float]:
    """Microseconds of the model without these replacements, which are in it now, and with them."""

    def switch(with_them: int) -> None:
        for row in rows:
            assert row._replacement is not None, "only what is replaced is compared"
            (row._replacement.put if with_them else row._replacement.take_out)()

    with_them = True

    def switch_if_other(wanted: int) -> None:
        nonlocal with_them
        if with_them != bool(wanted):
            switch(wanted)
            with_them = bool(wanted)

    run = _passes.iteration(model, lambda: call(model, sample))
    try:
        return _measure.interleaved(run, run, seconds=0.3, switch=switch_if_other)
    finally:
        switch_if_other(1)
