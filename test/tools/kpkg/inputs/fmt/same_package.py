"""Fails unless two packages differ only in their sources: `same_package.py ONE OTHER`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import subprocess
import sys


def contents(package: str) -> dict:
    """Returns the manifest without the digests of the sources and without file offsets."""
    text = subprocess.run(["kpkg", "info", package, "--json"], capture_output=True, text=True, check=True).stdout
    manifest = json.loads(text)
    manifest["sections"] = [
        {"name": each["name"], "sha256": each["kind"] == "source" or each["sha256"]} for each in manifest["sections"]
    ]
    return manifest


if contents(sys.argv[1]) != contents(sys.argv[2]):
    sys.exit("the packages differ in more than their sources")
