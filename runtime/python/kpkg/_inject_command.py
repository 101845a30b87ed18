"""Implements `python -m kpkg inject MODEL`: makes a model by its name, injects it and prints the table.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from typing import Any

_EXAMPLES = """examples:
  python -m kpkg inject resnet18                                  # of torchvision, with random weights
  python -m kpkg inject vit_b_16 --weights DEFAULT --device cuda --dtype bfloat16 --input 8,3,224,224
  python -m kpkg inject bert                                      # of transformers, by model type or name on its hub
  python -m kpkg inject my_package.models:build --input 32,128    # what build() returns, or a module that stands there
"""


class NoModel(Exception):
    """Reports why there is no model of that name, or no input for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `run` to the command line."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "model", help="package:function, a model of torchvision, or a model type or name of transformers"
    )
    parser.add_argument(
        "--input",
        action="append",
        metavar="[NAME=]SHAPE[:DTYPE]",
        help="an argument of the model, as 1,3,224,224 or input_ids=1,16:int64, filled at random; once for each",
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N; default: cpu")
    parser.add_argument("--dtype", default="float32", help="dtype of the model and of its inputs; default: float32")
    parser.add_argument("--weights", help="pretrained weights of torchvision, as DEFAULT; default: random ones")
    parser.add_argument("--include", action="append", help="only layers of this name, pattern or type; may be repeated")
    parser.add_argument("--exclude", action="append", default=[], help="no layers of this name, pattern or type")
    parser.add_argument("--train", action="store_true", help="choose for training: forward and backward")
    parser.add_argument("--cuda-graphs", action="store_true", help="choose for replays of CUDA graphs")


def run(options: argparse.Namespace) -> int:
    """Prints inject's table; returns 3 with a message if there is no such model, or it does not run on the input."""
    try:
        import torch
    except ImportError:
        print("kpkg: inject needs PyTorch", file=sys.stderr)
        return 3
    import kpkg

    torch.manual_seed(0)
    try:
        dtype = getattr(torch, options.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise NoModel(f"--dtype {options.dtype!r} is no dtype of PyTorch")
        model, inputs = _make(options.model, options.weights)
        if options.input:
            inputs = _inputs(options.input)
        if inputs is None:
            raise NoModel(f"say what {options.model} takes: --input 1,3,224,224")

        def moved(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return value.to(options.device, dtype if value.is_floating_point() else value.dtype)

        model = model.to(options.device, dtype).train(options.train)
        sample = {k: moved(v) for k, v in inputs.items()} if isinstance(inputs, dict) else tuple(map(moved, inputs))
        with torch.set_grad_enabled(options.train):
            kpkg.inject(
                model,
                include=options.include,
                exclude=options.exclude,
                sample_input=sample,
                cuda_graphs=options.cuda_graphs,
            )
    except (NoModel, RuntimeError, ValueError, TypeError) as error:
        print(f"kpkg: {error}", file=sys.stderr)
        return 3
    return 0


def _inputs(texts: list[str]) -> Any:
    """Returns random tensors for `--input`: a tuple, or a dict where they have names."""
    import torch

    given: list[tuple[str, Any]] = []
    for text in texts:
        name, _, rest = text.rpartition("=")
        extents, _, kind = rest.partition(":")
        dtype = getattr(torch, kind or "float32", None)
        try:
            shape = [int(extent) for extent in extents.split(",")] if extents else []
        except ValueError:
            shape = [-1]
        if not isinstance(dtype, torch.dtype) or min(shape, default=0) < 0:
            raise NoModel(f"--input {text!r} is not [NAME=]SHAPE[:DTYPE], as 1,3,224,224 or input_ids=1,16:int64")
        made = torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.randint(0, 2, shape).to(dtype)
        given.append((name, made))
    if all(name for name, _ in given):
        return dict(given)
    if any(name for name, _ in given):
        raise NoModel("either all of --input have names, or none has")
    return tuple(value for _, value in given)


def _make(name: str, weights: str | None) -> tuple[Any, Any]:
    """Returns the model, and an input for it or None where only the user knows one."""
    from torch import nn

    if ":" in name:
        return _of_package(name), None
    tried = []
    for library, make in (("torchvision", _of_torchvision), ("transformers", _of_transformers)):
        if importlib.util.find_spec(library) is None:
            tried.append(f"{library} is not installed")
            continue
        try:
            model, inputs = make(name, weights)
        except (ImportError, RuntimeError) as error:
            tried.append(f"{library} cannot be used: {error}")
        except (ValueError, KeyError, OSError) as error:
            tried.append(f"{library} has none: {str(error).splitlines()[0]}")
        else:
            assert isinstance(model, nn.Module), "both libraries make modules"
            return model, inputs
    raise NoModel(
        f"there is no model {name!r}; {'; '.join(tried)}; a function that makes one is named as package:function"
    )


def _of_package(name: str) -> Any:
    from torch import nn

    module, _, path = name.partition(":")
    sys.path.insert(0, "")
    try:
        value: Any = importlib.import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise NoModel(f"{name!r} cannot be imported: {error}") from None
    model = value if isinstance(value, nn.Module) else value() if callable(value) else value
    if not isinstance(model, nn.Module):
        raise NoModel(f"{name!r} gives a {type(model).__name__}, expected a torch.nn.Module")
    return model


def _of_torchvision(name: str, weights: str | None) -> tuple[Any, Any]:
    import torch
    from torchvision import models

    return models.get_model(name, weights=weights), (torch.randn(1, 3, 224, 224),)


def _of_transformers(name: str, weights: str | None) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModel  # type: ignore[import-not-found, unused-ignore]

    if weights is not None or "/" in name:
        model = AutoModel.from_pretrained(name)
    else:
        model = AutoModel.from_config(AutoConfig.for_model(name))
    return model, dict(model.dummy_inputs)
