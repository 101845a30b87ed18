"""Tests ops with lists of tensors: a multi-tensor AdamW step, and lists of every length, shape and dtype.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess

import kpkg
import numpy as np
import pytest
import torch
from conftest import COMMAND, ROOT, compile_cpp, load_source

SOURCE = '''
comptime WIDTH = 256


@kernel
@specialize(T=[float32, float64])
def adamw_tiles[T: DType](mut p: Tensor[T, 1], g: Tensor[T, 1], mut m: Tensor[T, 1], mut v: Tensor[T, 1],
                          lr: Float64, beta1: Float64, beta2: Float64, eps: Float64, decay: Float64,
                          correction1: Float64, correction2: Float64):
    """One block of a tensor; the corrections are those of the two means for this step."""
    var b = block_idx.x
    var grad = g.tile[WIDTH](b).load()
    var mean = m.tile[WIDTH](b).load() * beta1 + grad * (1.0 - beta1)
    var square = v.tile[WIDTH](b).load() * beta2 + grad * grad * (1.0 - beta2)
    var step = (mean / correction1) / (sqrt(square / correction2) + eps)
    p.tile[WIDTH](b).store(p.tile[WIDTH](b).load() * (1.0 - lr * decay) - step * lr)
    m.tile[WIDTH](b).store(mean)
    v.tile[WIDTH](b).store(square)


@register.op("kpkg_lists::adamw_step")
def adamw_step(mut params: List[Tensor], grads: List[Tensor], mut exp_avgs: List[Tensor],
               mut exp_avg_sqs: List[Tensor], correction1: Float64, correction2: Float64, lr: Float64 = 0.001,
               beta1: Float64 = 0.9, beta2: Float64 = 0.999, eps: Float64 = 1e-8, weight_decay: Float64 = 0.01) raises:
    """One AdamW step of all tensors; the corrections are 1 - beta1 ** step and 1 - beta2 ** step."""
    var n = len(params)
    if len(grads) != n or len(exp_avgs) != n or len(exp_avg_sqs) != n:
        raise Error("params has {} tensors, but grads {}, exp_avgs {} and exp_avg_sqs {}", n, len(grads),
                    len(exp_avgs), len(exp_avg_sqs))
    for i in range(n):
        if grads[i].shape != params[i].shape:
            raise Error("grads[{}] has shape {}, params[{}] {}", i, grads[i].shape, i, params[i].shape)
        var size = params[i].numel()
        launch adamw_tiles[T=params[i].dtype](params[i].reshape(size), grads[i].reshape(size),
            exp_avgs[i].reshape(size), exp_avg_sqs[i].reshape(size), lr, beta1, beta2, eps, weight_decay,
            correction1, correction2, grid=ceildiv(size, WIDTH))


@kernel
@specialize(T=[float32, float64])
def add_tiles[T: DType](x: Tensor[T, 1], mut y: Tensor[T, 1]):
    y.tile[WIDTH](block_idx.x).store(y.tile[WIDTH](block_idx.x).load() + x.tile[WIDTH](block_idx.x).load())


def add_all(mut sum: Tensor, terms: List[Tensor]):
    for i in range(len(terms)):
        launch add_tiles[T=sum.dtype](terms[i], sum, grid=ceildiv(sum.shape[0], WIDTH))


@register.op("kpkg_lists::sum_of")
def sum_of(terms: List[Tensor]) raises -> Tensor:
    """The sum of vectors of one shape and dtype."""
    if len(terms) == 0:
        raise Error("terms is empty")
    var sum = zeros_like(terms[0])
    add_all(sum, terms[:1] + terms[1:])
    return sum


@register.op("kpkg_lists::sum_with")
@register.torch(fallback="stack([x, *others]).sum(0, dtype=x.dtype)")
def sum_with(x: Tensor, others: List[Tensor]) raises -> Tensor:
    """The sum of x and others, by PyTorch where the dtype has no kernel."""
    var sum = zeros_like(x)
    add_all(sum, [x] + others)
    return sum


@register.op("kpkg_lists::add_into")
def add_into(mut sum: List[Tensor], x: Tensor, others: List[Tensor]):
    """Adds x, then others, to the first tensor of sum."""
    add_all(sum[0], [x] + others)


@register.op("kpkg_lists::twice")
def twice(x: Tensor) raises -> Tensor:
    """x + x, by two other ops."""
    var terms: List[Tensor] = []
    terms.append(sum_of([x]))
    terms.append(x)
    return sum_of(terms)


@register.op("kpkg_lists::at")
def at(xs: List[Tensor], i: Int) raises -> Tensor:
    """Zeros like xs[i]."""
    return zeros_like(xs[i])
'''

SHAPES = [(3, 5), (257,), (), (1, 1, 7), (0, 4), (64, 64), (2, 3, 4, 5)]


@pytest.fixture(scope="module")
def lists():
    return load_source("lists/lists", SOURCE)


def state(shapes, dtype, seed=0):
    """Returns parameters, gradients and both means, which are zeros."""
    random = torch.Generator().manual_seed(seed)
    params = [torch.randn(shape, generator=random, dtype=torch.float64).to(dtype) for shape in shapes]
    grads = [torch.randn(shape, generator=random, dtype=torch.float64).to(dtype) for shape in shapes]
    return params, grads, [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]


def corrections(step):
    return 1 - 0.9**step, 1 - 0.999**step


def reference(shapes, steps, seed=0, **options):
    """Returns the parameters after AdamW of PyTorch over the list, in float64."""
    params, grads, *_ = state(shapes, torch.float64, seed)
    leaves = [p.requires_grad_() for p in params]
    optimizer = torch.optim.AdamW(leaves, foreach=True, **options)
    for _ in range(steps):
        for leaf, grad in zip(leaves, grads):
            leaf.grad = grad.clone()
        optimizer.step()
    return [leaf.detach() for leaf in leaves]


@pytest.mark.parametrize("shapes", [SHAPES, [(1000,)], [(k % 7, k % 5) for k in range(200)], []])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_adamw_steps_are_pytorchs(lists, shapes, dtype, tolerance):
    params, grads, means, squares = state(shapes, dtype)
    for step in range(1, 4):
        lists.adamw_step(params, grads, means, squares, *corrections(step), lr=0.01, weight_decay=0.1)
    if not shapes:
        return
    for found, wanted in zip(params, reference(shapes, 3, lr=0.01, weight_decay=0.1)):
        torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


def test_one_plan_serves_all_steps(lists):
    before = lists.adamw_step.stats()
    arguments = state([(11, 3), (31,), (2, 2)], torch.float32)
    for step in range(1, 6):
        lists.adamw_step(*arguments, *corrections(step), lr=0.1 / step)
    after = lists.adamw_step.stats()
    assert after["resolutions"] == before["resolutions"] + 1
    assert after["launches"] == before["launches"] + 15


def test_dtypes_and_strides_differ_from_element_to_element(lists):
    params, grads, means, squares = state([(6, 4), (5, 3)], torch.float64)
    wanted = reference([(6, 4), (5, 3)], 1)
    params[0], grads[0] = params[0].float(), grads[0].float()
    means[0], squares[0] = means[0].float(), squares[0].float()
    whole = torch.zeros(3, 10, dtype=torch.float64)
    params[1] = whole[:, ::2].t().copy_(params[1])
    grads[1] = grads[1].t().contiguous().t()
    lists.adamw_step(params, grads, means, squares, *corrections(1))
    torch.testing.assert_close(params[0].double(), wanted[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(params[1], wanted[1])
    torch.testing.assert_close(whole[:, ::2].t(), wanted[1])
    assert not whole[:, 1::2].any()


def test_numpy_arrays_make_lists_too(lists):
    params, grads, means, squares = (list(map(torch.Tensor.numpy, part)) for part in state(SHAPES, torch.float64))
    assert lists.adamw_step(params, grads, means, squares, *corrections(1)) is None
    for found, wanted in zip(params, reference(SHAPES, 1)):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-13, atol=1e-13)
    with pytest.raises(TypeError, match="argument 'grads' must be a list of arrays, not 3"):
        lists.adamw_step(params, 3, means, squares, *corrections(1))


def test_lists_of_other_lengths_and_shapes_are_refused_by_name(lists):
    params, grads, means, squares = state(SHAPES, torch.float32)
    with pytest.raises(kpkg.KernelError, match="params has 7 tensors, but grads 6, exp_avgs 7 and exp_avg_sqs 7"):
        lists.adamw_step(params, grads[1:], means, squares, *corrections(1))
    with pytest.raises(kpkg.KernelError, match=r"grads\[0\] has shape \[257\], params\[0\] \[3, 5\]"):
        lists.adamw_step(params, grads[1:] + grads[:1], means, squares, *corrections(1))
    with pytest.raises(kpkg.KernelError, match="index 7 is out of range for `xs` of 7 tensors"):
        lists.at(params, 7)
    with pytest.raises(kpkg.KernelError, match="terms is empty"):
        lists.sum_of([])
    with pytest.raises(kpkg.KernelError, match=r"`p` has dtype float32|has dtype float64, expected float32"):
        lists.adamw_step(params, [g.double() for g in grads], means, squares, *corrections(1))
    with pytest.raises(kpkg.KernelError, match="a list of 4097 tensors, more than 4096"):
        lists.sum_of([torch.ones(1)] * 4097)


def test_memory_that_is_written_is_not_shared(lists):
    params, grads, means, squares = state([(4,), (4,)], torch.float32)
    with pytest.raises(
        kpkg.KernelError, match=r"argument `params\[1\]` is written and shares memory with argument `exp_avgs\[0\]`"
    ):
        lists.adamw_step(params, grads, [params[1], means[1]], squares, *corrections(1))
    shared = [grads[0], grads[0]]  # read twice
    lists.adamw_step(params, shared, means, squares, *corrections(1))


def test_dtypes_without_a_kernel_name_what_there_is(lists):
    params, grads, means, squares = state([(4,)], torch.float16)
    with pytest.raises(kpkg.KernelError, match="float16"):
        lists.adamw_step(params, grads, means, squares, *corrections(1))


@pytest.mark.parametrize("index", [0, 2, -1, -3])
def test_indices_count_from_the_end_as_in_python(lists, index):
    xs = [torch.ones(n) for n in (3, 4, 5)]
    assert lists.at(xs, index).shape == xs[index].shape


def test_lists_are_made_and_passed_on(lists):
    xs = [torch.arange(5.0) + k for k in range(3)]
    assert torch.equal(lists.sum_of(tuple(xs)), sum(xs))
    assert torch.equal(lists.twice(xs[1]), 2 * xs[1])
    total = torch.zeros(5)
    lists.add_into([total], xs[0], xs[1:])
    assert torch.equal(total, sum(xs))
    lists.add_into([total], xs[0], [])
    assert torch.equal(total, sum(xs) + xs[0])


def test_fallbacks_get_lists(lists):
    import gc
    import weakref

    xs = [torch.arange(5, dtype=torch.int32) + k for k in range(3)]
    before = lists.sum_with.stats()["fallbacks"]
    with kpkg.fallback_policy("silent"):
        for op in (lists.sum_with, torch.ops.kpkg_lists.sum_with):
            assert torch.equal(op(xs[0], xs[1:]), sum(xs))
            assert torch.equal(op(xs[0], []), xs[0])
    assert lists.sum_with.stats()["fallbacks"] == before + 4
    floats = [x.float() for x in xs]
    for op in (lists.sum_with, torch.ops.kpkg_lists.sum_with):
        assert torch.equal(op(floats[0], floats[1:]), sum(floats))
    assert lists.sum_with.stats()["fallbacks"] == before + 4
    with pytest.raises(kpkg.KernelError, match="kpkg_lists::sum_with has no backward"):
        lists.sum_with(floats[0], [floats[1], floats[2].clone().requires_grad_()])
    seen = [weakref.ref(x) for x in (*xs, *floats)]
    del xs, floats
    gc.collect()
    assert not any(reference() is not None for reference in seen)


def test_schemas_are_pytorchs(lists):
    assert lists.adamw_step.schema.startswith(
        "adamw_step(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, float "
    )
    lists.sum_of([torch.ones(2)])
    assert str(torch.ops.kpkg_lists.sum_of.default._schema) == "kpkg_lists::sum_of(Tensor[] terms) -> Tensor"
    assert torch.equal(torch.ops.kpkg_lists.sum_of([torch.ones(2)] * 3), torch.full((2,), 3.0))
    with pytest.raises(TypeError, match=r"argument 'terms' is .*, expected Tensor\[\]"):
        lists.sum_of([torch.ones(2), 3])


def test_opcheck_accepts_ops_with_lists(lists):
    params, grads, means, squares = state(SHAPES, torch.float32)
    lists.register_torch()
    torch.library.opcheck(torch.ops.kpkg_lists.adamw_step.default, (params, grads, means, squares, *corrections(1)))
    torch.library.opcheck(torch.ops.kpkg_lists.sum_of.default, ([torch.randn(9), torch.randn(9)],))
    torch.library.opcheck(
        torch.ops.kpkg_lists.add_into.default, ([torch.randn(300)], torch.randn(300), [torch.randn(300)])
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_steps_are_the_same(lists, dynamic):
    lists.register_torch()

    def step(params, grads, means, squares, count):
        torch.ops.kpkg_lists.adamw_step(params, [g * 2 for g in grads], means, squares, *corrections(count))
        return torch.ops.kpkg_lists.sum_of([p.reshape(-1) for p in params])

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for n in (6, 12):
        shapes = [(2, n), (n, 2), (2 * n,)]
        with torch.no_grad():
            one, other = state(shapes, torch.float64), state(shapes, torch.float64)
            torch.testing.assert_close(compiled(*one, 3), step(*other, 3))
        for found, wanted in zip(one[0] + one[2] + one[3], other[0] + other[2] + other[3]):
            torch.testing.assert_close(found, wanted)


def test_symbolic_shape_plans_read_lists(lists):
    from kpkg import _fake, _symbolic

    for op, arguments in [(lists.at, ([torch.ones(3), torch.ones(4, 2)], 1)), (lists.sum_of, ([torch.ones(6)] * 2,))]:
        values = op.bind(arguments, {})
        shapes = [tuple(result[0]) for result in _symbolic.infer(op, values)]
        assert shapes == [tuple(result[0]) for result in _fake._infer(op, values)]
    with pytest.raises(kpkg.KernelError, match="out of range"):
        _symbolic.infer(lists.at, lists.at.bind(([torch.ones(3)], 1), {}))


def test_written_lists_count_as_changed_for_autograd(lists):
    params, grads, means, squares = state([(4,), (5,)], torch.float32)
    before = [p._version for p in params]
    lists.adamw_step(params, grads, means, squares, *corrections(1))
    assert [p._version for p in params] == [version + 1 for version in before]
    assert all(g._version == 0 for g in grads)


def test_tensors_of_lists_have_no_gradients(lists):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(kpkg.KernelError, match="kpkg_lists::sum_of has no backward"):
        lists.sum_of([torch.ones(3), x])
    with torch.no_grad():
        lists.sum_of([torch.ones(3), x])


def test_calls_are_explained(lists):
    text = lists.adamw_step.explain(*state([(4,), (5,)], torch.float32), *corrections(1))
    assert "params[1]" in text
    assert lists.adamw_step.supports(*state([(4,)], torch.float64), *corrections(1))
    assert not lists.adamw_step.supports(*state([(4,)], torch.float16), *corrections(1))


def test_lists_of_many_calls_do_not_leak(lists):
    import gc
    import weakref

    lists.register_torch()
    x = torch.ones(1000)
    for _ in range(3):
        torch.ops.kpkg_lists.sum_of([x, x])
        with pytest.raises(RuntimeError):
            torch.ops.kpkg_lists.sum_of([x.half(), x])
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


def test_cpp_and_c_take_lists(lists, tmp_path):
    compile_cpp(ROOT / "test" / "python" / "inputs" / "tensor_lists.cpp", tmp_path / "lists", "-Wextra")
    done = subprocess.run([tmp_path / "lists", lists.path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


def command(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True)


def test_command_takes_lists(lists):
    done = command(
        "run", lists.path, "sum_of", "--input", "terms=[randn(3,5).T,ones(5,3), zeros(5,3)]", "--device", "cpu"
    )
    assert "is out of range" in done.stderr or "rank" in done.stderr
    done = command(
        "run", lists.path, "sum_of", "-i", "terms=[arange(300,f64), ones(300,f64)]", "--device", "cpu", "--time"
    )
    assert done.returncode == 0, done.stderr
    assert "input     terms[1] = float64 [300]" in done.stdout
    assert "launch add_tiles" in done.stdout
    done = command(
        "run", lists.path, "add_into", "-i", "sum=[zeros(4)]", "-i", "x=ones(4)", "-i", "others=[]", "--device", "cpu"
    )
    assert done.returncode == 0, done.stderr
    done = command("run", lists.path, "sum_of", "-i", "terms=[ones(3), 3]")
    assert done.returncode and "'3' is no tensor; write [randn(512,f32), zeros(3,4)]" in done.stderr
    assert "sum_of(Tensor[] terms) -> Tensor" in command("info", lists.path).stdout
