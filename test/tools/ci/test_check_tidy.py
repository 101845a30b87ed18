"""Tests which files the `tidy` suite checks: those of a branch, of the last commit, and changes of a merge itself.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from check_tidy import changed, translation_units

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


class Tree:
    """A repository whose commits write files."""

    def __init__(self, path: Path):
        self.path = path
        self.git("init", "-q")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *AUTHOR, *arguments], cwd=self.path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> None:
        for stem, text in files.items():
            (self.path / f"{stem}.cpp").write_text(text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "change")


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    tree.commit(first="1")
    return tree


def test_one_commit_is_refused(tree):
    with pytest.raises(ValueError, match="holds one commit"):
        changed(tree.path, None)


def test_main_branch_checks_its_last_commit(tree):
    tree.commit(second="1")
    tree.commit(third="1")
    assert changed(tree.path, None) == ("by the last commit", {"third.cpp"})


def test_named_commit_is_the_base(tree):
    tree.commit(second="1")
    tree.commit(third="1")
    assert changed(tree.path, "HEAD~2")[1] == {"second.cpp", "third.cpp"}
    with pytest.raises(ValueError, match="`nowhere` is no commit"):
        changed(tree.path, "nowhere")


def test_branch_is_compared_with_where_it_left_main(tree):
    tree.git("update-ref", "refs/remotes/origin/main", "HEAD")
    tree.commit(second="1")
    tree.commit(third="1")
    assert changed(tree.path, None)[1] == {"second.cpp", "third.cpp"}


def test_merge_has_only_what_it_changed_itself(tree):
    tree.git("checkout", "-q", "-b", "side")
    tree.commit(first="side", second="1")
    tree.git("checkout", "-q", "main")
    tree.commit(first="main", third="1")
    subprocess.run(["git", *AUTHOR, "merge", "-q", "side"], cwd=tree.path, capture_output=True)
    tree.commit(first="both")
    assert changed(tree.path, None)[1] == {"first.cpp"}


def test_changes_that_are_not_committed_count(tree):
    tree.commit(second="1")
    (tree.path / "first.cpp").write_text("2")
    (tree.path / "new.h").write_text("1")
    assert changed(tree.path, None)[1] == {"first.cpp", "second.cpp", "new.h"}


def test_headers_are_checked_through_their_source(tree):
    assert translation_units(tree.path, {"first.h", "gone.cpp", "other.h"}, {"first.cpp", "gone.cpp"}) == ["first.cpp"]
    assert translation_units(tree.path, {"first.cpp"}, set()) == []
