"""Tests the check of lengths: it finds long files, long functions, and list entries that are no longer needed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json

import pytest
from check_sizes import ALLOWED, check_sizes, cpp_functions, python_functions

CPP = """namespace a {
struct S {
  int value() const { return 1; }
  void member(int one,
              int two) {
    if (one) {
      two = '{';
    }
  }
};
constexpr int table[] = {
    1,
};
// A comment (with parentheses) {
static S::Result S::free(const char *text) {
  auto inner = [&](int x) {
    return x;
  };
  visit(text, [](char c) {
    return c == "}"[0];
  });
  return inner(1);
}
} // namespace a
"""


def test_functions_of_cpp():
    assert list(cpp_functions(CPP)) == [("value", 1), ("member", 6), ("S::free", 9)]


def test_functions_of_python():
    assert list(python_functions("def f():\n    def g():\n        pass\n    return g\n")) == [("f", 4), ("g", 2)]


@pytest.fixture
def tree(tmp_path):
    """Creates a long file with a long function."""
    (tmp_path / "long.cpp").write_text("int f() {\n" + "  g();\n" * 100 + "}\n" + "\n" * 400)
    (tmp_path / ALLOWED).parent.mkdir(parents=True)
    return tmp_path


def complaints(tree, files, functions, names=("long.cpp",)):
    (tree / ALLOWED).write_text(json.dumps({"files": files, "functions": functions}))
    return check_sizes(tree, names)


def test_what_is_too_long_is_named(tree):
    assert complaints(tree, {}, {}) == [
        "long.cpp: 502 lines, the limit is 450; split it",
        "long.cpp: f: 102 lines, the limit is 80; split it",
    ]


def test_listed_ones_may_not_grow(tree):
    assert complaints(tree, {"long.cpp": 502}, {"long.cpp: f": 102}) == []
    assert complaints(tree, {"long.cpp": 502}, {"long.cpp: f": 101}) == [
        "long.cpp: f: 102 lines, the limit is 101; split it"
    ]


def test_list_shrinks(tree):
    listed = complaints(tree, {"long.cpp": 502}, {"long.cpp: f": 102, "long.cpp: g": 90})
    assert listed == [f"{ALLOWED}: long.cpp: g has at most 80 lines now; take it from the list"]
