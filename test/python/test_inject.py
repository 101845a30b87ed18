"""Tests replacing layers of models: finding, checking, measuring, keeping and restoring them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util

import kpkg
import pytest
import torch
from kpkg import _inject, _measure, _whole
from kpkg._injection import Injection
from torch.testing import assert_close

pytestmark = [pytest.mark.usefixtures("default_ops")]


class Block(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.act, self.relu = torch.nn.GELU(), torch.nn.ReLU(inplace=True)
        self.again = self.act

    def forward(self, x):
        h = self.norm(x)
        q = h.view(*x.shape[:2], 4, -1).transpose(1, 2)
        h = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(x.shape)
        h = torch.bmm(h, torch.bmm(h.transpose(1, 2), h))
        return x + self.relu(self.down(self.again(self.up(h))))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Block().eval()


X = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(3))


def kinds(model):
    return {name: type(layer).__module__.split(".")[0] for name, layer in model.named_modules() if name}


def test_replaces_checks_and_restores(model, fast, capsys):
    expected, state = model(X).detach(), model.state_dict()
    before = dict(model.named_modules())
    with torch.no_grad(), kpkg.inject(model, sample_input=X) as injection:
        assert set(kinds(model).values()) == {"kpkg"}
        assert model.again is model.act and not model.relu.inplace
        assert_close(model(X), expected)
        assert_close(model.state_dict(), state)
        assert [(row.name, row.layer) for row in injection.rows] == [
            ("norm", "LayerNorm"), ("up", "Linear"), ("down", "Linear"), ("act", "GELU"), ("relu", "ReLU"),
            ("", "scaled_dot_product_attention()"), ("", "bmm()"),
        ]  # fmt: skip
        assert all(
            row.is_replaced and row.error < 1e-4 and row.original_us == 2.0 * calls and row.kpkg_us == calls
            for row, calls in zip(injection.rows, [1, 1, 1, 1, 1, 1, 2])
        )
        assert injection.error < 1e-4 and injection.original_us == 2.0
    table = capsys.readouterr().out
    assert "scaled_dot_product_attention()" in table and "7 of 7 replaced" in table
    assert dict(model.named_modules()) == before and "forward" not in model.__dict__
    assert all(row.status == "restored" for row in injection.rows)
    assert torch.equal(model(X), expected)


def test_slower_layers_stay(model, monkeypatch):
    monkeypatch.setattr(_measure, "interleaved", lambda first, second, **_: (1.0, 1.2))
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert not injection.replaced and set(kinds(model).values()) == {"torch"}
    assert {row.status for row in injection.rows} == {"kept: kpkg is slower"}


def test_what_makes_the_model_slower_goes_out(model, fast, monkeypatch):
    """Each layer alone is faster, but the model is slower with the calls and with its activations."""

    def compared(injection, sample, rows):
        found = sorted({row.layer for row in rows})
        slow = [kind for kind in found if kind.endswith("()") or kind == "GELU"]
        assert all(row.is_replaced for row in rows)
        return 2.0, 1.0 + 2.0 * len(slow)

    monkeypatch.setattr(_whole, "_compared", compared)
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    out = {row.layer for row in injection.rows if row.status == "kept: the model as a whole is slower with it"}
    assert out == {"GELU", "bmm()", "scaled_dot_product_attention()"} and "forward" not in model.__dict__
    assert injection.kpkg_us == 1.0 and {row.layer for row in injection.replaced} == {"LayerNorm", "Linear", "ReLU"}
    assert_close(model(X), Block.forward(model, X))


def test_slower_in_all(model, fast, monkeypatch):
    """No single kind of layer causes the slowdown."""
    before = dict(model.named_modules())
    monkeypatch.setattr(
        _whole, "_compared", lambda injection, sample, rows: (1.0, 1.2 if len({row.layer for row in rows}) > 1 else 0.9)
    )
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert not injection.replaced and dict(model.named_modules()) == before
    assert {row.status for row in injection.rows} == {"kept: the model as a whole is slower with them all"}


def test_comparison_leaves_replacements_in(model, fast):
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    without, with_them = _whole._compared(injection, X, injection.replaced)
    assert without > 0 and with_them > 0 and set(kinds(model).values()) == {"kpkg"}


def test_wrong_results_stay_out(model, fast, monkeypatch):
    monkeypatch.setattr(kpkg.nn.GELU, "_arguments", lambda self, x: (x * 1.01, "none"))
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    rows = {row.name: row for row in injection.rows}
    assert rows["act"].status.startswith("kept: its output differs by") and rows["up"].is_replaced
    assert kpkg.inject(Block().eval(), include="act", sample_input=X, tolerance=0.1, verbose=False).replaced


def test_include_and_exclude(model, fast):
    injection = kpkg.inject(model, include=["Linear", "norm"], exclude="down", sample_input=X, verbose=False)
    assert [row.name for row in injection.rows] == ["norm", "up"]
    injection.restore()
    assert [row.layer for row in kpkg.inject(model, include="bmm", sample_input=X, verbose=False).rows] == ["bmm()"]


def test_without_a_sample(model):
    injection = kpkg.inject(model, verbose=False)
    assert {row.status for row in injection.rows} == {"replaced (not checked)"} and len(injection.rows) == 5
    with torch.no_grad():
        assert_close(model(X), Block_like(model)(X))


def Block_like(model):
    plain = Block().eval()
    plain.load_state_dict(model.state_dict())
    return plain


def test_what_is_left_alone(fast):
    class Own(torch.nn.Linear):
        pass

    model = torch.nn.Sequential(
        Own(4, 4),
        torch.nn.Linear(4, 4),
        torch.nn.Softmax(-1),
        torch.nn.BatchNorm1d(4),
        torch.nn.Linear(4, 4, dtype=torch.complex64),
    )
    model[1].forward = lambda x: x * 2
    model[4].forward = lambda x: x
    injection = kpkg.inject(model, sample_input=torch.randn(3, 4), verbose=False)
    status = {row.name: row.status for row in injection.rows}
    assert "0" not in status and status["1"].startswith("kept: its forward") and status["2"] == "replaced"
    assert status["3"].startswith("kept: PyTorch runs in this mode")
    assert type(model[0]) is Own


def test_kernels_that_are_not_there(model, fast):
    model.half()
    with kpkg.fallback_policy("silent"), kpkg.ops.gelu.op.configure(kpkg.KernelConfig(dtype="float32")):
        injection = kpkg.inject(model, include=["act", "norm"], sample_input=X.half(), verbose=False)
    assert {row.name: row.status for row in injection.rows} == {
        "act": "kept: no kernel for its dtype and device",
        "norm": "replaced",
    }


def test_training_goes_on(model, fast):
    reference = Block_like(model).train()
    model.train()
    with kpkg.fallback_policy("silent"):
        injection = kpkg.inject(model, sample_input=X, verbose=False)
        for each in (model, reference):
            optimiser = torch.optim.SGD(each.parameters(), 1e-4)
            for _ in range(3):
                optimiser.zero_grad()
                each(X).square().sum().backward()
                optimiser.step()
        injection.restore()
    assert_close(model.state_dict(), reference.state_dict())


def test_attention_forms():
    """Compares the replacement of scaled_dot_product_attention with the original."""
    from kpkg import _call_products

    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 6)
    attention = torch.nn.functional.scaled_dot_product_attention
    mask = torch.rand(5, 7) > 0.3
    for options in ({}, {"attn_mask": mask}, {"attn_mask": mask.float()}, {"is_causal": True}, {"scale": 0.5}):
        assert_close(_call_products.scaled_dot_product_attention(q, k, v, **options), attention(q, k, v, **options))
    few = torch.randn(2, 2, 7, 8)
    assert_close(
        _call_products.scaled_dot_product_attention(q, few, few, enable_gqa=True),
        attention(q, few, few, enable_gqa=True),
    )


def test_error_and_time():
    x = torch.randn(10)
    assert _measure.compare(x, x, None) == (0.0, 1e-4)
    assert _measure.compare(x + x.abs().max(), x, None)[0] == pytest.approx(1.0)
    assert _measure.compare(x.double(), x, None)[0] == float("inf")
    assert _measure.compare(torch.tensor([float("nan")]), torch.tensor([float("inf")]), None)[0] == float("inf")
    assert _measure.compare({"a": (x, None)}, {"a": (x, None)}, 0.5) == (0.0, 0.5)
    slow, quick = _measure.interleaved(lambda: sum(range(20000)), lambda: None, seconds=0.02)
    assert slow > quick


def test_benchmark_op(default_ops):
    found = kpkg.benchmark_op(
        "softmax", default_ops.softmax, lambda x: x.softmax(-1), torch.randn(4, 8), warmup=1, iterations=10
    )
    assert found["operation"] == "softmax" and found["match"] and found["error"] < 1e-5
    assert found["speedup"] == pytest.approx(found["pytorch_time_ms"] / found["kpkg_time_ms"]) and found["faster"] == (
        found["speedup"] > 1
    )
    assert not kpkg.benchmark_op("wrong", lambda x: x, lambda x: x + 1, torch.zeros(3), iterations=1)["match"]
    calls = []
    kpkg.benchmark_op("counted", lambda: calls.append(0), lambda: calls.append(1), warmup=3, iterations=19)
    assert calls.count(0) == calls.count(1) == 3 + 1 + 19  # one call of each is compared
    with pytest.raises(ValueError, match="iterations"):
        kpkg.benchmark_op("none", lambda: None, lambda: None, iterations=0)


needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed"
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@needs_torchvision
@pytest.mark.parametrize("name, layers", [("resnet50", 55), ("vit_b_16", 50)])
def test_torchvision(name, layers, fast):
    size = {"image_size": 64} if name.startswith("vit") else {}
    torch.manual_seed(0)
    from torchvision import models

    model = getattr(models, name)(weights=None, **size).eval()
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        expected = model(x)
        with kpkg.inject(model, sample_input=x, verbose=False) as injection:
            assert len(injection.replaced) >= layers and injection.error < 1e-3
            assert_close(model(x), expected, rtol=1e-3, atol=1e-3)


@needs_transformers
@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_hugging_face(kind, fast):
    import transformers

    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
    }
    config = {"llama": transformers.LlamaConfig, "bert": transformers.BertConfig}[kind](**sizes)
    model = {"llama": transformers.LlamaModel, "bert": transformers.BertModel}[kind](config).eval()
    sample = {"input_ids": torch.randint(100, (2, 9))}
    with torch.no_grad():
        expected = model(**sample).last_hidden_state
        with kpkg.inject(model, sample_input=sample, verbose=False) as injection:
            replaced = {row.layer for row in injection.replaced}
            assert replaced >= (
                {"Linear", "LlamaRMSNorm"} if kind == "llama" else {"Linear", "LayerNorm", "GELUActivation"}
            )
            assert_close(model(**sample).last_hidden_state, expected)


class Residual(torch.nn.Module):
    """A block like ResNet's: one ReLU in several places, and a sum."""

    def __init__(self, width, reads_between=False):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(width, width, 3, padding=1, bias=False), torch.nn.BatchNorm2d(width)
        self.conv2, self.bn2 = torch.nn.Conv2d(width, width, 1), torch.nn.BatchNorm2d(width)
        self.relu = torch.nn.ReLU(inplace=True)
        self.reads_between = reads_between

    def forward(self, x):
        h = self.conv1(x)
        y = self.relu(self.bn1(h))
        y = self.bn2(self.conv2(y))
        return self.relu(y + x + h if self.reads_between else y + x)


@pytest.fixture
def blocks():
    torch.manual_seed(0)
    made = torch.nn.Sequential(Residual(8), Residual(8)).eval()
    for layer in made.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(layer.running_mean)
            torch.nn.init.uniform_(layer.running_var, 0.5, 2.0)
            torch.nn.init.normal_(layer.weight)
    return made


IMAGES = torch.randn(2, 8, 6, 5, generator=torch.Generator().manual_seed(4))


def test_batch_norms_are_folded(blocks, fast):
    expected, state, layers = (
        blocks(IMAGES).detach(),
        {k: v.clone() for k, v in blocks.state_dict().items()},
        dict(blocks.named_modules()),
    )
    injection = kpkg.inject(blocks, sample_input=IMAGES, verbose=False)
    assert [row.name for row in injection.replaced if "+" in row.name] == [
        f"{i}.conv{j} + {i}.bn{j} + {i}.relu" for i in (0, 1) for j in (1, 2)
    ]
    assert "Original 0.002 ms / iter" in str(injection) and "kpkg     0.001 ms / iter" in str(injection)
    calls = []
    blocks[0].bn1.register_forward_hook(lambda layer, args, output: calls.append(args[0] is output))
    with torch.no_grad():
        assert_close(blocks(IMAGES), expected)
        blocks[0].bn1.running_mean += 1.0  # folds again
        changed = blocks(IMAGES)
        assert not torch.allclose(changed, expected)
    assert_close(blocks(IMAGES), changed)  # records gradients of all parameters: both layers run
    assert calls == [True, True, False]  # a layer that has hooks is called
    assert list(blocks.state_dict()) == list(state)
    injection.restore()
    assert dict(blocks.named_modules()) == layers
    assert_close(blocks(IMAGES).detach(), changed)


def test_folded_layers_train(blocks, fast):
    import copy

    other = copy.deepcopy(blocks).train()
    kpkg.inject(blocks, sample_input=IMAGES, verbose=False)
    blocks.train()
    for model in (blocks, other):
        model(IMAGES).square().sum().backward()
    for (name, found), (_, expected) in zip(blocks.named_parameters(), other.named_parameters()):
        assert_close(found.grad, expected.grad, msg=name, rtol=1e-4, atol=1e-4)
    assert_close(blocks.state_dict(), other.state_dict())
    blocks.eval(), other.eval()
    with torch.no_grad():
        assert_close(blocks(IMAGES), other(IMAGES), rtol=1e-4, atol=1e-4)
        assert_close(copy.deepcopy(blocks)(IMAGES), other(IMAGES), rtol=1e-4, atol=1e-4)


def test_no_fold_where_others_read_the_convolution(fast):
    torch.manual_seed(0)
    model = Residual(8, reads_between=True).eval()
    torch.nn.init.normal_(model.bn1.running_mean)
    injection = kpkg.inject(model, sample_input=IMAGES, verbose=False)
    assert {row.status for row in injection.rows if row.name.startswith("conv1 + bn1")} == {
        "kept: the model's output differs with it"
    }
    assert injection.error < 1e-5


@pytest.mark.parametrize("iteration_us, is_busy", [(1300.0, True), (1050.0, False)])
def test_layers_are_chosen_by_the_time_of_a_busy_gpu(iteration_us, is_busy, model, monkeypatch):
    """Applies if an iteration takes longer than it blocks the host, here a millisecond."""
    asked = []

    def interleaved(first, second, ahead=False, **_):
        asked.append(ahead)
        return (iteration_us, 0.0) if second is None else (100.0, 101.0) if ahead else (100.0, 99.0)

    monkeypatch.setattr(_measure, "interleaved", interleaved)
    monkeypatch.setattr(_measure, "issued", lambda run: 1e-3)
    assert not _whole.keeps_busy(Injection(model), X)  # it is not on a GPU
    injection = Injection(model)
    injection.on_gpu = True
    assert _whole.keeps_busy(injection, X) == is_busy
    monkeypatch.setattr(_inject, "keeps_busy", lambda injection, sample: is_busy)
    injection = kpkg.inject(model, sample_input=X, verbose=False)
    assert injection.by_gpu_time == is_busy == any(asked) == ("the GPU's alone" in str(injection))
    assert bool(injection.replaced) != is_busy  # a difference of 1 % is noise only for the host's clock


@needs_torchvision
@pytest.mark.parametrize(
    "name, folds", [("resnet50", 54), ("mobilenet_v3_large", 47), ("efficientnet_b0", 50), ("vit_b_16", 0)]
)
def test_networks_of_torchvision(name, folds, fast):
    from torchvision import models

    torch.manual_seed(0)
    model = getattr(models, name)(weights=None).eval()
    x = torch.randn(1, 3, *([224, 224] if name.startswith("vit") else [64, 64]))
    with torch.no_grad():
        expected = model(x)
        injection = kpkg.inject(model, sample_input=x, verbose=False)
        assert len(injection.replaced) == len(injection.rows)
        assert sum("BatchNorm2d" in row.layer for row in injection.replaced) == folds
        assert injection.error < 1e-5
        injection.restore()
        assert torch.equal(model(x), expected)
