"""Writes the contents of a package's first section with a prefix: `sections.py PACKAGE PREFIX OUTPUT`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import ctypes
import json
import sys
from pathlib import Path

package, prefix, output = sys.argv[1:]
data = Path(package).read_bytes()
size = int.from_bytes(data[16:24], "little")
start = (64 + size + 63) // 64 * 64
section = next(s for s in json.loads(data[64 : 64 + size])["sections"] if s["name"].startswith(prefix))
stored = data[start + section["offset"] :][: section["stored"]]
contents = ctypes.create_string_buffer(section["size"])
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
assert zstd.ZSTD_decompress(contents, section["size"], stored, section["stored"]) == section["size"]
Path(output).write_bytes(contents.raw)
