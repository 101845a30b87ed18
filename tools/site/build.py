"""Builds the site of kpkg: all pages of the repository, and pages made from packages and results.

    python tools/site/build.py FOLDER [--packages FOLDER]

The op reference is made from packages, build/test-packages unless another folder is named. The build fails on a link
or an anchor without target, and on a page that no menu has.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import op_pages  # noqa: E402
import pictures  # noqa: E402

#: A block of kernel code.
_FENCE = re.compile(r"^( *)```k$", re.M)


def stage(folder: Path) -> None:
    """Copies every page and result of the repository into `folder`, under its own path, so that links stay right."""
    listed = ["git", "ls-files", "*.md", "*.svg", "bench/results/*.json"]
    for name in subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            # Pygments colours Mojo, whose words the language shares.
            target.write_text(_FENCE.sub(r"\1```mojo", (ROOT / name).read_text()))
        else:
            shutil.copyfile(ROOT / name, target)
    shutil.copyfile(HERE / "site.css", folder / "site.css")


def build(site: Path, packages: Path) -> None:
    """Writes the site into the folder `site`. Raises CalledProcessError with mkdocs' report for a wrong page."""
    with tempfile.TemporaryDirectory() as work:
        pages = Path(work) / "pages"
        stage(pages)
        (pages / "docs" / "ops").mkdir()
        families = op_pages.write(pages / "docs" / "ops", packages)
        pictures.write(pages / "docs" / "ops", ROOT / "bench" / "results")
        menu = ["docs/ops/README.md", *({title: f"docs/ops/{name}.md"} for name, title in families.items())]
        config = Path(work) / "mkdocs.yml"
        config.write_text((HERE / "mkdocs.yml").read_text().replace("{{ops}}", json.dumps(menu)))
        with config.open("a") as file:
            file.write(f"\ndocs_dir: {json.dumps(str(pages))}\nsite_dir: {json.dumps(str(site.resolve()))}\n")
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(config)]
        # Material for MkDocs advertises its successor at each build.
        subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def main() -> None:
    parser = argparse.ArgumentParser(description="builds the site of kpkg")
    parser.add_argument("folder", type=Path, help="folder of the site")
    parser.add_argument("--packages", type=Path, default=ROOT / "build" / "test-packages", help="packages to describe")
    options = parser.parse_args()
    build(options.folder, options.packages)


if __name__ == "__main__":
    main()
