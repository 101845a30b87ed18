"""Specs of the elementwise ops: activations, arithmetic, gates, and the gradients of activations.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from opspec import ALL_FLOATS, OpSpec, Sample, normal, strided_forms
from torch import Tensor

INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
SHAPES = [(), (1,), (0,), (7,), (4096,), (4097,), (3, 0, 2), (5, 1000), (2, 3, 5, 7), (20011,)]
EXTREMES = [
    math.inf,
    -math.inf,
    math.nan,
    0.0,
    -0.0,
    1e-4,
    -1e-4,
    1.0,
    -1.0,
    3.0,
    -3.0,
    6.0,
    -30.0,
    30.0,
    100.0,
    -100.0,
]


def drawn(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Returns normally distributed numbers; all bit patterns of integers."""
    if dtype.is_floating_point:
        return normal(shape, dtype, generator, 2.0)
    limits = torch.iinfo(torch.int64)
    x = torch.randint(limits.min, limits.max, shape, generator=generator, device=generator.device)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def tensors(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
    """Yields every kind of memory: dense, dense in another order, and two, three and more dimensions after
    collapsing."""

    def make(shape: tuple[int, ...]) -> Tensor:
        return drawn(shape, dtype, generator)

    for shape in SHAPES:
        yield str(shape), make(shape)
    yield from strided_forms(make)
    yield "permuted", make((4, 5, 6)).permute(2, 0, 1)
    yield "permuted part", make((4, 5, 60)).permute(2, 0, 1)[3:]
    yield "long rows", make((3, 10001))[:, 1:]
    yield "every third", make((30001,))[::3]
    yield "three strides", make((6, 8, 10))[::2, ::2, ::2]
    yield "four strides", make((4, 6, 4, 6))[::2, ::2, ::2, ::2]


def extremes(dtype: torch.dtype) -> Tensor:
    if dtype == torch.bool:
        return torch.tensor([True, False])
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.tensor([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype=dtype)
    return torch.tensor(EXTREMES, dtype=torch.float64).to(dtype)


def finite_extremes(dtype: torch.dtype) -> Tensor:
    x = extremes(dtype)
    return x[torch.isfinite(x)]


def unary_samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters or ((),):
            for label, x in tensors(dtype, generator):
                yield Sample((x, *given), label=f"{label} {given}")
            yield Sample((extremes(dtype), *given), label=f"extremes {given}")

    return samples


def positive(t: Tensor) -> Tensor:
    """Returns the magnitudes of t, with its strides."""
    whole = t.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
    return whole.abs().as_strided(t.shape, t.stride(), t.storage_offset())


def of_positive(samples: Callable[..., Iterator[Sample]]) -> Callable[..., Iterator[Sample]]:
    """Makes samples positive, for functions that are NaN below 0. Extremes stay unchanged."""

    def make(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for sample in samples(dtype, generator):
            yield sample if sample.label.startswith("extremes") else sample.map(positive)

    return make


def gradient_samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters or ((),):
            for label, x in tensors(dtype, generator):
                yield Sample((normal(tuple(x.shape), dtype, generator), x, *given), label=f"{label} {given}")
            x = finite_extremes(dtype)
            yield Sample((normal(tuple(x.shape), dtype, generator), x, *given), label=f"extremes {given}")

    return samples


def pairs(dtype: torch.dtype, generator: torch.Generator) -> Iterator[tuple[str, Tensor, Tensor]]:
    def make(*shape: int) -> Tensor:
        return drawn(shape, dtype, generator)

    for label, x in tensors(dtype, generator):
        yield label, x, make(*x.shape)
    for a, b in [
        ((5, 1000), (1000,)),
        ((5, 1000), (5, 1)),
        ((5, 1000), ()),
        ((), (3, 5)),
        ((4, 1), (1, 9)),
        ((3, 4, 5), (4, 1)),
        ((2, 9000), (9000,)),
    ]:
        yield f"{a} and {b}", make(*a), make(*b)
    yield "one and many", make(1), make(20000)
    yield "many and one", make(20000), make(1)
    yield "rows and one each", make(3, 10000), make(3, 1)
    yield "channels", make(2, 3, 5, 7), make(3, 1, 1)
    yield "inside out", make(3, 5, 7, 2).permute(0, 3, 1, 2), make(2, 1, 1)
    yield "both transposed", make(40, 33).t(), make(40, 33).t()
    yield "one transposed", make(40, 33).t(), make(33, 40)
    yield "six dimensions", make(2, 3, 2, 3, 2, 3), make(3, 1, 3, 1, 3)


def binary_samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters or ((),):
            if not dtype.is_floating_point:  # factors of integers are integers
                given = tuple(float(math.floor(factor)) for factor in given)
            for label, a, b in pairs(dtype, generator):
                yield Sample((a, b, *given), label=f"{label} {given}")
        x = finite_extremes(dtype)
        yield Sample((x, drawn(tuple(x.shape), dtype, generator)), label="extremes")

    return samples


def gate_gradient_samples(*parameters: tuple[Any, ...]) -> Callable[..., Iterator[Sample]]:
    def samples(dtype: torch.dtype, generator: torch.Generator) -> Iterator[Sample]:
        for given in parameters or ((),):
            for label, a in tensors(dtype, generator):
                g, b = (normal(tuple(a.shape), dtype, generator) for _ in range(2))
                yield Sample((g, a, b, *given), label=f"{label} {given}")

    return samples


def gradient_of(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def reference(grad: Tensor, x: Tensor, *parameters: Any) -> Tensor:
        x = x.detach().clone().requires_grad_()
        return torch.autograd.grad(function(x, *parameters), x, grad)[0]

    return reference


def sigmoid_gradient(grad: Tensor, out: Tensor) -> Tensor:
    return grad * out * (1 - out)


def tanh_gradient(grad: Tensor, out: Tensor) -> Tensor:
    return grad * (1 - out * out)


def hardsigmoid(x: Tensor) -> Tensor:
    """Computes hardsigmoid, because PyTorch's has a float32 slope on some devices."""
    return torch.clamp(x + 3, 0, 6) / 6


def hardswish(x: Tensor) -> Tensor:
    return x * torch.clamp(x + 3, 0, 6) / 6


def hardsigmoid_gradient(grad: Tensor, x: Tensor) -> Tensor:
    return torch.where(x.abs() < 3, grad / 6, 0.0)


def hardtanh_gradient(grad: Tensor, x: Tensor, min_val: float, max_val: float) -> Tensor:
    return torch.where(
        (x <= min_val) | (x >= max_val), 0.0, grad
    )  # PyTorch's CPU result at NaN is 0 or not, depending on the position


def hardswish_gradient(grad: Tensor, x: Tensor) -> Tensor:
    return torch.where(x <= -3, 0.0, torch.where(x < 3, grad * (x / 3 + 0.5), grad))


def swiglu(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


def geglu(a: Tensor, b: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(a, approximate=approximate) * b


def gate_gradients_of(function: Callable[..., Tensor]) -> Callable[..., Any]:
    def reference(grad: Tensor, a: Tensor, b: Tensor, *parameters: Any) -> Any:
        a, b = (t.detach().clone().requires_grad_() for t in (a, b))
        return torch.autograd.grad(function(a, b, *parameters), (a, b), grad)

    return reference


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


def add(a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.add(a, b, alpha=alpha if a.is_floating_point() else int(alpha))


def sub(a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.sub(a, b, alpha=alpha if a.is_floating_point() else int(alpha))


def term_sizes(a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    if not a.is_floating_point():
        return a  # which is not compared with a tolerance
    return a.abs() + (alpha * b).abs()


def near(x: Tensor) -> Tensor:
    return 1 + x.abs()


#: Magnitudes of cancelling terms: two halves of about |x| in gelu, x and 3 in hardsigmoid, 1 and a square near 1 in
#: slopes.
SIZES: dict[str, Callable[..., Any]] = {
    "gelu": lambda x, *_: x.abs(),
    "hardsigmoid": near,
    "hardswish": lambda x: x.abs() * near(x),
    "gelu_backward": lambda g, x, *_: g.abs() * near(x) ** 3,
    "silu_backward": lambda g, x: g.abs() * near(x),
    "sigmoid_backward": lambda g, y: g.abs() * near(y) ** 2,
    "tanh_backward": lambda g, y: g.abs() * near(y) ** 2,
    "hardswish_backward": lambda g, x: g.abs() * near(x),
    "mish_backward": lambda g, x: g.abs() * near(x),
    "geglu": lambda a, b, *_: (a * b).abs(),
    "swiglu_backward": lambda g, a, b: ((g * b).abs() * near(a), (g * a).abs()),
    "geglu_backward": lambda g, a, b, *_: ((g * b).abs() * near(a) ** 3, (g * a).abs()),
    "add": term_sizes,
    "sub": term_sizes,
}


#: Dtypes beside floats. The last one of all dtypes is a float, as tests of references need it.
OTHER_DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    **dict.fromkeys(("relu", "abs", "neg", "sub"), INTEGERS),
    **dict.fromkeys(("sign", "square", "add", "mul", "minimum", "maximum"), (*INTEGERS, torch.bool)),
}


def call(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    generator: torch.Generator,
    tensors_of_call: int,
    parameters: tuple[Any, ...],
) -> Sample:
    return Sample((*(normal(shape, dtype, generator) for _ in range(tensors_of_call)), *parameters))


def on_rows(tensors_of_call: int, parameters: tuple[Any, ...]) -> Callable[..., Sample]:
    return lambda m, n, dtype, generator: call((m, n), dtype, generator, tensors_of_call, parameters)


def benchmarks(tensors_of_call: int, parameters: tuple[Any, ...]) -> Callable[[torch.Generator], dict[str, Sample]]:
    return lambda generator: {
        f"{n}": call((n,), torch.float32, generator, tensors_of_call, parameters) for n in (1 << 20, 1 << 24)
    }


def spec(
    name: str, reference: Callable[..., Any], samples: Any, tensors_of_call: int, parameters: tuple[Any, ...] = ()
) -> OpSpec:
    """Returns the spec of an op. `parameters` follow the tensors if a call cannot omit them."""
    return OpSpec(
        f"kpkg::{name}",
        reference,
        samples,
        dtypes=(*OTHER_DTYPES.get(name, ()), *ALL_FLOATS),
        magnitude=SIZES.get(name),
        benchmarks=benchmarks(tensors_of_call, parameters),
        eager=reference,
        rows=on_rows(tensors_of_call, parameters),
    )


GELU = (("none",), ("tanh",))
ACTIVATIONS: list[tuple[str, Callable[..., Tensor], tuple[tuple[Any, ...], ...]]] = [
    ("relu", torch.relu, ()),
    ("leaky_relu", F.leaky_relu, ((), (0.3,))),
    ("gelu", gelu, GELU),
    ("silu", F.silu, ()),
    ("sigmoid", torch.sigmoid, ()),
    ("tanh", torch.tanh, ()),
    ("elu", F.elu, ((), (1.7,))),
    ("selu", F.selu, ()),
    ("softplus", F.softplus, ((), (2.0, 5.0))),
    ("hardtanh", F.hardtanh, ((), (-0.5, 2.0))),
    ("hardsigmoid", hardsigmoid, ()),
    ("hardswish", hardswish, ()),
    ("mish", F.mish, ()),
    ("softsign", F.softsign, ()),
    ("exp", torch.exp, ()),
    ("log", torch.log, ()),
    ("sqrt", torch.sqrt, ()),
    ("abs", torch.abs, ()),
    ("square", torch.square, ()),
]
POSITIVE = ("log", "sqrt")
DEFAULTS = {"leaky_relu": (0.01,), "elu": (1.0,), "softplus": (1.0, 20.0), "hardtanh": (-1.0, 1.0)}
#: Gradients from the result, and gradients that PyTorch computes too coarsely. Autograd computes all others.
GRADIENTS: dict[str, Callable[..., Tensor]] = {
    "sigmoid": sigmoid_gradient,
    "tanh": tanh_gradient,
    "exp": lambda grad, out: grad * out,
    "sqrt": lambda grad, out: grad / (2 * out),
    "hardtanh": hardtanh_gradient,
    "hardsigmoid": hardsigmoid_gradient,
    "hardswish": hardswish_gradient,
}

SPECS = [
    *(
        spec(name, function, of_positive(unary_samples()) if name in POSITIVE else unary_samples(*parameters), 1)
        for name, function, parameters in ACTIVATIONS
    ),
    *(
        spec(
            f"{name}_backward",
            GRADIENTS.get(name, gradient_of(function)),
            of_positive(gradient_samples())
            if name in POSITIVE
            else gradient_samples(*(given or DEFAULTS.get(name, ()) for given in parameters)),
            2,
            DEFAULTS.get(name, ()),
        )
        for name, function, parameters in ACTIVATIONS
    ),
    spec("neg", torch.neg, unary_samples(), 1),
    spec("sign", torch.sign, unary_samples(), 1),
    spec("add", add, binary_samples((), (-0.5,)), 2),
    spec("sub", sub, binary_samples((), (2.0,)), 2),
    spec("mul", torch.mul, binary_samples(), 2),
    spec("div", torch.div, binary_samples(), 2),
    spec("minimum", torch.minimum, binary_samples(), 2),
    spec("maximum", torch.maximum, binary_samples(), 2),
    spec("swiglu", swiglu, binary_samples(), 2),
    spec("geglu", geglu, binary_samples(*GELU), 2),
    spec("swiglu_backward", gate_gradients_of(swiglu), gate_gradient_samples(), 3),
    spec("geglu_backward", gate_gradients_of(geglu), gate_gradient_samples(*GELU), 3),
]
