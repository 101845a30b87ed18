"""Makes `import torchvision` work with a PyTorch for CPUs.

It declares the ops that torchvision's build for CUDA cannot load.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

MARK = "# Added by kpkg's tools/torchvision_names.py"
# torchvision registers shape functions for these ops on import, even if its compiled part has not declared them.
DECLARATIONS = f"""

{MARK}: the compiled part of this build needs CUDA's libraries. Models and transforms work
# without it; ops of torchvision.ops that need it raise what `_assert_has_ops` raises.
if not _has_ops():
    _declared = torch.library.Library("torchvision", "FRAGMENT")
    _declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


def is_importable() -> bool:
    """Returns whether a new process can import torchvision."""
    return subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True).returncode == 0


def declare(extension: Path) -> bool:
    """Adds the declarations to torchvision's file `extension.py`. Returns False if it has them already."""
    text = extension.read_text()
    if MARK in text:
        return False
    extension.write_text(text.rstrip() + DECLARATIONS)
    return True


def main() -> int:
    """Returns 0 if torchvision can be imported in the end, or is not installed."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or is_importable():
        return 0
    declare(Path(found.origin).parent / "extension.py")
    if is_importable():
        print("torchvision is a build for CUDA: its models import, its compiled ops do not run")
        return 0
    print("torchvision cannot be imported: it does not fit this PyTorch", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
