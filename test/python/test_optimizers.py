"""Compares optimizers, norms and clipping of gradients with PyTorch's in float64.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT, build_package, torch_threads
from kpkg import nn, optim
from torch.testing import assert_close

HALVES = (torch.float16, torch.bfloat16)
SHAPES = [(3, 5), (2049,), (), (1, 1, 7), (0, 4), (64, 64), (2, 3, 4, 5), (5000,), (1,)]
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13, torch.float16: 2e-6, torch.bfloat16: 2e-6}


@pytest.fixture(scope="module")
def ops():
    package = BUILD / "test-packages" / "optimizers.kpkg"
    library = kpkg.load(build_package(ROOT / "kernels_src" / "optimizers", package, "--target", "native"))
    library.register_torch()
    return {op.name.partition("::")[2]: op for op in library}


def draw(dtype):
    return [torch.randn(shape).to(dtype) for shape in SHAPES]


def zeros(dtype):
    return [torch.zeros(shape, dtype=dtype) for shape in SHAPES]


class LionInTorch(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, weight_decay, maximize):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                g = -p.grad if group["maximize"] else p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(m * group["betas"][0] + g * (1 - group["betas"][0])))
                m.mul_(group["betas"][1]).add_(g, alpha=1 - group["betas"][1])


#: Options of PyTorch's optimizer, the name of the op, the number of moments, and arguments behind them.
RULES = {
    "adamw": (torch.optim.AdamW, dict(betas=(0.8, 0.97), eps=1e-6), "fused_adamw_", 2, [0.8, 0.97, 1e-6, 0.1, True]),
    "adam": (torch.optim.Adam, dict(betas=(0.8, 0.97), eps=1e-6), "fused_adamw_", 2, [0.8, 0.97, 1e-6, 0.1, False]),
    "lion": (LionInTorch, dict(betas=(0.8, 0.97)), "fused_lion_", 1, [0.8, 0.97, 0.1]),
    "sgd": (torch.optim.SGD, {}, "fused_sgd_", 0, [0.0, 0.0, 0.1, False]),
    "momentum": (torch.optim.SGD, dict(momentum=0.9, dampening=0.3), "fused_sgd_", 1, [0.9, 0.3, 0.1, False]),
    "nesterov": (torch.optim.SGD, dict(momentum=0.9, nesterov=True), "fused_sgd_", 1, [0.9, 0.0, 0.1, True]),
}


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
@pytest.mark.parametrize("suffix", ["", "_reference"])
@pytest.mark.parametrize("rule", RULES)
def test_steps(ops, rule, suffix, dtype, maximize):
    make, options, name, moments, numbers = RULES[rule]
    state = torch.float32 if dtype in HALVES else dtype
    params = draw(dtype)
    masters = [p.float() for p in params] if dtype in HALVES else []
    means = [zeros(state) for _ in range(moments)] + [[]] * (name == "fused_sgd_" and not moments)
    peers = [torch.nn.Parameter(p.double().clone()) for p in params]
    peer = make(peers, lr=0.01, weight_decay=0.1, maximize=maximize, **options)
    for step in range(1, 4):
        grads = draw(dtype)
        for p, g in zip(peers, grads):
            p.grad = g.double()
        peer.step()
        count = [torch.tensor(float(step))] if name == "fused_adamw_" else []
        more = [maximize] + [step == 1] * (name == "fused_sgd_")
        assert ops[name + suffix](params, grads, *means, masters, *count, 0.01, *numbers, *more) is None
    for found, wanted in zip(masters or params, peers):
        assert_close(found.double(), wanted.detach(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    for found, master in zip(params, masters):
        assert torch.equal(found, master.to(dtype))


@pytest.mark.parametrize("name", ["fused_adamw_", "fused_adamw__reference"])
def test_numbers_on_the_device(ops, name):
    found, wanted, grads, state = draw(torch.float32), None, draw(torch.float32), [zeros(torch.float32) for _ in "mv"]
    wanted, peers = [p.clone() for p in found], [zeros(torch.float32) for _ in "mv"]
    count, more = torch.tensor(1.0), {"lr_tensor": torch.tensor(0.01), "grad_scale": torch.tensor([4.0])}
    ops[name](found, [g * 4 for g in grads], *state, [], count, lr=7.0, **more)
    ops[name](wanted, grads, *peers, [], count, lr=0.01)
    assert_close(found + state[1], wanted + peers[1], rtol=1e-5, atol=1e-7)
    before = [p.clone() for p in found + state[0]]
    ops[name](found, grads, *state, [], count, found_inf=torch.tensor(1.0))
    assert all(map(torch.equal, before, found + state[0]))


def test_memory_formats_and_mixed_dtypes(ops):
    params = [torch.randn(2, 3, 5, 7).to(memory_format=torch.channels_last), torch.randn(9).double()]
    peers = [torch.nn.Parameter(p.double().clone()) for p in params]
    peer = torch.optim.AdamW(peers, lr=0.01)
    for p in peers:
        p.grad = torch.randn(p.shape, dtype=torch.float64)
    grads = [p.grad.to(q.dtype) for p, q in zip(peers, params)]
    peer.step()
    state = [[torch.zeros_like(p) for p in params] for _ in "mv"]
    ops["fused_adamw_"](params, grads, *state, [], torch.ones(()), 0.01)
    assert params[0].is_contiguous(memory_format=torch.channels_last)
    for found, wanted in zip(params, peers):
        assert_close(found.double(), wanted.detach(), rtol=2e-6, atol=2e-6)


def test_fallbacks(ops):
    for rule, (_, _, name, moments, numbers) in RULES.items():
        results = []
        for is_fallback in (False, True):
            torch.manual_seed(4)
            params, grads = draw(torch.bfloat16), draw(torch.bfloat16)
            masters, means = [p.float() for p in params], [zeros(torch.float32) for _ in range(moments)]
            given = [*means, *([[]] if rule == "sgd" else []), masters]
            count = [torch.tensor(2.0)] if name == "fused_adamw_" else []
            found = {"found_inf": torch.zeros(())}
            if is_fallback:
                with kpkg.fallback_policy("silent"), ops[name].configure(kpkg.KernelConfig(target="sm_80")):
                    ops[name](params, grads, *given, *count, 0.01, *numbers, **found)
            else:
                ops[name](params, grads, *given, *count, 0.01, *numbers, **found)
            results.append([*params, *masters, *(m for mean in means for m in mean)])
        for a, b in zip(*results):
            assert_close(a, b, rtol=1e-5 if a.dtype == torch.float32 else 0.01, atol=1e-6)


@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
@pytest.mark.parametrize("suffix", ["", "_reference"])
def test_norms(ops, suffix, dtype, order):
    grads = draw(dtype) + [torch.randn(40, 30).to(dtype)[:, ::3], torch.randn(8)]
    wanted = torch.cat([g.double().reshape(-1) for g in grads]).norm(order)
    found = ops["gradient_norm" + suffix](grads, order)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32) and found.shape == ()
    assert_close(found.double(), wanted, rtol=1e-6, atol=0)


def test_norms_do_not_depend_on_threads_or_strides_of_calls(ops):
    grads = [torch.randn(70000), torch.randn(333, 77).t()]
    first = ops["gradient_norm"](grads)
    with torch_threads(1):
        assert torch.equal(first, ops["gradient_norm"](grads))
    with kpkg.fallback_policy("silent"), ops["gradient_norm"].configure(kpkg.KernelConfig(target="sm_80")):
        assert_close(ops["gradient_norm"](grads), first)


@pytest.mark.parametrize("value", [1.0, float("inf"), float("nan"), 0.0])
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e9])
def test_clipping_is_pytorchs(ops, default_ops, max_norm, value):
    mine = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    for p in mine[:-1]:
        p.grad = torch.randn(p.shape) * 0 if value == 0.0 else torch.randn(p.shape)
    if value != 1.0 and value != 0.0:
        mine[1].grad[7] = value
    theirs = copy.deepcopy(mine)
    for p, q in zip(mine, theirs):
        q.grad = None if p.grad is None else p.grad.clone()
    found = nn.utils.clip_grad_norm_(mine, max_norm)
    assert_close(found, torch.nn.utils.clip_grad_norm_(theirs, max_norm), equal_nan=True)
    for p, q in zip(mine, theirs):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            assert_close(p.grad, q.grad, equal_nan=True)
    assert nn.utils.get_total_norm([]) == 0 and nn.utils.clip_grad_norm_(mine[-1], 1.0) == 0


CLASSES = [
    (optim.AdamW, torch.optim.AdamW, {"betas": (0.8, 0.97)}),
    (optim.Adam, torch.optim.Adam, {"weight_decay": 0.1}),
    (optim.SGD, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (optim.SGD, torch.optim.SGD, {}),
]


def train(optimizer, params, steps, seed=0):
    for step in range(steps):
        generator = torch.Generator().manual_seed(seed + step)
        for i, p in enumerate(params):
            rests = step == 1 and i == 2
            grad = torch.randn(p.shape, generator=generator).to(p.dtype)
            p.grad = None if rests else grad
        optimizer.step()


@pytest.mark.parametrize("mine, theirs, options", CLASSES)
def test_classes_and_their_checkpoints(ops, default_ops, mine, theirs, options):
    first = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    other = copy.deepcopy(first)
    one, two = mine(first, lr=0.01, **options), theirs(other, lr=0.01, **options)
    train(one, first, 3)
    train(two, other, 3)
    assert_close(list(first), list(other))
    for p, q in zip(first, other):
        mine_has, theirs_have = ({k for k, v in o.state[r].items() if v is not None} for o, r in ((one, p), (two, q)))
        assert mine_has == theirs_have
    saved = copy.deepcopy(two.state_dict()), copy.deepcopy(one.state_dict())
    one, two = mine(first, lr=0.5, **options), theirs(other, lr=0.5, **options)
    one.load_state_dict(saved[0])
    two.load_state_dict(saved[1])
    assert one.param_groups[0]["lr"] == 0.01
    train(one, first, 2, 7)
    train(two, other, 2, 7)
    assert_close(list(first), list(other))


def test_steps_are_counted_once_for_many_parameters(ops, default_ops):
    params = [torch.nn.Parameter(torch.randn(2)) for _ in range(1100)]
    optimizer = optim.AdamW(params, lr=torch.tensor(0.01))
    before = ops["fused_adamw_"].stats()["calls"]
    train(optimizer, params[:3], 3)
    train(optimizer, params, 1)
    counts = {p: optimizer.state[p]["step"].item() for p in params}
    assert [counts[p] for p in (params[0], params[2], params[3])] == [4, 3, 1]
    assert ops["fused_adamw_"].stats()["calls"] <= before + 12


@pytest.mark.parametrize("make", [optim.AdamW, optim.Lion, optim.SGD])
def test_master_weights(ops, default_ops, make):
    p = torch.nn.Parameter(torch.ones(300, dtype=torch.bfloat16))
    optimizer = make([p], lr=1e-4, master_weights=True)
    for _ in range(8):
        p.grad = torch.full_like(p, 3.0)
        optimizer.step()
    master = optimizer.state[p]["master"]
    assert master.dtype == torch.float32 and torch.equal(p, master.bfloat16())
    assert 0.0005 < 1 - float(master[0].detach()) < 0.003
    loaded = make([p], lr=1e-4, master_weights=True)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert loaded.state[p]["master"].dtype == torch.float32 and torch.equal(loaded.state[p]["master"], master)


def test_grad_scaler(ops, default_ops):
    p = torch.nn.Parameter(torch.ones(30))
    optimizer, scaler = optim.AdamW([p], lr=0.1), torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((p * torch.arange(30.0)).sum()).backward()
    scaler.step(optimizer)
    assert optimizer.state[p]["step"] == 1 and p[1] < 1
    before = p.detach().clone()
    p.grad = torch.full((30,), torch.inf)
    scaler.update()
    scaler.step(optimizer)
    assert torch.equal(p, before) and optimizer.state[p]["step"] == 1


X = torch.ones(4, 6)
ONE = torch.ones(())
WRONG = [
    ("fused_adamw_", ([X], [X[1:]], [X], [X], [], ONE), r"grads\[0\] has shape \[3, 6\], params\[0\] \[4, 6\]"),
    ("fused_adamw_", ([X], [X.double()], [X], [X], [], ONE), r"grads\[0\] is float64, expected float32"),
    ("fused_adamw_", ([X], [], [X], [X], [], ONE), r"grads has 0 tensors, params 1"),
    ("fused_adamw_", ([X], [X], [X, X], [X], [], ONE), r"exp_avgs has 2 tensors, params 1"),
    ("fused_adamw_", ([X], [X], [X], [X.half()], [], ONE), r"exp_avg_sqs\[0\] is float16, expected float32"),
    ("fused_adamw_", ([X], [X], [X], [torch.ones(6, 4).t()], [], ONE), r"exp_avg_sqs\[0\] has strides \[1, 4\]"),
    ("fused_adamw_", ([X], [X], [X], [X], [X], ONE), r"params\[0\] is float32: master weights are for float16"),
    ("fused_adamw_", ([X], [X], [X], [X], [], X), r"step is float32 of shape \[4, 6\], expected one float32"),
    ("fused_adamw_", ([X], [X], [X], [X], [], ONE, -1.0), r"lr is -1, expected 0 or more"),
    ("fused_adamw_", ([X], [X], [X], [X], [], ONE, 1.0, 1.0), r"beta1 is 1, expected 0 or more and less than 1"),
    ("fused_lion_", ([X], [X], [X.half()], []), r"exp_avgs\[0\] is float16, expected float32"),
    ("fused_sgd_", ([X], [X], [], [], 0.1, 0.9), r"momentum_buffers has 0 tensors, params 1"),
    ("fused_sgd_", ([X], [X], [], [], 0.1, -0.9), r"momentum is -0.9, expected 0 or more"),
    ("gradient_norm", ([],), r"grads is empty"),
    ("gradient_norm", ([X], 0.0), r"ord is 0, expected more than 0"),
    ("gradient_norm", ([X.int()],), r"grads\[0\] is int32, expected float32"),
    ("clip_gradients_", ([X], ONE.half(), 1.0), r"norm is float16 of shape \[\], expected one float32 or float64"),
    ("clip_gradients_", ([X], ONE, -1.0), r"max_norm is -1, expected 0 or more"),
]


@pytest.mark.parametrize("name, arguments, message", WRONG)
def test_wrong_arguments_are_named(ops, name, arguments, message):
    """Lists that are written may not share memory."""
    copies = [[torch.empty_like(t).copy_(t) for t in a] if isinstance(a, list) else a for a in arguments]
    with kpkg.fallback_policy("strict"), pytest.raises(kpkg.KernelError, match=message):
        ops[name](*copies)


@pytest.mark.parametrize("options", [{"lr": -1.0}, {"betas": (1.0, 0.9)}, {"eps": -1.0}])
def test_wrong_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        optim.AdamW([torch.nn.Parameter(X)], **options)
