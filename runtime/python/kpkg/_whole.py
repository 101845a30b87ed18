"""Checks whether a model as a whole is right and not slower with its replacements.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kpkg import _measure, _passes
from kpkg._injection import Injection, Row
from kpkg._measure import compare
from kpkg._samples import call

# The greatest error of a model's output, relative to its largest element, where rounding alone moves it so far.
_MOST = 0.5
# If so many replacements of a kind break the model, all of the kind are undone.
_SAME_CULPRITS = 3
# The ratio of an iteration's time to the host's time above which the GPU hides the host's time.
_HIDDEN = 1.1
# The ratio of times up to which a slower result may be due to other work of the host.
_DOUBTFUL = 1.1
# Seconds to spend on timing a model with and without replacements.
_TWO_MODELS = 0.15


def check_model(injection: Injection, sample: Any, expected: Any) -> None:
    """Compares the model's output, and keeps only kinds of replacements with which the whole model is not slower.

    A layer is timed alone, and a function without the cost of watching for its calls. In the model, either may cost
    more than it gains.
    """
    with torch.no_grad():
        undo_what_breaks(injection, sample, expected)
        kinds: dict[str, list[Row]] = {}
        for row in injection.replaced:
            kinds.setdefault(row.layer, []).append(row)

        def gain(kind: str) -> float:
            return sum((row.original_us or 0.0) - (row.kpkg_us or 0.0) for row in kinds[kind])

        if kinds:
            injection.original_us, injection.kpkg_us = _compared(injection, sample, injection.replaced)
        if injection.is_compiled:  # another choice would need another compilation
            kinds = {}
        for kind in sorted(kinds, key=lambda kind: (not kind.endswith("()"), gain(kind))):
            is_slower = (injection.kpkg_us or 0.0) > (injection.original_us or 0.0)
            if not kind.endswith("()") and not is_slower:
                break
            without, with_it = _compared(injection, sample, kinds[kind])
            if with_it > without:
                for row in kinds[kind]:
                    injection._take_out(row, "kept: the model as a whole is slower with it")
                injection.original_us, injection.kpkg_us = _compared(injection, sample, injection.replaced)
        if injection.replaced and (injection.kpkg_us or 0.0) > (injection.original_us or 0.0):
            for row in reversed(injection.replaced):
                injection._take_out(row, "kept: the model as a whole is slower with them all")
        if not injection.replaced:
            injection.original_us = injection.kpkg_us = injection._iterations(
                _passes.iteration(injection.model, lambda: call(injection.called, sample)), None
            )[0]
        injection.error, _ = compare(_passes.repeatable(lambda: call(injection.called, sample)), expected, None)


def keeps_busy(injection: Injection, sample: Any) -> bool:
    """Returns whether iterations of the model wait for a GPU and not for the host, whose time then does not count."""
    if not injection.on_gpu or injection.graphs or injection.is_compiled:
        return False
    run = _passes.iteration(injection.model, lambda: call(injection.called, sample))
    for _ in range(2):
        run()
    host = min(_measure.issued(run) for _ in range(3))
    return injection._iterations(run, None, seconds=0.2, rounds=3)[0] > _HIDDEN * host * 1e6


def undo_what_breaks(injection: Injection, sample: Any, expected: Any) -> None:
    """Undoes replacements with which the model raises or gives another output.

    Each of them is right by itself. Other code may read an input that a layer overwrote, or a convolution's result
    before its norm. It may also need results in another memory format.
    """
    trial = _Trial(injection, sample, expected)
    culprits: dict[str, int] = {}
    reason = trial.problem()
    while reason is not None and injection.replaced:
        found = trial.first_wrong(reason)
        if found is None:
            return
        row, reason = found
        culprits[row.layer] = culprits.get(row.layer, 0) + 1
        all_of_it = culprits[row.layer] == _SAME_CULPRITS
        for each in reversed([r for r in injection.replaced if r is row or all_of_it and r.layer == row.layer]):
            injection._take_out(each, f"kept: {reason}")
        reason = trial.problem()


class _Trial:
    """Runs a model with the first of its replacements; outside of its functions, all are in."""

    def __init__(self, injection: Injection, sample: Any, expected: Any) -> None:
        self.injection, self.sample, self.expected = injection, sample, expected
        self._rounding: float | None = None

    def problem(self) -> str | None:
        """Returns the error of the model as it is now; None if there is none."""
        injection = self.injection
        try:
            if _passes.is_trained(injection.model):
                _passes.iteration(injection.model, lambda: call(injection.model, self.sample))()
            found = _passes.repeatable(lambda: call(injection.model, self.sample))
        except Exception as error:  # a model may raise anything for a result that it does not expect
            text = str(error).strip().partition("\n")[0]
            return f"the model raises {type(error).__name__} with it: {text[:160]}"
        found_error, allowed = compare(found, self.expected, None)
        if found_error <= max(allowed, injection._tolerance or 0.0):
            return None
        if found_error < _MOST and found_error <= self._allowed_by_rounding():
            return None
        return "the model's output differs with it"

    def _allowed_by_rounding(self) -> float:
        """Returns how far rounding alone may move the original's output.

        Consecutive layers amplify small differences.
        """
        if self._rounding is None:
            rows = self.injection.replaced
            _switch(rows, False)
            run = _passes.repeatable(lambda: _rounded_anew(self.injection.model, self.sample))
            _switch(rows, True)
            self._rounding = min(2 * compare(run, self.expected, None)[0], _MOST)
        return self._rounding

    def first_wrong(self, reason: str) -> tuple[Row, str] | None:
        """Returns the first replacement with which the model is wrong, put in after those before it; and the reason.

        Returns None if the model is wrong without any.
        """
        rows = self.injection.replaced
        right, wrong, inside = 0, len(rows), len(rows)

        def have(count: int) -> None:
            nonlocal inside
            _switch(rows[count:inside], False)
            _switch(rows[inside:count], True)
            inside = count

        try:
            have(0)
            if self.problem() is not None:
                return None
            while wrong - right > 1:
                have((right + wrong) // 2)
                found = self.problem()
                if found is None:
                    right = inside
                else:
                    wrong, reason = inside, found
        finally:
            have(len(rows))
        return rows[wrong - 1], reason


def _switch(rows: list[Row], is_in: bool) -> None:
    for row in rows if is_in else reversed(rows):
        assert row._replacement is not None, "it was in the model"
        (row._replacement.put if is_in else row._replacement.take_out)()


def _rounded_anew(model: nn.Module, sample: Any) -> Any:
    """Returns the model's output if each layer's result is rounded in another way.

    Results are moved by at most half of a resolution. That is the dtype's, 8 times as much for float32 and float64, and
    TF32's for float32 on GPUs.
    """

    def move(layer: Any, args: Any, output: Any) -> Any:
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return output
        resolution = torch.finfo(output.dtype).eps
        if output.dtype in (torch.float32, torch.float64):  # sums in another order differ by more than the resolution
            resolution *= 8
        if output.dtype == torch.float32 and output.device.type == "cuda":
            resolution = 2.0**-10  # of TF32, in which tensor cores multiply where PyTorch allows it
        exact = output.to(torch.promote_types(output.dtype, torch.float32))
        return (exact * (1.0 + resolution * (torch.rand_like(exact) - 0.5))).to(output.dtype)

    hooks = [layer.register_forward_hook(move) for layer in model.modules() if next(layer.children(), None) is None]
    try:
        return call(model, sample)
    finally:
        for hook in hooks:
            hook.remove()


def _compared(injection: Injection, sample: Any, rows: list[Row]) -> tuple[float, float]:
    """Returns the microseconds of the model without and with these replacements, which are in it now."""

    are_in = True

    def switch_if_other(wanted: int) -> None:
        nonlocal are_in
        if are_in != bool(wanted):
            are_in = bool(wanted)
            _switch(rows, are_in)

    run = _passes.iteration(injection.model, lambda: call(injection.called, sample))
    try:
        without, with_it = injection._iterations(run, run, seconds=_TWO_MODELS, switch=switch_if_other)
        if without < with_it < _DOUBTFUL * without:  # measured again: other work of the host may have caused it
            without, with_it = injection._iterations(run, run, seconds=3 * _TWO_MODELS, switch=switch_if_other)
        return without, with_it
    finally:
        switch_if_other(1)
