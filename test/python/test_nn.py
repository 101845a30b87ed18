"""Tests drop-in layers: results, gradients and state of torch.nn's layers, and layers without a package.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import io
import os
import subprocess
import sys
import warnings

import kpkg
import pytest
import torch
from conftest import BUILD
from kpkg import nn
from torch.testing import assert_close

pytestmark = pytest.mark.usefixtures("default_ops")

CASES = [
    (nn.Linear, (8, 5), (3, 4, 8)),
    (nn.Linear, (8, 5, False), (8,)),
    (nn.GEMM, (8, 5), (4, 8)),
    (nn.Softmax, (-1,), (3, 4)),
    (nn.Softmax, (0,), (3, 4)),
    (nn.LogSoftmax, (1,), (3, 4, 5)),
    (nn.LayerNorm, (8,), (3, 8)),
    (nn.LayerNorm, ((4, 8),), (2, 4, 8)),
    (nn.RMSNorm, (8,), (3, 8)),
    (nn.GroupNorm, (2, 4), (3, 4, 5)),
    (nn.BatchNorm1d, (4,), (3, 4)),
    (nn.BatchNorm2d, (4,), (3, 4, 5, 5)),
    (nn.BatchNorm3d, (4,), (3, 4, 2, 5, 5)),
    (nn.InstanceNorm1d, (4,), (3, 4, 6)),
    (nn.InstanceNorm2d, (4,), (4, 5, 5)),
    (nn.InstanceNorm3d, (4,), (3, 4, 2, 5, 5)),
    (nn.Conv1d, (3, 4, 3, 2, 1), (2, 3, 9)),
    (nn.Conv2d, (4, 6, 3, 1, "same", 2, 2), (2, 4, 7, 8)),
    (nn.Conv2d, (4, 6, (3, 2), 1, 1, 1, 1, False, "reflect"), (4, 7, 8)),
    (nn.Conv3d, (2, 3, 2, 1, 1), (1, 2, 4, 5, 3)),
    (nn.ConvTranspose1d, (3, 4, 3, 2, 1, 1), (2, 3, 9)),
    (nn.ConvTranspose2d, (4, 6, 4, 2, 1), (2, 4, 5, 5)),
    (nn.ConvTranspose3d, (2, 3, 2, 2), (1, 2, 3, 2, 3)),
    (nn.MaxPool1d, (2,), (2, 7)),
    (nn.MaxPool2d, (3, 2, 1), (1, 2, 7, 7)),
    (nn.MaxPool3d, (2,), (1, 2, 4, 4, 4)),
    (nn.AvgPool1d, (3,), (2, 7)),
    (nn.AvgPool2d, ((3, 2), 2, 1), (1, 2, 7, 7)),
    (nn.AvgPool3d, (2,), (1, 2, 4, 4, 4)),
    (nn.AdaptiveAvgPool1d, (1,), (2, 3, 7)),
    (nn.AdaptiveAvgPool2d, ((1, 1),), (2, 3, 5, 6)),
    (nn.PixelShuffle, (3,), (2, 18, 5, 4)),
    (nn.PixelUnshuffle, (2,), (2, 3, 6, 8)),
    (nn.AdaptiveAvgPool3d, (1,), (3, 4, 2, 5)),
    *(
        (layer, (), (3, 5))
        for layer in (nn.ReLU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.ELU, nn.SELU, nn.Softplus)
    ),
    *((layer, (), (3, 5)) for layer in (nn.Hardtanh, nn.ReLU6, nn.Hardsigmoid, nn.Hardswish, nn.Mish, nn.Softsign)),
]


def pair(layer, args):
    torch.manual_seed(0)
    mine, theirs = layer(*args).eval(), layer.torch_layer(*args).eval()
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


@pytest.mark.parametrize("layer, args, shape", CASES, ids=lambda value: getattr(value, "__name__", None))
def test_drop_in(layer, args, shape):
    mine, theirs = pair(layer, args)
    assert isinstance(mine, layer.torch_layer) and mine.use_kpkg == ("reflect" not in args)
    x, y = (torch.randn(shape, generator=torch.Generator().manual_seed(1)).requires_grad_() for _ in range(2))
    with kpkg.fallback_policy("silent"):  # PyTorch may compute a product's gradient
        found, expected = mine(x), theirs(y)
        assert_close(found, expected)
        upstream = torch.randn_like(found)
        found.backward(upstream)
        expected.backward(upstream)
    assert_close(x.grad, y.grad)
    for (name, p), q in zip(mine.named_parameters(), theirs.parameters()):
        assert_close(p.grad, q.grad, msg=name)


def test_adaptive_pools_of_other_sizes():
    layer, x = nn.AdaptiveAvgPool2d((1, 2)), torch.randn(2, 3, 4, 6)
    assert not layer.use_kpkg
    assert_close(layer(x), torch.nn.functional.adaptive_avg_pool2d(x, (1, 2)))
    assert not nn.AdaptiveAvgPool2d((None, 1)).use_kpkg and nn.AdaptiveAvgPool2d(1).use_kpkg


def test_every_layer_is_tested():
    assert {layer for layer in nn.replacements().values()} <= {layer for layer, *_ in CASES} | {
        nn.CrossEntropyLoss,
        nn.KLDivLoss,
        nn.Embedding,  # takes integers, tested below
        nn.EmbeddingBag,  # in test_embedding_bag.py
        getattr(nn, "LinearCrossEntropyLoss", None),  # in test_linear_cross_entropy.py
        *(nn.RNNCell, nn.LSTMCell, nn.GRUCell),  # in test_cells.py
        *(nn.RNN, nn.LSTM, nn.GRU),  # in test_rnn.py
    }


@pytest.mark.parametrize("options", [{}, {"reduction": "batchmean"}, {"reduction": "none", "log_target": True}])
def test_kl_div(options):
    x = torch.randn(6, 5).log_softmax(-1)
    target = torch.randn(6, 5).log_softmax(-1) if "log_target" in options else torch.rand(6, 5)
    leaves = [t.clone().requires_grad_() for t in (x, target)], [t.clone().requires_grad_() for t in (x, target)]
    mine, theirs = nn.KLDivLoss(**options), torch.nn.KLDivLoss(**options)
    assert mine.use_kpkg
    found, expected = mine(*leaves[0]), theirs(*leaves[1])
    assert_close(found, expected)
    upstream = torch.randn_like(found)
    for a, b in zip(
        torch.autograd.grad(found, leaves[0], upstream), torch.autograd.grad(expected, leaves[1], upstream)
    ):
        assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("padding_idx", [None, 0, -1])
def test_embedding(padding_idx, dtype):
    mine = nn.Embedding(7, 5, padding_idx)
    theirs = torch.nn.Embedding(7, 5, padding_idx)
    theirs.load_state_dict(mine.state_dict())
    assert mine.use_kpkg
    indices = torch.randint(7, (3, 4), dtype=dtype)
    found, expected = mine(indices), theirs(indices)
    assert torch.equal(found, expected)
    upstream = torch.randn_like(found)
    found.backward(upstream)
    expected.backward(upstream)
    assert_close(mine.weight.grad, theirs.weight.grad)


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}])
def test_embedding_runs_pytorch_in_modes_that_no_op_has(options, monkeypatch):
    layer, indices = nn.Embedding(7, 5, **options), torch.tensor([1, 2, 1])
    monkeypatch.setattr(layer, "_run", lambda input: pytest.fail("kpkg's op ran"))
    assert_close(layer(indices), torch.nn.functional.embedding(indices, layer.weight, **options))
    model = torch.nn.Sequential(torch.nn.Embedding(7, 5, **options))
    assert "PyTorch runs in this mode" in kpkg.inject(model, verbose=False).rows[0].status


def test_embedding_is_injected():
    model, indices = torch.nn.Sequential(torch.nn.Embedding(7, 5)), torch.tensor([[6, 0]])
    expected = model(indices)
    with kpkg.inject(model, verbose=False):
        assert type(model[0]) is nn.Embedding
        assert torch.equal(model(indices), expected)
    kpkg.inject(model, sample_input=indices, verbose=False)  # int64 indices: the weight's dtype selects the kernel
    assert torch.equal(model(indices), expected)


def test_every_op_that_is_a_layer_of_pytorch_has_one(default_ops):
    layers = {
        name.lower(): getattr(torch.nn, name) for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)
    }
    wanted = {layers[flat] for name in default_ops if (flat := name.partition("::")[2].replace("_", "")) in layers}
    # Layers for several dimensions, and layers whose name differs from the op's.
    wanted |= {getattr(torch.nn, f"{norm}Norm{d}d") for norm in ("Batch", "Instance") for d in (1, 2, 3)} | {
        torch.nn.CrossEntropyLoss,
        torch.nn.KLDivLoss,
        torch.nn.RNNCell,
    }
    wanted.remove(torch.nn.Dropout)  # kpkg.nn.Dropout has other masks, and does not replace it
    assert len(wanted) >= 40 and wanted <= set(nn.replacements()), wanted - set(nn.replacements())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reduction": "sum", "label_smoothing": 0.1, "ignore_index": 1},
        {"weight": torch.rand(5), "reduction": "none"},
    ],
)
def test_cross_entropy(options):
    x, target = torch.randn(6, 5), torch.randint(5, (6,))
    mine = nn.CrossEntropyLoss(**options)
    assert mine.use_kpkg
    assert_close(mine(x, target), torch.nn.CrossEntropyLoss(**options)(x, target))
    soft = torch.softmax(torch.randn(6, 5), -1)
    if options.get("weight") is None and "ignore_index" not in options:
        assert_close(mine(x, soft), torch.nn.CrossEntropyLoss(**options)(x, soft))


def test_use_kpkg_is_what_runs(default_ops):
    layer, x = nn.LayerNorm(8), torch.randn(2, 8)
    calls = default_ops.layer_norm.op.stats()["calls"]
    layer(x)
    assert default_ops.layer_norm.op.stats()["calls"] == calls + 1
    layer.use_kpkg = False
    assert not layer.use_kpkg
    layer(x)
    assert default_ops.layer_norm.op.stats()["calls"] == calls + 1
    assert "use_kpkg=False" in repr(layer)
    layer.use_kpkg = True
    layer(x)
    assert default_ops.layer_norm.op.stats()["calls"] == calls + 2
    assert not nn.Softmax(-1).supports("cpu", torch.int32) and nn.Softmax(-1).supports("cpu", torch.float16)


def test_modes_that_are_no_op_of_kpkg():
    x = torch.randn(4, 3, 5, 5)
    y = x.clone()
    assert nn.ReLU(inplace=True)(y) is y
    assert not nn.ReLU(inplace=True).use_kpkg and not nn.MaxPool2d(2, return_indices=True).use_kpkg
    pooled, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert indices.dtype == torch.int64 and pooled.shape == indices.shape


@pytest.mark.parametrize("momentum, tracks", [(0.1, True), (None, True), (0.3, False)])
@pytest.mark.parametrize(
    "kind, shape",
    [
        (nn.BatchNorm1d, (9, 3)),
        (nn.BatchNorm1d, (4, 3, 5)),
        (nn.BatchNorm2d, (4, 3, 5, 6)),
        (nn.BatchNorm3d, (2, 3, 4, 5, 6)),
    ],
)
def test_batch_norm_in_training(kind, shape, momentum, tracks):
    norm = kind(3, momentum=momentum, track_running_stats=tracks)
    reference = kind.torch_layer(3, momentum=momentum, track_running_stats=tracks)
    assert norm.use_kpkg
    calls = kpkg.ops.batch_norm_training.op.stats()["launches"]
    for step in range(3):
        x, y = (torch.randn(shape, generator=torch.Generator().manual_seed(step)).requires_grad_() for _ in range(2))
        found, expected = norm(x), reference(y)
        assert_close(found, expected)
        upstream = torch.randn_like(found)
        found.backward(upstream)
        expected.backward(upstream)
        assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
    for (name, value), other in zip(norm.state_dict().items(), reference.state_dict().values()):
        assert_close(value, other, msg=name)
    assert_close(norm.weight.grad, reference.weight.grad)
    assert kpkg.ops.batch_norm_training.op.stats()["launches"] > calls
    assert_close(norm.eval()(x), reference.eval()(y))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm.train()(torch.randn(1, *shape[1:2], *[1] * (len(shape) - 2)))


@pytest.mark.parametrize("shape", [(0, 3, 4), (4, 3, 0)])
def test_batches_of_nothing_keep_the_running_statistics(shape):
    norm, reference = nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    assert_close(norm(torch.ones(shape)), reference(torch.ones(shape)))
    for (name, value), other in zip(norm.state_dict().items(), reference.state_dict().values()):
        assert_close(value, other, msg=name)


def test_pooling_keeps_channels_last():
    x = torch.randn(2, 70, 8, 12).contiguous(memory_format=torch.channels_last)
    for mine, theirs in (
        (nn.MaxPool2d(3, 2, 1), torch.nn.MaxPool2d(3, 2, 1)),
        (nn.AvgPool2d(2), torch.nn.AvgPool2d(2)),
    ):
        with torch.no_grad():
            found = mine(x)
        assert found.is_contiguous(memory_format=torch.channels_last)
        assert_close(found, theirs(x))


def test_transposed_convolutions_of_a_given_size():
    mine, theirs = pair(nn.ConvTranspose2d, (3, 4, 3, 2, 1))
    x = torch.randn(2, 3, 5, 6)
    for size in ([9, 11], [10, 12]):
        assert_close(mine(x, size), theirs(x, size))


@pytest.mark.parametrize(
    "layer, inputs",
    [
        (nn.CrossEntropyLoss(), (torch.randn(4, 5), torch.tensor([0, 4, 2, 1]))),
        (nn.KLDivLoss(reduction="sum"), (torch.randn(4, 5), torch.rand(4, 5))),
        (nn.ConvTranspose2d(3, 4, 3, 2, 1), (torch.randn(2, 3, 5, 6), [10, 12])),
        (nn.GRUCell(3, 4), (torch.randn(2, 3), torch.randn(2, 4))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_compiled_code_runs_pytorch_where_inject_wants_that(layer, inputs, default_ops):
    """Layers that PyTorch fuses with their neighbours leave compiled code to it, with all their inputs."""
    layer._kpkg_when_compiled = False
    op = layer._kpkg_op.op
    torch._dynamo.reset()
    with torch.no_grad():
        before = op.stats()["calls"]
        found = torch.compile(lambda *given: layer(*given), backend="eager")(*inputs)
        assert op.stats()["calls"] == before
        assert_close(found, layer(*inputs))
        assert op.stats()["calls"] == before + 1


def test_copies_keep_what_they_are():
    layer = nn.LayerNorm(8)
    layer.use_kpkg = False
    copied = copy.deepcopy(layer)
    assert not copied.use_kpkg and copied.weight is not layer.weight
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.use_kpkg
    assert_close(loaded.state_dict(), layer.state_dict())


def test_from_torch_shares_and_refuses():
    theirs = torch.nn.LayerNorm(8)
    mine = nn.LayerNorm.from_torch(theirs)
    assert mine.weight is theirs.weight
    theirs.weight = torch.nn.Parameter(torch.full((8,), 2.0))
    assert mine.weight is theirs.weight
    with pytest.raises(TypeError, match="stands for"):
        nn.LayerNorm.from_torch(torch.nn.RMSNorm(8))

    class Own(torch.nn.LayerNorm):
        pass

    with pytest.raises(TypeError, match="not for Own"):
        nn.LayerNorm.from_torch(Own(8))


def test_compile_without_graph_break():
    model = torch.nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.LayerNorm(6), nn.Softmax(-1))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for rows in (3, 5):
        x = torch.randn(rows, 8)
        with torch.no_grad():
            assert_close(compiled(x), model(x))


def in_process(script, **environment):
    """Returns the output of a fresh process."""
    given = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_PATH": "", "KPKG_FALLBACK": "", **environment}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=given)
    return done.stdout + done.stderr


def test_a_linear_layer_calls_an_op_as_its_package_declares_it() -> None:
    class Other(nn.Linear, op="linear_fused"):
        pass

    layer, x = Other(8, 5), torch.randn(2, 3, 8)
    assert layer.use_kpkg
    with torch.no_grad():  # the fused op has no gradient
        assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


ONE_LINE = "from kpkg.nn import GEMM; print(f'kpkg enabled: {GEMM(10, 10).use_kpkg}')"
RUNS = """
import torch, warnings
from kpkg.nn import GEMM
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    layer = GEMM(10, 10)
    x = torch.ones(2, 10)
    for _ in range(3):
        y = layer(x)
    torch.testing.assert_close(y, torch.nn.functional.linear(x, layer.weight, layer.bias))
import kpkg
print(layer.use_kpkg, len(caught), caught[0].message if caught else "", kpkg.kernel_info().get("kpkg::gemm"))
"""


def test_one_liner(packages):
    assert in_process(ONE_LINE, KPKG_PATH=str(packages["gemm"])) == "kpkg enabled: True\n"
    assert in_process(ONE_LINE) == "kpkg enabled: False\n"


@pytest.mark.parametrize("kind", ["missing", "damaged", "folder without packages"])
def test_a_model_runs_without_its_package(kind, packages, tmp_path):
    """PyTorch's op runs, and one warning gives the reason."""
    file = tmp_path / "gemm.kpkg"
    if kind == "damaged":
        file.write_bytes(packages["gemm"].read_bytes()[:1000])
    found = in_process(RUNS, KPKG_PATH=str(tmp_path if kind.startswith("folder") else file))
    assert found.startswith("False 1 op kpkg::gemm runs its fallback: no package has kpkg::gemm"), found
    assert "'fallbacks': 3" in found
    assert kind.startswith("folder") or "gemm.kpkg cannot be opened" in found
    strict = in_process(RUNS, KPKG_PATH=str(file), KPKG_FALLBACK="strict")
    assert "KernelError: kpkg::gemm: no package has kpkg::gemm" in strict
    assert "the policy is strict" in in_process(RUNS, KPKG_PATH=str(file), KPKG_FALLBACK="silent,kpkg::gemm=strict")
    assert in_process(RUNS, KPKG_PATH=str(file), KPKG_FALLBACK="silent").startswith("False 0")


def test_import_is_light():
    """Behind torch, `import kpkg` adds none of the modules that need it, nor other packages."""
    script = """
import sys, torch
before = set(sys.modules)
import kpkg
added = set(sys.modules) - before - {"_xxsubinterpreters"}  # of the standard library, which does not list it
print(sorted({name.partition(".")[0] for name in added} - sys.stdlib_module_names))
print([name for name in added if name.startswith("kpkg") and hasattr(sys.modules[name], "torch")])
"""
    assert in_process(script) == "['kpkg', 'nanobind_backend']\n[]\n"


def test_default_ops(default_ops):
    assert "kpkg::softmax" in set(default_ops) and "softmax" in repr(default_ops.softmax)
    x = torch.randn(2, 3)
    assert_close(default_ops.softmax(x), x.softmax(-1))
    assert default_ops.softmax.supports(x) and not default_ops.softmax.supports(x.int())
    with pytest.raises(kpkg.KernelError, match="no package has kpkg::nothing"), kpkg.fallback_policy("silent"):
        default_ops.nothing(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not default_ops.nothing.is_available
