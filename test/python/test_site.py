"""Builds the site, which fails on links without target, and looks at the pages made from packages and results.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kpkg
import pytest
from conftest import BUILD, ROOT

COMMAND = [sys.executable, ROOT / "tools" / "site" / "build.py"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(BUILD / "python")}


@pytest.fixture(scope="module")
def site(packages, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [*COMMAND, folder, "--packages", packages["softmax"].parent]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_family_and_op_has_a_place(site, packages):
    index = (site / "docs" / "ops" / "index.html").read_text()
    for family in ("softmax", "gemm", "rnn"):
        page = (site / "docs" / "ops" / f"{family}.html").read_text()
        for op in kpkg.load(packages[family]):
            name = op.__name__
            if not name.endswith(("_reference", "_autograd", "_backward")):
                assert f'<h2 id="{name}">' in page and f'href="{family}.html#{name}"' in index


def test_speeds_are_those_of_the_results(site):
    result = json.loads((ROOT / "bench" / "results" / "gpu-release-h100.json").read_text())
    page = (site / "docs" / "ops" / "speed.html").read_text()
    for name, family in result["families"].items():
        assert name in page and f"<td>{family['geomean']:.2f}</td>" in page
    assert (site / "docs" / "ops" / "ratios.svg").stat().st_size > 1000
    assert "gpu-rows-h200.json" in (site / "docs" / "ops" / "softmax.html").read_text()


def test_pages_can_be_searched(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    assert any("embedding_bag" in entry["title"] for entry in index["docs"])
