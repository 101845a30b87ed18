"""Replaces calls of functions that layers make in their forwards, where that is right and not slower.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import nn

from kpkg import _passes
from kpkg._call_forms import Call
from kpkg._calls import Place
from kpkg._default import ops
from kpkg._injection import Injection, Replacement, Row, reason_of, use
from kpkg._samples import Calls, Samples


def replace_calls(injection: Injection, samples: Samples) -> None:
    """Replaces calls where that is right and not slower; adds rows, in the order of the calls.

    Layers that were replaced as a whole, and calls that launches make instead, get no rows.
    """
    present = set(injection.model.modules())
    places = {calls.owner: Place(calls.owner) for calls in samples.calls.values()}
    checked: dict[Any, Row] = {}
    for calls in samples.calls.values():
        if calls.owner not in present or sum(calls.counts.values()) <= _in_launches(calls.owner)[calls.call.name]:
            continue
        row = Row(calls.name, f"{calls.call.name}()", f"kpkg {calls.call.name}", "", _ops=calls.call.ops)
        injection.rows.append(row)
        place = places[calls.owner]
        if injection.is_compiled and not calls.call.when_compiled:
            row.status = "kept: torch.compile fuses it with its neighbours"
        elif not place.is_free:
            row.status = "kept: its forward was replaced by something else"
        elif _is_better(injection, row, calls, samples, checked):
            row.status = "replaced"
            inner = [places[each] for each in calls.owner.modules() if each in places and each is not calls.owner]
            use(row, _within(place, calls.call, inner))


def _in_launches(owner: nn.Module) -> Counter[str]:
    """Counts, by name, the calls of functions that launches in the owner's forward replace."""
    block = owner.__dict__.get("_kpkg_block")
    found: Counter[str] = Counter()
    for chain in block.launches if block is not None else ():
        if hasattr(chain, "functions"):
            found.update(chain.functions)
    return found


def _within(place: Place, call: Call, inner: list[Place]) -> Replacement:
    """Returns the replacement of calls that the owner of the place makes, but not of calls in layers within."""
    own = Replacement(lambda: place.put(call), lambda: place.take_out(call))
    return Replacement.of(own, *(Replacement(each.hold, each.release) for each in inner))


def _is_better(injection: Injection, row: Row, calls: Calls, samples: Samples, checked: dict[Any, Row]) -> bool:
    """Returns whether the op is right for all calls and in all not slower; the row gets the times of all calls."""
    absent = [op for op in calls.call.ops if not ops[op].is_available]
    if absent:
        row.status = f"kept: {ops[absent[0]].reason}"
        return False
    total, mine, error = 0.0, 0.0, 0.0
    for key, count in calls.counts.items():
        if (key, calls.owner.training) not in checked:
            checked[key, calls.owner.training] = _check(injection, row, calls, key, samples)
        one = checked[key, calls.owner.training]
        if one.status:
            row.status, row.error = one.status, one.error
            return False
        total, mine = total + count * (one.original_us or 0.0), mine + count * (one.kpkg_us or 0.0)
        error = max(error, one.error or 0.0)
    row.original_us, row.kpkg_us, row.error = total, mine, error
    return injection._has_time(row)


def _check(injection: Injection, like: Row, calls: Calls, key: Any, samples: Samples) -> Row:
    """Returns a row for one call: its error and times.

    Its status is the reason why the op may not replace the call, or empty.
    """
    row = Row(like.name, like.layer, like.replacement, "", _ops=like._ops)
    plain, args, kwargs = samples.arguments[key]
    used = [op for name in calls.call.ops if (op := ops[name].op) is not None]
    fallbacks = sum(op.stats()["fallbacks"] for op in used)

    def iteration(function: Callable[..., Any]) -> Callable[[], Any]:
        return _passes.iteration(calls.owner, lambda: function(*args, **kwargs), (args, kwargs))

    original, replacement = iteration(plain), iteration(calls.call.run)
    try:
        found = _passes.repeatable(replacement)
    except Exception as error:  # the ops refuse this form of the call
        row.status = reason_of(error)
        return row
    if found is NotImplemented:
        row.status = "kept: no op computes this form of the call"
    elif sum(op.stats()["fallbacks"] for op in used) > fallbacks:
        row.status = "kept: no kernel for its dtype and device"
    elif injection._agrees(row, found, _passes.repeatable(original)):
        if injection.graphs:
            injection._prewarm(row._ops)
        row.original_us, row.kpkg_us = injection._times(key, original, replacement)
    return row
