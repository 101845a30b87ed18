"""Holds the Python files that a kernel repository for Hugging Face's `kernels` has beside kpkg's own.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

_HEAD = '''"""{title}

`python -m kpkg hub` of kpkg {version} wrote this file.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
'''

_TORCH = '''
from . import layers
from ._ops import add_op_namespace_prefix, libraries, ops

__all__ = ["add_op_namespace_prefix", "layers", "libraries", "ops"]


def __getattr__(name):
    """Returns an op by its name: `silu_and_mul(x)`."""
    if name.startswith("_") or not hasattr(ops, name):
        raise AttributeError(f"this kernel has no op {name!r}; it has " + ", ".join(sorted(_names())))
    return getattr(ops, name)


def __dir__():
    return sorted({*globals(), *_names()})


def _names():
    return {op.__name__ for library in libraries for op in library if op._torch is not None}
'''

_OPS = '''
from pathlib import Path

import torch

from ._kpkg._library import CustomOpLibrary

_NAMESPACE = "NAMESPACE_OF_OPS"


def add_op_namespace_prefix(name):
    """Returns the name of an op in PyTorch's dispatcher."""
    return f"{_NAMESPACE}::{name}"


def _opened(path):
    library = CustomOpLibrary(path)
    library.torch_namespace = _NAMESPACE
    library.register_torch()
    return library


libraries = [_opened(path) for path in sorted((Path(__file__).parent / "packages").glob("*.kpkg"))]
ops = getattr(torch.ops, _NAMESPACE)
'''

_TVM_FFI = '''
import ctypes
from pathlib import Path

import tvm_ffi

_FOLDER = Path(__file__).parent
_library = ctypes.CDLL(str(_FOLDER / "_kpkg" / "libkpkg_tvm_ffi.so"))

#: The packages as modules of tvm-ffi.
modules = [tvm_ffi.load_module(path) for path in sorted((_FOLDER / "packages").glob("*.kpkg"))]


def __getattr__(name):
    """Returns an op by its name, as a function of tvm-ffi: `softmax(x, -1)`."""
    for module in modules:
        if not name.startswith("_") and module.implements_function(name):
            return module[name]
    raise AttributeError(f"this kernel has no op {name!r}")
'''

_LAYERS_HEAD = """
import torch
from torch import nn

from ._ops import ops
"""

#: The layers by name: the op that each needs, and its class. `kernels` allows them no constructor and no other members.
_LAYERS = {
    "RMSNorm": (
        "rms_norm",
        '''
def _rms_norm(layer, x):
    weight, eps = layer.weight, getattr(layer, "variance_epsilon", None)
    eps = layer.eps if eps is None else eps
    if weight.dtype == x.dtype:
        return ops.rms_norm(x, weight.shape, weight, eps)
    return weight * ops.rms_norm(x, weight.shape, None, eps)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension."""

    can_torch_compile = True
    has_backward = True
    weight: torch.Tensor

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return _rms_norm(self, hidden_states)
''',
    ),
    "SiLU": (
        "silu",
        '''
class SiLU(nn.Module):
    """x * sigmoid(x)."""

    can_torch_compile = True
    has_backward = True

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.silu(input)
''',
    ),
    "SiluAndMul": (
        "silu_and_mul",
        '''
class SiluAndMul(nn.Module):
    """silu of the first half of the last dimension times the second half."""

    can_torch_compile = True
    has_backward = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.silu_and_mul(x)
''',
    ),
    "GeluAndMul": (
        "gelu_and_mul",
        '''
class GeluAndMul(nn.Module):
    """gelu of the first half of the last dimension times the second half."""

    can_torch_compile = True
    has_backward = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ops.gelu_and_mul(x)
''',
    ),
    "MoeExperts": (
        "moe",
        '''
class MoeExperts(nn.Module):
    """The experts that a router has chosen, with silu gates: those of Mixtral, Qwen3-MoE and DeepSeek-V3."""

    can_torch_compile = True
    has_backward = True
    gate_up_proj: torch.Tensor
    down_proj: torch.Tensor

    def forward(
        self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
    ) -> torch.Tensor:
        weights, chosen = top_k_weights.to(torch.float32), top_k_index.to(torch.int32)
        return ops.moe(hidden_states, self.gate_up_proj, self.down_proj, weights, chosen)
''',
    ),
}


def _headed(title: str, version: str, body: str) -> str:
    return _HEAD.format(title=title, version=version) + body


def torch_files(identifier: str, version: str, ops: set[str]) -> dict[str, str]:
    """Returns the files of a variant for PyTorch: its module, the registration of the packages, and the layers.

    `identifier` is the namespace of the ops. Layers whose op is not in `ops` are left out.
    """
    layers = [text for op, text in _LAYERS.values() if op in ops]
    return {
        "__init__.py": _headed("Ops and layers of kpkg for PyTorch.", version, _TORCH),
        "_ops.py": _headed("Registers the packages.", version, _OPS.replace("NAMESPACE_OF_OPS", identifier)),
        "layers.py": _headed(
            "Layers for `kernelize`.", version, "\n".join([_LAYERS_HEAD, *layers]) if layers else _LAYERS_HEAD
        ),
    }


def tvm_ffi_files(version: str) -> dict[str, str]:
    """Returns the files of a variant for tvm-ffi."""
    return {"__init__.py": _headed("Ops of kpkg for tvm-ffi.", version, _TVM_FFI)}
