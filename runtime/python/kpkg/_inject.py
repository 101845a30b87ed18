"""Replaces layers of a model by kpkg's, where that is right and not slower.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _adapted, _chains, _folding, _fused
from kpkg._measure import compare, interleaved
from kpkg.nn import Layer

# How much slower, by the clock, still counts as not slower.
_NOISE = 1.03


@dataclass
class Row:
    """What became of one layer, or of one function that a layer calls. Times in microseconds; None where nothing was measured."""

    name: str
    layer: str
    replacement: str
    status: str
    error: float | None = None
    original_us: float | None = None
    kpkg_us: float | None = None
    #: Whether the row stands for a batch norm folded into a convolution, or for a launch that does what follows a convolution too.
    is_fold: bool = False

    # Whether the original writes its result over its input.
    _is_inplace: bool = field(default=False, repr=False, compare=False)
    # What puts the replacement where the original is, and back.
    _replacement: _Replacement | None = field(default=None, repr=False, compare=False)

    @property
    def is_replaced(self) -> bool:
        """Whether kpkg runs there now."""
        return self.status.startswith("replaced")


@dataclass
class _Replacement:
    put: Callable[[], None]
    take_out: Callable[[], None]


class Injection:
    """What ``inject`` did: ``print(injection)`` shows the table, ``restore()`` undoes it, also at the end of a ``with`` block.

    rows: a Row for each layer that could be replaced. error, original_us, kpkg_us: of the whole model, None without a sample.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.rows: list[Row] = []
        self.error: float | None = None
        self.original_us: float | None = None
        self.kpkg_us: float | None = None

    @property
    def replaced(self) -> list[Row]:
        """The rows of what runs kpkg now."""
        return [row for row in self.rows if row.is_replaced]

    def restore(self) -> None:
        """Puts the original layers back. What was trained meanwhile stays: they share their parameters."""
        for row in reversed(self.replaced):
            self._take_out(row, "restored")

    def _take_out(self, row: Row, status: str) -> None:
        assert row._replacement is not None, "only what is replaced is taken out"
        row._replacement.take_out()
        row.status = status

    def __enter__(self) -> Injection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.restore()

    def __str__(self) -> str:
        heads = ("layer", "type", "replacement", "error", "original us", "kpkg us", "")
        lines = [
            (row.name, row.layer, row.replacement, _number(row.error, ".1e"), _number(row.original_us, ".1f"), _number(row.kpkg_us, ".1f"), row.status)
            for row in self.rows
        ]
        total = ("(model)", type(self.model).__name__, "", _number(self.error, ".1e"), _number(self.original_us, ".1f"), _number(self.kpkg_us, ".1f"), "")
        lines.append((*total[:-1], f"{len(self.replaced)} of {len(self.rows)} replaced"))
        widths = [max(len(line[i]) for line in (heads, *lines)) for i in range(len(heads))]
        table = ["  ".join(f"{text:{'>' if 3 <= i <= 5 else '<'}{widths[i]}}" for i, text in enumerate(line)).rstrip() for line in (heads, *lines)]
        if self.original_us is not None and self.kpkg_us is not None:
            table.append(f"Original {self.original_us / 1000:.3f} ms / iter")
            table.append(f"kpkg     {self.kpkg_us / 1000:.3f} ms / iter, outputs differ by {_number(self.error, '.1e')}")
        return "\n".join(table)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


def inject(
    model: nn.Module,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    sample_input: Any = None,
    tolerance: float | None = None,
    verbose: bool = True,
) -> Injection:
    """Replaces layers of `model`, in place, by kpkg's drop-in layers.

        with kpkg.inject(model, sample_input=x) as injection:
            y = model(x)
        # the original layers are back

    With a sample, a batch norm behind a convolution is folded into it where neither is in training mode; calls that train them, by mode or by recording gradients of
    their parameters, run both. Where the forward of a layer shows (as torch.fx traces it) that a sum or a ReLU, SiLU or GELU follows, one launch does that too, unless
    gradients are recorded or a layer between has hooks. Candidates are the layers of torch.nn that `kpkg.nn` has, RMS norms and activations of Hugging Face's models, and calls of torch.bmm and
    scaled_dot_product_attention within layers. Parameters, buffers and hooks are shared with the original layers. Layers of a subclass,
    with a forward of their own, or with a dtype or device that no package has a kernel for are left alone; the table says why.

    include, exclude: patterns of layer names ("encoder.*"), as in fnmatch, or names of layer types ("Linear"). Default: all, and none.
    sample_input: arguments of the model: a tensor, a tuple of positional ones or a dict of named ones. With it, each layer's output is
        compared with the original's, original and replacement are timed on the inputs that they get within the model, and only what is right
        and at least as fast stays. Without it, everything that has a kernel is replaced, unchecked.
    tolerance: greatest error, relative to the largest element of the original output. Default: by dtype, 1e-4 for float32, 1e-9 for float64,
        4e-3 for float16, 3e-2 for bfloat16.
    verbose: print the table.

    Raises what the model raises on `sample_input`.
    """
    injection = Injection(model)
    included, excluded = _patterns(include), _patterns(exclude)

    def wanted(name: str, kind: str) -> bool:
        def matches(patterns: list[str]) -> bool:
            return any(fnmatch.fnmatchcase(name, p) or kind == p for p in patterns)

        return (include is None or matches(included)) and not matches(excluded)

    layers = [(name, layer) for name, layer in model.named_modules() if _adapted.counterpart(type(layer)) and wanted(name, type(layer).__name__)]
    samples = None if sample_input is None else _take_samples(model, sample_input, dict(layers), wanted)
    timed: dict[Any, tuple[float, float]] = {}
    done: set[str] = set()
    for name, found in _traced(model, samples, dict(layers), wanted) if samples is not None else ():
        assert samples is not None, "chains are timed with samples"
        done.update(_fuse_all(injection, name, found, samples, tolerance))
    for pair in samples.pairs(dict(layers)) if samples is not None else ():
        assert samples is not None, "pairs are found in samples"
        if pair[0] in done:
            continue
        row = _fold(injection, pair, dict(layers), samples, tolerance)
        injection.rows.append(row)
        done.update(pair if row.is_replaced else ())
    for name, layer in layers:
        if name in done:
            continue
        injection.rows.append(_replace_layer(injection, name, layer, samples, tolerance, timed))
    for name, owner, function, calls in samples.calls if samples is not None else ():
        injection.rows.append(_replace_calls(injection, name, owner, function, calls, tolerance))
    if samples is not None:
        _check_model(injection, sample_input, samples.output)
    if verbose:
        print(injection)
    return injection


def _patterns(given: str | Iterable[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _call(model: nn.Module, sample: Any) -> Any:
    if isinstance(sample, dict):
        return model(**sample)
    return model(*sample) if isinstance(sample, tuple) else model(sample)


class _Samples:
    """What the layers of a model get in one forward: their first inputs, and the calls of functions that they make themselves."""

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.calls: list[tuple[str, nn.Module, Callable[..., Any], list[tuple[Any, Any]]]] = []
        self.output: Any = None
        self.behind: dict[str, str] = {}  # by the name of a layer: of the convolution whose result it got
        self.count: dict[str, int] = {}

    def pairs(self, layers: dict[str, nn.Module]) -> list[tuple[str, str]]:
        """Names of convolutions and of the batch norms that may be folded into them."""
        return [
            (first, second)
            for second, first in self.behind.items()
            if first in layers and second in layers and self.count[first] == self.count[second] == 1 and _folding.folds(layers[first], layers[second])
        ]


def _kept(value: Any) -> Any:
    return value.detach().clone(memory_format=torch.preserve_format) if isinstance(value, Tensor) else value


def _take_samples(model: nn.Module, sample: Any, layers: dict[str, nn.Module], wanted: Callable[[str, str], bool]) -> _Samples:
    samples = _Samples()
    inside: list[tuple[str, nn.Module]] = []
    calls: dict[tuple[str, Any], int] = {}
    last: tuple[str, Any] = ("", None)  # the leaf that has run last, and its output

    def enter(name: str) -> Callable[..., None]:
        def hook(layer: nn.Module, args: Any, kwargs: Any) -> None:
            inside.append((name, layer))
            samples.count[name] = samples.count.get(name, 0) + 1
            if args and args[0] is last[1]:
                samples.behind[name] = last[0]
            if name in layers and name not in samples.inputs:
                samples.inputs[name] = tuple(_kept(a) for a in args), {k: _kept(v) for k, v in kwargs.items()}

        return hook

    def leave(layer: nn.Module, args: Any, output: Any) -> None:
        nonlocal last
        name, _ = inside.pop()
        if next(layer.children(), None) is None:
            last = (name, output)

    def found(function: Any, args: Any, kwargs: Any) -> None:
        name, layer = inside[-1]
        if not wanted(name, function.__name__):
            return
        if (name, function) not in calls:
            calls[name, function] = len(samples.calls)
            samples.calls.append((name, layer, function, []))
        taken = samples.calls[calls[name, function]][3]
        taken.append((tuple(_kept(a) for a in args), {k: _kept(v) for k, v in kwargs.items()}))

    hooks = []
    for name, layer in model.named_modules():
        hooks.append(layer.register_forward_pre_hook(enter(name), with_kwargs=True))
        hooks.append(layer.register_forward_hook(leave, always_call=True))
    try:
        with torch.no_grad(), _adapted.Watching(found):
            samples.output = _call(model, sample)
    finally:
        for hook in hooks:
            hook.remove()
    return samples


def _replace_layer(
    injection: Injection, name: str, layer: nn.Module, samples: _Samples | None, tolerance: float | None, timed: dict[Any, tuple[float, float]]
) -> Row:
    kind = _adapted.counterpart(type(layer))
    assert kind is not None, "only candidates get here"
    row = Row(name, type(layer).__name__, kind.__name__, "")
    if "forward" in layer.__dict__:
        row.status = "kept: its forward was replaced by something else"
        return row
    made = kind.from_torch(layer)
    if getattr(made, "inplace", False):
        made.inplace = False  # type: ignore[assignment]
        row._is_inplace = True
    if made._stands_back():
        row.status = "kept: PyTorch runs in this mode of the layer"
        return row
    if samples is None:
        if not made.use_kpkg:
            row.status = f"kept: {made._kpkg_op.reason or 'no kernel for its dtype and device'}"
            return row
    elif name not in samples.inputs:
        row.status = "kept: not used by the sample"
        return row
    elif not _is_better(row, layer, made, *samples.inputs[name], tolerance, timed):
        return row
    row.status = "replaced" if samples is not None else "replaced (not checked)"
    _use(row, _exchange(injection.model, layer, made))
    return row


def _use(row: Row, replacement: _Replacement) -> None:
    row._replacement = replacement
    replacement.put()


def _is_better(
    row: Row, layer: nn.Module, made: Layer, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: float | None, timed: dict[Any, tuple[float, float]]
) -> bool:
    """Whether the replacement is right and not slower on these inputs; tells the row."""
    first = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
    if first is None or not made.supports(first.device, first.dtype):
        row.status = f"kept: {made._kpkg_op.reason or 'no kernel for its dtype and device'}"
        return False

    def original() -> Any:
        return type(layer).forward(layer, *_fresh(layer, args), **kwargs)

    def replacement() -> Any:
        return made.forward(*args, **kwargs)

    with torch.no_grad():
        if not _agrees(row, replacement(), original(), tolerance):
            return False
        key = (type(layer), layer.extra_repr(), layer.training, *(_signature(a) for a in (*args, *kwargs.values())))
        if key not in timed:
            timed[key] = interleaved(original, replacement)
    return _is_fast(row, *timed[key])


def _within(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _traced(model: nn.Module, samples: _Samples, layers: dict[str, nn.Module], wanted: Callable[[str, str], bool]) -> list[tuple[str, _chains.Traced]]:
    """Layers whose forwards have chains that one launch can do, with their names."""
    found = []
    for name, owner in model.named_modules():
        traced = _chains.traced(owner) if samples.count.get(name) == 1 else None
        for chain in list(traced.chains) if traced is not None else ():
            assert traced is not None, "it has chains"
            names = [_within(name, each) for each in chain.layers]
            fixed = [_within(name, each) for each in (chain.convolution, chain.norm) if each is not None]
            if not all(each in layers for each in fixed) or any(samples.count.get(each) != 1 for each in fixed) or not _fused.fuses(traced, chain):
                del traced.chains[chain]
            elif any(not wanted(each, type(owner.get_submodule(own)).__name__) for each, own in zip(names, chain.layers)):
                del traced.chains[chain]
        if traced is not None and traced.chains:
            found.append((name, traced))
    return found


def _fuse_all(injection: Injection, name: str, traced: _chains.Traced, samples: _Samples, tolerance: float | None) -> set[str]:
    """One launch for each chain of a layer's forward where that is right and not slower; adds rows, returns names of layers that nothing else is to replace."""
    block = _fused.Block(traced)
    done: set[str] = set()
    uses: dict[str, int] = {}
    for chain in traced.chains:
        row = _fuse(injection, name, block, chain, samples, tolerance)
        injection.rows.append(row)
        if row.is_replaced:
            done.update(_within(name, each) for each in (chain.convolution, chain.norm) if each is not None)
            if chain.activation_layer is not None:
                layer = _within(name, chain.activation_layer)
                uses[layer] = uses.get(layer, 0) + 1
    return done | {layer for layer, count in uses.items() if samples.count.get(layer) == count}


def _fuse(injection: Injection, name: str, block: _fused.Block, chain: _chains.Chain, samples: _Samples, tolerance: float | None) -> Row:
    owner = block.traced.owner
    layers = [owner.get_submodule(each) for each in chain.layers]
    kinds = [type(layer).__name__ for layer in layers]
    if chain.activation_layer is None:
        kinds.append(f"{chain.activation}()")
    if chain.has_residual:
        kinds.insert(-1, "sum")
    launch = _fused.prepare(owner, chain)
    row = Row(" + ".join(_within(name, each) for each in chain.layers), " + ".join(kinds), f"{type(layers[0]).__name__}, one launch", "", is_fold=True)
    if any("forward" in layer.__dict__ for layer in layers):
        row.status = "kept: a forward was replaced by something else"
        return row
    input = samples.inputs[_within(name, chain.convolution)][0][0]
    with torch.no_grad():
        if not launch.supports(input) or not launch.holds_parameters():
            row.status = f"kept: {launch.reason or 'no kernel for its dtype and device'}"
            return row
        between = type(layers[0]).forward(layers[0], input)
        residual = torch.randn_like(between) if chain.has_residual else None

        def original() -> Any:
            result = type(layers[0]).forward(layers[0], input)
            if chain.norm is not None:
                result = type(layers[1]).forward(layers[1], result)
            if residual is not None:
                result += residual
            return getattr(nn.functional, chain.activation)(result) if chain.activation_layer is None else type(layers[-1]).forward(layers[-1], result)

        def replacement() -> Any:
            return launch.together(input, residual)

        if not _agrees(row, replacement(), original(), tolerance) or not _is_fast(row, *interleaved(original, replacement)):
            return row
    row.status = "replaced"
    parts = [_exchange(injection.model, layer, made) for layer, made in zip(layers, (launch.convolution, launch.norm)) if made is not None]

    def put() -> None:
        for part in parts:
            part.put()
        block.put(launch)

    def take_out() -> None:
        block.take_out(launch)
        for part in parts:
            part.take_out()

    _use(row, _Replacement(put, take_out))
    return row


def _fold(injection: Injection, pair: tuple[str, str], layers: dict[str, nn.Module], samples: _Samples, tolerance: float | None) -> Row:
    """The batch norm of `pair` folded into its convolution, if that is right and not slower."""
    convolution, norm = (layers[name] for name in pair)
    row = Row(" + ".join(pair), f"{type(convolution).__name__} + {type(norm).__name__}", type(convolution).__name__, "", is_fold=True)
    if any("forward" in layer.__dict__ for layer in (convolution, norm)):
        row.status = "kept: a forward was replaced by something else"
        return row
    first, second = _folding.folded(convolution, norm)
    args, kwargs = samples.inputs[pair[0]]
    given = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
    with torch.no_grad():
        if given is None or not second._kpkg_fold.holds() or not first.supports(given.device, given.dtype):  # type: ignore[union-attr]
            row.status = f"kept: {first._kpkg_op.reason or 'no kernel for its dtype and device'}"
            return row

        def original() -> Any:
            return type(norm).forward(norm, type(convolution).forward(convolution, *args, **kwargs))

        def replacement() -> Any:
            return first.forward(*args, **kwargs)

        if not _agrees(row, replacement(), original(), tolerance) or not _is_fast(row, *interleaved(original, replacement)):
            return row
    row.status = "replaced"
    parts = [_exchange(injection.model, convolution, first), _exchange(injection.model, norm, second)]

    def put() -> None:
        for part in parts:
            part.put()

    def take_out() -> None:
        for part in parts:
            part.take_out()

    _use(row, _Replacement(put, take_out))
    return row


def _fresh(layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that the layer may write into."""
    return tuple(_kept(a) for a in args) if getattr(layer, "inplace", False) else args


def _signature(value: Any) -> Any:
    return (value.shape, value.stride(), value.dtype, value.device) if isinstance(value, Tensor) else repr(value)


def _agrees(row: Row, found: Any, expected: Any, tolerance: float | None) -> bool:
    row.error, allowed = compare(found, expected, tolerance)
    if row.error <= allowed:
        return True
    row.status = f"kept: its output differs by {row.error:.1e}, {allowed:.1e} is allowed"
    return False


def _is_fast(row: Row, original_us: float, kpkg_us: float) -> bool:
    row.original_us, row.kpkg_us = original_us, kpkg_us
    if kpkg_us <= original_us * _NOISE:
        return True
    row.status = "kept: kpkg is slower"
    return False


def _exchange(model: nn.Module, layer: nn.Module, made: nn.Module) -> _Replacement:
    """`made` wherever the model has `layer`."""
    places = [(parent, name) for parent in model.modules() for name, child in parent._modules.items() if child is layer]

    def put() -> None:
        for parent, name in places:
            parent._modules[name] = made
        made.train(layer.training)

    def take_out() -> None:
        for parent, name in places:
            parent._modules[name] = layer
        layer.train(made.training)

    return _Replacement(put, take_out)


def _replace_calls(
    injection: Injection, name: str, owner: nn.Module, function: Callable[..., Any], calls: list[tuple[Any, Any]], tolerance: float | None
) -> Row:
    from kpkg._default import ops

    replacement, needed = _adapted.CALLS[function]
    row = Row(name, f"{function.__name__}()", f"kpkg {function.__name__}", "")
    absent = [op for op in needed if not ops[op].is_available]
    if absent:
        row.status = f"kept: {ops[absent[0]].reason}"
        return row
    if "forward" in owner.__dict__ and not hasattr(owner.forward, "_kpkg_calls"):
        row.status = "kept: its forward was replaced by something else"
        return row
    with torch.no_grad():
        for args, kwargs in calls:
            try:
                found = replacement(*args, **kwargs)
            except RuntimeError as error:  # a form of the call that the ops refuse
                row.status = f"kept: {error}"
                return row
            if not _agrees(row, found, function(*args, **kwargs), tolerance):
                return row
        args, kwargs = calls[0]
        times = interleaved(lambda: function(*args, **kwargs), lambda: replacement(*args, **kwargs))
    if not _is_fast(row, *times):
        return row
    row.status = "replaced"
    _use(row, _within_forward(owner, function, replacement))
    return row


def _within_forward(owner: nn.Module, function: Callable[..., Any], replacement: Callable[..., Any]) -> _Replacement:
    """`replacement` for the calls of `function` that the layer's forward makes."""

    def put() -> None:
        if "forward" in owner.__dict__:
            owner.forward._kpkg_calls[function] = replacement  # type: ignore[attr-defined]
            return
        table = {function: replacement}
        plain = owner.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            with _adapted.Replacing(table):
                return plain(*args, **kwargs)

        forward._kpkg_calls = table  # type: ignore[attr-defined]
        owner.forward = forward  # type: ignore[method-assign]

    def take_out() -> None:
        table = owner.forward._kpkg_calls  # type: ignore[attr-defined]
        table.pop(function)
        if not table:
            owner.__dict__.pop("forward")

    return _Replacement(put, take_out)


def _check_model(injection: Injection, sample: Any, expected: Any) -> None:
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
        if injection.replaced and (injection.kpkg_us or 0.0) > (injection.original_us or 0.0) * _NOISE:
            for row in reversed(injection.replaced):
                injection._take_out(row, "kept: the model as a whole is slower with them all")
        if not injection.replaced:
            injection.original_us = injection.kpkg_us = interleaved(lambda: _call(model, sample), None)[0]
        injection.error, _ = compare(_call(model, sample), expected, None)


def _check_together(injection: Injection, rows: list[Row], sample: Any, expected: Any) -> None:
    """Undoes replacements with which the model is wrong though each of them is right: something else has read what a layer wrote over its input, or what a convolution gave to its norm."""
    error, allowed = compare(_call(injection.model, sample), expected, None) if rows else (0.0, 0.0)
    if error <= allowed:
        return
    for row in reversed(rows):
        injection._take_out(row, "kept: the model's output differs with it")
    without, _ = compare(_call(injection.model, sample), expected, None)
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

    def call() -> Any:
        return _call(model, sample)

    try:
        return interleaved(call, call, seconds=0.3, switch=switch_if_other)
    finally:
        switch_if_other(1)
