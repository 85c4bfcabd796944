"""The chat page: its files, its modules in Node, and the whole of it in Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from servers import CHAT, EndlessRunner, ask, serving

import rushlight.llm.serve
from browsing import needs_chromium

PAGE = Path(rushlight.llm.serve.__file__).parent / "page"
FILES = sorted(path.name for path in PAGE.iterdir())


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_files_take_nothing_from_elsewhere_and_write_no_html(name: str) -> None:
    text = _read(name).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]+\.", text)
    banned = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|\bFunction\(|srcdoc"
    assert not re.search(banned, text)
    assert not re.search(r"<script>|<style|\son[a-z]+=|style=", text)


def test_the_server_has_all_files_of_the_page(port: int) -> None:
    links = re.findall(r'(?:href|src)="(/page/[^"]+)"', _read("index.html"))
    links += [link for name in FILES for link in re.findall(r'from "(/page/[^"]+)"', _read(name))]
    assert {link.removeprefix("/page/") for link in links} == set(FILES) - {"index.html"}
    for link in links:
        status, headers, body = ask(port, link)
        assert status == 200 and body.decode() == _read(link.removeprefix("/page/"))
        kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
        assert headers["content-type"].startswith(kinds[Path(link).suffix])


def test_every_element_that_is_asked_for_is_there() -> None:
    ids = set(re.findall(r'id="([^"]+)"', _read("index.html")))
    script = _read("main.js")
    asked = set(re.findall(r'\$\("([^"]+)"\)', script))
    listed = re.search(r'\[("log".*?)\]\.map', script, re.S)
    assert listed is not None
    asked |= set(re.findall(r'"([^"]+)"', listed[1]))
    assert asked <= ids


def test_the_server_takes_every_setting(port: int) -> None:
    names = set(re.findall(r'name="([a-z_]+)"', _read("index.html"))) - {"viewport"}
    values = {"temperature": 0.5, "top_p": 0.9, "min_p": 0.1, "max_tokens": 2, "seed": 1}
    assert names == {"system", "key", *values}
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = {**CHAT, **values, "stream": True, "stream_options": options}
    status, _, events = ask(port, "/v1/chat/completions", body)
    assert status == 200 and events.endswith(b"data: [DONE]\n\n")


# --- in Node ------------------------------------------------------------------------------------

_IN_NODE = """
import { EventReader, request, stream } from "%s";
const reader = new EventReader();
const events = ["da", "ta: 1\\n", "\\ndata: 2\\n\\ndata", ": 3\\n\\n: comment\\n\\n"]
  .flatMap((part) => reader.push(part));
const said = [{ role: "user", content: "a", note: "n" }, { role: "assistant", content: "b" }];
const settings = { system: "s", key: "k", temperature: "0", seed: "", max_tokens: "5" };
const seen = [];
let refused = "";
globalThis.fetch = async (path, options) => {
  const body = new TextEncoder().encode('data: {"a":"ä"}\\n\\ndata: [DONE]\\n\\n');
  const parts = [body.slice(0, 12), body.slice(12)];
  const read = async () => parts.length ? { value: parts.shift() } : { done: true };
  return { ok: path !== "/no", status: 400, body: { getReader: () => ({ read }) },
    json: async () => ({ error: { message: "why" } }) };
};
await stream("/yes", {}, { onEvent: (event) => seen.push(event) });
await stream("/no", {}, { onEvent() {} }).catch((error) => { refused = error.message; });
console.log(JSON.stringify({
  events, seen, refused,
  chat: request({ id: "m", has_chat: true }, said, settings),
  failed: request({ id: "m", has_chat: true }, [
    { role: "user", content: "no" }, { role: "assistant", content: "", wrong: true },
    { role: "user", content: "a" }, { role: "assistant", content: "b" },
    { role: "assistant", content: "", note: "Stopped." },
    { role: "user", content: "c" },
  ], { system: "s" }),
  text: request({ id: "m", has_chat: false }, said, { ...settings, system: "" }),
}));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
def test_requests_and_events_where_node_is_installed(tmp_path: Path) -> None:
    module = tmp_path / "api.mjs"
    module.write_text(_read("api.js"), encoding="utf-8")
    script = tmp_path / "test.mjs"
    script.write_text(_IN_NODE % module.as_uri(), encoding="utf-8")
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["events"] == ["1", "2", "3"]
    assert told["seen"] == [{"a": "ä"}] and told["refused"] == "why"
    path, body = told["chat"]
    assert path == "/v1/chat/completions"
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant"]
    assert "note" not in body["messages"][1] and "key" not in body and "seed" not in body
    assert body["temperature"] == 0 and body["max_tokens"] == 5
    said = [message["content"] for message in told["failed"][1]["messages"]]
    assert said == ["s", "a", "b", "c"]
    assert told["text"][0] == "/v1/completions" and told["text"][1]["prompt"] == "ab"


# --- in Chromium --------------------------------------------------------------------------------


def _ask(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")


def _shows(page: Any, selector: str, text: str) -> None:
    page.locator(selector, has_text=text).wait_for()


def _is_idle(page: Any) -> None:
    page.wait_for_selector("#send", state="visible")


@pytest.mark.full
@needs_chromium
def test_a_chat_where_chromium_is_installed(page: Any, port: int) -> None:
    page.goto(f"http://127.0.0.1:{port}/")
    _shows(page, "#model", "tiny")
    page.click("#open-settings")
    page.fill("[name=temperature]", "0")
    page.fill("[name=max_tokens]", "30")
    page.fill("[name=system]", "the night")
    page.click("#open-settings")
    _ask(page, "the lamp")
    _is_idle(page)
    reply = page.locator("article.assistant .said").last
    first = reply.text_content()
    assert first and re.search(r"30 tokens · [0-9.]+ tokens/s", page.text_content("#figures"))
    assert page.locator("article.assistant .note").text_content() == (
        "It ended at the limit of tokens."
    )
    # The next question finds what was said in the cache.
    _ask(page, "the light")
    _is_idle(page)
    assert page.locator("article").count() == 4
    assert "prompt tokens reused" in page.text_content("#figures")
    # An edit takes the conversation back, and asks again.
    page.locator("article.user").first.get_by_text("Edit").click()
    page.fill("article.user textarea", "low")
    page.get_by_text("Send again").click()
    _is_idle(page)
    assert page.locator("article").count() == 2
    assert page.locator("article.user .said").text_content() == "low"
    other = reply.text_content()
    page.locator("article.user").first.get_by_text("Edit").click()
    page.fill("article.user textarea", "the lamp")
    page.get_by_text("Send again").click()
    _is_idle(page)
    assert reply.text_content() == first != other
    # Settings stay, but for the key.
    page.reload()
    assert page.input_value("[name=max_tokens]") == "30"
    assert page.locator("article").count() == 0 and page.faults == []


@pytest.mark.full
@needs_chromium
def test_stopping_where_chromium_is_installed(page: Any) -> None:
    runner = EndlessRunner()
    with serving(runner) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        _ask(page, "the lamp")
        _shows(page, "#figures", "tokens/s")
        page.click("#stop")
        _is_idle(page)
        assert runner.ended.acquire(timeout=60)
        assert page.locator("article.assistant .note").text_content() == "Stopped."
        assert set(page.locator("article.assistant .said").text_content()) == {"x"}
        _ask(page, "the night")
        page.wait_for_selector("article:nth-of-type(4) .said:has-text('x')")
        page.click("#new")
        assert runner.ended.acquire(timeout=60) and page.locator("article").count() == 0
    assert page.faults == []


@pytest.mark.full
@needs_chromium
def test_another_model_where_chromium_is_installed(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or request.url))
    with serving(EndlessRunner(), name="second") as port:
        answer = {"data": [{"id": "first", "has_chat": True}]}
        page.route("**/v1/models", lambda route: route.fulfill(json=answer), times=1)
        page.goto(f"http://127.0.0.1:{port}/")
        _shows(page, "#model", "first")
        _ask(page, "one")
        _shows(page, "article.assistant .note", "there is no model 'first'")
        _ask(page, "two")
        page.wait_for_selector("article:nth-of-type(4) .said:has-text('x')")
        page.click("#stop")
        _is_idle(page)
        assert page.text_content("#model") == "second"
        assert page.locator("article.user .said").all_text_contents() == ["one", "two"]
    said = json.loads(next(body for body in asked if '"second"' in body))["messages"]
    assert [message["content"] for message in said] == ["two"]


HOSTILE = (
    "<img src=x onerror=window.hit=1><script>window.hit=1</script> &amp; ```\n<b>code</b>\n```"
)


@pytest.mark.full
@needs_chromium
def test_hostile_texts_stay_texts_where_chromium_is_installed(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = EndlessRunner()
    monkeypatch.setattr("servers.TEXT", HOSTILE + "\n")
    with serving(runner, name="<b>tiny</b>") as port:
        page.goto(f"http://127.0.0.1:{port}/")
        _ask(page, HOSTILE)
        page.locator("pre").nth(3).wait_for()
        page.click("#stop")
        _is_idle(page)
        assert page.evaluate("document.querySelectorAll('img, b, article script').length") == 0
        assert page.evaluate("window.hit") is None
        assert HOSTILE.partition("`")[0] in page.text_content("article.user")
        assert page.text_content("#model") == "<b>tiny</b>"
    assert page.faults == []


@pytest.mark.full
@needs_chromium
def test_the_key_where_chromium_is_installed(page: Any, runner: Any) -> None:
    with serving(runner, api_key="secret") as port:
        page.goto(f"http://127.0.0.1:{port}/")
        _shows(page, "#figures", "key is missing")
        page.click("#open-settings")
        page.fill("[name=key]", "secret")
        page.fill("[name=max_tokens]", "4")
        page.press("[name=key]", "Tab")
        _shows(page, "#model", "tiny")
        _ask(page, "the lamp")
        _is_idle(page)
        assert page.locator("article.assistant .note.wrong").count() == 0
        assert "secret" not in page.evaluate("JSON.stringify(localStorage)")
