"""Writes a copy of a package that says that kpkg 0.0.9 made it: `other_producer.py PACKAGE COPY`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import hashlib
import json
import sys
from pathlib import Path

package = Path(sys.argv[1]).read_bytes()
size = int.from_bytes(package[16:24], "little")
manifest = json.loads(package[64 : 64 + size])
manifest["producer"]["kpkg"] = "0.0.9"
text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
header = package[:16] + len(text).to_bytes(8, "little") + bytes(8) + hashlib.sha256(text).digest()
data = package[(64 + size + 63) // 64 * 64 :]
Path(sys.argv[2]).write_bytes((header + text).ljust((64 + len(text) + 63) // 64 * 64, b"\0") + data)
