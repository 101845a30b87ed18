"""Gradients by PyTorch: what runs when a package has no kernel for the backward of an op, or has no backward.

Where PyTorch has the formula in terms of what a backward op gets, that is used; else the op's PyTorch implementation
runs again, recorded, and is differentiated.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._functorch.eager_transforms import enable_inplace_requires_grad
from torch.autograd import forward_ad

from kpkg import _aten, _aten_cells, _aten_models, _aten_products, _aten_sequences, _aten_sparse, _policy
from kpkg._op import Op

aten = torch.ops.aten
_FALLBACKS = (
    _aten.FALLBACKS
    | _aten_cells.FALLBACKS
    | _aten_models.FALLBACKS
    | _aten_products.FALLBACKS
    | _aten_sequences.FALLBACKS
    | _aten_sparse.FALLBACKS
)


def implementation(name: str) -> Callable[..., Any] | None:
    """What PyTorch runs for the op "kpkg::softmax": the user's own function before that of kpkg."""
    return _policy.fallbacks.get(name) or _FALLBACKS.get(name) or _BACKWARDS.get(name)


@contextlib.contextmanager
def _recorded() -> Iterator[None]:
    """Autograd records here, also within a kernel, below autograd."""
    include = torch._C._dispatch_tls_local_include_set()
    exclude = torch._C._dispatch_tls_local_exclude_set()
    for key in (
        "AutogradOther",
        "AutogradCPU",
        "AutogradCUDA",
        "AutogradMeta",
        "AutogradNestedTensor",
        "ADInplaceOrView",
    ):
        exclude = exclude - torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    with torch._C._ForceDispatchKeyGuard(include, exclude), torch.enable_grad():
        yield


def differentiate(
    function: Callable[..., Any], arguments: Sequence[Any], wanted: Sequence[int], grads: Sequence[Tensor | None]
) -> list[Tensor]:
    """Gradients of ``function(*arguments)`` for the tensor arguments numbered in `wanted`.

    They are those of its first ``len(grads)`` results.

    Zeros where a result does not depend on an argument. With gradients enabled, these gradients can be differentiated
    again.
    """
    has_tangents = forward_ad._current_level >= 0 and any(_tangent(value) is not None for value in (*arguments, *grads))
    if torch._C._are_functorch_transforms_active() and not has_tangents:
        return _differentiate_functionally(function, arguments, wanted, grads)
    again = torch.is_grad_enabled()

    def leaf(i: int, value: Any) -> Any:
        if not isinstance(value, Tensor) or (again and (value.requires_grad or i not in wanted)):
            return value
        tangent = _tangent(value)  # which detach() takes off
        fresh = value.detach().requires_grad_(i in wanted)
        return fresh if tangent is None else forward_ad.make_dual(fresh, tangent)

    with (
        _recorded(),
        enable_inplace_requires_grad(True),
    ):  # of leaves of its own, which transforms of torch.func do not see
        leaves = [leaf(i, value) for i, value in enumerate(arguments)]
        results = function(*leaves)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None and r is not None and r.requires_grad]
        inputs = [leaves[i] for i in wanted]
        if not pairs or not inputs:
            return [torch.zeros_like(x) for x in inputs]
        found = torch.autograd.grad(
            [r for r, _ in pairs], inputs, [g.expand(r.shape) for r, g in pairs], allow_unused=True, create_graph=again
        )
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def _tangent(value: Any) -> Tensor | None:
    return (
        forward_ad.unpack_dual(value).tangent if isinstance(value, Tensor) and forward_ad._current_level >= 0 else None
    )


def _differentiate_functionally(
    function: Callable[..., Any], arguments: Sequence[Any], wanted: Sequence[int], grads: Sequence[Tensor | None]
) -> list[Tensor]:
    """The same within transforms of torch.func, which know no leaves."""
    if not wanted:
        return []

    def of_wanted(*values: Tensor) -> tuple[Tensor, ...]:
        given = list(arguments)
        for i, value in zip(wanted, values):
            given[i] = value
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(r for r, g in zip(results, grads) if g is not None and r is not None)

    results, pull = torch.func.vjp(of_wanted, *(arguments[i] for i in wanted))
    return list(pull(tuple(g.expand(r.shape) for r, g in zip(results, (g for g in grads if g is not None)))))


def _zeros_for_bias(known: dict[str, Any]) -> dict[str, Any]:
    like: Tensor = known["input"] if "input" in known else known["out1"]
    shape = (
        known["normalized_shape"]
        if "normalized_shape" in known
        else like.shape[1:2]
        if "input" in known
        else like.shape[-1:]
    )
    return {"bias": like.new_zeros(tuple(shape))}


# Values for tensor arguments that a backward does not get, since its gradients do not depend on them.
_ABSENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "kpkg::cumsum": lambda known: {"input": torch.zeros_like(known["grad"])},
    "kpkg::rotary_embedding": lambda known: dict(zip(("query", "key"), map(torch.zeros_like, known["grads"]))),
    "kpkg::residual_tanh_gated_rmsnorm": lambda known: {"x": torch.zeros_like(known["x_res"])},
    "kpkg::residual_rms_norm": lambda known: {"x": known["out1"], "residual": torch.zeros_like(known["out1"])},
    "kpkg::residual_layer_norm": lambda known: {
        "x": known["out1"],
        "residual": torch.zeros_like(known["out1"]),
        **_zeros_for_bias(known),
    },
    **{
        f"kpkg::{name}": _zeros_for_bias
        for name in (
            "layer_norm",
            "native_layer_norm",
            "group_norm",
            "native_group_norm",
            "instance_norm",
            "batch_norm",
            "batch_norm_training",
        )
    },
}

# Gradients of the first argument from those of the result, the result, and the other arguments.
_BY_RESULT: dict[str, Callable[..., Tensor]] = {
    "kpkg::softmax": lambda grad_output, output, dim=-1: aten._softmax_backward_data(
        grad_output, output, dim, output.dtype
    ),
    "kpkg::log_softmax": lambda grad_output, output, dim=-1: aten._log_softmax_backward_data(
        grad_output, output, dim, output.dtype
    ),
    "kpkg::sigmoid": lambda grad_output, output: aten.sigmoid_backward(grad_output, output),
    "kpkg::tanh": lambda grad_output, output: aten.tanh_backward(grad_output, output),
    "kpkg::exp": lambda grad_output, output: grad_output * output,
    "kpkg::sqrt": lambda grad_output, output: grad_output / (2 * output),
}


def fallback_of_gradient(backward: Op, forward: Op) -> Callable[..., Any] | None:
    """PyTorch's implementation of `backward`, the op with the gradients of `forward`.

    None where the forward op has none.
    """
    run = implementation(forward.name)
    if run is None:
        return None
    tensors = [i for i, argument in enumerate(forward.arguments) if argument.is_tensor]
    optional = [kind.endswith("?") for kind in backward.result_types]
    sources = forward.backward_arguments
    has_needs = any(source == "needs" for source, _ in sources)

    def gradient(*values: Any) -> Any:
        direct = _BY_RESULT.get(forward.name)
        if direct is not None:
            return direct(*values)
        grads: list[Any] = []
        needs: dict[int, bool] = {}
        known: dict[str, Any] = {"grads": grads}
        for (source, index), value in zip(sources, values):
            if source == "gradient":
                grads.append(value)
                known["grad"] = value
            elif source == "needs":
                needs[index] = value
            elif source != "deterministic":
                known[forward.arguments[index].name if source == "argument" else f"out{index or ''}"] = value
        if forward.name in _PLANE_RANK and "out1" in known:
            return scatter_maxima(grads[0], known["out1"], known["input"], _PLANE_RANK[forward.name])
        missing = {a.name for a in forward.arguments if a.is_tensor} - set(known)
        if missing and forward.name in _ABSENT:
            known |= {name: value for name, value in _ABSENT[forward.name](known).items() if name in missing}
        arguments = [known[a.name] if a.name in known else a.default for a in forward.arguments]
        if "ceil_mode" not in known and forward.name in _AVERAGES:
            arguments[4] = run(*arguments).shape != grads[0].shape
        given = [i for i in tensors if arguments[i] is not None]
        wanted = [
            i
            for k, i in enumerate(tensors)
            if i in given and (needs.get(i, not optional[k]) if has_needs or optional[k] else True)
        ]
        found = dict(zip(wanted, differentiate(run, arguments, wanted, grads)))
        results = tuple(found.get(i) for i in tensors)
        return results[0] if len(results) == 1 else results

    return gradient


def scatter_maxima(grad: Tensor, indices: Tensor, input: Tensor, rank: int) -> Tensor:
    """Gradient of a max pooling for its input: each window's goes to the element of the plane that `indices` names."""
    lead = input.shape[: input.dim() - rank]
    planes = input.new_zeros((*lead, input.shape[-rank:].numel()))
    return planes.scatter_add_(-1, indices.flatten(-rank), grad.flatten(-rank)).reshape(input.shape)


_AVERAGES = {f"kpkg::avg_pool{rank}d" for rank in (1, 2, 3)}
_PLANE_RANK = {f"kpkg::max_pool{rank}d_with_indices": rank for rank in (1, 2, 3)}


def _of_forward(name: str, tensors: Sequence[str], names: Sequence[str]) -> Callable[..., Any]:
    """The public backward op of forward op `name`: gradients for its arguments `tensors`, from (grad, `names`...)."""
    import inspect

    def backward(grad: Tensor, *args: Any, **kwargs: Any) -> Any:
        run = _FALLBACKS[name]
        known = {**dict(zip(names, args)), **kwargs, "grad": grad}
        grads = [grad] + ([known.pop("grad_sum")] if "grad_sum" in known else [])
        if "sum" in known:
            known["out1"] = known.pop("sum")
        for scale in {"weight"} & set(tensors):  # a gradient is asked for even where there is none to scale with
            if known.get(scale) is None:
                shape = (
                    known["normalized_shape"]
                    if "normalized_shape" in known
                    else known["input"].shape[1:2]
                    if "input" in known
                    else known["out1"].shape[-1:]
                )
                known[scale] = (known["input"] if "input" in known else known["out1"]).new_ones(tuple(shape))
        if name in _ABSENT:
            known = {**_ABSENT[name](known), **known}
        order = [n for n in inspect.signature(run).parameters]
        arguments = [known.get(n, inspect.signature(run).parameters[n].default) for n in order]
        found = differentiate(run, arguments, [order.index(n) for n in tensors], grads)
        return found[0] if len(found) == 1 else tuple(found)

    return backward


def _layer_norm_backward(
    grad: Tensor, input: Tensor, normalized_shape: list[int], mean: Tensor, rstd: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    lead = input.dim() - len(normalized_shape)
    rows = [*input.shape[:lead], *(1 for _ in normalized_shape)]
    over = tuple(range(lead, input.dim()))
    x = (input.to(mean.dtype) - mean.reshape(rows)) * rstd.reshape(rows)
    g = grad.to(mean.dtype)
    scaled = g if weight is None else g * weight.to(mean.dtype)
    dx = (scaled - scaled.mean(over, keepdim=True) - x * (scaled * x).mean(over, keepdim=True)) * rstd.reshape(rows)
    first = tuple(range(lead))
    dweight, dbias = ((g * x).sum(first), g.sum(first)) if lead else (g * x, g)
    return dx.to(input.dtype), dweight.to(input.dtype), dbias.to(input.dtype)


def _group_norm_backward(
    grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, num_groups: int, weight: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    samples, channels = input.shape[:2]
    shape = [samples, num_groups, channels // max(num_groups, 1), -1]
    x = (input.to(mean.dtype).reshape(shape) - mean.reshape(samples, num_groups, 1, 1)) * rstd.reshape(
        samples, num_groups, 1, 1
    )
    g = grad.to(mean.dtype).reshape(shape)
    scaled = g if weight is None else g * weight.to(mean.dtype).reshape(1, num_groups, -1, 1)
    dx = (scaled - scaled.mean((2, 3), keepdim=True) - x * (scaled * x).mean((2, 3), keepdim=True)) * rstd.reshape(
        samples, num_groups, 1, 1
    )
    dweight, dbias = (g * x).sum((0, 3)).reshape(channels), g.sum((0, 3)).reshape(channels)
    return dx.reshape(input.shape).to(input.dtype), dweight.to(input.dtype), dbias.to(input.dtype)


def _max_pool_backward(rank: int) -> Callable[..., Tensor]:
    return lambda grad, indices, input, *args, **kwargs: scatter_maxima(grad, indices, input, rank)


_BACKWARDS: dict[str, Callable[..., Any]] = {
    **{f"{name}_backward": function for name, function in _BY_RESULT.items()},
    "kpkg::layer_norm_backward": _layer_norm_backward,
    "kpkg::group_norm_backward": _group_norm_backward,
    "kpkg::rms_norm_backward": _of_forward(
        "kpkg::rms_norm", ["input", "weight"], ["input", "normalized_shape", "weight", "eps"]
    ),
    "kpkg::batch_norm_backward": _of_forward(
        "kpkg::batch_norm", ["input", "weight", "bias"], ["input", "running_mean", "running_var", "weight", "eps"]
    ),
    "kpkg::batch_norm_training_backward": _of_forward(
        "kpkg::batch_norm_training", ["input", "weight", "bias"], ["input", "mean", "variance", "weight", "eps"]
    ),
    "kpkg::cross_entropy_backward": _of_forward(
        "kpkg::cross_entropy", ["input"], ["input", "target", "weight", "ignore_index", "reduction", "label_smoothing"]
    ),
    "kpkg::kl_div_backward": _of_forward(
        "kpkg::kl_div", ["input", "target"], ["input", "target", "reduction", "log_target"]
    ),
    "kpkg::attention_backward": _of_forward(
        "kpkg::attention",
        ["query", "key", "value"],
        ["query", "key", "value", "out", "lse", "attn_mask", "is_causal", "scale", "softcap", "window"],
    ),
    "kpkg::cumsum_backward": _of_forward("kpkg::cumsum", ["input"], ["dim"]),
    "kpkg::cumprod_backward": _of_forward("kpkg::cumprod", ["input"], ["input", "dim"]),
    "kpkg::swiglu_backward": _of_forward("kpkg::swiglu", ["a", "b"], ["a", "b"]),
    "kpkg::geglu_backward": _of_forward("kpkg::geglu", ["a", "b"], ["a", "b", "approximate"]),
    "kpkg::silu_and_mul_backward": _of_forward("kpkg::silu_and_mul", ["input"], ["input"]),
    "kpkg::gelu_and_mul_backward": _of_forward("kpkg::gelu_and_mul", ["input"], ["input", "approximate"]),
    "kpkg::clamped_swiglu_backward": _of_forward(
        "kpkg::clamped_swiglu", ["input"], ["input", "alpha", "limit", "interleaved"]
    ),
    "kpkg::residual_tanh_gated_rmsnorm_backward": _of_forward(
        "kpkg::residual_tanh_gated_rmsnorm", ["x_res", "gate"], ["x_res", "gate", "eps"]
    ),
    "kpkg::residual_rms_norm_backward": _of_forward(
        "kpkg::residual_rms_norm", ["x", "weight"], ["grad_sum", "sum", "weight", "eps"]
    ),
    "kpkg::residual_layer_norm_backward": _of_forward(
        "kpkg::residual_layer_norm", ["x", "weight", "bias"], ["grad_sum", "sum", "weight", "eps"]
    ),
}


def _logsumexp_backward(grad: Tensor, input: Tensor, output: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    if not keepdim and input.dim():
        grad, output = grad.unsqueeze(dim), output.unsqueeze(dim)
    return grad * torch.exp(input - output.masked_fill(output.abs() == float("inf"), 0))


_BACKWARDS["kpkg::logsumexp_backward"] = _logsumexp_backward


def _activation_backward(name: str, *names: str) -> Callable[..., Tensor]:
    def backward(grad: Tensor, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        options = {**dict(zip(names, args)), **kwargs}
        run = _FALLBACKS[name]
        if name in _AVERAGES:  # the shape of the gradient says which
            options["ceil_mode"] = run(input, **options).shape != grad.shape
        return differentiate(lambda x: run(x, **options), [input], [0], [grad])[0]

    return backward


for _name, _options in {
    "relu": (), "leaky_relu": ("negative_slope",), "gelu": ("approximate",), "silu": (), "elu": ("alpha",), "selu": (),
    "softplus": ("beta", "threshold"), "hardtanh": ("min_val", "max_val"), "hardsigmoid": (), "hardswish": (),
    "mish": (), "softsign": (), "log": (), "abs": (),
    **{
        f"avg_pool{rank}d": ("kernel_size", "stride", "padding", "count_include_pad", "divisor_override")
        for rank in (1, 2, 3)
    },
}.items():  # fmt: skip
    _BACKWARDS[f"kpkg::{_name}_backward"] = _activation_backward(f"kpkg::{_name}", *_options)
for _rank in (1, 2, 3):
    _BACKWARDS[f"kpkg::max_pool{_rank}d_backward"] = _max_pool_backward(_rank)
