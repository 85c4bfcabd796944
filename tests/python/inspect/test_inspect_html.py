"""The page of a program: one file without outside resources, the whole report, with any names."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from runtime_programs import MethodBuilder, binary, program

from rushlight.inspect import ProgramReport, report_of
from rushlight.inspect.html import page

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "golden").glob("*.pte"))
HOSTILE = [
    "</script><script>alert(1)</script>",
    "</script x",
    "<!-- <script x",
    "<img src=x onerror=alert(1)>",
    "\u2028\u2029\x00\x1b[31m",
    "'\"`&amp;${x}",
    "{{data}} <!--{{script}}-->",
    "__proto__",
]


class _Page(HTMLParser):
    """Collects elements and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.title = ""
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        if self._open == "title":
            self.title += data


def _data(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_Page(text).scripts[0])
    return document


def _with_names(names: list[str]) -> ProgramReport:
    """A program in which every name is one of `names`."""
    methods = []
    for i, name in enumerate(names):
        method: MethodBuilder = binary(f"{name}::{name}.{i}", 4)
        method.name = name
        methods.append(method)
    rows = {n: [[n, n, 0, 1, n, n, n]] for n in names}
    values = {n: {"0": n, "1": n} for n in names}
    debug = {"version": 1, "files": [names[0]], "methods": rows, "values": values}
    report = report_of(program(*methods, debug=debug))
    report.name = names[0]
    return report


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_data_of_the_page_is_the_report(path: Path) -> None:
    report = report_of(path)
    data = _data(page(report))
    whole = json.loads(json.dumps(report.to_json()))
    assert data["by_kind"] == whole["by_kind"] and data["bytes"] == whole["bytes"]
    for shown, method in zip(data["methods"], whole["methods"], strict=True):
        assert shown["signature"] == method["signature"]
        for part in ("values", "instructions", "arenas"):
            for short, full in zip(shown[part], method[part], strict=True):
                _assert_shortened(short, full)


def _assert_shortened(short: dict[str, Any], full: dict[str, Any]) -> None:
    """Check that `short` has the fields of `full` except the empty ones."""
    for key, value in full.items():
        if key in short and not isinstance(value, dict | list):
            assert short[key] == value
        elif key not in short:
            assert value in ("", 0, -1, None, False, [], "literal")
    assert set(short) <= set(full)


def test_every_field_of_the_report_is_shown() -> None:
    scripts = "".join(_Page(page(report_of(GOLDEN[0]))).scripts[1:])
    fields = [field.name for field in dataclasses.fields(ProgramReport)]
    assert [name for name in fields if not re.search(rf"\breport\.{name}\b", scripts)] == []


def test_nothing_is_fetched() -> None:
    text = page(report_of(GOLDEN[0]))
    parsed = _Page(text)
    for tag, attributes in parsed.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not attributes.keys() & {"src", "srcset", "data", "action"}
        assert (attributes.get("href") or "#").startswith("#")
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, not a place
    assert not re.search(r"url\((?!#)|@import|\bfetch\(|XMLHttpRequest|\bimport\(", text)
    policy = next(a["content"] for t, a in parsed.elements if a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")


def test_markup_is_never_made_from_text() -> None:
    text = page(report_of(GOLDEN[0]))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)


def test_hostile_names_stay_data() -> None:
    report = _with_names(HOSTILE)
    text = page(report)
    parsed = _Page(text)
    assert [tag for tag, _ in parsed.elements].count("script") == 2
    assert len(parsed.scripts) == 2
    data = _data(text)
    assert [method["name"] for method in data["methods"]] == HOSTILE
    assert data["methods"][0]["instructions"][0]["source"]["text"] == HOSTILE[0]
    assert parsed.title == f"{HOSTILE[0]} · rushlight"
    assert not any(tag == "img" for tag, _ in parsed.elements)


_PROBE = """<script>
const seen = [];
addEventListener("error", (event) => seen.push(event.message));
addEventListener("unhandledrejection", (event) => seen.push(String(event.reason)));
setTimeout(() => {
  const search = document.getElementById("search");
  for (const button of [...document.querySelectorAll("#methods button")].reverse()) button.click();
  const rows = document.querySelectorAll(".instructions li");
  for (const row of rows) row.click();
  const detail = document.querySelector(".instruction-detail h3");
  for (const block of document.querySelectorAll(".block")) {
    block.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 300 }));
  }
  const tip = document.getElementById("tip").textContent;
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
  const focused = document.activeElement === search;
  search.value = "no such thing at all";
  search.dispatchEvent(new Event("input"));
  const hidden = [...rows].every((row) => row.hidden);
  search.value = "";
  search.dispatchEvent(new Event("input"));
  for (const head of document.querySelectorAll("th button")) head.click();
  document.getElementById("theme").click();
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({
    errors: seen, rows: rows.length, blocks: document.querySelectorAll(".block").length,
    boxes: document.querySelectorAll(".box").length, detail: detail ? detail.textContent : "",
    tip, focused, hidden, images: document.querySelectorAll("img").length,
    stray: [...document.querySelectorAll("main *")].filter((e) => !e.children.length &&
      /undefined|NaN|null|\\[object/.test(e.textContent) && e.tagName !== "TITLE")
      .map((e) => e.outerHTML.slice(0, 200)),
  });
  document.body.append(out);
}, 300);
</script>
</head>"""


def _probe(report: ProgramReport, folder: Path) -> dict[str, Any]:
    """The page in a real browser, after a click on every element."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium is not None
    file = folder / "page.html"
    file.write_text(page(report).replace("</head>", _PROBE, 1), encoding="utf-8")
    done = subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", file.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    shown = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert shown is not None, done.stderr[-2000:]
    unescaped = shown[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    document: dict[str, Any] = json.loads(unescaped)
    return document


needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") or shutil.which("google-chrome")), reason="chromium is missing"
)


@needs_chromium
@pytest.mark.parametrize("name", ["cond", "dynamic_view", "methods"])
def test_page_works_in_a_browser_where_chromium_is_installed(name: str, tmp_path: Path) -> None:
    report = report_of(next(path for path in GOLDEN if path.stem == name))
    seen = _probe(report, tmp_path)
    method = report.methods[0]
    assert seen["errors"] == [] and seen["stray"] == []
    assert seen["rows"] == len(method.instructions)
    assert seen["blocks"] == sum(len(arena.blocks) for arena in method.arenas)
    inputs_and_outputs = len(method.inputs) + len(method.outputs)
    assert len(method.instructions) < seen["boxes"] <= len(method.instructions) + inputs_and_outputs
    assert method.instructions[-1].op in seen["detail"]
    assert "offset" in seen["tip"] and seen["focused"] and seen["hidden"]


@needs_chromium
def test_hostile_names_do_nothing_in_a_browser_where_chromium_is_installed(tmp_path: Path) -> None:
    seen = _probe(_with_names([name for name in HOSTILE if "null" not in name]), tmp_path)
    assert seen["errors"] == [] and seen["images"] == 0 and seen["rows"] == 1
