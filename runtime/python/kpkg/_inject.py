"""Replaces layers of a model by kpkg's, where that is right and not slower.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from kpkg import _adapted, _passes
from kpkg._errors import KernelError
from kpkg._injection import Injection, Replacement, Row, agrees, exchange, signature, use
from kpkg._merges import merge
from kpkg._pooled import pool_all
from kpkg._samples import Samples, take_samples
from kpkg._whole import check_model, keeps_busy
from kpkg.nn import Layer

# What PyTorch calls libraries for when it compiles; other layers become parts of its own kernels, and would be in their way as ops of their own.
_STAYS_WHEN_COMPILED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def inject(
    model: nn.Module,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    sample_input: Any = None,
    tolerance: float | None = None,
    verbose: bool = True,
    cuda_graphs: bool = False,
) -> Injection:
    """Replaces layers of `model`, in place, by kpkg's drop-in layers.

        with kpkg.inject(model, sample_input=x) as injection:
            y = model(x)
        # the original layers are back

    With a sample, a batch norm behind a convolution is folded into it where neither is in training mode; calls that train them, by mode or by recording gradients of
    their parameters, run both. Where the forward of a layer shows (as torch.fx traces it) that a sum or an activation follows, of a convolution or a linear layer, one launch does that too, unless
    gradients are recorded or a layer between has hooks. Candidates are the layers of torch.nn that `kpkg.nn` has, RMS norms and activations of Hugging Face's models, and calls of torch.bmm and
    scaled_dot_product_attention within layers. Parameters, buffers and hooks are shared with the original layers. Layers of a subclass,
    with a forward of their own, or with a dtype or device that no package has a kernel for are left alone; the table says why.

    include, exclude: patterns of layer names ("encoder.*"), as in fnmatch, or names of layer types ("Linear"). Default: all, and none.
    sample_input: arguments of the model: a tensor, a tuple of positional ones or a dict of named ones. With it, each layer's output is
        compared with the original's, original and replacement are timed on the inputs that they get within the model, and only what is right
        and at least as fast stays. Without it, everything that has a kernel is replaced, unchecked.
    tolerance: greatest error, relative to the largest element of the original output. Default: by dtype, 1e-4 for float32 (1e-3 for convolutions where PyTorch allows TF32), 1e-9 for float64,
        4e-3 for float16, 3e-2 for bfloat16.
    verbose: print the table.
    cuda_graphs: the model will run as a CUDA graph: times are those of replays, in which the host's time does not count.

    What torch.compile has made of a model is measured so: its times are those of compiled iterations, and layers that PyTorch fuses with their neighbours when it
    compiles stay. Injected models can be compiled too; such layers are PyTorch's then. In training mode gradients are compared, and iterations have backwards.

    Raises what the model raises on `sample_input`, and ValueError for `cuda_graphs` without a GPU.
    """
    injection = Injection(model, cuda_graphs)
    model = injection.model
    included, excluded = _patterns(include), _patterns(exclude)

    def wanted(name: str, kind: str) -> bool:
        def matches(patterns: list[str]) -> bool:
            return any(fnmatch.fnmatchcase(name, p) or kind == p for p in patterns)

        return (include is None or matches(included)) and not matches(excluded)

    layers = [(name, layer) for name, layer in model.named_modules() if _adapted.counterpart(type(layer)) and wanted(name, type(layer).__name__)]
    with _passes.unchanged(model) if sample_input is not None else contextlib.nullcontext():
        samples = None if sample_input is None else take_samples(model, sample_input, dict(layers), wanted)
        injection.by_gpu_time = samples is not None and keeps_busy(injection, sample_input)
        done: set[str] = set()
        if samples is not None and not _passes.is_trained(model):  # where gradients are recorded, layers run one by one
            done = merge(injection, dict(layers), samples, wanted, tolerance)
        for name, layer in layers:
            if name in done:
                continue
            injection.rows.append(_replace_layer(injection, name, layer, samples, tolerance))
        if done and not injection.is_compiled:
            assert samples is not None, "it was measured"
            pool_all(injection, samples, wanted, tolerance)
        for name, owner, function, calls in samples.calls if samples is not None else ():
            injection.rows.append(_replace_calls(injection, name, owner, function, calls, tolerance))
        if samples is not None:
            check_model(injection, sample_input, samples.output)
    if verbose:
        print(injection)
    return injection


def _patterns(given: str | Iterable[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _replace_layer(injection: Injection, name: str, layer: nn.Module, samples: Samples | None, tolerance: float | None) -> Row:
    kind = _adapted.counterpart(type(layer))
    assert kind is not None, "only candidates get here"
    row = Row(name, type(layer).__name__, kind.__name__, "")
    if "forward" in layer.__dict__:
        row.status = "kept: its forward was replaced by something else"
        return row
    made = kind.from_torch(layer)
    made._kpkg_when_compiled = isinstance(layer, _STAYS_WHEN_COMPILED)
    if injection.is_compiled and not made._kpkg_when_compiled:
        row.status = "kept: torch.compile fuses it with its neighbours"
        return row
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
    elif not _is_better(injection, row, layer, made, *samples.inputs[name], tolerance):
        return row
    row.status = "replaced" if samples is not None else "replaced (not checked)"
    use(row, exchange(injection.model, layer, made))
    return row


def _is_better(
    injection: Injection, row: Row, layer: nn.Module, made: Layer, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: float | None
) -> bool:
    """Whether the replacement is right and not slower on these inputs; tells the row."""
    first = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
    if first is None or not made.supports(first.device, first.dtype):
        row.status = f"kept: {made._kpkg_op.reason or 'no kernel for its dtype and device'}"
        return False

    is_trained = layer.training and any(t.requires_grad for t in (*_passes.floats((args, kwargs)), *layer.parameters()))
    scratch = _fresh(layer, args)

    def original() -> Any:
        return type(layer).forward(layer, *(_fresh(layer, args) if is_trained else scratch), **kwargs)

    def replacement() -> Any:
        return made.forward(*(_fresh(layer, args) if is_trained else args), **kwargs)

    functions = [_passes.iteration(layer, run, (args, kwargs)) for run in (original, replacement)]
    try:
        if not agrees(row, *(_passes.repeatable(run) for run in reversed(functions)), tolerance):
            return False
    except KernelError as error:  # no fallback is wanted for what the op has no gradient for
        row.status = f"kept: {error}"
        return False
    key = (type(layer), layer.extra_repr(), layer.training, *(signature(a) for a in (*args, *kwargs.values())))
    return injection._is_fast(row, key, *functions)


def _fresh(layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that the layer may write into."""
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in args) if getattr(layer, "inplace", False) else args


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
    def iteration(function: Callable[..., Any], args: Any, kwargs: Any) -> Callable[[], Any]:
        return _passes.iteration(owner, lambda: function(*args, **kwargs), (args, kwargs))

    for args, kwargs in calls:
        try:
            found = _passes.repeatable(iteration(replacement, args, kwargs))
        except RuntimeError as error:  # a form of the call that the ops refuse
            row.status = f"kept: {error}"
            return row
        if not agrees(row, found, _passes.repeatable(iteration(function, args, kwargs)), tolerance):
            return row
    if not injection._is_fast(row, (name, function), iteration(function, *calls[0]), iteration(replacement, *calls[0])):
        return row
    row.status = "replaced"
    use(row, _within_forward(owner, function, replacement))
    return row


def _within_forward(owner: nn.Module, function: Callable[..., Any], replacement: Callable[..., Any]) -> Replacement:
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

    return Replacement(put, take_out)
