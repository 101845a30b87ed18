"""Puts a section of one package into another: `replace_section.py PACKAGE SECTION OTHER OUTPUT`.

Digests and offsets are correct afterwards, as an attacker or a faulty compiler would make them; signatures are not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import hashlib
import json
import sys
from pathlib import Path


def up(offset):
    return (offset + 63) // 64 * 64


def read(path):
    """Returns the manifest, and the stored bytes of the sections by name."""
    package = Path(path).read_bytes()
    size = int.from_bytes(package[16:24], "little")
    manifest, start = json.loads(package[64 : 64 + size]), up(64 + size)
    return manifest, {
        section["name"]: package[start + section["offset"] :][: section["stored"]] for section in manifest["sections"]
    }


package, name, other, output = sys.argv[1:]
manifest, sections = read(package)
other_manifest, other_sections = read(other)
replacement = next(section for section in other_manifest["sections"] if section["name"] == name)
sections[name] = other_sections[name]
data = b""
for section in manifest["sections"]:
    if section["name"] == name:
        for key in ("size", "stored", "compression", "sha256"):
            section[key] = replacement[key]
    data = data.ljust(up(len(data)), b"\0")
    section["offset"] = len(data)
    data += sections[section["name"]]
text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
header = Path(package).read_bytes()[:16] + len(text).to_bytes(8, "little") + bytes(8) + hashlib.sha256(text).digest()
Path(output).write_bytes((header + text).ljust(up(64 + len(text)), b"\0") + data)
