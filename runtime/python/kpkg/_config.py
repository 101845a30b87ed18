"""Pins or restricts which compiled instances of kernels an op may use.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kpkg._arrays import dtype_name
from kpkg._messages import closest, shown
from kpkg._signature import Signature

#: Words of KPKG_REQUIRE and ``KernelConfig(require=...)``.
REQUIREMENTS = ("deterministic", "batch_invariant", "exact")
_TILE_NAMES = ("BM", "BN", "BK")
_TARGET = re.compile(r"x86-64-v[34]|x86-64-v4-(?:bf16|amx)|aarch64|sm_\d+[af]?|compute_\d+[af]?")


class PrecisionConfig(enum.Enum):
    """Names how exactly float32 is multiplied, in the words of XLA and PyTorch, for ``KernelConfig(precision=...)``.

    HIGHEST is float32. HIGH and MEDIUM may round factors to 10 bits of mantissa (tf32), as kernels for GPUs do. Sums
    are in float32. DEFAULT follows PyTorch's switches.
    """

    DEFAULT = "default"
    MEDIUM = "medium"
    HIGH = "high"
    HIGHEST = "highest"


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _text(value: Any) -> str:
    if isinstance(value, (bool, int, float, str)):
        return str(value)
    return dtype_name(value)


@dataclass(frozen=True)
class KernelConfig:
    """Restricts the instances of an op's kernels.

    A field that is left out allows everything; a list allows each of its values.

    ``KernelConfig(tile=(128, 256, 64), warps=8, stages=4)`` pins a kernel, ``KernelConfig(tile=([64, 128],))`` narrows
    the choice. ``library.manifest["kernels"]`` and ``op.explain(...)`` show the choices. A call that no allowed
    instance can run falls back, as the policy says.

    ``block_size``, ``use_fp16`` and ``use_bfloat16`` are names of other libraries for fields of kpkg.
    ``use_tensor_cores`` and ``use_efficient_attention`` may only ask for kpkg's own behaviour. Kernels multiply on
    tensor cores where the dtype has them, and attention stores no matrix of scores.

    Args:
        tile: Extents of blocks: the values of the parameters BM, BN and BK in this order.
        warps: Warps of a CTA (32 threads each); only instances for GPUs have them.
        stages: The value of the parameter `stages`.
        dtype: The value of the parameter T: a name, or a dtype of NumPy or PyTorch.
        target: "sm_90a", "x86-64-v3", ...
        variant: "vector", "unit", "any", ...
        params: Any other parameters by name.
        block_size: ``block_size=64`` is ``tile=(64, 64)``.
        use_fp16: True is ``dtype="float16"``.
        use_bfloat16: True is ``dtype="bfloat16"``.
        use_tensor_cores: None or True.
        use_efficient_attention: None or True.
        precision: The precision of float32 products whose own argument ``precision`` is empty. Ops without that
            argument multiply float32 as "highest" does.
        require: What calls must be, a word or several: "deterministic" (equal calls give equal bits),
            "batch_invariant" (a row is rounded alike beside any number of other rows), "exact". A call that no kernel
            can run as required falls back, as the policy says; with "batch_invariant" it fails.

    Raises:
        ValueError: The combination has no meaning.
    """

    tile: Sequence[int | Sequence[int]] | None = None
    warps: int | Sequence[int] | None = None
    stages: int | Sequence[int] | None = None
    dtype: Any = None
    target: str | None = None
    variant: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    block_size: int | Sequence[int] | None = None
    use_fp16: bool = False
    use_bfloat16: bool = False
    use_tensor_cores: bool | None = None
    use_efficient_attention: bool | None = None
    precision: PrecisionConfig | str | None = None
    require: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.params, Mapping):
            raise ValueError(f"params is {shown(self.params)}, expected values by the names of parameters")
        size = None if self.block_size is None else (self.block_size, self.block_size)
        for name, value in (("tile", size), ("dtype", self.use_fp16), ("dtype", self.use_bfloat16)):
            if name == "dtype" and not isinstance(value, bool):
                raise ValueError(f"use_fp16 and use_bfloat16 are True or False, not {shown(value)}")
            if value and getattr(self, name) is not None:
                raise ValueError(
                    f"KernelConfig got {name}= and another word for it: block_size is a tile, use_fp16 and "
                    "use_bfloat16 are dtypes"
                )
            if value:
                meant = value if name == "tile" else "float16" if self.use_fp16 else "bfloat16"
                object.__setattr__(self, name, meant)  # the class is frozen
        if self.use_tensor_cores is False:
            raise ValueError(
                "use_tensor_cores=False: kernels multiply on tensor cores wherever the dtype has them; float32 "
                "uses none unless PyTorch allows TF32, so cast to that, or pin an instance by params="
            )
        if self.use_efficient_attention is False:
            raise ValueError(
                "use_efficient_attention=False: kpkg's attention never keeps a matrix of scores; PyTorch's with "
                "scores is torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"
            )
        if self.precision is not None and not isinstance(self.precision, PrecisionConfig):
            levels = [each.value for each in PrecisionConfig]
            if str(self.precision).lower() not in levels:
                raise ValueError(
                    f"precision is {shown(self.precision)}, expected a kpkg.PrecisionConfig or one of "
                    f"{', '.join(levels)}"
                )
            object.__setattr__(self, "precision", PrecisionConfig(str(self.precision).lower()))
        for word in _many(self.require):
            if word not in REQUIREMENTS:
                raise ValueError(
                    f"require has {shown(word)}, which is not understood{closest(str(word), REQUIREMENTS)}; there are "
                    f"{', '.join(REQUIREMENTS)}"
                )

    def to_json(self) -> str:
        """Returns the JSON text for kpkg_registry_restrict.

        Raises:
            ValueError: `tile` has more than three extents, or a field has a value of the wrong kind.
        """
        if self.tile is not None and (isinstance(self.tile, (str, int)) or not hasattr(self.tile, "__len__")):
            raise ValueError(f"tile is {shown(self.tile)}, expected extents of {', '.join(_TILE_NAMES)} in a tuple")
        if self.tile is not None and len(self.tile) > len(_TILE_NAMES):
            raise ValueError(
                f"a tile has at most {len(_TILE_NAMES)} extents ({', '.join(_TILE_NAMES)}), not {len(self.tile)}"
            )
        params = dict(self.params)
        params.update(zip(_TILE_NAMES, self.tile or ()))
        if self.stages is not None:
            params["stages"] = self.stages
        if self.dtype is not None:
            params["T"] = self.dtype
        made: dict[str, Any] = {"params": {name: [_text(v) for v in _many(value)] for name, value in params.items()}}
        if self.warps is not None:
            if any(type(count) is not int or count < 1 for count in _many(self.warps)):
                raise ValueError(f"warps is {shown(self.warps)}, expected a positive number or a list of them")
            made["threads"] = [32 * count for count in _many(self.warps)]
        if self.precision is not None and (level := PrecisionConfig(self.precision)) is not PrecisionConfig.DEFAULT:
            made["precision"] = level.value
        if self.require:
            made["require"] = _many(self.require)
        for name in ("target", "variant"):
            if getattr(self, name) is not None:
                made[name] = getattr(self, name)
        return json.dumps(made)


def check_config(op: Signature, manifest: dict[str, Any], config: Any) -> str:
    """Returns the configuration of an op of the package with `manifest`, as JSON text for kpkg_registry_restrict.

    Raises:
        TypeError: `config` is no KernelConfig.
        ValueError: The configuration names a parameter that no kernel of `op` has, or values that none was compiled
            for. Or it names a target or variant that does not exist.
    """
    if not isinstance(config, KernelConfig):
        raise TypeError(f"{op.name}: configure takes a kpkg.KernelConfig or None, not {shown(config)}")
    text = config.to_json()
    wanted = json.loads(text)
    used = {string for gpu in (False, True) for string in json.loads(op._native.plan_json(False, gpu))["strings"]}
    kernels = {i: kernel for i, kernel in enumerate(manifest["kernels"]) if kernel["name"] in used}
    instances = [each for each in manifest["instances"] if each["kernel"] in kernels]
    there: dict[str, set[str]] = {}
    for instance in instances:
        for param, value in zip(kernels[instance["kernel"]]["params"], instance["params"]):
            there.setdefault(param["name"], set()).add(str(value))
    for name, values in wanted["params"].items():
        if name not in there:
            raise _absent(op, f"has the parameter {name!r}", there, near=name)
        if not there[name] & set(values):
            raise _absent(op, f"is compiled for {name}={' or '.join(values)}", there[name])
    if config.target is not None and not _TARGET.fullmatch(config.target):
        targets = sorted({each["target"] for each in instances})
        raise ValueError(
            f"{op.name}: {config.target!r} is no target{closest(config.target, targets)}; its package is for "
            f"{', '.join(targets)}"
        )
    counts = {each["launch"]["threads"] for each in instances if "launch" in each}
    if "threads" in wanted and not counts & set(wanted["threads"]):
        what = f"has {' or '.join(map(str, _many(config.warps)))} warps"
        if not counts:
            raise ValueError(
                f"{op.name}: no kernel of it {what}; its package has none for GPUs, which alone have warps"
            )
        raise _absent(op, what, [str(count // 32) for count in sorted(counts)])
    variants = {each["variant"] for each in instances}
    if config.variant is not None and config.variant not in variants:
        raise _absent(op, f"has the variant {config.variant!r}", variants, near=config.variant)
    return text


def _absent(op: Signature, what: str, there: Collection[str], near: str = "") -> ValueError:
    names = there if isinstance(there, list) else sorted(there)
    hint = closest(near, there) if near else ""
    return ValueError(f"{op.name}: no kernel of it {what}{hint}; there are {', '.join(names) or 'none'}")
