"""Stands in for nvdisasm: checks its arguments and prints the size of the cubin.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import sys
from pathlib import Path

code = Path(sys.argv[2]).read_bytes()
assert sys.argv[1] == "-c" and code[:4] == b"\x7fELF" and b"doubled_blocks" in code
print("// a cubin of", len(code), "bytes")
