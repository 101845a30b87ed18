"""Registers packages with sessions of ONNX Runtime.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: The library of custom ops, for programs without Python.
LIBRARY = Path(__file__).parents[1] / "libkpkg_onnxruntime.so"
#: The entry of a session's configuration that names the packages.
ENTRY = "kpkg.packages"


def register(options: Any, *packages: str | os.PathLike[str]) -> None:
    """Lets sessions with these `options` run the ops of the packages, files or folders of them.

    An op "kpkg::softmax" is the node `softmax` of the domain `kpkg`. Packages named first are tried first.

    Args:
        options: An onnxruntime.SessionOptions.
        packages: The packages. Without any they are those of KPKG_PATH.

    Raises ValueError if the options have packages already, or if a path has a colon. Raises the errors of ONNX Runtime,
    with kpkg's message, if a package cannot be opened.
    """
    paths = [os.fsdecode(package) for package in packages]
    for path in paths:
        if ":" in path:
            raise ValueError(f"the path {path!r} has a colon, which separates packages")
    known = _entry(options)
    if known is not None:
        raise ValueError(f"these session options have packages already, name all of them in one call: {known}")
    if paths:
        options.add_session_config_entry(ENTRY, ":".join(os.path.abspath(path) for path in paths))
    options.register_custom_ops_library(os.fspath(LIBRARY))


def _entry(options: Any) -> str | None:
    try:
        return options.get_session_config_entry(ENTRY)
    except RuntimeError:  # there is none
        return None
