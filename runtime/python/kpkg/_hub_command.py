"""Runs ``python -m kpkg hub FOLDER PACKAGE...``, which writes a kernel repository for Hugging Face's `kernels`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from kpkg import _hub


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the subcommand."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the repository; its folder `build` is replaced")
    parser.add_argument("packages", type=Path, nargs="+", metavar="PACKAGE", help="a .kpkg file")
    parser.add_argument("--name", default="kpkg", help="name of the kernel (default: kpkg)")
    parser.add_argument("--version", type=int, default=1, help="version of the kernel's interface (default: 1)")
    parser.add_argument(
        "--libraries", type=Path, default=Path(__file__).parent, metavar="DIR", help="where libkpkg is (default: here)"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the repository, and prints its variants. Returns 0, or 3 if something cannot be read."""
    if not re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", options.name):
        print(f"kpkg: {options.name!r} is no name of a kernel: lower-case letters, digits and dashes", file=sys.stderr)
        return 2
    repository = _hub.Repository(options.packages, options.name, options.version, options.libraries)
    try:
        variants, complaints = _hub.write(options.folder, repository)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"kpkg: {error}", file=sys.stderr)
        return 3
    for variant in variants:
        size = sum(path.stat().st_size for path in variant.rglob("*") if path.is_file())
        print(f"{variant}: {size / 1e6:.1f} MB")
    for complaint in complaints:
        print(f"kpkg: the rules of the Hub refuse this: {complaint}", file=sys.stderr)
    return 0
