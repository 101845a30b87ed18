"""Lists the ops that have samples: OpInfo's name, kpkg's implementation, and the error bound.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opinfo import elementwise, images, norms, orders, products, windows


@dataclass(frozen=True)
class Case:
    """An op with its error bound; `info` is the name in PyTorch's database.

    `sums`: the result may suffer from cancellation; the op of absolute values bounds the cancelled terms.
    `rounds_between`: PyTorch's and kpkg's intermediate values have the dtype of the results.
    """

    info: str
    run: Callable[..., Any]
    sums: bool = False
    rounds_between: bool = False
    #: Allowed error in round-offs of the accumulator, relative to the magnitude of the cancelled terms.
    accumulation: float = 32.0


def _all() -> dict[str, Case]:
    found = {name: Case(name, getattr(norms, name)) for name in ("softmax", "log_softmax", "native_layer_norm")}
    for name in ("layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "cross_entropy"):
        found[name] = Case(f"nn.functional.{name}", getattr(norms, name))
    for name in ("mm", "bmm", "addmm", "baddbmm", "matmul"):
        found[name] = Case(name, getattr(products, name), sums=True)
    found["linear"] = Case("nn.functional.linear", products.linear, sums=True)
    # A loss is much smaller than the logits that it is made from.
    found["linear_cross_entropy"] = Case(
        "nn.functional.linear_cross_entropy", products.linear_cross_entropy, accumulation=1024.0
    )
    found["scaled_dot_product_attention"] = Case(
        "nn.functional.scaled_dot_product_attention",
        products.scaled_dot_product_attention,
        rounds_between=True,
        accumulation=64.0,
    )
    for rank in (1, 2, 3):
        for name in (f"conv{rank}d", f"conv_transpose{rank}d", f"avg_pool{rank}d"):
            found[name] = Case(f"nn.functional.{name}", getattr(windows, name), sums=True)
        found[f"max_pool{rank}d"] = Case(f"nn.functional.max_pool{rank}d", getattr(windows, f"max_pool{rank}d"))
    for name in elementwise.ACTIVATIONS:
        found[name] = Case(f"nn.functional.{name}", elementwise.activation(name))
    for name in ("sigmoid", "tanh"):
        found[name] = Case(name, elementwise.activation(name))
    for name in ("add", "sub", "mul", "div"):
        found[name] = Case(name, getattr(elementwise, name))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        found[name] = Case(name, elementwise.comparison(name))
    for name in ("where", "masked_fill", "clamp"):
        found[name] = Case(name, getattr(elementwise, name))
    for name in ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin"):
        found[name] = Case(name, elementwise.reduction(name), sums=name in ("sum", "mean"))
    for name in ("var", "std", "var_mean", "std_mean"):
        found[name] = Case(name, elementwise.spread(name), sums=name.endswith("_mean"))
    found["vector_norm"] = Case("linalg.vector_norm", elementwise.vector_norm)
    for name in ("cumsum", "cumprod"):
        found[name] = Case(name, elementwise.scan(name), sums=name == "cumsum")
    for name in ("sort", "argsort", "topk", "cummax", "logsumexp"):
        found[name] = Case(name, getattr(orders, name))
    for name in ("unique", "histc"):
        found[name] = Case(name, getattr(orders, name))
    for name in ("kl_div", "embedding", "embedding_bag", "dropout"):
        found[name] = Case(f"nn.functional.{name}", getattr(orders, name))
    for name in ("exp", "log", "sqrt", "abs", "neg", "sign", "square"):
        found[name] = Case(name, orders.function(name))
    for name in ("maximum", "minimum"):
        found[name] = Case(name, orders.pair(name))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        found[name] = Case(name, orders.of_numbers("bitwise", name))
    for name in ("logical_and", "logical_or", "logical_xor"):
        found[name] = Case(name, orders.pair(name, "bitwise"))
    for name in ("bitwise_not", "logical_not"):
        found[name] = Case(name, orders.function(name, "bitwise"))
    for name in ("floor_divide", "remainder", "fmod"):
        found[name] = Case(name, orders.of_numbers("division", name))
    for name in (
        "pixel_shuffle",
        "pixel_unshuffle",
        "grid_sample",
        "interpolate",
        "upsample_nearest",
        "upsample_bilinear",
    ):
        found[name] = Case(f"nn.functional.{name}", getattr(images, name))
    return found


CASES = _all()
#: Ops of bits, which floats have not.
OF_BITS = (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "bitwise_left_shift",
    "bitwise_right_shift",
)
#: Ops that have kernels of integers.
OF_INTEGERS = (
    *("add", "sub", "mul", "maximum", "minimum", "abs", "relu", "neg", "sign", "square"),
    *OF_BITS,
    *("logical_and", "logical_or", "logical_xor", "logical_not", "floor_divide", "remainder", "fmod"),
)
