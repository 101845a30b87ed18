"""Shows packages with odd manifests by `kpkg info`: `odd_manifests.py PACKAGE FOLDER`.

The command must not abort or emit terminal control sequences.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import copy
import hashlib
import json
import subprocess
import sys
from pathlib import Path

package, folder = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
size = int.from_bytes(package[16:24], "little")
MANIFEST = json.loads(package[64 : 64 + size])
DATA = package[(64 + size + 63) // 64 * 64 :]
CONTROLS = "\x1b]0;title\x07\x1b[2J\x7f\x9b31m\n\u202eop"
ODD = (..., None, 7, -1, 0.5, True, "text", [], [1], {}, {"a": 1})


def write(manifest, path):
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header = package[:16] + len(text).to_bytes(8, "little") + bytes(8) + hashlib.sha256(text).digest()
    path.write_bytes((header + text).ljust((64 + len(text) + 63) // 64 * 64, b"\0") + DATA)


def places(value, path=()):
    """Yields the path of every object member and list item; for lists, only of the first and the last item."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) - 1}) if value else ():
            yield (*path, i)
            yield from places(value[i], (*path, i))


def changed(place, odd):
    """Returns the manifest with `odd` in that place, or without the place if `odd` is ..."""
    manifest = copy.deepcopy(MANIFEST)
    holder = manifest
    for step in place[:-1]:
        holder = holder[step]
    if odd is ...:
        del holder[place[-1]]
    else:
        holder[place[-1]] = odd
    return manifest


def value_at(place):
    value = MANIFEST
    for step in place:
        value = value[step]
    return value


shown = refused = 0
file = folder / "odd.kpkg"
for number, place in enumerate(places(MANIFEST)):
    odd = CONTROLS if isinstance(value_at(place), str) and number % 2 else ODD[number % len(ODD)]
    write(changed(place, odd), file)
    arguments = ["--json"] if number % 7 == 0 else ["--instances"]
    done = subprocess.run(["kpkg", "info", str(file), *arguments], capture_output=True)
    assert done.returncode in (0, 1), (place, odd, done)
    printed = (done.stdout + done.stderr).decode()
    bad = [c for c in printed if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]
    assert not bad, (place, odd, done)
    shown, refused = shown + (done.returncode == 0), refused + (done.returncode == 1)
print("shown" if shown > 20 else f"only {shown} shown", "refused" if refused > 20 else f"only {refused} refused")
