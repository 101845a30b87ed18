"""Writes a folder of sources with thirty errors: `many_errors.py FOLDER`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import sys
from pathlib import Path

for number, name in enumerate(("a.k", "b.k", "inner/c.k")):
    ops = (
        f'@register.op("many::f{number}_{i}")\ndef f{i}(x: Tensor, n: int) -> Tensor:\n    return x\n'
        for i in range(10)
    )
    (Path(sys.argv[1]) / name).write_text("\n".join(ops))
