"""Checks that the bfloat16 limit was measured with this CPU's instructions: `check_limit.py BENCH VERSION`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import sys
from pathlib import Path

bench, version = (json.loads(Path(name).read_text()) for name in sys.argv[1:])
how = bench["limits"]["flops"]["bfloat16"]["how"]
starts = {"x86-64-v4-bf16": "products of bfloat16 pairs", "x86-64-v4-amx": "products of tiles of bfloat16"}
assert how.startswith(starts.get(version["cpu_targets"][0], "float32 multiply-adds")), how
assert bench["limits"]["flops"]["bfloat16"]["per_second"] > 1e9
print("as the CPU does it")
