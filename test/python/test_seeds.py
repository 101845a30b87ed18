"""Runs the Python examples of kpkg's founding documents.

Only the names of the package are changed. Each example runs, or fails with an error that names the alternative.

docs/coming-from.md lists examples without a counterpart.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import kpkg
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import BUILD, COMMAND, ROOT, build_package
from torch.testing import assert_close

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INPUTS = ROOT / "test" / "python" / "inputs"


def run(*arguments, **environment):
    given = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "KPKG_COMMAND": str(COMMAND), **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=given)


# ---- Kernel packages: Mojo -------------------------------------------------------------------------------------------


def test_load_a_package(packages):
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    from kpkg import CustomOpLibrary

    ops = CustomOpLibrary.load(packages["gemm"])
    output = ops.gemm(a, b, alpha=1.0, beta=0.0)
    assert_close(output, a @ b)


def test_expected_operations(default_ops):
    ops = default_ops
    a, b = torch.randn(5, 7), torch.randn(3, 7)
    assert_close(ops.gemm(a, b, 2.0, 0.0, False, True), 2 * a @ b.T)
    a, b = torch.randn(4, 5, 7), torch.randn(4, 7, 3)
    assert_close(ops.gemm_batched(a, b, 1.0, 0.0), a @ b)
    input = torch.randn(4, 9, requires_grad=True)
    dim = -1
    output = ops.softmax(input, dim)
    assert_close(output, input.softmax(-1))
    assert_close(ops.log_softmax(input, dim), input.log_softmax(-1))
    grad_output = torch.randn(4, 9)
    (expected,) = torch.autograd.grad(input.softmax(-1), input, grad_output)
    output = output.detach()
    assert_close(ops.softmax_backward(grad_output, output, dim), expected)
    assert_close(ops.softmax_backward(grad_output=grad_output, output=output, dim=dim), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_norm_without_a_shape(dtype, default_ops):
    input, grad_output = torch.randn(3, 5, 8).to(dtype), torch.randn(3, 5, 8).to(dtype)
    weight, bias, eps = torch.randn(8).to(dtype), torch.randn(8).to(dtype), 1e-5
    leaves = [t.clone().requires_grad_() for t in (input, weight, bias)]
    expected = F.layer_norm(leaves[0], (8,), *leaves[1:], eps)
    tolerance = {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 0.1, "rtol": 0.02}
    assert_close(default_ops.layer_norm(input, weight, bias, eps), expected, **tolerance)
    assert_close(default_ops.layer_norm(input, weight=weight, bias=bias), expected, **tolerance)
    mean, var = input.float().mean(-1).to(dtype), input.float().var(-1, correction=0).to(dtype)
    gradients = default_ops.layer_norm_backward(grad_output, input, weight, mean, var)
    for found, wanted in zip(gradients, torch.autograd.grad(expected, leaves, grad_output)):
        assert_close(found, wanted, **tolerance)
    named = default_ops.layer_norm_backward(
        grad_output=grad_output, input=input, weight=weight, mean=mean, var=var, eps=eps
    )
    for found, again in zip(gradients, named):
        assert torch.equal(found, again)


def test_fallback_without_packages(tmp_path):
    done = run(
        "-c",
        "import torch, kpkg; x = torch.randn(3, 8); w = torch.ones(8)\n"
        "print(torch.allclose(kpkg.ops.layer_norm(x, w, None, 1e-5), torch.layer_norm(x, (8,))))\n"
        "print(kpkg.ops.conv2d(x.view(1, 1, 3, 8), w.view(1, 1, 2, 4), stride=2, padding='valid').shape)\n"
        "print(kpkg.ops.softmax.backward(x, x.softmax(1)).shape)",
        KPKG_PATH="",
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.split("\n")[0] == "True" and "FallbackWarning: op kpkg::layer_norm runs its fallback" in done.stderr
    )
    assert "torch.Size([1, 1, 1, 3])" in done.stdout and "torch.Size([3, 8])" in done.stdout


def test_verification(packages):
    line = "from kpkg.nn import GEMM; import torch; layer = GEMM(10, 10); print(f'kpkg enabled: {layer.use_kpkg}')"
    assert run("-c", line, KPKG_PATH=str(packages["gemm"])).stdout == "kpkg enabled: True\n"


class Shell:
    """Provides the parts of IPython's shell that the extension uses."""

    def __init__(self):
        self.magics = {}
        self.names = {}

    def register_magic_function(self, function, magic_kind="line", magic_name=None):
        self.magics[magic_kind, magic_name] = function

    def push(self, names):
        self.names |= names


def readme_kernel():
    return (ROOT / "README.md").read_text().split("<!-- snippet: kernel -->\n```mojo\n")[1].split("```")[0]


@pytest.fixture
def compiles_here(tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_notebook_cell(compiles_here, tmp_path, capsys):
    shell = Shell()
    kpkg.load_ipython_extension(shell)  # %load_ext kpkg
    cell = shell.magics["cell", "kpkg"]
    cell("package scaled_sum.kpkg", readme_kernel())  # %%kpkg package scaled_sum.kpkg
    library = kpkg.load("scaled_sum.kpkg")
    assert_close(library.scaled_sum(torch.ones(3), torch.ones(3), 2.0), torch.full((3,), 3.0))
    assert not shell.names
    cell("--target native", readme_kernel())
    assert "scaled_sum(Tensor x, Tensor y, float factor=1.0) -> Tensor" in capsys.readouterr().out
    assert_close(shell.names["scaled_sum"](torch.ones(3), torch.ones(3), 2.0), torch.full((3,), 3.0))
    for line in ("", "package broken.kpkg"):
        with pytest.raises(kpkg.CompileError, match=r"(?m)^cell\.k:2:\d+: error"):
            cell(line, "@kernel\ndef f(x: Tensr):\n    pass\n")
    assert not (tmp_path / "broken.kpkg").exists()
    for line in ("gemm.kpkg", "package gemm"):
        with pytest.raises(ValueError, match=r"usage: %%kpkg \[package FILE.kpkg\]"):
            cell(line, "")


def test_notebook_cell_in_ipython(compiles_here, tmp_path):
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "kpkg")
    shell.run_cell_magic("kpkg", "package scaled_sum.kpkg", readme_kernel())
    assert (tmp_path / "scaled_sum.kpkg").exists()
    shell.run_cell_magic("kpkg", "", readme_kernel())
    assert_close(shell.user_ns["scaled_sum"](torch.ones(3), torch.ones(3), 2.0), torch.full((3,), 3.0))


# ---- bmm, conv2d and the injector ------------------------------------------------------------------------------------


def test_products_by_their_names(default_ops):
    a, b, x = torch.randn(4, 5, 7), torch.randn(4, 7, 3), torch.randn(7)
    assert_close(default_ops.bmm(a, b), torch.bmm(a, b))
    assert_close(default_ops.matmul(a, x), torch.matmul(a, x))
    assert_close(default_ops.matmul(a[0], b), torch.matmul(a[0], b))
    assert_close(default_ops.matmul(x, x), torch.matmul(x, x))
    assert_close(default_ops.gemv(a[0], x), torch.mv(a[0], x))
    assert_close(default_ops.gemv(a[0].numpy(), x.numpy()), torch.mv(a[0], x).numpy())
    with pytest.raises(kpkg.KernelError, match="matmul broadcasts them"):
        default_ops.bmm(a, b[:1])
    with pytest.raises(kpkg.KernelError, match=r"input is \[4, 5, 7\] and other is \[5\]"):
        default_ops.matmul(a, x[:5])


def test_conv2d_with_stride_and_padding(default_ops):
    x, w, b = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4)
    close = {"atol": 1e-4, "rtol": 1e-4}
    assert_close(default_ops.conv2d(x, w, b, stride=2, padding=1), F.conv2d(x, w, b, 2, 1), **close)
    assert_close(default_ops.conv2d(x, w, b, 2, 1, 2), F.conv2d(x, w, b, 2, 1, 2), **close)
    assert_close(default_ops.conv2d(x, w, b, padding="same"), F.conv2d(x, w, b, padding="same"), **close)
    assert_close(default_ops.conv2d(x, w, b, 1, "valid"), F.conv2d(x, w, b, 1, "valid"), **close)
    with pytest.raises(TypeError, match="auto_pad, which is the same argument"):
        default_ops.conv2d(x, w, b, padding="same", auto_pad="same")
    leaf = w.clone().requires_grad_()
    default_ops.conv2d(x, leaf, b, 2, 1).sum().backward()
    assert leaf.grad is not None


def test_numbers_where_schemas_have_lists(default_ops):
    x = torch.randn(2, 3, 8, 8)
    assert_close(default_ops.layer_norm(x, 8), F.layer_norm(x, (8,)))
    assert_close(default_ops.max_pool2d(x, 2), F.max_pool2d(x, 2))
    assert_close(default_ops.max_pool2d(x, kernel_size=3, stride=2, padding=1), F.max_pool2d(x, 3, 2, 1))
    assert_close(default_ops.max_pool2d(x, 2, None), F.max_pool2d(x, 2, None))
    assert_close(default_ops.sum(x, dim=2), x.sum(dim=2))
    assert_close(default_ops.argmax(x, 1), x.argmax(1))
    assert_close(default_ops.sum(x.numpy(), np.int64(1)), x.sum(1).numpy(), atol=1e-5, rtol=1e-5)
    with pytest.raises(TypeError, match="'dim' is True, expected int"):
        default_ops.sum(x, dim=True)


def test_injector(tmp_path, packages):
    (tmp_path / "models.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)\n"
        "    def forward(self, x):\n        y = self.conv(x).flatten(2)\n        return torch.bmm(y, "
        "y.transpose(1, 2))\n\n\n"
        "def net():\n    return Net()\n"
    )
    path = ":".join(str(packages[name]) for name in ("gemm", "conv"))
    environment = {"KPKG_PATH": path, "PYTHONPATH": f"{BUILD / 'python'}:{tmp_path}"}
    done = run("-m", "kpkg", "inject", "models:net", "--input", "1,3,8,8", **environment)
    assert done.returncode == 0, done.stderr
    assert "conv" in done.stdout and "bmm" in done.stdout and "Original" in done.stdout and "ms / iter" in done.stdout
    for arguments, says in [
        (["nothing_like_it", "--input", "1,3"], "there is no model 'nothing_like_it'"),
        (["models:net"], "--input 1,3,224,224"),
        (["models:nett", "--input", "1"], "cannot be imported"),
        (["models:net", "--input", "a,b"], "is not [NAME=]SHAPE[:DTYPE]"),
        (["models:net", "--input", "1,3,8,8", "--include", "nothing"], "include='nothing' matches no layer"),
    ]:
        done = run("-m", "kpkg", "inject", *arguments, **environment)
        assert done.returncode == 3 and says in done.stderr and "Traceback" not in done.stderr, done.stderr


# ---- Mochi: the fused norm -------------------------------------------------------------------------------------------


def test_fused_norm(default_ops):
    x, x_res, gate = torch.randn(2, 5, 64), torch.randn(2, 5, 64), torch.randn(64)
    from kpkg import kernel_info, residual_tanh_gated_rmsnorm

    default_ops.reload()  # of an op in several packages, the one opened last is listed: other tests open some, too
    kernel_info()
    result = residual_tanh_gated_rmsnorm(x, x_res, gate)
    again = residual_tanh_gated_rmsnorm(x, x_res, gate, eps=1e-6)
    assert_close(result, x + F.rms_norm(x_res, (64,), eps=1e-6) * torch.tanh(gate))
    assert torch.equal(result, again)
    assert kernel_info("residual_tanh_gated_rmsnorm")["calls"] >= 2
    lines = str(kernel_info()).splitlines()
    assert lines[0].split() == ["op", "package", "policy", "calls", "launches", "fallbacks"]
    assert any(line.startswith("kpkg::residual_tanh_gated_rmsnorm ") for line in lines)
    with pytest.raises(KeyError, match="did you mean 'kpkg::softmax'"):
        kernel_info("softmx")


def test_pytest_markers():
    done = run("-m", "pytest", "--markers", "-c", str(ROOT / "pyproject.toml"))
    assert "@pytest.mark.cuda" in done.stdout and "@pytest.mark.benchmark" in done.stdout


@pytest.mark.cuda
@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU")
@pytest.mark.parametrize("name", ["softmax", "residual"])
def test_on_the_gpu(name, tmp_path):
    """Runs with `pytest -m cuda`: a package for this GPU uses its kernels and no fallback."""
    major, minor = torch.cuda.get_device_capability()
    chip = f"sm_{major}{minor}{'a' if major in (9, 10) else ''}"
    library = kpkg.load(build_package(ROOT / "kernels_src" / name, tmp_path / f"{name}.kpkg", "--target", chip))
    x = torch.randn(64, 3072, device="cuda", dtype=torch.bfloat16)
    if name == "softmax":
        assert_close(library.softmax(x), x.softmax(-1), atol=1e-2, rtol=1e-2)
    else:
        gate = torch.randn(3072, device="cuda", dtype=torch.bfloat16)
        expected = x + F.rms_norm(x, (3072,), eps=1e-6) * torch.tanh(gate)
        assert_close(library.residual_tanh_gated_rmsnorm(x, x, gate), expected, atol=5e-2, rtol=5e-2)


@pytest.mark.benchmark
@pytest.mark.parametrize("rows", [512, 1024, 2048])
def test_time_of_the_fused_norm(rows, default_ops, capsys):
    """Runs with `pytest -m benchmark`: prints times beside PyTorch's without judging them."""
    x, x_res = (torch.randn(rows, 3072, dtype=torch.bfloat16, device=DEVICE) for _ in range(2))
    gate = torch.randn(3072, dtype=torch.bfloat16, device=DEVICE)

    def eager(x, x_res, gate):
        return x + F.rms_norm(x_res, (3072,), eps=1e-6) * torch.tanh(gate)

    found = kpkg.benchmark_op("fused", default_ops.residual_tanh_gated_rmsnorm, eager, x, x_res, gate)
    with capsys.disabled():
        print(
            f"\n{rows} x 3072: {found['kpkg_time_ms']:.3f} ms, PyTorch {found['pytorch_time_ms']:.3f} ms, "
            f"{found['speedup']:.2f}x"
        )
    assert found["match"]


# ---- ATunner: softmax as an object -----------------------------------------------------------------------------------


def test_softmax_object(default_ops):
    from kpkg.kernels import get_cuda_softmax, get_softmax

    input_tensor = torch.randn(2, 4, 8, device=DEVICE)
    cuda_softmax = get_cuda_softmax()
    output = cuda_softmax.forward(input_tensor)
    grad_output = torch.randn_like(output)
    grad_input = cuda_softmax.backward(grad_output, output)
    leaf = input_tensor.clone().requires_grad_()
    (expected,) = torch.autograd.grad(leaf.softmax(-1), leaf, grad_output)
    assert_close(output, leaf.softmax(-1))
    assert_close(grad_input, expected)
    assert get_softmax() is get_cuda_softmax()
    assert_close(default_ops.softmax.op.backward(grad_output, output), expected)
    assert_close(default_ops.softmax.op.forward(input_tensor), output)
    x = torch.randn(6)
    assert_close(default_ops.relu.op.backward(torch.ones(6), x), (x > 0).float())
    with pytest.raises(kpkg.KernelError, match="vector_add has no gradient"):
        default_ops.vector_add.op.backward(x)


def test_compile_a_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(INPUTS)
    from kpkg.kernels import get_cuda_compiler
    from kpkg.kernels.ops import LayerNormOp, SoftMaxOp

    compiler = get_cuda_compiler()
    cuda_module = compiler.compile_from_file("softmax_rows.k", "my_softmax")
    softmax_op = SoftMaxOp(cuda_module)
    x = torch.randn(5, 33)
    assert_close(softmax_op.forward(x), x.softmax(-1))
    assert_close(softmax_op(x), x.softmax(-1))
    with pytest.raises(AttributeError, match="has no op 'layer_norm'"):
        LayerNormOp(cuda_module)


def test_architectures_of_the_environment(monkeypatch, tmp_path):
    """The command reads the variables, also when called from Python; without ptxas it emits PTX for the chip."""
    monkeypatch.setenv("KPKG_COMMAND", str(COMMAND))
    monkeypatch.setenv("KPKG_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("KPKG_TARGET", raising=False)
    for text, has_gpu in [("8.0", True), ("", False)]:
        monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", text)
        file = kpkg.get_compiler().package_of(INPUTS / "softmax_rows.k")
        targets = {each["target"] for each in kpkg.load(file).manifest["instances"]}
        assert bool(targets & {"sm_80", "ptx"}) == has_gpu and len(targets) == 1 + has_gpu
    monkeypatch.setenv("KPKG_TARGET", "x86-64-v3")
    file = kpkg.get_compiler().package_of(INPUTS / "softmax_rows.k")
    assert {each["target"] for each in kpkg.load(file).manifest["instances"]} == {"x86-64-v3"}


def test_extra_for_cuda():
    assert 'cuda = ["nvidia-cuda-nvcc"]' in (ROOT / "pyproject.toml").read_text()


# ---- VishwamAI: decorators, configurations, errors, profiles ---------------------------------------------------------


@pytest.mark.parametrize("name", ["tpu_kernel", "gpu_kernel", "sparse_kernel", "expert_kernel", "jit"])
def test_decorators_are_answered(name):
    for module in ("kpkg", "kpkg.kernels"):
        with pytest.raises(ImportError, match=r"\(docs/language\.md\): kpkg\.compile_from_source\(text\) gives"):
            exec(f"from {module} import {name}")


@pytest.mark.parametrize(
    "name, way_out",
    [
        ("tpu_matmul", "kpkg has no TPUs; on CPUs and GPUs use kpkg.ops.matmul"),
        ("gpu_flash_attention", "use kpkg.ops.scaled_dot_product_attention"),
        ("tpu_block_sparse", "kpkg has no TPUs; on CPUs and GPUs use kpkg.sparse.pack and kpkg.sparse.linear"),
    ],
)
def test_functions_that_are_not_here(name, way_out, default_ops):
    with pytest.raises(kpkg.KernelError, match=f"no package has kpkg::{name}; {way_out}"):
        default_ops[f"kpkg::{name}"](torch.randn(4, 4))
    for module in ("kpkg", "kpkg.kernels"):
        with pytest.raises(ImportError, match=name):
            exec(f"from {module} import {name}")
        with pytest.raises(AttributeError, match=way_out):
            getattr(sys.modules[module], name)


def test_experts_and_suppression(default_ops):
    """Runs ops that the seeds name; test_specs.py has their results."""
    weights, experts = default_ops.moe_routing(torch.randn(5, 8))
    rows, ends, places = default_ops.moe_dispatch(torch.randn(5, 4), experts, num_experts=8)
    assert (rows.shape, ends.shape, default_ops.moe_combine(rows, places, weights).shape) == ((10, 4), (8,), (5, 4))
    up, down = torch.randn(8, 12, 4), torch.randn(8, 4, 6)
    assert default_ops.moe(torch.randn(5, 4), up, down, weights, experts).shape == (5, 4)
    kept, count = default_ops.nms(torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9]]), torch.tensor([0.5, 0.6]), 0.5)
    assert (kept.tolist(), count.tolist()) == ([1, -1], [1])


def test_configuration():
    from kpkg.kernels import KernelConfig, PrecisionConfig

    gpu_config = KernelConfig(block_size=64, use_fp16=True, use_tensor_cores=True)
    assert gpu_config.to_json() == KernelConfig(tile=(64, 64), dtype="float16").to_json()
    tpu_config = KernelConfig(
        block_size=128, use_bfloat16=True, precision=PrecisionConfig.HIGH, use_efficient_attention=True
    )
    assert tpu_config.to_json() == KernelConfig(tile=(128, 128), dtype="bfloat16", precision="high").to_json()
    for fields, says in [
        ({"block_size": 64, "tile": (32,)}, "block_size is a tile"),
        ({"use_fp16": True, "use_bfloat16": True}, "use_fp16 and use_bfloat16 are dtypes"),
        ({"use_tensor_cores": False}, "wherever the dtype has them"),
        ({"use_efficient_attention": False}, "never keeps a matrix of scores"),
        ({"precision": "exact"}, "expected a kpkg.PrecisionConfig or one of default, medium, high, highest"),
    ]:
        with pytest.raises(ValueError, match=says):
            KernelConfig(**fields)
    with pytest.raises(TypeError, match="blocksize"):
        KernelConfig(blocksize=64)


def test_flash_attention_with_a_mask(default_ops):
    query, key, value = (torch.randn(1, 2, 9, 16) for _ in range(3))
    mask = torch.randn(9, 9)
    expected = F.scaled_dot_product_attention(query, key, value, mask)
    assert_close(default_ops.attention(query, key, value, mask=mask)[0], expected, atol=1e-5, rtol=1e-5)
    assert_close(default_ops.scaled_dot_product_attention(query, key, value, mask=mask), expected, atol=1e-5, rtol=1e-5)
    assert_close(
        default_ops.attention(query, key, value, mask=None)[0],
        F.scaled_dot_product_attention(query, key, value),
        atol=1e-5,
        rtol=1e-5,
    )
    with pytest.raises(TypeError, match="got argument 'attn_mask' twice, once as 'mask'"):
        default_ops.attention(query, key, value, mask=mask, attn_mask=mask)


def test_errors_and_profile(default_ops, caplog):
    from kpkg.kernels import DeviceError, KernelError, profile_kernel

    logger, data = logging.getLogger("seeds"), torch.randn(4, 8)
    try:
        default_ops.softmax(data, 7)
    except KernelError as e:
        logger.error(f"Kernel error: {e}")
    except DeviceError as e:
        logger.error(f"Device error: {e}")
    assert "Kernel error: kpkg::softmax" in caplog.text
    with profile_kernel() as prof:
        default_ops.softmax(data)
    assert "kpkg::softmax" in prof.summary()
