"""Tests the check of pages: a bad page fails with its position and the rule, a good one passes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from pathlib import Path

import pytest
from check_pages import GLOSSARY, check_pages, complaints, retired_words

GLOSSARY_PAGE = """# Glossary

| term | meaning | retired |
|---|---|---|
| dispatch path | a kernel that dispatch can choose | road, `road.k` |
| TMA | the Tensor Memory Accelerator | copy engine |
| variant | assumptions about memory | |
"""
RETIRED = {"road": "dispatch path", "copy engine": "TMA"}

GOOD_PAGE = f"""# Title

Run the command. It takes `a road of code that is much longer than the limit of words in one sentence, which is fine`.
Abbreviations, e.g. This one, and [links that name a road](docs/road.md) with their label checked.

```
{"a line of code with a road " * 10}
```

| option | {"a cell may be wide; " * 20} |
|---|---|
| `x` | {"short; " * 30} |

* {"[label](https://example.org/" + "x" * 120 + ")"}
<!-- a comment on the copy engine -->
"""
LONG = "Word" + " word" * 25


def test_glossary_gives_words_but_no_names():
    assert retired_words(GLOSSARY_PAGE) == RETIRED


def test_good_page_passes():
    assert complaints("docs/good.md", GOOD_PAGE.replace("name a road", "name a path"), RETIRED) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First.\n\n" + "wide prose. " * 11, ":3: 132 columns; prose has at most 120"),
        (f"First sentence. {LONG[:75]}\n{LONG[75:]}.", ":1: a sentence of 26 words, the limit is 25"),
        (f"* First item.\n* {LONG[:75]}\n  {LONG[75:]}.", ":2: a sentence of 26 words"),
        (f"| a | {LONG} |", ":1: a sentence of 26 words"),
        ("A second\nroad leads on.", ':1: "road": write "dispatch path" (docs/glossary.md)'),
        ("## The Copy\n\nThe Copy\nengine copies.", ':3: "Copy engine": write "TMA"'),
        ("```\ncode\n```\nThe [road](x.md).", ':4: "road"'),
        ("| a road | b |", ':1: "road"'),
    ],
)
def test_bad_page_fails(text, expected):
    found = complaints("docs/bad.md", text, RETIRED)
    assert len(found) == 1
    assert found[0].startswith("docs/bad.md" + expected)


@pytest.mark.parametrize("text", ["A broad way.", "The `road.k` module.", f"{LONG[:74]}.\nWord {LONG[75:]}"])
def test_near_misses_pass(text):
    assert complaints("docs/near.md", text, RETIRED) == []


def test_glossary_may_quote_retired_words(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / GLOSSARY).write_text(GLOSSARY_PAGE)
    (tmp_path / "README.md").write_text("The road to the copy engine.\n")
    found = check_pages(tmp_path, [GLOSSARY, "README.md"])
    assert [each.partition(":")[0] for each in found] == ["README.md", "README.md"]
