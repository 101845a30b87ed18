"""Replaces layers of a model by kpkg's, where that is right and not slower.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
import fnmatch
import warnings
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from kpkg import _adapted, _calls, _passes
from kpkg._errors import KpkgWarning
from kpkg._gated import gate_all
from kpkg._injection import Injection, Row, agrees, exchange, reason_of, signature, use
from kpkg._merges import merge
from kpkg._messages import closest, shown
from kpkg._pooled import pool_all
from kpkg._replaced_calls import replace_calls
from kpkg._samples import Samples, fresh, take_samples
from kpkg._whole import check_model, keeps_busy
from kpkg.nn import Layer

# What PyTorch calls libraries for when it compiles; other layers become parts of its own kernels, and would be in their
# way as ops of their own.
_STAYS_WHEN_COMPILED = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


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

    With a sample, a batch norm behind a convolution is folded into it where neither is in training mode; calls that
    train them, by mode or by recording gradients of their parameters, run both. Where the forward of a layer shows (as
    torch.fx traces it) that a sum or an activation follows, of a convolution or a linear layer, one launch does that
    too, unless gradients are recorded or a layer between has hooks; so it is for x + rms_norm(y) * tanh(gate).
    Candidates are the layers of torch.nn that `kpkg.nn` has, RMS norms, activations and latent attention of Hugging
    Face's models, and calls within layers of products (`@`, einsum, ...), attention, and the functions of
    torch.nn.functional that kpkg has ops for. Parameters, buffers and hooks are shared with the original layers. Layers
    of a subclass, with a forward of their own, or with a dtype or device that no package has a kernel for are left
    alone; the table says why. With a sample the whole model runs with all that was chosen: what makes it raise or give
    another output goes out again, with the reason.

    include, exclude: patterns of layer names ("encoder.*"), as in fnmatch, or names of layer types ("Linear"). Default:
    all, and none.
    sample_input: arguments of the model: a tensor, a tuple of positional ones or a dict of named ones. With it, each
    layer's output is
        compared with the original's, original and replacement are timed on the inputs that they get within the model,
        and only what is right and at least as fast stays. Without it, everything that has a kernel is replaced,
        unchecked.
    tolerance: greatest error, relative to the largest element of the original output. Default: by dtype, 1e-4 for
    float32 (1e-3 for convolutions where PyTorch allows TF32), 1e-9 for float64,
        4e-3 for float16, 3e-2 for bfloat16.
    verbose: print the table.
    cuda_graphs: the model will run as a CUDA graph: times are those of replays, in which the host's time does not
    count. The packages of all ops that it calls are loaded onto the GPU, so that it can be captured.

    What torch.compile has made of a model is measured so: its times are those of compiled iterations, and layers that
    PyTorch fuses with their neighbours when it compiles stay. Injected models can be compiled too; such layers are
    PyTorch's then. In training mode gradients are compared, and iterations have backwards.

    Raises what the model raises on `sample_input`, TypeError for a model that is none, and ValueError for `cuda_graphs`
    without a GPU and for patterns of `include` that match no layer, by name or type; those of `exclude` are warned of.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"inject takes a torch.nn.Module, not {shown(model)}")
    injection = Injection(model, cuda_graphs)
    model = injection.model
    included, excluded = _patterns(include), _patterns(exclude)
    _check_patterns(model, include=included, exclude=excluded)

    def wanted(name: str, kind: str) -> bool:
        def matches(patterns: list[str]) -> bool:
            return any(fnmatch.fnmatchcase(name, p) or kind == p for p in patterns)

        return (include is None or matches(included)) and not matches(excluded)

    layers = [
        (name, layer)
        for name, layer in model.named_modules()
        # mypy takes no type for hashable.
        if _adapted.counterpart(type(layer)) and wanted(name, type(layer).__name__)  # type: ignore[arg-type]
    ]
    with _passes.unchanged(model) if sample_input is not None else contextlib.nullcontext():
        samples = None if sample_input is None else take_samples(model, sample_input, dict(layers), wanted)
        injection.by_gpu_time = samples is not None and keeps_busy(injection, sample_input)
        done: set[str] = set()
        if samples is not None and not _passes.is_trained(model):  # where gradients are recorded, layers run one by one
            done = merge(injection, dict(layers), samples, wanted, tolerance)
            if not injection.is_compiled:  # compiled, it is a part of other kernels
                gate_all(injection, sample_input, samples, wanted, tolerance)
        for name, layer in layers:
            if name in done:
                continue
            injection.rows.append(_replace_layer(injection, name, layer, samples, tolerance))
        if done and not injection.is_compiled:
            assert samples is not None, "it was measured"
            pool_all(injection, samples, wanted, tolerance)
        if samples is not None:
            replace_calls(injection, samples, tolerance)
            check_model(injection, sample_input, samples.output, tolerance)
    if verbose:
        print(injection)
    return injection


def _patterns(given: str | Iterable[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _check_patterns(model: nn.Module, **patterns: list[str]) -> None:
    """Raises ValueError for a pattern of `include` that matches nothing, with near names.

    It may match the name of a layer of the model, its type, or a function that layers may call. A pattern of `exclude`
    only warns.
    """
    layers = list(model.named_modules())
    kinds = {type(layer).__name__ for _, layer in layers} | {call.name for call in _calls.CALLS.values()}
    for word, given in patterns.items():
        for pattern in given:
            if pattern not in kinds and not any(fnmatch.fnmatchcase(name, pattern) for name, _ in layers):
                near = closest(pattern, [*sorted(kinds), *(name for name, _ in layers)])
                text = f"{word}={pattern!r} matches no layer of the model, by name or type{near}"
                if word == "include":
                    raise ValueError(text)
                warnings.warn(text, KpkgWarning, stacklevel=3)


def _replace_layer(
    injection: Injection, name: str, layer: nn.Module, samples: Samples | None, tolerance: float | None
) -> Row:
    kind = _adapted.counterpart(type(layer))  # type: ignore[arg-type]  # mypy takes no type for hashable
    assert kind is not None, "only candidates get here"
    row = Row(name, type(layer).__name__, kind.__name__, "", calls=samples.count.get(name, 1) if samples else 1)
    if "forward" in layer.__dict__:
        row.status = "kept: its forward was replaced by something else"
        return row
    made = kind.from_torch(layer)
    made._kpkg_when_compiled = isinstance(layer, _STAYS_WHEN_COMPILED)
    if injection.is_compiled and not made._kpkg_when_compiled:
        row.status = "kept: torch.compile fuses it with its neighbours"
        return row
    if getattr(made, "inplace", False):
        made.inplace = False
    row._ops = (made._kpkg_op.name,)
    # A batch norm's statistics would be those of other batches after each measurement.
    trains = made.training and isinstance(layer, nn.modules.batchnorm._BatchNorm)
    if made._stands_back() or trains:
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
    injection: Injection,
    row: Row,
    layer: nn.Module,
    made: Layer,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tolerance: float | None,
) -> bool:
    """Whether the replacement is right and not slower on these inputs; tells the row."""
    first = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
    if first is None or not made.supports(first.device, first.dtype):
        row.status = f"kept: {made._kpkg_op.reason or 'no kernel for its dtype and device'}"
        return False

    is_trained = layer.training and any(t.requires_grad for t in (*_passes.floats((args, kwargs)), *layer.parameters()))
    scratch = _writable(layer, args)

    def original() -> Any:
        given = _writable(layer, args) if is_trained else scratch
        return type(layer).forward(layer, *fresh(given), **fresh(kwargs))

    def replacement() -> Any:
        return made.forward(*fresh(_writable(layer, args) if is_trained else args), **fresh(kwargs))

    functions = [_passes.iteration(layer, run, (args, kwargs)) for run in (original, replacement)]
    try:
        found = _passes.repeatable(functions[1])
    except Exception as error:  # what it needs and has not; no fallback is wanted for what the op has no gradient for
        row.status = reason_of(error)
        return False
    if not agrees(row, found, _passes.repeatable(functions[0]), tolerance):
        return False
    key = (type(layer), layer.extra_repr(), layer.training, *(signature(a) for a in (*args, *kwargs.values())))
    return injection._is_fast(row, key, *functions)


def _writable(layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs that the layer may write into."""
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in args) if getattr(layer, "inplace", False) else args
