"""Whether a model as a whole is right and not slower with its replacements.

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

# By how much of its largest element the output of a model may differ where rounding alone moves it so far.
_MOST = 0.5
# So many replacements of a kind that break the model take all of the kind with them.
_SAME_CULPRITS = 3
# How much longer than it keeps the host an iteration takes if the GPU hides the host's time.
_HIDDEN = 1.1
# How much slower may be due to something else that the host does.
_DOUBTFUL = 1.1
# Seconds for the times of a model with and without replacements.
_TWO_MODELS = 0.15


def check_model(injection: Injection, sample: Any, expected: Any, tolerance: float | None = None) -> None:
    """Compares the model's output, and keeps only kinds of replacements with which the model as a whole is not slower.

    A layer is timed alone, and a function without what it costs to watch for its calls: in the model either may cost
    more than it gains.
    """
    with torch.no_grad():
        undo_what_breaks(injection, sample, expected, tolerance)
        kinds: dict[str, list[Row]] = {}
        for row in injection.replaced:
            kinds.setdefault(row.layer, []).append(row)

        def gain(kind: str) -> float:
            return sum((row.original_us or 0.0) - (row.kpkg_us or 0.0) for row in kinds[kind])

        if kinds:
            injection.original_us, injection.kpkg_us = _compared(injection, sample, injection.replaced)
        if injection.is_compiled:  # another choice would have to be compiled
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
    """Whether iterations of the model wait for a GPU and not for the host, whose time then does not count."""
    if not injection.on_gpu or injection.graphs or injection.is_compiled:
        return False
    run = _passes.iteration(injection.model, lambda: call(injection.called, sample))
    for _ in range(2):
        run()
    host = min(_measure.issued(run) for _ in range(3))
    return injection._iterations(run, None, seconds=0.2, rounds=3)[0] > _HIDDEN * host * 1e6


def undo_what_breaks(injection: Injection, sample: Any, expected: Any, tolerance: float | None) -> None:
    """Takes out replacements with which the model raises or gives another output.

    Each of them is right by itself.

    Something else has read what a layer wrote over its input or what a convolution gave to its norm, or needs results
    in another order of memory.
    """
    trial = _Trial(injection, sample, expected, tolerance)
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
    """Forwards of a model with the first of its replacements, of which all are in outside of its functions."""

    def __init__(self, injection: Injection, sample: Any, expected: Any, tolerance: float | None) -> None:
        self.injection, self.sample, self.expected, self.tolerance = injection, sample, expected, tolerance or 0.0
        self._rounding: float | None = None

    def problem(self) -> str | None:
        """What is wrong with the model as it is now; None where nothing is."""
        injection = self.injection
        try:
            if _passes.is_trained(injection.model):
                _passes.iteration(injection.model, lambda: call(injection.model, self.sample))()
            found = _passes.repeatable(lambda: call(injection.model, self.sample))
        except Exception as error:  # whatever a model does with a result that is not as it was
            text = str(error).strip().partition("\n")[0]
            return f"the model raises {type(error).__name__} with it: {text[:160]}"
        found_error, allowed = compare(found, self.expected, None)
        if found_error <= max(allowed, self.tolerance):
            return None
        if found_error < _MOST and found_error <= self._allowed_by_rounding():
            return None
        return "the model's output differs with it"

    def _allowed_by_rounding(self) -> float:
        """By how much the output of the original may differ since layers that follow each other make much of little."""
        if self._rounding is None:
            rows = self.injection.replaced
            _switch(rows, False)
            run = _passes.repeatable(lambda: _rounded_anew(self.injection.model, self.sample))
            _switch(rows, True)
            self._rounding = min(2 * compare(run, self.expected, None)[0], _MOST)
        return self._rounding

    def first_wrong(self, reason: str) -> tuple[Row, str] | None:
        """The replacement with which, put in after those before it, the model is wrong; and why.

        None where it is wrong without any.
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
    """The model's output if each layer's result is rounded in another way.

    Results are moved by at most half of the dtype's resolution.
    """

    def move(layer: Any, args: Any, output: Any) -> Any:
        if not isinstance(output, torch.Tensor) or not output.is_floating_point():
            return output
        resolution = torch.finfo(output.dtype).eps
        if output.dtype in (torch.float32, torch.float64):  # which sums of other orders differ by, too
            resolution *= 8
        if output.dtype == torch.float32 and output.device.type == "cuda":
            resolution = 2.0**-10  # of what tensor cores multiply where PyTorch lets them
        exact = output.to(torch.promote_types(output.dtype, torch.float32))
        return (exact * (1.0 + resolution * (torch.rand_like(exact) - 0.5))).to(output.dtype)

    hooks = [layer.register_forward_hook(move) for layer in model.modules() if next(layer.children(), None) is None]
    try:
        return call(model, sample)
    finally:
        for hook in hooks:
            hook.remove()


def _compared(injection: Injection, sample: Any, rows: list[Row]) -> tuple[float, float]:
    """Microseconds of the model without these replacements, which are in it now, and with them."""

    def switch(with_them: int) -> None:
        _switch(rows, bool(with_them))

    with_them = True

    def switch_if_other(wanted: int) -> None:
        nonlocal with_them
        if with_them != bool(wanted):
            switch(wanted)
            with_them = bool(wanted)

    run = _passes.iteration(injection.model, lambda: call(injection.called, sample))
    try:
        without, with_it = injection._iterations(run, run, seconds=_TWO_MODELS, switch=switch_if_other)
        if without < with_it < _DOUBTFUL * without:  # looked at twice: hosts have other things to do
            without, with_it = injection._iterations(run, run, seconds=3 * _TWO_MODELS, switch=switch_if_other)
        return without, with_it
    finally:
        switch_if_other(1)
