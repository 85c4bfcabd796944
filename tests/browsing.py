"""Chromium for tests of pages, driven by Playwright, which has a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).resolve().parents[1] / ".venv-browser"
_PLAYWRIGHT = "playwright==1.65.2"
needs_chromium = pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is missing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from filelock import FileLock

    with FileLock(f"{_FOLDER}.lock"):
        if not (_FOLDER / "playwright").is_dir():
            install = [sys.executable, "-m", "pip", "install", "--quiet"]
            subprocess.run([*install, "--target", str(_FOLDER), _PLAYWRIGHT], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(_FOLDER))
        from playwright.sync_api import sync_playwright  # type: ignore[import-not-found]

        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            yield chromium
            chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors are in `faults`."""
    page = browser.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda line: line.type == "error" and page.faults.append(line.text))
    yield page
    page.close()
