"""Implements `python -m kpkg onnx MODEL PACKAGE... -o OUT`, which rewrites nodes of a model to ops of packages.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the subcommand."""
    parser.add_argument("model", metavar="MODEL", help="an .onnx file")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE", help="a .kpkg file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the rewritten model")
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="an extent of the inputs that has only a name"
    )
    parser.add_argument("--measure", action="store_true", help="keep nodes where kpkg is slower on this machine's CPU")
    parser.add_argument("--only", action="append", metavar="TYPE", help="only nodes of this type; may be repeated")


def run(options: argparse.Namespace) -> int:
    """Writes the model and prints what became of its nodes. Returns 0, or 3 if something cannot be read."""
    try:
        import onnx
    except ImportError:
        print("kpkg: onnx needs the package onnx: pip install kpkg[onnx]", file=sys.stderr)
        return 3
    from kpkg.onnx import rewrite

    dims = {}
    for text in options.dim:
        name, _, extent = text.partition("=")
        if not name or not extent.isdecimal():
            print(f"kpkg: --dim {text!r} is not NAME=N, as batch=8", file=sys.stderr)
            return 2
        dims[name] = int(extent)
    try:
        rewritten = rewrite(options.model, options.packages, dims, options.measure, options.only)
        onnx.save(rewritten.model, options.output)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"kpkg: {error}", file=sys.stderr)
        return 3
    except Exception as error:
        print(f"kpkg: {options.model} is no ONNX model: {error}", file=sys.stderr)
        return 3
    print(rewritten)
    return 0
