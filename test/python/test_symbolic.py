"""Compares the shape plan evaluated in Python with the runtime's own evaluation, on random arguments.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import kpkg
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kpkg import _fake, _symbolic, _views
from opspec import load_specs

RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def both(op, values):
    """Returns the results of both evaluations, None where one refuses the arguments."""
    answers = []
    for evaluate in (_fake._infer, _symbolic.infer):
        try:
            answers.append(
                [tuple(map(tuple, r[:2])) + (r[2],) if isinstance(r, tuple) else r for r in evaluate(op, values)]
            )
        except kpkg.KernelError:
            answers.append(None)
    return answers


@pytest.mark.parametrize("spec", [pytest.param(s, id=s.name) for s in load_specs()])
def test_samples(spec, ops):
    op = ops[spec.name]
    dtype = torch.float32 if torch.float32 in spec.dtypes else spec.dtypes[0]
    for sample in spec.samples(dtype, torch.Generator().manual_seed(1)):
        runtime, python = both(op, op.bind(sample.args, sample.kwargs))
        assert runtime is not None and runtime == python, sample.label


extents = st.integers(0, 4)
shapes = st.lists(extents, max_size=4)


@st.composite
def tensors(draw):
    shape = draw(shapes)
    t = torch.empty(shape, dtype=draw(st.sampled_from([torch.float32, torch.float16])), device="meta")
    if len(shape) > 1 and draw(st.booleans()):
        t = t.transpose(draw(st.integers(0, len(shape) - 1)), draw(st.integers(0, len(shape) - 1)))
    if shape and draw(st.booleans()):
        t = t[::2]
    return t


@RELAXED
@given(a=tensors(), b=tensors(), c=st.none() | tensors())
def test_gemm_batched(ops, a, b, c):
    runtime, python = both(ops["kpkg::gemm_batched"], [a, b, 1.0, 1.0, c, ""])
    assert runtime == python


@RELAXED
@given(x=tensors(), tail=shapes, weight=st.none() | tensors())
def test_native_layer_norm(ops, x, tail, weight):
    shape = list(x.shape[-len(tail) :]) if tail and len(tail) <= x.dim() else tail
    runtime, python = both(ops["kpkg::native_layer_norm"], [x, shape, weight, None, 1e-5])
    assert runtime == python


@RELAXED
@given(x=tensors(), dim=st.integers(-5, 5))
def test_softmax(ops, x, dim):
    runtime, python = both(ops["kpkg::softmax"], [x, dim, None, False])
    assert runtime == python


@RELAXED
@given(x=tensors(), data=st.data())
def test_reshape_is_a_view_exactly_where_torch_says_so(x, data):
    """Compares with PyTorch's own view rule, on tensors that are not empty."""
    if x.numel() == 0:
        return
    flat = [d for n in x.shape for d in ((2, n // 2) if n == 4 and data.draw(st.booleans()) else (n,))]
    view = _views.reshape(_views.View("float32", tuple(x.shape), tuple(x.stride()), True), flat)
    try:
        expected = x.view(flat)
    except RuntimeError:
        assert not view.is_argument
        return
    assert view.is_argument
    assert [s for s, n in zip(view.strides, flat) if n > 1] == [s for s, n in zip(expected.stride(), flat) if n > 1]


def run_code(code, registers, arguments, strings=("f",)):
    import json

    plan = {
        "strings": list(strings),
        "functions": [{"name": "f", "parameters": [], "results": "i", "registers": registers, "code": code}],
    }
    return _symbolic._Machine("f", _symbolic._module(json.dumps(plan))).run(0, list(arguments))


COUNTING = [
    ["const_int", [1], [], [0]],
    ["const_int", [2], [], [0]],
    ["loop_for", [], [1, 0, 3], [5]],
    ["add_int", [2], [2, 1], []],
    ["loop_end", [], [], [2]],
    ["ret", [], [2, 1], []],
]


@given(bound=st.integers(-3, 20), step=st.integers(1, 4))
def test_counted_loop(bound, step):
    counters = list(range(0, bound, step))
    assert run_code(COUNTING, "iiii", [bound, None, None, step]) == [sum(counters), counters[-1] if counters else 0]


def test_while_loop_leaves_at_the_break():
    code = [
        ["loop_while", [], [], [4]],
        ["cmp_int", [2], [0, 1], [4]],
        ["break_unless", [], [2], []],
        ["add_int", [0], [0, 0], []],
    ]
    code = [code[0][:3] + [[5]], *code[1:], ["loop_end", [], [], [0]], ["ret", [], [0], []]]
    assert run_code(code, "iib", [3, 40, None]) == [48]


def test_raise_formats_values():
    code = [["raise", [], [0, 1], [1]]]
    with pytest.raises(kpkg.KernelError, match=r"f: \{x\} is \[1, 2\], not 3\."):
        run_code(code, "li", [[1, 2], 3], ("f", "{{x}} is {}, not {}."))
