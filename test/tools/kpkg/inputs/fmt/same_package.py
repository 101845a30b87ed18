"""Fails unless two packages differ in their sources alone: `same_package.py ONE OTHER`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import subprocess
import sys


def contents(package: str) -> dict:
    """The manifest without the sources' digests, and without places in the file."""
    text = subprocess.run(["kpkg", "info", package, "--json"], capture_output=True, text=True, check=True).stdout
    manifest = json.loads(text)
    manifest["sections"] = [
        {"name": each["name"], "sha256": each["kind"] == "source" or each["sha256"]} for each in manifest["sections"]
    ]
    return manifest


if contents(sys.argv[1]) != contents(sys.argv[2]):
    sys.exit("the packages differ in more than their sources")
