"""Tests kernel repositories for Hugging Face's `kernels`: its own loader, its layers in models, and errors.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import kpkg
import pytest
import torch
from conftest import BUILD, ROOT

kernels = pytest.importorskip("kernels", reason="Hugging Face's kernels is not installed")

PAGE = (ROOT / "docs" / "hub.md").read_text()
LAYERS = ("RMSNorm", "SiLU", "MoeExperts")


def hub(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    command = [sys.executable, "-m", "kpkg", "hub", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def repository(packages, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "my-kernels"
    done = hub(folder, *(packages[family] for family in ("norm", "elementwise", "moe")))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def kernel(repository):
    return kernels.get_local_kernel(repository, backend="cpu")


def variant_of(repository: Path, framework: str) -> Path:
    (variant,) = (repository / "build").glob(f"{framework}*-cpu-*")
    return variant


def calls(kernel, name: str) -> int:
    return sum(op.stats()["calls"] for library in kernel.libraries for op in library if op.name == name)


def test_ops_of_the_kernel(kernel):
    x = torch.randn(3, 8, requires_grad=True)
    y = kernel.rms_norm(x, [8], None, 1e-6)
    torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, [8], None, 1e-6))
    torch.testing.assert_close(
        torch.autograd.grad(y.square().sum(), x),
        torch.autograd.grad(torch.nn.functional.rms_norm(x, [8], None, 1e-6).square().sum(), x),
        rtol=1e-4,
        atol=1e-4,
    )
    assert "silu_and_mul" in dir(kernel)
    with pytest.raises(AttributeError, match="this kernel has no op 'gemm'; it has .*rms_norm"):
        kernel.gemm


def test_kernels_and_kpkg_in_one_process(kernel, packages):
    library = kpkg.load(packages["norm"])
    x = torch.randn(3, 8)
    before = library.rms_norm.stats()["calls"]
    torch.testing.assert_close(kernel.rms_norm(x, [8]), library.rms_norm(x, [8]))
    torch.testing.assert_close(torch.ops.kpkg.rms_norm(x, [8]), library.rms_norm(x, [8]))
    assert library.rms_norm.stats()["calls"] == before + 3
    with pytest.raises(kpkg.KernelError, match="kpkg::rms_norm"):
        library.rms_norm(x, [7])


def test_messages_stay_with_kpkg(kernel):
    x = torch.randn(3, 8, dtype=torch.complex64)
    with kpkg.fallback_policy("warn"), pytest.warns(kpkg.FallbackWarning, match="a dtype that kpkg does not know"):
        torch.testing.assert_close(kernel.silu(x), torch.nn.functional.silu(x))


def test_layers_compile(kernel):
    layer = torch.nn.RMSNorm(16, eps=1e-6)
    x = torch.randn(4, 16)
    for name in ("RMSNorm", "SiLU", "SiluAndMul", "GeluAndMul", "MoeExperts"):
        assert getattr(kernel.layers, name).can_torch_compile and getattr(kernel.layers, name).has_backward
    compiled = torch.compile(lambda x: kernel.layers.RMSNorm.forward(layer, x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    layer.bfloat16()  # the weight alone has another dtype
    torch.testing.assert_close(kernel.layers.RMSNorm.forward(layer, x), layer.weight * kernel.rms_norm(x, [16]))


def test_models_of_transformers(repository, kernel):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.activations import SiLUActivation
    from transformers.models.mixtral import modeling_mixtral as mixtral

    config = transformers.MixtralConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    original = transformers.MixtralForCausalLM(config)
    model = transformers.MixtralForCausalLM(config)
    model.load_state_dict(original.state_dict())
    # Transformers does the same for the first two, with the release of kernels that it asks for.
    for layer, name in zip((mixtral.MixtralRMSNorm, SiLUActivation, mixtral.MixtralExperts), LAYERS):
        kernels.replace_kernel_forward_from_hub(layer, name)
    mapping = {name: {"cpu": kernels.LocalLayerRepository(repository, layer_name=name)} for name in LAYERS}
    with kernels.use_kernel_mapping(mapping):
        model = kernels.kernelize(model, mode=kernels.Mode.TRAINING | kernels.Mode.TORCH_COMPILE, device="cpu")
    ids = torch.randint(0, 97, (2, 9))
    norms, experts = calls(kernel, "kpkg::rms_norm"), calls(kernel, "kpkg::moe")
    found, expected = model(ids, labels=ids), original(ids, labels=ids)
    assert calls(kernel, "kpkg::rms_norm") == norms + 5 and calls(kernel, "kpkg::moe") == experts + 2
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-4, atol=1e-5)
    found.loss.backward()
    expected.loss.backward()
    for mine, theirs in zip(model.parameters(), original.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-5)


def test_metadata(repository):
    from kernels._rust import Digest, DigestAlgorithm, Metadata

    for framework in ("torch-stable-abi210", "tvm-ffi01"):
        variant = variant_of(repository, framework)
        metadata = Metadata.read_from_file(variant / "metadata.json")
        clean = [path for path in variant.rglob("*.pyc")]  # of the imports of other tests
        for path in clean:
            path.unlink()
        metadata.digest.validate(Digest.hash_variant(DigestAlgorithm.SHA256, variant))
        assert metadata.version == 1 and metadata.license == "Apache-2.0"


def test_modules_import_the_standard_library_torch_and_each_other(repository):
    for path in variant_of(repository, "torch").rglob("*.py"):
        for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.M):
            assert name in {*sys.stdlib_module_names, "torch", "ml_dtypes"}, (path, name)


def test_variant_of_tvm_ffi(repository):
    pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    program = (
        "import importlib.util, sys, torch\n"
        "spec = importlib.util.spec_from_file_location('kernel', sys.argv[1])\n"
        "kernel = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(kernel)\n"
        "x = torch.randn(3, 8)\n"
        "torch.testing.assert_close(kernel.silu(x), torch.nn.functional.silu(x))\n"
    )
    variant = variant_of(repository, "tvm-ffi")
    done = subprocess.run([sys.executable, "-c", program, variant / "__init__.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_variants_with_code_for_gpus(packages, tmp_path):
    from kpkg import _hub

    assert _hub._arch("sm_90a") == "9.0a" and _hub._arch("sm_120") == "12.0"
    variant, libraries = tmp_path / "torch-stable-abi210-cu130-x86_64-linux", []
    source = _hub.Repository([packages["norm"]], "my-kernels", 3, BUILD / "python" / "kpkg")
    _hub._write_variant(variant, source, libraries, {"rms_norm"}, ["8.0", "9.0a"])
    metadata = json.loads((variant / "metadata.json").read_text())
    assert metadata["backend"] == {"type": "cuda", "archs": ["8.0", "9.0a"]} and metadata["version"] == 3
    assert metadata["id"].startswith("_my_kernels_cuda_")
    assert "class RMSNorm" in (variant / "layers.py").read_text()
    assert "MoeExperts" not in (variant / "layers.py").read_text()


def test_bad_arguments(packages, tmp_path):
    done = hub(tmp_path, packages["norm"], "--libraries", tmp_path)
    assert done.returncode == 3 and f"{tmp_path} has no _native*.so: name another folder with" in done.stderr
    done = hub(tmp_path, tmp_path / "absent.kpkg")
    assert done.returncode == 3 and "there is no package" in done.stderr
    done = hub(tmp_path, packages["norm"], "--name", "My_Kernel")
    assert done.returncode == 2 and "'My_Kernel' is no name of a kernel" in done.stderr
    assert not (tmp_path / "build").exists()


def test_libraries_that_break_the_rules_are_named(tmp_path):
    from kpkg import _hub

    library = tmp_path / "libkpkg.so.0"
    library.write_bytes(b"\0GLIBC_2.34\0GLIBC_2.9\0GLIBCXX_3.4.9\0libtbb.so.12\0")
    module = tmp_path / "_native.cpython-311-x86_64-linux-gnu.so"
    module.write_bytes(b"\0GLIBC_2.28\0nanobind_backend\0")
    assert _hub.complaints([library, module]) == [
        "libkpkg.so.0 needs GLIBC_2.34, above 2.28",
        "libkpkg.so.0 needs oneTBB, which is not in the repository",
        "_native.cpython-311-x86_64-linux-gnu.so needs the Python package nanobind-backend",
        "_native.cpython-311-x86_64-linux-gnu.so is bound to one version of Python",
    ]


def test_page(repository, monkeypatch):
    monkeypatch.chdir(repository.parent)
    for example in re.findall(r"<!-- run -->\n```python\n(.*?)```", PAGE, re.S):
        exec(example, {})
