"""Content for reports of any size, and Chromium to open their pages in."""

import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

from logtool.commands.views.report_content import Content

CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=10000",
)  # fmt: skip


def content_of(findings: int, name: str = "orders") -> Content:
    """Return a content with so many findings, in turn an error, a warning and an info."""
    kinds = [("error", "batch/crc"), ("warning", "offset-index/length"), ("info", "segment/gap")]
    rows = [
        {
            "type": "finding", "severity": kinds[number % 3][0], "code": kinds[number % 3][1],
            "path": f"/data/{name}-{number}/{0:020d}.log", "position": number * 7 % findings,
            "message": f"message {number}", "broker": "always",
        }
        for number in range(findings)
    ]  # fmt: skip
    following = {"type": "next", "reason": "a reason", "command": "logtool plan /data"}
    return Content(
        paths=[Path("/data")], version="1", made_at="2026-01-01T00:00:00.000Z", status=1,
        rows=[*rows, following], forecasts=[], logs=[], unread=[], is_complete=True,
    )  # fmt: skip


def opened(page: Path, width: int, script: str) -> tuple[Any, list[str]]:
    """Run a script in a page in Chromium; return its result, and the messages of the console.

    `script` is the body of a function. The page is copied next to itself with the script behind it.
    """
    copy = page.with_name("opened.html")
    behind = (
        "<script>window.addEventListener('load', () => { let result; try { result = (() => {"
        f"{script}"
        "})(); } catch (error) { result = {error: String(error)}; }"
        "document.body.innerHTML = ''; const out = document.createElement('pre');"
        "out.id = 'result';"
        "out.textContent = JSON.stringify(result); document.body.append(out); });</script>"
    )
    copy.write_text(page.read_text("utf-8").replace("</body>", f"{behind}</body>"), "utf-8")
    done = subprocess.run(
        [*CHROMIUM, f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width},900",
         "--dump-dom", copy.as_uri()],
        capture_output=True, text=True, check=True, timeout=200, env=os.environ,
    )  # fmt: skip
    (found,) = re.findall(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(found)), console
