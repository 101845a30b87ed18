"""Opens pages of a built site in a headless browser, and checks width, contrast and errors.

    python tools/site/check_browser.py FOLDER [--screenshots FOLDER] [PAGE...]

Needs playwright from PyPI, and Chromium. Each page is opened as on a phone and as on a desk, in light and dark
colours. It must not scroll sideways, log an error, or ask another host; its text has the contrast that WCAG 2.1 asks at
level AA.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

SIZES = {"phone": (360, 740), "desk": (1280, 900)}
PAGES = ("index.html", "docs/start.html", "docs/language.html", "docs/ops/softmax.html", "docs/ops/speed.html")
#: Returns the texts whose contrast with their background is below what their size asks, with the ratio.
CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)));
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => top.length ? over(top, under) : under, [255, 255, 255]);
  };
  const found = {};
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (!walker.currentNode.textContent.trim() || !box.width || style.visibility != "visible" || style.opacity == 0)
      continue;
    const under = background(element), a = light(over(parse(style.color), under)), b = light(under);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const text = walker.currentNode.textContent.trim().slice(0, 30);
    if (ratio < (isLarge ? 3 : 4.5)) found[element.className || element.tagName] = `"${text}" ${ratio.toFixed(2)}`;
  }
  return Object.entries(found).map(([kind, text]) => `${kind}: ${text}`);
}"""


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each request."""

    def log_message(self, *_: object) -> None:
        pass


def _complaints(page: Page, host: str, name: str) -> Iterator[str]:
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request", lambda request: messages.append(f"asks {request.url}") if not request.url.startswith(host) else None
    )
    page.goto(host + name)
    width, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    if width > shown:
        yield f"is {width} wide on a screen of {shown}"
    yield from (f"contrast of {text}" for text in page.evaluate(CONTRAST))
    yield from messages


def check(site: Path, pages: list[str], screenshots: Path | None) -> list[str]:
    """Returns the complaints about the pages of a site. Writes a picture of each into `screenshots`."""
    found = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for device, (width, height) in SIZES.items():
            for colours in ("light", "dark"):
                options: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": colours}
                context = browser.new_context(**options)
                for name in pages:
                    page = context.new_page()
                    label = f"{name}, {device}, {colours}"
                    found += [f"{label}: {text}" for text in _complaints(page, host, name)]
                    if screenshots is not None:
                        page.screenshot(path=screenshots / f"{label.replace('/', '-')}.png")
                    page.close()
                context.close()
        browser.close()
    server.shutdown()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="checks a built site in a headless browser")
    parser.add_argument("site", type=Path, help="folder of the site")
    parser.add_argument("pages", nargs="*", help="pages to open")
    parser.add_argument("--screenshots", type=Path, help="folder for a picture of each page")
    options = parser.parse_args()
    if options.screenshots is not None:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    complaints = check(options.site, options.pages or list(PAGES), options.screenshots)
    print("\n".join(complaints) or "no complaint")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
