"""Runs a command and fails unless it exits with the given code: `expect_exit.py CODE COMMAND ...`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
found = subprocess.run(command).returncode
if found != wanted:
    print(f"exit code {found}, expected {wanted}")
    sys.exit(1)
