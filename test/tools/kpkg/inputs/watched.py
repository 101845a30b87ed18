"""Watches a source, breaks its import after the first check, and repairs it after the second: `watched.py FOLDER`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import subprocess
import sys
from pathlib import Path
from threading import Timer

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
module, source = folder / "sizes.k", folder / "main.k"
module.write_text("comptime WIDTH = 64\n")
source.write_text("from sizes import WIDTH\n\ncomptime HALF = WIDTH // 2\n")
command = ["kpkg", "watch", str(source), "--count", "3", "--then", "echo then"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watch:
    assert watch.stdout is not None
    unseen = Timer(60, watch.kill)  # limits the wait for a change that is never seen
    unseen.start()
    for line in watch.stdout:
        print(line, end="")
        if line.startswith("then") and "WIDTH" in module.read_text():
            module.write_text("comptime WIDE = 64\n")
        elif line.startswith("1 error"):
            source.write_text("from sizes import WIDE\n")
unseen.cancel()
print("exit code", watch.returncode)
