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
from torch.utils import _pytree

from kpkg import _adapted, _calls, _packed_layers, _passes
from kpkg._errors import KpkgWarning
from kpkg._gated import gate_all
from kpkg._injection import Injection, Row, exchange, reason_of, signature, use
from kpkg._merges import merge
from kpkg._messages import closest, shown
from kpkg._pooled import pool_all
from kpkg._replaced_calls import replace_calls
from kpkg._samples import Samples, fresh, take_samples
from kpkg._whole import check_model, keeps_busy
from kpkg.nn import Layer, QuantizedLinear

# Layers that PyTorch computes by libraries when it compiles. It fuses other layers into its own kernels; as ops of
# their own, they would prevent that.
_STAYS_WHEN_COMPILED = (nn.Linear, nn.modules.conv._ConvNd)


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

    Candidates are the layers of torch.nn that `kpkg.nn` has, and RMS norms, activations, latent attention and experts
    of Hugging Face's models. Calls within layers are candidates, too: matrix products (`@`, einsum, ...), attention,
    and functions of torch.nn.functional that kpkg has ops for. Parameters, buffers and hooks are shared with the
    original layers.

    So are layers with weights of GPTQ, AWQ and compressed-tensors, if the model has a `config.quantization_config`.
    Such weights are packed anew; the originals stay in memory until the injection is deleted.

    A layer stays if it is of a subclass, has a forward of its own, or has a dtype or device without a kernel. The table
    gives the reason.

    With a sample, one launch may compute several steps:

    * A batch norm behind a convolution is folded into it where neither is in training mode. Calls that train them, by
      mode or by recording gradients of their parameters, run both.
    * A sum or an activation behind a convolution or a linear layer joins its launch, if the layer's forward shows it to
      torch.fx. It runs by itself while gradients are recorded, or if a layer between has hooks.
    * The same holds for x + rms_norm(y) * tanh(gate).

    With a sample, the whole model then runs with all replacements. A replacement with which it raises or gives another
    output is undone, with the reason.

    A model that torch.compile made is timed in compiled iterations. Its layers that PyTorch fuses with their neighbours
    stay. Injected models can be compiled, too; PyTorch runs such layers then. In training mode, gradients are compared,
    and iterations have backwards.

    Args:
        model: The model.
        include: Patterns of layer names ("encoder.*"), as in fnmatch, or names of layer types ("Linear"). Default: all.
        exclude: The same for layers that stay. Default: none.
        sample_input: Arguments of the model: a tensor, a tuple of positional ones or a dict of named ones. With it,
            each layer's output is compared with the original's. Original and replacement are timed on the inputs that
            they get within the model, and only replacements that are right and not slower stay. Without it, everything
            that has a kernel is replaced, unchecked.
        tolerance: Greatest error, relative to the largest element of the original output. Default: by dtype, 1e-4 for
            float32 (1e-3 where PyTorch allows TF32 in convolutions or matrix products), 1e-9 for float64, 4e-3 for
            float16, 3e-2 for bfloat16.
        verbose: Print the table.
        cuda_graphs: The model will run as a CUDA graph. Times are those of replays, which exclude the host's time. The
            packages of all ops that the model calls are loaded onto the GPU, so that it can be captured.

    Returns:
        The replacements, which `restore()` and the end of a ``with`` block undo.

    Raises:
        TypeError: `model` is no torch.nn.Module.
        ValueError: `cuda_graphs` is set without a GPU, or a pattern of `include` matches no layer, by name or type.
            Such patterns of `exclude` only give a warning.

    Exceptions of the model on `sample_input` come through.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"inject takes a torch.nn.Module, not {shown(model)}")
    injection = Injection(model, cuda_graphs, tolerance)
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
        if wanted(name, type(layer).__name__)
        and (
            _adapted.counterpart(type(layer))  # type: ignore[arg-type]  # mypy takes no type for hashable
            or _packed_layers.holds_packed(layer)
        )
    ]
    with _passes.unchanged(model) if sample_input is not None else contextlib.nullcontext():
        samples = None if sample_input is None else take_samples(model, sample_input, dict(layers), wanted)
        injection.by_gpu_time = samples is not None and keeps_busy(injection, sample_input)
        done: set[str] = set()
        is_merged = False
        if samples is not None and not _passes.is_trained(model):  # where gradients are recorded, layers run one by one
            done = merge(injection, dict(layers), samples, wanted)
            is_merged = bool(done)
            if not injection.is_compiled:  # PyTorch fuses the norm into other kernels when it compiles
                gate_all(injection, sample_input, samples, wanted)
        for name, layer in layers:
            if name in done:
                continue
            is_packed = _packed_layers.holds_packed(layer)
            row = (_replace_packed if is_packed else _replace_layer)(injection, name, layer, samples)
            injection.rows.append(row)
            if row.is_replaced:
                done.update(_absorbed(name, layer))
        if is_merged and not injection.is_compiled:
            assert samples is not None, "it was measured"
            pool_all(injection, samples, wanted)
        if samples is not None:
            replace_calls(injection, samples)
            check_model(injection, sample_input, samples.output)
    if verbose:
        print(injection)
    return injection


def _patterns(given: str | Iterable[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _check_patterns(model: nn.Module, **patterns: list[str]) -> None:
    """Raises ValueError, with near names, for a pattern of `include` that matches nothing.

    A pattern may match the name of a layer, its type, or a function that layers may call. Patterns of `exclude` that
    match nothing give a warning.
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


def _replace_layer(injection: Injection, name: str, layer: nn.Module, samples: Samples | None) -> Row:
    kind = _adapted.counterpart(type(layer))  # type: ignore[arg-type]  # mypy takes no type for hashable
    assert kind is not None, "only candidates get here"
    row = Row(name, type(layer).__name__, kind.__name__, "", calls=samples.count.get(name, 1) if samples else 1)
    if "forward" in layer.__dict__:
        row.status = "kept: its forward was replaced by something else"
        return row
    made = kind.from_torch(layer)
    made._kpkg_when_compiled = isinstance(layer, _STAYS_WHEN_COMPILED) or getattr(kind, "stays_when_compiled", False)
    if injection.is_compiled and not made._kpkg_when_compiled:
        row.status = "kept: torch.compile fuses it with its neighbours"
        return row
    if getattr(made, "inplace", False):
        made.inplace = False
    row._ops = (made._kpkg_op.name,)
    # Each measurement would move a batch norm's running statistics.
    trains = made.training and isinstance(layer, nn.modules.batchnorm._BatchNorm)
    if made._stands_back() or trains:
        row.keep_without_kernel(made._why_it_stands_back())
        return row
    if samples is None:
        if not made.use_kpkg:
            row.keep_without_kernel(made._kpkg_op.reason)
            return row
    elif name not in samples.inputs:
        row.status = "kept: not used by the sample"
        return row
    elif not _is_better(injection, row, layer, made, *samples.inputs[name]):
        return row
    row.status = "replaced" if samples is not None else "replaced (not checked)"
    use(row, exchange(injection.model, layer, made))
    return row


def _replace_packed(injection: Injection, name: str, layer: nn.Module, samples: Samples | None) -> Row:
    """Replaces a layer that holds a quantised weight."""
    row = Row(name, type(layer).__name__, QuantizedLinear.__name__, "")
    row.calls = samples.count.get(name, 1) if samples else 1
    if samples is not None and name not in samples.inputs:
        row.status = "kept: not used by the sample"
        return row
    try:
        made = _packed_layers.replacement(injection.model, layer)
    except ValueError as error:
        row.status = f"kept: {error}"
        return row
    places = exchange(injection.model, layer, made)
    if samples is None:
        row.status = "replaced (not checked)"
        use(row, places)
        return row
    args, kwargs = samples.inputs[name]
    key = (type(layer), made.extra_repr(), *(signature(a) for a in (*args, *kwargs.values())))

    def original() -> Any:
        return type(layer).forward(layer, *args, **kwargs)

    try:
        injection._choose(row, key, original, lambda: made.forward(*args, **kwargs), places)
    except Exception as error:  # for example, an input of another dtype
        row.status = reason_of(error)
    return row


def _absorbed(name: str, layer: nn.Module) -> list[str]:
    """Returns the names of layers that the replacement of `layer` computes, too."""
    kind = _adapted.counterpart(type(layer))  # type: ignore[arg-type]  # mypy takes no type for hashable
    owners = [(f"{name}.{own}" if name else own, layer.get_submodule(own)) for own in getattr(kind, "absorbed", ())]
    return [f"{own}.{inner}" for own, owner in owners for inner, _ in owner.named_modules() if inner]


def _is_better(
    injection: Injection, row: Row, layer: nn.Module, made: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Returns whether the replacement is right and not slower on these inputs; fills in the row."""
    first = next((leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)), None)
    if first is None or not made.supports(first.device, first.dtype):
        row.keep_without_kernel(made._kpkg_op.reason)
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
    except Exception as error:  # for example, an op without a gradient, for which no fallback is wanted
        row.status = reason_of(error)
        return False
    if not injection._agrees(row, found, _passes.repeatable(functions[0])):
        return False
    key = (type(layer), layer.extra_repr(), layer.training, *(signature(a) for a in (*args, *kwargs.values())))
    return injection._is_fast(row, key, *functions)


def _writable(layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns inputs that the layer may write to."""
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in args) if getattr(layer, "inplace", False) else args
